"""tensorflow.python.autograph.utils.tensors: kinds of tensors."""

from runnel import dtypes
from runnel.core.framework import is_tensor
from runnel.ops.tensor_array import TensorArray


def is_dense_tensor(t):
    """Tells whether a value is a tensor that is not sparse."""
    return is_tensor(t) and not getattr(t, "_is_composite", False)


def is_tensor_array(t):
    """Tells whether a value is a TensorArray."""
    return isinstance(t, TensorArray)


def is_tensor_list(t):
    """Tells whether a value may be a tensor list: a scalar variant."""
    return is_tensor(t) and t.dtype == dtypes.variant and not t.shape.ndims


def is_range_tensor(t):
    """Tells whether a tensor of a graph is a range."""
    op = getattr(t, "op", None)
    return is_tensor(t) and op is not None and op.type == "Range"
