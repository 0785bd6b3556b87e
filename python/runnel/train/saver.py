"""Savers: variables to checkpoints and back."""

import math
import os
import time

from runnel import _core, errors, raw_ops
from runnel.checkpoint.saveable import ReferenceVariableSaveable, ResourceVariableSaveable, SaveableObject, SaveSpec
from runnel.checkpoint.saveables import op_list_to_dict, set_cpu0, validate_and_slice_inputs
from runnel.core import convert, framework
from runnel.core.device_spec import canonical_name
from runnel.core.framework import GraphKeys
from runnel.io import any_files
from runnel.ops import variables
from runnel.train import checkpoint_management


class BaseSaverBuilder:
    """Builds the nodes that save and restore."""

    SaveSpec = SaveSpec
    SaveableObject = SaveableObject
    VariableSaveable = ReferenceVariableSaveable
    ResourceVariableSaveable = ResourceVariableSaveable
    _bulk = False

    def __init__(self, write_version=2):
        self._write_version = write_version

    def save_op(self, filename_tensor, saveables):
        """Returns the node that writes all saveables."""
        specs = [spec for saveable in saveables for spec in saveable.specs]
        names = [spec.name for spec in specs]
        slices = [spec.slice_spec for spec in specs]
        tensors = [spec.tensor for spec in specs]
        if self._write_version == 1:
            if any(slices):
                return raw_ops.SaveSlices(filename=filename_tensor, tensor_names=names,
                                          shapes_and_slices=slices, data=tensors, name="save")
            return raw_ops.Save(filename=filename_tensor, tensor_names=names, data=tensors,
                                name="save")
        return raw_ops.SaveV2(prefix=filename_tensor, tensor_names=names, shape_and_slices=slices,
                              tensors=tensors)

    def restore_op(self, filename_tensor, saveable, preferred_shard):
        """Returns the tensors of one saveable, read from the file."""
        return [self._read(filename_tensor, [spec])[0] for spec in saveable.specs]

    def bulk_restore(self, filename_tensor, saveables, preferred_shard, restore_sequentially):
        """Returns the tensors of all saveables, read from the file."""
        if self._bulk:
            with framework.device("cpu:0"):
                return self._read(filename_tensor,
                                  [spec for saveable in saveables for spec in saveable.specs])
        out = []
        for saveable in saveables:
            with framework.device(set_cpu0(saveable.device) if saveable.device else None):
                out += self.restore_op(filename_tensor, saveable, preferred_shard)
        return out

    def _read(self, filename_tensor, specs):
        return raw_ops.RestoreV2(
            prefix=filename_tensor, tensor_names=[spec.name for spec in specs],
            shape_and_slices=[spec.slice_spec for spec in specs],
            dtypes=[spec.dtype.base_dtype for spec in specs])

    def _add_save(self, filename_tensor, saveables):
        from runnel.ops.control_flow import with_dependencies
        save = self.save_op(filename_tensor, saveables)
        return with_dependencies([save] if save is not None else [], filename_tensor)

    def _add_sharded_save(self, prefix, per_device):
        if self._write_version == 1:
            return self._add_sharded_save_v1(prefix, per_device)
        with framework.device("CPU"):
            is_s3 = raw_ops.StaticRegexFullMatch(input=prefix, pattern="^s3://.*")
            suffix = raw_ops.Select(condition=is_s3, x=convert.constant(".part"),
                                    y=convert.constant("_temp/part"))
            temporary = raw_ops.StringJoin(inputs=[prefix, suffix])
        count = convert.constant(len(per_device), name="num_shards")
        saves, prefixes, last = [], [], None
        for shard, (device, saveables) in enumerate(per_device):
            last = set_cpu0(device)
            with framework.device(last):
                name = raw_ops.ShardedFilename(basename=temporary, shard=shard, num_shards=count)
                prefixes.append(name)
                saves.append(self._add_save(name, saveables))
        with framework.control_dependencies([save.op for save in saves]), framework.device(last):
            merge = raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=prefix,
                                               delete_old_dirs=True)
            with framework.control_dependencies([merge]):
                return raw_ops.Identity(input=prefix)

    def _add_sharded_save_v1(self, filename_tensor, per_device):
        count = convert.constant(len(per_device), name="num_shards")
        saves = []
        for shard, (device, saveables) in enumerate(per_device):
            with framework.device(device):
                name = raw_ops.ShardedFilename(basename=filename_tensor, shard=shard, num_shards=count)
                saves.append(self._add_save(name, saveables))
        with framework.control_dependencies([save.op for save in saves]):
            return raw_ops.ShardedFilespec(basename=filename_tensor, num_shards=count)

    def _add_restore(self, filename_tensor, saveables, restore_sequentially, reshape,
                     preferred_shard=-1, name="restore_all"):
        from runnel.ops.control_flow import group
        tensors = self.bulk_restore(filename_tensor, saveables, preferred_shard, restore_sequentially)
        assigns, at = [], 0
        for saveable in saveables:
            shapes = None
            if reshape:
                shapes = [_shape_of(spec.tensor) for spec in saveable.specs]
            own = tensors[at:at + len(saveable.specs)]
            at += len(saveable.specs)
            after = assigns[-1:] if restore_sequentially else []
            with framework.control_dependencies([op for op in after if op is not None]):
                assigns.append(saveable.restore(own, shapes))
        return group(*[op for op in assigns if op is not None], name=name)

    def _group_by_devices(self, saveables):
        out = {}
        for saveable in saveables:
            devices = {canonical_name(spec.device) for spec in saveable.specs}
            if len(devices) != 1:
                raise ValueError("All tensors of a saveable object must be on the same device: %s" % (
                    saveable.name,))
            out.setdefault(devices.pop(), []).append(saveable)
        return sorted(out.items())

    def build(self, names_to_saveables, reshape=False, sharded=False, max_to_keep=5,
              keep_checkpoint_every_n_hours=10000.0, name=None, restore_sequentially=False,
              filename="model"):
        """Adds the nodes. Returns the SaverDef that describes them."""
        from runnel.core.protobuf import message_class
        from runnel.ops.control_flow import group
        if not isinstance(names_to_saveables, dict):
            names_to_saveables = op_list_to_dict(names_to_saveables)
        saveables = validate_and_slice_inputs(names_to_saveables)
        with framework.name_scope(name, "save", [saveable.op for saveable in saveables]):
            filename_tensor = raw_ops.PlaceholderWithDefault(
                input=convert.convert_to_tensor(filename or "model", name="filename/input"), shape=(),
                name="filename")
            filename_tensor = raw_ops.PlaceholderWithDefault(input=filename_tensor, shape=(),
                                                             name="Const")
            if sharded:
                per_device = self._group_by_devices(saveables)
                save = self._add_sharded_save(filename_tensor, per_device)
                parts = []
                for shard, (device, own) in enumerate(per_device):
                    with framework.device(device):
                        parts.append(self._add_restore(filename_tensor, own, restore_sequentially,
                                                       reshape, shard, "restore_shard"))
                restore = group(*parts, name="restore_all")
            else:
                save = self._add_save(filename_tensor, saveables)
                restore = self._add_restore(filename_tensor, saveables, restore_sequentially, reshape)
        return message_class("SaverDef")(
            filename_tensor_name=filename_tensor.name, save_tensor_name=save.name,
            restore_op_name=restore.name, max_to_keep=max_to_keep or 0, sharded=sharded,
            keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours, version=self._write_version)

    def run(self, var_list, path, restore):
        """Saves or restores at once, in eager execution."""
        if not isinstance(var_list, dict):
            var_list = op_list_to_dict(var_list)
        saveables = validate_and_slice_inputs(var_list)
        if restore:
            self._add_restore(convert.constant(path), saveables, False, False)
        else:
            self.save_op(convert.constant(path), saveables)


