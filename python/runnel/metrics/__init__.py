"""tf.metrics: metrics accumulated over batches. Each returns (value so far, operation that adds a batch).

The counts are local variables: tf.local_variables_initializer() sets them to 0.
"""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "metrics.metrics_impl: accuracy auc false_negatives false_negatives_at_thresholds false_positives false_positives_at_thresholds mean "
    "mean_absolute_error mean_cosine_distance mean_iou mean_per_class_accuracy mean_relative_error mean_squared_error mean_tensor "
    "metric_variable percentage_below precision precision_at_thresholds recall recall_at_thresholds root_mean_squared_error "
    "sensitivity_at_specificity specificity_at_sensitivity true_negatives true_negatives_at_thresholds true_positives "
    "true_positives_at_thresholds",
    "metrics.metrics_at_k: average_precision_at_k precision_at_k precision_at_top_k recall_at_k recall_at_top_k "
    "sparse_average_precision_at_k sparse_precision_at_k",
)
