"""Restoring objects from a checkpoint by the names under which they hold each other.

What the program does not hold yet is restored when it does: the position in the checkpoint waits in the object that will hold it.
"""

import collections
import weakref

from runnel import raw_ops
from runnel.checkpoint import keys, saveable_compat, saveables
from runnel.checkpoint.multi_device_saver import MultiDeviceSaver
from runnel.checkpoint.resharding import ReshardCallback
from runnel.core import framework
from runnel.core.identity import ObjectIdentityWeakKeyDictionary, ObjectIdentityWeakSet
from runnel.core.python_state import PythonState
from runnel.core.trackable import VARIABLE_VALUE_KEY, uid
from runnel.saved_model import registration

_SlotRestoration = collections.namedtuple("_SlotRestoration", "optimizer_id slot_variable_id slot_name")
_DeferredSlot = collections.namedtuple("_DeferredSlot", "original_variable slot_variable_id slot_name")


class _WeakObjects(collections.abc.MutableMapping):
    """{number: object}, without keeping the objects alive; tuples, to which no weak reference can be made, are kept."""

    def __init__(self):
        self._found = {}

    def __setitem__(self, number, obj):
        found = self._found
        try:
            self._found[number] = weakref.ref(obj, lambda _: found.pop(number, None))
        except TypeError:
            self._found[number] = lambda: obj

    def __getitem__(self, number):
        obj = self._found[number]()
        if obj is None:
            raise KeyError(number)
        return obj

    def __delitem__(self, number):
        del self._found[number]

    def __len__(self):
        return len(self._found)

    def __iter__(self):
        return iter(list(self._found))


class CheckpointRestoreCoordinator:
    """One restore: the checkpoint, which of its nodes stands for which object, and what is still to be restored."""

    def __init__(self, object_graph_proto, save_path, save_path_tensor, reader, restore_op_cache, graph_view, options, saveables_cache):
        self.options, self.object_graph_proto = options, object_graph_proto
        self.restore_uid = uid()
        self.unused_attributes = {}                     # node -> attributes for which its object has no use
        self.object_by_proto_id = _WeakObjects()
        self.matched_proto_ids = set()
        self.all_python_objects = ObjectIdentityWeakSet()
        self.save_path_tensor, self.save_path_string = save_path_tensor, save_path
        self.dtype_map, self.shape_map = reader.get_variable_to_dtype_map(), reader.get_variable_to_shape_map()
        self.restore_ops = []
        self.restore_ops_by_name = restore_op_cache
        self.graph_view = graph_view
        self.new_restore_ops_callback = None
        self.deferred_slot_restorations = {}            # node of an optimizer that is not there yet -> _DeferredSlots
        self.slot_restorations = collections.defaultdict(list)  # node of a variable that is not there yet -> _SlotRestorations
        self.saveables_cache = saveables_cache
        if not options.experimental_skip_slot_variables:
            for number, node in enumerate(object_graph_proto.nodes):
                for slot in node.slot_variables:
                    self.slot_restorations[slot.original_variable_node_id].append(
                        _SlotRestoration(number, slot.slot_variable_node_id, slot.slot_name))
        self._deleter = _WarnOfUnused(object_graph_proto, self.matched_proto_ids, self.unused_attributes)

    @property
    def expect_partial(self):
        """Whether values that nothing restores are left without a warning."""
        return self._deleter.expect_partial

    @expect_partial.setter
    def expect_partial(self, value):
        self._deleter.expect_partial = value

    def new_restore_ops(self, new_ops):
        """Adds operations that restore."""
        self.restore_ops += new_ops
        if self.new_restore_ops_callback:
            self.new_restore_ops_callback(new_ops)

    def restore_saveables(self, tensor_saveables, python_positions, registered_savers=None, reader=None):
        """Restores {key: SaveableObject} and Python states. Returns the operations, if a graph is built."""
        for position in python_positions:
            if reader is None:
                from runnel.train.checkpoint_reader import NewCheckpointReader
                reader = NewCheckpointReader(self.save_path_string)
            value = reader.get_tensor(position.object_proto.attributes[0].checkpoint_key)
            position.trackable.deserialize(value.item() if hasattr(value, "item") else value)
        if not tensor_saveables and not registered_savers:
            return []
        flat = saveables.validate_and_slice_inputs(tensor_saveables)
        done = MultiDeviceSaver.from_saveables(flat, registered_savers).restore(self.save_path_tensor, self.options)
        if framework.executing_eagerly():
            return []
        for name, op in sorted(done.items()):
            self.restore_ops_by_name[name] = op
        return [op for _, op in sorted(done.items())]


