"""tf.TypeSpec: descriptions of values, and CompositeTensor, the base of values made of several tensors.

A TypeSpec knows the tensors of a value (`_to_components`), their own descriptions (`_component_specs`) and the way back
(`_from_components`). tf.nest expands composite values with these; functions, datasets and SavedModels describe
their arguments by them. The descriptions of sparse and ragged tensors are in `composite_specs`.
"""

import re

from runnel import dtypes
from runnel.core import tensor_shape
from runnel.functions.spec_tracing import TracedSpec, TracedTensorSpec


class CompositeTensor:
    """The base of values made of several tensors: sparse and ragged tensors, slices. Subclasses have `_type_spec`."""

    _is_composite = True

    @property
    def _type_spec(self):
        raise NotImplementedError("%s._type_spec()" % type(self).__name__)

    def _convert_variables_to_tensors(self):
        return self

    def _shape_invariant_to_type_spec(self, shape):
        raise NotImplementedError("%s._shape_invariant_to_type_spec" % type(self).__name__)

    def __tf_tracing_type__(self, context):
        return self._type_spec.__tf_tracing_type__(context)


def convert_variables_to_tensors(composite_tensor):
    """Returns a composite value with the present values of its variables."""
    return composite_tensor._convert_variables_to_tensors()


class TypeSpec(TracedSpec):
    """The base of descriptions of values.

    `_serialize` returns the tuple of the constructor's arguments; two descriptions are equal if it returns the same for both.
    """

    _is_type_spec = True

    @property
    def value_type(self):
        """The class of the values."""
        raise NotImplementedError("%s.value_type" % type(self).__name__)

    def _serialize(self):
        raise NotImplementedError("%s._serialize" % type(self).__name__)

    @classmethod
    def _deserialize(cls, serialization):
        return cls(*serialization)

    @property
    def _component_specs(self):
        raise NotImplementedError("%s._component_specs()" % type(self).__name__)

    def _to_components(self, value):
        raise NotImplementedError("%s._to_components()" % type(self).__name__)

    def _from_components(self, components):
        raise NotImplementedError("%s._from_components()" % type(self).__name__)

    def _flat_specs(self):
        """Returns the TensorSpecs of the value's tensors."""
        from runnel import nest
        return nest.flatten(self._component_specs, expand_composites=True)

    def _to_tensors(self, value):
        """Returns the tensors of a value."""
        from runnel import nest
        return nest.flatten(self._to_components(value), expand_composites=True)

    def _from_tensors(self, tensors):
        """Returns the value made of tensors, an iterable."""
        from runnel import nest
        return self._from_components(nest.pack_sequence_as(self._component_specs, list(tensors), expand_composites=True))

    # What stands for a value in a dataset: see data/structure.py

    @property
    def _flat_tensor_specs(self):
        from runnel.data import structure
        return structure.flat_specs(self)

    def _to_tensor_list(self, value):
        from runnel.data import structure
        return structure.to_tensor_list(self, value)

    def _to_batched_tensor_list(self, value):
        from runnel.data import structure
        return structure.to_batched_tensor_list(self, value)

    def _from_compatible_tensor_list(self, tensor_list):
        from runnel.data import structure
        return structure.from_compatible_tensor_list(self, tensor_list)

    def _from_tensor_list(self, tensor_list):
        from runnel.data import structure
        return structure.from_tensor_list(self, tensor_list)

    def _without_tensor_names(self):
        return self

    def _without_shape(self):
        """Returns the description of values of any shape."""
        return self

    def _with_tensor_ranks_only(self):
        """Returns the description of values of any shape of the same rank."""
        def relax(value):
            if isinstance(value, tensor_shape.TensorShape):
                return value if value.rank is None else tensor_shape.TensorShape([None] * value.rank)
            if isinstance(value, TypeSpec):
                return value._with_tensor_ranks_only()
            if isinstance(value, (list, tuple)):
                made = [relax(item) for item in value]
                return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
            return {key: relax(item) for key, item in value.items()} if isinstance(value, dict) else value
        return self._deserialize(relax(self._serialize()))

    def is_compatible_with(self, spec_or_value):
        """Tells whether a value, or another description, fits this one."""
        other = spec_or_value if isinstance(spec_or_value, TypeSpec) else _spec_or_none(spec_or_value)
        return type(self) is type(other) and _fits(self._serialize(), other._serialize())

    def is_subtype_of(self, other):
        """Tells whether every value of this description fits `other`."""
        return type(self) is type(other) and _is_within(self._serialize(), other._serialize())

    def most_specific_common_supertype(self, others):
        """Returns the narrowest description that covers this one and `others`, or None."""
        parts = self._serialize()
        for other in others:
            if type(self) is not type(other):
                return None
            parts = _common(parts, other._serialize())
            if parts is _NOTHING:
                return None
        return self._deserialize(parts)

    def most_specific_compatible_type(self, other):
        """Returns the narrowest description that covers both. Raises ValueError if there is none."""
        found = self.most_specific_common_supertype([other])
        if found is None:
            raise ValueError("No TypeSpec is compatible with both %s and %s" % (self, other))
        return found

    def __eq__(self, other):
        return type(self) is type(other) and self._cmp_key() == other._cmp_key()

    def _cmp_key(self):
        return _hashable(self._serialize())

    def __make_cmp_key(self, value):
        """Returns a value that can be compared and hashed; libraries call it as _TypeSpec__make_cmp_key."""
        return _hashable(value)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash((type(self), self._cmp_key()))

    def __reduce__(self):
        return type(self)._deserialize, (self._serialize(),)

    def __repr__(self):
        return "%s%r" % (type(self).__name__, self._serialize())


