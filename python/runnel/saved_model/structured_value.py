"""StructuredValues: nested Python values as messages, which describe functions in SavedModels."""

import collections

import numpy as np

from runnel import dtypes
from runnel.core import tensor_shape
from runnel.core.protobuf import message_class


class NotEncodable(TypeError):
    """No message describes such a value."""


def encode(value, out=None):
    """Returns the StructuredValue of a value, written into `out` if that is given."""
    from runnel.eager.def_function import TensorSpec
    out = message_class("StructuredValue")() if out is None else out
    if value is None:
        out.none_value.SetInParent()
    elif isinstance(value, (bool, np.bool_)):
        out.bool_value = bool(value)
    elif isinstance(value, (int, np.integer)):
        out.int64_value = int(value)
    elif isinstance(value, (float, np.floating)):
        out.float64_value = float(value)
    elif isinstance(value, (str, bytes)):
        out.string_value = value if isinstance(value, str) else value.decode()
    elif isinstance(value, TensorSpec):
        spec = out.tensor_spec_value
        spec.SetInParent()
        if value.name:
            spec.name = value.name
        spec.shape.CopyFrom(value.shape.as_proto())
        spec.dtype = value.dtype.as_datatype_enum
    elif isinstance(value, dtypes.DType):
        out.tensor_dtype_value = value.as_datatype_enum
    elif isinstance(value, tensor_shape.TensorShape):
        out.tensor_shape_value.CopyFrom(value.as_proto())
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        out.named_tuple_value.name = type(value).__name__
        for name, item in zip(value._fields, value):
            pair = out.named_tuple_value.values.add(key=name)
            encode(item, pair.value)
    elif isinstance(value, tuple):
        out.tuple_value.SetInParent()
        for item in value:
            encode(item, out.tuple_value.values.add())
    elif isinstance(value, list):
        out.list_value.SetInParent()
        for item in value:
            encode(item, out.list_value.values.add())
    elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
        out.dict_value.SetInParent()
        for key, item in value.items():
            encode(item, out.dict_value.fields[key])
    else:
        raise NotEncodable("A %s cannot be written as part of a function's signature" % type(value).__name__)
    return out


def decode(message):
    """Returns the value of a StructuredValue."""
    from runnel.eager.def_function import TensorSpec
    kind = message.WhichOneof("kind")
    if kind in (None, "none_value"):
        return None
    if kind in ("bool_value", "int64_value", "float64_value", "string_value"):
        return getattr(message, kind)
    if kind in ("tensor_spec_value", "bounded_tensor_spec_value"):
        spec = getattr(message, kind)
        return TensorSpec(_shape(spec.shape), dtypes.as_dtype(spec.dtype), spec.name or None)
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
    raise NotEncodable("A signature with a %s is not supported" % kind.replace("_", " "))


def _shape(message):
    if message.unknown_rank:
        return tensor_shape.TensorShape(None)
    return tensor_shape.TensorShape([None if dim.size < 0 else dim.size for dim in message.dim])
