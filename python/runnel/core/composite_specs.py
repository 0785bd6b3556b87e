"""The TypeSpecs of composite tensors: sparse and ragged tensors, slices, variables and TensorArrays."""

from runnel import dtypes
from runnel.core import tensor_shape
from runnel.core.composite import IndexedSlices, SparseTensor
from runnel.functions.spec_tracing import name_argument
from runnel.core.type_spec import BatchableTypeSpec, TensorSpec, TypeSpec, register


@register("tf.SparseTensorSpec")
class SparseTensorSpec(BatchableTypeSpec):
    """The shape and the type of a sparse tensor."""

    def __init__(self, shape=None, dtype=dtypes.float32):
        self._shape, self._dtype = tensor_shape.as_shape(shape), dtypes.as_dtype(dtype)

    value_type = property(lambda self: SparseTensor)
    shape = property(lambda self: self._shape)
    dtype = property(lambda self: self._dtype)
    rank = property(lambda self: self._shape.rank)

    @classmethod
    def from_value(cls, value):
        """Returns the description of a sparse tensor."""
        return cls(value.shape, value.dtype)

    def _serialize(self):
        return self._shape, self._dtype

    @property
    def _component_specs(self):
        rank = self._shape.rank
        return [TensorSpec([None, rank], dtypes.int64), TensorSpec([None], self._dtype), TensorSpec([rank], dtypes.int64)]

    def _to_components(self, value):
        return [value.indices, value.values, value.dense_shape]

    def _from_components(self, components):
        made = SparseTensor(*components)
        if self._shape.rank is not None:
            made.set_shape(self._shape)
        return made

    def with_shape(self, shape):
        """Returns the same description with another shape."""
        return SparseTensorSpec(shape, self._dtype)

    def _without_shape(self):
        return SparseTensorSpec(None, self._dtype)

    def _batch(self, size):
        return SparseTensorSpec(tensor_shape.TensorShape([size]).concatenate(self._shape), self._dtype)

    def _unbatch(self):
        if self._shape.rank == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return SparseTensorSpec(self._shape[1:], self._dtype)


@register("tf.IndexedSlicesSpec")
class IndexedSlicesSpec(TypeSpec):
    """The shape and the types of IndexedSlices."""

    def __init__(self, shape=None, dtype=dtypes.float32, indices_dtype=dtypes.int64, dense_shape_dtype=None, indices_shape=None):
        self._shape, self._dtype = tensor_shape.as_shape(shape), dtypes.as_dtype(dtype)
        self._indices_dtype = dtypes.as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else dtypes.as_dtype(dense_shape_dtype)
        self._indices_shape = tensor_shape.as_shape(indices_shape).with_rank(1)

    value_type = property(lambda self: IndexedSlices)
    shape = property(lambda self: self._shape)
    dtype = property(lambda self: self._dtype)

    def _serialize(self):
        return self._shape, self._dtype, self._indices_dtype, self._dense_shape_dtype, self._indices_shape

    @property
    def _component_specs(self):
        rows = self._indices_shape
        parts = [TensorSpec(rows.concatenate(self._shape[1:]), self._dtype), TensorSpec(rows, self._indices_dtype)]
        if self._dense_shape_dtype is not None:
            parts.append(TensorSpec([self._shape.rank], self._dense_shape_dtype))
        return tuple(parts)

    def _to_components(self, value):
        parts = (value.values, value.indices)
        return parts if value.dense_shape is None else parts + (value.dense_shape,)

    def _from_components(self, components):
        return IndexedSlices(*components)


