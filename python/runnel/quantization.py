"""tf.quantization: quantized tensors and fake quantization."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "dequantize fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient fake_quant_with_min_max_vars "
    "fake_quant_with_min_max_vars_gradient fake_quant_with_min_max_vars_per_channel quantize quantized_concat",
)
