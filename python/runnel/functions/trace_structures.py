"""The types of structures: tuples, lists, dicts, namedtuples, attrs classes and classes with the nest protocol.

Each is a kind of structure and the types of its parts. Tensors are taken in the order of the parts; in dicts, of sorted keys.
"""

import collections
import collections.abc

from runnel.functions.trace_type import TraceType


def _is_named(value):
    return isinstance(value, tuple) and hasattr(value, "_fields") and all(isinstance(field, str) for field in value._fields)


class Structure(TraceType):
    """The base: subclasses say of what kind they are, and how values are taken apart and made."""

    def _kind(self):
        """Returns what two structures must share so that their parts can be compared."""
        raise NotImplementedError

    def _parts(self):
        """Returns the types of the parts, in order."""
        raise NotImplementedError

    def _with_parts(self, parts):
        """Returns the same structure of other types."""
        raise NotImplementedError

    def _taken(self, value):
        """Returns the parts of a value. Fails if it is another structure."""
        raise NotImplementedError

    def _made(self, parts):
        """Returns a value of the given parts."""
        raise NotImplementedError

    def _order(self):
        """Returns the order in which the tensors of the parts are taken."""
        return range(len(self._parts()))

    def _is_alike(self, other):
        return isinstance(other, type(self)) and self._kind() == other._kind()

    def is_subtype_of(self, other):
        return self._is_alike(other) and all(a.is_subtype_of(b) for a, b in zip(self._parts(), other._parts()))

    def most_specific_common_supertype(self, others):
        if not all(self._is_alike(other) for other in others):
            return None
        found = [mine.most_specific_common_supertype(list(theirs))
                 for mine, *theirs in zip(self._parts(), *[other._parts() for other in others])]
        return None if any(part is None for part in found) else self._with_parts(found)

    def placeholder_value(self, placeholder_context):
        return self._made([part.placeholder_value(placeholder_context) for part in self._parts()])

    def to_tensors(self, value):
        values, types = self._taken(value), self._parts()
        return [tensor for i in self._order() for tensor in types[i].to_tensors(values[i])]

    def from_tensors(self, tensors):
        types = self._parts()
        found = {i: types[i].from_tensors(tensors) for i in self._order()}
        return self._made([found[i] for i in range(len(types))])

    def flatten(self):
        types = self._parts()
        return [spec for i in self._order() for spec in types[i].flatten()]

    def cast(self, value, cast_context):
        values = self._taken(value)
        after = [kind.cast(x, cast_context) for kind, x in zip(self._parts(), values)]
        return value if all(a is b for a, b in zip(after, values)) else self._made(after)

    def __eq__(self, other):
        if not isinstance(other, TraceType):
            return NotImplemented
        return self._is_alike(other) and list(self._parts()) == list(other._parts())

    def __hash__(self):
        return hash((self._kind(), tuple(self._parts())))


class Tuple(Structure):
    """The type of a tuple."""

    _name, _class = "Tuple", tuple

    def __init__(self, *components):
        self.components = components

    def _kind(self):
        return len(self.components)

    def _is_alike(self, other):
        return type(self) is type(other) and self._kind() == other._kind()

    def _parts(self):
        return self.components

    def _with_parts(self, parts):
        return type(self)(*parts)

    def _taken(self, value):
        assert isinstance(value, self._class), "Can not cast %r to %s type." % (value, self._class.__name__)
        assert len(value) == len(self.components), "Expected %s to have length of %d" % (value, len(self.components))
        return value

    def _made(self, parts):
        return self._class(parts)

    def __repr__(self):
        return "%s[%s]" % (self._name, ", ".join(map(repr, self.components)))


class List(Tuple):
    """The type of a list."""

    _name, _class = "List", list

    @property
    def components_tuple(self):
        """The types of the items, as the type of a tuple."""
        return Tuple(*self.components)


class NamedTuple(Structure):
    """The type of a namedtuple."""

    def __init__(self, type_name, attribute_names, attributes, placeholder_type=None):
        self.type_name, self.attribute_names = type_name, tuple(attribute_names)
        self.attributes = Tuple(*attributes)
        self._placeholder_type = placeholder_type

    @classmethod
    def from_type_and_attributes(cls, named_tuple_type, attributes):
        """Returns the type of values of a class."""
        return cls(named_tuple_type.__name__, named_tuple_type._fields, attributes, named_tuple_type)

    def _kind(self):
        return self.type_name, self.attribute_names

    def _parts(self):
        return self.attributes.components

    def _with_parts(self, parts):
        return type(self)(self.type_name, self.attribute_names, parts, self._placeholder_type)

    def _taken(self, value):
        assert _is_named(value), "Cannot cast %r to type %r." % (value, self._placeholder_type)
        assert set(value._fields) == set(self.attribute_names), "%r has different attributes with the TraceType %r" % (value, self)
        return [getattr(value, name) for name in self.attribute_names]

    def placeholder_value(self, placeholder_context):
        if self._placeholder_type is None:
            raise ValueError("Can not generate placeholder value for %s with unspecified placeholder_type. Note: placeholder_type is lost "
                             "during serialization." % type(self).__name__)
        return super().placeholder_value(placeholder_context)

    def _made(self, parts):
        if self._placeholder_type is None:
            raise ValueError("Packing serialized NamedTuples is not supported.")
        return self._placeholder_type(*parts)

    def __repr__(self):
        return "%s[%s]" % (self.type_name, ", ".join("[%r, %r]" % pair for pair in zip(self.attribute_names, self._parts())))


