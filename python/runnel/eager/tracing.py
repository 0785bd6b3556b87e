"""Tracing of Python functions into functions of a graph's library.

The body is traced once, in a graph of its own. Tensors that it reads from the surrounding graph become additional
arguments, which the caller passes (`captured`).
"""

import contextlib
import itertools
import re
import threading
import weakref

from runnel import _core, nest, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Graph, Tensor, executing_eagerly, get_default_graph
from runnel.eager.effect_order import EffectOrder
from runnel.eager.func_graph import FuncGraph
from runnel.functions.trace_values import InternalPlaceholderContext

_numbers = itertools.count()
_library = None  # in eager execution: the graph that also holds the eager context's functions
_shared: set = set()  # names of the functions that the eager context has
_traced: set = set()  # names of the library's functions that are traces, and of those that they call


def _eager_library():
    global _library
    from runnel.eager import context as eager
    if _library is None:
        _library = Graph()
    _library.seed = eager.seed_state()[0]
    return _library


def is_library(graph):
    """Tells whether a graph is the one that holds the eager context's functions."""
    return graph is _library


def exchange_library(other):
    """The eager context is another one: `other` is what this function returned for it, or None for one without functions."""
    global _library
    before = _library, set(_shared), set(_traced)
    _library, shared, traced = other or (None, (), ())
    _shared.clear()
    _shared.update(shared)
    _traced.clear()
    _traced.update(traced)
    return before


class _Helper(threading.local):
    is_one = False  # this thread helps another one that traces, and waits for it


helper = _Helper()


class _Apart(threading.local):
    key = None


_apart = _Apart()
apart_count = [0]  # how many threads are in traces_apart


@contextlib.contextmanager
def traces_apart(key):
    """A context manager in which functions have traces of their own, by a key: what they do depends on more than their arguments."""
    before, _apart.key = _apart.key, key
    apart_count[0] += 1
    try:
        yield
    finally:
        apart_count[0] -= 1
        _apart.key = before


def apart_key():
    """Returns the key of the traces_apart around the caller, or None."""
    return _apart.key


_one_at_a_time = threading.RLock()


def exclusive():
    """A context manager for tracing in eager execution: several threads trace one after the other."""
    return contextlib.nullcontext() if helper.is_one or not executing_eagerly() else _one_at_a_time


def _share():
    """Adds the library's functions to the eager context."""
    for name, definition in _core.functions_of(_library, _shared).items():
        _core.eager_add_function(definition)
        _shared.add(name)


def make_callable(graph, traced):
    """Adds a traced function, and those that it calls, to the library of a graph that calls it."""
    known = graph._scopes.setdefault(__name__, set())
    missing = traced.functions - known
    if missing:
        for name, definition in _core.functions_of(_library, _traced - missing).items():
            if name in missing:
                _core.add_function_def(graph, definition)
        known.update(missing)


def eager_functions():
    """Returns {name: serialized FunctionDef} of the eager context's functions."""
    return _core.functions_of(_eager_library())


def visible_functions():
    """Returns {name: serialized FunctionDef} of the functions that a call finds here: the eager context's or the graph's."""
    return eager_functions() if executing_eagerly() else _core.functions_of(get_default_graph())


def add_functions(definitions):
    """Adds FunctionDefs to the eager context, or to the graph; they may call each other."""
    is_eager = executing_eagerly()
    library = _eager_library() if is_eager else get_default_graph()
    for definition in definitions:
        _core.add_function_def(library, definition)
    if is_eager:
        _share()


class _Creation(threading.local):
    """What happens if a variable is created while a function is traced: None if none is, or [allowed, variables]."""

    current: list = []
    is_in_plain_graph = False
    is_lifted = False  # the variable is made by tf.Variable, and not directly as an object of its class


_creation = _Creation()


def created_count():
    """Returns how many variables the trace that is under way has created."""
    return len(_creation.current[1]) if _creation.current else 0


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


class MakesVariables(Exception):
    """A function that a plain graph calls makes variables, so its operations must be part of that graph."""


@contextlib.contextmanager
def called_by_plain_graph():
    """A context manager for tracing a function that a plain graph calls: tf.Variable raises MakesVariables in it."""
    before, _creation.is_in_plain_graph = _creation.is_in_plain_graph, True
    try:
        yield
    finally:
        _creation.is_in_plain_graph = before


@contextlib.contextmanager
def lifted_creation():
    """A context manager in which tf.Variable makes a variable, which outlives the trace that is under way."""
    if _creation.is_in_plain_graph and isinstance(_core.current(), FuncGraph):
        raise MakesVariables
    before, _creation.is_lifted = _creation.is_lifted, True
    try:
        yield
    finally:
        _creation.is_lifted = before


def lifts_variables():
    """Tells whether tf.Variable makes the variable that is being made."""
    return _creation.is_lifted


