"""Functions of tf.sparse that 1.x does not have, or has otherwise; and counts of values."""

from runnel import dtypes, raw_ops
from runnel.core.composite import SparseTensor
from runnel.core.convert import constant, convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops, sparse_ops


def map_values(op, *args, **kwargs):
    """Applies `op` to the values of sparse tensors with the same indices. Returns a SparseTensor."""
    sparse = [x for x in (*args, *kwargs.values()) if isinstance(x, SparseTensor)]
    if not sparse:
        raise ValueError("No SparseTensor in argument list of map_values")

    def values(x):
        return x.values if isinstance(x, SparseTensor) else x
    return sparse[0].with_values(op(*[values(x) for x in args], **{key: values(x) for key, x in kwargs.items()}))


def _reduced(dense, sparse):
    def reduce(sp_input, axis=None, keepdims=None, output_is_sparse=False, name=None):
        if keepdims is None:
            keepdims = False
        return (sparse if output_is_sparse else dense)(sp_input, axis=axis, keepdims=keepdims)
    return reduce


reduce_max = _reduced(sparse_ops.sparse_reduce_max, sparse_ops.sparse_reduce_max_sparse)
reduce_sum = _reduced(sparse_ops.sparse_reduce_sum, sparse_ops.sparse_reduce_sum_sparse)
reduce_max.__doc__ = "Returns the largest stored values over dimensions, as a tensor or a SparseTensor."
reduce_sum.__doc__ = "Returns the sums over dimensions, as a tensor or a SparseTensor."


def add(a, b, threshold=0):
    """Adds two tensors, of which at least one is sparse."""
    return sparse_ops.sparse_add(a, b, threshold=threshold)


def bincount(values, weights=None, axis=0, minlength=None, maxlength=None, binary_output=False, name=None):
    """Counts how often each integer occurs, in each row or in all. Returns a SparseTensor."""
    with name_scope(name, "count", [values, weights]):
        limits = {"minlength": -1 if minlength is None else minlength, "maxlength": -1 if maxlength is None else maxlength,
                  "binary_output": binary_output}
        if axis not in (0, -1):
            raise ValueError("Unsupported value for argument axis=%s. Only 0 and -1 are currently supported." % axis)
        is_ragged = hasattr(values, "ragged_rank")
        if not isinstance(values, SparseTensor) and not is_ragged:
            values = convert_to_tensor(values)
        if axis == 0:
            weights = None if weights is None else _flat(weights)
            values = _flat(values)
            is_ragged = False
        given = constant([], _plain_values(values).dtype) if weights is None else _plain_values(weights)
        if isinstance(values, SparseTensor):
            parts = raw_ops.SparseCountSparseOutput(indices=values.indices, values=values.values, dense_shape=values.dense_shape,
                                                    weights=given, **limits)
        elif is_ragged:
            parts = raw_ops.RaggedCountSparseOutput(splits=values.row_splits, values=values.values, weights=given, **limits)
        else:
            parts = raw_ops.DenseCountSparseOutput(values=values, weights=given, **limits)
        return SparseTensor(*parts)


def _plain_values(x):
    if isinstance(x, SparseTensor) or hasattr(x, "ragged_rank"):
        return x.values
    return convert_to_tensor(x)


def _flat(x):
    return array_ops.reshape(_plain_values(x), [-1])


def dense_bincount(arr, weights=None, minlength=None, maxlength=None, dtype=dtypes.int32, name=None, axis=None, binary_output=False):
    """Counts how often each integer occurs: in all of `arr`, or in each row with `axis=-1`. Returns a tensor."""
    if hasattr(arr, "ragged_rank") and axis in (None, 0):
        arr, weights = arr.flat_values, weights.flat_values if hasattr(weights, "ragged_rank") else weights
    if axis is None and not binary_output and not isinstance(arr, SparseTensor) and not hasattr(arr, "ragged_rank"):
        return math_ops.bincount(arr, weights, minlength, maxlength, dtype, name)
    with name_scope(name, "bincount", [arr]):
        if axis not in (None, 0, -1):
            raise ValueError("Unsupported value for argument axis=%s. Only 0 and -1 are currently supported." % axis)
        if not isinstance(arr, SparseTensor) and not hasattr(arr, "ragged_rank"):
            arr = convert_to_tensor(arr, name="arr")
            arr = arr if arr.dtype in (dtypes.int32, dtypes.int64) else math_ops.cast(arr, dtypes.int32)
        if axis in (None, 0):
            weights = None if weights is None else _flat(weights)
            arr = _flat(arr)
        numbers = _plain_values(arr)
        is_empty = math_ops.equal(array_ops.size(numbers), 0)
        most = array_ops.where_v2(is_empty, math_ops.cast(-1, numbers.dtype), math_ops.reduce_max(numbers))
        size = most + 1
        if minlength is not None:
            size = raw_ops.Maximum(x=math_ops.cast(minlength, size.dtype), y=size)
        if maxlength is not None:
            size = raw_ops.Minimum(x=math_ops.cast(maxlength, size.dtype), y=size)
        given = constant([], dtypes.as_dtype(dtype)) if weights is None else _plain_values(weights)
        if isinstance(arr, SparseTensor):
            return raw_ops.SparseBincount(indices=arr.indices, values=arr.values, dense_shape=arr.dense_shape, size=size, weights=given,
                                          binary_output=binary_output)
        if hasattr(arr, "ragged_rank"):
            return raw_ops.RaggedBincount(splits=arr.row_splits, values=arr.values, size=size, weights=given, binary_output=binary_output)
        return raw_ops.DenseBincount(input=arr, size=size, weights=given, binary_output=binary_output)
