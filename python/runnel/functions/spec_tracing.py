"""TypeSpecs as TraceTypes: how arguments of tf.function become placeholders and tensors."""

import re


class TracedSpec:
    """The part of a TypeSpec that tf.function uses."""

    def __tf_tracing_type__(self, context):
        return self

    def placeholder_value(self, placeholder_context):
        """Returns the value with which a function is traced; with `unnest_only`, the TypeSpec itself."""
        if placeholder_context.unnest_only:
            return self
        return self._from_tensors([spec.placeholder_value(placeholder_context) for spec in self._flat_specs()])

    def to_tensors(self, value):
        """Returns the tensors of a value."""
        return self._to_tensors(value)

    def from_tensors(self, tensors):
        """Returns the value made of the next tensors of an iterator."""
        return self._from_tensors([next(tensors) for _ in self._flat_specs()])

    def flatten(self):
        """Returns the TensorSpecs of the value's tensors."""
        return list(self._flat_specs())

    def cast(self, value, casting_context):
        """Returns a value as one of this type. Fails if it is of another one."""
        from runnel import nest
        if casting_context.allow_specs and getattr(value, "_is_type_spec", False):
            assert value.is_subtype_of(self), "Can not cast %r to %r" % (value, self)
            return self
        if not isinstance(value, self.value_type) and (not hasattr(value, "_is_composite") or _kind(value) is not type(self)):
            nest.assert_same_structure(self, value, expand_composites=True)
        given = self._to_components(value)
        made = nest.map_structure(lambda spec, x: spec.cast(x, casting_context), self._component_specs, given)
        same = all(a is b for a, b in zip(nest.flatten(made), nest.flatten(given)))
        return value if same else self._from_components(made)


def _kind(value):
    return type(value._type_spec)


class TracedTensorSpec(TracedSpec):
    """The same of a TensorSpec."""

    def placeholder_value(self, placeholder_context):
        if placeholder_context.unnest_only:
            return self
        graph, name = placeholder_context.context_graph, self.name or placeholder_context.naming_scope
        return placeholder(graph, self.dtype, self.shape, name)

    def to_tensors(self, value):
        from runnel.functions.trace_values import InternalCastContext
        value = self.cast(value, InternalCastContext())
        if not self._shape.is_compatible_with(value.shape) or not type(self)(value.shape, self._dtype).is_subtype_of(
                type(self)(self._shape, self._dtype)):
            raise TypeError("Received tensor of shape %s instead of %s" % (value.shape, self._shape))
        return [value]

    def from_tensors(self, tensors):
        return next(tensors)

    def cast(self, value, casting_context):
        from runnel.core.convert import convert_to_tensor
        from runnel.core.framework import Tensor
        if casting_context.allow_specs and isinstance(value, TracedTensorSpec):
            assert value.is_subtype_of(self), "Can not cast %r to %r" % (value, self)
            return self
        if not isinstance(value, Tensor):
            value = convert_to_tensor(value, self._dtype)
        found = type(self)(value.shape, value.dtype, self._name)
        if not found.is_subtype_of(self):
            if not self.is_subtype_of(found):
                raise TypeError("Can not cast %r to %r" % (found, self))
            value.set_shape(self._shape)
        return value


def placeholder(graph, dtype, shape, name):
    """Adds an argument to the graph of a function; `name` is the one that the program gave, or None."""
    from runnel import raw_ops
    own = re.sub("[^A-Za-z0-9_.]", "_", name or "").lstrip("_.")
    with graph.as_default(), graph.control_dependencies(None):
        made = raw_ops.Placeholder(dtype=dtype.base_dtype, shape=shape, name=own or None)
    name_argument(made, name)
    return made


def name_argument(argument, name):
    """Keeps the name that the program gave to an argument, if it did."""
    from runnel.core.protobuf import message_class
    if name is not None:
        argument.op._set_attr("_user_specified_name", message_class("AttrValue")(s=name.encode()))
