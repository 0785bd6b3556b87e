"""AnonymousExtensionType: values of SavedModels whose extension type the program does not have."""

import collections.abc

from runnel import dtypes
from runnel.core import tensor_shape
from runnel.extension_types.fields import ExtensionTypeField, ImmutableDict
from runnel.extension_types.extension_type import _CACHED_SPEC, ExtensionType, ExtensionTypeSpec, made_of
from runnel.core.framework import Tensor
from runnel.core.type_spec import CompositeTensor, TypeSpec, register

_PLAIN = (int, float, bool, str, bytes, type(None), dtypes.DType, tensor_shape.TensorShape)


def _converted(value, kinds):
    """Returns a field's value with mappings that do not change. `kinds` are the classes allowed beside plain ones."""
    if isinstance(value, (_PLAIN, kinds)):
        return value
    if isinstance(value, tuple):
        return tuple(_converted(item, kinds) for item in value)
    if isinstance(value, collections.abc.Mapping):
        return ImmutableDict((_converted(key, kinds), _converted(item, kinds)) for key, item in value.items())
    raise ValueError("Cannot convert anonymous fields from an unsupported `value` argument: %r." % (value,))


def _names(value):
    return [name for name in value.__dict__ if not ExtensionTypeField.is_reserved_name(name)]


def _check_names(kind, fields):
    for name in fields:
        if ExtensionTypeField.is_reserved_name(name) or name.startswith("__") and name.endswith("__"):
            raise ValueError("Reserved field name %s was encountered when trying to instantiate an %s." % (name, kind))


class AnonymousExtensionType(ExtensionType):
    """A value with any fields. `reinterpret` makes it a value of a class of the program."""

    _tf_extension_type_do_not_transform_this_class = True

    def __init__(self, **fields):
        _check_names("AnonymousExtensionType", fields)
        self.__dict__.update(fields)
        self._tf_extension_type_convert_fields()

    def _tf_extension_type_convert_fields(self):
        self.__dict__.update((name, _converted(self.__dict__[name], (Tensor, CompositeTensor))) for name in _names(self))

    def __setattr__(self, name, value):
        raise AttributeError("Cannot set attribute `%s`. AnonymousExtensionType instances are immutable." % name)

    def __delattr__(self, name):
        raise AttributeError("Cannot delete attribute `%s`. AnonymousExtensionType instances are immutable." % name)

    def __repr__(self):
        return "AnonymousExtensionType(%s)" % ", ".join("%s=%r" % (name, self.__dict__[name]) for name in _names(self))

    @property
    def _type_spec(self):
        if _CACHED_SPEC not in self.__dict__:
            spec = AnonymousExtensionTypeSpec.from_value(self)
            self.__dict__[_CACHED_SPEC] = spec
        return self.__dict__[_CACHED_SPEC]


@register("tf.AnonymousExtensionType.Spec")
class AnonymousExtensionTypeSpec(ExtensionTypeSpec):
    """The description of an AnonymousExtensionType."""

    value_type = AnonymousExtensionType

    def __init__(self, **fields):
        _check_names("AnonymousExtensionTypeSpec", fields)
        self.__dict__.update((name, _converted(value, TypeSpec)) for name, value in fields.items())

    def _field_names(self):
        return _names(self)

    def __setattr__(self, name, value):
        raise AttributeError("Cannot set attribute `%s`. AnonymousExtensionTypeSpec instances are immutable." % name)

    def __delattr__(self, name):
        raise AttributeError("Cannot delete attribute `%s`. AnonymousExtensionTypeSpec instances are immutable." % name)


def reinterpret(value, new_type):
    """Returns a value of another extension type with the same fields. Raises TypeError or ValueError if they do not fit."""
    if not isinstance(value, ExtensionType):
        raise ValueError("reinterpret expects `value` to be a tf.ExtensionType instance; got %r" % (value,))
    if not (isinstance(new_type, type) and issubclass(new_type, ExtensionType)):
        raise ValueError("reinterpret expects `new_type` to be a subclass of tf.ExtensionType; got %r" % (new_type,))
    made = made_of(new_type, {name: value.__dict__[name] for name in _names(value)})
    made._tf_extension_type_convert_fields()
    made.__validate__()
    return made
