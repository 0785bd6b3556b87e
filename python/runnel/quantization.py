"""tf.quantization: quantized tensors and fake quantization."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "dequantize fake_quant_with_min_max_args fake_quant_with_min_max_args_gradient fake_quant_with_min_max_vars "
    "fake_quant_with_min_max_vars_gradient fake_quant_with_min_max_vars_per_channel fake_quant_with_min_max_vars_per_channel_gradient "
    "quantize quantized_concat",
    "ops.quantize_ops: quantize_and_dequantize quantize_and_dequantize_v2",
)
