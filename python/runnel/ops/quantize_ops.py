"""Quantization and dequantization in one step."""

from runnel import raw_ops
from runnel.core.convert import convert_to_tensor


def _axis_of(input, axis):  # noqa: A002
    if axis is None:
        return -1
    if axis >= 0:
        return axis
    if input.shape.ndims is None:
        raise ValueError("input should have known rank to use negative axis.")
    return axis % input.shape.ndims


def quantize_and_dequantize(
    input, input_min, input_max, signed_input=True, num_bits=8, range_given=False,  # noqa: A002
    round_mode="HALF_TO_EVEN", name=None, narrow_range=False, axis=None,
):
    """Rounds a tensor to num_bits. The gradient passes as if nothing were rounded."""
    input = convert_to_tensor(input)  # noqa: A001
    return raw_ops.QuantizeAndDequantizeV2(
        input=input, input_min=input_min, input_max=input_max, signed_input=signed_input, num_bits=num_bits,
        range_given=range_given, round_mode=round_mode, narrow_range=narrow_range, axis=_axis_of(input, axis), name=name,
    )


def quantize_and_dequantize_v2(
    input, input_min, input_max, signed_input=True, num_bits=8, range_given=False,  # noqa: A002
    round_mode="HALF_TO_EVEN", name=None, narrow_range=False, axis=None,
):
    """Rounds a tensor to num_bits. No gradient passes outside the range."""
    input = convert_to_tensor(input)  # noqa: A001
    return raw_ops.QuantizeAndDequantizeV4(
        input=input, input_min=input_min, input_max=input_max, signed_input=signed_input, num_bits=num_bits,
        range_given=range_given, round_mode=round_mode, narrow_range=narrow_range, axis=_axis_of(input, axis), name=name,
    )
