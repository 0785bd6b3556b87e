"""tf.experimental.DynamicRaggedShape: the shape of a tensor or a ragged tensor, as values.

It has the row partitions of the ragged dimensions, and the shape of the flat values. `ragged_broadcast` computes what two shapes
broadcast to.
"""

import functools

from runnel import dtypes
from runnel.core import convert, tensor_shape
from runnel.core.convert import constant_value
from runnel.core.framework import Tensor
from runnel.extension_types.extension_type import BatchableExtensionType
from runnel.ops import array_ops, check_ops, math_ops
from runnel.ragged import ragged_functions
from runnel.ragged.dynamic_ragged_shape_spec import DynamicRaggedShapeBatchEncoder, DynamicRaggedShapeSpec
from runnel.ragged.ragged_creation import flat_shape
from runnel.ragged.ragged_tensor import RaggedTensor, RaggedTensorValue, _axis, as_ragged_or_tensor
from runnel.ragged.row_partition import RowPartition, _after


def find_dtype(value, preferred):
    """Returns `preferred`, or the type of a value's numbers, or None if it has none. Raises ValueError if that is no type of row splits."""
    dtype = preferred
    if dtype is None and not isinstance(value, (int, list, tuple)):
        dtype = value if isinstance(value, dtypes.DType) else value.dtype
    if dtype is not None and dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError("Illegal dtype: %s" % dtype)
    return None if dtype is None else dtypes.as_dtype(dtype)


