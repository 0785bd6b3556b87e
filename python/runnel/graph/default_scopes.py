"""The scopes of the default graph: tf.name_scope, tf.device, tf.control_dependencies, collections."""

import contextlib
import re
import threading

from runnel import _core
from runnel.graph import default_graph
from runnel.graph.default_graph import get_default_graph
from runnel.graph.graph import Graph
from runnel.graph.graph_scopes import check_scope_name
from runnel.graph.graph_stack import _DefaultGraph, _stack
from runnel.graph.graph_tensor import Tensor


class _EagerScope(threading.local):
    """The name scope of eager execution: `name`, with a "/" at its end."""

    name = ""


eager_scope = _EagerScope()


class name_scope:  # noqa: N801
    """A context manager: `with tf.name_scope(name)` gives new operations the prefix "name/".

    Functions that build graphs call name_scope(name, default_name, values): `name` may be None, and `values` are the
    tensors they work on.
    """

    __slots__ = ("_name", "_values", "_graph", "_before", "_default", "_skips")

    def __init__(self, name, default_name=None, values=None, skip_on_eager=True):
        self._name = default_name if name is None else name
        self._values = values
        self._default = None
        self._skips = skip_on_eager
        if self._name is None and values is not None:
            raise ValueError("At least one of name (None) and default_name (None) must be provided.")
        if self._name is not None and not isinstance(self._name, str):
            raise TypeError("name for name_scope must be a string.")
        if default_name is not None and not isinstance(default_name, str):
            raise TypeError("`default_name` type (%s) is not a string type. You likely meant to pass this into the `values` kwarg."
                            % type(default_name))

    @property
    def name(self):
        """The name that the caller gave."""
        return self._name

    def __enter__(self):
        graph = _core.current()
        if graph is None and self._values and any(type(value) is Tensor for value in self._values):
            graph = _graph_of(self._values, None)  # eager code works on a graph
            self._default = _DefaultGraph(graph)
            self._default.__enter__()
        if graph is None:
            self._graph, self._before = None, eager_scope.name
            if self._skips:
                return self._name + "/" if self._name else ""
            name = self._name or ""
            eager_scope.name = name if not name or name.endswith("/") else "%s%s/" % (self._before, name)
            return eager_scope.name
        if self._values and not graph._building_function:
            if len(self._values) > 1:
                _check_one_graph(self._values)
            other = _graph_of(self._values, graph)
            if other is not graph:
                self._default = _DefaultGraph(other)
                self._default.__enter__()
                graph = other
        self._graph = graph
        self._before = before = graph._name_stack
        name = self._name
        check_scope_name(name, before)
        if not name:
            scope = ""
        elif name[-1] == "/":
            scope = name[:-1]
        else:
            scope = graph.unique_name(name)
        graph._name_stack = scope
        return scope + "/" if name else ""

    def __exit__(self, *exc):
        if self._graph is not None:
            self._graph._name_stack = self._before
        elif not self._skips:
            eager_scope.name = self._before
        if self._default is not None:
            self._default.__exit__()


def _check_one_graph(values):
    """Raises ValueError if tensors are of different graphs."""
    first = None
    for value in values:
        if isinstance(value, Tensor) and value._graph is not None:
            first = value if first is None else first
            if value._graph is not first._graph:
                raise ValueError("%s must be from the same graph as %s (graphs are %s and %s)." % (value, first, value._graph, first._graph))


def _graph_of(values, default):
    for value in values:
        if isinstance(value, Tensor):
            return value._graph or default
        if isinstance(value, (list, tuple)):
            for item in value:
                if isinstance(item, Tensor):
                    return item._graph or default
        else:
            graph = getattr(value, "graph", None)
            if isinstance(graph, Graph):
                return graph
    return default


@contextlib.contextmanager
def _eager_device(device_name):
    from runnel.eager import context as eager
    with eager.device(device_name):
        yield


def device(device_name_or_function):
    """A context manager that sets the device of new operations."""
    if _core.current() is None:
        return _eager_device(device_name_or_function)
    return get_default_graph().device(device_name_or_function)


