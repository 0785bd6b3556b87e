"""tensorflow.python.ops.ragged: names of the implementation of ragged tensors."""

import runnel
from runnel.ragged.dynamic_ragged_shape import find_dtype as _find_dtype, partitions_of_lengths  # noqa: F401
from runnel.ragged.dynamic_ragged_shape_spec import DynamicRaggedShapeBatchEncoder as _DynamicRaggedShapeBatchEncoder  # noqa: F401
from runnel.ragged.ragged_broadcast import (  # noqa: F401
    Broadcaster as _Broadcaster, LayerBroadcaster as _LayerBroadcaster, broadcaster as _get_broadcaster,
    first_layers as _broadcast_dynamic_shape_first_layer, identity_broadcaster as _get_identity_broadcaster, next_layers)
from runnel.ragged.ragged_functions import _binary as ragged_binary_elementwise_op_impl  # noqa: F401
from runnel.ragged.ragged_tensor import RaggedTensor, RaggedTensorValue, as_ragged_or_tensor

_to_row_partitions_and_nvals_from_lengths = partitions_of_lengths
_broadcast_dynamic_shape_next_layer = _broadcast_dynamic_shape_next_layer_both_uniform = next_layers
_broadcast_dynamic_shape_next_layer_half_ragged = next_layers


def convert_to_tensor_or_ragged_tensor(value, dtype=None, preferred_dtype=None, name=None):
    """Returns ragged tensors unchanged, and all else as tensors."""
    from runnel.core.convert import convert_to_tensor
    if isinstance(value, RaggedTensor):
        if dtype and not runnel.as_dtype(dtype).is_compatible_with(value.dtype):
            raise ValueError("Tensor conversion requested dtype %s for RaggedTensor with dtype %s: %r." % (
                runnel.as_dtype(dtype).name, value.dtype.name, value))
        return value
    if isinstance(value, RaggedTensorValue):
        return as_ragged_or_tensor(value, dtype)
    return convert_to_tensor(value, dtype, dtype_hint=preferred_dtype, name=name)


def is_ragged(value):
    """Tells whether a value is ragged."""
    return isinstance(value, (RaggedTensor, RaggedTensorValue))


def to_tensor(rt_input, default_value=None, name=None):
    """Returns a ragged tensor with its rows padded; a tensor unchanged."""
    return rt_input.to_tensor(default_value, name) if is_ragged(rt_input) else rt_input


def from_tensor(tensor, lengths=None, padding=None, ragged_rank=1, row_splits_dtype=runnel.int64, name=None):
    """Returns a tensor as a ragged tensor."""
    return RaggedTensor.from_tensor(tensor, lengths, padding, ragged_rank, name, row_splits_dtype)


def repeat(data, repeats, axis, name=None):
    """Repeats the slices of a tensor."""
    return runnel.repeat(data, repeats, axis, name)


def RaggedTensorType(dtype, ragged_rank, row_splits_dtype=runnel.int64):  # noqa: N802
    """Returns the description of the results of `fn` for a tf.map_fn that returns ragged tensors of this rank."""
    return runnel.RaggedTensorSpec(None, dtype, ragged_rank - 1, row_splits_dtype)


def string_length_v2(input, unit="BYTE", name=None):  # noqa: A002
    """Returns the lengths of strings, in bytes or characters."""
    return runnel.strings.length(input, name, unit)


def substr_deprecated(input, pos, len, name=None, unit="BYTE"):  # noqa: A002
    """Returns substrings."""
    return runnel.substr(input, pos, len, name, unit)


def string_split_v2(input, sep=None, maxsplit=-1, name=None):  # noqa: A002
    """Splits strings at `sep`; the parts of a scalar are a vector, those of a tensor a ragged tensor."""
    from runnel.compat.v2 import strings
    return strings.split(input, sep, maxsplit, name)


def assert_splits_match(nested_splits_lists):
    """Returns checks that several ragged tensors have the same row splits, given as a list of splits for each of them."""
    first, *others = nested_splits_lists
    message = "Inputs must have identical ragged splits"
    if any(len(splits) != len(first) for splits in others):
        raise ValueError(message)
    return [runnel.assert_equal(x, y, message=message) for splits in others for x, y in zip(first, splits)]


def _structured():
    from runnel.ragged import structured_arrays
    return structured_arrays


def _extend_op(values, leaf_op, empty_st_op=None):
    """Applies a function of a list of tensors to each field of structured tensors."""
    return _structured()._on_fields(values, leaf_op)


def _structured_tensor_like(t):
    """Returns records without fields, of the shape of a tensor."""
    return _structured().structured_tensor_like(t)
