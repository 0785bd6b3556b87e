"""Trackable objects: those that checkpoints and SavedModels reach by the names under which others hold them."""

import contextlib
import functools
import itertools
import warnings
import weakref

OBJECT_GRAPH_PROTO_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
VARIABLE_VALUE_KEY = "VARIABLE_VALUE"
OBJECT_CONFIG_JSON_KEY = "OBJECT_CONFIG_JSON"

_numbers = itertools.count()


class SaveType:
    """What children are listed for."""

    SAVEDMODEL, CHECKPOINT = "savedmodel", "checkpoint"


def uid():
    """Returns a new number at every call: restores and updates are ordered by it."""
    return next(_numbers)


class TrackableReference:
    """An object and the name under which another holds it."""

    __slots__ = ("_name", "_ref")

    def __init__(self, name, ref):
        self._name, self._ref = name, ref

    @property
    def name(self):
        return self._name

    @property
    def ref(self):
        return self._ref

    def __iter__(self):
        return iter((self.name, self.ref))

    def __repr__(self):
        return "%s(name=%s, ref=%s)" % (type(self).__name__, self.name, self.ref)

    def __eq__(self, other):
        if isinstance(other, (tuple, TrackableReference)):
            return tuple(self) == tuple(other)
        return False

    __hash__ = None  # type: ignore[assignment]


class WeakTrackableReference(TrackableReference):
    """A TrackableReference that does not keep the object alive."""

    __slots__ = ()

    def __init__(self, name, ref):
        super().__init__(name, ref if isinstance(ref, weakref.ref) else weakref.ref(ref))

    @property
    def ref(self):
        return self._ref()


def no_automatic_dependency_tracking(method):
    """A decorator of methods: what they assign to attributes is not tracked."""
    @functools.wraps(method)
    def run(self, *args, **kwargs):
        before = getattr(self, "_self_setattr_tracking", True)
        object.__setattr__(self, "_self_setattr_tracking", False)
        try:
            return method(self, *args, **kwargs)
        finally:
            object.__setattr__(self, "_self_setattr_tracking", before)
    return run


@contextlib.contextmanager
def _set(obj, name, value):
    before = getattr(obj, name, True)
    object.__setattr__(obj, name, value)
    try:
        yield
    finally:
        object.__setattr__(obj, name, before)


def no_automatic_dependency_tracking_scope(obj):
    """A context manager: what is assigned to an object's attributes inside it is not tracked."""
    return _set(obj, "_self_setattr_tracking", False)


def no_manual_dependency_tracking_scope(obj):
    """A context manager: calls of an object's _track_trackable have no effect inside it."""
    return _set(obj, "_manual_tracking", False)


class CheckpointInitialValue:
    """An initial value that comes from a checkpoint."""

    def __init__(self, checkpoint_position, shape=None, shard_info=None):
        part = ""
        if shard_info:
            part = "%s %s" % (" ".join("%d" % d for d in shape), ":".join("%d,%d" % row for row in zip(shard_info.offset, shard_info.shape)))
        self.wrapped_value = checkpoint_position.value_tensors({VARIABLE_VALUE_KEY: part})[VARIABLE_VALUE_KEY]
        self._checkpoint_position = checkpoint_position

    def __tf_tensor__(self, dtype=None, name=None):
        return self.wrapped_value

    @property
    def checkpoint_position(self):
        """Where in the checkpoint the value is."""
        return self._checkpoint_position


class CheckpointInitialValueCallable:
    """An initializer that returns the value of a checkpoint."""

    def __init__(self, checkpoint_position):
        self._checkpoint_position = checkpoint_position

    @property
    def checkpoint_position(self):
        """Where in the checkpoint the value is."""
        return self._checkpoint_position

    @property
    def restore_uid(self):
        """The number of the restore."""
        return self._checkpoint_position.restore_uid

    def __call__(self, shape=None, dtype=None, shard_info=None):
        return CheckpointInitialValue(self._checkpoint_position, shape, shard_info=shard_info)


