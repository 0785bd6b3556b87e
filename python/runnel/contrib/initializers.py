"""Initializers and regularizers of tf.contrib.layers."""

import math
import numbers

from runnel import dtypes, nn
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import GraphKeys, add_to_collection, get_collection, name_scope
from runnel.ops import math_ops, random_ops


def variance_scaling_initializer(factor=2.0, mode="FAN_IN", uniform=False, seed=None,
                                 dtype=dtypes.float32):
    """Returns an initializer of variance factor / n, where n is the fan in, the fan out or their mean."""
    if not dtype.is_floating:
        raise TypeError("Cannot create initializer for non-floating point type.")
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError("Unknown mode %s [FAN_IN, FAN_OUT, FAN_AVG]", mode)

    def initializer(shape, dtype=dtype, partition_info=None):
        if not dtype.is_floating:
            raise TypeError("Cannot create initializer for non-floating point type.")
        dims = [float(dim) for dim in shape] or [1.0]
        window = math.prod(dims[:-2])
        fan_in, fan_out = window * dims[-2 if len(dims) > 1 else -1], window * dims[-1]
        n = {"FAN_IN": fan_in, "FAN_OUT": fan_out, "FAN_AVG": (fan_in + fan_out) / 2.0}[mode]
        if uniform:
            limit = math.sqrt(3.0 * factor / n)
            return random_ops.random_uniform(shape, -limit, limit, dtype, seed=seed)
        # 1.3 makes up for the variance that truncation removes.
        return random_ops.truncated_normal(shape, 0.0, math.sqrt(1.3 * factor / n), dtype, seed=seed)

    return initializer


def xavier_initializer(uniform=True, seed=None, dtype=dtypes.float32):
    """Returns Glorot's initializer: variance 1 / the mean of fan in and fan out."""
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def _checked(scale):
    if isinstance(scale, numbers.Integral):
        raise ValueError("scale cannot be an integer: %s" % scale)
    if isinstance(scale, numbers.Real) and scale < 0.0:
        raise ValueError("Setting a scale less than 0 on a regularizer: %g" % scale)
    return scale


def _none(_, name=None):
    return None


def _regularizer(scale, kind, measure, scope):
    if _checked(scale) == 0.0:
        return _none

    def regularizer(weights, name=None):
        with name_scope(scope, kind + "_regularizer", [weights]) as inner:
            factor = convert_to_tensor(scale, dtype=weights.dtype.base_dtype, name="scale")
            return math_ops.multiply(factor, measure(weights), name=name or inner)

    return regularizer


def l1_regularizer(scale, scope=None):
    """Returns a regularizer: scale times the sum of absolute values; None for a scale of 0."""
    return _regularizer(scale, "l1", lambda w: math_ops.reduce_sum(math_ops.abs(w)), scope)


def l2_regularizer(scale, scope=None):
    """Returns a regularizer: scale times half the sum of squares; None for a scale of 0."""
    return _regularizer(scale, "l2", nn.l2_loss, scope)


def l1_l2_regularizer(scale_l1=1.0, scale_l2=1.0, scope=None):
    """Returns the sum of an L1 and an L2 regularizer."""
    for scale in (scale_l1, scale_l2):
        if isinstance(scale, numbers.Integral):
            raise ValueError("scale cannot be an integer: %s" % (scale,))
    scope = scope or "l1_l2_regularizer"
    if scale_l1 == 0.0:
        return l2_regularizer(scale_l2, scope)
    if scale_l2 == 0.0:
        return l1_regularizer(scale_l1, scope)
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope=scope)


def sum_regularizer(regularizer_list, scope=None):
    """Returns the sum of several regularizers."""
    regularizers = [reg for reg in regularizer_list if reg is not None]
    if not regularizers:
        return None

    def regularizer(weights):
        with name_scope(scope, "sum_regularizer", [weights]) as inner:
            tensors = [t for t in (reg(weights) for reg in regularizers) if t is not None]
            return math_ops.add_n(tensors, name=inner) if tensors else None

    return regularizer


def apply_regularization(regularizer, weights_list=None):
    """Returns the sum of a regularizer over weights, by default all of GraphKeys.WEIGHTS."""
    if not weights_list:
        weights_list = get_collection(GraphKeys.WEIGHTS)
    if not weights_list:
        raise ValueError("No weights to regularize.")
    with name_scope("get_regularization_penalty", values=weights_list) as scope:
        penalties = [p if p is not None else 0.0 for p in (regularizer(w) for w in weights_list)]
        for penalty in penalties:
            if not isinstance(penalty, float) and penalty.shape.ndims != 0:
                raise ValueError("regularizer must return a scalar Tensor instead of a Tensor with rank "
                                 "%d." % penalty.shape.ndims)
        total = math_ops.add_n([convert_to_tensor(p) for p in penalties], name=scope)
        add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
        return total
