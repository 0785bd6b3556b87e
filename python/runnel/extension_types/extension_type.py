"""tf.experimental.ExtensionType: classes of values made of tensors, which functions, datasets and control flow handle as a whole.

A subclass lists its fields by annotations. The metaclass makes the constructor and the class `Spec`, the TypeSpec of the
values; `fields` has the conversions.
"""

import abc
import functools
import inspect
import typing

from runnel.extension_types import fields as fields_
from runnel.extension_types.fields import ExtensionTypeField
from runnel.core.type_spec import BatchableTypeSpec, CompositeTensor, TensorSpec, TypeSpec, register

_IN_CONSTRUCTOR = "_tf_extension_type_in_constructor"
_PACKED, _CACHED_SPEC = "_tf_extension_type_packed_variant", "_tf_extension_type_cached_type_spec"
_OF_KERAS = ("_keras_mask",)
_NO_DEFAULT = ExtensionTypeField.NO_DEFAULT


def made_of(cls, fields):
    """Returns an instance with fields, whose constructor is not called."""
    value = object.__new__(cls)
    value.__dict__.update(fields)
    return value


class ExtensionTypeSpec(TypeSpec):
    """The description of an extension type's values: one part per field, TypeSpecs for tensors."""

    value_type: type = None
    _tf_extension_type_is_packed = False

    @classmethod
    def from_value(cls, value):
        """Returns the description of a value."""
        known = value.__dict__.get(_CACHED_SPEC)
        return known if known is not None else made_of(cls, {name: fields_.spec_of(item) for name, item in value.__dict__.items()
                                                             if not ExtensionTypeField.is_reserved_name(name)})

    @classmethod
    def _tf_extension_type_fields(cls):
        return cls.value_type._tf_extension_type_fields()

    @classmethod
    def _tf_extension_type_has_field(cls, name):
        return any(name == field.name for field in cls._tf_extension_type_fields())

    def _tf_extension_type_convert_fields(self):
        fields_.convert_fields_for_spec(self._tf_extension_type_fields(), self.__dict__)

    def _tf_extension_type_with_packed(self, value):
        """Returns a copy that describes values as one variant, or as the tensors of their fields."""
        return made_of(type(self), {**self.__dict__, "_tf_extension_type_is_packed": value})

    def __validate__(self):
        """May be overridden to check the parts."""

    def __setattr__(self, name, value):
        if not _may_change(self, name):
            raise AttributeError("Cannot mutate attribute `%s` outside the custom constructor of ExtensionTypeSpec." % name)
        self.__dict__[name] = value

    def __delattr__(self, name):
        if not _may_change(self, name):
            raise AttributeError("Cannot mutate attribute `%s` outside the custom constructor of ExtensionTypeSpec." % name)
        del self.__dict__[name]

    def _field_names(self):
        return [field.name for field in self._tf_extension_type_fields()]

    def _serialize(self):
        names = self._field_names() + ["_tf_extension_type_is_packed"] * self._tf_extension_type_is_packed
        return tuple((name, fields_.plain_dicts(self.__dict__[name])) for name in names)

    @classmethod
    def _deserialize(cls, serialization):
        return made_of(cls, fields_.plain_dicts(serialization, fields_.ImmutableDict))

    def __reduce__(self):
        return _deserialized, (self.value_type, self._serialize())

    def _specs_of_fields(self):
        return [self.__dict__[name] for name in self._field_names()]

    @property
    def _component_specs(self):
        if self._tf_extension_type_is_packed:
            return TensorSpec((), "variant")
        return tuple(part for spec in self._specs_of_fields() for part in fields_.spec_parts(spec))

    def _to_components(self, value):
        if self._tf_extension_type_is_packed:
            return value.__dict__[_PACKED]
        return tuple(part for name, spec in zip(self._field_names(), self._specs_of_fields()) for part in fields_.tensor_parts(spec, value.__dict__[name]))

    def _from_components(self, components):
        if self._tf_extension_type_is_packed:
            return made_of(self.value_type, {_CACHED_SPEC: self, _PACKED: components})
        parts = iter(components)
        value = made_of(self.value_type, {name: fields_.with_parts(spec, parts) for name, spec in zip(self._field_names(), self._specs_of_fields())})
        if list(parts):
            raise ValueError("Cannot build an ExtensionType instance from components because more components are provided than the number expected "
                             "by the type spec.")
        return value

    def _with_specs(self, change):
        """Returns the description whose TypeSpecs are changed by a function."""
        return made_of(type(self), {name: fields_.with_parts(spec, iter([change(part) for part in fields_.spec_parts(spec)]))
                                    for name, spec in zip(self._field_names(), self._specs_of_fields())})

    def _without_shape(self):
        return self

    def _to_legacy_output_shapes(self):
        try:
            return self.shape
        except AttributeError as error:
            raise NotImplementedError("It appears that the Spec of the ExtensionType is missing a shape property. In order to support tf.Data, it is "
                                      "recommended that you implement a shape property on the Spec.") from error

    def __eq__(self, other):
        return type(self) is type(other) and self._serialize() == other._serialize()

    def __hash__(self):
        return hash((type(self), str(self)))

    def __repr__(self):
        return "%s(%s)" % (type(self).__qualname__, ", ".join("%s=%r" % row for row in self._serialize()))

    __ne__ = TypeSpec.__ne__


