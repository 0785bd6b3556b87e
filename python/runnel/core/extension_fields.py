"""The fields of extension types: their annotations, and conversion of values and TypeSpecs to what these say."""

import collections.abc
import typing

from runnel import dtypes
from runnel.core import tensor_shape
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import Tensor
from runnel.core.type_spec import CompositeTensor, TensorSpec, TypeSpec, type_spec_from_value

MISSING = object()
_PLAIN = (int, float, bool, str, bytes, type(None))
_RESERVED = frozenset(["self", "Spec"])


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


class Field:
    """A field: its name, annotation and default value."""

    def __init__(self, name, value_type, default=MISSING):
        self.name, self.value_type, self.default = name, value_type, default


def fields_of(cls, annotations, namespace):
    """Returns the Fields that a class adds. Raises TypeError or ValueError if an annotation or default is not allowed."""
    found = []
    for name, value_type in annotations.items():
        if name in _RESERVED or name.startswith("_tf_extension_type"):
            raise ValueError("The field annotations for %s are invalid. Field '%s' is reserved." % (cls.__name__, name))
        if not isinstance(value_type, str):
            check_annotation(value_type, "In field '%s'" % name)
        found.append(Field(name, value_type, namespace.get(name, MISSING)))
    return found


def _name(value_type):
    return value_type.__name__ if isinstance(value_type, type) else str(value_type)


def check_annotation(value_type, context):
    """Raises TypeError if extension types cannot have fields of a type."""
    origin, args = typing.get_origin(value_type), typing.get_args(value_type)
    if value_type is None or value_type in _PLAIN or value_type in (dtypes.DType, tensor_shape.TensorShape, Tensor):
        return
    if isinstance(value_type, type) and not origin and (issubclass(value_type, (CompositeTensor, TypeSpec)) or value_type.__name__ == "Tensor"):
        return
    if isinstance(value_type, (TypeSpec, typing.ForwardRef)):
        return
    if origin is typing.Union or type(value_type).__name__ == "UnionType":
        for arg in args:
            check_annotation(arg, context)
        return
    if origin is tuple:
        for arg in args:
            if arg is not Ellipsis:
                check_annotation(arg, context)
        if Ellipsis in args and (len(args) != 2 or args[0] is Ellipsis):
            raise TypeError("%s: Unsupported type annotation %r" % (context, _name(value_type)))
        return
    if origin in (collections.abc.Mapping, dict):
        check_annotation(args[0], context)
        check_annotation(args[1], context)
        if args[0] is not str:
            raise TypeError("%s: Mapping had a key %r with type %r" % (context, args[0], _name(args[0])))
        return
    raise TypeError("%s: Unsupported type annotation %r" % (context, _name(value_type)))


def as_value(value, value_type, path):
    """Returns a value as an annotation wants it. Raises TypeError if that is not possible."""
    return _as(value, value_type, path, _leaf_value)


def as_spec(value, value_type, path):
    """Returns the description of a field: TypeSpecs of tensors, anything else as it is."""
    return _as(value, value_type, path, _leaf_spec)


def _is_tensor_type(value_type):
    return isinstance(value_type, type) and (issubclass(value_type, Tensor) or value_type.__name__ == "Tensor")


def _leaf_value(value, value_type, path):
    if _is_tensor_type(value_type):
        if isinstance(value, Tensor):
            return value
        try:
            return convert_to_tensor(value)
        except (ValueError, TypeError) as error:
            raise TypeError("%s: expected a Tensor, got %r" % (path, type(value).__name__)) from error
    if isinstance(value_type, TypeSpec):
        value = convert_to_tensor(value, value_type.dtype) if isinstance(value_type, TensorSpec) else value
        if not value_type.is_compatible_with(value):
            raise TypeError("%s: expected a value compatible with %r, got %r" % (path, value_type, value))
        return value
    return _plain(value, value_type, path)


def _leaf_spec(value, value_type, path):
    if _is_tensor_type(value_type):
        if isinstance(value, TensorSpec):
            return value
        if isinstance(value, Tensor):
            return TensorSpec(value.shape, value.dtype)
        raise TypeError("%s: expected a tf.TypeSpec, got %r" % (path, type(value).__name__))
    if isinstance(value_type, TypeSpec):
        return value if isinstance(value, TypeSpec) else type_spec_from_value(value)
    if isinstance(value_type, type) and issubclass(value_type, CompositeTensor):
        spec = value if isinstance(value, TypeSpec) else type_spec_from_value(value)
        if issubclass(spec.value_type, value_type):
            return spec
    return _plain(value, value_type, path)


def _plain(value, value_type, path):
    if value_type is dtypes.DType:
        try:
            return dtypes.as_dtype(value)
        except TypeError:
            pass
    elif value_type is tensor_shape.TensorShape:
        if isinstance(value, (tensor_shape.TensorShape, list, tuple)) or value is None:
            return tensor_shape.as_shape(value)
    elif value_type is None or value_type is type(None):
        if value is None:
            return None
        value_type = type(None)
    elif isinstance(value, value_type):
        return value
    elif value_type is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    raise TypeError("%s: expected '%s', got '%s'" % (path, value_type.__name__, type(value).__name__))


def _as(value, value_type, path, leaf):
    origin, args = typing.get_origin(value_type), typing.get_args(value_type)
    if origin is typing.Union or type(value_type).__name__ == "UnionType":
        return _as_one_of(value, value_type, args, path, leaf)
    if origin is tuple:
        return _as_tuple(value, args, path, leaf)
    if origin in (collections.abc.Mapping, dict):
        if not isinstance(value, collections.abc.Mapping):
            raise TypeError("%s: expected mapping, got %r" % (path, type(value).__name__))
        for key in value:
            if not isinstance(key, str):
                raise TypeError("%s[<key>]: expected 'str', got %r" % (path, type(key).__name__))
        return ImmutableDict((key, _as(item, args[1], "%s[%r]" % (path, key), leaf)) for key, item in value.items())
    return leaf(value, value_type, path)


def _as_tuple(value, args, path, leaf):
    if not isinstance(value, (list, tuple)):
        raise TypeError("%s: expected tuple, got %r" % (path, type(value).__name__))
    if len(args) == 2 and args[1] is Ellipsis:
        args = (args[0],) * len(value)
    elif args == ((),):
        args = ()
    if len(args) != len(value):
        raise TypeError("%s: expected tuple with length %d, got %r" % (path, len(args), value))
    return tuple(_as(item, kind, "%s[%d]" % (path, i), leaf) for i, (item, kind) in enumerate(zip(value, args)))


def _as_one_of(value, value_type, args, path, leaf):
    """Tries the types that a value has already, then those that it converts to."""
    ordered = sorted(args, key=lambda kind: not (isinstance(kind, type) and type(value) is kind))
    for kind in ordered:
        try:
            return _as(value, kind, path, leaf)
        except TypeError:
            continue
    raise TypeError("%s: expected %s, got %r" % (path, value_type, type(value).__name__))


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