class DynamicRaggedShape(BatchableExtensionType):
    """The shape of a tensor or of a ragged tensor.

        shape = tf.experimental.DynamicRaggedShape.from_lengths([2, (3, 1), 7])
        shape.row_partitions[0].row_lengths()  # [3, 1]
        shape.inner_shape                      # [4, 7]
        shape[0], shape[2]                     # 2, 7: sizes of dimensions that are uniform
    """

    _row_partitions: tuple[RowPartition, ...]
    _inner_shape: Tensor
    _static_inner_shape: tensor_shape.TensorShape
    __batch_encoder__ = DynamicRaggedShapeBatchEncoder()
    __name__ = "tf.DynamicRaggedShape"
    Spec = DynamicRaggedShapeSpec

    def __init__(self, row_partitions, inner_shape, dtype=None, validate=False, static_inner_shape=None):
        if not hasattr(row_partitions, "__iter__"):
            raise TypeError("row_partitions should be a list of row partitions. Instead, got %s" % (row_partitions,))
        for partition in row_partitions:
            if not isinstance(partition, RowPartition):
                raise TypeError("row_partitions contains %s which is not a RowPartition" % (partition,))
        dtype = functools.reduce(lambda dtype, partition: find_dtype(partition, dtype), row_partitions, dtype)
        dtype = find_dtype(inner_shape, dtype) or dtypes.int64
        row_partitions = tuple(partition.with_dtype(dtype) for partition in row_partitions)
        inner_shape = math_ops.cast(convert.convert_to_tensor(inner_shape, dtype_hint=dtype, name="inner_dim_sizes"), dtype)
        inner_shape.shape.assert_has_rank(1)
        static = convert.constant_value_as_shape(inner_shape)
        if static_inner_shape is not None:
            static = static.merge_with(static_inner_shape)
        checks = _alignment_checks(row_partitions, inner_shape, static, validate)
        if checks:
            inner_shape = _after(checks, inner_shape)
            row_partitions = tuple(partition._with_dependencies(checks) for partition in row_partitions)
        self._row_partitions, self._inner_shape, self._static_inner_shape = row_partitions, inner_shape, static

    # Creation.

    @classmethod
    def from_lengths(cls, lengths, num_row_partitions=None, dtype=dtypes.int64):
        """Creates a shape from the sizes of its dimensions: numbers, and tuples of row lengths for ragged dimensions."""
        if not isinstance(lengths, list):
            raise ValueError("lengths should be a list")
        for one in lengths:
            if not (isinstance(one, int) or isinstance(one, tuple) and all(isinstance(length, int) for length in one)):
                raise ValueError("element of lengths should be int or tuple of ints: instead %r" % (one,))
        if num_row_partitions is None:
            num_row_partitions = max((axis for axis, one in enumerate(lengths) if isinstance(one, tuple)), default=0)
        if not isinstance(num_row_partitions, int):
            raise ValueError("num_row_partitions should be an int or None")
        if not lengths and num_row_partitions > 0:
            raise ValueError("num_row_partitions==0 for a scalar shape")
        if lengths and num_row_partitions >= len(lengths):
            raise ValueError("num_row_partitions should be less than `len(lengths)` if shape is not scalar.")
        if num_row_partitions <= 0:
            return cls([], lengths, dtype=dtype)
        partitions, count = partitions_of_lengths(lengths[:num_row_partitions + 1])
        return cls(partitions, [count] + lengths[num_row_partitions + 1:], dtype=dtype)

    @classmethod
    def from_row_partitions(cls, row_partitions, dtype=None):
        """Creates the shape of a ragged tensor whose flat values are a vector."""
        if not row_partitions:
            raise ValueError("row_partitions cannot be empty")
        return cls(row_partitions, [row_partitions[-1].nvals()], dtype=dtype)

    @classmethod
    def from_tensor(cls, t, dtype=None):
        """Returns the shape of a tensor or of a ragged tensor."""
        if isinstance(t, RaggedTensor):
            return cls(t._nested_row_partitions, flat_shape(t.flat_values, dtypes.int32), dtype=dtype)
        if isinstance(t, RaggedTensorValue):
            return cls([RowPartition.from_row_splits(splits) for splits in t.nested_row_splits], list(t.flat_values.shape), dtype=dtype)
        return cls([], array_ops.shape(t), dtype=dtype)

    @classmethod
    def _from_inner_shape(cls, inner_shape, dtype=None):
        return cls([], inner_shape, dtype=dtype)

    # Its parts.

    row_partitions = property(lambda self: self._row_partitions)
    num_row_partitions = property(lambda self: len(self._row_partitions))
    dtype = property(lambda self: self._inner_shape.dtype)
    inner_shape = property(lambda self: self._inner_shape)
    inner_rank = property(lambda self: self._static_inner_shape.rank)
    rank = property(lambda self: None if self.inner_rank is None else self.num_row_partitions + self.inner_rank)

    def is_uniform(self, axis):
        """Tells whether all rows of a dimension are known to have one length."""
        if not isinstance(axis, int):
            raise TypeError("axis must be an integer")
        if axis < 0:
            raise IndexError("Negative axis values are not supported")
        if self.rank is not None and axis >= self.rank:
            raise IndexError("Expected axis=%s < rank=%s" % (axis, self.rank))
        return axis == 0 or axis > self.num_row_partitions or self._row_partitions[axis - 1].is_uniform()

    def static_lengths(self, ragged_lengths=True):
        """Returns the sizes of the dimensions: None if unknown, row lengths for ragged ones. It ends in an ellipsis if the rank is unknown."""
        inner = [...] if self.inner_rank is None else self._static_inner_shape.as_list()
        if not self._row_partitions:
            return inner
        sizes = [self._row_partitions[0].static_nrows]
        for partition in self._row_partitions:
            known = None
            if partition.is_uniform():
                known = partition.static_uniform_row_length
            elif ragged_lengths:
                lengths = constant_value(partition.row_lengths())
                known = None if lengths is None else tuple(lengths.tolist())
            sizes.append(known)
        return sizes + (inner if self.inner_rank is None else inner[1:])

    def _to_tensor_shape(self):
        lengths = self.static_lengths(ragged_lengths=False)
        return tensor_shape.TensorShape(None if lengths[-1:] == [...] else lengths)

    def __repr__(self):
        shown = ", ".join("..." if one is ... else str(one) for one in self.static_lengths())
        return "<DynamicRaggedShape lengths=[%s] num_row_partitions=%d>" % (shown, self.num_row_partitions)

    # Sizes and slices.

    def _inner_size(self, axis):
        """Returns the size of an inner dimension, as a number if it is known."""
        known = self._static_inner_shape.as_list()[axis] if self._static_inner_shape.rank is not None else None
        return self._inner_shape[axis] if known is None else known

    def _dimension(self, index):
        """Returns the size of a dimension. Raises ValueError if it is ragged."""
        if not isinstance(index, int):
            raise TypeError("index should be an int")
        if not self._row_partitions or index > self.num_row_partitions + 1:
            if self.rank is None:
                raise ValueError("Rank must be known to use __getitem__ on a large index.")
            if index >= self.rank:
                raise IndexError("Index is too big: %d>=%d" % (index, self.rank))
        if index < 0:
            raise IndexError("Index must be non-negative: %d" % index)
        if not self.is_uniform(index):
            raise ValueError("Index %d is not uniform" % index)
        if 0 < index <= self.num_row_partitions:
            return self._row_partitions[index - 1].uniform_row_length()
        if index == 0 and self._row_partitions:
            rows = self._row_partitions[0].static_nrows
            return self._row_partitions[0].nrows() if rows is None else convert.constant(rows, self.dtype)
        size = self._inner_size(index - self.num_row_partitions)
        return size if isinstance(size, Tensor) else convert.constant(size, self.dtype)

    def __getitem__(self, index):
        """Returns the size of a uniform dimension, or the shape of a range of dimensions."""
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise IndexError("Cannot stride through a shape")
            return self._slice_shape(self._start(index.start or 0), self._stop(index.stop))
        if not isinstance(index, int):
            raise TypeError("Argument is not an int or a slice")
        if index < 0 and self.rank is None:
            raise ValueError("Rank must be known to use __getitem__ with a negative index.")
        return self._dimension(index + self.rank if index < 0 else index)

    def _start(self, index):
        if index < 0:
            if self.rank is None:
                raise ValueError("Rank must be known to use __getitem__ on a negative index.")
            index = max(index + self.rank, 0)
        if index == 0 or 0 < index <= self.num_row_partitions + 1 and self._row_partitions:
            return index
        if self.rank is None:
            raise ValueError("Rank must be known to use __getitem__ on a large index.")
        return min(index, self.rank)

    def _stop(self, index):
        if self.rank is None:
            if index is None:
                raise ValueError("Rank must be known to use __getitem__ without a stop.")
            if index < 0:
                raise ValueError("Rank must be known to use __getitem__ on a negative index.")
            return index
        return self.rank if index is None else max(index + self.rank, 0) if index < 0 else min(index, self.rank)

    def _slice_shape(self, start, stop):
        """Returns the shape of the dimensions from `start` to `stop`. All must be uniform unless `start` is 0."""
        make = DynamicRaggedShape
        if stop <= start:
            return make._from_inner_shape([])
        if start > 0:
            outer = self if self.rank is not None and stop >= self.rank else self._slice_shape(0, stop)
            if not all(partition.is_uniform() for partition in outer._row_partitions):
                raise ValueError("All relevant dimensions must be uniform")
            if outer.rank is None:
                raise NotImplementedError("__getitem__[start:stop] where start > 0 not implemented")
            return make._from_inner_shape(outer._with_num_row_partitions(0).inner_shape[start:])
        if stop == 1 and self._row_partitions:
            return make._from_inner_shape([self._row_partitions[0].nrows()])
        if stop <= self.num_row_partitions:
            return make.from_row_partitions(self._row_partitions[:stop - 1])
        if self.rank is not None and self.rank <= stop:
            return self
        count = stop - self.num_row_partitions
        return make(self._row_partitions, self._inner_shape[:count], static_inner_shape=None if self.rank is None else [None] * count)

    def _num_elements(self):
        return math_ops.reduce_prod(self._inner_shape)

    def _num_slices_in_dimension(self, axis):
        """Returns how many slices a dimension has in all rows together: the number of elements of the shape up to it."""
        if not isinstance(axis, int):
            raise TypeError("axis must be an integer")
        if axis < 0:
            if self.rank is None:
                raise ValueError("You can't use negative values if the rank is undefined")
            axis += self.rank
        if axis == 0:
            return self._dimension(0)
        if axis <= self.num_row_partitions:
            return self._row_partitions[axis - 1].nvals()
        return math_ops.reduce_prod(self._inner_shape[:axis - self.num_row_partitions + 1])

    # Changes.

    def _alt_inner_shape(self, new_inner_rank):
        """Returns the inner shape if it had another rank. Partitions that join it must be uniform."""
        count, rank = new_inner_rank, self.inner_rank
        if count == 0:
            raise ValueError("new_inner_rank cannot be zero")
        if rank == 0:
            raise ValueError("old inner_rank cannot be zero")
        if count == rank:
            return self._inner_shape
        static = self._static_inner_shape
        if count < rank:
            if static.is_fully_defined():
                return convert.constant([static[:rank - count + 1].num_elements()] + static.as_list()[rank - count + 1:], self.dtype)
            return array_ops.concat([[self._num_slices_in_dimension(-count)], self._inner_shape[rank - count + 1:]], 0)
        joining = self._row_partitions[rank - count:]
        if not all(partition.is_uniform() for partition in joining):
            raise ValueError("Cannot get an inner shape over a ragged dimension")
        sizes = [self._num_slices_in_dimension(-count)] + [partition.uniform_row_length() for partition in joining]
        return array_ops.concat([array_ops.stack(sizes), self._inner_shape[1:]], 0)

    def _with_inner_rank(self, inner_rank):
        if self.rank is None:
            raise ValueError("Rank must be known to adjust inner_rank")
        if self.rank < 2:
            if inner_rank == self.rank:
                return self
            raise ValueError("Cannot change inner_rank if rank < 2")
        return self._with_num_row_partitions(self.rank - inner_rank)

    def _with_num_row_partitions(self, num_row_partitions):
        """Returns the same shape with another number of partitions. Those that join the inner shape must be uniform."""
        count = num_row_partitions
        if self.rank is None:
            raise ValueError("Rank must be known to adjust num_row_partitions")
        if not isinstance(count, int):
            raise ValueError("num_row_partitions must be an int")
        if count < 0:
            raise ValueError("num_row_partitions must be nonnegative")
        if count == self.num_row_partitions:
            return self
        if count >= self.rank:
            raise ValueError("num_row_partitions must be less than rank")
        inner, added, rows = self._alt_inner_shape(self.rank - count), [], self._inner_size(0)
        for axis in range(1, count - self.num_row_partitions + 1):
            length = self._inner_size(axis)
            added.append(RowPartition.from_uniform_row_length(length, nrows=rows, dtype=self.dtype))
            rows = rows * length
        return DynamicRaggedShape([*self._row_partitions[:count], *added], inner)

    def _as_row_partitions(self):
        if self.rank is None:
            raise ValueError("rank must be known for _as_row_partitions")
        if self.rank < 1:
            raise ValueError("rank must be >= 1 for _as_row_partitions")
        return self._with_num_row_partitions(self.rank - 1)._row_partitions

    def _merge_dims(self, outer_axis, inner_axis):
        """Returns the shape with a range of dimensions merged into one."""
        make, count = DynamicRaggedShape, self.num_row_partitions
        outer = _axis(outer_axis, self.rank, "outer_axis", "rank(self)")
        inner = _axis(inner_axis, self.rank, "inner_axis", "rank(self)")
        if outer > inner:
            raise ValueError("Expected outer_axis (%s) to be less than or equal to inner_axis (%s)." % (outer, inner))
        if outer == inner:
            return self
        if outer > count or not count:  # inner dimensions alone
            first, last, static = outer - count, inner - count, self._static_inner_shape
            merged = math_ops.reduce_prod(self._inner_shape[first:last + 1])
            sizes = array_ops.concat([self._inner_shape[:first], [merged], self._inner_shape[last + 1:]], 0)
            known = static[:first].concatenate([static[first:last + 1].num_elements()]).concatenate(static[last + 1:])
            return make(self._row_partitions, sizes, self.dtype, static_inner_shape=known)
        if inner <= count:  # partitions alone
            kept = self._row_partitions[inner:]
            if outer > 0:
                kept = (*self._row_partitions[:outer - 1], _joined(self._row_partitions[outer - 1:inner]), *kept)
            return make(kept, self._inner_shape, self.dtype, static_inner_shape=self._static_inner_shape)
        if self.rank is None:
            raise ValueError("Cannot merge_dims of the inner shape if the dimension of inner_shape is unknown")
        sizes = self._alt_inner_shape(self.rank - inner)
        if outer == 0:
            return make._from_inner_shape(sizes)
        factor = math_ops.reduce_prod(self._inner_shape[1:inner - count + 1])
        last = RowPartition.from_row_splits(_joined(self._row_partitions[outer - 1:]).row_splits() * factor, validate=False)
        return make([*self._row_partitions[:outer - 1], last], sizes)

    def with_dtype(self, dtype):
        """Returns the shape with numbers of another type."""
        return self if dtype == self.dtype else DynamicRaggedShape(self._row_partitions, self._inner_shape, dtype=dtype)

    def _merge_with(self, other):
        """Returns the shape, with what another one that is equal to it knows."""
        return self._merged(other, RowPartition._merge_precomputed_encodings)

    def _merge_with_spec(self, other):
        """Returns the shape, with what a description knows of it."""
        return self._merged(other, RowPartition._merge_with_spec)

    def _merged(self, other, merge):
        count = max(self.num_row_partitions, other.num_row_partitions)
        mine, theirs = self._with_num_row_partitions(count), other._with_num_row_partitions(count)
        partitions = [merge(a, b) for a, b in zip(mine._row_partitions, theirs._row_partitions)]
        return DynamicRaggedShape(partitions, mine._inner_shape, theirs.dtype if mine.dtype == dtypes.int32 else dtypes.int64, True,
                                  mine._static_inner_shape.merge_with(theirs._static_inner_shape))

    def _add_row_partitions(self, flat_values, validate=False):
        """Returns a tensor of this shape, whose flat values are given."""
        if not self._row_partitions:
            return flat_values
        last = self._row_partitions[-1]
        if validate and isinstance(flat_values, Tensor):
            message = "Last row partition does not match flat_values."
            known = flat_values.shape.as_list()[0] if flat_values.shape.rank else None
            if known is None or last.static_nvals is None:
                flat_values = _after([check_ops.assert_equal(last.nvals(), array_ops.shape(flat_values, out_type=self.dtype)[0],
                                                             message=message)], flat_values)
            elif known != last.static_nvals:
                raise ValueError(message)
        return RaggedTensor._from_nested_row_partitions(flat_values, self._row_partitions, validate=False)


