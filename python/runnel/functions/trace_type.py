"""TraceType, the type of an argument of tf.function, and the types of arguments without tensors.

A function is traced once per type of its arguments. A trace is used for arguments whose types are subtypes of those
it was made for. TypeSpecs are the types of tensors; those of lists, tuples and dicts are in `trace_structures`.
"""

import abc
import math
import numbers
import weakref
from typing import Protocol, runtime_checkable

from runnel.core.type_spec import TypeSpec


class TracingContext:
    """Shared by the calls of `__tf_tracing_type__` for the arguments of one call."""


class PlaceholderContext:
    """Shared by the types of one function while the arguments of its trace are made."""


class CastContext:
    """Says what `cast` may take for a value."""


class TraceType(metaclass=abc.ABCMeta):
    """The type of an argument of tf.function."""

    @abc.abstractmethod
    def is_subtype_of(self, other):
        """Tells whether a trace made for `other` may be used for arguments of this type."""

    @abc.abstractmethod
    def most_specific_common_supertype(self, others):
        """Returns the narrowest type that covers this one and `others`, or None."""

    @abc.abstractmethod
    def placeholder_value(self, placeholder_context):
        """Returns the value with which the function is traced."""

    def to_tensors(self, value):
        """Returns the tensors of a value of this type."""
        return []

    def from_tensors(self, tensors):
        """Returns a value of this type; `tensors` is an iterator from which it takes those that it has."""
        return self.placeholder_value(PlaceholderContext())

    def flatten(self):
        """Returns the TensorSpecs of the tensors that `to_tensors` returns."""
        return []

    def cast(self, value, cast_context):
        """Returns a value as one of this type. Fails if it has another type."""
        assert value == self.placeholder_value(PlaceholderContext()), "Can not cast %r to type %r" % (value, self)
        return value

    @abc.abstractmethod
    def __hash__(self):
        """Returns the hash of the type."""

    @abc.abstractmethod
    def __eq__(self, other):
        """Tells whether both are the same type."""


TraceType.register(TypeSpec)


@runtime_checkable
class SupportsTracingProtocol(Protocol):
    """Objects that say what type they have for tf.function."""

    def __tf_tracing_type__(self, context):
        """Returns the TraceType of this object."""


class Single(TraceType):
    """A type with one value: equal types are the same, others have nothing in common."""

    def is_subtype_of(self, other):
        return self == other

    def most_specific_common_supertype(self, others):
        return self if all(self == other for other in others) else None


_NAN = object()  # stands for all NaNs, which are not equal to each other


def _is_nan(x):
    if not isinstance(x, numbers.Number):
        return False
    return any(math.isnan(part) for part in ((x.real, x.imag) if isinstance(x, complex) else (x,)))


class Literal(Single):
    """The type of a number, a string or another value that has a hash: the value itself."""

    def __init__(self, value):
        self.value = _NAN if _is_nan(value) else value
        self._hash = hash(self.value)

    def placeholder_value(self, placeholder_context):
        if isinstance(self.value, range):
            return list(self.value)
        return float("nan") if self.value is _NAN else self.value

    def cast(self, value, cast_context):
        if value == self.value or self.value is _NAN and _is_nan(value):
            return value
        raise ValueError("Can not cast %r to %r" % (value, self))

    def __eq__(self, other):
        if not isinstance(other, TraceType):
            return NotImplemented
        return isinstance(other, Literal) and self.value == other.value

    def __hash__(self):
        return self._hash

    def __repr__(self):
        return "Literal[%r]" % (self.value,)


class Weakref(Single):
    """The type of any other object: the object itself, which it does not keep alive."""

    def __init__(self, ref):
        self._ref = ref
        self._hash = hash(ref)

    def placeholder_value(self, placeholder_context):
        return self._ref()

    def cast(self, value, cast_context):
        own = self._ref()
        if value is own or value == own:
            return value
        while hasattr(value, "__wrapped__"):  # the type of a decorated object is that of what it wraps
            value = value.__wrapped__
            if value is own:
                return value
        raise ValueError("Can not cast %r to %r" % (value, self))

    def __eq__(self, other):
        if not isinstance(other, TraceType):
            return NotImplemented
        if not isinstance(other, Weakref):
            return False
        own, theirs = self._ref(), other._ref()
        return own is not None and theirs is not None and (own is theirs or self._ref == other._ref)

    def __hash__(self):
        return self._hash

    def __repr__(self):
        return "Weakref[%r])" % (self._ref,)


def of_object(value):
    """Returns the type of an object that is neither a tensor nor a structure. Raises TypeError if it has none."""
    try:
        return Weakref(weakref.ref(value))
    except TypeError:
        pass
    try:
        return Literal(value)
    except TypeError:
        raise TypeError(
            "Could not generate a generic TraceType for %r.Please verify that it is immutable/hashable. Otherwise, consider "
            "implementing the Tracing Protocol for it." % (value,)) from None
