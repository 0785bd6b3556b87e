"""Reads checkpoints without a graph: names, shapes, types and values."""

import glob
import os
import struct

from runnel import _core, dtypes, errors
from runnel.core.protobuf import DecodeError, _read_varint, message_class

_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_MAX_TABLE = 1 << 30


class _Table:
    """A sorted table of keys and values, the format of index files and of V1 checkpoints."""

    def __init__(self, path):
        self._path = path
        size = os.path.getsize(path)
        if size < _FOOTER:
            self._fail(0, "it is too short for a table")
        if size > _MAX_TABLE and path.endswith(".index"):
            self._fail(0, "it is larger than an index may be")
        self._stream = open(path, "rb")  # closed by close()
        self._size = size
        footer = self._bytes(size - _FOOTER, _FOOTER)
        if struct.unpack("<Q", footer[40:])[0] != _MAGIC:
            self._fail(size - 8, "it does not end like a table")
        _, _, at = self._handle(footer, 0)
        self._index = self._handle(footer, at)[:2]

    def _fail(self, offset, what):
        raise errors.DataLossError(None, None, "%s at byte %d: %s" % (self._path, offset, what))

    def _bytes(self, offset, size):
        if offset < 0 or size < 0 or offset + size > self._size:
            self._fail(offset, "a block lies outside of the file")
        self._stream.seek(offset)
        return self._stream.read(size)

    def _handle(self, data, at):
        offset, at = _read_varint(data, at)
        size, at = _read_varint(data, at)
        return offset, size, at

    def _block(self, offset, size):
        data = self._bytes(offset, size + 5)
        if _core.masked_crc32c(data[:size + 1]) != struct.unpack("<I", data[size + 1:])[0]:
            self._fail(offset, "the checksum of a block is wrong")
        if data[size] != 0:
            self._fail(offset, "a block is compressed, which checkpoints are not")
        if size < 4:
            self._fail(offset, "a block is cut short")
        restarts = struct.unpack("<I", data[size - 4:size])[0]
        end = size - 4 - 4 * restarts
        if end < 0:
            self._fail(offset, "a block is cut short")
        at, key = 0, b""
        while at < end:
            shared, at = _read_varint(data, at)
            own, at = _read_varint(data, at)
            length, at = _read_varint(data, at)
            if shared > len(key) or at + own + length > end:
                self._fail(offset + at, "a row is cut short")
            key = key[:shared] + data[at:at + own]
            yield key, data[at + own:at + own + length]
            at += own + length

    def rows(self):
        for _, handle in self._block(*self._index):
            offset, size, _ = self._handle(handle, 0)
            yield from self._block(offset, size)

    def close(self):
        self._stream.close()


