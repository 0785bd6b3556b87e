"""tf.losses: losses over batches, weighted, and kept in a collection."""

from runnel import array_ops, dtypes, math_ops, nn_ops, raw_ops
from runnel.convert import convert_to_tensor
from runnel.framework import (GraphKeys, add_to_collection, executing_eagerly, get_collection,
                              name_scope)
from runnel.math_ops import _pick


class Reduction:
    """How the losses of a batch become one number."""

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
            raise ValueError("Invalid Reduction Key: key=%s" % key)


_DEFAULT = Reduction.SUM_BY_NONZERO_WEIGHTS


def _check_weights(weights, losses):
    """Weights are scalars, or have the losses' rank and dimensions of 1 or theirs."""
    one, two = weights.shape, losses.shape
    if one.ndims in (None, 0) or two.ndims is None:
        return
    if one.ndims != two.ndims or any(
            a not in (None, 1, b) and b is not None for a, b in zip(one.as_list(), two.as_list())):
        raise ValueError("weights can not be broadcast to values. values.rank=%s. weights.rank=%s. "
                         "values.shape=%s. weights.shape=%s." % (two.ndims, one.ndims, two, one))


def _num_present(losses, weights):
    """How many losses have a weight that is not 0."""
    if weights.shape.ndims == 0 and (weights.op is None or weights.op.type == "Const"):
        from runnel.convert import constant_value
        if constant_value(weights) != 0:
            return math_ops.cast(array_ops.size(losses, name="Size"), losses.dtype)
    present = raw_ops.SelectV2(condition=raw_ops.Equal(x=weights, y=array_ops.zeros_like(weights)),
                               t=array_ops.zeros_like(weights), e=array_ops.ones_like(weights))
    present = raw_ops.Mul(x=present, y=array_ops.ones_like(losses))
    return math_ops.reduce_sum(present, name="num_present")


def compute_weighted_loss(losses, weights=1.0, scope=None, loss_collection=GraphKeys.LOSSES,
                          reduction=_DEFAULT):
    """`losses` times `weights`, as one number or, with Reduction.NONE, as they are."""
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss", [losses, weights]):
        losses = convert_to_tensor(losses)
        kind = losses.dtype
        losses = math_ops.cast(losses, dtypes.float32)
        weights = math_ops.cast(convert_to_tensor(weights), dtypes.float32)
        _check_weights(weights, losses)
        losses = raw_ops.Mul(x=losses, y=weights)
        if reduction == Reduction.NONE:
            loss = losses
        else:
            loss = math_ops.reduce_sum(losses)
            if reduction == Reduction.MEAN:
                total = math_ops.reduce_sum(array_ops.ones_like(losses) * weights)
                loss = raw_ops.DivNoNan(x=loss, y=total, name="value")
            elif reduction == _DEFAULT:
                loss = raw_ops.DivNoNan(x=loss, y=_num_present(losses, weights), name="value")
            elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
                count = math_ops.cast(array_ops.size(losses), losses.dtype)
                loss = raw_ops.DivNoNan(x=loss, y=count, name="value")
        loss = math_ops.cast(loss, kind)
        add_loss(loss, loss_collection)
        return loss


def add_loss(loss, loss_collection=GraphKeys.LOSSES):
    """Puts a loss into a collection."""
    if loss_collection and not executing_eagerly():
        add_to_collection(loss_collection, loss)


def get_losses(scope=None, loss_collection=GraphKeys.LOSSES):
    """The losses of a collection."""
    return get_collection(loss_collection, scope)


def get_regularization_losses(scope=None):
    """The regularisation losses."""
    return get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(scope=None, name="total_regularization_loss"):
    """Their sum."""
    losses = get_regularization_losses(scope)
    return math_ops.add_n(losses, name=name) if losses else convert_to_tensor(0.0)


def get_total_loss(add_regularization_losses=True, name="total_loss", scope=None):
    """The sum of all losses of the collection."""
    losses = get_losses(scope=scope)
    if add_regularization_losses:
        losses = losses + get_regularization_losses(scope)
    return math_ops.add_n(losses, name=name)