@register("tf.RaggedTensorSpec")
class RaggedTensorSpec(BatchableTypeSpec):
    """The shape, type and ragged rank of a ragged tensor; a ragged rank of 0 describes a tensor."""

    def __init__(self, shape=None, dtype=None, ragged_rank=None, row_splits_dtype=dtypes.int64, flat_values_spec=None):
        own = dtypes.float32 if flat_values_spec is None else flat_values_spec.dtype
        self._shape, self._dtype = tensor_shape.as_shape(shape), own if dtype is None else dtypes.as_dtype(dtype)
        self._row_splits_dtype, self._flat_values_spec = dtypes.as_dtype(row_splits_dtype), flat_values_spec
        if flat_values_spec is not None and self._dtype != own:
            raise ValueError("dtype must be the same as flat_values_spec.dtype")
        rank = self._shape.rank
        if ragged_rank is None:
            if rank is None:
                raise ValueError("Must specify ragged_rank or a shape with a known rank.")
            ragged_rank = rank - 1
        if not isinstance(ragged_rank, int):
            raise TypeError("`ragged_rank` must be an integer, but got %s." % ragged_rank)
        if rank is not None and ragged_rank >= rank:
            raise ValueError("Argument `ragged_rank` (%d) must be less than rank (%d)." % (ragged_rank, rank))
        self._ragged_rank = ragged_rank

    @property
    def value_type(self):
        from runnel.core.framework import Tensor
        from runnel.ragged.ragged_tensor import RaggedTensor
        return RaggedTensor if self._ragged_rank > 0 else Tensor

    shape = property(lambda self: self._shape)
    dtype = property(lambda self: self._dtype)
    rank = property(lambda self: self._shape.rank)
    ragged_rank = property(lambda self: self._ragged_rank)
    row_splits_dtype = property(lambda self: self._row_splits_dtype)
    flat_values_spec = property(lambda self: self._flat_values_spec)

    @classmethod
    def from_value(cls, value):
        """Returns the description of a ragged tensor."""
        flat = getattr(value, "flat_values", None)
        spec = flat._type_spec if hasattr(flat, "_is_composite") else None
        if spec is not None and hasattr(spec, "_unbatch") and value.shape.rank is not None:  # its rows are as many as the row splits say
            spec = spec._unbatch()._batch(None)
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype, spec)

    def _serialize(self):
        parts = self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype
        return parts if self._flat_values_spec is None else (*parts, self._flat_values_spec)

    def is_compatible_with(self, spec_or_value):
        if self._ragged_rank == 0:
            spec_or_value = getattr(spec_or_value, "_flat_values_spec", None) or spec_or_value
            return (self._flat_values_spec or TensorSpec(self._shape, self._dtype)).is_compatible_with(spec_or_value)
        return super().is_compatible_with(spec_or_value)

    @property
    def _component_specs(self):
        shape, splits = self._shape, self._row_splits_dtype
        inner = shape[self._ragged_rank + 1:] if shape.rank is not None else tensor_shape.TensorShape(None)
        flat = self._flat_values_spec or TensorSpec(
            tensor_shape.TensorShape([None if self._ragged_rank else shape[0]]).concatenate(inner), self._dtype)
        if not self._ragged_rank:
            return [flat]
        rows = tensor_shape.dimension_value(shape[0]) if shape.rank else None
        first = TensorSpec([None if rows is None else rows + 1], splits)
        return [flat, first] + [TensorSpec([None], splits)] * (self._ragged_rank - 1)

    def _to_components(self, value):
        return [value.flat_values, *value.nested_row_splits] if self._ragged_rank else [value]

    def _from_components(self, components):
        from runnel.ragged.ragged_tensor import RaggedTensor
        made = components[0]
        for splits in reversed(components[1:]):
            made = RaggedTensor.from_row_splits(made, splits, validate=False)
        if self._ragged_rank and self._shape.rank is not None:
            made._set_shape(self._shape)
        return made

    def _without_shape(self):
        return RaggedTensorSpec(None, self._dtype, self._ragged_rank, self._row_splits_dtype, self._flat_values_spec)

    def _batch(self, size):
        return RaggedTensorSpec(tensor_shape.TensorShape([size]).concatenate(self._shape), self._dtype, self._ragged_rank + 1,
                                self._row_splits_dtype)

    def _unbatch(self):
        return RaggedTensorSpec(self._shape[1:], self._dtype, self._ragged_rank - 1, self._row_splits_dtype)


