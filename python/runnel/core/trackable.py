"""Trackable objects: those that checkpoints and SavedModels reach by the names under which others hold them."""

import collections
import functools

TrackableReference = collections.namedtuple("TrackableReference", "name ref")


class Trackable:
    """The base of objects that hold others under names: variables, modules, optimizers, tables, functions."""

    @property
    def _setattr_tracking(self):
        return getattr(self, "_self_setattr_tracking", True)

    @_setattr_tracking.setter
    def _setattr_tracking(self, value):
        object.__setattr__(self, "_self_setattr_tracking", value)

    @property
    def _tracked_names(self):
        """{name: object}, in the order in which they were tracked. Keras knows the attribute, and does not save it."""
        found = self.__dict__.get("_self_unconditional_dependency_names")
        if found is None:
            found = {}
            object.__setattr__(self, "_self_unconditional_dependency_names", found)
        return found

    @property
    def _checkpoint_dependencies(self):
        return [TrackableReference(name, ref) for name, ref in self._trackable_children().items()]

    @property
    def _object_identifier(self):
        """What a SavedModel says that the object is."""
        return "_generic_user_object"

    def _maybe_initialize_trackable(self):
        """For subclasses of stock's: there is nothing to prepare."""

    def _no_dependency(self, value):
        """Returns a value that is not to be tracked when it is assigned to an attribute."""
        return value

    def _track_trackable(self, trackable, name, overwrite=False):
        """Tracks an object under a name and returns it."""
        if not isinstance(trackable, Trackable):
            raise TypeError("Trackable._track_trackable() can only be used to track objects of type Trackable. Got type %s." %
                            type(trackable))
        held = self._tracked_names.get(name)
        if held is not None and held is not trackable and not overwrite:
            raise ValueError("Called Trackable._track_trackable() with name='%s', but a Trackable with this name is already declared as a "
                             "dependency. Names must be unique (or overwrite=True)." % name)
        self._tracked_names[name] = trackable
        self._handle_deferred_dependencies(name, trackable)
        return trackable

    def _untrack_trackable(self, name):
        self._tracked_names.pop(name, None)

    _delete_tracking = _untrack_trackable

    def _lookup_dependency(self, name, cached_dependencies=None):
        """Returns the object that is tracked under a name, or None."""
        held = self._tracked_names if cached_dependencies is None else cached_dependencies
        return held.get(name)

    def _handle_deferred_dependencies(self, name, trackable):
        """Restores an object that a checkpoint has under this name, if the checkpoint was restored before it was held."""
        deferred = self.__dict__.get("_self_deferred")
        if deferred and name in deferred:
            from runnel.train.checkpoint import restore_deferred
            restore_deferred(trackable, *deferred.pop(name))

    def _trackable_children(self, save_type="checkpoint", cache=None, **kwargs):
        """Returns {name: object} of what this object holds. `save_type` is "checkpoint" or "savedmodel"."""
        return dict(self._tracked_names)

    def _serialize_to_tensors(self):
        """Returns {name: tensor} of what a checkpoint stores of this object itself."""
        raise NotImplementedError

    def _restore_from_tensors(self, restored_tensors):
        """Restores what _serialize_to_tensors returned."""
        raise NotImplementedError


class AutoTrackable(Trackable):
    """Tracks the trackable objects that are assigned to its attributes, alone or in lists, tuples and dicts."""

    def __setattr__(self, name, value):
        if getattr(self, "_self_setattr_tracking", True):
            value = sticky_attribute_assignment(self, name, value)
        super().__setattr__(name, value)

    def __delattr__(self, name):
        self._untrack_trackable(name)
        super().__delattr__(name)

    def _trackable_children(self, save_type="checkpoint", cache=None, **kwargs):
        held = super()._trackable_children(save_type, cache=cache, **kwargs)
        if save_type != "savedmodel":
            return held
        from runnel.eager.def_function import ConcreteFunction, Function
        functions = {}
        for name in dir(self):
            try:
                value = getattr(self, name, None)
            except Exception:  # noqa: BLE001, S112  a property of the user's class may fail in its own way
                continue
            if isinstance(value, (Function, ConcreteFunction)):
                functions[name] = value
        return {**held, **functions}


class TrackableResource(Trackable):
    """The base of objects that own a resource: `_create_resource` makes it when it is first asked for."""

    def __init__(self, device=""):
        self._resource_handle_value = None

    def _create_resource(self):
        raise NotImplementedError("TrackableResource._create_resource not implemented.")

    def _initialize(self):
        """Prepares the resource."""

    @property
    def resource_handle(self):
        """The resource's handle."""
        if self._resource_handle_value is None:
            from runnel.core import framework
            with framework.init_scope():
                self._resource_handle_value = self._create_resource()
        return self._resource_handle_value


def sticky_attribute_assignment(trackable, name, value):
    """Tracks a value that is assigned to an attribute. Returns what the attribute becomes: lists and dicts are wrapped."""
    from runnel.core import data_structures
    if isinstance(value, data_structures.NoDependency):
        trackable._untrack_trackable(name)
        return value.value
    value = data_structures.wrap_or_unwrap(value)
    if isinstance(value, Trackable):
        trackable._track_trackable(value, name, overwrite=True)
    return value


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


class no_automatic_dependency_tracking_scope:
    """A context manager: what is assigned to an object's attributes inside it is not tracked."""

    def __init__(self, obj):
        self._object = obj

    def __enter__(self):
        self._before = getattr(self._object, "_self_setattr_tracking", True)
        object.__setattr__(self._object, "_self_setattr_tracking", False)

    def __exit__(self, *_):
        object.__setattr__(self._object, "_self_setattr_tracking", self._before)


def no_manual_dependency_tracking_scope(obj):
    """The same as no_automatic_dependency_tracking_scope."""
    return no_automatic_dependency_tracking_scope(obj)


class TrackableView:
    """The objects below a root, by the names under which they are held."""

    def __init__(self, root):
        self._root = root

    @property
    def root(self):
        """The object on top."""
        return self._root

    @classmethod
    def children(cls, obj, save_type="checkpoint", **kwargs):
        """Returns {name: object} of what an object holds."""
        from runnel.train.checkpoint import _children
        if not isinstance(obj, Trackable):
            return dict(_children(obj))
        return dict(obj._trackable_children(save_type, **kwargs))

    def descendants(self):
        """Returns all objects, the root first, breadth first."""
        order, seen = [self._root], {id(self._root)}
        for item in order:
            for child in self.children(item).values():
                if id(child) not in seen:
                    seen.add(id(child))
                    order.append(child)
        return order
