"""tf.matmul of ragged tensors: batches of matrices of different sizes.

The matrices of a batch are padded with zeros to one size, multiplied at once, and the products are cut to their own sizes.
"""

from runnel import dtypes, raw_ops as _ops
from runnel.core.framework import name_scope
from runnel.ops import array_ops, check_ops, math_ops
from runnel.ragged.ragged_tensor import RaggedTensor, as_ragged_or_tensor
from runnel.ragged.row_partition import _after

_NOT_RECTANGULAR = "The matrices in `a` and `b` may not be ragged in their innermost dimension."


def _is_ragged(value):
    return isinstance(value, RaggedTensor)


def matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False, a_is_sparse=False, b_is_sparse=False,
           output_type=None, grad_a=False, grad_b=False, name=None):
    """Multiplies matrices; at least one argument is ragged."""
    for transpose, adjoint, which in ((transpose_a, adjoint_a, "a"), (transpose_b, adjoint_b, "b")):
        if transpose and adjoint:
            raise ValueError("Only one of transpose_%s and adjoint_%s can be True." % (which, which))
    with name_scope(name, "RaggedMatMul", [a, b]):
        a, b = as_ragged_or_tensor(a), as_ragged_or_tensor(b)
        if a.dtype != b.dtype:
            raise ValueError("`a` and `b` must have the same dtype.")
        ranks = {a.shape.rank, b.shape.rank} - {None}
        if not ranks:
            raise ValueError("matmul requires at least one input to have known rank if either input is ragged.")
        if len(ranks) > 1 or ranks == {1}:
            raise ValueError("`a` and `b` must have the same rank.")
        turn_a, turn_b = ((transpose or adjoint, adjoint) for transpose, adjoint in ((transpose_a, adjoint_a), (transpose_b, adjoint_b)))
        return _product(a, b, ranks.pop(), turn_a, turn_b)


def _product(a, b, rank, turn_a, turn_b):
    if not _is_ragged(a) and not _is_ragged(b):
        return math_ops.matmul(a, b, transpose_a=turn_a == (True, False), transpose_b=turn_b == (True, False), adjoint_a=turn_a[1], adjoint_b=turn_b[1])
    if rank > 3:
        a, b = (x if _is_ragged(x) else RaggedTensor.from_tensor(x, ragged_rank=rank - 3) for x in (a, b))
        same = check_ops.assert_equal(a.row_splits, b.row_splits, message="Batch dimensions of `a` and `b` do not have the same size.")
        inner = _product(a.values, b.values, rank - 1, turn_a, turn_b)
        return a.with_values(inner.with_flat_values(_after([same], inner.flat_values)) if _is_ragged(inner) else _after([same], inner))
    if rank == 2:
        whole = [RaggedTensor.from_uniform_row_length(x, x.nrows(), validate=False) if _is_ragged(x) else array_ops.expand_dims(x, 0)
                 for x in (a, b)]
        return _batch(*whole, turn_a, turn_b).to_tensor()[0]
    return _batch(a, b, turn_a, turn_b)


class _Matrices:
    """A batch of matrices: padded to one size, and the rows and columns that each has."""

    def __init__(self, x, turn):
        if _is_ragged(x):
            self.rows = x.row_lengths()
            if _is_ragged(x.values):
                lengths = x.values.row_lengths()
                self.columns = _ops.Maximum(_ops.UnsortedSegmentMax(lengths, x.value_rowids(), x.nrows()), array_ops.zeros_like(self.rows))
                same = check_ops.assert_equal(lengths, array_ops.gather(self.columns, x.value_rowids()), message=_NOT_RECTANGULAR)
                self.columns = _after([same], self.columns)
            else:
                self.columns = array_ops.fill(array_ops.shape(self.rows), array_ops.shape(x.values, out_type=self.rows.dtype)[1])
            self.padded = x.to_tensor()
        else:
            shape = array_ops.shape(x, out_type=dtypes.int64)
            self.rows, self.columns, self.padded = array_ops.fill(shape[:1], shape[1]), array_ops.fill(shape[:1], shape[2]), x
        is_turned, is_conjugate = turn
        if is_turned:
            self.rows, self.columns = self.columns, self.rows
            self.padded = array_ops.matrix_transpose(self.padded, conjugate=is_conjugate)


def _batch(a, b, turn_a, turn_b):
    """Returns the products of two batches of matrices, a ragged tensor."""
    left, right = _Matrices(a, turn_a), _Matrices(b, turn_b)
    dtype = a.row_splits.dtype if _is_ragged(a) else b.row_splits.dtype
    inner, outer = math_ops.cast(left.columns, dtype), math_ops.cast(right.rows, dtype)
    rows, columns = math_ops.cast(left.rows, dtype), math_ops.cast(right.columns, dtype)
    # Matrices without rows have no columns either: any number fits.
    fits = _ops.LogicalOr(_ops.Equal(inner, outer), _ops.Equal(rows * columns, array_ops.zeros_like(rows)))
    checks = [check_ops.assert_equal(fits, array_ops.ones_like(fits), message="Matrix size-incompatible")]
    size = _ops.Maximum(array_ops.shape(left.padded)[2], array_ops.shape(right.padded)[1])
    one = array_ops.pad(left.padded, [[0, 0], [0, 0], [0, size - array_ops.shape(left.padded)[2]]])
    two = array_ops.pad(right.padded, [[0, 0], [0, size - array_ops.shape(right.padded)[1]], [0, 0]])
    products = _after(checks, math_ops.matmul(one, two))
    made = RaggedTensor.from_tensor(products, lengths=rows, row_splits_dtype=dtype)
    if not (_is_ragged(b) and (b.ragged_rank == 2 or turn_b[0])):
        return made
    cut = RaggedTensor.from_tensor(made.values, lengths=array_ops.gather(columns, made.value_rowids()), row_splits_dtype=dtype)
    return made.with_values(cut)