class Attrs(NamedTuple):
    """The type of an instance of an attrs class."""

    @classmethod
    def from_type_and_attributes(cls, attrs_type, attributes):
        return cls(attrs_type.__name__, tuple(a.name for a in attrs_type.__attrs_attrs__), attributes, attrs_type)

    @property
    def named_attributes(self):
        """The attributes, as the type of a namedtuple."""
        return NamedTuple(self.type_name, self.attribute_names, self._parts())

    def _is_alike(self, other):
        return isinstance(other, Attrs) and self._kind() == other._kind()

    def _taken(self, value):
        assert hasattr(type(value), "__attrs_attrs__"), "Cannot cast %r to type %r." % (value, self._placeholder_type)
        return [getattr(value, name) for name in self.attribute_names]


class Dict(Structure):
    """The type of a dict, or of another mapping."""

    def __init__(self, mapping, placeholder_type=None):
        self.mapping = mapping
        self._placeholder_type = placeholder_type

    def _kind(self):
        return frozenset(self.mapping)

    def _parts(self):
        return list(self.mapping.values())

    def _order(self):
        places = {key: i for i, key in enumerate(self.mapping)}
        return [places[key] for key in sorted(self.mapping)]

    def _with_parts(self, parts):
        return Dict(dict(zip(self.mapping, parts)), self._placeholder_type)

    def is_subtype_of(self, other):
        return self._is_alike(other) and all(self.mapping[key].is_subtype_of(other.mapping[key]) for key in self.mapping)

    def most_specific_common_supertype(self, others):
        if not all(self._is_alike(other) for other in others):
            return None
        same_order = [Dict({key: other.mapping[key] for key in self.mapping}) for other in others]
        return super().most_specific_common_supertype(same_order)

    def _taken(self, value):
        assert isinstance(value, collections.abc.Mapping), "Can not cast %r to a Dict type." % (value,)
        assert set(value) == set(self.mapping), "%r has different keys with the TraceType %r." % (value, self)
        return [value[key] for key in self.mapping]

    def placeholder_value(self, placeholder_context):
        if self._placeholder_type is None:
            raise ValueError("Can not generate placeholder value for Dict with unspecified placeholder_type. Note: placeholder_type is lost "
                             "during serialization.")
        return super().placeholder_value(placeholder_context)

    def _made(self, parts):
        if self._placeholder_type is None:
            raise ValueError("Packing serialized Dict is not supported.")
        pairs = zip(self.mapping, parts)
        return dict(pairs) if self._placeholder_type is collections.defaultdict else self._placeholder_type(pairs)

    def __eq__(self, other):
        if not isinstance(other, TraceType):
            return NotImplemented
        return isinstance(other, Dict) and self.mapping == other.mapping

    def __hash__(self):
        return hash(frozenset(self.mapping))

    def __repr__(self):
        return "Dict[%s]" % ", ".join("[%r, %r]" % pair for pair in self.mapping.items())


class CustomNestTraceType(Structure):
    """The type of an object that takes itself apart (`__tf_flatten__`, `__tf_unflatten__`)."""

    def __init__(self, value_type, metadata, components):
        if not (hasattr(value_type, "__tf_flatten__") and hasattr(value_type, "__tf_unflatten__")):
            raise ValueError("%r does not implement CustomNestProtocol." % (value_type,))
        self.value_type, self.metadata, self.components = value_type, metadata, tuple(components)

    def _kind(self):
        return self.value_type, len(self.components)

    def _is_alike(self, other):
        return type(other) is type(self) and self._kind() == other._kind() and self.metadata == other.metadata

    def _parts(self):
        return self.components

    def _with_parts(self, parts):
        return CustomNestTraceType(self.value_type, self.metadata, parts)

    def most_specific_common_supertype(self, others):
        if not all(self._is_alike(other) for other in others):
            return None
        return self._with_parts([mine.most_specific_common_supertype(list(theirs)) for mine, *theirs in zip(
            self.components, *[other.components for other in others])])

    def _taken(self, value):
        if not isinstance(value, self.value_type):
            raise TypeError("%r is not of type %s." % (value, self.value_type))
        return value.__tf_flatten__()[1]

    def cast(self, value, cast_context):
        if not isinstance(value, self.value_type):
            raise TypeError("[%r] is not of type %s." % (value, self.value_type))
        metadata, parts = value.__tf_flatten__()
        if metadata != self.metadata:
            raise ValueError("Metadata mismatch: [%r] != [%r]." % (self.metadata, metadata))
        if len(parts) != len(self.components):
            raise ValueError("Lengths of components mismatch: %d != %d." % (len(self.components), len(parts)))
        return super().cast(value, cast_context)

    def _made(self, parts):
        return self.value_type.__tf_unflatten__(self.metadata, tuple(parts))

    def __hash__(self):
        return hash((self.value_type, self.components))

    def __repr__(self):
        return "CustomNestTraceType [metadata=%r, components=%r]" % (self.metadata, self.components)
