"""tf.experimental.Optional: a value that may be absent, and its TypeSpec."""

from runnel import dtypes, nest, raw_ops
from runnel.core.framework import name_scope
from runnel.core.type_spec import CompositeTensor, TensorSpec, TypeSpec, register
from runnel.data import structure


class Optional(CompositeTensor):
    """A value, in a structure of tensors, that may be absent. `from_value` and `empty` create it."""

    _counts_as_tensor = False

    def __init__(self, variant, element_spec):
        self._variant_tensor = variant
        self._element_spec = element_spec

    @staticmethod
    def from_value(value):
        """Returns an optional with a value."""
        with name_scope("optional"), name_scope("value"):
            value = structure.normalize_element(value)
            spec = structure.type_spec_from_value(value)
            return Optional(raw_ops.OptionalFromValue(components=structure.to_tensor_list(spec, value)), spec)

    @staticmethod
    def empty(element_spec):
        """Returns an optional without a value; `element_spec` describes what it could hold."""
        return Optional(raw_ops.OptionalNone(), element_spec)

    def has_value(self, name=None):
        """Returns a boolean tensor: whether there is a value."""
        return raw_ops.OptionalHasValue(optional=self._variant_tensor, name=name)

    def get_value(self, name=None):
        """Returns the value. Raises InvalidArgumentError if there is none."""
        specs = structure.flat_specs(self._element_spec)
        tensors = raw_ops.OptionalGetValue(optional=self._variant_tensor, output_types=[s.dtype for s in specs],
                                           output_shapes=[s.shape for s in specs], name=name) if specs else []
        return structure.from_compatible_tensor_list(self._element_spec, list(tensors))

    @property
    def element_spec(self):
        """The TypeSpecs of the value."""
        return self._element_spec

    @property
    def _type_spec(self):
        return OptionalSpec.from_value(self)


@register("tf.OptionalSpec")
class OptionalSpec(TypeSpec):
    """The TypeSpec of an optional."""

    def __init__(self, element_spec):
        self._element_spec = element_spec

    value_type = property(lambda self: Optional)
    element_spec = property(lambda self: self._element_spec)

    @staticmethod
    def from_value(value):
        """Returns the description of an optional."""
        return OptionalSpec(value.element_spec)

    def _serialize(self):
        return (self._element_spec,)

    @property
    def _component_specs(self):
        return TensorSpec((), dtypes.variant)

    def _to_components(self, value):
        return value._variant_tensor

    def _from_components(self, components):
        return Optional(components, self._element_spec)

    _to_legacy_output_types = _to_legacy_output_shapes = _to_legacy_output_classes = lambda self: self  # noqa: E731

    def _batch(self, size):
        return OptionalSpec(nest.map_structure(lambda spec: spec._batch(size), self._element_spec))


