"""The fields of extension types: their annotations, and conversion of values and TypeSpecs to what these say."""

import collections
import collections.abc
import enum

from runnel import dtypes
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor
from runnel.core.type_spec import CompositeTensor, TensorSpec, TypeSpec
from runnel.extension_types import annotations

_PLAIN = (int, float, bool, str, bytes, type(None))

# Names of CompositeTensor and TypeSpec, which a field would hide.
RESERVED_FIELD_NAMES = """self Spec _type_spec _shape_invariant_to_type_spec _consumers value_type is_compatible_with most_specific_compatible_type
_with_tensor_ranks_only _to_components _from_components _component_specs _to_tensor_list _from_tensor_list _from_compatible_tensor_list
_flat_tensor_specs _serialize _deserialize _to_legacy_output_types _to_legacy_output_shapes _to_legacy_output_classes _keras_mask""".split()


class ImmutableDict(collections.abc.Mapping):
    """A dict that does not change."""

    def __init__(self, *args, **kwargs):
        self._dict = dict(*args, **kwargs)

    def __getitem__(self, key):
        return self._dict[key]

    def __iter__(self):
        return iter(self._dict)

    def __len__(self):
        return len(self._dict)

    def __hash__(self):
        return hash(tuple(self._dict.items()))

    def __repr__(self):
        return "ImmutableDict(%r)" % self._dict

    def __reduce__(self):
        return ImmutableDict, (self._dict,)


class _NoDefault:
    def __repr__(self):
        return "ExtensionTypeField.NO_DEFAULT"

    def __bool__(self):
        return False


class ExtensionTypeField(collections.namedtuple("ExtensionTypeField", ["name", "value_type", "default"])):
    """A field: its name, its annotation, and its default value or NO_DEFAULT."""

    NO_DEFAULT = _NoDefault()

    def __new__(cls, name, value_type, default=NO_DEFAULT):
        try:
            validate_field_value_type(value_type, allow_forward_references=True)
        except TypeError as error:
            raise TypeError("In field %r: %s" % (name, error)) from error
        if default is not cls.NO_DEFAULT:
            default = _convert_value(default, value_type, ("default value for %s" % name,), _ConversionContext.DEFAULT)
        return super().__new__(cls, name, value_type, default)

    @staticmethod
    def is_reserved_name(name):
        """Tells whether no field may have a name."""
        return name in RESERVED_FIELD_NAMES or name.lower().startswith("_tf_extension_type")


def _is_composite_type(value_type):
    try:
        return isinstance(value_type, type) and issubclass(value_type, CompositeTensor)
    except TypeError:  # tuple[int] is an instance of type, but no class
        return False


def validate_field_value_type(value_type, in_mapping_key=False, allow_forward_references=False):
    """Raises TypeError if extension types cannot have fields of a type."""
    if annotations.is_forward_ref(value_type):
        if not allow_forward_references:
            raise TypeError("Unresolved forward reference %r" % (value_type,))
    elif value_type is Tensor or value_type is tensor_shape.TensorShape or _is_composite_type(value_type):
        if in_mapping_key:
            raise TypeError("Mapping had a key %r with type %r" % (value_type.__name__, type(value_type).__name__))
    elif value_type is None or value_type in _PLAIN or value_type is dtypes.DType:
        pass
    elif annotations.is_generic_tuple(value_type) or annotations.is_generic_union(value_type):
        args = annotations.get_generic_type_args(value_type)
        if annotations.is_generic_tuple(value_type) and len(args) == 2 and args[1] is Ellipsis:
            args = args[:1]
        for arg in args:
            validate_field_value_type(arg, in_mapping_key, allow_forward_references)
    elif annotations.is_generic_mapping(value_type):
        key, item = annotations.get_generic_type_args(value_type)
        validate_field_value_type(key, True, allow_forward_references)
        validate_field_value_type(item, in_mapping_key, allow_forward_references)
    else:
        raise TypeError("Unsupported type annotation %r" % (value_type.__name__ if type(value_type) is type else value_type,))


class _ConversionContext(enum.Enum):
    """What is converted: a field of a value, of a TypeSpec, or a default."""

    VALUE = 1
    SPEC = 2
    DEFAULT = 3


def convert_fields(fields, field_values):
    """Converts the values of a dict in place to the types of their fields."""
    _convert_fields(fields, field_values, _ConversionContext.VALUE)


def convert_fields_for_spec(fields, field_values):
    """The same for the fields of a TypeSpec, which has TypeSpecs in place of tensors."""
    _convert_fields(fields, field_values, _ConversionContext.SPEC)


def _convert_fields(fields, field_values, context):
    names = {field.name for field in fields}
    if names != set(field_values):
        unexpected = set(field_values) - names
        raise ValueError("Got unexpected fields: %s" % unexpected if unexpected else "Missing required fields: %s" % (names - set(field_values)))
    field_values.update({f.name: _convert_value(field_values[f.name], f.value_type, (f.name,), context) for f in fields})


