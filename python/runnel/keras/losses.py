"""tf.keras.losses: functions of (true values, predictions) that return one number per example, by name."""

from runnel import dtypes, raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.nn import nn_ops
from runnel.ops import array_ops, math_ops


def _pair(y_true, y_pred):
    y_pred = convert_to_tensor(y_pred)
    return math_ops.cast(convert_to_tensor(y_true), y_pred.dtype), y_pred


def _mean(x):
    return math_ops.reduce_mean(x, -1)


def mean_squared_error(y_true, y_pred):
    """Returns the mean squared error per example."""
    y, p = _pair(y_true, y_pred)
    return _mean(raw_ops.SquaredDifference(x=p, y=y))


def mean_absolute_error(y_true, y_pred):
    """Returns the mean absolute error per example."""
    y, p = _pair(y_true, y_pred)
    return _mean(math_ops.abs(p - y))


def mean_absolute_percentage_error(y_true, y_pred):
    """Returns the mean absolute percentage error per example."""
    y, p = _pair(y_true, y_pred)
    return 100.0 * _mean(math_ops.abs((y - p) / raw_ops.Maximum(
        x=math_ops.abs(y), y=convert_to_tensor(1e-7, p.dtype))))


def mean_squared_logarithmic_error(y_true, y_pred):
    """Returns the mean squared logarithmic error per example."""
    y, p = _pair(y_true, y_pred)
    least = convert_to_tensor(1e-7, p.dtype)
    return _mean(raw_ops.SquaredDifference(x=raw_ops.Log1p(x=raw_ops.Maximum(x=p, y=least)),
                                           y=raw_ops.Log1p(x=raw_ops.Maximum(x=y, y=least))))


def hinge(y_true, y_pred):
    """Returns the hinge loss per example."""
    y, p = _pair(y_true, y_pred)
    return _mean(nn_ops.relu(1.0 - y * p))


def squared_hinge(y_true, y_pred):
    """Returns the squared hinge loss per example."""
    y, p = _pair(y_true, y_pred)
    return _mean(raw_ops.Square(x=nn_ops.relu(1.0 - y * p)))


def categorical_hinge(y_true, y_pred):
    """Returns the hinge loss of one-hot labels per example."""
    y, p = _pair(y_true, y_pred)
    right = math_ops.reduce_sum(y * p, -1)
    wrong = math_ops.reduce_max((1.0 - y) * p, -1)
    return nn_ops.relu(wrong - right + 1.0)


def logcosh(y_true, y_pred):
    """Returns the mean of log(cosh(error)) per example."""
    y, p = _pair(y_true, y_pred)
    x = p - y
    return _mean(x + nn_ops.softplus(-2.0 * x) - 0.6931471805599453)


def huber_loss(y_true, y_pred, delta=1.0):
    """Returns the Huber loss per example."""
    y, p = _pair(y_true, y_pred)
    size = math_ops.abs(p - y)
    inner = raw_ops.Minimum(x=size, y=convert_to_tensor(delta, p.dtype))
    return _mean(0.5 * inner * inner + delta * (size - inner))


def _logits(y_pred, from_logits, op):
    """Returns the logits of predictions: the input of the activation, if it is known."""
    if from_logits:
        return y_pred
    if y_pred.op is not None and y_pred.op.type == op:
        return y_pred.op.inputs[0]
    return None


def categorical_crossentropy(y_true, y_pred, from_logits=False, label_smoothing=0):
    """Returns the cross entropy of one-hot labels per example."""
    y, p = _pair(y_true, y_pred)
    if label_smoothing:
        classes = math_ops.cast(array_ops.shape(y)[-1], p.dtype)
        y = y * (1.0 - label_smoothing) + label_smoothing / classes
    logits = _logits(p, from_logits, "Softmax")
    if logits is not None:
        return nn_ops.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits)
    p = p / math_ops.reduce_sum(p, -1, keepdims=True)
    return -math_ops.reduce_sum(y * raw_ops.Log(x=_inside(p)), -1)


def _inside(p):
    from runnel.ops.math_ops import clip_by_value
    return clip_by_value(p, 1e-7, 1 - 1e-7)


def sparse_categorical_crossentropy(y_true, y_pred, from_logits=False):
    """Returns the cross entropy of class indices per example."""
    p = convert_to_tensor(y_pred)
    y = math_ops.cast(convert_to_tensor(y_true), dtypes.int64)
    if y.shape.ndims is not None and y.shape.ndims == p.shape.ndims:
        y = array_ops.squeeze(y, [-1])
    logits = _logits(p, from_logits, "Softmax")
    if logits is None:
        logits = raw_ops.Log(x=_inside(p))
    return nn_ops.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)


