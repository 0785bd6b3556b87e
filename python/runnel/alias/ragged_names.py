"""tensorflow.python.ops.ragged: names of the implementation of ragged tensors."""

import runnel
from runnel.ragged.ragged_tensor import RaggedTensor, RaggedTensorValue, as_ragged_or_tensor


def convert_to_tensor_or_ragged_tensor(value, dtype=None, preferred_dtype=None, name=None):
    """Returns ragged tensors unchanged, and all else as tensors."""
    from runnel.core.convert import convert_to_tensor
    if isinstance(value, RaggedTensor):
        if dtype and not runnel.as_dtype(dtype).is_compatible_with(value.dtype):
            raise ValueError("Tensor conversion requested dtype %s for RaggedTensor with dtype %s: %r." % (
                runnel.as_dtype(dtype).name, value.dtype.name, value))
        return value
    if isinstance(value, RaggedTensorValue):
        return as_ragged_or_tensor(value)
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
