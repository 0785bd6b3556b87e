"""StructuredValues: nested Python values as messages, which describe functions in SavedModels."""

import collections
import collections.abc
import warnings

import numpy as np

from runnel import dtypes
from runnel.core import framework, tensor_shape
from runnel.core.composite_specs import IndexedSlicesSpec, RaggedTensorSpec, SparseTensorSpec, TensorArraySpec, VariableSpec
from runnel.core.protobuf import message_class
from runnel.core.type_spec import TensorSpec, TypeSpec, get_name, lookup


class NotEncodable(TypeError):
    """No message describes such a value."""


NotEncodableError = NotEncodable
_EXTENSION, _REGISTERED = 13, 12
_built_in: dict = {}  # class of TypeSpecs -> its number in the messages
_codecs: list = []    # those of the program


def _specs():
    """Returns {class of TypeSpecs: its number in the messages}."""
    if not _built_in:  # late, because datasets need functions
        from runnel.data.dataset import DatasetSpec
        from runnel.data.optional import OptionalSpec
        from runnel.data.owned_iterator import IteratorSpec
        _built_in.update({SparseTensorSpec: 1, IndexedSlicesSpec: 2, RaggedTensorSpec: 3, TensorArraySpec: 4, DatasetSpec: 5, IteratorSpec: 6,
                          OptionalSpec: 7, VariableSpec: 9})
    return _built_in


class BuiltInTypeSpecCodec:
    """Registers a class of TypeSpecs under a number of the messages."""

    def __init__(self, type_spec_class, type_spec_proto_enum):
        if not issubclass(type_spec_class, TypeSpec):
            raise ValueError("The type '%s' does not subclass tf.TypeSpec." % (type_spec_class,))
        known = _specs()
        if type_spec_class in known:
            raise ValueError("The type '%s' already has an instantiated codec." % (type_spec_class,))
        if type_spec_proto_enum in known.values():
            raise ValueError("The proto value '%s' is already registered." % (type_spec_proto_enum,))
        if not isinstance(type_spec_proto_enum, int) or not 0 < type_spec_proto_enum <= 10:
            raise ValueError("The proto value '%s' is invalid." % (type_spec_proto_enum,))
        known[type_spec_class] = type_spec_proto_enum


def register_codec(x):
    """Adds a codec: an object with can_encode, do_encode, can_decode and do_decode."""
    _codecs.append(x)