def note_created(variable):
    """Called for each variable of eager execution. Raises ValueError if a trace is under way in which none may be created."""
    if not _creation.current or not _creation.is_lifted:
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
    inputs = [(x, lifted(value) if _is_inside(value) else value) for x, value in inputs]
    if any(not isinstance(value, _core.EagerTensor) for _, value in inputs):
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


def _is_inside(value):
    """Tells whether a value is a tensor of a function under construction."""
    return isinstance(value, Tensor) and isinstance(value._graph, FuncGraph)


_symbols = None


def symbolic_graph():
    """In eager execution: returns the graph of tensors without values, which describes models."""
    global _symbols
    if _symbols is None:
        _symbols = FuncGraph("symbols", outer=_eager_library())
    return _symbols


def is_symbolic(graph):
    """Tells whether a graph is the one of `symbolic_graph`."""
    return graph is _symbols


class Traced:
    """A function of the library: its `name`, the tensors it captures (`captured`), and the form of its results.

    `functions` are the names of the functions that a graph needs to call it: its own, and those of the functions that it calls.
    """

    def __init__(self, name, graph, structure, results, has_effects, functions=()):
        self.graph = graph
        self.name = name
        self.functions = frozenset((name, *functions))
        self.is_shared = False  # the eager context is known to have it
        self.captured = list(graph.captured)
        self.deferred = list(graph.deferred.values())  # captures that each call computes
        self.structure = structure
        self.dtypes = [x.dtype for x in results]
        self.shapes = [x.shape for x in results]
        self.has_effects = has_effects  # known only if traced with `in_order`

    def share(self):
        """Sees to it that the eager context has the function."""
        if not self.is_shared:
            _share()
            self.is_shared = True

    @property
    def attr(self):
        """Returns the AttrValue of the function."""
        from runnel.core.protobuf import message_class
        value = message_class("AttrValue")()
        value.func.name = self.name
        return value


def trace(fn, specs, stem, in_order=False, names=(), actual=(), attributes=None):
    """Traces `fn` with arguments of (type, shape) `specs` into a function of the current graph.

    With `in_order`, side effects run in program order and all before the function returns; otherwise only those run that
    its results depend on. `names` are those of the arguments, or None. `actual` are the
    arguments of the call for which it is traced, if there is one.
    """
    def arguments(body):
        for index, (dtype, shape) in enumerate(specs):
            own = names[index] if index < len(names) and names[index] else "arg%d" % index
            body.arguments.append(raw_ops.Placeholder(dtype=dtype, shape=shape, name=re.sub("[^A-Za-z0-9_.]", "_", own).lstrip("_.") or "arg"))
        return lambda: fn(*body.arguments)

    with exclusive():
        return _trace(arguments, stem, in_order, actual, attributes)


def trace_typed(fn, function_type, variables, stem, actual=(), in_order=True, attributes=None):
    """Traces `fn(bound arguments)` for arguments of a FunctionType.

    `variables` are {number: variable} of those among them, `attributes` {name: serialized AttrValue} of the FunctionDef.
    """
    def arguments(body):
        bound = function_type.placeholder_arguments(InternalPlaceholderContext(body, variables))
        body.arguments = [x if x._graph is body else body.as_argument(x) for x in function_type.unpack_inputs(bound)]
        return lambda: fn(bound)

    with exclusive():
        return _trace(arguments, stem, in_order, actual, attributes)


def _trace(make_arguments, stem, in_order, actual, attributes=None):
    is_eager, library = executing_eagerly(), _eager_library()
    outer = library if is_eager else get_default_graph()
    body = FuncGraph(stem.removeprefix("__inference_"), outer=outer)
    body.actual = list(actual)
    order = EffectOrder(body)
    with body.as_default():
        run = make_arguments(body)
        with order if in_order else contextlib.nullcontext():
            result = run()
            flat = [convert_to_tensor(x) for x in nest.flatten(result)]
        flat = [x if x._graph is body else body._take(x) for x in flat]
        if order.last:
            flat = order.after_all(flat or [convert_to_tensor(False)])
        # A function cannot return an argument directly.
        flat = [raw_ops.Identity(input=x) if x.op.type == "Placeholder" else x for x in flat]
        body.run_exit_callbacks()
    name = "%s_%d" % (stem, next(_numbers))
    called = _core.functions_of(body)
    for definition in called.values():
        _core.add_function_def(library, definition)
    deferred = [x for one in body.deferred.values() for x in one.tensors]
    body.inputs, body.outputs = body.arguments + body.standing + deferred, flat
    body.control_outputs = list(order.last)
    _core.define_function(library, name, body, body.inputs, flat, None, body.control_outputs, attributes or {})
    traced = Traced(name, body, result, flat, bool(order.last), called)
    _traced.update(traced.functions)
    if is_eager:
        traced.share()
    else:
        make_callable(outer, traced)
    return traced
