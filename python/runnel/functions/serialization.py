"""TraceTypes as messages: which class stands for which kind of message, and the two directions.

A class takes part by three methods: `experimental_type_proto`, `experimental_from_proto` and `experimental_as_proto`.
"""

import abc

from runnel import dtypes
from runnel.core import tensor_shape, type_spec
from runnel.core.protobuf import message_class
from runnel.functions import trace_structures, trace_type

_METHODS = ("experimental_type_proto", "experimental_from_proto", "experimental_as_proto")


class Serializable(metaclass=abc.ABCMeta):
    """A TraceType that has a message."""

    @classmethod
    def __subclasshook__(cls, other):
        return cls is Serializable and all(hasattr(other, name) for name in _METHODS) or NotImplemented

    @classmethod
    @abc.abstractmethod
    def experimental_type_proto(cls):
        """Returns the class of messages; no other class of types has the same."""

    @classmethod
    @abc.abstractmethod
    def experimental_from_proto(cls, proto):
        """Returns the type that a message holds."""

    @abc.abstractmethod
    def experimental_as_proto(self):
        """Returns a message that holds this type."""


PROTO_CLASS_TO_PY_CLASS: dict = {}


def register_serializable(cls):
    """Registers a class. Raises ValueError if its messages belong to another one."""
    kind = cls.experimental_type_proto()
    if kind in PROTO_CLASS_TO_PY_CLASS:
        raise ValueError("Existing Python class %s already has %s as its associated proto representation. Please ensure %s has a unique "
                         "proto representation." % (PROTO_CLASS_TO_PY_CLASS[kind].__name__, kind.__name__, cls.__name__))
    PROTO_CLASS_TO_PY_CLASS[kind] = cls


def serialize(to_serialize):
    """Returns the SerializedTraceType of a type."""
    if not isinstance(to_serialize, Serializable):
        raise ValueError("Can not serialize %s since it is not Serializable. For object %s" % (type(to_serialize).__name__, to_serialize))
    _register_own()
    proto = to_serialize.experimental_as_proto()
    if not isinstance(proto, to_serialize.experimental_type_proto()):
        raise ValueError("%s returned different type of proto than specified by experimental_type_proto()" % type(to_serialize).__name__)
    serialized = message_class("SerializedTraceType")()
    serialized.representation.Pack(proto)
    return serialized


def deserialize(proto):
    """Returns the type of a SerializedTraceType."""
    _register_own()
    for kind, cls in PROTO_CLASS_TO_PY_CLASS.items():
        if proto.representation.Is(kind.DESCRIPTOR):
            actual = kind()
            proto.representation.Unpack(actual)
            return cls.experimental_from_proto(actual)
    raise ValueError("Can not deserialize proto of url: ", proto.representation.type_url,
                     " since no matching Python class could be found. For value ", proto.representation.value)


def _all(kinds):
    return message_class("SerializedTuple")(components=[serialize(kind) for kind in kinds])


def _types(proto):
    return [deserialize(component) for component in proto.components]


def _literal(self):
    value, proto = self.value, message_class("SerializedLiteral")()
    if value is None:
        proto.none_value.SetInParent()
    elif isinstance(value, bool):
        proto.bool_value = value
    elif isinstance(value, int):
        proto.int_value = value
    elif isinstance(value, float):
        proto.float_value = value
    elif isinstance(value, str):
        proto.str_value = value
    elif value is trace_type._NAN:
        proto.float_value = float("nan")
    else:
        raise ValueError("Can not serialize Literal of type " + type(value).__name__)
    return proto


def _of_literal(cls, proto):
    kind = proto.WhichOneof("value")
    if kind is None:
        raise ValueError("Malformed Literal proto can not be deserialized")
    return cls(None if kind == "none_value" else getattr(proto, kind))


def _named(self):
    return message_class("SerializedNamedTuple")(
        type_name=self.type_name, attribute_names=list(self.attribute_names), attributes=_all(self.attributes.components))


def _of_named(cls, proto):
    return cls(proto.type_name, tuple(proto.attribute_names), _types(proto.attributes))


def _dict(self):
    return message_class("SerializedDict")(
        keys=[_literal(trace_type.Literal(key)) for key in self.mapping], values=[serialize(kind) for kind in self.mapping.values()])


def _of_dict(cls, proto):
    return cls({trace_type.Literal.experimental_from_proto(key).value: deserialize(kind) for key, kind in zip(proto.keys, proto.values)})


def _spec(self):
    from runnel.saved_model import structured_value
    encoded = structured_value.encode(self)
    return getattr(encoded, encoded.WhichOneof("kind"))


def _of_spec(field):
    def decoded(cls, proto):
        from runnel.saved_model import structured_value
        message = message_class("StructuredValue")()
        getattr(message, field).CopyFrom(proto)
        return structured_value.decode(message)
    return decoded


def _teach(cls, message, from_proto, as_proto):
    cls.experimental_type_proto = classmethod(lambda cls: message_class(message))
    cls.experimental_from_proto = classmethod(from_proto)
    cls.experimental_as_proto = as_proto
    register_serializable(cls)


_teach(trace_type.Literal, "SerializedLiteral", _of_literal, _literal)
_teach(trace_structures.Tuple, "SerializedTuple", lambda cls, proto: cls(*_types(proto)), lambda self: _all(self.components))
_teach(trace_structures.List, "SerializedList", lambda cls, proto: cls(*_types(proto.components_tuple)),
       lambda self: message_class("SerializedList")(components_tuple=_all(self.components)))
_teach(trace_structures.NamedTuple, "SerializedNamedTuple", _of_named, _named)
_teach(trace_structures.Attrs, "SerializedAttrs", lambda cls, proto: _of_named(cls, proto.named_attributes),
       lambda self: message_class("SerializedAttrs")(named_attributes=_named(self)))
_teach(trace_structures.Dict, "SerializedDict", _of_dict, _dict)
_teach(type_spec.TypeSpec, "TypeSpecProto", _of_spec("type_spec_value"), _spec)
_teach(type_spec.TensorSpec, "TensorSpecProto", _of_spec("tensor_spec_value"), _spec)
register_serializable(dtypes.DType)
register_serializable(tensor_shape.TensorShape)


def _register_own():
    """Registers BoundedTensorSpec, whose module is not imported before it is needed."""
    from runnel.core.composite_specs import BoundedTensorSpec
    if PROTO_CLASS_TO_PY_CLASS.get(message_class("BoundedTensorSpecProto")) is None:
        _teach(BoundedTensorSpec, "BoundedTensorSpecProto", _of_spec("bounded_tensor_spec_value"), _spec)

TENSOR = type_spec.TensorSpec  # the type that arrays have
