"""Tracing of Python functions into functions of a graph's library.

The body is traced once, in a graph of its own. Tensors that it reads from the surrounding graph become additional
arguments, which the caller passes (`captured`).
"""

import contextlib
import itertools
import re
import threading
import weakref

from runnel import _core, dtypes, nest, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Graph, executing_eagerly, get_default_graph
from runnel.eager.effect_order import EffectOrder

_numbers = itertools.count()
_library = None  # in eager execution: the graph that also holds the eager context's functions
_shared: set = set()  # names of the functions that the eager context has


def _eager_library():
    global _library
    from runnel.eager import context as eager
    if _library is None:
        _library = Graph()
    _library.seed = eager.seed_state()[0]
    return _library


def forget_library():
    """The eager context is a new one, which has no functions."""
    global _library
    _library = None
    _shared.clear()


class _Helper(threading.local):
    is_one = False  # this thread helps another one that traces, and waits for it


helper = _Helper()
_one_at_a_time = threading.RLock()


def exclusive():
    """A context manager for tracing in eager execution: several threads trace one after the other."""
    return contextlib.nullcontext() if helper.is_one or not executing_eagerly() else _one_at_a_time


def _share():
    """Adds the library's functions to the eager context."""
    for name, definition in _core.functions_of(_library, _shared).items():
        _core.eager_add_function(definition)
        _shared.add(name)


def eager_functions():
    """Returns {name: serialized FunctionDef} of the eager context's functions."""
    return _core.functions_of(_eager_library())


def add_eager_functions(definitions):
    """Adds FunctionDefs to the eager context; they may call each other."""
    for definition in definitions:
        _core.add_function_def(_eager_library(), definition)
    _share()


class Body(Graph):
    """The graph of a function under construction."""

    def __init__(self, outer):
        super().__init__()
        self.outer = outer
        self.captured = []  # tensors of the surrounding graph
        self.standing = []  # the arguments of this graph that stand for them
        self._inner = {}    # id of a captured tensor -> the argument that stands for it
        self.arguments = []
        self.actual = []    # the tensors for which they stand in the first call
        self.seed = outer.seed
        self._building_function = True
        self.outer_graph = None if outer is _library else outer
        self._capture = self._take

    def _take(self, tensor):
        if tensor.graph is self:
            return tensor
        found = self._inner.get(id(tensor))
        if found is None:
            if tensor.graph is not self.outer and tensor.op is not None and isinstance(self.outer, Body):
                tensor_outside = self.outer._take(tensor)
            else:
                tensor_outside = tensor
            with self.as_default(), self.control_dependencies(None):
                found = raw_ops.Placeholder(dtype=tensor.dtype.base_dtype, shape=tensor.shape,
                                            name="captured_%d" % len(self.captured))
            if tensor.dtype == dtypes.resource:
                _describe_handle(found, tensor)
            self._inner[id(tensor)] = found
            self.standing.append(found)
            self.captured.append(tensor_outside)
        return found


def _describe_handle(standing, handle):
    """Tells shape functions and gradient rules what is behind the argument that stands for the handle of a variable."""
    from runnel.core.protobuf import message_class
    from runnel.ops.resource_variable import variable_of
    variable = variable_of(handle)
    if variable is None or variable.shape.ndims is None:
        return
    data = message_class("CppShapeInferenceResult")().handle_data
    data.is_set = True
    data.shape_and_type.add(dtype=variable.dtype.as_datatype_enum, shape=variable.shape.as_proto())
    standing._set_handle_data(data.SerializeToString())


class _Creation(threading.local):
    """What happens if a variable is created while a function is traced: None if none is, or [allowed, variables]."""

    current: list = []


_creation = _Creation()


@contextlib.contextmanager
def creation_of_variables(allowed):
    """A context manager for a trace in which variables may be created, or not. Its value is the list of those that are.

    Inside another trace, that of the caller decides.
    """
    if _creation.current:
        yield []
        return
    _creation.current = [allowed, []]
    try:
        yield _creation.current[1]
    finally:
        _creation.current = []


def note_created(variable):
    """Called for each variable of eager execution. Raises ValueError if a trace is under way in which none may be created."""
    if not _creation.current:
        return
    if not _creation.current[0]:
        raise ValueError("tf.function only supports singleton tf.Variables created on the first call. Make sure the tf.Variable is only created once "
                         "or created outside tf.function. See https://www.tensorflow.org/guide/function#creating_tfvariables for more information.")
    _creation.current[1].append(weakref.ref(variable))


