"""Losses over batches, weighted, and added to a collection (tf.losses)."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import (
    GraphKeys, add_to_collection, control_dependencies, executing_eagerly, get_collection, name_scope)
from runnel.nn import nn_ops
from runnel.ops import array_ops, math_ops
from runnel.ops.math_ops import _pick
from runnel.ops.weights_broadcast_ops import assert_broadcastable, broadcast_weights, remove_squeezable_dimensions


class Reduction:
    """How the losses of a batch are reduced to one number."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_OVER_NONZERO_WEIGHTS = SUM_BY_NONZERO_WEIGHTS

    @classmethod
    def all(cls):
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_OVER_NONZERO_WEIGHTS,
                cls.SUM_BY_NONZERO_WEIGHTS)

    @classmethod
    def validate(cls, key):
        if key not in cls.all():
            raise ValueError("Invalid Reduction Key %s. Key should be one of %s." % (key, cls.all()))


_DEFAULT = Reduction.SUM_BY_NONZERO_WEIGHTS


def _num_present(losses, weights, per_batch=False):
    """Returns the number of losses whose weight is not 0, in total or per example."""
    if executing_eagerly() and weights.shape.ndims == 0 and weights.numpy() != 0:
        return _num_elements(losses)
    with name_scope(None, "num_present", [losses, weights]) as scope:
        weights = math_ops.cast(weights, dtypes.float32)
        flags = array_ops.where(raw_ops.Equal(x=weights, y=0.0), array_ops.zeros_like(weights), array_ops.ones_like(weights))
        flags = broadcast_weights(flags, losses)
        each = {"axis": math_ops.range(1, array_ops.rank(flags)), "keepdims": True} if per_batch else {}
        return math_ops.reduce_sum(flags, name=scope, **each)


def _num_elements(losses):
    with name_scope(None, "num_elements", [losses]) as scope:
        return math_ops.cast(array_ops.size(losses, name=scope), losses.dtype)


def _checked(weights, losses):
    """A context manager: control dependencies on the check of the weights."""
    check = assert_broadcastable(weights, losses)
    return control_dependencies([] if check is None else [check])


def _mean(total, count):
    return raw_ops.DivNoNan(x=math_ops.reduce_sum(total), y=count, name="value")


def compute_weighted_loss(losses, weights=1.0, scope=None, loss_collection=GraphKeys.LOSSES,
                          reduction=_DEFAULT):
    """Multiplies `losses` by `weights` and reduces them; with Reduction.NONE, does not reduce."""
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss", [losses, weights]), _checked(weights, losses):
        losses = convert_to_tensor(losses)
        kind = losses.dtype
        losses = math_ops.cast(losses, dtypes.float32)
        weights = math_ops.cast(weights, dtypes.float32)
        loss = raw_ops.Mul(x=losses, y=weights)
        if reduction != Reduction.NONE:
            loss = math_ops.reduce_sum(loss)
            if reduction == Reduction.MEAN:
                loss = _mean(loss, math_ops.reduce_sum(array_ops.ones_like(losses) * weights))
            elif reduction == _DEFAULT:
                loss = _mean(loss, _num_present(losses, weights))
            elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                loss = _mean(loss, _num_elements(losses))
        loss = math_ops.cast(loss, kind)
        add_loss(loss, loss_collection)
        return loss


def add_loss(loss, loss_collection=GraphKeys.LOSSES):
    """Adds a loss to a collection."""
    if loss_collection and not executing_eagerly():
        add_to_collection(loss_collection, loss)


def get_losses(scope=None, loss_collection=GraphKeys.LOSSES):
    """Returns the losses of a collection."""
    return get_collection(loss_collection, scope)


def get_regularization_losses(scope=None):
    """Returns the regularization losses."""
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope=None, name="total_regularization_loss"):
    """Returns the sum of the regularization losses."""
    losses = get_regularization_losses(scope)
    return math_ops.add_n(losses, name=name) if losses else convert_to_tensor(0.0)


def get_total_loss(add_regularization_losses=True, name="total_loss", scope=None):
    """Returns the sum of all losses of the collection."""
    losses = get_losses(scope=scope)
    if add_regularization_losses:
        losses = losses + get_regularization_losses(scope)
    return math_ops.add_n(losses, name=name)


