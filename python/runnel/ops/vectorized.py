"""tf.vectorized_map: a function of one row, applied to all rows."""

from runnel import nest
from runnel.autograph.conversion import traceable_in_graph
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import executing_eagerly
from runnel.ops import array_ops, functional_ops


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    """Applies `fn` to the rows of `elems` and stacks the results.

    Args:
      fn: a function of one row, in the structure of `elems`.
      elems: tensors with equal first dimensions; those of size 1 are repeated.
      fallback_to_while_loop, warn: accepted; rows are always computed one by one.
    """
    fn = traceable_in_graph(fn)
    flat = [convert_to_tensor(x) for x in nest.flatten(elems)]
    sizes = {x.shape.as_list()[0] for x in flat} - {None, 1}
    if len(sizes) > 1:
        raise ValueError("Inputs to vectorized_map must have the same first dimension, or 1. Got: %s" % sorted(sizes))
    if sizes and any(x.shape.as_list()[0] == 1 for x in flat):
        count = sizes.pop()
        flat = [array_ops.repeat(x, count, 0) if x.shape.as_list()[0] == 1 else x for x in flat]
    elems = nest.pack_sequence_as(elems, flat) if nest.is_nested(elems) else flat[0]
    rows = flat[0].shape.as_list()[0]
    if rows is not None and (executing_eagerly() or rows <= 16):
        results = [fn(nest.map_structure(lambda x, i=i: x[i], elems)) for i in range(rows)]
        return nest.map_structure(lambda *parts: array_ops.stack(parts), *results)
    return functional_ops.map_fn(fn, elems, fn_output_signature=_types(fn, elems))


def pfor(loop_fn, iters, fallback_to_while_loop=True, parallel_iterations=None, warn=False):
    """Calls `loop_fn` with the numbers from 0 to `iters` - 1 and stacks the results; they are computed one by one."""
    from runnel.ops.math_ops import range as numbers
    return vectorized_map(loop_fn, numbers(iters))


def _types(fn, elems):
    """Returns the types of the results of `fn`, by calling it in a graph that is thrown away."""
    from runnel.eager.func_graph import FuncGraph
    with FuncGraph("vectorized_map").as_default():
        from runnel import raw_ops
        row = nest.map_structure(lambda x: raw_ops.Placeholder(dtype=x.dtype, shape=x.shape[1:]), elems)
        return nest.map_structure(lambda x: convert_to_tensor(x).dtype, fn(row))
