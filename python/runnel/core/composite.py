"""Values made of several tensors: IndexedSlices and SparseTensor."""

import collections

from runnel import dtypes
from runnel.core import tensor_shape
from runnel.core.convert import constant_value_as_shape, convert_to_tensor, register_tensor_conversion_function
from runnel.core.type_spec import CompositeTensor


class IndexedSlices(CompositeTensor):
    """Selected rows of a tensor of shape `dense_shape`: row i of `values` belongs to row `indices[i]`.

    Rows with the same index are added. Gradients of lookups have this form.
    """

    def __init__(self, values, indices, dense_shape=None):
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self):
        """The rows."""
        return self._values

    @property
    def indices(self):
        """The row number of each row."""
        return self._indices

    @property
    def dense_shape(self):
        """The shape of the whole tensor, or None."""
        return self._dense_shape

    @property
    def shape(self):
        """The static shape of the whole tensor."""
        if self._dense_shape is None:
            return tensor_shape.unknown_shape()
        return constant_value_as_shape(self._dense_shape)

    @property
    def name(self):
        """The name of `values`."""
        return self.values.name

    @property
    def device(self):
        """The device of `values`."""
        return self.values.device

    @property
    def op(self):
        """The operation that computes `values`."""
        return self.values.op

    @property
    def dtype(self):
        """The type of `values`."""
        return self.values.dtype

    @property
    def graph(self):
        """The graph of `values`."""
        return self.values.graph

    @property
    def _type_spec(self):
        from runnel.core.composite_specs import IndexedSlicesSpec
        dense = self._dense_shape
        return IndexedSlicesSpec(self.shape if dense is not None else self._values.shape[:1].concatenate(self._values.shape[1:]),
                                 self.dtype, self._indices.dtype, None if dense is None else dense.dtype, self._indices.shape)

    def consumers(self):
        """Returns the operations that read `values`."""
        return self.values.consumers()

    def __neg__(self):
        return IndexedSlices(-self.values, self.indices, self.dense_shape)

    def __repr__(self):
        return "IndexedSlices(indices=%s, values=%s%s)" % (
            self._indices, self._values,
            "" if self._dense_shape is None else ", dense_shape=%s" % (self._dense_shape,))


IndexedSlicesValue = collections.namedtuple("IndexedSlicesValue", ["values", "indices", "dense_shape"])
SparseTensorValue = collections.namedtuple("SparseTensorValue", ["indices", "values", "dense_shape"])


class SparseTensor(CompositeTensor):
    """A tensor that stores only some elements: `indices` [n, rank] int64, `values` [n], `dense_shape` [rank] int64."""

    __module__ = "tensorflow.python.framework.sparse_tensor"  # by which libraries recognize it

    @classmethod
    def from_value(cls, value):
        """Makes a SparseTensor from a SparseTensorValue or a SparseTensor."""
        if not isinstance(value, (SparseTensorValue, SparseTensor)):
            raise TypeError("Neither a SparseTensor nor SparseTensorValue: %s." % (value,))
        return cls(value.indices, value.values, value.dense_shape)

    def __init__(self, indices, values, dense_shape):
        from runnel.core.framework import name_scope
        with name_scope(None, "SparseTensor", [indices, values, dense_shape]):
            self._indices = convert_to_tensor(indices, dtypes.int64, name="indices")
            self._values = convert_to_tensor(values, name="values")
            self._dense_shape = convert_to_tensor(dense_shape, dtypes.int64, name="dense_shape")
        self._static_shape = None
        rank = self._indices.shape.with_rank(2)[1]
        tensor_shape.as_dimension(self._dense_shape.shape.with_rank(1)[0]).assert_is_compatible_with(rank)

    @property
    def indices(self):
        """The indices of the stored elements."""
        return self._indices

    @property
    def values(self):
        """The stored elements."""
        return self._values

    @property
    def dense_shape(self):
        """The shape, a tensor."""
        return self._dense_shape

    @property
    def shape(self):
        """The static shape."""
        known = constant_value_as_shape(self._dense_shape)
        return known if self._static_shape is None else known.merge_with(self._static_shape)

    def set_shape(self, shape):
        """Refines the static shape. Raises ValueError if the shapes contradict each other."""
        self._static_shape = self.shape.merge_with(shape)

    @property
    def _type_spec(self):
        from runnel.core.composite_specs import SparseTensorSpec
        return SparseTensorSpec(self.shape, self.dtype)

    def get_shape(self):
        """Returns the static shape."""
        return self.shape

    @property
    def dtype(self):
        """The type of the elements."""
        return self._values.dtype

    @property
    def op(self):
        """The operation that computes `values`."""
        return self._values.op

    @property
    def graph(self):
        """The graph of the tensors."""
        return self._indices.graph

    @property
    def name(self):
        """The name of `values`."""
        return self._values.name

    def _gradient_parts(self):
        raise ValueError("Type SparseTensor is not supported as a gradient source or gradient target.")

    def _is_eager(self):
        return self._values.op is None

    def _numpy(self):
        """Returns the dense array."""
        if not self._is_eager():
            raise ValueError("A SparseTensor of a graph has no value")
        from runnel.ops.sparse_ops import sparse_tensor_to_dense
        return sparse_tensor_to_dense(self, validate_indices=False).numpy()

    def with_values(self, new_values):
        """Returns a sparse tensor with the same indices and other values."""
        from runnel.core.convert import convert_to_tensor
        new_values = convert_to_tensor(new_values)
        new_values.shape.assert_is_compatible_with(self._values.shape)
        made = SparseTensor(self._indices, new_values, self._dense_shape)
        made._static_shape = self._static_shape
        return made

    def consumers(self):
        """Returns the operations that read it."""
        return self._values.consumers()

    def eval(self, feed_dict=None, session=None):
        """Returns its SparseTensorValue in a session."""
        from runnel.core.framework import _session_for
        return _session_for(self.graph, session).run(self, feed_dict)

    def _by_element(self, op, other):
        other = convert_to_tensor(other, dtype_hint=self.dtype.base_dtype, name="y")
        return self.with_values(op(self._indices, self._values, self._dense_shape, other))

    def __mul__(self, other):
        from runnel import raw_ops
        return self._by_element(raw_ops.SparseDenseCwiseMul, other)

    def __truediv__(self, other):
        from runnel import raw_ops
        return self._by_element(raw_ops.SparseDenseCwiseDiv, other)

    def __repr__(self):
        return "SparseTensor(indices=%s, values=%s, dense_shape=%s)" % (
            self._indices, self._values, self._dense_shape)


def _slices_to_dense(value, dtype=None, name=None, as_ref=False):
    from runnel import raw_ops
    if dtype is not None and not dtype.is_compatible_with(value.dtype):
        raise ValueError("Tensor conversion requested dtype %s for IndexedSlices with dtype %s" % (
            dtype.name, value.dtype.name))
    if value.dense_shape is None:
        raise ValueError("Tensor conversion requested for IndexedSlices without dense_shape: %s" % value)
    shape = value.dense_shape
    first = raw_ops.StridedSlice(input=shape, begin=[0], end=[1], strides=[1], shrink_axis_mask=1)
    return raw_ops.UnsortedSegmentSum(data=value.values, segment_ids=value.indices,
                                      num_segments=first, name=name)


register_tensor_conversion_function(IndexedSlices, _slices_to_dense)
__all__ = ["IndexedSlices", "SparseTensor", "SparseTensorValue", "IndexedSlicesValue"]