class _BatchableSpec(ExtensionTypeSpec, BatchableTypeSpec):
    def _batch(self, size):
        return self.__batch_encoder__.batch(self, size)

    def _unbatch(self):
        return self.__batch_encoder__.unbatch(self)


def _deserialized(value_type, serialization):
    """Makes a description that was pickled; its class is inside the class of the values."""
    return value_type.Spec._deserialize(serialization)


def _may_change(self, name):
    """Tells whether an attribute may be set or deleted now: fields, in a constructor of the program."""
    return _IN_CONSTRUCTOR in self.__dict__ and self._tf_extension_type_has_field(name)


class ExtensionTypeBatchEncoder:
    """How values of an extension type are batched: each tensor gets another first dimension."""

    def batch(self, spec, batch_size):
        """Returns the description of batches."""
        return spec._with_specs(lambda part: part._batch(batch_size))

    def unbatch(self, spec):
        """Returns the description of an element of a batch."""
        return spec._with_specs(lambda part: part._unbatch())

    def encode(self, spec, value, minimum_rank=0):
        """Returns the components of a value; each has at least `minimum_rank` dimensions."""
        return spec._to_components(value)

    def decode(self, spec, encoded_value):
        """Returns the value of its components."""
        return spec._from_components(encoded_value)

    def encoding_specs(self, spec):
        """Returns the TypeSpecs of the components."""
        return spec._component_specs


class ExtensionTypeMetaclass(abc.ABCMeta):
    """Gives classes of the program a constructor and a Spec."""

    def __init__(cls, name, bases, namespace):
        if not namespace.get("_tf_extension_type_do_not_transform_this_class"):
            _check_namespace(cls, namespace)
            if "__init__" in namespace:
                cls.__init__ = _own_constructor(namespace["__init__"])
            else:
                cls.__init__ = _constructor(cls, _value_parameters(cls._tf_extension_type_fields()))
            if "__eq__" not in namespace:
                cls.__hash__ = None
            _add_spec(cls, namespace.get("Spec"))
        super().__init__(name, bases, namespace)


def _check_namespace(cls, namespace):
    """Raises ValueError if a class has a reserved name, or an attribute that is no field."""
    spec, annotated = namespace.get("Spec", object), cls.__dict__.get("__annotations__", {})
    if not isinstance(spec, type):
        raise ValueError("%s.Spec must be a nested class; got %s." % (cls.__qualname__, spec))
    if "Spec" in namespace and spec.__bases__ not in ((TypeSpec,), (object,)):
        raise ValueError("%s.Spec must be directly subclassed from tf.TypeSpec." % cls.__qualname__)
    for name in [*(name for name in namespace if name != "Spec"), *annotated]:
        if ExtensionTypeField.is_reserved_name(name):
            raise ValueError("The field annotations for %s are invalid. Field '%s' is reserved." % (cls.__name__, name))
    for name, value in namespace.items():
        is_special = name.startswith("__") and name.endswith("__") or name.startswith("_abc_")
        if not (name in annotated or callable(value) or is_special or isinstance(value, (property, classmethod, staticmethod))):
            raise ValueError("The field annotations for %s are invalid. Field %s is missing a type annotation." % (cls.__name__, name))