class BatchableTypeSpec(TypeSpec):
    """The base of descriptions of values that can be batched."""


_NOTHING = object()


def _hashable(value):
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, dict):
        return tuple((key, _hashable(value[key])) for key in sorted(value, key=repr))
    if hasattr(value, "__array__") and hasattr(value, "tolist"):
        return _hashable(value.tolist())
    return value


def _parts_agree(mine, other, shapes_agree, specs_agree):
    """Compares two descriptions part by part; shapes and specs by the given functions, anything else by ==."""
    if isinstance(mine, tensor_shape.TensorShape):
        return isinstance(other, tensor_shape.TensorShape) and shapes_agree(mine, other)
    if isinstance(mine, TypeSpec):
        return isinstance(other, TypeSpec) and specs_agree(mine, other)
    if isinstance(mine, (list, tuple)):
        if not _alike(mine, other):
            return False
        return all(_parts_agree(a, b, shapes_agree, specs_agree) for a, b in zip(mine, other))
    if isinstance(mine, dict):
        if not isinstance(other, dict) or set(mine) != set(other):
            return False
        return all(_parts_agree(mine[key], other[key], shapes_agree, specs_agree) for key in mine)
    return _equal(mine, other)


def _alike(mine, other):
    """Tells whether two tuples or lists are of one kind and length; namedtuples of one name and the same fields are."""
    if hasattr(mine, "_fields") and hasattr(other, "_fields"):
        return type(mine).__name__ == type(other).__name__ and mine._fields == other._fields
    return type(mine) is type(other) and len(mine) == len(other)


def _equal(mine, other):
    """Compares two values that may be arrays."""
    if hasattr(mine, "__array__") and hasattr(other, "__array__"):
        import numpy
        return bool(numpy.array_equal(mine, other))
    return mine == other


def _fits(mine, other):
    """Tells whether a part of one description fits that of another; shapes fit if they do not contradict each other."""
    return _parts_agree(
        mine, other, lambda a, b: a.is_compatible_with(b), lambda a, b: a.is_compatible_with(b)
    )


def _is_within(mine, other):
    """Tells whether every value that a part of one description allows is allowed by the other's."""
    return _parts_agree(
        mine, other, lambda a, b: a.most_specific_compatible_shape(b) == b, lambda a, b: a.is_subtype_of(b)
    )


