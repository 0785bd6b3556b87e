"""Weights of losses and metrics: scalars, or tensors of the values' rank with dimensions of 1 or the values' size."""

from runnel import raw_ops
from runnel.core.convert import constant_value, convert_to_tensor
from runnel.core.framework import control_dependencies, executing_eagerly, name_scope
from runnel.ops import array_ops
from runnel.ops.control_flow import Assert, cond, no_op

_PREFIX = "weights can not be broadcast to values."


def _valid_dims(weights_shape, values_shape):
    from runnel.sets import set_difference
    with name_scope(None, "has_invalid_dims", [weights_shape, values_shape]) as scope:
        column = array_ops.expand_dims(values_shape, -1)
        valid = array_ops.concat((column, array_ops.ones_like(column)), axis=1)
        invalid = set_difference(array_ops.expand_dims(weights_shape, -1), valid)
        count = array_ops.size(invalid.values, name="num_invalid_dims")
        return raw_ops.Equal(x=0, y=count, name=scope)


def _valid_shape(weights_rank, weights_shape, values_rank, values_shape):
    with name_scope(None, "has_valid_nonscalar_shape", [weights_rank, weights_shape, values_rank, values_shape]) as scope:
        same = raw_ops.Equal(x=values_rank, y=weights_rank, name="is_same_rank")
        return cond(same, lambda: _valid_dims(weights_shape, values_shape), lambda: same, name=scope)


def _described(x, name):
    """Returns (tensor, shape, rank), built in a scope of their own."""
    with name_scope(None, name, [x]) as scope:
        x = convert_to_tensor(x, name=scope)
        return x, array_ops.shape(x, name="shape"), array_ops.rank(x, name="rank")


def _known_to_fit(weights, values, w_shape, v_shape):
    """Returns the name of a static check that holds, or None. Raises ValueError if the weights cannot fit."""
    one, two = weights.shape.ndims, values.shape.ndims
    if one is None or two is None:
        return None
    if one == 0:
        return "static_scalar_check_success"
    if one != two:
        raise ValueError("%s values.rank=%s. weights.rank=%s. values.shape=%s. weights.shape=%s. Received weights=%s, values=%s"
                         % (_PREFIX, two, one, values.shape, weights.shape, weights, values))
    w_known, v_known = constant_value(w_shape), constant_value(v_shape)
    if w_known is None or v_known is None:
        return None
    for i, (a, b) in enumerate(zip(w_known, v_known)):
        if a not in (1, b):
            raise ValueError("%s Mismatch at dim %d. values.shape=%s, weights.shape=%s. Received weights=%s, values=%s" %
                             (_PREFIX, i, v_known, w_known, weights, values))
    return "static_dims_check_success"


def assert_broadcastable(weights, values):
    """Returns an operation that checks that `weights` broadcast to `values`. Raises ValueError if they are known not to."""
    with name_scope(None, "assert_broadcastable", [weights, values]) as scope:
        weights, w_shape, w_rank = _described(weights, "weights")
        values, v_shape, v_rank = _described(values, "values")
        fits = _known_to_fit(weights, values, w_shape, v_shape)
        if executing_eagerly():
            return None
        if fits is not None:
            return no_op(name=fits)
        scalar = raw_ops.Equal(x=0, y=w_rank, name="is_scalar")
        data = (_PREFIX, "weights.shape=", weights.name, w_shape, "values.shape=", values.name, v_shape, "is_scalar=", scalar)
        valid = cond(scalar, lambda: scalar, lambda: _valid_shape(w_rank, w_shape, v_rank, v_shape), name="is_valid_shape")
        return Assert(valid, data, name=scope)


def broadcast_weights(weights, values):
    """Broadcasts `weights` to the shape of `values`."""
    with name_scope(None, "broadcast_weights", [weights, values]) as scope:
        values = convert_to_tensor(values, name="values")
        weights = convert_to_tensor(weights, values.dtype.base_dtype, name="weights")
        if weights.shape.is_fully_defined() and values.shape.is_fully_defined() and \
                weights.shape.is_compatible_with(values.shape):
            return weights
        check = assert_broadcastable(weights, values)
        with control_dependencies([] if check is None else [check]):
            return raw_ops.Mul(x=weights, y=array_ops.ones_like(values), name=scope)


def _may_be_one(shape):
    """Tells whether the last dimension may be 1."""
    return shape.ndims is None or shape.ndims > 0 and shape.as_list()[-1] in (None, 1)


def remove_squeezable_dimensions(labels, predictions, expected_rank_diff=0, name=None):
    """Removes a last dimension of size 1 that labels or predictions have in excess. Returns both.

    Args:
      labels: a tensor.
      predictions: a tensor.
      expected_rank_diff: how many dimensions more the predictions should have.
      name: name of the scope.
    """
    with name_scope(name, "remove_squeezable_dimensions", [labels, predictions]):
        predictions, labels = convert_to_tensor(predictions), convert_to_tensor(labels)
        one, two = predictions.shape, labels.shape
        if one.ndims is not None and two.ndims is not None:
            extra = one.ndims - two.ndims - expected_rank_diff
            if extra == 1 and _may_be_one(one):
                predictions = array_ops.squeeze(predictions, [-1])
            elif extra == -1 and _may_be_one(two):
                labels = array_ops.squeeze(labels, [-1])
            return labels, predictions
        extra = array_ops.rank(predictions) - array_ops.rank(labels)

        def squeezed(x, by):
            return cond(raw_ops.Equal(x=expected_rank_diff + by, y=extra),
                        lambda: array_ops.squeeze(x, [-1]), lambda: x)
        if _may_be_one(one):
            predictions = squeezed(predictions, 1)
        if _may_be_one(two):
            labels = squeezed(labels, -1)
        return labels, predictions
