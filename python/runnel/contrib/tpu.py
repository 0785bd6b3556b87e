"""tf.contrib.tpu: estimators written for TPUs, which run without one (use_tpu=False)."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__, "TPUEstimator=estimator.tpu.TPUEstimator TPUEstimatorSpec=estimator.tpu.TPUEstimatorSpec",
    "TPUConfig=estimator.tpu.TPUConfig RunConfig=estimator.tpu.RunConfig",
    "InputPipelineConfig=estimator.tpu.InputPipelineConfig")
