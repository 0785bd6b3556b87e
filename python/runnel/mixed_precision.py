"""tf.mixed_precision: training in 16 and 32 bits."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "train.loss_scale: DynamicLossScale FixedLossScale LossScale",
    "train.loss_scale_optimizer: MixedPrecisionLossScaleOptimizer disable_mixed_precision_graph_rewrite "
    "enable_mixed_precision_graph_rewrite",
    "train: experimental",
)