def _given(**values):
    for name, value in values.items():
        if value is None:
            raise ValueError("Argument `%s` must not be None." % name)


def _pair(labels, predictions):
    predictions = math_ops.cast(predictions, dtypes.float32)
    labels = math_ops.cast(labels, dtypes.float32)
    predictions.shape.assert_is_compatible_with(labels.shape)
    return labels, predictions


def absolute_difference(labels, predictions, weights=1.0, scope=None,
                        loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT):
    """Adds the loss |predictions - labels|."""
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "absolute_difference", [predictions, labels, weights]) as scope:
        labels, predictions = _pair(labels, predictions)
        losses = raw_ops.Abs(x=raw_ops.Sub(x=predictions, y=labels))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def mean_squared_error(labels, predictions, weights=1.0, scope=None,
                       loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT):
    """Adds the loss (predictions - labels) ** 2.

    Args:
      labels: the true values.
      predictions: the predicted values, in the same shape.
      weights: a factor, or factors that broadcast.
      scope: name of the scope.
      loss_collection: the collection for the loss, which get_total_loss sums.
      reduction: one of tf.losses.Reduction.
    """
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_squared_error", [predictions, labels, weights]) as scope:
        labels, predictions = _pair(labels, predictions)
        losses = raw_ops.SquaredDifference(x=predictions, y=labels)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def cosine_distance(labels, predictions, axis=None, weights=1.0, scope=None,
                    loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT, dim=None):
    """Adds the loss 1 - labels . predictions along an axis, for unit vectors."""
    axis = _pick("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("You must specify argument `axis`.")
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "cosine_distance_loss", [predictions, labels, weights]) as scope:
        labels, predictions = _pair(labels, predictions)
        losses = 1 - math_ops.reduce_sum(raw_ops.Mul(x=predictions, y=labels), axis=(axis,),
                                         keepdims=True)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def hinge_loss(labels, logits, weights=1.0, scope=None, loss_collection=GraphKeys.LOSSES,
               reduction=_DEFAULT):
    """Adds the loss max(0, 1 - t * logits), where t is 1 for labels of 1 and -1 for labels of 0."""
    _given(labels=labels, logits=logits)
    with name_scope(scope, "hinge_loss", [logits, labels, weights]) as scope:
        labels, logits = _pair(labels, logits)
        ones = array_ops.ones_like(labels)
        labels = raw_ops.Sub(x=2 * labels, y=ones)
        losses = nn_ops.relu(raw_ops.Sub(x=ones, y=raw_ops.Mul(x=labels, y=logits)))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def huber_loss(labels, predictions, weights=1.0, delta=1.0, scope=None,
               loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT):
    """Adds a loss that is half the squared error up to delta, and linear beyond."""
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "huber_loss", [predictions, labels, weights]) as scope:
        labels, predictions = _pair(labels, predictions)
        error = raw_ops.Sub(x=predictions, y=labels)
        size = raw_ops.Abs(x=error)
        quadratic = raw_ops.Minimum(x=size, y=delta)
        linear = raw_ops.Sub(x=size, y=quadratic)
        losses = math_ops.add(
            raw_ops.Mul(x=convert_to_tensor(0.5, quadratic.dtype),
                        y=raw_ops.Mul(x=quadratic, y=quadratic)),
            raw_ops.Mul(x=delta, y=linear))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def log_loss(labels, predictions, weights=1.0, epsilon=1e-7, scope=None,
             loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT):
    """Adds the loss -y log(p) - (1 - y) log(1 - p)."""
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "log_loss", [predictions, labels, weights]) as scope:
        labels, predictions = _pair(labels, predictions)
        losses = -raw_ops.Mul(x=labels, y=raw_ops.Log(x=predictions + epsilon)) - raw_ops.Mul(
            x=1 - labels, y=raw_ops.Log(x=1 - predictions + epsilon))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def mean_pairwise_squared_error(labels, predictions, weights=1.0, scope=None,
                                loss_collection=GraphKeys.LOSSES):
    """Adds the squared difference between the differences of pairs of elements within an example."""
    _given(labels=labels, predictions=predictions)
    with name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]) as scope:
        weights = math_ops.cast(weights, dtypes.float32)
        labels = math_ops.cast(labels, dtypes.float32)
        with _checked(weights, labels):
            labels, predictions = _pair(labels, predictions)
            diffs = raw_ops.Sub(x=predictions, y=labels)
            axes = math_ops.range(1, array_ops.rank(diffs))
            squares = math_ops.reduce_sum(raw_ops.Square(x=diffs), axis=axes, keepdims=True)
            each = _num_present(diffs, weights, per_batch=True)
            first = 2.0 * raw_ops.DivNoNan(x=squares, y=raw_ops.Maximum(x=each - 1, y=0), name="value")
            total = math_ops.reduce_sum(diffs, axis=axes, keepdims=True)
            second = 2.0 * raw_ops.DivNoNan(x=raw_ops.Square(x=total), y=raw_ops.Maximum(
                x=raw_ops.Mul(x=each, y=each - 1), y=0), name="value")
            loss = math_ops.reduce_sum(raw_ops.Mul(x=first - second, y=weights))
            mean = array_ops.where(math_ops.reduce_sum(each) > 0, loss, array_ops.zeros_like(loss), name="value")
            add_loss(mean, loss_collection)
            return mean