class Trackable:
    """The base of objects that hold others under names: variables, modules, optimizers, tables, functions."""

    @property
    def _setattr_tracking(self):
        return getattr(self, "_self_setattr_tracking", True)

    @_setattr_tracking.setter
    def _setattr_tracking(self, value):
        object.__setattr__(self, "_self_setattr_tracking", value)

    # These attributes may be set only here: classes of users and libraries need not call __init__.

    @no_automatic_dependency_tracking
    def _maybe_initialize_trackable(self):
        if hasattr(self, "_self_unconditional_checkpoint_dependencies"):
            return
        self._self_unconditional_checkpoint_dependencies = []
        self._self_unconditional_dependency_names = {}
        self._self_unconditional_deferred_dependencies = {}  # name -> positions in checkpoints
        self._self_update_uid = -1  # of the newest restore
        self._self_name_based_restores = set()

    def _state_of_tracking(self, name):
        self._maybe_initialize_trackable()
        return getattr(self, name)

    @property
    def _update_uid(self):
        return self._state_of_tracking("_self_update_uid")

    @_update_uid.setter
    def _update_uid(self, value):
        self._maybe_initialize_trackable()
        self._self_update_uid = value

    _checkpoint_dependencies = property(lambda self: self._state_of_tracking("_self_unconditional_checkpoint_dependencies"))
    _unconditional_checkpoint_dependencies = property(lambda self: self._state_of_tracking("_self_unconditional_checkpoint_dependencies"))
    _unconditional_dependency_names = property(lambda self: self._state_of_tracking("_self_unconditional_dependency_names"))
    _deferred_dependencies = property(lambda self: self._state_of_tracking("_self_unconditional_deferred_dependencies"))
    _name_based_restores = property(lambda self: self._state_of_tracking("_self_name_based_restores"))

    @property
    def _object_identifier(self):
        """What a SavedModel says that the object is."""
        return "_generic_user_object"

    def _no_dependency(self, value):
        """Returns a value that is not to be tracked when it is assigned to an attribute."""
        return value

    def _name_based_attribute_restore(self, checkpoint):
        """Restores the object from a checkpoint of a tf.train.Saver."""
        self._name_based_restores.add(checkpoint)
        if self._update_uid < checkpoint.restore_uid:
            checkpoint.eager_restore(self)
            self._update_uid = checkpoint.restore_uid

    def _lookup_dependency(self, name, cached_dependencies=None):
        """Returns the object that is tracked under a name, or None."""
        return (cached_dependencies or self._unconditional_dependency_names).get(name)

    def _add_variable_with_custom_getter(self, name, shape=None, dtype=None, initializer=None, getter=None, overwrite=False,
                                         **kwargs_for_getter):
        """Makes a variable by `getter` and tracks it. A checkpoint that was restored before gives the initial value."""
        from runnel import dtypes
        from runnel.core import framework
        self._maybe_initialize_trackable()
        with framework.init_scope():
            restored = self._preload_simple_restoration(name) if framework.executing_eagerly() else None
            if restored is not None and not (isinstance(initializer, CheckpointInitialValueCallable) and
                                             initializer.restore_uid > restored.restore_uid):
                initializer = restored
        variable = getter(name=name, shape=shape, dtype=dtypes.float32 if dtype is None else dtype, initializer=initializer,
                          **kwargs_for_getter)
        if overwrite and not isinstance(variable, Trackable):
            return variable
        return self._track_trackable(variable, name=name, overwrite=overwrite)

    def _preload_simple_restoration(self, name):
        """Returns an initializer with the value of a checkpoint for the variable to come, or None."""
        waiting = self._deferred_dependencies.get(name, ())
        if not waiting or not all(position.is_simple_variable() for position in waiting):
            return None
        return CheckpointInitialValueCallable(max(waiting, key=lambda position: position.checkpoint.restore_uid))

    def _track_trackable(self, trackable, name, overwrite=False):
        """Tracks an object under a name and returns it."""
        if not isinstance(trackable, Trackable):
            raise TypeError("Trackable._track_trackable() can only be used to track objects of type Trackable. Got type %s." %
                            type(trackable))
        if not getattr(self, "_manual_tracking", True):
            return trackable
        held = self._lookup_dependency(name)
        rows = self._unconditional_checkpoint_dependencies
        if held is None:
            rows.append(TrackableReference(name, trackable))
            self._handle_deferred_dependencies(name, trackable)
        elif held is not trackable:
            if not overwrite:
                raise ValueError("Called Trackable._track_trackable() with name='%s', but a Trackable with this name is already declared as a "
                                 "dependency. Names must be unique (or overwrite=True)." % name)
            rows[:] = [TrackableReference(name, trackable) if row.name == name else row for row in rows]
        self._unconditional_dependency_names[name] = trackable
        return trackable

    def _delete_tracking(self, name):
        """Stops tracking what is tracked under a name."""
        if self._unconditional_dependency_names.pop(name, None) is not None:
            rows = self._unconditional_checkpoint_dependencies
            rows[:] = [row for row in rows if row.name != name]

    def _handle_deferred_dependencies(self, name, trackable):
        """Restores an object that a checkpoint has under this name, if the checkpoint was restored before it was held."""
        trackable._maybe_initialize_trackable()
        for position in sorted(self._deferred_dependencies.pop(name, ()), key=lambda p: p.checkpoint.restore_uid, reverse=True):
            position.restore(trackable)
        for coordinator in sorted(self._name_based_restores, key=lambda c: c.restore_uid, reverse=True):
            trackable._name_based_attribute_restore(coordinator)

    def _trackable_children(self, save_type=SaveType.CHECKPOINT, cache=None, **kwargs):
        """Returns {name: object} of what this object holds. `save_type` is "checkpoint" or "savedmodel"."""
        return dict(self._checkpoint_dependencies)

    # What checkpoints store of the object itself.

    def _gather_saveables_for_checkpoint(self):
        """Returns {attribute: a SaveableObject, or a function from a name to one}. New classes have _serialize_to_tensors instead."""
        return getattr(self, "_self_saveable_object_factories", {})

    def _serialize_to_tensors(self):
        """Returns {name: tensor} of what a checkpoint stores of this object itself."""
        raise NotImplementedError

    def _restore_from_tensors(self, restored_tensors):
        """Restores what _serialize_to_tensors returned."""
        raise NotImplementedError

    def _copy_trackable_to_cpu(self, object_map):
        """Adds a copy of the object in the host's memory to {object: copy}, or brings the copy up to date."""
        raise NotImplementedError("Need to implement _copy_trackable_to_cpu() if the Trackable requires AsyncCheckpoint support.")

    def _checkpoint_adapter(self, path):
        """Returns the object that changes how the values at a path are restored, or None."""
        return None

    # What SavedModels store of the object itself.

    def _serialize_to_proto(self, object_proto=None, **kwargs):
        """Returns a message with what is needed to make the object again, or None."""
        return None

    @classmethod
    def _deserialize_from_proto(cls, proto=None, dependencies=None, object_proto=None, export_dir=None, asset_file_def=None,
                                operation_attributes=None, **kwargs):
        """Makes the object that a SavedModel describes."""
        return cls()

    def _add_trackable_child(self, name, value):
        """Called with each of the children when the object has been loaded."""
        self._track_trackable(value, name, overwrite=True)

    def _deserialization_dependencies(self, children):
        """Returns {name: child} of those children that must be loaded before this object."""
        return {}

    def _export_to_saved_model_graph(self, object_map, tensor_map, options, **kwargs):
        """Makes a copy of the object in the graph of a SavedModel. Returns the tensors that `tensor_map` maps since."""
        return []


