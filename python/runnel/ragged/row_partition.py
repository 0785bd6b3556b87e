"""tf.experimental.RowPartition: how the values of a ragged tensor are divided into rows."""

from runnel import dtypes
from runnel.core import convert
from runnel.ops import array_ops, math_ops
from runnel.ragged import ragged_tensor


class RowPartition:
    """A division of values into rows: row i has the values row_splits[i] to row_splits[i + 1]. The from_... methods create it."""

    def __init__(self, row_splits, internal=None):
        if internal is None:
            raise ValueError("RowPartition constructor is private; please use one of the factory methods instead (e.g., "
                             "RowPartition.from_row_lengths())")
        self._row_splits = row_splits

    @classmethod
    def _of(cls, make, rows, **options):
        """Creates a partition the way RaggedTensor's method does; the values themselves do not matter."""
        ragged = getattr(ragged_tensor.RaggedTensor, make)
        return cls(ragged(math_ops.range(rows), **options).row_splits, internal=True)

    @classmethod
    def from_row_splits(cls, row_splits, validate=True, dtype=None, dtype_hint=dtypes.int64):
        """Creates a partition from the places where rows begin, and the end of the last."""
        splits = convert.convert_to_tensor(row_splits, dtype=dtype, dtype_hint=dtype_hint)
        return cls._of("from_row_splits", splits[-1], row_splits=splits, validate=validate)

    @classmethod
    def from_row_lengths(cls, row_lengths, validate=True, dtype=None, dtype_hint=dtypes.int64):
        """Creates a partition from the lengths of the rows."""
        lengths = convert.convert_to_tensor(row_lengths, dtype=dtype, dtype_hint=dtype_hint)
        return cls._of("from_row_lengths", math_ops.reduce_sum(lengths), row_lengths=lengths, validate=validate)

    @classmethod
    def from_value_rowids(cls, value_rowids, nrows=None, validate=True, dtype=None, dtype_hint=dtypes.int64):
        """Creates a partition from the row of each value."""
        ids = convert.convert_to_tensor(value_rowids, dtype=dtype, dtype_hint=dtype_hint)
        return cls._of("from_value_rowids", _size(ids), value_rowids=ids, nrows=nrows, validate=validate)

    def row_splits(self):
        """Returns where rows begin, and the end of the last."""
        return self._row_splits

    def row_lengths(self):
        """Returns the lengths of the rows."""
        return self._row_splits[1:] - self._row_splits[:-1]

    def row_starts(self):
        """Returns where rows begin."""
        return self._row_splits[:-1]

    def row_limits(self):
        """Returns where rows end."""
        return self._row_splits[1:]

    def value_rowids(self):
        """Returns the row of each value."""
        return ragged_tensor._rowids(self._row_splits)

    def nrows(self):
        """Returns the number of rows."""
        return _size(self._row_splits) - 1

    def nvals(self):
        """Returns the number of values."""
        return self._row_splits[-1]

    dtype = property(lambda self: self._row_splits.dtype)


def _size(vector):
    return array_ops.size(vector, out_type=vector.dtype)
