"""The description of ragged shapes (DynamicRaggedShape.Spec), and how they form batches.

A description has the same parts as a shape, with None for numbers that are unknown. Numbers that follow from others are computed.
"""

from runnel import dtypes
from runnel.core import tensor_shape
from runnel.core.tensor_shape import Dimension, TensorShape
from runnel.core.type_spec import TensorSpec
from runnel.extension_types.extension_type import ExtensionTypeBatchEncoder
from runnel.ragged.ragged_tensor import _axis
from runnel.ragged.row_partition_spec import RowPartitionSpec


def of_index_type(dtype):
    """Returns a dtype; raises ValueError if it is not one that row splits may have."""
    dtype = dtypes.as_dtype(dtype)
    if dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError("dtype must be tf.int32 or tf.int64")
    return dtype


def _first(shape):
    return Dimension(shape[0]) if shape.rank else Dimension(None)


def _completed(partitions, inner_shape):
    """Returns descriptions of partitions and an inner shape, with the numbers that follow from their neighbours."""
    slices = []  # how many slices there are at each depth
    for i, spec in enumerate(partitions):
        count = Dimension(spec.nrows)
        if slices:
            above = partitions[i - 1]
            count = count.merge_with(above.nvals).merge_with(slices[-1] * above.uniform_row_length)
        slices.append(count)
    if not partitions:
        return partitions, inner_shape
    count = (slices[-1] * partitions[-1].uniform_row_length).merge_with(partitions[-1].nvals)
    if inner_shape.rank is not None:
        count = count.merge_with(_first(inner_shape))
        inner_shape = TensorShape([count.value]).concatenate(inner_shape[1:])
    slices.append(count)
    for i in range(len(partitions) - 1, -1, -1):
        if partitions[i].uniform_row_length != 0:
            slices[i] = slices[i].merge_with(slices[i + 1] // partitions[i].uniform_row_length)
    return [RowPartitionSpec(slices[i].value, slices[i + 1].value, spec.uniform_row_length, spec.dtype)
            for i, spec in enumerate(partitions)], inner_shape


class DynamicRaggedShapeSpec:
    """What DynamicRaggedShape.Spec has besides the methods of an extension type's description."""

    def __init__(self, row_partitions, static_inner_shape, dtype):
        try:
            row_partitions = list(row_partitions)
        except TypeError:
            raise TypeError("row_partitions should be an Iterable") from None
        static_inner_shape, dtype = tensor_shape.as_shape(static_inner_shape), of_index_type(dtype)
        if not all(isinstance(spec, RowPartitionSpec) for spec in row_partitions):
            raise TypeError("row_partitions should be an Iterable of RowPartitionSpecs")
        for spec in row_partitions:
            if spec.dtype != dtype:
                raise ValueError("dtype of %r is %r: expected %r" % (spec, spec.dtype, dtype))
        if row_partitions and static_inner_shape.rank == 0:
            raise ValueError("If row_partitions are provided, must have inner_rank > 0")
        row_partitions, static_inner_shape = _completed(row_partitions, static_inner_shape)
        self._row_partitions = tuple(row_partitions)
        self._inner_shape = TensorSpec([static_inner_shape.rank], dtype)
        self._static_inner_shape = static_inner_shape

    @classmethod
    def from_value(cls, value):
        """Returns the description of a shape."""
        return cls([RowPartitionSpec.from_value(partition) for partition in value._row_partitions], value._static_inner_shape, value.dtype)

    @classmethod
    def _from_tensor_shape(cls, shape, num_row_partitions, dtype):
        """Returns the description of a static shape, whose unknown sizes may be ragged."""
        dtype, shape = of_index_type(dtype), tensor_shape.as_shape(shape)
        if shape.rank is None:
            return cls([RowPartitionSpec(dtype=dtype)] * num_row_partitions, shape, dtype)
        if num_row_partitions and shape.rank <= 1:
            raise ValueError("num_row_partitions should be zero if shape is a scalar or vector.")
        if num_row_partitions and shape.rank <= num_row_partitions:
            raise ValueError("num_row_partitions must be less than rank")
        if not num_row_partitions:
            return cls([], shape, dtype)
        sizes, count, partitions = shape.as_list(), Dimension(shape.as_list()[0]), []
        for size in sizes[1:num_row_partitions + 1]:
            rows, count = count, count * size
            partitions.append(RowPartitionSpec(rows.value, count.value, size, dtype))
        return cls(partitions, [count.value] + sizes[num_row_partitions + 1:], dtype)

    @classmethod
    def _from_spec(cls, spec, dtype=dtypes.int64):
        """Returns the description of the shapes of the values of another description: of tensors, ragged tensors or shapes."""
        if isinstance(spec, cls):
            return spec
        if isinstance(spec, TensorSpec):
            return cls._from_tensor_shape(spec.shape, 0, dtype)
        return cls._from_tensor_shape(spec.shape, spec.ragged_rank, spec.row_splits_dtype)

    dtype = property(lambda self: self._inner_shape.dtype)
    inner_rank = property(lambda self: self._static_inner_shape.rank)
    num_row_partitions = property(lambda self: len(self._row_partitions))
    rank = property(lambda self: None if self.inner_rank is None else self.inner_rank + self.num_row_partitions)

    def _dimension(self, index):
        """Returns the size of a dimension, or None if it is unknown or ragged."""
        if index == 0 and self._row_partitions:
            return self._row_partitions[0].nrows
        if 0 < index <= self.num_row_partitions:
            return self._row_partitions[index - 1].uniform_row_length
        inner = index - self.num_row_partitions
        if self.inner_rank is None:
            return None
        if inner >= self.inner_rank:
            raise ValueError("Index out of range: %s." % index)
        return self._static_inner_shape.as_list()[inner]

    def _num_slices_in_dimension(self, axis):
        """Returns how many slices a dimension has in all rows together, or None."""
        if not isinstance(axis, int):
            raise TypeError("axis must be an integer")
        axis = _axis(axis, self.rank, ndims_name="rank")
        if axis == 0:
            return self._dimension(0)
        if axis <= self.num_row_partitions:
            return self._row_partitions[axis - 1].nvals
        return self._static_inner_shape[:axis - self.num_row_partitions + 1].num_elements()

    def with_dtype(self, dtype):
        """Returns the description with another type of numbers."""
        return type(self)([spec.with_dtype(dtype) for spec in self._row_partitions], self._static_inner_shape, dtype)

    def _merge_with(self, other):
        """Returns the description of shapes that fit both."""
        count = max(self.num_row_partitions, other.num_row_partitions)
        mine, theirs = self._with_num_row_partitions(count), other._with_num_row_partitions(count)
        partitions = [a._merge_with(b) for a, b in zip(mine._row_partitions, theirs._row_partitions)]
        return type(self)(partitions, mine._static_inner_shape.merge_with(theirs._static_inner_shape),
                          theirs.dtype if mine.dtype == dtypes.int32 else dtypes.int64)

    def _with_num_row_partitions(self, new_num_row_partitions):
        """Returns the description of the same shapes with another number of partitions."""
        count, make = new_num_row_partitions, type(self)
        if self.rank is None:
            raise ValueError("Changing num_row_partitions with unknown rank unsupported")
        if count > max(self.rank - 1, 0):
            raise ValueError("Number of row partitions too large")
        if count < 0:
            raise ValueError("Number of row partitions negative")
        missing = count - self.num_row_partitions
        if missing == 0:
            return self
        if missing > 0:
            tail = make._from_tensor_shape(self._static_inner_shape, missing, self.dtype)
            return make(self._row_partitions + tail._row_partitions, tail._static_inner_shape, self.dtype)
        kept, merged = self._row_partitions[:count], self._row_partitions[count:]
        sizes = [kept[-1].nvals if kept else merged[0].nrows] + [spec.uniform_row_length for spec in merged]
        return make(kept, TensorShape(sizes).concatenate(self._static_inner_shape[1:]), self.dtype)

    def _set_rank_if_unknown(self, new_rank):
        """Returns the description with a rank, if it has none. Raises ValueError if it has a smaller one."""
        if new_rank is None:
            raise TypeError("new_rank is None, but expected int")
        if new_rank < 0:
            raise ValueError("Rank must be non-negative")
        if self.rank is not None:
            if self.rank < new_rank:
                raise ValueError("Rank is %d, expected at least %d." % (self.rank, new_rank))
            return self
        sizes = [None] * new_rank
        if self._row_partitions:
            sizes = [self._row_partitions[-1].nvals] + [None] * (max(new_rank - self.num_row_partitions, 1) - 1)
        return type(self)(self._row_partitions, sizes, self.dtype)

    def _truncate(self, new_rank):
        """Returns the description of the outermost dimensions of the shapes."""
        make = type(self)
        if self.rank is None:
            return self._set_rank_if_unknown(new_rank)._truncate(new_rank)
        if new_rank <= 1:
            return make._from_tensor_shape([self._dimension(0)] if new_rank else [], 0, self.dtype)
        if new_rank <= self.num_row_partitions:
            kept = self._row_partitions[:new_rank - 1]
            return make(kept, [kept[-1].nvals], self.dtype)
        return make(self._row_partitions, self._static_inner_shape[:new_rank - self.num_row_partitions], self.dtype)

    def _to_tensor_shape(self):
        """Returns the static shape of tensors of these shapes."""
        if self.rank is None:
            return TensorShape(None)
        return TensorShape([self._dimension(axis) for axis in range(self.rank)])

    def __repr__(self):
        return "DynamicRaggedShape.Spec(row_partitions=%r, static_inner_shape=%r, dtype=%r)" % (
            self._row_partitions, self._static_inner_shape, self.dtype)


def _times(number, size):
    return None if number is None or size is None else number * size


class DynamicRaggedShapeBatchEncoder(ExtensionTypeBatchEncoder):
    """Batches of shapes: a shape stands for a tensor of bools that has it, so a batch of shapes is a shape with one more dimension."""

    def batch(self, spec, batch_size):
        """Returns the description of batches."""
        inner, dtype, make = spec._static_inner_shape, spec.dtype, type(spec)
        if not spec.num_row_partitions and (batch_size is not None or spec.inner_rank == 0):
            return make._from_tensor_shape(TensorShape([batch_size]).concatenate(inner), 0, dtype)
        rows = spec._dimension(0)
        head = RowPartitionSpec(batch_size, _times(rows, batch_size), rows, dtype)
        partitions = [RowPartitionSpec(_times(one.nrows, batch_size), _times(one.nvals, batch_size), one.uniform_row_length, dtype)
                      for one in spec._row_partitions]
        return make([head] + partitions, TensorShape([_times(_first(inner).value, batch_size)]).concatenate(inner[1:]), dtype)

    def unbatch(self, spec):
        """Returns the description of an element of a batch."""
        inner, dtype, make = spec._static_inner_shape, spec.dtype, type(spec)
        if not spec.num_row_partitions:
            return make([], inner[1:], dtype)
        head, *others = spec._row_partitions
        size = None if head.uniform_row_length is None else head.nrows  # of the batch, as long as it divides the numbers of rows
        partitions = []
        for one in others:
            rows = None if size is None or one.nrows is None else one.nrows // size
            if one.uniform_row_length is None:
                size = None
            partitions.append(RowPartitionSpec(rows, None if size is None else one.nvals // size, one.uniform_row_length, dtype))
        count = None if size is None else (_first(inner) // size).value
        return make(partitions, TensorShape([count]).concatenate(inner[1:]), dtype)

    def encode(self, spec, value, minimum_rank=0):
        """Returns the tensor that stands for a shape."""
        from runnel.ragged.dynamic_ragged_shape import ones
        return ones(value, dtype=dtypes.bool)

    def decode(self, spec, encoding):
        """Returns the shape of the tensor that stands for it."""
        return spec.value_type.from_tensor(encoding, dtype=spec.dtype)

    def encoding_specs(self, spec):
        """Returns the description of the tensors that stand for shapes."""
        from runnel.core.composite_specs import RaggedTensorSpec
        return RaggedTensorSpec(spec._to_tensor_shape(), dtypes.bool, spec.num_row_partitions if spec.rank != 0 else -1, spec.dtype)
