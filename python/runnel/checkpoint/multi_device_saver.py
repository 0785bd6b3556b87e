"""MultiDeviceSaver: writes and reads the tensors of objects, one or more files per task, which are then merged into one checkpoint."""

import dataclasses
import time

from runnel import dtypes, nest, raw_ops
from runnel.checkpoint import keys, saveables, sharding
from runnel.checkpoint.saveable import SaveSpec
from runnel.core import convert, framework
from runnel.core.device_spec import DeviceSpec
from runnel.core.identity import ObjectIdentityDictionary
from runnel.core.protobuf import message_class
from runnel.saved_model import metrics, registration
from runnel.train.checkpoint_options import CheckpointOptions


def _restore_nothing(*args, **kwargs):
    return None


def sharded_filename(filename_tensor, shard, num_shards):
    """Returns the prefix of one of several files."""
    return raw_ops.ShardedFilename(basename=filename_tensor, shard=shard, num_shards=num_shards)


def registered_saver_filename(filename_tensor, saver_name):
    """Returns the prefix that a registered saver writes to."""
    return raw_ops.StringJoin(inputs=[filename_tensor, convert.constant("-%s" % saver_name)])


def _with_file(function, trackables, argument, call_with_mapped_captures):
    """Returns a function of the file name alone; in a model's graph, it is traced, with captures mapped."""
    def plain(file_prefix):
        return function(trackables=trackables, **{argument: file_prefix})
    if call_with_mapped_captures is None:
        return plain
    from runnel.eager.def_function import Function, TensorSpec
    concrete = Function(plain, autograph=False).get_concrete_function(TensorSpec((), dtypes.string))
    return lambda file_prefix: call_with_mapped_captures(concrete, [file_prefix])