class CheckpointReader:
    """Reads the tensors of a checkpoint by name."""

    def __init__(self, filename):
        self._prefix = filename = os.fsdecode(filename)
        self._entries = {}  # name -> (DType, shape)
        try:
            if os.path.isfile(filename + ".index"):
                self._read_index(filename + ".index")
            else:
                self._read_first_format(filename)
        except DecodeError as error:
            raise errors.DataLossError(None, None, "%s: %s" % (filename, error)) from None

    def _read_index(self, path):
        table = _Table(path)
        entry_class = message_class("BundleEntryProto")
        for key, value in table.rows():
            if key and not key.startswith(b"\0"):  # neither the header nor a slice
                self._add(key.decode("utf-8", "replace"), entry_class.FromString(value))
        table.close()

    def _add(self, name, entry):
        dims = [dim.size for dim in entry.shape.dim]
        try:
            self._entries[name] = (dtypes.as_dtype(entry.dtype).base_dtype, dims)
        except TypeError:
            raise errors.DataLossError(None, None, "%s.index: %s has no type: %d" % (self._prefix, name, entry.dtype)) from None

    def _read_first_format(self, filename):
        files = [filename] if os.path.isfile(filename) else glob.glob(filename) or glob.glob(
            glob.escape(filename) + "-?????-of-?????")
        if not files:
            raise errors.NotFoundError(
                None, None, "Unsuccessful TensorSliceReader constructor: Failed to find any matching "
                "files for %s" % filename)
        for file in files:
            if os.path.isdir(file):
                raise errors.DataLossError(None, None, "Unable to open table file %s: FAILED_PRECONDITION: %s; Is a directory: perhaps your file is in "
                                           "a different file format and you need to use a different restore operator?" % (file, file))
            table = _Table(file)
            for key, value in table.rows():
                if key == b"":
                    meta = message_class("SavedTensorSlices").FromString(value).meta
                    for tensor in meta.tensor:
                        dims = [dim.size for dim in tensor.shape.dim]
                        self._entries[tensor.name] = (dtypes.as_dtype(tensor.type).base_dtype, dims)
                break
            table.close()

    def has_tensor(self, tensor_str):
        """Tells whether there is a tensor of that name."""
        return tensor_str in self._entries

    def get_variable_to_shape_map(self):
        """Returns {name: shape as a list}."""
        return {name: list(dims) for name, (_, dims) in self._entries.items()}

    def get_variable_to_dtype_map(self):
        """Returns {name: DType}."""
        return {name: dtype for name, (dtype, _) in self._entries.items()}

    def get_tensor(self, tensor_str):
        """Returns the value of a tensor as an array."""
        from runnel import raw_ops
        from runnel.core import framework, session
        if tensor_str not in self._entries:
            raise errors.NotFoundError(None, None, "Key %s not found in checkpoint" % tensor_str)
        graph = framework.Graph()
        with graph.as_default():
            value = raw_ops.RestoreV2(prefix=self._prefix, tensor_names=[tensor_str],
                                      shape_and_slices=[""], dtypes=[self._entries[tensor_str][0]])
        with session.Session(graph=graph) as sess:
            return sess.run(value[0])

    def debug_string(self):
        """Returns one line per tensor, as bytes."""
        from runnel.core.protobuf import _enum_values
        types = {number: name for name, number in _enum_values("DataType").items()}
        lines = ["%s (%s) [%s]" % (name, types[dtype.as_datatype_enum], ",".join(str(dim) for dim in dims))
                 for name, (dtype, dims) in sorted(self._entries.items())]
        return "\n".join(lines).encode()


def NewCheckpointReader(filepattern):  # noqa: N802
    """Returns a reader of a checkpoint."""
    return CheckpointReader(filepattern)


def _path(ckpt_dir_or_file):
    ckpt_dir_or_file = os.fspath(ckpt_dir_or_file)
    if os.path.isdir(ckpt_dir_or_file):
        from runnel.train.checkpoint_management import latest_checkpoint
        return latest_checkpoint(ckpt_dir_or_file)
    return ckpt_dir_or_file


def load_checkpoint(ckpt_dir_or_file):
    """Returns a reader of a checkpoint, or of the newest one of a folder."""
    path = _path(ckpt_dir_or_file)
    if path is None:
        raise ValueError("Couldn't find 'checkpoint' file or checkpoints in given directory %s" % (
            ckpt_dir_or_file,))
    return CheckpointReader(path)


