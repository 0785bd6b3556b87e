"""tf.experimental.ExtensionType: classes of values made of tensors, which functions, datasets and control flow handle as a whole.

A subclass lists its fields by annotations. The metaclass makes the constructor and the class `Spec`, the TypeSpec of the
values; `extension_fields` has the conversions.
"""

import inspect
import typing

from runnel.core import extension_fields as fields_
from runnel.core.type_spec import BatchableTypeSpec, CompositeTensor, TypeSpec, register

_IN_CONSTRUCTOR = "_tf_extension_type_in_constructor"


class ExtensionTypeSpec(TypeSpec):
    """The description of an extension type's values: one part per field, TypeSpecs for tensors."""

    value_type: type = None
    _constructing = False

    def __init__(self, *args, **kwargs):
        bound = self._signature().bind(*args, **kwargs)
        for field in self.value_type._tf_extension_type_fields():
            self.__dict__[field.name] = fields_.as_spec(bound.arguments[field.name], field.value_type, field.name)
        self.__validate__()

    @classmethod
    def _signature(cls):
        return inspect.Signature([inspect.Parameter(field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
                                  for field in cls.value_type._tf_extension_type_fields()])

    def __validate__(self):
        """May be overridden to check the parts."""

    def __setattr__(self, name, value):
        raise AttributeError("Cannot mutate attribute `%s` outside the custom constructor of ExtensionTypeSpec." % name)

    def __delattr__(self, name):
        raise AttributeError("Cannot mutate attribute `%s` outside the custom constructor of ExtensionTypeSpec." % name)

    def _serialize(self):
        return tuple((field.name, _plain_dicts(self.__dict__[field.name])) for field in self.value_type._tf_extension_type_fields())

    @classmethod
    def _deserialize(cls, serialization):
        return cls(**dict(serialization))

    def _field_specs(self):
        return [self.__dict__[field.name] for field in self.value_type._tf_extension_type_fields()]

    @property
    def _component_specs(self):
        return tuple(part for spec in self._field_specs() for part in fields_.spec_parts(spec))

    def _to_components(self, value):
        names = [field.name for field in self.value_type._tf_extension_type_fields()]
        return tuple(part for name, spec in zip(names, self._field_specs()) for part in fields_.tensor_parts(spec, value.__dict__[name]))

    def _from_components(self, components):
        parts = iter(components)
        made = self.value_type.__new__(self.value_type)
        for field, spec in zip(self.value_type._tf_extension_type_fields(), self._field_specs()):
            made.__dict__[field.name] = fields_.with_parts(spec, parts)
        return made

    def _with_specs(self, change):
        """Returns the description whose TypeSpecs are changed by a function."""
        made = type(self).__new__(type(self))
        for field, spec in zip(self.value_type._tf_extension_type_fields(), self._field_specs()):
            parts = iter([change(part) for part in fields_.spec_parts(spec)])
            made.__dict__[field.name] = fields_.with_parts(spec, parts)
        return made

    def _without_shape(self):
        return self

    def __eq__(self, other):
        return type(self) is type(other) and self._serialize() == other._serialize()

    def __hash__(self):
        return hash((type(self), str(self)))

    def __repr__(self):
        rows = ["%s=%r" % row for row in self._serialize()]
        return "%s(%s)" % (type(self).__qualname__, ", ".join(rows))

    __ne__ = TypeSpec.__ne__


class _BatchableSpec(ExtensionTypeSpec, BatchableTypeSpec):
    def _batch(self, size):
        return self.__batch_encoder__.batch(self, size)

    def _unbatch(self):
        return self.__batch_encoder__.unbatch(self)


def _plain_dicts(value):
    if isinstance(value, fields_.ImmutableDict):
        return {key: _plain_dicts(item) for key, item in value.items()}
    return tuple(_plain_dicts(item) for item in value) if isinstance(value, tuple) else value


class ExtensionTypeBatchEncoder:
    """How values of an extension type are batched: each tensor gets another first dimension."""

    def batch(self, spec, batch_size):
        """Returns the description of batches."""
        return spec._with_specs(lambda part: part._batch(batch_size))

    def unbatch(self, spec):
        """Returns the description of an element of a batch."""
        return spec._with_specs(lambda part: part._unbatch())

    def encode(self, value, minimum_rank=0):
        """Returns the components of a value."""
        return value._type_spec._to_components(value)

    def decode(self, spec, encoded_value):
        """Returns the value of its components."""
        return spec._from_components(encoded_value)

    def encoding_specs(self, spec):
        """Returns the TypeSpecs of the components."""
        return spec._component_specs


class _Meta(type):
    def __init__(cls, name, bases, namespace):
        super().__init__(name, bases, namespace)
        if namespace.get("_tf_extension_type_do_not_transform_this_class"):
            return
        annotations = inspect.get_annotations(cls) if hasattr(inspect, "get_annotations") else namespace.get("__annotations__", {})
        cls._tf_extension_type_own_fields = fields_.fields_of(cls, annotations, namespace)
        cls._tf_extension_type_cached = None
        for field in cls._tf_extension_type_own_fields:
            if field.default is not fields_.MISSING and not isinstance(field.value_type, str):
                field.default = fields_.as_value(field.default, field.value_type, "default value for %s" % field.name)
                delattr(cls, field.name)
        _check_defaults(cls)
        if "__init__" in namespace:
            cls._tf_extension_type_init = namespace["__init__"]
        if "__eq__" not in namespace:
            cls.__hash__ = None
        _add_spec(cls, namespace.get("Spec"))
        if "__name__" in namespace:  # the name under which SavedModels and JSON know it
            register(namespace["__name__"] + ".Spec")(cls.Spec)

    def __call__(cls, *args, **kwargs):
        made = cls.__new__(cls)
        own = getattr(cls, "_tf_extension_type_init", None)
        if own is None:
            bound = cls._tf_extension_type_signature().bind(*args, **kwargs)
            bound.apply_defaults()
            made.__dict__.update(bound.arguments)
        else:
            made.__dict__[_IN_CONSTRUCTOR] = True
            own(made, *args, **kwargs)
            del made.__dict__[_IN_CONSTRUCTOR]
        made._tf_extension_type_convert_fields()
        made.__validate__()
        return made


def _check_defaults(cls):
    has_default = False
    for field in cls._tf_extension_type_fields(resolve=False):
        if field.default is fields_.MISSING and has_default and getattr(cls, "_tf_extension_type_init", None) is None:
            raise ValueError("Field %s without a default follows one with a default in %s" % (field.name, cls.__name__))
        has_default = has_default or field.default is not fields_.MISSING


def _add_spec(cls, given):
    base = _BatchableSpec if cls._tf_extension_type_is_batchable else ExtensionTypeSpec
    if given is None:
        spec = type("Spec", (base,), {"__module__": cls.__module__})
    elif issubclass(given, ExtensionTypeSpec):
        spec = given
    else:
        spec = type("Spec", (given, base), {"__module__": cls.__module__})
    spec.__qualname__ = cls.__qualname__ + ".Spec"
    type.__setattr__(spec, "value_type", cls)
    if cls._tf_extension_type_is_batchable:
        spec.__batch_encoder__ = cls.__batch_encoder__
    cls.Spec = spec


class ExtensionType(CompositeTensor, metaclass=_Meta):
    """The base of classes of values made of tensors. Subclasses annotate their fields:

        class MaskedTensor(tf.experimental.ExtensionType):
          values: tf.Tensor
          mask: tf.Tensor

    Values do not change after their construction. `__validate__` may be overridden to check them.
    """

    _tf_extension_type_do_not_transform_this_class = True
    _tf_extension_type_is_batchable = False

    @classmethod
    def _tf_extension_type_fields(cls, resolve=True):
        """Returns the fields, those of base classes first."""
        if cls.__dict__.get("_tf_extension_type_cached") is not None:
            return cls._tf_extension_type_cached
        found = {}
        for base in reversed(cls.__mro__):
            for field in base.__dict__.get("_tf_extension_type_own_fields", ()):
                found[field.name] = field
        if resolve:
            _resolve(cls, found.values())
            cls._tf_extension_type_cached = list(found.values())
        return list(found.values())

    @classmethod
    def _tf_extension_type_signature(cls):
        empty, kind = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD
        rows = [inspect.Parameter(f.name, kind, default=empty if f.default is fields_.MISSING else f.default, annotation=f.value_type)
                for f in cls._tf_extension_type_fields()]
        return inspect.Signature(rows, return_annotation=cls)

    def _tf_extension_type_convert_fields(self):
        fields = self._tf_extension_type_fields()
        names = {field.name for field in fields}
        for name in self.__dict__:
            if name not in names:
                raise ValueError("Unexpected attributes in %s: %s" % (type(self).__name__, [name]))
        for field in fields:
            if field.name not in self.__dict__:
                raise ValueError("Missing attribute %r in %s" % (field.name, type(self).__name__))
            self.__dict__[field.name] = fields_.as_value(self.__dict__[field.name], field.value_type, field.name)

    def __validate__(self):
        """May be overridden to check a new value."""

    @property
    def _type_spec(self):
        spec = self.Spec.__new__(self.Spec)
        for field in self._tf_extension_type_fields():
            spec.__dict__[field.name] = fields_.as_spec(self.__dict__[field.name], field.value_type, field.name)
        return spec

    def __setattr__(self, name, value):
        if _IN_CONSTRUCTOR not in self.__dict__ or name == _IN_CONSTRUCTOR:
            raise AttributeError("Cannot mutate attribute `%s` outside the custom constructor of ExtensionType." % name)
        self.__dict__[name] = value

    def __delattr__(self, name):
        if _IN_CONSTRUCTOR not in self.__dict__:
            raise AttributeError("Cannot mutate attribute `%s` outside the custom constructor of ExtensionType." % name)
        del self.__dict__[name]

    def __repr__(self):
        rows = ["%s=%r" % (field.name, self.__dict__[field.name]) for field in self._tf_extension_type_fields()]
        return "%s(%s)" % (type(self).__name__, ", ".join(rows))

    def __eq__(self, other):
        if type(self) is not type(other) or self._type_spec != other._type_spec:
            return False
        from runnel import nest
        from runnel.ops import math_ops
        pairs = zip(nest.flatten(self, expand_composites=True), nest.flatten(other, expand_composites=True))
        same = [math_ops.reduce_all(math_ops.equal(a, b)) for a, b in pairs]
        return math_ops.reduce_all(same) if same else True

    def __ne__(self, other):
        from runnel import raw_ops
        from runnel.core.framework import Tensor
        is_same = self == other
        return raw_ops.LogicalNot(x=is_same) if isinstance(is_same, Tensor) else not is_same

    __hash__ = None


class BatchableExtensionType(ExtensionType):
    """The base of extension types that datasets can batch, and tf.map_fn can divide."""

    _tf_extension_type_do_not_transform_this_class = True
    _tf_extension_type_is_batchable = True
    __batch_encoder__ = ExtensionTypeBatchEncoder()


def _resolve(cls, fields):
    """Replaces annotations that are strings by what they name."""
    if not any(isinstance(f.value_type, str) or "ForwardRef" in str(f.value_type) for f in fields):
        return
    hints = typing.get_type_hints(cls, localns={cls.__name__: cls})
    for field in fields:
        field.value_type = hints.get(field.name, field.value_type)
        if field.default is not fields_.MISSING:
            field.default = fields_.as_value(field.default, field.value_type, "default value for %s" % field.name)


def as_dict(value):
    """Returns the fields of an extension type's value as a dict."""
    return {field.name: getattr(value, field.name) for field in value._tf_extension_type_fields()}