class _WarnOfUnused:
    """Warns of values that nothing has restored, when the restore can no longer go on."""

    def __init__(self, graph, matched, unused):
        self.expect_partial, self._graph, self._matched, self._unused = False, graph, matched, unused

    def __del__(self):
        if self.expect_partial:
            return
        try:
            from runnel import logging
        except ImportError:  # the interpreter is shutting down
            return
        left = [number for number, node in enumerate(self._graph.nodes) if node.attributes and number not in self._matched]
        if not left and not self._unused:
            return
        names = node_names(self._graph)
        logging.warning("Detecting that an object or model or tf.train.Checkpoint is being deleted with unrestored values. See the following "
                        "logs for the specific values in question. To silence these warnings, use `status.expect_partial()`. See "
                        "https://www.tensorflow.org/api_docs/python/tf/train/Checkpoint#restorefor details about the status object returned by "
                        "the restore function.")
        for number in left:
            logging.warning("Value in checkpoint could not be found in the restored object: %s" % names.get(number))
        for number, attribute in self._unused.items():
            logging.warning("An attribute in the restored object could not be found in the checkpoint. Object: %s, attribute: %s" % (
                names.get(number), attribute))


def node_names(graph):
    """Returns {node of a TrackableObjectGraph: its path from the root, for messages}."""
    paths, order = {0: "(root)"}, [0]
    for number in order:
        for child in graph.nodes[number].children:
            if child.node_id not in paths:
                paths[child.node_id] = paths[number] + "." + child.local_name
                order.append(child.node_id)
    for number, node in enumerate(graph.nodes):
        for slot in node.slot_variables:
            paths[slot.slot_variable_node_id] = "%s's state '%s' for %s" % (
                paths.get(number), slot.slot_name, paths.get(slot.original_variable_node_id))
    return paths


