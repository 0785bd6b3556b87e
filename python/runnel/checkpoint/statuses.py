"""The results of restoring: what was restored, and the operations that restore in a graph."""

from runnel.checkpoint import saveables
from runnel.checkpoint.object_graph import list_objects
from runnel.checkpoint.restoring import node_names
from runnel.core import framework
from runnel.core.data_structures import TrackableDataStructure
from runnel.core.identity import ObjectIdentitySet

_provider: list = []  # the function that libraries registered for a session, if any


def register_session_provider(session_provider):
    """Sets the function that returns the session of graphs, for programs without a default session."""
    _provider[:] = [session_provider]


def get_session():
    """Returns the default session, or that of the registered function, or None."""
    from runnel.core.session import get_default_session
    session = get_default_session()
    return _provider[0]() if session is None and _provider else session


def streaming_restore(status, session=None):
    """In a graph: restores now, and what the program makes later as soon as it is made."""
    if framework.executing_eagerly():
        return
    if session is None:
        session = get_session()
    if isinstance(status, NameBasedSaverStatus):
        raise NotImplementedError("Streaming restore not supported from name-based checkpoints when graph building. File a feature request if "
                                  "this limitation bothers you. As a workaround, consider either using tf.train.Checkpoint to load name-based "
                                  "checkpoints or enabling eager execution.")
    status.run_restore_ops(session=session)
    status._checkpoint.new_restore_ops_callback = lambda ops: session.run(ops, feed_dict=status._feed_dict)


class _LoadStatus:
    """The base of statuses."""

    def assert_consumed(self):
        """Raises an error if a value of the checkpoint or an object was left over."""
        raise NotImplementedError

    def assert_existing_objects_matched(self):
        """Raises an error if an object has no value in the checkpoint."""
        raise NotImplementedError

    def assert_nontrivial_match(self):
        """Raises an error if no object but the root was restored."""
        raise NotImplementedError

    def run_restore_ops(self, session=None):
        """In a graph: restores the objects."""
        raise NotImplementedError

    def initialize_or_restore(self, session=None):
        """In a graph: restores the objects, and initializes those without a value."""
        raise NotImplementedError

    def expect_partial(self):
        """Allows values and objects to be left over."""
        return self


class CheckpointLoadStatus(_LoadStatus):
    """The status of a restore from a checkpoint of objects."""

    def __init__(self, checkpoint, feed_dict, graph_view, options):
        self._checkpoint, self._feed_dict, self._object_graph_view, self._options = checkpoint, feed_dict, graph_view, options
        self._root = graph_view.root  # deferred restores of it go on as long as the status lives

    def assert_consumed(self):
        self.assert_existing_objects_matched()
        checkpoint, skips = self._checkpoint, self._options.experimental_skip_slot_variables
        nodes = checkpoint.object_graph_proto.nodes
        names = node_names(checkpoint.object_graph_proto)
        ignored = {slot.slot_variable_node_id for node in nodes for slot in node.slot_variables} if skips else set()
        for number, node in enumerate(nodes):
            if node.attributes and number not in ignored and checkpoint.object_by_proto_id.get(number) is None:
                raise AssertionError("Unresolved object in checkpoint %s: %s" % (names.get(number), node))
        if not skips and checkpoint.slot_restorations:
            raise AssertionError("Unresolved slot restorations: %s" % checkpoint.slot_restorations)
        if checkpoint.unused_attributes:
            raise AssertionError("Unused attributes in these objects (the attributes exist in the checkpoint but were not restored):\n%s" % (
                "\n".join("%s (%s): %s" % (names.get(number), checkpoint.object_by_proto_id.get(number), attribute)
                          for number, attribute in checkpoint.unused_attributes.items())))
        return self

    def assert_existing_objects_matched(self):
        checkpoint = self._checkpoint
        for number, node in enumerate(checkpoint.object_graph_proto.nodes):
            obj = checkpoint.object_by_proto_id.get(number)
            if obj is not None and obj._update_uid < checkpoint.restore_uid:
                raise AssertionError("Object %s not assigned a value from checkpoint." % node)
        unused = self._unused(lambda obj: not (isinstance(obj, TrackableDataStructure) and not obj._trackable_children()))
        if unused:
            shown = min(10, len(unused))
            raise AssertionError("Found %d Python objects that were not bound to checkpointed values, likely due to changes in the Python "
                                 "program. Showing %d of %d unmatched objects: %s" % (len(unused), shown, len(unused), unused[:shown]))
        return self

    def _unused(self, wanted=lambda obj: True):
        """Returns the objects with values that no node of the checkpoint stands for."""
        checkpoint = self._checkpoint
        objects = ObjectIdentitySet(checkpoint.all_python_objects)
        objects.update(obj for obj in list_objects(self._object_graph_view, self._options.experimental_skip_slot_variables) if wanted(obj))
        bound = ObjectIdentitySet(checkpoint.object_by_proto_id.values())
        return [obj for obj in objects if obj not in bound and saveables.saveable_objects_from_trackable(obj)]

    def assert_nontrivial_match(self):
        unused = self._unused()
        if len(self._checkpoint.object_by_proto_id) <= 1:
            if unused:
                raise AssertionError("Nothing except the root object matched a checkpointed value. Typically this means that the checkpoint does "
                                     "not match the Python program. The following objects have no matching checkpointed value: %s" % unused)
            raise AssertionError("Nothing to load. No dependencies have been added to %s yet." % self._object_graph_view.root)
        return self

    def run_restore_ops(self, session=None):
        if not framework.executing_eagerly():
            (get_session() if session is None else session).run(self._checkpoint.restore_ops, feed_dict=self._feed_dict)

    def initialize_or_restore(self, session=None):
        if framework.executing_eagerly():
            return
        session = get_session() if session is None else session
        bound, number = ObjectIdentitySet(self._checkpoint.object_by_proto_id.values()), self._checkpoint.restore_uid
        initializers = [obj.initializer for obj in list_objects(self._object_graph_view)
                        if hasattr(obj, "initializer") and obj not in bound and getattr(obj, "_update_uid", number - 1) < number]
        self.run_restore_ops(session)
        session.run(initializers)

    def expect_partial(self):
        self._checkpoint.expect_partial = True
        return self