def binary_crossentropy(y_true, y_pred, from_logits=False, label_smoothing=0):
    """Returns the mean cross entropy of two classes per example."""
    y, p = _pair(y_true, y_pred)
    if label_smoothing:
        y = y * (1.0 - label_smoothing) + 0.5 * label_smoothing
    logits = _logits(p, from_logits, "Sigmoid")
    if logits is not None:
        return _mean(nn_ops.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
    p = _inside(p)
    return -_mean(y * raw_ops.Log(x=p + 1e-7) + (1 - y) * raw_ops.Log(x=1 - p + 1e-7))


def kullback_leibler_divergence(y_true, y_pred):
    """Returns the Kullback-Leibler divergence per example."""
    y, p = _pair(y_true, y_pred)
    y, p = _inside(y), _inside(p)
    return math_ops.reduce_sum(y * raw_ops.Log(x=y / p), -1)


def poisson(y_true, y_pred):
    """Returns the Poisson loss per example."""
    y, p = _pair(y_true, y_pred)
    return _mean(p - y * raw_ops.Log(x=p + 1e-7))


def cosine_similarity(y_true, y_pred, axis=-1):
    """Returns minus the cosine similarity per example."""
    y, p = _pair(y_true, y_pred)
    return -math_ops.reduce_sum(nn_ops.l2_normalize(y, axis) * nn_ops.l2_normalize(p, axis), axis)


mse = MSE = mean_squared_error
mae = MAE = mean_absolute_error
mape = MAPE = mean_absolute_percentage_error
msle = MSLE = mean_squared_logarithmic_error
kld = KLD = kullback_leibler_divergence
cosine_proximity = cosine = cosine_similarity
huber = huber_loss
kl_divergence, log_cosh = kullback_leibler_divergence, logcosh


class Reduction:
    """How the losses of examples are reduced."""

    AUTO, NONE, SUM, SUM_OVER_BATCH_SIZE = "auto", "none", "sum", "sum_over_batch_size"


class Loss:
    """A loss with arguments, for `compile`."""

    _fn = None

    def __init__(self, reduction="auto", name=None, **kwargs):
        self.reduction, self.name, self._kwargs = reduction, name, kwargs

    def call(self, y_true, y_pred):
        return type(self)._fn(y_true, y_pred, **self._kwargs)

    def __call__(self, y_true, y_pred, sample_weight=None):
        losses = self.call(y_true, y_pred)
        if sample_weight is not None:
            losses = losses * math_ops.cast(convert_to_tensor(sample_weight), losses.dtype)
        if self.reduction == Reduction.NONE:
            return losses
        return math_ops.reduce_sum(losses) if self.reduction == Reduction.SUM else math_ops.reduce_mean(losses)


def _loss_class(name, fn, *arguments):
    def __init__(self, *args, **kwargs):
        named = dict(zip(arguments, args))
        Loss.__init__(self, **named, **kwargs)
    return type(name, (Loss,), {"_fn": staticmethod(fn), "__init__": __init__,
                                "__doc__": "%s, with arguments." % fn.__name__})


MeanSquaredError = _loss_class("MeanSquaredError", mean_squared_error)
MeanAbsoluteError = _loss_class("MeanAbsoluteError", mean_absolute_error)
BinaryCrossentropy = _loss_class("BinaryCrossentropy", binary_crossentropy, "from_logits",
                                 "label_smoothing")
CategoricalCrossentropy = _loss_class("CategoricalCrossentropy", categorical_crossentropy,
                                      "from_logits", "label_smoothing")
SparseCategoricalCrossentropy = _loss_class("SparseCategoricalCrossentropy",
                                            sparse_categorical_crossentropy, "from_logits")
MeanAbsolutePercentageError = _loss_class("MeanAbsolutePercentageError", mean_absolute_percentage_error)
MeanSquaredLogarithmicError = _loss_class("MeanSquaredLogarithmicError", mean_squared_logarithmic_error)
Hinge = _loss_class("Hinge", hinge)
SquaredHinge = _loss_class("SquaredHinge", squared_hinge)
CategoricalHinge = _loss_class("CategoricalHinge", categorical_hinge)
Huber = _loss_class("Huber", huber_loss, "delta")
KLDivergence = _loss_class("KLDivergence", kullback_leibler_divergence)
LogCosh = _loss_class("LogCosh", logcosh)
Poisson = _loss_class("Poisson", poisson)
CosineSimilarity = _loss_class("CosineSimilarity", cosine_similarity)


def get(identifier):
    """Returns a loss function, given its name or itself."""
    if isinstance(identifier, Loss):
        def call(y_true, y_pred):
            return identifier.call(y_true, y_pred)

        call.__name__ = getattr(type(identifier)._fn, "__name__", None) or type(identifier).__name__
        return call
    if callable(identifier):
        return identifier
    found = globals().get(identifier)
    if not callable(found):
        raise ValueError("Unknown loss function: %s" % identifier)
    return found.__call__ if isinstance(found, type) else found