def _common(mine, other):
    """Returns what covers a part of two descriptions, or _NOTHING."""
    if isinstance(mine, tensor_shape.TensorShape) and isinstance(other, tensor_shape.TensorShape):
        return mine.most_specific_compatible_shape(other)
    if isinstance(mine, TypeSpec) and isinstance(other, TypeSpec):
        found = mine.most_specific_common_supertype([other])
        return _NOTHING if found is None else found
    if isinstance(mine, (list, tuple)):
        if not _alike(mine, other):
            return _NOTHING
        parts = [_common(a, b) for a, b in zip(mine, other)]
        if any(part is _NOTHING for part in parts):
            return _NOTHING
        return type(mine)(*parts) if hasattr(mine, "_fields") else type(mine)(parts)
    if isinstance(mine, dict) and isinstance(other, dict) and set(mine) == set(other):
        parts = {key: _common(mine[key], other[key]) for key in mine}
        return _NOTHING if any(part is _NOTHING for part in parts.values()) else parts
    return mine if _equal(mine, other) else _NOTHING


class TensorSpec(TracedTensorSpec, BatchableTypeSpec):
    """A type and a shape."""

    def __init__(self, shape, dtype=dtypes.float32, name=None):
        self._shape = tensor_shape.as_shape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._name = name

    shape = property(lambda self: self._shape)

    def _graph_placeholder(self, graph, name=None):
        """Returns a placeholder of this description, with the name if a node may have it."""
        import re
        from runnel import raw_ops
        with graph.as_default():
            return raw_ops.Placeholder(dtype=self._dtype, shape=self._shape, name=name if re.match(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$", name or "") else None)
    dtype = property(lambda self: self._dtype)
    name = property(lambda self: self._name)
    rank = property(lambda self: self._shape.rank)

    @property
    def value_type(self):
        from runnel.core.framework import Tensor
        return Tensor

    @classmethod
    def from_tensor(cls, tensor, name=None):
        """Returns the description of a tensor."""
        return cls(tensor.shape, tensor.dtype, name or getattr(getattr(tensor, "op", None), "name", None))

    @classmethod
    def from_spec(cls, spec, name=None):
        """Returns a copy of a description, with another name."""
        return cls(spec.shape, spec.dtype, name or getattr(spec, "name", None))

    def is_compatible_with(self, spec_or_tensor):
        """Tells whether a tensor, or another description, fits this one."""
        other = spec_or_tensor
        if not hasattr(other, "dtype") or not hasattr(other, "shape"):
            other = _spec_or_none(other)
        return (other is not None and self._dtype.is_compatible_with(dtypes.as_dtype(other.dtype))
                and self._shape.is_compatible_with(other.shape))

    def is_subtype_of(self, other):
        return (isinstance(other, TensorSpec) and self._dtype == other._dtype and (self._name is None or self._name == other._name)
                and _is_within(self._shape, other._shape))

    def most_specific_common_supertype(self, others):
        shape = self._shape
        for other in others:
            if not isinstance(other, TensorSpec) or (other._dtype, other._name) != (self._dtype, self._name):
                return None
            shape = shape.most_specific_compatible_shape(other._shape)
        return type(self)(shape, self._dtype, self._name)

    def _serialize(self):
        return self._shape, self._dtype, self._name

    @property
    def _component_specs(self):
        return self

    def _to_components(self, value):
        from runnel.core.convert import convert_to_tensor
        return convert_to_tensor(value, self._dtype)

    def _from_components(self, components):
        return components

    def _flat_specs(self):
        return [self]

    def _to_tensors(self, value):
        return [self._to_components(value)]

    def _from_tensors(self, tensors):
        tensor, = tensors
        return tensor

    def _without_tensor_names(self):
        return self if self._name is None else type(self)(self._shape, self._dtype)

    def _batch(self, size):
        return type(self)(tensor_shape.TensorShape([size]).concatenate(self._shape), self._dtype)

    def _unbatch(self):
        if self._shape.rank == 0:
            raise ValueError("Unbatching a tensor is only supported for rank >= 1")
        return type(self)(self._shape[1:], self._dtype)

    def __repr__(self):
        return "TensorSpec(shape=%s, dtype=%r, name=%r)" % (self._shape, self._dtype, self._name)


class NoneTensorSpec(BatchableTypeSpec):
    """The description of None."""

    value_type = property(lambda self: type(None))

    def _serialize(self):
        return ()

    @property
    def _component_specs(self):
        return []

    def _to_components(self, value):
        return []

    def _from_components(self, components):
        return None

    def is_compatible_with(self, spec_or_value):
        return spec_or_value is None or isinstance(spec_or_value, NoneTensorSpec)

    def _batch(self, size):
        return self

    _unbatch = property(lambda self: lambda: self)


# --- Descriptions of values

_makers: list = []  # (class, function from a value to its TypeSpec, whether subclasses too)
_registered: dict = {}  # name -> class
_names: dict = {}  # class -> name
_NAME = re.compile(r"\w+(\.\w+)+")
_NAME_TO_TYPE_SPEC, _TYPE_SPEC_TO_NAME = _registered, _names  # as TensorFlow Probability knows them


def register_type_spec_from_value_converter(type_object, converter_fn, allow_subclass=False):
    """Registers the function that describes the values of a class."""
    _makers.append((type_object, converter_fn, allow_subclass))


def register(name):
    """A decorator of TypeSpecs that SavedModels name, such as "my_package.MySpec"."""
    if not isinstance(name, str):
        raise TypeError("Expected `name` to be a string; got %r" % (name,))
    if not _NAME.fullmatch(name):
        raise ValueError("Registered name must have the form '{project_name}.{type_name}' (e.g. 'my_project.MyTypeSpec'); got %r." % name)

    def decorate(cls):
        if not (isinstance(cls, type) and issubclass(cls, TypeSpec)):
            raise TypeError("Expected `cls` to be a TypeSpec; got %r" % (cls,))
        if cls in _names:
            raise ValueError("Class %s.%s has already been registered with name %s." % (cls.__module__, cls.__name__, _names[cls]))
        if name in _registered:
            known = _registered[name]
            raise ValueError("Name %s has already been registered for class %s.%s." % (name, known.__module__, known.__name__))
        _registered[name], _names[cls] = cls, name
        return cls
    return decorate


register("tf.TensorSpec")(TensorSpec)


def lookup(name):
    """Returns the TypeSpec registered under a name."""
    if not isinstance(name, str):
        raise TypeError("Expected `name` to be a string; got %r" % (name,))
    if name not in _registered:
        raise ValueError("No TypeSpec has been registered with name %r" % (name,))
    return _registered[name]


def get_name(cls):
    """Returns the name under which a TypeSpec is registered."""
    if not (isinstance(cls, type) and issubclass(cls, TypeSpec)):
        raise TypeError("Expected `cls` to be a TypeSpec; got %r" % (cls,))
    if cls not in _names:
        raise ValueError("TypeSpec %s.%s has not been registered." % (cls.__module__, cls.__name__))
    return _names[cls]


def _spec_or_none(value):
    from runnel.core.framework import Tensor
    if isinstance(value, TypeSpec):
        return value
    if isinstance(value, Tensor):
        return TensorSpec(value.shape, value.dtype)
    if value is None:
        return NoneTensorSpec()
    for kind, make, with_subclasses in reversed(_makers):
        if type(value) is kind or with_subclasses and isinstance(value, kind):
            return make(value)
    return getattr(value, "_type_spec", None) or getattr(value, "__tf_type_spec__", lambda: None)()


def type_spec_from_value(value):
    """Returns the TypeSpec of a value. Raises TypeError if it has none."""
    spec = _spec_or_none(value)
    if spec is not None:
        return spec
    from runnel.core.convert import convert_to_tensor
    if type(value).__module__ == "numpy" and hasattr(value, "dtype") and value.dtype.kind in "biufc":
        return TensorSpec(value.shape, value.dtype)  # without making a tensor
    try:
        tensor = convert_to_tensor(value)
    except (ValueError, TypeError):
        raise TypeError("Could not build a `TypeSpec` for %r with type %s" % (value, type(value).__name__)) from None
    return TensorSpec(tensor.shape, tensor.dtype)
