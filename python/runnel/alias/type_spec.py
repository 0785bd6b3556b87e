"""tf.TypeSpec, the description of values, and the base of values made of several tensors."""


class _Composites(type):
    def __instancecheck__(cls, value):
        return type.__instancecheck__(cls, value) or (
            cls is CompositeTensor and bool(getattr(value, "_is_composite", False)))


class CompositeTensor(metaclass=_Composites):
    """The base of values made of several tensors: sparse and ragged tensors, slices."""


class TypeSpec:
    """The base of descriptions of values. Two are equal if a subclass's `_serialize` returns the same for both."""

    @property
    def value_type(self):
        """The class of the values."""
        raise NotImplementedError("%s.value_type" % type(self).__name__)

    def _serialize(self):
        raise NotImplementedError("%s._serialize" % type(self).__name__)

    def is_compatible_with(self, spec_or_value):
        """Tells whether a value, or another description, fits this one."""
        if isinstance(spec_or_value, TypeSpec):
            return type(self) is type(spec_or_value) and self._serialize() == spec_or_value._serialize()
        return isinstance(spec_or_value, self.value_type)

    def __eq__(self, other):
        return type(self) is type(other) and self._serialize() == other._serialize()

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((type(self), repr(self._serialize())))

    def __repr__(self):
        return "%s%r" % (type(self).__name__, self._serialize())


class BatchableTypeSpec(TypeSpec):
    """The base of descriptions of values that can be batched."""
