"""Values of extension types as one variant tensor, which control flow and functions pass on as a single argument."""

from runnel import raw_ops
from runnel.extension_types.extension_type import _CACHED_SPEC, _PACKED, ExtensionType, made_of


def _metadata(spec):
    from runnel.saved_model import structured_value
    try:
        return structured_value.encode(spec).type_spec_value.SerializeToString()
    except structured_value.NotEncodable as error:
        raise ValueError("ExtensionTypes must have a __name__ field in order to be packed.") from error


def is_packed(value):
    """Tells whether the fields of a value are packed in one variant."""
    if not isinstance(value, ExtensionType):
        raise ValueError("Expected `value` to be an object of type ExtensionType,got an instance of %s." % type(value))
    return _PACKED in value.__dict__


def pack(value):
    """Returns a value whose fields are packed in one variant."""
    if is_packed(value):
        return value
    spec = value._type_spec
    variant = raw_ops.CompositeTensorVariantFromComponents(components=spec._to_tensors(value), metadata=_metadata(spec))
    return made_of(type(value), {_CACHED_SPEC: spec._tf_extension_type_with_packed(True), _PACKED: variant})


def unpack(value):
    """Returns a value whose fields are tensors again."""
    if not is_packed(value):
        return value
    spec = value._type_spec._tf_extension_type_with_packed(False)
    flat = spec._flat_specs()
    tensors = raw_ops.CompositeTensorVariantToComponents(
        encoded=value.__dict__[_PACKED], metadata=_metadata(spec), Tcomponents=[part.dtype for part in flat])
    for tensor, part in zip(tensors, flat):
        tensor.set_shape(part.shape)
    return spec._from_tensors(tensors)
