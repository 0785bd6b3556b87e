"""tf.sets: sets along the last dimension."""

from runnel import raw_ops as _ops
from runnel.core.composite import SparseTensor
from runnel.core.convert import convert_to_tensor


def _operation(a, b, operation, validate_indices):
    a = a if isinstance(a, SparseTensor) else convert_to_tensor(a, name="a")
    b = b if isinstance(b, SparseTensor) else convert_to_tensor(b, name="b")
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        out = _ops.SparseToSparseSetOperation(a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape,
                                              set_operation=operation, validate_indices=validate_indices)
    elif isinstance(a, SparseTensor):
        swapped = {"a-b": "b-a", "b-a": "a-b"}.get(operation, operation)
        out = _ops.DenseToSparseSetOperation(b, a.indices, a.values, a.dense_shape, set_operation=swapped, validate_indices=validate_indices)
    elif isinstance(b, SparseTensor):
        out = _ops.DenseToSparseSetOperation(a, b.indices, b.values, b.dense_shape, set_operation=operation, validate_indices=validate_indices)
    else:
        out = _ops.DenseToDenseSetOperation(a, b, set_operation=operation, validate_indices=validate_indices)
    return SparseTensor(*out)


def set_size(a, validate_indices=True):
    """Returns the number of distinct elements of each set."""
    if not isinstance(a, SparseTensor):
        raise TypeError("Expected `SparseTensor`, got %s." % (a,))
    return _ops.SetSize(a.indices, a.values, a.dense_shape, validate_indices=validate_indices)


def set_intersection(a, b, validate_indices=True):
    """Returns the elements that are in both sets."""
    return _operation(a, b, "intersection", validate_indices)


def set_difference(a, b, aminusb=True, validate_indices=True):
    """Returns the elements that are in one set and not in the other."""
    return _operation(a, b, "a-b" if aminusb else "b-a", validate_indices)


def set_union(a, b, validate_indices=True):
    """Returns the elements that are in at least one of the sets."""
    return _operation(a, b, "union", validate_indices)


size, intersection, difference, union = set_size, set_intersection, set_difference, set_union
