"""Shapes of the results of a call, which arguments may tell better than the trace of the function."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.graph_io import import_graph_def
from runnel.core.tensor_util import constant_value
from runnel.eager.func_graph import FuncGraph, describe_handle

_INTEGERS = (dtypes.int32, dtypes.int64)
_MOST_ELEMENTS = 64  # of a constant that may become a shape


def inferred_shapes(traced, args):
    """Returns the shapes of the results of a traced function for these arguments, which include what it captures."""
    if all(shape.is_fully_defined() for shape in traced.shapes):
        return traced.shapes
    inputs = traced.graph.inputs
    constants = [_constant(x) for x in args]
    if not any(value is not None or _says_more(x, own) for x, own, value in zip(args, inputs, constants)):
        return traced.shapes
    graph = FuncGraph(traced.graph.name, collections={})
    with graph.as_default():
        given = {}
        for x, own, value in zip(args, inputs, constants):
            if value is not None:
                given[own.name] = convert_to_tensor(value, dtype=own.dtype)
                continue
            given[own.name] = raw_ops.Placeholder(dtype=own.dtype, shape=x.shape if _says_more(x, own) else own.shape)
            if own.dtype == dtypes.resource:
                describe_handle(given[own.name], x)
        body = traced.graph.as_graph_def()
        read = {text if ":" in text else text + ":0" for node in body.node for text in node.input if not text.startswith("^")}
        import_graph_def(body, name="body", input_map={name: x for name, x in given.items() if name in read})
    results = [given.get(x.name) if x.name in given else graph.get_tensor_by_name("body/" + x.name) for x in traced.graph.outputs]
    return [shape if not shape.is_compatible_with(x.shape) else shape.merge_with(x.shape) for x, shape in zip(results, traced.shapes)]


def _constant(x):
    """Returns the value of a constant that may become a shape, or None."""
    if x.dtype not in _INTEGERS or (x.shape.num_elements() or _MOST_ELEMENTS + 1) > _MOST_ELEMENTS:
        return None
    return constant_value(x)


def _says_more(x, own):
    """Tells whether an argument has a shape that is more specific than that of the argument of the trace."""
    if x.dtype == dtypes.resource or own.shape.is_fully_defined():
        return False
    return x.shape.ndims is not None and (own.shape.ndims is None or any(
        a is not None and b is None for a, b in zip(x.shape.as_list(), own.shape.as_list())))