def control_dependencies(control_inputs):
    """A context manager that makes new operations run after `control_inputs`."""
    if _core.current() is None:
        for function in control_inputs or ():
            if callable(function):
                function()
        return contextlib.nullcontext()
    return get_default_graph().control_dependencies(control_inputs)


def colocate_with(op, ignore_existing=False):
    """A context manager that places new operations on the device of `op`."""
    if _core.current() is None:
        return contextlib.nullcontext()
    handle = getattr(op, "handle", None)
    if isinstance(handle, Tensor) and handle.op is None:  # an eager variable: nodes that use its handle follow it
        return contextlib.nullcontext()
    return get_default_graph().colocate_with(op, ignore_existing)


def container(container_name):
    """A context manager that puts the state of new operations into a resource container."""
    return get_default_graph().container(container_name)


def init_scope():
    """A context manager for operations outside of the current conditional, loop and function."""
    graph = current = _core.current()
    if graph is not None and graph._building_function:
        graph = _outside_of_functions(graph)
    return _init_scope(graph, () if current is None else _devices_of(current, graph))


def _outside_of_functions(graph):
    """Returns the graph in which the function under construction is called, or None for eager execution."""
    for outer in reversed(_stack.graphs):
        if outer is None or not outer._building_function:
            return outer
    while graph is not None and graph._building_function and graph._graph_outside is not None:
        graph = graph._graph_outside
    return default_graph._global_graph() if graph is None or graph._building_function else graph


def _devices_of(graph, outside):
    """Returns the devices that operations in a function would get, as a stack: those of the innermost graph that has some."""
    graphs = [graph, *(outer for outer in reversed(_stack.graphs) if outer is not None)]
    for one in graphs:
        if one._device_stack or one is outside:
            return one._device_stack
    return ()


@contextlib.contextmanager
def _creators_of(graph):
    """Creators of variables that a function under construction has set make those of its init_scope too."""
    own = () if graph is None else graph._scopes.get("variable_creators", ())
    if not own:
        yield
        return
    kept = get_default_graph()._scopes
    before = kept.get("variable_creators", ())
    kept["variable_creators"] = own
    try:
        yield
    finally:
        kept["variable_creators"] = before


@contextlib.contextmanager
def _init_scope(graph, devices):
    if graph is None:
        before, current = eager_scope.name, _core.current()
        if current is not None:  # variables that a function creates are named by its scopes
            eager_scope.name = current._name_stack + "/" if current._name_stack else ""
        device = devices[-1] if devices and isinstance(devices[-1], str) else None
        try:
            with _DefaultGraph(None), _creators_of(current), _eager_device(device) if device else contextlib.nullcontext():
                yield
        finally:
            eager_scope.name = before
        return
    scope = get_default_graph().get_name_scope()
    with graph.as_default(), graph.control_dependencies(None), graph._devices(devices):
        with name_scope(scope + "/" if scope else None):
            yield


def add_to_collection(name, value):
    """Appends a value to a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names, value):
    """Appends a value to several collections of the default graph."""
    get_default_graph().add_to_collections(names, value)


def get_collection(key, scope=None):
    """Returns the values of a collection of the default graph."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key):
    """Returns the list of a collection of the default graph itself."""
    return get_default_graph().get_collection_ref(key)


def prepend_name_scope(name, import_scope):
    """Returns a name with the prefix of an import scope."""
    if not import_scope:
        return name
    return re.sub(r"([\^]|loc:@|^)(.*)", r"\1%s/\2" % import_scope.rstrip("/"), name, count=1)


def strip_name_scope(name, export_scope):
    """Returns a name without the prefix of an export scope."""
    if not export_scope:
        return name
    return re.sub(r"([\^]|loc:@|^)%s[\/]+(.*)" % re.escape(export_scope.rstrip("/")), r"\1\2", name)


def op_scope(values, name, default_name=None):
    """The old spelling of name_scope."""
    return name_scope(name, default_name, values)
