"""DynamicRaggedShape: the shape of a ragged tensor, as far as a step knows it."""

from runnel import dtypes
from runnel.ops import array_ops, math_ops


class DynamicRaggedShape:
    """The shape of a ragged tensor: row splits of the outer dimensions, and the sizes of the inner ones.

    `shape[i]` is a scalar tensor, if dimension i is uniform.
    """

    def __init__(self, row_splits, inner_shape, static_shape, dtype=dtypes.int64):
        self._row_splits = [math_ops.cast(splits, dtype) for splits in row_splits]
        self._inner_shape = math_ops.cast(inner_shape, dtype)
        self._static_shape = static_shape

    @classmethod
    def from_tensor(cls, value, dtype=None):
        """Returns the shape of a tensor or of a ragged tensor."""
        if not hasattr(value, "ragged_rank"):
            return cls([], array_ops.shape(value), value.shape, dtype or dtypes.int32)
        splits = value.nested_row_splits
        return cls(splits, array_ops.shape(value.flat_values), value.shape, dtype or splits[0].dtype)

    dtype = property(lambda self: self._inner_shape.dtype)
    rank = property(lambda self: self._static_shape.rank)
    inner_shape = property(lambda self: self._inner_shape)
    num_row_partitions = property(lambda self: len(self._row_splits))

    @property
    def inner_rank(self):
        """The number of inner dimensions, which are uniform."""
        return self._inner_shape.shape.num_elements()

    def is_uniform(self, axis):
        """Tells whether all rows of a dimension are known to have one length."""
        if not 0 <= axis < self.rank:
            raise ValueError("Expected 0 <= axis < rank. Got axis=%s and rank=%s" % (axis, self.rank))
        return axis == 0 or axis > self.num_row_partitions or self._static_shape.as_list()[axis] is not None

    @property
    def static_lengths(self):
        """The sizes of the dimensions; None if unknown or ragged."""
        return self._static_shape.as_list()

    def __getitem__(self, index):
        if isinstance(index, slice):
            raise NotImplementedError("Slices of DynamicRaggedShape")
        if self.rank is None:
            raise ValueError("Rank must be known to index a DynamicRaggedShape.")
        place = index + self.rank if index < 0 else index
        if not 0 <= place < self.rank:
            raise IndexError("Index must be non-negative and less than the rank %d. Got %d" % (self.rank, index))
        if not self.is_uniform(place):
            raise ValueError("Index %d is not uniform" % index)
        if place == 0 and self._row_splits:
            return array_ops.shape(self._row_splits[0], out_type=self.dtype)[0] - 1
        if 0 < place <= self.num_row_partitions:
            return math_ops.cast(self._static_shape.as_list()[place], self.dtype)
        return self._inner_shape[place - self.num_row_partitions]

    def __repr__(self):
        return "<DynamicRaggedShape lengths=%s num_row_partitions=%d>" % (self.static_lengths, self.num_row_partitions)