class CheckpointPosition:
    """A node of a checkpoint that is being restored."""

    __slots__ = ("_checkpoint", "_proto_id", "skip_restore", "callback")

    def __init__(self, checkpoint, proto_id):
        self._checkpoint, self._proto_id = checkpoint, proto_id
        self.skip_restore = False  # the object cannot be restored by its registered saver, and need not be
        self.callback = ReshardCallback()

    checkpoint = property(lambda self: self._checkpoint)
    proto_id = property(lambda self: self._proto_id)
    restore_uid = property(lambda self: self._checkpoint.restore_uid)
    trackable = property(lambda self: self._checkpoint.object_by_proto_id[self._proto_id])
    object_proto = property(lambda self: self._checkpoint.object_graph_proto.nodes[self._proto_id])

    def __repr__(self):
        return repr(self.object_proto)

    def restore(self, trackable, reader=None):
        """Restores an object and what it holds."""
        with framework.init_scope():
            if self.bind_object(trackable):
                done = self._restore_descendants(reader)
                if done:
                    self._checkpoint.new_restore_ops(done)

    def bind_object(self, trackable):
        """Makes the node stand for an object. Returns False if it stands for one already."""
        checkpoint = self._checkpoint
        checkpoint.all_python_objects.add(trackable) if not isinstance(trackable, tuple) else None
        checkpoint.matched_proto_ids.add(self._proto_id)
        held = checkpoint.object_by_proto_id.get(self._proto_id)
        if held is None:
            checkpoint.object_by_proto_id[self._proto_id] = trackable
            return True
        if held is not trackable:
            from runnel import logging
            logging.warning("Inconsistent references when loading the checkpoint into this object graph. For example, in the saved checkpoint "
                            "object, `model.layer.weight` and `model.layer_copy.weight` reference the same variable, while in the current "
                            "object these are two different variables. The referenced variables are:(%s and %s)." % (held, trackable))
        return False

    # Values without an object, for variables that are about to be made.

    def is_simple_variable(self):
        """Tells whether the node is the value of a variable and nothing else."""
        rows = self.object_proto.attributes
        return len(rows) == 1 and rows[0].name == VARIABLE_VALUE_KEY and not self.object_proto.children

    def value_tensors(self, shape_and_slices=None):
        """Returns {attribute: tensor}, read from the checkpoint; of those in {attribute: slice}, only that part."""
        out = {}
        for row in self.object_proto.attributes:
            part = (shape_and_slices or {}).get(row.name, "")
            with framework.init_scope(), framework.device(self._checkpoint.options.experimental_io_device or "cpu:0"):
                names, parts = self.callback.update_restore_inputs(row.checkpoint_key, part)
                read = raw_ops.RestoreV2(prefix=self._checkpoint.save_path_tensor, tensor_names=names, shape_and_slices=parts,
                                         dtypes=[self._checkpoint.dtype_map[name].base_dtype for name in names])
                out[row.name] = raw_ops.Identity(self.callback.reshard(list(read), part))
        return out

    def value_shape(self):
        """Returns the shape of a variable's value, or None."""
        return next((self._checkpoint.shape_map[row.checkpoint_key] for row in self.object_proto.attributes
                     if row.name == VARIABLE_VALUE_KEY), None)

    def update_resharding_callback(self, callback):
        """Sets how the value is computed from the checkpoint's."""
        if self.has_non_trivial_reshard_callback():
            raise TypeError("Cannot override resharding callback, already set to non trivial.")
        self.callback = callback

    def has_non_trivial_reshard_callback(self):
        """Tells whether the value is not simply the checkpoint's."""
        return type(self.callback) is not ReshardCallback

    # The object's own values.

    def get_registered_saver_name(self):
        """Returns the name of the registered saver that saved the object, or None."""
        name = self.object_proto.registered_saver.name
        if not name:
            return None
        try:
            registration.validate_restore_function(self.trackable, name)
        except ValueError:
            if registration.get_strict_predicate_restore(name):
                raise
            self.skip_restore = True
        return name

    def gather_ops_or_named_saveables(self):
        """Returns (operations that exist already, {key: SaveableObject}, Python states, {registered saver: {path: object}})."""
        recorded = self.get_registered_saver_name()
        rows = self.object_proto.attributes
        if not rows and not recorded:
            return [], {}, [], {}
        trackable = self.trackable
        if recorded:
            name = self.object_proto.registered_saver.object_name
            return [], {}, [], {} if self.skip_restore else {recorded: {name: trackable}}
        saver = registration.get_registered_saver_name(trackable)
        if saver:  # the checkpoint is older than the registration
            return [], {}, [], {saver: {rows[0].checkpoint_key: trackable}}
        if isinstance(trackable, PythonState):
            return [], {}, [self], {}
        factories = saveables.saveable_objects_from_trackable(trackable)
        if set(factories) == {keys.SERIALIZE_TO_TENSORS_NAME}:
            return (*self._from_tensors(factories[keys.SERIALIZE_TO_TENSORS_NAME]), [], {})
        if factories:
            return (*self._by_attribute(factories), [], {})
        self._checkpoint.unused_attributes.setdefault(self._proto_id, []).extend(row.name for row in rows)
        return [], {}, [], {}

    def _from_tensors(self, factory):
        checkpoint = self._checkpoint
        name = keys.attributes_prefix(self.object_proto.attributes[0].checkpoint_key) + (
            saveable_compat.get_saveable_name(self.trackable) or "")
        if framework.executing_eagerly():
            return [], {name: factory(name=name)}
        if name in checkpoint.restore_ops_by_name:
            return [checkpoint.restore_ops_by_name[name]], {}
        cache = checkpoint.saveables_cache.setdefault(self.trackable, {}) if checkpoint.saveables_cache is not None else {}
        if name not in cache:
            cache[name] = factory(name=name)
        return [], {name: cache[name]}

    def _by_attribute(self, factories):
        checkpoint = self._checkpoint
        done, found, covered = [], {}, set()  # covered: names of factories whose tensors are attributes of their own in the checkpoint
        for row in self.object_proto.attributes:
            op = None if framework.executing_eagerly() else checkpoint.restore_ops_by_name.get(row.checkpoint_key)
            if op is not None:
                done.append(op)
                continue
            if any(row.name.startswith(name) for name in covered):
                continue
            cache = checkpoint.saveables_cache
            own = cache.get(self.trackable, {}).get(row.name, ()) if cache is not None else ()
            saveable = own[0] if len(own) == 1 else None
            if saveable is not None and row.checkpoint_key not in saveable.name:
                del cache[self.trackable]
                saveable = None
            if saveable is None:
                saveable = _made(factories, row, covered)
                if saveable is None:
                    checkpoint.unused_attributes.setdefault(self._proto_id, []).append(row.name)
                    continue
                if cache is not None:
                    cache.setdefault(self.trackable, {})[row.name] = [saveable]
            found[row.checkpoint_key] = saveable
        return done, found

    def restore_ops(self, reader=None):
        """Restores the object's own values. Returns the operations, if a graph is built."""
        if self.object_proto.registered_saver.name:
            raise ValueError("Unable to run individual checkpoint restore for objects with registered savers.")
        done, found, states, _ = self.gather_ops_or_named_saveables()
        return list(done) + self._checkpoint.restore_saveables(found, states, reader=reader)

    # The object and what it holds.

    def create_child_position(self, node_id):
        """Returns the position of another node."""
        return CheckpointPosition(self._checkpoint, node_id)

    def create_slot_variable_position(self, optimizer_object, variable, slot_variable_id, slot_name, reshard_callback=None):
        """Returns (position, slot variable) of a slot that an optimizer has, or (None, None)."""
        position, how = self.create_child_position(slot_variable_id), {}
        if reshard_callback is not None:
            position.update_resharding_callback(reshard_callback)
            how["slot_variable_shape"] = variable.shape
        slot = optimizer_object._create_or_restore_slot_variable(slot_variable_position=position, variable=variable, slot_name=slot_name, **how)
        return (position, slot) if slot is not None and position.bind_object(slot) else (None, None)

    def _single_restore(self):
        trackable = self.trackable
        trackable._maybe_initialize_trackable()
        if self.restore_uid <= trackable._update_uid:  # a later restore has been here
            return [], {}, [], {}
        out = self.gather_ops_or_named_saveables()
        trackable._update_uid = self.restore_uid
        return out

    def _restore_descendants(self, reader=None):
        queue = collections.deque([(self, self.trackable)])  # with the objects, which nothing else might hold
        done, found, states, registered = [], {}, [], collections.defaultdict(dict)
        while queue:
            position, _ = queue.popleft()
            more, saveables_, python, savers = position._single_restore()
            done += more
            found.update(saveables_)
            states += python
            for name, objects in savers.items():
                registered[name].update(objects)
            position._queue_children(queue)
            position._queue_slots(queue)
        return done + self._checkpoint.restore_saveables(found, states, registered, reader=reader)

    def _queue_children(self, queue):
        trackable = self.trackable
        children = trackable._trackable_children()
        adapter = trackable._checkpoint_adapter(self._checkpoint.save_path_string)
        if adapter is not None and not adapter.is_applicable(trackable):
            adapter = None
        for child in self.object_proto.children:
            if self._checkpoint.object_by_proto_id.get(child.node_id) is not None:
                continue
            position = self.create_child_position(child.node_id)
            held = trackable._lookup_dependency(child.local_name, children)
            if held is not None:
                if position.bind_object(held):
                    queue.append((position, held))
            elif _has_values(position.object_proto):
                name = child.local_name
                if adapter is not None:
                    name, callback = adapter.maybe_reshard(name)
                    if callback:
                        position.update_resharding_callback(callback)
                trackable._deferred_dependencies.setdefault(name, []).append(position)

    def _queue_slots(self, queue):
        checkpoint, trackable = self._checkpoint, self.trackable
        callback = self.callback if self.has_non_trivial_reshard_callback() else None
        rows = [(trackable, row.original_variable, row) for row in checkpoint.deferred_slot_restorations.pop(self._proto_id, ())]
        for row in checkpoint.slot_restorations.pop(self._proto_id, ()):
            optimizer = checkpoint.object_by_proto_id.get(row.optimizer_id)
            if optimizer is None:
                checkpoint.deferred_slot_restorations.setdefault(row.optimizer_id, []).append(
                    _DeferredSlot(trackable, row.slot_variable_id, row.slot_name))
            elif hasattr(optimizer, "_create_or_restore_slot_variable"):
                rows.append((optimizer, trackable, row))
        for optimizer, variable, row in rows:
            position, slot = self.create_slot_variable_position(optimizer, variable, row.slot_variable_id, row.slot_name, callback)
            if position is not None:
                queue.append((position, slot))