@register("tf.VariableSpec")
class VariableSpec(TensorSpec):
    """The shape and the type of a variable."""

    def __init__(self, shape, dtype=dtypes.float32, trainable=True, alias_id=None):
        super().__init__(shape, dtype)
        self.trainable, self.alias_id = trainable, alias_id

    @property
    def value_type(self):
        from runnel.ops.resource_variable import ResourceVariable
        return ResourceVariable

    @classmethod
    def from_value(cls, value):
        """Returns the description of a variable."""
        return cls(value.shape, value.dtype, value.trainable)

    def _serialize(self):
        return self._shape, self._dtype, self.trainable, self.alias_id

    def _form(self, other):
        """Tells whether `other` describes variables as well, both or neither of which have a number."""
        if type(self) is not type(other):
            return False
        if (self.alias_id is None) != (other.alias_id is None):
            raise NotImplementedError("VariableSpec doesn't support alias_id=None, got self: %s and other: %s." % (self, other))
        return self.trainable == other.trainable and self.alias_id == other.alias_id

    def is_subtype_of(self, other):
        return self._form(other) and super().is_subtype_of(other)

    def most_specific_common_supertype(self, others):
        if not all(self._form(other) for other in others):
            return None
        common = super(TensorSpec, self).most_specific_common_supertype(others)
        return common

    # As an argument of tf.function: the variable of the first call, whose handle is the argument

    def placeholder_value(self, placeholder_context):
        if placeholder_context.unnest_only:
            return self
        variable = placeholder_context.get_placeholder(self.alias_id)
        name = placeholder_context.naming_scope
        name_argument(placeholder_context.context_graph.capture(variable.handle, name=name), name)
        return variable

    def to_tensors(self, value):
        return [value.handle]

    def from_tensors(self, tensors):
        from runnel.ops.resource_variable import variable_of
        return variable_of(next(tensors))

    def flatten(self):
        return [HandleSpec(self.alias_id)]

    def cast(self, value, casting_context):
        if casting_context.allow_specs and isinstance(value, VariableSpec):
            return value
        assert isinstance(value, self.value_type), "Can not cast %r to %r" % (value, self)
        return value

    def __repr__(self):
        return "VariableSpec(shape=%s, dtype=%r, trainable=%r, alias_id=%r)" % (self._shape, self._dtype, self.trainable, self.alias_id)


class HandleSpec(TensorSpec):
    """The handle of a variable among the arguments of tf.function; `alias_id` is the variable's number."""

    def __init__(self, alias_id):
        super().__init__((), dtypes.resource)
        self.alias_id = alias_id


@register("tf.TensorArraySpec")
class TensorArraySpec(TypeSpec):
    """The type and the shape of the elements of a TensorArray."""

    def __init__(self, element_shape=None, dtype=dtypes.float32, dynamic_size=False, infer_shape=True):
        self._element_shape, self._dtype = tensor_shape.as_shape(element_shape), dtypes.as_dtype(dtype)
        self._dynamic_size, self._infer_shape = dynamic_size, infer_shape

    @property
    def value_type(self):
        from runnel.ops.tensor_array import TensorArray
        return TensorArray

    def _serialize(self):
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape


@register("tf.BoundedTensorSpec")
class BoundedTensorSpec(TensorSpec):
    """A TensorSpec with bounds; `minimum` and `maximum` are arrays that broadcast to its shape."""

    def __init__(self, shape, dtype, minimum, maximum, name=None):
        super().__init__(shape, dtype, name)
        self._minimum, self._maximum = self._bound("minimum", minimum), self._bound("maximum", maximum)

    minimum = property(lambda self: self._minimum)
    maximum = property(lambda self: self._maximum)

    def _bound(self, what, value):
        import numpy
        if value is None:
            raise ValueError("`%s` can not be None." % what)
        dims, wanted = numpy.shape(value), self._shape._dims
        pairs = zip(reversed(dims), reversed(wanted)) if wanted is not None else ()
        if any(1 not in (a, b) and b is not None and a != b for a, b in pairs):
            raise ValueError("`%s` %s is not compatible with shape %s." % (what, value, self._shape))
        bound = numpy.array(value, dtype=self._dtype.as_numpy_dtype)
        bound.setflags(write=False)
        return bound

    @classmethod
    def from_spec(cls, spec, name=None):
        """Returns the description of values like those of `spec`, within its bounds or those of its type."""
        kind = dtypes.as_dtype(spec.dtype)
        return cls(spec.shape, kind, getattr(spec, "minimum", kind.min), getattr(spec, "maximum", kind.max), name or spec.name)

    def cast(self, value, casting_context):
        if casting_context.allow_specs and isinstance(value, BoundedTensorSpec):
            assert value.is_subtype_of(self), "Can not cast %r to %r" % (value, self)
            return self
        return TensorSpec(self._shape, self._dtype, self._name).cast(value, casting_context)

    def _serialize(self):
        return self._shape, self._dtype, self._minimum, self._maximum, self._name

    def __eq__(self, other):
        import numpy
        return (type(self) is type(other) and (self._shape, self._dtype, self._name) == (other._shape, other._dtype, other._name)
                and numpy.allclose(self._minimum, other._minimum) and numpy.allclose(self._maximum, other._maximum))

    def __hash__(self):
        return hash((self._shape, self._dtype))

    def __repr__(self):
        return "BoundedTensorSpec(shape=%s, dtype=%r, name=%r, minimum=%r, maximum=%r)" % (
            self._shape, self._dtype, self._name, self._minimum, self._maximum)
