"""Metrics by name: functions of (true values, predictions), whose means are shown."""

from runnel import array_ops, dtypes, math_ops, raw_ops
from runnel.convert import convert_to_tensor
from runnel.keras import losses as _losses


def binary_accuracy(y_true, y_pred, threshold=0.5):
    p = convert_to_tensor(y_pred)
    y = math_ops.cast(convert_to_tensor(y_true), p.dtype)
    return math_ops.reduce_mean(math_ops.cast(raw_ops.Equal(
        x=y, y=math_ops.cast(p > threshold, p.dtype)), dtypes.float32), -1)


def categorical_accuracy(y_true, y_pred):
    return math_ops.cast(raw_ops.Equal(x=math_ops.argmax(y_true, -1), y=math_ops.argmax(y_pred, -1)),
                         dtypes.float32)


def sparse_categorical_accuracy(y_true, y_pred):
    p = convert_to_tensor(y_pred)
    y = math_ops.cast(convert_to_tensor(y_true), dtypes.int64)
    if y.shape.ndims is not None and y.shape.ndims == p.shape.ndims:
        y = array_ops.squeeze(y, [-1])
    return math_ops.cast(raw_ops.Equal(x=y, y=math_ops.argmax(p, -1)), dtypes.float32)


def top_k_categorical_accuracy(y_true, y_pred, k=5):
    return math_ops.cast(raw_ops.InTopKV2(predictions=y_pred, targets=math_ops.argmax(y_true, -1), k=k),
                         dtypes.float32)


def sparse_top_k_categorical_accuracy(y_true, y_pred, k=5):
    y = array_ops.reshape(math_ops.cast(y_true, dtypes.int32), [-1])
    return math_ops.cast(raw_ops.InTopKV2(predictions=y_pred, targets=y, k=k), dtypes.float32)


def accuracy_for(loss, y_pred):
    """The accuracy that fits a loss and the predictions."""
    name = getattr(loss, "__name__", "")
    last = y_pred.shape.as_list()[-1] if y_pred.shape.dims else None
    if last == 1 or "binary" in name:
        return binary_accuracy
    return sparse_categorical_accuracy if "sparse" in name else categorical_accuracy


def get(identifier, loss=None, y_pred=None):
    """(name, function) of a metric."""
    if identifier in ("accuracy", "acc"):
        return identifier, accuracy_for(loss, y_pred)
    if callable(identifier):
        return getattr(identifier, "__name__", type(identifier).__name__), identifier
    found = globals().get(identifier) or getattr(_losses, identifier, None)
    if not callable(found):
        raise ValueError("Unknown metric function: %s" % identifier)
    return identifier, found


mse = MSE = _losses.mean_squared_error
mae = MAE = _losses.mean_absolute_error