def _pair(labels, predictions, what="predictions"):
    if labels is None:
        raise ValueError("labels must not be None.")
    if predictions is None:
        raise ValueError("%s must not be None." % what)
    predictions = math_ops.cast(convert_to_tensor(predictions), dtypes.float32)
    labels = math_ops.cast(convert_to_tensor(labels), dtypes.float32)
    predictions.shape.assert_is_compatible_with(labels.shape)
    return labels, predictions


def absolute_difference(labels, predictions, weights=1.0, scope=None,
                        loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT):
    """|predictions - labels|."""
    with name_scope(scope, "absolute_difference", [predictions, labels, weights]) as scope:
        labels, predictions = _pair(labels, predictions)
        losses = raw_ops.Abs(x=raw_ops.Sub(x=predictions, y=labels))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def mean_squared_error(labels, predictions, weights=1.0, scope=None,
                       loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT):
    """(predictions - labels) ** 2.

    Args:
      labels: what is true.
      predictions: what was said, in the same shape.
      weights: a factor, or factors that broadcast.
      scope: of the operations.
      loss_collection: where the loss is noted, for get_total_loss.
      reduction: what becomes of the losses of elements: one of tf.losses.Reduction.
    """
    with name_scope(scope, "mean_squared_error", [predictions, labels, weights]) as scope:
        labels, predictions = _pair(labels, predictions)
        losses = raw_ops.SquaredDifference(x=predictions, y=labels)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def cosine_distance(labels, predictions, axis=None, weights=1.0, scope=None,
                    loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT, dim=None):
    """1 - labels . predictions along an axis, for vectors of length 1."""
    axis = _pick("axis", axis, "dim", dim)
    if axis is None:
        raise ValueError("You must specify argument `axis`.")
    with name_scope(scope, "cosine_distance_loss", [predictions, labels, weights]) as scope:
        labels, predictions = _pair(labels, predictions)
        losses = 1 - math_ops.reduce_sum(raw_ops.Mul(x=predictions, y=labels), axis=(axis,),
                                         keepdims=True)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def hinge_loss(labels, logits, weights=1.0, scope=None, loss_collection=GraphKeys.LOSSES,
               reduction=_DEFAULT):
    """max(0, 1 - t logits), where t is 1 for labels of 1 and -1 for labels of 0."""
    with name_scope(scope, "hinge_loss", [logits, labels, weights]) as scope:
        labels, logits = _pair(labels, logits, "logits")
        labels = raw_ops.Sub(x=2 * labels, y=array_ops.ones_like(labels))
        losses = nn_ops.relu(raw_ops.Sub(x=array_ops.ones_like(labels),
                                         y=raw_ops.Mul(x=labels, y=logits)))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def huber_loss(labels, predictions, weights=1.0, delta=1.0, scope=None,
               loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT):
    """Half the squared error where it is at most delta, linear beyond."""
    with name_scope(scope, "huber_loss", [predictions, labels, weights]) as scope:
        labels, predictions = _pair(labels, predictions)
        error = raw_ops.Sub(x=predictions, y=labels)
        size = raw_ops.Abs(x=error)
        quadratic = raw_ops.Minimum(x=size, y=delta)
        linear = raw_ops.Sub(x=size, y=quadratic)
        losses = math_ops.add(
            raw_ops.Mul(x=convert_to_tensor(0.5, quadratic.dtype),
                        y=raw_ops.Mul(x=quadratic, y=quadratic)),
            raw_ops.Mul(x=convert_to_tensor(delta, linear.dtype), y=linear))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def log_loss(labels, predictions, weights=1.0, epsilon=1e-7, scope=None,
             loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT):
    """-y log(p) - (1 - y) log(1 - p)."""
    with name_scope(scope, "log_loss", [predictions, labels, weights]) as scope:
        labels, predictions = _pair(labels, predictions)
        losses = -raw_ops.Mul(x=labels, y=raw_ops.Log(x=predictions + epsilon)) - raw_ops.Mul(
            x=1 - labels, y=raw_ops.Log(x=1 - predictions + epsilon))
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def mean_pairwise_squared_error(labels, predictions, weights=1.0, scope=None,
                                loss_collection=GraphKeys.LOSSES):
    """Squared differences between the differences of pairs of elements within an example."""
    with name_scope(scope, "mean_pairwise_squared_error", [predictions, labels, weights]) as scope:
        labels, predictions = _pair(labels, predictions)
        weights = math_ops.cast(convert_to_tensor(weights), dtypes.float32)
        diffs = raw_ops.Sub(x=predictions, y=labels)
        axes = math_ops.range(1, array_ops.rank(diffs))
        squares = math_ops.reduce_sum(raw_ops.Square(x=diffs), axis=axes, keepdims=True)
        each = math_ops.reduce_sum(array_ops.ones_like(diffs), axis=axes, keepdims=True)
        ones = raw_ops.SelectV2(condition=raw_ops.Equal(x=weights, y=array_ops.zeros_like(weights)),
                                t=array_ops.zeros_like(weights), e=array_ops.ones_like(weights))
        each = each * ones
        term1 = 2.0 * raw_ops.DivNoNan(x=squares, y=raw_ops.Maximum(x=each - 1, y=0.0))
        total = math_ops.reduce_sum(diffs, axis=axes, keepdims=True)
        term2 = 2.0 * raw_ops.DivNoNan(x=raw_ops.Square(x=total),
                                       y=raw_ops.Maximum(x=raw_ops.Mul(x=each, y=each - 1), y=0.0))
        weighted = raw_ops.Mul(x=raw_ops.Sub(x=term1, y=term2), y=weights)
        loss = math_ops.reduce_sum(weighted)
        positive = math_ops.reduce_sum(each) > 0
        mean = array_ops.where(positive, loss, array_ops.zeros_like(loss), name="value")
        add_loss(mean, loss_collection)
        return mean