def load_variable(ckpt_dir_or_file, name):
    """Returns the value of a tensor of a checkpoint."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name[:-2] if name.endswith(":0") else name)


def list_variables(ckpt_dir_or_file):
    """Returns the sorted [(name, shape)] of a checkpoint."""
    shapes = load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map()
    return [(name, shapes[name]) for name in sorted(shapes)]


def checkpoints_iterator(checkpoint_dir, min_interval_secs=0, timeout=None, timeout_fn=None):
    """Yields the new checkpoints of a folder as they appear."""
    import time
    path = None
    while True:
        path = wait_for_new_checkpoint(checkpoint_dir, path, timeout=timeout)
        if path is None:
            if not timeout_fn or timeout_fn():
                return
            continue
        start = time.time()
        yield path
        time.sleep(max(0, start + min_interval_secs - time.time()))


def wait_for_new_checkpoint(checkpoint_dir, last_checkpoint=None, seconds_to_sleep=1, timeout=None):
    """Returns the newest checkpoint of a folder once it differs from `last_checkpoint`; None after the timeout."""
    import time

    from runnel.train.checkpoint_management import latest_checkpoint
    stop = None if timeout is None else time.time() + timeout
    while True:
        path = latest_checkpoint(checkpoint_dir)
        if path is not None and path != last_checkpoint:
            return path
        if stop is not None and time.time() + seconds_to_sleep > stop:
            return None
        time.sleep(seconds_to_sleep)


def init_from_checkpoint(ckpt_dir_or_file, assignment_map):
    """Makes variables start with the values of a checkpoint.

    `assignment_map` is {name or scope in the checkpoint: name, scope (with its last "/") or variable in the graph}.
    """
    from runnel import raw_ops
    from runnel.core import framework
    path = _path(ckpt_dir_or_file)
    reader = load_checkpoint(ckpt_dir_or_file)
    shapes = reader.get_variable_to_shape_map()
    rows = assignment_map.items() if isinstance(assignment_map, dict) else assignment_map
    for source, target in rows:
        for name, parts in _pairs(source, target, shapes):
            for part in parts:
                info = part._get_save_slice_info()
                full = list(info.full_shape) if info else part.shape.as_list()
                if full != shapes[name]:
                    raise ValueError("Shape of variable %s (%s) doesn't match with shape of tensor %s "
                                     "(%s) from checkpoint reader." % (part.name, full, name,
                                                                       shapes[name]))
                with framework.init_scope(), framework.device(part.device), framework.device("/cpu:0"):
                    value = raw_ops.RestoreV2(
                        prefix=path, tensor_names=[name], shape_and_slices=[info.spec if info else ""],
                        dtypes=[part.dtype.base_dtype], name="checkpoint_initializer")[0]
                    value.set_shape(part.shape)
                    part._initializer_op = (
                        raw_ops.AssignVariableOp(resource=part.handle, value=value)
                        if hasattr(part, "handle") else
                        raw_ops.Assign(ref=part._ref(), value=value).op)
                    part._initial_value = value


def _pairs(source, target, shapes):
    """Returns [(name in the checkpoint, variables)] of one entry of an assignment map."""
    from runnel.ops import variables
    from runnel.ops.partitioned_variables import PartitionedVariable
    from runnel.ops.variable_scopes import _store
    own, divided = _store()._vars, _store()._partitioned_vars
    if isinstance(target, variables.Variable):
        return [(_existing(source, shapes), [target])]
    if isinstance(target, (PartitionedVariable, list, tuple)):
        return [(_existing(source, shapes), list(target))]
    if not target.endswith("/") and target in own or target in divided:
        parts = list(divided[target]) if target in divided else [own[target]]
        return [(_existing(source, shapes), parts)]
    if "/" in source and not source.endswith("/"):
        raise ValueError("Assignment map with scope only name %s should map to scope only %s. Should be "
                         "'scope/': 'other_scope/'." % (target, source))
    prefix = target if not target or target.endswith("/") else target + "/"
    out, before = [], "" if source == "/" else source
    for name in list(own) + list(divided):
        if name.startswith(prefix) and "/part_" not in name[len(prefix):]:
            found = before + name[len(prefix):]
            if found not in shapes:
                raise ValueError("Tensor %s (%s in %s) is not found in checkpoint" % (
                    found, name, target))
            out.append((found, list(divided[name]) if name in divided else [own[name]]))
    return out


def _existing(name, shapes):
    if name not in shapes:
        raise ValueError("Tensor %s is not found in checkpoint %s" % (name, sorted(shapes)))
    return name