def sigmoid_cross_entropy(multi_class_labels, logits, weights=1.0, label_smoothing=0, scope=None,
                          loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT):
    """Adds the cross entropy of independent classes; smoothing moves labels towards 1/2."""
    _given(multi_class_labels=multi_class_labels, logits=logits)
    with name_scope(scope, "sigmoid_cross_entropy_loss", [logits, multi_class_labels, weights]) as scope:
        logits = convert_to_tensor(logits)
        labels = math_ops.cast(multi_class_labels, logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = nn_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits,
                                                          name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def softmax_cross_entropy(onehot_labels, logits, weights=1.0, label_smoothing=0, scope=None,
                          loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT):
    """Adds the cross entropy of exclusive classes; smoothing moves labels towards equal probabilities.

    Args:
      onehot_labels: [batch, classes].
      logits: [batch, classes], before softmax.
      weights: a factor, or one per row.
      label_smoothing: the fraction distributed over all classes.
      scope: name of the scope.
      loss_collection: the collection for the loss, which get_total_loss sums.
      reduction: one of tf.losses.Reduction.
    """
    _given(onehot_labels=onehot_labels, logits=logits)
    with name_scope(scope, "softmax_cross_entropy_loss", [logits, onehot_labels, weights]) as scope:
        logits = convert_to_tensor(logits)
        labels = math_ops.cast(onehot_labels, logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            each = label_smoothing / math_ops.cast(array_ops.shape(labels)[-1], logits.dtype)
            labels = labels * (1.0 - label_smoothing) + each
        labels = raw_ops.StopGradient(input=labels, name="labels_stop_gradient")
        losses = nn_ops.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits,
                                                             name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def _squeezed(weights, labels):
    """Removes a last dimension of 1 from weights that labels do not have."""
    weights = convert_to_tensor(weights)
    one, two = weights.shape.ndims, labels.shape.ndims
    if one is not None and two is not None:
        return array_ops.squeeze(weights, [-1]) if one - two == 1 else weights
    from runnel.ops.control_flow import cond
    extra = array_ops.rank(weights) - array_ops.rank(labels)
    if one is None or one > 0 and weights.shape.as_list()[-1] in (None, 1):
        return cond(raw_ops.Equal(x=1, y=extra), lambda: array_ops.squeeze(weights, [-1]), lambda: weights)
    return weights


def sparse_softmax_cross_entropy(labels, logits, weights=1.0, scope=None,
                                 loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT):
    """Adds the cross entropy of class indices; a last dimension of 1 of the labels is removed.

    Args:
      labels: class indices, [batch].
      logits: [batch, classes], before softmax.
      weights: a factor, or one per row.
      scope: name of the scope.
      loss_collection: the collection for the loss, which get_total_loss sums.
      reduction: one of tf.losses.Reduction.
    """
    _given(labels=labels, logits=logits)
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, labels, weights]) as scope:
        labels, logits = remove_squeezable_dimensions(labels, logits, expected_rank_diff=1)
        weights = _squeezed(weights, labels)
        losses = nn_ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits,
                                                                 name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)