def _alignment_checks(partitions, inner_shape, static, validate):
    """Checks that partitions and the inner shape fit each other. Returns the checks that are left for the step."""
    checks = []

    def check(count, known, other, other_known, message):
        if known is not None and other_known is not None:
            if known != other_known:
                raise ValueError(message)
        elif validate:
            checks.append(check_ops.assert_equal(count(), other(), message=message))

    for axis, (above, partition) in enumerate(zip(partitions, partitions[1:])):
        check(above.nvals, above.static_nvals, partition.nrows, partition.static_nrows,
              "RowPartitions in DynamicRaggedShape do not align between %d and %d" % (axis, axis + 1))
    if partitions:
        check(partitions[-1].nvals, partitions[-1].static_nvals, lambda: inner_shape[0], static.as_list()[0] if static.rank else None,
              "Last row partition does not match inner_shape.")
    return checks


def partitions_of_lengths(lengths, dtype=None):
    """Returns the partitions of dimensions of these sizes, numbers or tuples of row lengths, and the number of values."""
    count, partitions = lengths[0], []
    for one in lengths[1:]:
        if isinstance(one, int):
            partitions.append(RowPartition.from_uniform_row_length(one, count * one, nrows=count, dtype_hint=dtype))
            count *= one
        else:
            if count != len(one):
                raise ValueError("Shape not consistent.")
            partitions.append(RowPartition.from_row_lengths(one, dtype_hint=dtype))
            count = sum(one)
    return partitions, count