class MultiDeviceSaver:
    """Saves and restores {object: {key: tensor, SaveSpec or {slice: either}}}. The object None is saved and not restored.

    `registered_savers` is {name: {path: object}}: their functions run before the tensors are saved, and after they are restored.
    """

    def __init__(self, serialized_tensors, registered_savers=None, call_with_mapped_captures=None):
        self._by_task = {}  # DeviceSpec of a task's processor -> ShardableTensors
        self._restore_fns, self._counts = {}, {}  # (key, slice) -> number of the function; number -> (function, how many tensors)
        for number, (obj, tensors) in enumerate(serialized_tensors.items()):
            rows = [(key, part, value) for key, parts in tensors.items()
                    for part, value in (parts if isinstance(parts, dict) else {"": parts}).items()]
            self._counts[number] = (_restore_nothing if obj is None else obj._restore_from_tensors, len(rows))
            for key, part, value in rows:
                self._add(number, obj, key, part, value)
        self._registered_savers = {
            name: (_with_file(registration.get_save_function(name), objects, "file_prefix", call_with_mapped_captures),
                   _with_file(registration.get_restore_function(name), objects, "merged_prefix", call_with_mapped_captures))
            for name, objects in (registered_savers or {}).items()}

    def _add(self, number, obj, key, part, value):
        part = part.strip()
        tensor, spec = None, value
        if not isinstance(value, SaveSpec):
            tensor = value
            spec = SaveSpec(value, part, key, dtype=value.dtype, device=value.device)
        if (key, part) in self._restore_fns:
            raise ValueError("Received multiple tensors with the same checkpoint key and slice spec. This is invalid because one will overwrite "
                             "the other in the checkpoint. This indicates a bug in the Checkpoint key-generation.")
        self._restore_fns[key, part] = number
        device = DeviceSpec.from_string(spec.device or "") if isinstance(spec.device, (str, type(None))) else spec.device
        task = saveables.set_cpu0(device.to_string())
        self._by_task.setdefault(task, []).append(sharding.ShardableTensor(
            _tensor_save_spec=spec, tensor=tensor, dtype=spec.dtype, device=device, name=spec.name, shape=None, slice_spec=part,
            checkpoint_key=key, trackable=obj))

    @classmethod
    def from_saveables(cls, saveables, registered_savers=None, call_with_mapped_captures=None):
        """Makes a saver of SaveableObjects."""
        from runnel.checkpoint.saveables import SaveableCompatibilityConverter
        tensors = ObjectIdentityDictionary()
        for saveable in saveables:
            owner = SaveableCompatibilityConverter(saveable, [saveable])
            tensors[owner] = owner._serialize_to_tensors()
        return cls(tensors, registered_savers, call_with_mapped_captures)

    @property
    def _num_unique_tasks(self):
        return len(self._by_task)

    def to_proto(self):
        """Adds the nodes that save and restore to the graph. Returns the SaverDef that describes them."""
        filename = raw_ops.Placeholder(dtype=dtypes.string, shape=(), name="saver_filename")
        with framework.control_dependencies([self.save(filename)]):
            saved = raw_ops.Identity(filename)
        with framework.control_dependencies([op for op in nest.flatten(list(self.restore(filename).values())) if op is not None]):
            restored = raw_ops.Identity(filename)
        return message_class("SaverDef")(filename_tensor_name=filename.name, save_tensor_name=saved.name, restore_op_name=restored.op.name,
                                         version=2)

    def _shards_by_task(self, callback):
        """Returns [(task, files)], as the callback divides the tensors."""
        callback = callback or sharding.ShardByTaskPolicy()
        metrics.SetShardingCallbackDescription(description=callback.description)
        found = {task: [row for row in map(_with_tensor, rows) if row is not None] for task, rows in self._by_task.items()}
        start = time.time()
        out = [(task, callback(rows)) for task, rows in found.items()]
        metrics.AddShardingCallbackDuration(callback_duration=max(1, round((time.time() - start) * 1e6)))
        return out

    def save(self, file_prefix, options=None):
        """Writes the checkpoint. Returns the operation, or None in eager execution."""
        options = options or CheckpointOptions()
        with framework.device("CPU"):
            prefix = convert.convert_to_tensor(file_prefix, dtype=dtypes.string)
            is_s3 = raw_ops.StaticRegexFullMatch(input=prefix, pattern="^s3://.*")
            suffix = raw_ops.SelectV2(condition=is_s3, t=convert.constant(".part"), e=convert.constant("_temp/part"))
            temporary = raw_ops.StringJoin(inputs=[prefix, suffix])
        prefixes = []
        for name, (save, _) in self._registered_savers.items():
            written = nest.flatten(save(registered_saver_filename(prefix, name)))
            written = [] if written == [None] else written
            if not all(isinstance(x, framework.Tensor) and x.dtype == dtypes.string for x in written):
                raise ValueError("Registered saver must return a (maybe empty) list of string type tensors. Got %s." % (written,))
            prefixes += written
        by_task = self._shards_by_task(options.experimental_sharding_callback)
        count = sum(len(shards) for _, shards in by_task)
        metrics.AddNumCheckpointShardsWritten(num_shards=count)
        count_tensor = convert.constant(count, name="num_shards")
        saves, number, last = [], 0, None
        for task, shards in by_task:
            last = task
            for shard in shards:
                with framework.device(task):
                    name = sharded_filename(temporary, number, count_tensor)
                number += 1
                prefixes.append(name)
                saves.append(_save_shard(name, shard, task, options))
        with framework.control_dependencies([op for op in saves if op is not None]), framework.device(options.experimental_io_device or last):
            return raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=prefix, delete_old_dirs=True)

    def restore(self, file_prefix, options=None):
        """Reads the checkpoint into the objects. Returns {name: operation}."""
        options = options or CheckpointOptions()
        found, done = {}, {}
        for task, rows in self._by_task.items():
            with framework.device(task):
                for row, tensor in zip(rows, _restore_shard(file_prefix, rows, options)):
                    number = self._restore_fns[row.checkpoint_key, row.slice_spec]
                    own = found.setdefault(number, [])
                    own.append((row, tensor))
                    function, wanted = self._counts[number]
                    if len(own) == wanted:
                        out = function(_by_local_name(own))
                        if isinstance(out, dict):
                            done.update(out)
        for _, restore in self._registered_savers.values():
            restore(file_prefix)
        return done


def _by_local_name(rows):
    out = {}
    for row, tensor in rows:
        name = keys.extract_local_name(row.checkpoint_key)
        if row.slice_spec:
            out.setdefault(name, {})[row.slice_spec] = tensor
        else:
            out[name] = tensor
    return out


def _with_tensor(row):
    """Returns a ShardableTensor with its tensor, or None if there is no value to save."""
    if row.tensor is not None:
        return dataclasses.replace(row, shape=row.tensor.shape)
    with framework.device(row.device.to_string() or None):
        tensor = row._tensor_save_spec.tensor
    return None if tensor is None else dataclasses.replace(row, tensor=tensor, shape=tensor.shape)


def _save_shard(prefix, shard, task, options):
    rows = [(key, part, tensor) for key, parts in shard.items() for part, tensor in parts.items() if tensor is not None]
    with framework.device(options.experimental_io_device or (rows and task) or "CPU:0"):
        return raw_ops.SaveV2(prefix=prefix, tensor_names=[row[0] for row in rows], shape_and_slices=[row[1] for row in rows],
                              tensors=[row[2] for row in rows])


def _restore_shard(prefix, rows, options):
    specs = [row._tensor_save_spec for row in rows]
    with framework.device(options.experimental_io_device or "cpu:0"):
        return raw_ops.RestoreV2(prefix=prefix, tensor_names=[spec.name for spec in specs], shape_and_slices=[spec.slice_spec for spec in specs],
                                 dtypes=[dtypes.as_dtype(spec.dtype).base_dtype for spec in specs])