def _convert_value(value, expected_type, path, context=_ConversionContext.VALUE):
    """Returns a value as an annotation wants it. Raises TypeError with the path to the value if that is not possible."""
    if expected_type is Tensor:
        return _convert_tensor(value, path, context)
    if _is_composite_type(expected_type):
        return _convert_composite(value, expected_type, path, context)
    if expected_type is tensor_shape.TensorShape:
        try:
            return tensor_shape.as_shape(value)
        except TypeError as error:
            raise _mismatch(path, "'tf.TensorShape'", value) from error
    if expected_type is dtypes.DType:
        try:
            return dtypes.as_dtype(value)
        except TypeError as error:
            raise _mismatch(path, "'tf.DType'", value) from error
    if expected_type is None or expected_type in _PLAIN:
        expected_type = expected_type or type(None)
        if not isinstance(value, expected_type):
            raise _mismatch(path, repr(expected_type.__name__), value)
        return value
    if annotations.is_generic_tuple(expected_type):
        return _convert_tuple(value, annotations.get_generic_type_args(expected_type), path, context)
    if annotations.is_generic_mapping(expected_type):
        if not isinstance(value, collections.abc.Mapping):
            raise _mismatch(path, "mapping", value)
        kinds = annotations.get_generic_type_args(expected_type)
        return ImmutableDict((_convert_value(key, kinds[0], (*path, "[<key>]"), context),
                              _convert_value(item, kinds[1], (*path, "[%r]" % (key,)), context)) for key, item in value.items())
    if annotations.is_generic_union(expected_type):
        for kind in annotations.get_generic_type_args(expected_type):
            try:
                return _convert_value(value, kind, path, context)
            except TypeError:
                continue
        raise _mismatch(path, repr(expected_type), value)
    raise TypeError("%s: Unsupported type annotation %r" % ("".join(path), expected_type))


def _mismatch(path, expected, value):
    return TypeError("%s: expected %s, got %r" % ("".join(path), expected, type(value).__name__))


def _convert_tensor(value, path, context):
    if context is _ConversionContext.SPEC:
        if not isinstance(value, TypeSpec) or value.value_type is not Tensor:
            raise _mismatch(path, "a TensorSpec", value)
        return value
    if isinstance(value, Tensor) or context is _ConversionContext.DEFAULT:
        return value  # a default becomes a tensor in each graph that uses it
    try:
        return convert_to_tensor(value)
    except (ValueError, TypeError) as error:
        raise _mismatch(path, "a Tensor", value) from error


def _convert_composite(value, expected_type, path, context):
    if context is _ConversionContext.SPEC:
        if not isinstance(value, TypeSpec) or not issubclass(value.value_type, expected_type):
            raise _mismatch(path, "a TypeSpec for %r" % expected_type.__name__, value)
    elif not isinstance(value, expected_type):
        raise _mismatch(path, repr(expected_type.__name__), value)
    return value


def _convert_tuple(value, kinds, path, context):
    if not isinstance(value, collections.abc.Sequence):
        raise _mismatch(path, "tuple", value)
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        raise TypeError("%s: expected tuple with length %d, got %r)" % ("".join(path), len(kinds), type(value).__name__))
    return tuple(_convert_value(item, kind, (*path, "[%d]" % i), context) for i, (item, kind) in enumerate(zip(value, kinds)))


def spec_of(value):
    """Returns the description of a field's value: TypeSpecs in place of tensors."""
    if isinstance(value, Tensor):
        return TensorSpec(value.shape, value.dtype)
    if isinstance(value, collections.abc.Mapping):
        return ImmutableDict((key, spec_of(item)) for key, item in value.items())
    if isinstance(value, tuple):
        return tuple(spec_of(item) for item in value)
    return value._type_spec if hasattr(value, "_type_spec") else value


def plain_dicts(value, kind=dict):
    """Returns a field with its mappings as `kind`."""
    if isinstance(value, collections.abc.Mapping):
        return kind((key, plain_dicts(item, kind)) for key, item in value.items())
    return tuple(plain_dicts(item, kind) for item in value) if isinstance(value, tuple) else value


def spec_parts(value):
    """Returns the TypeSpecs in a field, in order; they describe what is a tensor or a composite tensor."""
    if isinstance(value, TypeSpec):
        return [value]
    if isinstance(value, collections.abc.Mapping):
        return [part for key in sorted(value) for part in spec_parts(value[key])]
    if isinstance(value, tuple):
        return [part for item in value for part in spec_parts(item)]
    return []


def tensor_parts(spec, value):
    """Returns the tensors and composite tensors of a field's value, in the order of `spec_parts`."""
    if isinstance(spec, TypeSpec):
        return [value]
    if isinstance(spec, collections.abc.Mapping):
        return [part for key in sorted(spec) for part in tensor_parts(spec[key], value[key])]
    if isinstance(spec, tuple):
        return [part for inner, item in zip(spec, value) for part in tensor_parts(inner, item)]
    return []


def with_parts(spec, parts):
    """Returns a field like its description, with values from the iterator `parts` in place of TypeSpecs."""
    if isinstance(spec, TypeSpec):
        return next(parts)
    if isinstance(spec, collections.abc.Mapping):
        made = {key: with_parts(spec[key], parts) for key in sorted(spec)}
        return ImmutableDict((key, made[key]) for key in spec)
    if isinstance(spec, tuple):
        return tuple(with_parts(inner, parts) for inner in spec)
    return spec
