"""tf.contrib.losses: tf.losses with the old order of arguments, predictions first."""

from runnel.losses import losses_impl as _losses
from runnel.losses.losses_impl import (
    add_loss, compute_weighted_loss, get_losses, get_regularization_loss, get_regularization_losses, get_total_loss)
from runnel.core.naming import named


def _swapped(name, first, second):
    core = getattr(_losses, name)

    def function(predictions, labels=None, weights=1.0, scope=None, **kwargs):
        return core(**{first: labels, second: predictions}, weights=weights, scope=scope, **kwargs)
    return named(function, name, core.__doc__)


absolute_difference = _swapped("absolute_difference", "labels", "predictions")
mean_squared_error = _swapped("mean_squared_error", "labels", "predictions")
log_loss = _swapped("log_loss", "labels", "predictions")
mean_pairwise_squared_error = _swapped("mean_pairwise_squared_error", "labels", "predictions")


def softmax_cross_entropy(logits, onehot_labels, weights=1.0, label_smoothing=0, scope=None):
    """Like tf.losses.softmax_cross_entropy, with the logits first."""
    return _losses.softmax_cross_entropy(onehot_labels, logits, weights, label_smoothing, scope)


def sparse_softmax_cross_entropy(logits, labels, weights=1.0, scope=None):
    """Like tf.losses.sparse_softmax_cross_entropy, with the logits first."""
    return _losses.sparse_softmax_cross_entropy(labels, logits, weights, scope)


def sigmoid_cross_entropy(logits, multi_class_labels, weights=1.0, label_smoothing=0, scope=None):
    """Like tf.losses.sigmoid_cross_entropy, with the logits first."""
    return _losses.sigmoid_cross_entropy(multi_class_labels, logits, weights, label_smoothing, scope)


def hinge_loss(logits, labels=None, scope=None):
    """Returns each example's hinge loss, not reduced."""
    from runnel import nn
    from runnel.core.framework import name_scope
    from runnel.ops import array_ops, math_ops
    with name_scope(scope, "hinge_loss", [logits, labels]):
        labels = 2 * math_ops.cast(labels, logits.dtype) - 1
        return nn.relu(math_ops.subtract(array_ops.ones_like(labels), math_ops.multiply(labels, logits)))


def cosine_distance(predictions, labels=None, axis=None, weights=1.0, scope=None, dim=None):
    """Like tf.losses.cosine_distance, with the predictions first."""
    return _losses.cosine_distance(labels, predictions, axis if axis is not None else dim, weights, scope)
