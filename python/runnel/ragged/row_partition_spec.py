"""The description of row partitions."""

from runnel import dtypes
from runnel.core import tensor_shape
from runnel.core.type_spec import TensorSpec, TypeSpec, register


def _dimension(shape):
    return shape.as_list()[0]


def _fit(nrows, nvals, length):
    """Tells whether numbers of rows and values and a length, each maybe None, can belong together."""
    if nvals and 0 in (nrows, length):
        return False
    if nvals is None or not length:
        return True
    return nvals % length == 0 and nrows in (None, nvals // length)


@register("tf.RowPartitionSpec")
class RowPartitionSpec(TypeSpec):
    """The numbers of rows and values, the length of all rows, and the type of the numbers of a RowPartition; None if unknown."""

    def __init__(self, nrows=None, nvals=None, uniform_row_length=None, dtype=dtypes.int64):
        self._nrows, self._nvals = tensor_shape.TensorShape([nrows]), tensor_shape.TensorShape([nvals])
        self._uniform_row_length = uniform_row_length.with_rank(1) if isinstance(uniform_row_length, tensor_shape.TensorShape) else (
            tensor_shape.TensorShape([uniform_row_length]))
        self._dtype = dtypes.as_dtype(dtype)
        if self._dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError("dtype must be tf.int32 or tf.int64")
        self._complete()

    def _complete(self):
        """Computes each number that follows from the others. Raises ValueError if they do not fit."""
        nrows, nvals, length = self.nrows, self.nvals, self.uniform_row_length
        if nrows == 0 and nvals:
            raise ValueError("nvals=%s is not compatible with nrows=%s" % (nvals, nrows))
        if length == 0 and nvals:
            raise ValueError("nvals=%s is not compatible with uniform_row_length=%s" % (nvals, self._uniform_row_length))
        if length and nvals is not None and nvals % length:
            raise ValueError("nvals=%s is not compatible with uniform_row_length=%s (doesn't divide evenly)" % (nvals, length))
        if None not in (nrows, nvals, length) and nvals != nrows * length:
            raise ValueError("nvals=%s is not compatible with nrows=%s and uniform_row_length=%s" % (nvals, nrows, length))
        if nvals is None and (0 in (nrows, length) or None not in (nrows, length)):
            self._nvals = tensor_shape.TensorShape([0 if 0 in (nrows, length) else nrows * length])
        if nrows is None and nvals is not None and length:
            self._nrows = tensor_shape.TensorShape([nvals // length])

    @property
    def value_type(self):
        from runnel.ragged.row_partition import RowPartition
        return RowPartition

    nrows = property(lambda self: _dimension(self._nrows))
    nvals = property(lambda self: _dimension(self._nvals))
    uniform_row_length = property(lambda self: _dimension(self._uniform_row_length))
    dtype = property(lambda self: self._dtype)

    def is_compatible_with(self, other):
        """Tells whether a partition, or another description, fits this one."""
        if not super().is_compatible_with(other):
            return False
        other = other if isinstance(other, RowPartitionSpec) else RowPartitionSpec.from_value(other)
        return _fit(*self._merged(other))

    def _merged(self, other):
        return tuple(_dimension(mine.merge_with(theirs)) for mine, theirs in (
            (self._nrows, other._nrows), (self._nvals, other._nvals), (self._uniform_row_length, other._uniform_row_length)))

    def _merge_with(self, other):
        """Returns the description of partitions that fit both."""
        numbers = self._merged(other)
        if not _fit(*numbers):
            raise ValueError("Merging incompatible RowPartitionSpecs")
        if self.dtype != other.dtype:
            raise ValueError("Merging RowPartitionSpecs with incompatible dtypes")
        return RowPartitionSpec(*numbers, self.dtype)

    def with_dtype(self, dtype):
        """Returns the description with another type of numbers."""
        return RowPartitionSpec(self.nrows, self.nvals, self._uniform_row_length, dtype)

    def _serialize(self):
        return self._nrows, self._nvals, self._uniform_row_length, self._dtype

    @classmethod
    def _deserialize(cls, serialization):
        nrows, nvals, uniform_row_length, dtype = serialization
        return cls(_dimension(nrows), _dimension(nvals), uniform_row_length, dtype)

    @property
    def _component_specs(self):
        return TensorSpec([None if self.nrows is None else self.nrows + 1], self._dtype)

    def _to_components(self, value):
        return value.row_splits()

    def _from_components(self, components):
        return self.value_type.from_row_splits(components, validate=False)

    @classmethod
    def from_value(cls, value):
        """Returns the description of a partition."""
        from runnel.ragged.row_partition import RowPartition
        if not isinstance(value, RowPartition):
            raise TypeError("Expected `value` to be a `RowPartition`")
        return cls(value.static_nrows, value.static_nvals, value.static_uniform_row_length, value.dtype)

    def __deepcopy__(self, memo):
        return RowPartitionSpec(self.nrows, self.nvals, self._uniform_row_length, self.dtype)

    def __repr__(self):
        return "RowPartitionSpec(nrows=%s, nvals=%s, uniform_row_length=%s, dtype=%r)" % (
            self.nrows, self.nvals, self.uniform_row_length, self.dtype)
