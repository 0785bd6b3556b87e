"""TrackableSaver: writes checkpoints of all objects below a root, and restores them."""

import os

from runnel import _core, dtypes, raw_ops
from runnel.checkpoint import object_graph, restoring, saveables, statuses
from runnel.checkpoint.multi_device_saver import MultiDeviceSaver
from runnel.core import convert, framework
from runnel.core.identity import ObjectIdentityWeakKeyDictionary
from runnel.core.protobuf import message_class
from runnel.core.trackable import OBJECT_GRAPH_PROTO_KEY, uid
from runnel.io import any_files
from runnel.train.checkpoint_options import CheckpointOptions


def inside_function():
    """Tells whether a tf.function is being traced."""
    from runnel.eager.effect_order import is_ordered
    return _core.current() is not None and (framework.get_default_graph()._building_function or is_ordered(framework.get_default_graph()))


def object_metadata(save_path):
    """Returns the TrackableObjectGraph of a checkpoint."""
    from runnel.train.checkpoint_reader import NewCheckpointReader
    return read_object_graph(NewCheckpointReader(save_path), save_path)


def read_object_graph(reader, save_path):
    """Returns the TrackableObjectGraph of a checkpoint that is open."""
    if not reader.has_tensor(OBJECT_GRAPH_PROTO_KEY):
        raise ValueError("The specified checkpoint \"%s\" does not appear to be object-based (saved with TF2) since it is missing the key \"%s\". "
                         "Likely it was created with the TF1 name-based saver and does not contain an object dependency graph." % (
                             save_path, OBJECT_GRAPH_PROTO_KEY))
    data = reader.get_tensor(OBJECT_GRAPH_PROTO_KEY)
    return message_class("TrackableObjectGraph").FromString(data if isinstance(data, bytes) else data.item())


