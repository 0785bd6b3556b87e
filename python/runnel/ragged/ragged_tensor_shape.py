"""RaggedTensorDynamicShape: the older description of shapes with ragged dimensions, by the sizes of the slices of each dimension.

The outer dimensions down to the innermost ragged one are *partitioned*: the size of a uniform one is a scalar, and that of a ragged one a
vector with a number per slice. The others are *inner*, and have their sizes in one vector.
"""

from runnel import dtypes
from runnel.core import convert, framework
from runnel.ops import array_ops, math_ops
from runnel.ragged.dynamic_ragged_shape import DynamicRaggedShape
from runnel.ragged.ragged_broadcast import broadcast_to as _broadcast_to_shape
from runnel.ragged.ragged_gather import repeat_ranges
from runnel.ragged.ragged_tensor import RaggedTensor, as_ragged_or_tensor
from runnel.ragged.row_partition import RowPartition


class RaggedTensorDynamicShape:
    """The shape of a tensor of which some dimensions are ragged.

    Args:
      partitioned_dim_sizes: the sizes of the partitioned dimensions, scalars and vectors.
      inner_dim_sizes: a vector of the sizes of the inner dimensions.
      dim_size_dtype: the type of all of them, by default that of the vectors.
    """

    def __init__(self, partitioned_dim_sizes, inner_dim_sizes, dim_size_dtype=None):
        assert isinstance(partitioned_dim_sizes, (list, tuple))
        with framework.name_scope(None, "RaggedTensorDynamicShape", (partitioned_dim_sizes, inner_dim_sizes)):
            sizes = [convert.convert_to_tensor(x, name="partitioned_dimension_size_%d" % i) for i, x in enumerate(partitioned_dim_sizes)]
            inner = convert.convert_to_tensor(inner_dim_sizes, name="inner_dim_sizes")
            for axis, size in enumerate(sizes):
                if size.shape.ndims is None:
                    raise ValueError("rank of partitioned_dim_sizes[%d] is unknown" % axis)
                size.shape.with_rank_at_most(1)
            if sizes and sizes[0].shape.ndims == 1:
                raise ValueError("outermost partitioned dimension must be uniform")
            if sizes and sizes[-1].shape.ndims == 0:
                raise ValueError("innermost partitioned dimension must be ragged")
            inner.shape.assert_has_rank(1)
            kinds = {x.dtype for x in sizes if x.shape.ndims == 1}
            if dim_size_dtype is None:
                if len(kinds) > 1:
                    raise ValueError("partitioned_dim_sizes must have matching dtypes")
                dim_size_dtype = kinds.pop() if kinds else dtypes.int64
            self._partitioned = tuple(math_ops.cast(x, dim_size_dtype) for x in sizes)
            self._inner = math_ops.cast(inner, dim_size_dtype)

    @staticmethod
    def from_dim_sizes(dim_sizes):
        """Returns the shape of a list with a number per uniform dimension, and a vector per ragged one."""
        with framework.name_scope(None, "RaggedTensorDynamicShapeFromDimensionSizes", [dim_sizes]):
            sizes = [convert.convert_to_tensor(x, dtype_hint=dtypes.int64, name="dim_sizes") for x in dim_sizes]
            count = max((i + 1 for i, x in enumerate(sizes) if x.shape.ndims != 0), default=0)
            kind = next((x.dtype for x in sizes if x.shape.ndims == 1), dtypes.int64)
            inner = [math_ops.cast(x, kind) for x in sizes[count:]]
            return RaggedTensorDynamicShape(sizes[:count], array_ops.stack(inner) if inner else convert.constant([], kind))

    @classmethod
    def from_tensor(cls, rt_input, dim_size_dtype=None):
        """Returns the shape of a tensor or ragged tensor."""
        with framework.name_scope(None, "RaggedTensorDynamicShapeFromTensor", [rt_input]):
            rt_input = as_ragged_or_tensor(rt_input)
            if not isinstance(rt_input, RaggedTensor):
                return cls([], array_ops.shape(rt_input), dim_size_dtype)
            return cls((rt_input.nrows(), *rt_input.nested_row_lengths()), array_ops.shape(rt_input.flat_values)[1:], dim_size_dtype)

    partitioned_dim_sizes = property(lambda self: self._partitioned)
    inner_dim_sizes = property(lambda self: self._inner)
    num_partitioned_dimensions = property(lambda self: len(self._partitioned))
    dim_size_dtype = property(lambda self: self._inner.dtype)

    @property
    def num_inner_dimensions(self):
        """The number of inner dimensions, or None."""
        return self._inner.shape.dims[0].value

    @property
    def rank(self):
        """The number of dimensions, or None."""
        inner = self.num_inner_dimensions
        return None if inner is None else len(self._partitioned) + inner

    def dimension_size(self, axis):
        """Returns the size of a dimension: a scalar, or a vector with the size of each slice."""
        count = len(self._partitioned)
        return self._partitioned[axis] if axis < count else self._inner[axis - count]

    def is_ragged(self, axis):
        """Tells whether a dimension is ragged."""
        if axis >= 0 and self.rank is not None and axis >= self.rank:
            raise ValueError("Invalid axis value: %d" % axis)
        return 0 <= axis < len(self._partitioned) and self._partitioned[axis].shape.ndims == 1

    def num_slices_in_dimension(self, axis):
        """Returns the number of slices across a dimension, those of all outer slices together."""
        if axis < 0:
            return convert.constant(1, dtype=self.dim_size_dtype)
        if self.is_ragged(axis):
            return math_ops.reduce_sum(self._partitioned[axis])
        return self.dimension_size(axis) * self.num_slices_in_dimension(axis - 1)

    def broadcast_to_rank(self, rank):
        """Returns the shape with dimensions of size 1 in front, so that it has this rank."""
        if self.rank is None:
            raise ValueError("Unable to broadcast: self.rank is unknown")
        more = rank - self.rank
        if more < 0:
            raise ValueError("Unable to broadcast: rank=%d must be greater than self.rank=%d." % (rank, self.rank))
        if not more:
            return self
        if self._partitioned:
            return RaggedTensorDynamicShape((1,) * more + self._partitioned, self._inner, self.dim_size_dtype)
        ones = array_ops.ones([more], dtype=self.dim_size_dtype)
        return RaggedTensorDynamicShape([], array_ops.concat([ones, self._inner], axis=0), self.dim_size_dtype)

    def broadcast_dimension(self, axis, lengths):
        """Returns the shape with a dimension repeated to a size, if its own is 1.

        Args:
          axis: the dimension.
          lengths: a scalar, or a vector with the size of each slice.
        """
        lengths = math_ops.cast(convert.convert_to_tensor(lengths, name="lengths"), self.dim_size_dtype)
        if lengths.shape.ndims is None:
            raise ValueError("lengths must have a known rank.")
        if lengths.shape.ndims > 1:
            raise ValueError("lengths must be a scalar or vector")
        if self.is_ragged(axis):
            return self  # its slices must have these sizes already; values that do not are found when they are broadcast
        own, is_vector = self.dimension_size(axis), lengths.shape.ndims == 1
        if is_vector and axis == 0:
            raise ValueError("lengths must be a scalar for the outermost dimension")
        sizes = array_ops.where_v2(math_ops.equal(own, 1), lengths, own)
        count = len(self._partitioned)
        if axis >= count and not is_vector:
            inner = array_ops.concat([self._inner[:axis - count], [sizes], self._inner[axis - count + 1:]], axis=0)
            return RaggedTensorDynamicShape(self._partitioned, inner, self.dim_size_dtype)
        if axis >= count:
            outer = [self._inner[i] for i in range(axis - count)]
            return RaggedTensorDynamicShape((*self._partitioned, *outer, sizes), self._inner[axis - count + 1:], self.dim_size_dtype)
        repeats = array_ops.where_v2(math_ops.equal(own, 1), lengths, array_ops.ones_like(own))
        elements = self.num_slices_in_dimension(axis)
        if is_vector:  # a number per slice of the outer dimension, and so per element if the size is 1
            repeats = array_ops.where_v2(math_ops.equal(own, 1), lengths, array_ops.ones_like(lengths))
            repeats = array_ops.repeat(repeats, own)
        else:
            repeats = array_ops.fill([elements], repeats)
        return RaggedTensorDynamicShape((*self._partitioned[:axis], sizes, *self._repeated(axis, elements, repeats)), self._inner, self.dim_size_dtype)

    def _repeated(self, axis, elements, repeats):
        """Returns the sizes of the partitioned dimensions after `axis`, of which each element occurs `repeats` times."""
        found, splits = [], math_ops.range(elements + 1)  # where the rows of each element begin
        for size in self._partitioned[axis + 1:]:
            if size.shape.ndims == 0:
                found.append(size)
                splits = splits * size
                continue
            found.append(repeat_ranges(size, splits, repeats))
            ends = array_ops.concat([[0], math_ops.cumsum(size)], axis=0)
            splits = array_ops.gather(math_ops.cast(ends, self.dim_size_dtype), splits)
        return found

    def with_dim_size_dtype(self, dtype):
        """Returns the shape with sizes of another type."""
        if dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError("dtype must be int32 or int64")
        return self if dtype == self.dim_size_dtype else RaggedTensorDynamicShape(
            [math_ops.cast(x, dtype) for x in self._partitioned], math_ops.cast(self._inner, dtype), dtype)

    def _as_partitions(self):
        """Returns the shape as a DynamicRaggedShape."""
        partitions = []
        for axis, size in enumerate(self._partitioned[1:], 1):
            if size.shape.ndims == 1:
                partitions.append(RowPartition.from_row_lengths(size, validate=False))
            else:
                partitions.append(RowPartition.from_uniform_row_length(size, nrows=self.num_slices_in_dimension(axis - 1), validate=False))
        inner = self._inner
        if partitions:
            inner = array_ops.concat([[self.num_slices_in_dimension(len(partitions))], inner], axis=0)
        return DynamicRaggedShape(partitions, inner, self.dim_size_dtype)

    def __repr__(self):
        return "RaggedTensorDynamicShape(partitioned_dim_sizes=%r, inner_dim_sizes=%r)" % (self._partitioned, self._inner)