def can_encode(nested_structure):
    """Tells whether a value can be written."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            encode(nested_structure)
    except NotEncodable:
        return False
    return True


def encode_structure(nested_structure):
    """Returns the StructuredValue of a value."""
    return encode(nested_structure)


def encode(value, out=None):
    """Returns the StructuredValue of a value, written into `out` if that is given."""
    out = message_class("StructuredValue")() if out is None else out
    codec = next((codec for codec in _codecs if codec.can_encode(value)), None)
    if codec is not None:
        out.CopyFrom(codec.do_encode(value, encode))
    elif value is None:
        out.none_value.SetInParent()
    elif isinstance(value, (bool, np.bool_)):
        out.bool_value = bool(value)
    elif isinstance(value, (int, np.integer)):
        out.int64_value = int(value)
    elif isinstance(value, (float, np.floating)):
        out.float64_value = float(value)
    elif isinstance(value, (str, bytes)):
        out.string_value = value if isinstance(value, str) else value.decode()
    elif isinstance(value, dtypes.DType):
        out.tensor_dtype_value = value.as_datatype_enum
    elif isinstance(value, tensor_shape.TensorShape):
        out.tensor_shape_value.CopyFrom(value.as_proto())
    elif isinstance(value, TypeSpec):
        _encode_spec(value, out)
    elif isinstance(value, (framework.Tensor, np.ndarray)):
        _encode_array(value, out)
    else:
        _encode_container(value, out)
    return out


def _encode_container(value, out):
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        out.named_tuple_value.name = getattr(type(value), "_plain_type", type(value)).__name__
        for name, item in zip(value._fields, value):
            encode(item, out.named_tuple_value.values.add(key=name).value)
    elif isinstance(value, (list, tuple)):
        rows = out.tuple_value if isinstance(value, tuple) else out.list_value
        rows.SetInParent()
        for item in value:
            encode(item, rows.values.add())
    elif isinstance(value, collections.abc.Mapping) and all(isinstance(key, str) for key in value):
        out.dict_value.SetInParent()
        for key, item in value.items():
            encode(item, out.dict_value.fields[key])
    else:
        raise NotEncodable("No encoder for object %s of type %s." % (value, type(value)))


def _encode_array(value, out):
    from runnel.core.tensor_util import constant_value, make_tensor_proto
    array = value if isinstance(value, np.ndarray) else constant_value(value)
    if array is None:
        raise NotEncodable("No encoder for object %s of type %s." % (value, type(value)))
    target = out.numpy_value if isinstance(value, np.ndarray) else out.tensor_value
    target.CopyFrom(make_tensor_proto(array))


def _encode_spec(spec, out):
    if type(spec) is TensorSpec or hasattr(spec, "minimum"):
        target = out.bounded_tensor_spec_value if hasattr(spec, "minimum") else out.tensor_spec_value
        target.SetInParent()
        if spec.name:
            target.name = spec.name
        target.shape.CopyFrom(spec.shape.as_proto())
        target.dtype = spec.dtype.as_datatype_enum
        if hasattr(spec, "minimum"):
            from runnel.core.tensor_util import make_tensor_proto
            target.minimum.CopyFrom(make_tensor_proto(spec.minimum))
            target.maximum.CopyFrom(make_tensor_proto(spec.maximum))
        return
    number = _specs().get(type(spec))
    if number is not None:
        name = type(spec).__name__
    else:
        try:
            name = get_name(type(spec))
        except ValueError:
            raise NotEncodable("No encoder for object %s of type %s." % (spec, type(spec))) from None
        number = _EXTENSION if _is_extension(spec) else _REGISTERED
        if number == _REGISTERED:
            warnings.warn("Encoding a StructuredValue with type %s; loading this StructuredValue will require that this type be imported and "
                          "registered." % name, stacklevel=2)
    target = out.type_spec_value
    target.type_spec_class, target.type_spec_class_name = number, name
    target.num_flat_components = len(spec._flat_specs())
    encode(spec._serialize(), target.type_state)


def _is_extension(spec):
    from runnel.extension_types.extension_type import ExtensionTypeSpec
    return isinstance(spec, ExtensionTypeSpec)


def decode_proto(proto):
    """Returns the value of a StructuredValue."""
    return decode(proto)


def decode(message):
    """Returns the value of a StructuredValue."""
    kind = message.WhichOneof("kind")
    codec = next((codec for codec in _codecs if codec.can_decode(message)), None)
    if codec is not None:
        return codec.do_decode(message, decode)
    if kind in (None, "none_value"):
        return None
    if kind in ("bool_value", "int64_value", "float64_value", "string_value"):
        return getattr(message, kind)
    if kind == "tensor_spec_value":
        spec = message.tensor_spec_value
        return TensorSpec(_shape(spec.shape), dtypes.as_dtype(spec.dtype), spec.name or None)
    if kind == "bounded_tensor_spec_value":
        return _bounded(message.bounded_tensor_spec_value)
    if kind == "tensor_dtype_value":
        return dtypes.as_dtype(message.tensor_dtype_value)
    if kind == "tensor_shape_value":
        return _shape(message.tensor_shape_value)
    if kind == "list_value":
        return [decode(item) for item in message.list_value.values]
    if kind == "tuple_value":
        return tuple(decode(item) for item in message.tuple_value.values)
    if kind == "dict_value":
        fields = message.dict_value.fields
        return {key: decode(fields[key]) for key in sorted(fields)}
    if kind == "named_tuple_value":
        pairs = message.named_tuple_value.values
        made = collections.namedtuple(message.named_tuple_value.name, [pair.key for pair in pairs])
        return made(*[decode(pair.value) for pair in pairs])
    if kind in ("tensor_value", "numpy_value"):
        from runnel.core import convert
        from runnel.core.tensor_util import make_ndarray
        array = make_ndarray(getattr(message, kind))
        return array if kind == "numpy_value" else convert.constant(array)
    if kind == "type_spec_value":
        return _decode_spec(message.type_spec_value)
    raise NotEncodable("A signature with a %s is not supported" % kind.replace("_", " "))


def _bounded(spec):
    from runnel.core.composite_specs import BoundedTensorSpec
    from runnel.core.tensor_util import make_ndarray
    shape, dtype, name = _shape(spec.shape), dtypes.as_dtype(spec.dtype), spec.name or None
    return BoundedTensorSpec(shape, dtype, make_ndarray(spec.minimum), make_ndarray(spec.maximum), name)


def _decode_spec(message):
    number, name = message.type_spec_class, message.type_spec_class_name
    found = next((cls for cls, known in _specs().items() if known == number), None)
    if found is None and number in (_REGISTERED, _EXTENSION):
        try:
            found = lookup(name)
        except ValueError:
            if number == _EXTENSION:
                from runnel.extension_types.anonymous import AnonymousExtensionTypeSpec
                found = AnonymousExtensionTypeSpec
            else:
                raise ValueError("The type '%s' has not been registered.  It must be registered before you load this object (typically by "
                                 "importing its module)." % name) from None
    if found is None:
        raise ValueError("The type '%s' is not supported by this version of TensorFlow. (The object you are loading must have been created with a "
                         "newer version of TensorFlow.)" % name)
    return found._deserialize(decode(message.type_state))


def _shape(message):
    if message.unknown_rank:
        return tensor_shape.TensorShape(None)
    return tensor_shape.TensorShape([None if dim.size < 0 else dim.size for dim in message.dim])