def _shape_of(tensor):
    shape = tensor.get_shape()
    return shape if shape.is_fully_defined() else raw_ops.Shape(input=tensor)


class BulkSaverBuilder(BaseSaverBuilder):
    """Reads all tensors by one node."""

    _bulk = True


def _get_saver_or_default():
    savers = framework.get_collection(GraphKeys.SAVERS)
    if len(savers) > 1:
        raise RuntimeError("More than one item in collection %s. Please indicate which one to use by "
                           "passing it to the constructor." % GraphKeys.SAVERS)
    if savers:
        return savers[0]
    saver = Saver(sharded=True, allow_empty=True)
    framework.add_to_collection(GraphKeys.SAVERS, saver)
    return saver


class Saver:
    """Saves variables to checkpoints and restores them.

        saver = tf.train.Saver()
        path = saver.save(sess, "run/model", global_step=step)
        saver.restore(sess, tf.train.latest_checkpoint("run"))

    Args:
      var_list: the variables as a list, or a dict by their names in checkpoints; by default all global variables and
        saveable objects.
      reshape: tensors of checkpoints may have other shapes of the same size.
      sharded: each device writes a file of its own.
      max_to_keep: how many checkpoints to keep; 0 or None for all.
      keep_checkpoint_every_n_hours: keeps one checkpoint per this many hours for good.
      name: name of the scope of the nodes.
      restore_sequentially: restores one variable after the other.
      saver_def: describes nodes that exist already.
      builder: builds the nodes.
      defer_build: leaves the nodes to `build()`.
      allow_empty: accepts a graph without variables.
      write_version: SaverDef.V1 or V2.
      pad_step_number: writes the step with eight digits.
      save_relative_paths: the file "checkpoint" has paths relative to its folder.
      filename: the path to use if none is fed.
    """

    def __init__(self, var_list=None, reshape=False, sharded=False, max_to_keep=5,
                 keep_checkpoint_every_n_hours=10000.0, name=None, restore_sequentially=False,
                 saver_def=None, builder=None, defer_build=False, allow_empty=False, write_version=2,
                 pad_step_number=False, save_relative_paths=False, filename=None):
        if defer_build and var_list:
            raise ValueError("If `var_list` is provided then build cannot be deferred. Either set "
                             "defer_build=False or var_list=None.")
        self._is_eager = _core.current() is None
        if self._is_eager and var_list is None:
            raise RuntimeError("When eager execution is enabled, `var_list` must specify a list or "
                               "dict of variables to save")
        self._var_list = var_list
        self._reshape = reshape
        self._sharded = sharded
        self._max_to_keep = max_to_keep
        self._keep_checkpoint_every_n_hours = keep_checkpoint_every_n_hours
        self._name = name
        self._restore_sequentially = restore_sequentially
        self.saver_def = saver_def
        self._builder = builder
        self._is_built = False
        self._allow_empty = allow_empty
        self._is_empty = None
        self._write_version = write_version
        self._pad_step_number = pad_step_number
        self._filename = filename
        self._save_relative_paths = save_relative_paths
        self._last_checkpoints = []  # (path, time), the oldest first
        self._checkpoints_to_be_deleted = []
        self._next_checkpoint_time = time.time() + keep_checkpoint_every_n_hours * 3600
        if not defer_build and not self._is_eager:
            self.build()
        if self.saver_def:
            self._check_saver_def()
            self._write_version = self.saver_def.version

    def build(self):
        """Builds the nodes, after `defer_build`."""
        if self._is_eager:
            raise RuntimeError("Use save/restore instead of build in eager mode.")
        if self._is_built:
            return
        self._is_built = True
        if self.saver_def:
            if self._name:
                for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
                    setattr(self.saver_def, field, framework.prepend_name_scope(
                        getattr(self.saver_def, field), self._name))
        else:
            if self._builder is None:
                self._builder = BulkSaverBuilder(self._write_version)
            if self._var_list is None:
                self._var_list = variables._all_saveable_objects()
            self._is_empty = not self._var_list
            if self._is_empty:
                if not self._allow_empty:
                    raise ValueError("No variables to save")
                return
            self.saver_def = self._builder.build(
                self._var_list, reshape=self._reshape, sharded=self._sharded,
                max_to_keep=self._max_to_keep,
                keep_checkpoint_every_n_hours=self._keep_checkpoint_every_n_hours, name=self._name,
                restore_sequentially=self._restore_sequentially, filename=self._filename)
        self._check_saver_def()
        self._next_checkpoint_time = (
            time.time() + self.saver_def.keep_checkpoint_every_n_hours * 3600)

    def _check_saver_def(self):
        from runnel.core.protobuf import message_class
        if not isinstance(self.saver_def, message_class("SaverDef")):
            raise ValueError("saver_def must be a saver_pb2.SaverDef: %s" % (self.saver_def,))
        for field in ("save_tensor_name", "restore_op_name"):
            if not getattr(self.saver_def, field):
                raise ValueError("saver_def must specify the %s: %s" % (field, self.saver_def))

    # Saving

    def save(self, sess, save_path, global_step=None, latest_filename=None, meta_graph_suffix="meta",
             write_meta_graph=True, write_state=True, strip_default_attrs=False,
             save_debug_info=False):
        """Writes a checkpoint.

        Args:
          sess: the session that has the variables.
          save_path: the path, without the step.
          global_step: a number, a tensor or a name: "-<step>" is added to the path.
          latest_filename: the list of checkpoints in the same folder; by default "checkpoint".
          meta_graph_suffix: suffix of the file with the graph.
          write_meta_graph: whether to write the graph.
          write_state: whether to write the list of checkpoints.
          strip_default_attrs: leaves attributes with default values out of the graph.

        Returns:
          The path of the checkpoint, for restore.
        """
        if not self._is_built and not self._is_eager:
            raise RuntimeError("`build()` should be called before save if defer_build==True")
        latest_filename = latest_filename or "checkpoint"
        if os.path.split(latest_filename)[0]:
            raise ValueError("'latest_filename' must not contain path components")
        save_path = os.fsdecode(save_path)
        checkpoint_file = save_path
        if global_step is not None:
            if not hasattr(global_step, "__index__"):
                from runnel.train import training_util
                global_step = training_util.global_step(sess, global_step)
            checkpoint_file += ("-%08d" if self._pad_step_number else "-%d") % global_step
        elif os.path.basename(save_path) == latest_filename and not self._sharded:
            raise ValueError("'latest_filename' collides with 'save_path': '%s' and '%s'" % (
                latest_filename, save_path))
        if not self._is_eager and not hasattr(sess, "run"):
            raise TypeError("'sess' must be a Session; %s" % (sess,))
        model_path = None
        if not self._is_empty:
            model_path = self._write(sess, checkpoint_file, save_path)
            if write_state:
                self._RecordLastCheckpoint(model_path)
                checkpoint_management.update_checkpoint_state_internal(
                    os.path.dirname(save_path), model_path, self.last_checkpoints, latest_filename,
                    self._save_relative_paths)
                self._MaybeDeleteOldCheckpoints(meta_graph_suffix)
        if write_meta_graph and not self._is_eager:
            with sess.graph.as_default():
                self.export_meta_graph(
                    checkpoint_management.meta_graph_filename(checkpoint_file, meta_graph_suffix),
                    strip_default_attrs=strip_default_attrs)
        return model_path

    def _write(self, sess, checkpoint_file, save_path):
        # The library would create the folder, and so hide a mistyped path. A remote server may write to
        # a folder that does not exist on this machine, so its paths are not checked.
        if not getattr(sess, "sess_str", "") and "://" not in save_path and not os.path.isdir(
                os.path.dirname(save_path) or "."):
            raise ValueError("Parent directory of %s doesn't exist, can't save." % save_path)
        if self._is_eager:
            BulkSaverBuilder(self._write_version).run(self._var_list, checkpoint_file, False)
            return checkpoint_file
        path = sess.run(self.saver_def.save_tensor_name,
                        {self.saver_def.filename_tensor_name: checkpoint_file})
        return path.decode() if isinstance(path, bytes) else str(path)

    def _RecordLastCheckpoint(self, path):
        keep = self._max_to_keep if self._is_eager else self.saver_def.max_to_keep
        if not keep:
            return
        self._last_checkpoints = [row for row in self._last_checkpoints if row[0] != path]
        self._last_checkpoints.append((path, time.time()))
        if len(self._last_checkpoints) > keep:
            self._checkpoints_to_be_deleted.append(self._last_checkpoints.pop(0))

    def _MaybeDeleteOldCheckpoints(self, meta_graph_suffix="meta"):
        if not self._checkpoints_to_be_deleted:
            return
        path, made = self._checkpoints_to_be_deleted.pop(0)
        if made > self._next_checkpoint_time:
            hours = (self._keep_checkpoint_every_n_hours if self._is_eager
                     else self.saver_def.keep_checkpoint_every_n_hours)
            self._next_checkpoint_time += hours * 3600
            return
        try:
            checkpoint_management.remove_checkpoint(path, self._write_version, meta_graph_suffix)
        except OSError as error:
            import logging
            logging.getLogger("tensorflow").warning("Ignoring: %s", error)

    @property
    def last_checkpoints(self):
        """The paths of the checkpoints that are kept, the oldest first."""
        return [path for path, _ in self._last_checkpoints]

    def set_last_checkpoints(self, last_checkpoints):
        self._last_checkpoints = [(path, math.inf) for path in last_checkpoints]

    def set_last_checkpoints_with_time(self, last_checkpoints_with_time):
        """Continues with the checkpoints of an earlier process: [(path, time)]."""
        self._last_checkpoints = list(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths):
        """Continues with the checkpoints of an earlier process, with the times of their files."""
        rows = []
        for path in checkpoint_paths:
            times = checkpoint_management.get_checkpoint_mtimes([path])
            if times:
                rows.append((path, times[0]))
        self.set_last_checkpoints_with_time(rows)

    # Restoring

    def restore(self, sess, save_path):
        """Restores the variables from a checkpoint."""
        if self._is_empty:
            return
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        save_path = os.fsdecode(save_path)
        if not checkpoint_management.checkpoint_exists(save_path):
            raise ValueError("The passed save_path is not a valid checkpoint: " + save_path)
        import logging
        logging.getLogger("tensorflow").info("Restoring parameters from %s", save_path)
        try:
            self._check_shapes(save_path)
            if self._is_eager:
                BulkSaverBuilder(self._write_version).run(self._var_list, save_path, True)
            else:
                sess.run(self.saver_def.restore_op_name,
                         {self.saver_def.filename_tensor_name: save_path})
        except errors.NotFoundError as error:
            raise _explained(error, "a Variable name or other graph key that is missing") from None
        except errors.InvalidArgumentError as error:
            raise _explained(error, "a mismatch between the current graph and the graph") from None

    def _check_shapes(self, save_path):
        """Raises an error that names the variable whose shape differs from the checkpoint's.

        The restore nodes would not name it, and a resource variable would accept any shape.
        """
        from runnel.train.checkpoint_reader import NewCheckpointReader
        if self._reshape or not self._var_list or not any_files.exists(save_path + ".index"):
            return
        names = self._var_list if isinstance(self._var_list, dict) else {
            v._shared_name: v for v in self._var_list if isinstance(v, variables.Variable)}
        names = {name: v for name, v in names.items()
                 if isinstance(v, variables.Variable) and not v._save_slice_info and v.shape.is_fully_defined()}
        try:
            found = NewCheckpointReader(save_path).get_variable_to_shape_map() if names else {}
        except errors.OpError:
            return  # the restore itself reports the error better
        for name, variable in names.items():
            if name in found and variable.shape.as_list() != found[name]:
                raise errors.InvalidArgumentError(
                    None, None, "Assign requires shapes of both tensors to match. lhs shape= [%s] rhs shape= [%s]: the variable %s, and its value "
                    "in the checkpoint %s" % (",".join(map(str, variable.shape.as_list())), ",".join(map(str, found[name])), name, save_path))

    # The graph

    def as_saver_def(self):
        """Returns the SaverDef."""
        return self.saver_def

    def to_proto(self, export_scope=None):
        """Returns the SaverDef without the scope, or None if the saver is outside it."""
        if export_scope is None:
            return self.saver_def
        fields = ("filename_tensor_name", "save_tensor_name", "restore_op_name")
        if not all(getattr(self.saver_def, f).startswith(export_scope) for f in fields):
            return None
        out = type(self.saver_def)()
        out.CopyFrom(self.saver_def)
        for field in fields:
            setattr(out, field, framework.strip_name_scope(getattr(out, field), export_scope))
        return out

    @staticmethod
    def from_proto(saver_def, import_scope=None):
        """Returns a saver of nodes that exist already."""
        return Saver(saver_def=saver_def, name=import_scope)

    def export_meta_graph(self, filename=None, collection_list=None, as_text=False, export_scope=None,
                          clear_devices=False, clear_extraneous_savers=False,
                          strip_default_attrs=False, save_debug_info=False):
        """Returns the MetaGraphDef of the default graph with this saver, and writes it if a file name is given."""
        return export_meta_graph(
            filename=filename, saver_def=self.saver_def, collection_list=collection_list,
            as_text=as_text, export_scope=export_scope, clear_devices=clear_devices,
            clear_extraneous_savers=clear_extraneous_savers, strip_default_attrs=strip_default_attrs)


