"""Objects that own a resource, such as tables: checkpoints and SavedModels reach it through them."""

import collections
import contextlib
import copy
import weakref

from runnel.core import framework
from runnel.core.trackable import SaveType, Trackable


class ResourceTracker:
    """A list of the resources that are made inside a resource_tracker_scope."""

    __slots__ = ("_resources",)

    def __init__(self):
        self._resources = []

    @property
    def resources(self):
        return self._resources

    def add_resource(self, resource):
        self._resources.append(resource)


_trackers: list = []  # of the scopes that are open, the outermost first


@contextlib.contextmanager
def resource_tracker_scope(resource_tracker):
    """A context manager: the tracker lists the resources that are made inside it."""
    _trackers.append(resource_tracker)
    try:
        yield
    finally:
        _trackers.pop()


def resource_creator_stack(graph):
    """Returns {type of resources: the functions that make them, the outermost first} of a graph."""
    table = graph._scopes.get("resource_creators")
    if not isinstance(table, collections.defaultdict):
        table = graph._scopes["resource_creators"] = collections.defaultdict(list, table or {})
    return table


def _filled(table):
    return {name: list(rows) for name, rows in table.items() if rows}


class _CreatorScope:
    """A context manager: functions make the resources of some types instead of the classes."""

    def __init__(self, graph, resource_type, creator):
        self._graph, self._creator = graph, creator
        self._types = resource_type if isinstance(resource_type, (list, tuple)) else [resource_type]

    def __enter__(self):
        table = resource_creator_stack(self._graph)
        self._before = {name: list(rows) for name, rows in table.items()}
        for name in self._types:
            table.setdefault(name, []).append(self._creator)
        self._inside = _filled(table)

    def __exit__(self, *_):
        if _filled(resource_creator_stack(self._graph)) != self._inside:
            raise RuntimeError("Exiting resource_creator_scope without proper nesting.")
        self._graph._scopes["resource_creators"] = self._before


def resource_creator_scope(resource_type, resource_creator):
    """A context manager: `resource_creator(next_creator, *args, **kwargs)` makes resources of that type, or of those types."""
    return _CreatorScope(framework.get_default_graph(), resource_type, resource_creator)


class _ResourceMeta(type):
    def __call__(cls, *args, **kwargs):
        make = super().__call__
        for creator in framework.get_default_graph()._scopes.get("resource_creators", {}).get(cls._resource_type(), ()):
            make = _chain(creator, make)
        return make(*args, **kwargs)


def _chain(creator, following):
    return lambda *args, **kwargs: creator(following, *args, **kwargs)


_owners: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # id of a handle -> the object that owns the resource


def owner_of(handle):
    """Returns the object whose resource a handle is, or None."""
    found = _owners.get(id(handle))
    return found if found is not None and found._resource_handle is handle else None


class CapturableResource(Trackable, metaclass=_ResourceMeta):
    """The base of objects that own a resource: `_create_resource` makes it when it is first asked for."""

    def __init__(self, device=""):
        self._resource_handle_value = None
        self._resource_device = device

    @classmethod
    def _resource_type(cls):
        return cls.__name__

    def _create_resource(self):
        raise NotImplementedError("TrackableResource._create_resource not implemented.")

    def _initialize(self):
        """Prepares the resource."""

    def _destroy_resource(self):
        """Frees the resource."""

    @property
    def _resource_handle(self):
        return getattr(self, "_resource_handle_value", None)

    @_resource_handle.setter
    def _resource_handle(self, value):
        if isinstance(value, framework.Tensor):
            _owners[id(value)] = self
        self._resource_handle_value = value

    @property
    def resource_handle(self):
        """The resource's handle."""
        if self._resource_handle is None:
            # Not in the function under construction: other functions use the handle, too.
            with framework.init_scope(), framework.device(getattr(self, "_resource_device", "") or None):
                self._resource_handle = self._create_resource()
        return self._resource_handle

    def _export_to_saved_model_graph(self, object_map, tensor_map, options=None, **kwargs):
        twin = copy.copy(self)
        with framework.device(getattr(self, "_resource_device", "") or None):
            twin._resource_handle = twin._create_resource()
        object_map[self] = twin
        tensor_map[self.resource_handle] = twin._resource_handle
        return [self.resource_handle]

    def _trackable_children(self, save_type=SaveType.CHECKPOINT, cache=None, **kwargs):
        children = super()._trackable_children(save_type, **kwargs)
        if save_type != SaveType.SAVEDMODEL:
            return children
        from runnel.eager.def_function import Function

        def _creator():
            return self._create_resource()

        def _initializer():
            self._initialize()
            return 1

        def _destroyer():
            self._destroy_resource()
            return 1
        for name, function in (("_create_resource", _creator), ("_initialize", _initializer), ("_destroy_resource", _destroyer)):
            children[name] = Function(function, input_signature=(), autograph=False)
        return children


class TrackableResource(CapturableResource):
    """A CapturableResource that resource_tracker_scope notices."""

    def __init__(self, device=""):
        for tracker in _trackers:
            tracker.add_resource(self)
        super().__init__(device=device)


class RestoredResource(TrackableResource):
    """A resource of a loaded model: functions of the model make and fill it."""

    @classmethod
    def _deserialize_from_proto(cls, object_proto=None, dependencies=None, **kwargs):
        made = cls(device=object_proto.resource.device)
        creator = (dependencies or {}).get("_create_resource")
        if creator is not None:
            made._create_resource = creator
        return made

    def _add_trackable_child(self, name, value):
        from runnel.core.trackable import is_function
        if name == "_destroy_resource":
            weakref.finalize(self, _destroy, value).atexit = False
        setattr(self, name, value)
        if isinstance(value, Trackable) and not is_function(value):
            self._track_trackable(value, name)


def _destroy(function):
    """Frees the resource of an object that is gone."""
    from runnel import errors
    with framework.init_scope(), contextlib.suppress(errors.OpError):
        function()
