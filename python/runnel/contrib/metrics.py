"""tf.contrib.metrics: streaming metrics, predictions first."""

from runnel import metrics as _metrics
from runnel.core.framework import name_scope
from runnel.core.naming import named
from runnel.ops import math_ops


def _streaming(name):
    core = getattr(_metrics, name)

    def function(predictions, labels, weights=None, metrics_collections=None, updates_collections=None,
                 name=None, **kwargs):
        return core(labels, predictions, weights=weights, metrics_collections=metrics_collections,
                    updates_collections=updates_collections, name=name, **kwargs)
    return named(function, "streaming_" + name, core.__doc__)


for _name in ("accuracy", "precision", "recall", "auc", "mean_absolute_error", "mean_squared_error",
              "root_mean_squared_error", "true_positives", "true_negatives", "false_positives",
              "false_negatives"):
    globals()["streaming_" + _name] = _streaming(_name)
del _name


def streaming_mean(values, weights=None, metrics_collections=None, updates_collections=None, name=None):
    """The same as tf.metrics.mean."""
    return _metrics.mean(values, weights, metrics_collections, updates_collections, name)


def streaming_mean_iou(predictions, labels, num_classes, weights=None, metrics_collections=None,
                       updates_collections=None, name=None):
    """Like tf.metrics.mean_iou, with the predictions first."""
    return _metrics.mean_iou(labels, predictions, num_classes, weights, metrics_collections,
                             updates_collections, name)


def accuracy(predictions, labels, weights=None, name=None):
    """Returns the fraction of right predictions in this batch."""
    with name_scope(name, "accuracy", values=[predictions, labels]):
        is_right = math_ops.cast(math_ops.equal(predictions, labels), "float32")
        if weights is not None:
            is_right *= weights
            return math_ops.reduce_sum(is_right) / math_ops.reduce_sum(
                math_ops.cast(weights, "float32") + 0 * is_right)
        return math_ops.reduce_mean(is_right)


def aggregate_metrics(*value_update_tuples):
    """Returns (values, updates) of several metrics."""
    if not value_update_tuples:
        raise ValueError("Expected at least one value_tensor/update_op pair")
    values, updates = zip(*value_update_tuples)
    return list(values), list(updates)


def aggregate_metric_map(names_to_tuples):
    """Returns ({name: value}, {name: update}) of {name: (value, update)}."""
    values, updates = zip(*names_to_tuples.values())
    return dict(zip(names_to_tuples, values)), dict(zip(names_to_tuples, updates))


def confusion_matrix(labels, predictions, num_classes=None, dtype="int32", name=None, weights=None):
    """The same as tf.math.confusion_matrix."""
    from runnel.math import confusion_matrix as core
    return core(labels, predictions, num_classes, dtype=dtype, name=name, weights=weights)