class InitializationOnlyStatus(_LoadStatus):
    """The status of restore(None)."""

    def __init__(self, object_graph_view, restore_uid):
        self._object_graph_view, self._restore_uid = object_graph_view, restore_uid
        self._root = object_graph_view.root

    def assert_consumed(self):
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed

    def run_restore_ops(self, session=None):
        raise AssertionError("No checkpoint specified, so no restore ops are available (save_path=None to Saver.restore).")

    def initialize_or_restore(self, session=None):
        if framework.executing_eagerly():
            return
        number = self._restore_uid
        (get_session() if session is None else session).run(
            [obj.initializer for obj in list_objects(self._object_graph_view)
             if getattr(obj, "initializer", None) is not None and getattr(obj, "_update_uid", number - 1) < number])


class NameBasedSaverStatus(_LoadStatus):
    """The status of a restore from a checkpoint of tf.train.Saver."""

    def __init__(self, checkpoint, object_graph_view):
        from runnel import logging
        logging.warning("Restoring a name-based tf.train.Saver checkpoint using the object-based restore API. This mode uses global names to "
                        "match variables, and so is somewhat fragile. It also adds new restore ops to the graph each time it is called when "
                        "graph building. Prefer re-encoding training checkpoints in the object-based format: run save() on the object-based "
                        "saver (the same one this message is coming from) and use that checkpoint in the future.")
        self._checkpoint, self._object_graph_view = checkpoint, object_graph_view
        self._optional = []
        self._root = object_graph_view.root

    def add_to_optionally_restored(self, var):
        """Allows a variable to have no value in the checkpoint."""
        self._optional.append(var)

    def assert_consumed(self):
        unused = [(obj, names) for obj, names in self._checkpoint.unused_attributes.items() if all(obj is not x for x in self._optional)]
        if unused:
            raise AssertionError("Some objects had attributes which were not restored: %s" % (
                "".join("\n    %s: %s" % row for row in unused)))
        for obj in list_objects(self._object_graph_view):
            if obj._update_uid < self._checkpoint.restore_uid:
                raise AssertionError("Object not restored: %s" % (obj,))
        return self

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed

    def _saveable_objects(self):
        found = []
        for obj in list_objects(self._object_graph_view):
            if obj._update_uid < self._checkpoint.restore_uid:
                obj._update_uid = self._checkpoint.restore_uid
                found += self._checkpoint.globally_named_object_attributes(obj)
        return found

    def run_restore_ops(self, session=None):
        if framework.executing_eagerly():
            return
        from runnel.train.saver import Saver
        with framework.device("/cpu:0"):
            Saver(self._saveable_objects()).restore(get_session() if session is None else session, self._checkpoint.save_path)

    initialize_or_restore = run_restore_ops