def _has_values(node):
    if node.HasField("has_checkpoint_values"):
        return node.has_checkpoint_values.value
    return bool(node.children or node.attributes or node.slot_variables or node.HasField("registered_saver"))


def _made(factories, row, covered):
    """Returns the SaveableObject for an attribute, or None. A newer version may have split an attribute: then the name only begins alike."""
    factory, name = factories.get(row.name), row.checkpoint_key
    if factory is None:
        fit = [known for known in factories if row.name.startswith(known)]
        if len(fit) > 1:
            raise ValueError("Forward compatibility load error: Unable to load checkpoint saved in future version of TensorFlow. Please update "
                             "your version of TensorFlow to the version in which the checkpoint was saved.")
        if fit:
            factory, name = factories[fit[0]], keys.attributes_prefix(row.checkpoint_key) + fit[0]
            covered.add(fit[0])
    return factory(name=name) if callable(factory) else factory


class NameBasedRestoreCoordinator:
    """A restore of objects from a checkpoint of tf.train.Saver, by the names of variables."""

    def __init__(self, save_path, dtype_map=None):
        self.save_path, self.dtype_map = save_path, dtype_map
        self.unused_attributes = ObjectIdentityWeakKeyDictionary()
        self.restore_uid = uid()

    def globally_named_object_attributes(self, trackable):
        """Yields the SaveableObjects of an object with the names of tf.train.Saver."""
        for attribute, factory in saveables.saveable_objects_from_trackable(trackable, tf1_saver=True).items():
            made = factory
            if callable(factory):
                try:
                    made = factory()
                except TypeError:  # it needs a name
                    self.unused_attributes.setdefault(trackable, []).append(attribute)
                    continue
            for name, op in saveables.op_list_to_dict([made], convert_variable_to_tensor=False).items():
                yield from saveables.saveable_objects_for_op(op=op, name=name)

    def eager_restore(self, trackable):
        """Restores an object at once."""
        for saveable in self.globally_named_object_attributes(trackable):
            if any(spec.name not in self.dtype_map for spec in saveable.specs):
                self.unused_attributes.setdefault(trackable, []).append(saveable.name)
                continue
            names = [spec.name for spec in saveable.specs]
            with framework.device("cpu:0"):
                tensors = raw_ops.RestoreV2(prefix=self.save_path, tensor_names=names, shape_and_slices=[""] * len(names),
                                            dtypes=[self.dtype_map[name] for name in names])
            saveable.restore(restored_tensors=[raw_ops.Identity(x) for x in tensors], restored_shapes=None)