def lifted(tensor):
    """Returns the value of a tensor of a function under construction, for the arguments of its first call."""
    body = tensor.graph
    pending, seen = [tensor.op], set()
    while pending:
        op = pending.pop()
        if op in seen:
            continue
        seen.add(op)
        pending += [x.op for x in op.inputs] + list(op.control_inputs)
    inputs = [(x, value) for x, value in zip(body.arguments + body.standing, body.actual + body.captured) if x.op in seen]
    if any(x.op in seen and not isinstance(value, _core.EagerTensor) for x, value in inputs):
        raise ValueError("Unable to lift tensor %r: the initial value of a variable that a tf.function creates depends on an argument without a "
                         "value" % tensor)
    # Only what the tensor depends on: the rest of the body may have side effects.
    from runnel.core.graph_io import import_graph_def
    from runnel.graph_util import extract_sub_graph
    part = Graph()
    with part.as_default():
        import_graph_def(extract_sub_graph(body.as_graph_def(), [tensor.op.name] + [x.op.name for x, _ in inputs]), name="")
        result = raw_ops.Identity(input=part.get_tensor_by_name(tensor.name))
    name = "__initializer_%d" % next(_numbers)
    for definition in _core.functions_of(part).values():
        _core.add_function_def(_library, definition)
    _core.define_function(_library, name, part, [part.get_tensor_by_name(x.name) for x, _ in inputs], [result], None)
    _share()
    return raw_ops.StatefulPartitionedCall(args=[value for _, value in inputs], Tout=[tensor.dtype], f=name)[0]


_symbols = None


def symbolic_graph():
    """In eager execution: returns the graph of tensors without values, which describes models."""
    global _symbols
    if _symbols is None:
        _symbols = Body(_eager_library())
    return _symbols


class Traced:
    """A function of the library: its `name`, the tensors it captures (`captured`), and the form of its results."""

    def __init__(self, name, graph, structure, results, has_effects):
        captured = list(graph.captured)
        self.graph = graph
        self.name = name
        self.captured = captured
        self.structure = structure
        self.dtypes = [x.dtype for x in results]
        self.shapes = [x.shape for x in results]
        self.has_effects = has_effects  # known only if traced with `in_order`

    @property
    def attr(self):
        """Returns the AttrValue of the function."""
        from runnel.core.protobuf import message_class
        value = message_class("AttrValue")()
        value.func.name = self.name
        return value


def trace(fn, specs, stem, in_order=False, names=(), actual=()):
    """Traces `fn` with arguments of (type, shape) `specs` into a function of the current graph.

    With `in_order`, side effects run in program order and all before the function returns; otherwise only those run that
    its results depend on. `names` are those of the arguments, or None. `actual` are the
    arguments of the call for which it is traced, if there is one.
    """
    with exclusive():
        return _trace(fn, specs, stem, in_order, names, actual)


def _trace(fn, specs, stem, in_order, names, actual):
    is_eager = executing_eagerly()
    outer = _eager_library() if is_eager else get_default_graph()
    body = Body(outer)
    body.actual = list(actual)
    order = EffectOrder(body)
    with body.as_default():
        for index, (dtype, shape) in enumerate(specs):
            own = names[index] if index < len(names) and names[index] else "arg%d" % index
            body.arguments.append(raw_ops.Placeholder(dtype=dtype, shape=shape, name=re.sub("[^A-Za-z0-9_.]", "_", own).lstrip("_.") or "arg"))
        with order if in_order else contextlib.nullcontext():
            result = fn(*body.arguments)
            flat = [convert_to_tensor(x) for x in nest.flatten(result)]
        flat = [x if x.graph is body else body._take(x) for x in flat]
        if order.last:
            flat = order.after_all(flat or [convert_to_tensor(False)])
        # A function cannot return an argument directly.
        flat = [raw_ops.Identity(input=x) if x.op.type == "Placeholder" else x for x in flat]
    name = "%s_%d" % (stem, next(_numbers))
    for definition in _core.functions_of(body).values():
        _core.add_function_def(outer, definition)
    _core.define_function(outer, name, body, body.arguments + body.standing, flat, None)
    if is_eager:
        _share()
    body.inputs, body.outputs = body.arguments + body.standing, flat
    return Traced(name, body, result, flat, bool(order.last))
