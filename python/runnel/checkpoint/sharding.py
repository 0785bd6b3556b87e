"""How the tensors of a checkpoint are divided among files."""

import abc
import collections.abc
import dataclasses
import inspect
import math
from typing import Any

from runnel import dtypes
from runnel.core import framework
from runnel.core.device_spec import DeviceSpec
from runnel.core.trackable import OBJECT_GRAPH_PROTO_KEY
from runnel.ops.variables import SaveSliceInfo

Shard = dict  # {key: {slice: tensor}}


@dataclasses.dataclass(frozen=True)
class ShardableTensor:
    """A tensor with what a ShardingCallback may want to know of it."""

    _tensor_save_spec: Any
    tensor: Any
    dtype: Any
    device: Any
    name: Any
    shape: Any
    slice_spec: Any
    checkpoint_key: Any
    trackable: Any

    def __hash__(self):
        return hash((self.name, self.dtype, str(self.device), self.checkpoint_key))

    def __repr__(self):
        return "\n%s:\n%s" % (type(self).__name__, "\n".join("  %s=%r" % (field.name, getattr(self, field.name))
                                                             for field in dataclasses.fields(self)))


class ShardingCallback(abc.ABC):
    """The base of functions that divide tensors among files: from ShardableTensors of a task to [{key: {slice: tensor}}], one per file."""

    @property
    @abc.abstractmethod
    def description(self):
        """What the function does, for messages."""

    @abc.abstractmethod
    def __call__(self, shardable_tensors):
        """Divides tensors."""

    def __hash__(self):
        out = hash(self.description)
        for name, value in vars(self).items():
            if not (inspect.ismethod(value) or inspect.isfunction(value)):
                out ^= hash(name)
                if isinstance(value, collections.abc.Hashable):
                    out ^= hash(value)
        return out


def _task(device):
    return DeviceSpec.from_string(device or "").task


def validate_shards(shards, shardable_tensors, callback_description):
    """Raises an error unless the files have the same tensors as the list, each once, and each file has tensors of one task."""
    def fail(what, *rows):
        lines = ["callback_description: %s" % callback_description, *rows]
        raise RuntimeError("After executing the checkpoint sharding callback, %s:\n%s\n" % (what, "\n".join("  " + line for line in lines)))
    missing: dict = {}
    for row in shardable_tensors:
        missing.setdefault(row.checkpoint_key, {})[row.slice_spec] = row.tensor
    seen = set()
    for shard in shards:
        first = None
        for key, part, tensor in ((key, part.strip(), tensor) for key, parts in shard.items() for part, tensor in parts.items()):
            where = ["checkpoint_key: %s" % key, "slice_spec: %s" % part]
            if (key, part) in seen:
                fail("multiple tensors with the same checkpoint key and slice spec were found", *where)
            if key not in missing:
                fail("a tensor not originally in the object graph was found in the checkpoint shards", *where)
            wanted = missing[key][part]
            for what, old, new in (("shape", wanted.shape, tensor.shape), ("dtype", wanted.dtype, tensor.dtype),
                                   ("task", _task(wanted.device), _task(tensor.device))):
                if old != new:
                    fail("a tensor was found with an altered " + what, *where, "original tensor_%s: %s" % (what, old),
                         "new tensor_%s: %s" % (what, new))
            task = _task(tensor.device)
            if first is None:
                first = key, part, task
            elif None not in (first[2], task) and first[2] != task:
                rows = ["  tensor #%d:    checkpoint_key: %s\n    slice_spec: %s\n    task: %s" % (i + 1, *row)
                        for i, row in enumerate((first, (key, part, task)))]
                raise RuntimeError("After executing the checkpoint sharding callback, tensors with different tasks were found in the same "
                                   "shard:\n  callback_description: %s\n%s\n" % (callback_description, "\n".join(rows)))
            del missing[key][part]
            if not missing[key]:
                del missing[key]
            seen.add((key, part))
    if missing:
        rows = ["  tensor:\n    checkpoint_key: %s\n    slice_spec: %s\n" % row for row in missing.items()]
        raise RuntimeError("After executing the checkpoint sharding callback, tensors in the object graph were not found in the checkpoint "
                           "shards:\n  callback_description: %s\n%s" % (callback_description, "".join(rows)))


class ShardByTaskPolicy(ShardingCallback):
    """One file per task."""

    @property
    def description(self):
        return "Split tensors into shards based on their device spec task."

    def __call__(self, shardable_tensors):
        shard: dict = {}
        for row in shardable_tensors:
            shard.setdefault(row.checkpoint_key, {})[row.slice_spec] = row.tensor
        return [shard]