def _value_parameters(fields):
    """Returns the parameters of a constructor. Those after one without a default that follows one with a default are keywords."""
    kind, has_default, rows = inspect.Parameter.POSITIONAL_OR_KEYWORD, False, []
    for field in fields:
        if field.default is not _NO_DEFAULT:
            has_default = True
        elif has_default:
            kind = inspect.Parameter.KEYWORD_ONLY
        default = inspect.Parameter.empty if field.default is _NO_DEFAULT else field.default
        rows.append(inspect.Parameter(field.name, kind, default=default, annotation=field.value_type))
    return rows


def _constructor(cls, parameters):
    """Returns the constructor that takes the fields."""
    signature = inspect.Signature(parameters)

    def __init__(self, *args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        self.__dict__.update(bound.arguments)
        if _IN_CONSTRUCTOR not in self.__dict__:  # the constructor of a subclass converts them when it ends
            self._tf_extension_type_convert_fields()
            self.__validate__()

    this = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    __init__.__signature__ = inspect.Signature([this, *parameters], return_annotation=cls)
    return __init__


def _own_constructor(constructor):
    """Returns a constructor of the program, which may set fields, followed by conversion and validation."""
    @functools.wraps(constructor)
    def __init__(self, *args, **kwargs):
        if _IN_CONSTRUCTOR in self.__dict__:  # called by the constructor of a subclass
            constructor(self, *args, **kwargs)
            return
        self.__dict__[_IN_CONSTRUCTOR] = True
        constructor(self, *args, **kwargs)
        del self.__dict__[_IN_CONSTRUCTOR]
        self._tf_extension_type_convert_fields()
        self.__validate__()
    return __init__


def _add_spec(cls, given):
    """Gives a class its Spec: what the program's nested class `Spec` has, on top of ExtensionTypeSpec."""
    is_batchable = issubclass(cls, BatchableExtensionType)
    names = {"value_type": cls, "__module__": cls.__module__}
    for name, value in vars(given or object).items() if given is not None else ():
        if ExtensionTypeField.is_reserved_name(name):
            raise ValueError("TypeSpec %s.Spec uses reserved name '%s'." % (cls.__qualname__, name))
        if cls._tf_extension_type_has_field(name):
            raise ValueError("TypeSpec %s.Spec defines a variable '%s' which shadows a field in %s" % (cls.__qualname__, name, cls.__qualname__))
        if name not in ("__module__", "__dict__", "__weakref__"):
            names[name] = value
    if is_batchable:
        names.setdefault("__batch_encoder__", cls.__batch_encoder__)
    elif hasattr(cls, "__batch_encoder__") or "__batch_encoder__" in names:
        raise ValueError("__batch_encoder__ should only be defined for BatchableExtensionType classes.")
    spec = type(cls.__name__ + ".Spec", (_BatchableSpec if is_batchable else ExtensionTypeSpec,), names)
    spec.__qualname__ = cls.__qualname__ + ".Spec"
    if "__init__" in names:
        spec.__init__ = _own_constructor(names["__init__"])
    else:
        spec.__init__ = _constructor(spec, [inspect.Parameter(field.name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
                                            for field in cls._tf_extension_type_fields()])
    cls.Spec = spec
    if "__name__" in cls.__dict__:  # the name under which SavedModels and JSON know it
        register(cls.__dict__["__name__"] + ".Spec")(spec)


class ExtensionType(CompositeTensor, metaclass=ExtensionTypeMetaclass):
    """The base of classes of values made of tensors. Subclasses annotate their fields:

        class MaskedTensor(tf.experimental.ExtensionType):
          values: tf.Tensor
          mask: tf.Tensor

    Values do not change after their construction. `__validate__` may be overridden to check them.
    """

    _tf_extension_type_do_not_transform_this_class = True

    def __init__(self, *args, **kwargs):
        if type(self) is ExtensionType:
            raise AssertionError("Cannot create an instance of ExtensionType because ExtensionType is an abstract base class.")

    @classmethod
    def _tf_extension_type_fields(cls):
        """Returns the fields, those of base classes first. Annotations may stay strings until their classes exist."""
        if "_tf_extension_type_cached_fields" in cls.__dict__:
            return cls._tf_extension_type_cached_fields
        try:
            hints, is_final = typing.get_type_hints(cls), True
        except (NameError, AttributeError):
            hints, is_final = {}, False
            for base in reversed(cls.__mro__):
                hints.update(base.__dict__.get("__annotations__", {}))
        fields = tuple(ExtensionTypeField(name, hint, getattr(cls, name, _NO_DEFAULT)) for name, hint in hints.items())
        if is_final:
            cls._tf_extension_type_cached_fields = fields
        return fields

    @classmethod
    def _tf_extension_type_has_field(cls, name):
        return any(name == field.name for field in cls._tf_extension_type_fields())

    def _tf_extension_type_convert_fields(self):
        fields_.convert_fields(self._tf_extension_type_fields(), self.__dict__)

    def __validate__(self):
        """May be overridden to check a new value."""

    @property
    def _type_spec(self):
        if _CACHED_SPEC not in self.__dict__:
            spec = self.Spec.from_value(self)
            self.__dict__[_CACHED_SPEC] = spec
        return self.__dict__[_CACHED_SPEC]

    def __getattr__(self, name):
        if _PACKED in self.__dict__ and not name.startswith("_"):
            from runnel.extension_types.packing import unpack
            return getattr(unpack(self), name)  # not kept: these tensors belong to the branch or loop that asks
        raise AttributeError("%r object has no attribute %r" % (type(self).__name__, name))

    def __setattr__(self, name, value):
        if name not in _OF_KERAS and not _may_change(self, name):
            raise AttributeError("Cannot mutate attribute `%s` outside the custom constructor of ExtensionType." % name)
        self.__dict__[name] = value

    def __delattr__(self, name):
        if name not in _OF_KERAS and not _may_change(self, name):
            raise AttributeError("Cannot mutate attribute `%s` outside the custom constructor of ExtensionType." % name)
        del self.__dict__[name]

    def __repr__(self):
        rows = ["%s=%r" % (field.name, getattr(self, field.name)) for field in self._tf_extension_type_fields()]
        return "%s(%s)" % (type(self).__qualname__, ", ".join(rows))

    def __eq__(self, other):
        if type(self) is not type(other) or self._type_spec != other._type_spec:
            return False
        from runnel import nest, raw_ops
        from runnel.ops import array_ops, math_ops

        def same(a, b):
            return math_ops.reduce_all(raw_ops.Equal(x=a, y=b, incompatible_shape_error=False))

        mine, others = nest.flatten(self, expand_composites=True), nest.flatten(other, expand_composites=True)
        if len(mine) != len(others):
            return False
        checks = [check for a, b in zip(mine, others) for check in (same(array_ops.shape(a), array_ops.shape(b)), same(a, b))]
        return math_ops.reduce_all(array_ops.stack(checks)) if checks else True

    def __ne__(self, other):
        from runnel import raw_ops
        from runnel.core.framework import Tensor
        is_same = self == other
        return raw_ops.LogicalNot(x=is_same) if isinstance(is_same, Tensor) else not is_same

    __hash__ = None


class BatchableExtensionType(ExtensionType):
    """The base of extension types that datasets can batch, and tf.map_fn can divide."""

    _tf_extension_type_do_not_transform_this_class = True
    __batch_encoder__ = ExtensionTypeBatchEncoder()


def as_dict(value):
    """Returns the fields of an extension type's value as a dict."""
    return {field.name: getattr(value, field.name) for field in value._tf_extension_type_fields()}