class TrackableSaver:
    """Saves and restores the objects of an ObjectGraphView."""

    def __init__(self, graph_view):
        self._graph_view = graph_view
        self._cache = self._saveables_cache = None  # in graphs: tensors and saveables of objects, so that nodes are made once
        if not framework.executing_eagerly():
            self._cache, self._saveables_cache = ObjectIdentityWeakKeyDictionary(), ObjectIdentityWeakKeyDictionary()
        self._feeds = None           # in graphs: the tensors (object graph, file prefix)
        self._restore_prefix = None
        self._last_graph = self._save_operation = None
        self._restore_op_cache = {}
        self._object_map = None

    def _gather_serialized_tensors(self, object_graph_tensor=None):
        """Returns ({object: {key: tensor}}, feeds, registered savers, TrackableObjectGraph)."""
        tensors, feeds, registered, graph = object_graph.serialize_graph_view(self._graph_view, self._object_map, cache=self._cache)
        if self._saveables_cache is not None:
            self._saveables_cache = saveables.serialized_tensors_to_saveable_cache(tensors)
        data = graph.SerializeToString()
        if object_graph_tensor is None:
            with framework.device("/cpu:0"):
                object_graph_tensor = convert.constant(data, dtype=dtypes.string)
        else:
            feeds[object_graph_tensor] = data
        tensors.setdefault(None, {})[OBJECT_GRAPH_PROTO_KEY] = object_graph_tensor
        return tensors, feeds, registered, graph

    def save(self, file_prefix, checkpoint_number=None, session=None, options=None):
        """Writes a checkpoint. Returns its prefix."""
        options = options or CheckpointOptions()
        in_session = not framework.executing_eagerly() and not inside_function()
        if checkpoint_number:
            file_prefix = "%s-%d" % (file_prefix, checkpoint_number)
        feeds, graph_tensor = {}, None
        if in_session:
            if self._feeds is None:
                with framework.device("/cpu:0"):
                    self._feeds = convert.constant("", dtype=dtypes.string), convert.constant("", dtype=dtypes.string)
            graph_tensor, prefix = self._feeds
            feeds[prefix] = file_prefix
        else:
            with framework.device("/cpu:0"):
                prefix = convert.convert_to_tensor(file_prefix, dtype=dtypes.string)
        if not isinstance(file_prefix, framework.Tensor):
            any_files.makedirs(os.path.dirname(file_prefix) or ".")
        tensors, more, registered, graph = self._gather_serialized_tensors(graph_tensor)
        if not in_session or self._last_graph != graph:
            done = MultiDeviceSaver(tensors, registered).save(prefix, options=options)
            with framework.device("/cpu:0"), framework.control_dependencies([] if done is None else [done]):
                self._save_operation = raw_ops.Identity(prefix)
            self._last_graph = graph
        if not in_session:
            out, self._save_operation = self._save_operation, None
            return out
        session = statuses.get_session() if session is None else session
        if session is None:
            raise RuntimeError("Unable to save checkpoint to \"%s\" in graph mode without a default session. Please use `with tf.Session():` to "
                               "create a session." % file_prefix)
        return session.run(self._save_operation, feed_dict={**feeds, **(more or {})})

    def set_restore_path(self, save_path):
        """In a graph: makes the operations that restore read this checkpoint without a feed."""
        if not framework.executing_eagerly():
            with framework.device("/cpu:0"):
                self._restore_prefix = convert.constant(save_path)

    def restore(self, save_path, options=None):
        """Restores the objects. Returns a status; a path of None restores nothing."""
        from runnel.train.checkpoint_reader import NewCheckpointReader
        options = options or CheckpointOptions()
        if save_path is None:
            return statuses.InitializationOnlyStatus(self._graph_view, uid())
        reader = NewCheckpointReader(save_path)
        if not reader.has_tensor(OBJECT_GRAPH_PROTO_KEY):
            return self._restore_by_names(reader, save_path)
        graph = read_object_graph(reader, save_path)
        feeds = None
        with framework.device("/cpu:0"):
            if framework.executing_eagerly():
                prefix = convert.constant(save_path)
            else:
                if self._restore_prefix is None:
                    self._restore_prefix = convert.constant("model")
                prefix = self._restore_prefix
                feeds = {prefix: save_path}
        checkpoint = restoring.CheckpointRestoreCoordinator(
            graph, save_path, prefix, reader, self._restore_op_cache, self._graph_view, options, self._saveables_cache)
        restoring.CheckpointPosition(checkpoint, 0).restore(self._graph_view.root, reader)
        numbers = {child.local_name: child.node_id for child in graph.nodes[0].children}
        for name, obj in self._graph_view.attached_dependencies or ():
            if name != "root" and name in numbers and numbers[name] not in checkpoint.object_by_proto_id:
                restoring.CheckpointPosition(checkpoint, numbers[name]).restore(obj, reader)
        return statuses.CheckpointLoadStatus(checkpoint, feeds, self._graph_view, options)

    def _restore_by_names(self, reader, save_path):
        is_eager = framework.executing_eagerly()
        coordinator = restoring.NameBasedRestoreCoordinator(save_path, reader.get_variable_to_dtype_map() if is_eager else None)
        if is_eager:
            for obj in object_graph.list_objects(self._graph_view):
                obj._name_based_attribute_restore(coordinator)
        return statuses.NameBasedSaverStatus(coordinator, self._graph_view)


def saver_with_op_caching(obj, attached_dependencies=None):
    """Returns a TrackableSaver of an object."""
    return TrackableSaver(object_graph.ObjectGraphView(obj, attached_dependencies))


def frozen_saver(root_trackable):
    """Returns a MultiDeviceSaver of all objects below a root, as they are now."""
    found, registered = object_graph.frozen_saveables_and_savers(object_graph.ObjectGraphView(root_trackable))
    return MultiDeviceSaver.from_saveables(found, registered)


def list_objects(root_trackable):
    """Returns all objects below a root."""
    return object_graph.list_objects(object_graph.ObjectGraphView(root_trackable))


def gather_initializers(root_trackable):
    """Returns the initializers of all objects below a root."""
    return [obj.initializer for obj in list_objects(root_trackable) if getattr(obj, "initializer", None) is not None]