class MaxShardSizePolicy(ShardingCallback):
    """Files of at most `max_shard_size` bytes. A tensor that does not fit is divided along its dimensions; an element never is."""

    def __init__(self, max_shard_size):
        self.max_shard_size = max_shard_size

    @property
    def description(self):
        return "Split tensors into shards with a max shard size."

    def __call__(self, shardable_tensors):
        return _Packing(self.max_shard_size).shards_of(shardable_tensors)


class _Packing:
    """Fills files one after another."""

    def __init__(self, most):
        self._most = self._left = most
        self._shards, self._oversized = [{}], []

    def shards_of(self, rows):
        for row in rows:
            self._add(row)
        return (self._shards if self._shards[0] else []) + self._oversized

    def _next_shard(self):
        self._shards.append({})
        self._left = self._most

    def _put(self, key, part, tensor, size):
        self._shards[-1].setdefault(key, {})[part] = tensor
        self._left -= size

    def _too_large(self, key, part, tensor, what, size):
        from runnel import logging
        logging.warning("Tensor %s%s %s bytes and cannot be partitioned into a shard of max shard size %s bytes. It will be added as an "
                        "individual shard that exceeds the max shard size.", key, what, size, self._most)
        self._oversized.append({key: {part: tensor}})

    def _add(self, row):
        key, tensor, part = row.checkpoint_key, row.tensor, row.slice_spec
        if part:
            info = SaveSliceInfo.from_spec(part)
            full, shape, origin = list(info.full_shape), list(info.var_shape), list(info.var_offset)
        else:
            full = shape = None if row.shape.rank is None else row.shape.as_list()
            origin = [0] * len(shape or ())
        item, tensor = _bytes_per_element(row, tensor)
        total = sum(item) if isinstance(item, list) else item * math.prod(shape or ())
        item = max(item, default=0) if isinstance(item, list) else item
        if not shape:
            if total > self._most:
                self._too_large(key, part, tensor, " is a %s scalar of size" % row.dtype, total)
            else:
                if total > self._left:
                    self._next_shard()
                self._put(key, part, tensor, total)
            return
        self._divide(key, row.device, tensor, full, shape, origin, item, total)

    def _divide(self, key, device, tensor, full, shape, origin, item, rest_size):
        from runnel.ops import array_ops
        offset = [0] * len(shape)

        def spec(size):
            return SaveSliceInfo(key, full, [a + b for a, b in zip(origin, offset)], size).spec.strip()

        def cut(size):
            with framework.device(device if isinstance(device, str) else device.to_string()):
                return array_ops.slice(tensor, begin=list(offset), size=size)
        rest = list(shape)
        while rest_size > self._left:
            axis, length = self._next_part(rest, item)
            if length == 0:
                self._next_shard()
                continue
            size = list(rest)
            size[axis] = length
            part_size = math.prod(size) * item
            if part_size > self._most:
                self._too_large(key, spec(size), cut(size), "'s minimum slice %s has size" % spec(size), part_size)
            else:
                self._put(key, spec(size), cut(size), part_size)
                if self._left == 0:
                    self._next_shard()
            offset[axis] += length
            rest = [a - b for a, b in zip(shape, offset)]
            rest_size = math.prod(rest) * item
        if math.prod(rest) > 0:
            self._put(key, spec(rest), cut(rest), rest_size)

    def _next_part(self, rest, item):
        """Returns (the dimension along which to cut, the length of the piece); length 0 if nothing fits into this file."""
        count = math.prod(rest)

        def parts(axis):
            fit = self._left // (count // rest[axis] * item)
            return math.ceil(rest[axis] / fit) if fit else math.inf
        best, fewest = 0, parts(0)
        for axis in range(1, len(rest)):
            found = parts(axis)
            if found < fewest and count * item / found <= self._left:
                best, fewest = axis, int(found)
        if fewest == math.inf:
            # Not one slice fits: go on in a new file, or, if it is empty, cut off the smallest slice there is.
            if self._left < self._most:
                return best, 0
            return best, 1
        return best, math.ceil(rest[best] / fewest)


def _bytes_per_element(row, tensor):
    """Returns (the bytes of an element, or a list with those of each string; the tensor)."""
    from runnel.core.session import get_default_session
    dtype = dtypes.as_dtype(row.dtype)
    if row.checkpoint_key == OBJECT_GRAPH_PROTO_KEY or dtype == dtypes.variant:
        return 0, tensor
    if dtype != dtypes.string:
        return dtype.size, tensor
    if framework.executing_eagerly():
        values = tensor.numpy()
    elif get_default_session() is None:
        from runnel import logging
        logging.warning("The checkpoint sharding policy is being executed in a tf.function. The size of the string/variant constant cannot be "
                        "obtained.")
        return 0, tensor
    else:
        values = get_default_session().run(tensor)
    rows = values.reshape(-1).tolist() if hasattr(values, "reshape") else [values]
    return [len(x) if isinstance(x, bytes) else len(str(x).encode()) for x in rows], tensor