class AutoTrackable(Trackable):
    """Tracks the trackable objects that are assigned to its attributes, alone or in lists, tuples and dicts."""

    def __setattr__(self, name, value):
        if getattr(self, "_self_setattr_tracking", True):
            value = sticky_attribute_assignment(self, name, value)
        super().__setattr__(name, value)

    def __delattr__(self, name):
        self._delete_tracking(name)
        super().__delattr__(name)

    def _no_dependency(self, value):
        from runnel.core import data_structures
        return data_structures.NoDependency(value)

    def _add_trackable_child(self, name, value):
        setattr(self, name, value)

    def _trackable_children(self, save_type=SaveType.CHECKPOINT, cache=None, **kwargs):
        if save_type != SaveType.SAVEDMODEL:
            return super()._trackable_children(save_type, **kwargs)
        functions = self._own_functions()
        for function in functions.values():
            listed = getattr(function, "_list_all_concrete_functions_for_serialization", None)
            if listed is not None:
                listed()  # tracing may add objects
        children = {}
        for name, child in self._checkpoint_dependencies:
            if is_function(child):
                continue
            if name in functions and child is not functions[name]:
                raise ValueError("Can't save object because it has multiple children with the same name. Object: %s, attribute name: %s, "
                                 "child 1: %s, child 2: %s" % (self, name, child, functions[name]))
            children[name] = child
        return {**children, **functions}

    def _own_functions(self):
        """Returns {name: function} of the attributes that are tf.functions."""
        functions = {}
        for name in dir(self):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    value = getattr(self, name, None)
                except Exception:  # noqa: BLE001, S112  a property of the user's class may fail in its own way
                    continue
            if is_function(value):
                functions[name] = value
        return functions


def is_function(value):
    """Tells whether a value is a tf.function, one of its traces, or a function of a loaded model."""
    from runnel.eager.def_function import ConcreteFunction, Function
    return isinstance(value, (Function, ConcreteFunction)) or getattr(type(value), "_is_restored_function", False)


def sticky_attribute_assignment(trackable, name, value):
    """Tracks a value that is assigned to an attribute. Returns what the attribute becomes: lists and dicts are wrapped."""
    from runnel.core import data_structures
    if isinstance(value, data_structures.NoDependency):
        return data_structures.wrap_or_unwrap(value)
    value = data_structures.wrap_or_unwrap(value)
    if isinstance(value, Trackable):
        trackable._track_trackable(value, name=name, overwrite=True)
    return value
