"""tensorflow.python.framework.tensor_spec: descriptions of tensors that have no public name."""

from runnel import dtypes
from runnel.core import tensor_shape
from runnel.core.type_spec import TypeSpec


class DenseSpec(TypeSpec):
    """The base of descriptions of dense values: a type, a shape and a name."""

    def __init__(self, shape, dtype=dtypes.float32, name=None):
        self._shape, self._dtype, self._name = tensor_shape.as_shape(shape), dtypes.as_dtype(dtype), name

    shape = property(lambda self: self._shape)
    dtype = property(lambda self: self._dtype)
    name = property(lambda self: self._name)
    rank = property(lambda self: self._shape.rank)

    @classmethod
    def from_spec(cls, spec, name=None):
        """Returns a description with the type and the shape of another one."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    def is_compatible_with(self, spec_or_value):
        """Tells whether the types and the shapes agree."""
        return self._dtype.is_compatible_with(spec_or_value.dtype) and self._shape.is_compatible_with(spec_or_value.shape)

    def _serialize(self):
        return self._shape, self._dtype, self._name