def _explained(error, cause):
    return type(error)(
        error._node_def, error.op,
        "Restoring from checkpoint failed. This is most likely due to %s from the checkpoint. Please "
        "ensure that you have not altered the graph expected based on the checkpoint. Original error:"
        "\n\n%s" % (cause, error.message))


def export_meta_graph(filename=None, meta_info_def=None, graph_def=None, saver_def=None,
                      collection_list=None, as_text=False, graph=None, export_scope=None,
                      clear_devices=False, clear_extraneous_savers=False, strip_default_attrs=False,
                      save_debug_info=False, **kwargs):
    """Returns the MetaGraphDef of a graph (nodes, collections, saver), and writes it if a file name is given."""
    from runnel.core import meta_graph
    return meta_graph.export_scoped_meta_graph(
        filename=filename, meta_info_def=meta_info_def, graph_def=graph_def, saver_def=saver_def,
        collection_list=collection_list, as_text=as_text, graph=graph, export_scope=export_scope,
        clear_devices=clear_devices, clear_extraneous_savers=clear_extraneous_savers,
        strip_default_attrs=strip_default_attrs, **kwargs)[0]


def import_meta_graph(meta_graph_or_file, clear_devices=False, import_scope=None, **kwargs):
    """Adds the graph of a MetaGraphDef or of a file to the default graph.

    Returns:
      The saver that was written with it, or one for all variables; None if there are no variables.
    """
    from runnel.core import meta_graph
    if _core.current() is None:
        raise RuntimeError("Exporting/importing meta graphs is not supported when eager execution is "
                           "enabled. No graph exists when eager execution is enabled.")
    if not hasattr(meta_graph_or_file, "graph_def"):
        meta_graph_or_file = meta_graph.read_meta_graph_file(meta_graph_or_file)
    made = meta_graph.import_scoped_meta_graph(meta_graph_or_file, clear_devices=clear_devices,
                                               import_scope=import_scope, **kwargs)
    if meta_graph_or_file.HasField("saver_def"):
        scope = import_scope
        if made:
            # The scope has another name if `import_scope` was already taken.
            name = next(iter(made))
            whole = made[name].name
            scope = whole[:-len(name) - 1] if whole != name else ""
        return Saver(saver_def=meta_graph_or_file.saver_def, name=scope)
    if variables._all_saveable_objects(scope=import_scope):
        return Saver()
    return None