def sigmoid_cross_entropy(multi_class_labels, logits, weights=1.0, label_smoothing=0, scope=None,
                          loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT):
    """The cross entropy of independent classes; smoothing moves labels towards 1/2."""
    with name_scope(scope, "sigmoid_cross_entropy_loss", [logits, multi_class_labels, weights]) as scope:
        logits = convert_to_tensor(logits)
        labels = math_ops.cast(convert_to_tensor(multi_class_labels), logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            labels = labels * (1 - label_smoothing) + 0.5 * label_smoothing
        losses = nn_ops.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits,
                                                          name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def softmax_cross_entropy(onehot_labels, logits, weights=1.0, label_smoothing=0, scope=None,
                          loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT):
    """The cross entropy of one class of many; smoothing moves labels towards equal shares.

    Args:
      onehot_labels: [batch, classes].
      logits: [batch, classes], before softmax.
      weights: a factor, or one for each row.
      label_smoothing: the share that goes to all classes alike.
      scope: of the operations.
      loss_collection: where the loss is noted, for get_total_loss.
      reduction: one of tf.losses.Reduction.
    """
    with name_scope(scope, "softmax_cross_entropy_loss", [logits, onehot_labels, weights]) as scope:
        logits = convert_to_tensor(logits)
        labels = math_ops.cast(convert_to_tensor(onehot_labels), logits.dtype)
        logits.shape.assert_is_compatible_with(labels.shape)
        if label_smoothing > 0:
            classes = math_ops.cast(array_ops.shape(labels)[array_ops.rank(labels) - 1], logits.dtype)
            labels = labels * (1.0 - label_smoothing) + label_smoothing / classes
        labels = raw_ops.StopGradient(input=labels, name="labels_stop_gradient")
        losses = nn_ops.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits,
                                                             name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sparse_softmax_cross_entropy(labels, logits, weights=1.0, scope=None,
                                 loss_collection=GraphKeys.LOSSES, reduction=_DEFAULT):
    """softmax_cross_entropy with classes by number; a last dimension of 1 of the labels goes.

    Args:
      labels: the numbers of classes, [batch].
      logits: [batch, classes], before softmax.
      weights: a factor, or one for each row.
      scope: of the operations.
      loss_collection: where the loss is noted, for get_total_loss.
      reduction: one of tf.losses.Reduction.
    """
    with name_scope(scope, "sparse_softmax_cross_entropy_loss", [logits, labels, weights]) as scope:
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        weights = convert_to_tensor(weights)
        if labels.shape.ndims is not None and logits.shape.ndims is not None \
                and labels.shape.ndims == logits.shape.ndims and labels.shape.as_list()[-1] == 1:
            labels = array_ops.squeeze(labels, [-1])
            if weights.shape.ndims == logits.shape.ndims:
                weights = array_ops.squeeze(weights, [-1])
        losses = nn_ops.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits,
                                                                 name="xentropy")
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)
