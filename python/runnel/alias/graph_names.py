"""tensorflow.python.framework: helpers of graphs and shapes without a public name (smart_cond, common_shapes, graph_util)."""

from runnel.core import tensor_shape
from runnel.flow.branches import checked_smart_cond as smart_cond, smart_constant_value  # noqa: F401
from runnel.ops.array_ops import broadcast_static_shape

broadcast_shape = broadcast_static_shape


def smart_case(pred_fn_pairs, default=None, exclusive=False, name="smart_case"):
    """Like tf.case, without the branches whose conditions are known to be False, and without those after one known to be True."""
    from runnel.flow.cases import case
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    open_pairs = []
    for pred, function in pairs:
        known = smart_constant_value(pred)
        if known is None:
            open_pairs.append((pred, function))
        elif known:
            default = function
            break
    return case(open_pairs, default=default, exclusive=exclusive, name=name) if open_pairs else default()


def is_broadcast_compatible(shape_x, shape_y):
    """Tells whether two shapes can be broadcast. Returns False for shapes of unknown rank."""
    if tensor_shape.as_shape(shape_x).rank is None or tensor_shape.as_shape(shape_y).rank is None:
        return False
    try:
        broadcast_static_shape(shape_x, shape_y)
    except ValueError:
        return False
    return True


def graph_defs_equal(graph_def_1, graph_def_2, treat_nan_as_equal=False):
    """Tells whether two GraphDefs have the same nodes and functions, in any order."""
    import math

    def rows(message):
        found = []
        for field, value in message._rows():
            if field.label == "m":
                value = sorted((key, rows(item) if hasattr(item, "_rows") else item) for key, item in value.items())
            elif field.label == "*":
                value = [rows(item) if field.type == "message" else number(item) for item in value]
            elif field.type == "message":
                value = rows(value)
            found.append((field.name, number(value)))
        return found

    def number(value):
        return "nan" if treat_nan_as_equal and isinstance(value, float) and math.isnan(value) else value

    def parts(graph):
        functions = sorted((rows(function.signature), sorted(map(repr, map(rows, function.node_def))), sorted(function.ret.items()))
                           for function in graph.library.function)
        return sorted((node.name, rows(node)) for node in graph.node), functions
    return parts(graph_def_1) == parts(graph_def_2)


def sanitize_spec_name(name):
    """Returns a name with which an argument of a function can be called."""
    if not name:
        return "unknown"
    name = "".join(char if char.isascii() and char.isalnum() else "_" for char in name.lower())
    return name if name[0].isalpha() else "tensor_" + name