def _joined(partitions):
    """Returns the partition that several, each within the other, are together."""
    splits = partitions[0].row_splits()
    for partition in partitions[1:]:
        splits = array_ops.gather(partition.row_splits(), splits)
    return RowPartition.from_row_splits(splits, validate=False)


def _of_shape(shape, flat_values):
    if flat_values.op is not None:  # in a graph, the shape may know more than the op
        flat_values.set_shape(shape._static_inner_shape)
    return shape._add_row_partitions(flat_values)


def ones(shape, dtype=dtypes.float32, name=None, layout=None):
    """Returns a tensor of ones of a shape."""
    return _of_shape(shape, array_ops.ones(shape.inner_shape, dtype, name))


def zeros(shape, dtype=dtypes.float32, name=None, layout=None):
    """Returns a tensor of zeros of a shape."""
    return _of_shape(shape, array_ops.zeros(shape.inner_shape, dtype, name))


def fill(dims, value, name=None, layout=None):
    """Returns a tensor of a shape with one value."""
    return _of_shape(dims, array_ops.fill(dims.inner_shape, value, name))


def ragged_reshape(tensor, shape, name=None):
    """Returns a tensor or a ragged tensor with its values in another shape."""
    tensor = as_ragged_or_tensor(tensor, name="tensor")
    values = tensor.flat_values if isinstance(tensor, RaggedTensor) else tensor
    if not isinstance(shape, DynamicRaggedShape):
        return array_ops.reshape(values, shape, name)
    return _of_shape(shape, array_ops.reshape(values, shape.inner_shape, name))


def _broadcast_to(input, shape, name=None):  # noqa: A002
    from runnel.ragged import ragged_broadcast
    return ragged_broadcast.broadcast_to(input, shape)


def _broadcast_dynamic_shape(shape_x, shape_y):
    from runnel.ragged import ragged_broadcast
    return ragged_broadcast.broadcast_dynamic_shape(shape_x, shape_y)


def _install():
    handles = {"ones": ones, "zeros": zeros, "fill": fill, "reshape": ragged_reshape, "broadcast_to": _broadcast_to,
               "broadcast_dynamic_shape": _broadcast_dynamic_shape}
    ragged_functions.teach({name: lambda _, handle=handle: handle for name, handle in handles.items()},
                           lambda value: isinstance(value, DynamicRaggedShape))


_install()
