"""Which TraceType a value has, and the contexts in which types, placeholders and casts are made."""

import collections.abc
import weakref

from runnel.functions.trace_structures import Attrs, CustomNestTraceType, Dict, List, NamedTuple, Tuple, _is_named
from runnel.functions.trace_type import CastContext, PlaceholderContext, TraceType, TracingContext, of_object


class InternalTracingContext(TracingContext):
    """Numbers the variables among the arguments: the same variable has the same number.

    With `is_legacy_signature`, values are those of an input_signature, in which TraceTypes stand for themselves.
    """

    def __init__(self, is_legacy_signature=False):
        self.is_legacy_signature = is_legacy_signature
        self._numbers, self._variables = {}, {}

    def alias_global_id(self, global_id):
        """Returns the number of a variable, by its id."""
        return self._numbers.setdefault(global_id, len(self._numbers))

    def add_placeholder(self, alias_id, variable):
        """Keeps the variable of a number."""
        self._variables[alias_id] = variable

    def get_placeholder_mapping(self):
        """Returns {number: variable}."""
        return self._variables


class InternalPlaceholderContext(PlaceholderContext):
    """Where arguments of a trace are made: in which graph, and by which name."""

    def __init__(self, context_graph=None, placeholder_mapping=None, unnest_only=False, with_none_control_dependencies=False,
                 composite_device_name=None):
        self._variables = placeholder_mapping or {}
        self.naming_scope = None
        self.context_graph, self.unnest_only = context_graph, unnest_only
        self.with_none_control_dependencies = with_none_control_dependencies
        self.composite_device_name = composite_device_name

    def has_placeholder(self, alias_id):
        """Tells whether there is a variable of that number."""
        return alias_id in self._variables

    def get_placeholder(self, alias_id):
        """Returns the variable of a number."""
        if alias_id not in self._variables:
            raise KeyError("alias_id: %s not found in this instance of placeholder context." % (alias_id,))
        return self._variables[alias_id]

    def add_placeholder(self, alias_id, placeholder):
        """Keeps the variable of a number."""
        if alias_id in self._variables:
            raise KeyError("alias id: %s is already stored in this instance of placeholder context." % (alias_id,))
        self._variables[alias_id] = placeholder

    def update_naming_scope(self, naming_scope):
        """Sets the name of the arguments that come next."""
        self.naming_scope = naming_scope


class InternalCastContext(CastContext):
    """With `allow_specs`, a TypeSpec counts as a value."""

    def __init__(self, allow_specs=False):
        self.allow_specs = allow_specs


def from_value(value, context=None):
    """Returns the TraceType of a value. `context` is shared by the arguments of one call."""
    if context is None:
        context = InternalTracingContext()
    if context.is_legacy_signature and isinstance(value, TraceType):
        return value
    own = getattr(type(value), "__tf_tracing_type__", None)
    if own is not None:
        found = own(value, context)
        if not isinstance(found, TraceType):
            raise TypeError("Expected an instance of TraceType for Tracing Protocol call to %s but got %s" % (value, found))
        return found
    if hasattr(value, "_is_composite"):
        return value._type_spec
    if isinstance(value, weakref.ref):
        raise TypeError("weakref input %s not supported for tf.function." % (value,))
    if hasattr(value, "__wrapped__"):
        return from_value(value.__wrapped__, context)
    if isinstance(value, list):
        return List(*[from_value(x, context) for x in value])
    if isinstance(value, tuple):
        parts = tuple(from_value(x, context) for x in value)
        return NamedTuple.from_type_and_attributes(type(value), parts) if _is_named(value) else Tuple(*parts)
    if isinstance(value, collections.abc.Mapping):
        return Dict({key: from_value(value[key], context) for key in value}, type(value))
    if hasattr(type(value), "__attrs_attrs__"):
        return Attrs.from_type_and_attributes(
            type(value), tuple(from_value(getattr(value, a.name), context) for a in value.__attrs_attrs__))
    if is_array(value):
        from runnel.core.type_spec import TensorSpec
        array = value.__array__()
        return TensorSpec(array.shape, array.dtype)
    if hasattr(type(value), "__tf_flatten__") and hasattr(type(value), "__tf_unflatten__"):
        metadata, parts = value.__tf_flatten__()
        return CustomNestTraceType(type(value), metadata, tuple(from_value(x, context) for x in parts))
    return of_object(value)


def is_array(value):
    """Tells whether tf.function takes a value for an array: not classes, and not NumPy's strings."""
    if not hasattr(value, "__array__") or isinstance(value, type):
        return False
    import numpy
    return not isinstance(value, numpy.str_)