def broadcast_dynamic_shape(shape_x, shape_y):
    """Returns the shape to which both shapes broadcast."""
    for name, shape in (("shape_x", shape_x), ("shape_y", shape_y)):
        if not isinstance(shape, RaggedTensorDynamicShape):
            raise TypeError("%s must be a RaggedTensorDynamicShape" % name)
    if shape_x.rank is None or shape_y.rank is None:
        raise ValueError("Unable to broadcast: unknown rank")
    rank = max(shape_x.rank, shape_y.rank)
    shape_x, shape_y = shape_x.broadcast_to_rank(rank), shape_y.broadcast_to_rank(rank)
    for axis in range(rank):
        shape_x = shape_x.broadcast_dimension(axis, shape_y.dimension_size(axis))
        shape_y = shape_y.broadcast_dimension(axis, shape_x.dimension_size(axis))
    return shape_x


def broadcast_to(rt_input, shape, broadcast_inner_dimensions=True):
    """Returns a tensor or ragged tensor, broadcast to a shape.

    Args:
      rt_input: the tensor.
      shape: a RaggedTensorDynamicShape.
      broadcast_inner_dimensions: whether inner dimensions are repeated; without it those of `rt_input` stay.
    """
    if not isinstance(shape, RaggedTensorDynamicShape):
        raise TypeError("shape must be a RaggedTensorDynamicShape")
    rt_input = as_ragged_or_tensor(rt_input)
    own = RaggedTensorDynamicShape.from_tensor(rt_input, shape.dim_size_dtype)
    if not broadcast_inner_dimensions and own.rank is not None and shape.rank is not None:
        own = own.broadcast_to_rank(shape.rank)
        count = shape.num_partitioned_dimensions
        inner = [own.dimension_size(axis) for axis in range(count, shape.rank)]
        shape = RaggedTensorDynamicShape(shape.partitioned_dim_sizes, array_ops.stack(inner) if inner else shape.inner_dim_sizes[:0],
                                         shape.dim_size_dtype)
    return _broadcast_to_shape(rt_input, shape._as_partitions())
