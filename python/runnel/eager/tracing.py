"""Tracing of Python functions into functions of a graph's library.

The body is traced once, in a graph of its own. Tensors that it reads from the surrounding graph become additional
arguments, which the caller passes (`captured`).
"""

import contextlib
import itertools

from runnel import _core, nest, raw_ops
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
            self._inner[id(tensor)] = found
            self.standing.append(found)
            self.captured.append(tensor_outside)
        return found


_symbols = None


def symbolic_graph():
    """In eager execution: returns the graph of tensors without values, which describes models."""
    global _symbols
    if _symbols is None:
        _symbols = Body(_eager_library())
    return _symbols


class Traced:
    """A function of the library: its `name`, the tensors it captures (`captured`), and the form of its results."""

    def __init__(self, name, captured, structure, results, has_effects):
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


def trace(fn, specs, stem, in_order=False):
    """Traces `fn` with arguments of (type, shape) `specs` into a function of the current graph.

    With `in_order`, side effects run in program order and all before the function returns; otherwise only those run that
    its results depend on.
    """
    is_eager = executing_eagerly()
    outer = _eager_library() if is_eager else get_default_graph()
    body = Body(outer)
    order = EffectOrder(body)
    with body.as_default():
        for index, (dtype, shape) in enumerate(specs):
            body.arguments.append(raw_ops.Placeholder(dtype=dtype, shape=shape, name="arg%d" % index))
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
    return Traced(name, list(body.captured), result, flat, bool(order.last))
