"""Loops: tf.while_loop."""

import builtins

from runnel import nest, raw_ops
from runnel.core import tensor_shape
from runnel.core.convert import constant, convert_to_tensor
from runnel.core.framework import GraphKeys, executing_eagerly, get_default_graph, name_scope
from runnel.flow.flow_contexts import _is_array
from runnel.flow.loop_context import WhileContext


def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True,
               swap_memory=False, name=None, maximum_iterations=None, return_same_structure=False):
    """Repeats `body` while `cond` is true. Returns the final loop variables.

    Args:
      cond: a function of the loop variables that returns a scalar bool.
      body: a function of the loop variables that returns the next ones, with the same types and structure.
      loop_vars: a nest of tensors, TensorArrays, SparseTensors, or values that convert to tensors.
      shape_invariants: the shapes that the variables keep, in the same structure; by default their initial shapes.
      parallel_iterations: how many iterations may run at once.
      back_prop: if False, gradients do not pass through.
      swap_memory: values kept for gradients may leave the device's memory.
      name: name of the scope of the new operations.
      maximum_iterations: a scalar limit on the number of iterations.
      return_same_structure: keeps a single variable as a list of one.
    """
    if not callable(cond):
        raise TypeError("cond must be callable.")
    if not callable(body):
        raise TypeError("body must be callable.")
    if isinstance(loop_vars, (list, builtins.tuple)) and not len(loop_vars):
        raise ValueError("No loop variables provided")
    if parallel_iterations < 1:
        raise TypeError("parallel_iterations must be a positive integer.")
    if executing_eagerly():
        return _eager_loop(cond, body, loop_vars, maximum_iterations, return_same_structure)
    with name_scope(name, "while", nest.flatten(loop_vars)):
        if maximum_iterations is not None:
            maximum_iterations = convert_to_tensor(maximum_iterations, name="maximum_iterations")
            if maximum_iterations.shape.ndims not in (None, 0):
                raise ValueError("maximum_iterations must be a scalar, saw shape: %s" %
                                 maximum_iterations.shape)
            counter = constant(0, dtype=maximum_iterations.dtype, name="iteration_counter")
            inner_cond, inner_body = cond, body
            unwrap = nest.is_nested(loop_vars) and not isinstance(loop_vars, dict)

            def cond(i, values):  # noqa: F811
                is_early = raw_ops.Less(x=i, y=maximum_iterations)
                return raw_ops.LogicalAnd(x=is_early, y=inner_cond(*values) if unwrap else inner_cond(values))

            def body(i, values):  # noqa: F811
                after = i + 1
                result = inner_body(*values) if unwrap else inner_body(values)
                if unwrap and not (nest.is_nested(result) and len(result) == len(values)
                                   and not _is_array(result)):
                    result = type(values)([result]) if not hasattr(values, "_fields") else result
                return after, result

            loop_vars = (counter, loop_vars)
            if shape_invariants is not None:
                shape_invariants = (tensor_shape.TensorShape([]), shape_invariants)
        context = WhileContext(maximum_iterations, parallel_iterations, back_prop, swap_memory)
        loop_vars = _as_loop_vars(loop_vars)
        shape_invariants = _by_component(loop_vars, shape_invariants)
        keep = return_same_structure or maximum_iterations is not None
        if context.outer_context is None:
            get_default_graph().add_to_collection(GraphKeys.WHILE_CONTEXT, context)
        result = context.build(cond, body, loop_vars, shape_invariants, keep)
        if maximum_iterations is None:
            return result
        result = result[1]
        if not return_same_structure and isinstance(result, (list, builtins.tuple)) and len(result) == 1:
            return result[0]
        return result


def _by_component(values, invariants):
    """Returns shape invariants with those of the parts in place of the one shape of a sparse or ragged tensor."""
    if isinstance(values, dict) and isinstance(invariants, dict):
        return {key: _by_component(values[key], invariants[key]) for key in invariants}
    if isinstance(values, (list, builtins.tuple)) and isinstance(invariants, (list, builtins.tuple)) and len(values) == len(invariants):
        return [_by_component(value, invariant) for value, invariant in zip(values, invariants)]
    if not getattr(values, "_is_composite", False) or not isinstance(invariants, tensor_shape.TensorShape):
        return invariants
    from runnel.core.composite_specs import RaggedTensorSpec, SparseTensorSpec
    spec = values._type_spec
    if isinstance(spec, SparseTensorSpec):
        if invariants.rank not in (None, 1):
            raise ValueError("Expected a shape with 1 dimension. Obtained: %s which has %d dimensions." % (invariants, invariants.rank))
        rank = invariants.dims[0].value if invariants.rank else None  # the invariant is the shape of dense_shape
        spec = SparseTensorSpec(None if rank is None else [None] * rank, spec.dtype)
    elif isinstance(spec, RaggedTensorSpec):
        spec = RaggedTensorSpec(invariants, spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    return [part.shape for part in spec._flat_specs()]


def _as_loop_vars(loop_vars):
    """Converts the leaves to tensors, TensorArrays or composite tensors."""
    def one(value):
        if _is_array(value) or getattr(value, "_is_composite", False):
            return value
        return convert_to_tensor(value)
    return nest.map_structure(one, loop_vars)


def _eager_loop(cond, body, loop_vars, maximum_iterations, return_same_structure):
    packs = nest.is_nested(loop_vars) and not isinstance(loop_vars, dict)
    turns = 0
    limit = None if maximum_iterations is None else int(maximum_iterations)
    while (limit is None or turns < limit) and bool(
            cond(*loop_vars) if packs else cond(loop_vars)):
        result = body(*loop_vars) if packs else body(loop_vars)
        if packs and not (nest.is_nested(result) and len(result) == len(loop_vars)):
            result = [result]
        loop_vars = result
        turns += 1
    if packs and not return_same_structure and len(loop_vars) == 1:
        return loop_vars[0]
    return loop_vars
