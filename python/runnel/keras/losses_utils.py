"""Weighting and reduction of losses, which estimators share with Keras."""

from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.keras.losses import Reduction
from runnel.ops import array_ops, math_ops


class ReductionV2(Reduction):
    """How the losses of examples are reduced."""

    @classmethod
    def all(cls):
        return (cls.AUTO, cls.NONE, cls.SUM, cls.SUM_OVER_BATCH_SIZE)

    @classmethod
    def validate(cls, key):
        if key not in cls.all():
            raise ValueError("Invalid Reduction Key %s." % (key,))


def _fit(losses, weights):
    """Gives weights the rank of the losses, if one dimension is missing or in excess."""
    extra = (weights.shape.ndims or 0) - (losses.shape.ndims or 0)
    if None in (weights.shape.ndims, losses.shape.ndims) or weights.shape.ndims == 0:
        return weights
    if extra == 1:
        return array_ops.squeeze(weights, [-1])
    return array_ops.expand_dims(weights, -1) if extra == -1 else weights


def compute_weighted_loss(losses, sample_weight=None, reduction=ReductionV2.SUM_OVER_BATCH_SIZE, name=None):
    """Returns losses times weights: all, their sum, or their sum divided by their number."""
    ReductionV2.validate(reduction)
    with name_scope(name or "weighted_loss"):
        losses = convert_to_tensor(losses)
        dtype = losses.dtype
        weights = math_ops.cast(convert_to_tensor(1.0 if sample_weight is None else sample_weight), "float32")
        losses = math_ops.cast(losses, "float32")
        loss = math_ops.multiply(losses, _fit(losses, weights))
        if reduction != ReductionV2.NONE:
            count = array_ops.size(loss, name="num_elements")
            loss = math_ops.reduce_sum(loss)
            if reduction != ReductionV2.SUM:
                loss = math_ops.div_no_nan(loss, math_ops.cast(count, loss.dtype), name="value")
        return math_ops.cast(loss, dtype)


def scale_loss_for_distribution(loss_value):
    """Returns the loss unchanged: there is one replica."""
    return loss_value
