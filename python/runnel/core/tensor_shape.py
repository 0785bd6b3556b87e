"""Shapes that may be partly known: Dimension and TensorShape."""

from runnel import _core


class Dimension:
    """A size; `value` is None if it is unknown."""

    __slots__ = ("_value",)

    def __init__(self, value):
        if isinstance(value, Dimension):
            value = value._value
        elif value is not None:
            try:
                value = value.__index__()
            except AttributeError:
                raise TypeError("Dimension value must be integer or None or have an __index__ "
                                "method, got value '%r' with type '%r'" % (value, type(value))) from None
            if value < 0:
                raise ValueError("Dimension %d must be >= 0" % value)
        self._value = value

    @property
    def value(self):
        """The size, or None."""
        return self._value

    def __repr__(self):
        return "Dimension(%r)" % self._value

    def __str__(self):
        return "?" if self._value is None else str(self._value)

    def __int__(self):
        return self._value

    def __index__(self):
        if self._value is None:
            raise TypeError("An unknown Dimension cannot be used as an index")
        return self._value

    def __hash__(self):
        return hash(self._value)

    def __bool__(self):
        return bool(self._value)

    def __reduce__(self):
        return Dimension, (self._value,)

    def __eq__(self, other):
        try:
            other = as_dimension(other)._value
        except (TypeError, ValueError):
            return NotImplemented
        return None if self._value is None or other is None else self._value == other

    def __ne__(self, other):
        is_equal = self.__eq__(other)
        return is_equal if is_equal is NotImplemented or is_equal is None else not is_equal

    def __truediv__(self, other):
        raise TypeError("unsupported operand type(s) for /: 'Dimension' and '%s', please use // instead" % type(other).__name__)

    def __rtruediv__(self, other):
        raise TypeError("unsupported operand type(s) for /: '%s' and 'Dimension', please use // instead" % type(other).__name__)

    def is_compatible_with(self, other):
        """Tells whether both may be the same size."""
        other = as_dimension(other)._value
        return self._value is None or other is None or self._value == other

    def assert_is_compatible_with(self, other):
        """Raises ValueError if the sizes differ."""
        if not self.is_compatible_with(other):
            raise ValueError("Dimensions %s and %s are not compatible" % (self, as_dimension(other)))

    def merge_with(self, other):
        """Returns the known size of the two. Raises ValueError if they differ."""
        other = as_dimension(other)
        self.assert_is_compatible_with(other)
        return Dimension(other._value if self._value is None else self._value)


def _size(value):
    return value._value if isinstance(value, Dimension) else None if value is None else int(value)


def _combine(name, function, is_comparison=False):
    def method(self, other):
        try:
            a, b = self._value, _size(other)
        except (TypeError, ValueError):
            return NotImplemented
        known = a is not None and b is not None
        if is_comparison:
            return function(a, b) if known else None
        return Dimension(function(a, b) if known else None)
    method.__name__ = name
    return method


def _arithmetic():
    import operator
    for name in ("add", "sub", "mul", "floordiv", "mod"):
        function = getattr(operator, name)
        setattr(Dimension, "__%s__" % name, _combine("__%s__" % name, function))
        setattr(Dimension, "__r%s__" % name,
                _combine("__r%s__" % name, lambda a, b, f=function: f(b, a)))
    Dimension.__div__ = Dimension.__floordiv__
    for name in ("lt", "le", "gt", "ge"):
        setattr(Dimension, "__%s__" % name,
                _combine("__%s__" % name, getattr(operator, name), is_comparison=True))


_arithmetic()


def as_dimension(value):
    """Converts `value` to a Dimension."""
    return value if isinstance(value, Dimension) else Dimension(value)


def dimension_value(dimension):
    """Returns the size of a Dimension, or the number itself."""
    return dimension._value if isinstance(dimension, Dimension) else dimension



def dimension_at_index(shape, index):
    """Returns a Dimension of a shape, unknown if the rank is."""
    return Dimension(None) if shape.rank is None else shape.dims[index]


class TensorShape:
    """The shape of a tensor: sizes, of which some may be unknown (None), or of unknown rank.

    Its elements are Dimensions in the API of 1.x, and ints and Nones in that of 2.x (`_holds_sizes`).
    """

    __slots__ = ("_dims",)
    _holds_sizes = False

    def __init__(self, dims):
        if dims is None:
            self._dims = None
        elif type(dims) is tuple and all(d is None or type(d) is int for d in dims):
            self._dims = dims
            for d in dims:
                if d is not None and d < 0:
                    raise ValueError("Dimension %d must be >= 0" % d)
        elif isinstance(dims, TensorShape):
            self._dims = dims._dims
        elif hasattr(dims, "unknown_rank"):  # a TensorShapeProto
            self._dims = None if dims.unknown_rank else tuple(
                None if d.size == -1 else d.size for d in dims.dim)
        elif isinstance(dims, (int, Dimension)) or (
                hasattr(dims, "__index__") and not hasattr(dims, "__iter__")):
            self._dims = (Dimension(dims)._value,)
        else:
            self._dims = tuple(Dimension(d)._value for d in dims)

    @property
    def rank(self):
        """The number of dimensions, or None."""
        return None if self._dims is None else len(self._dims)

    ndims = rank

    @property
    def dims(self):
        """The list of Dimensions, or None."""
        return None if self._dims is None else [Dimension(d) for d in self._dims]

    def as_list(self):
        """Returns the sizes, with None for unknown ones."""
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def is_subtype_of(self, other):
        """Tells whether every tensor of this shape has the shape `other`, too."""
        if type(self) is not type(other):
            return False
        if other._dims is None:
            return True
        return self._dims is not None and len(self._dims) == len(other._dims) and all(b is None or a == b for a, b in zip(self._dims, other._dims))

    def most_specific_common_supertype(self, others):
        """Returns the narrowest shape that covers this one and `others`, or None."""
        found = self
        for other in others:
            if type(other) is not type(self):
                return None
            found = found.most_specific_compatible_shape(other)
        return found

    @classmethod
    def experimental_type_proto(cls):
        """Returns the message class that holds a shape."""
        from runnel.core.protobuf import message_class
        return message_class("TensorShapeProto")

    @classmethod
    def experimental_from_proto(cls, proto):
        """Returns the shape that a message holds."""
        return cls(proto)

    def experimental_as_proto(self):
        """Returns a message that holds this shape."""
        return self.as_proto()

    def as_proto(self):
        """Returns the TensorShapeProto."""
        from runnel.core.protobuf import message_class
        if self._dims is None:
            return message_class("TensorShapeProto")(unknown_rank=True)
        proto = message_class("TensorShapeProto")()
        for d in self._dims:
            proto.dim.add(size=-1 if d is None else d)
        return proto

    def num_elements(self):
        """Returns the product of the sizes, or None."""
        if not self.is_fully_defined():
            return None
        total = 1
        for d in self._dims:
            total *= d
        return total

    def is_fully_defined(self):
        """Tells whether every size is known."""
        return self._dims is not None and None not in self._dims

    def assert_is_fully_defined(self):
        """Raises ValueError unless every size is known."""
        if not self.is_fully_defined():
            raise ValueError("Shape %s is not fully defined" % self)

    def is_compatible_with(self, other):
        """Tells whether a tensor can have both shapes."""
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return True
        return len(self._dims) == len(other._dims) and all(
            a is None or b is None or a == b for a, b in zip(self._dims, other._dims))

    def assert_is_compatible_with(self, other):
        """Raises ValueError unless a tensor can have both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError("Shapes %s and %s are incompatible" % (self, as_shape(other)))

    def assert_same_rank(self, other):
        """Raises ValueError if the ranks differ."""
        other = as_shape(other)
        if self.rank is not None and other.rank is not None and self.rank != other.rank:
            raise ValueError("Shapes %s and %s must have the same rank" % (self, other))

    def assert_has_rank(self, rank):
        """Raises ValueError unless the rank may be `rank`."""
        if self.rank not in (None, rank):
            raise ValueError("Shape %s must have rank %d" % (self, rank))

    def with_rank(self, rank):
        """Returns this shape, refined to that rank."""
        try:
            return self.merge_with(unknown_shape(rank))
        except ValueError:
            raise ValueError("Shape %s must have rank %d" % (self, rank)) from None

    def with_rank_at_least(self, rank):
        """Returns this shape. Raises ValueError if its rank is smaller."""
        if self.rank is not None and self.rank < rank:
            raise ValueError("Shape %s must have rank at least %d" % (self, rank))
        return self

    def with_rank_at_most(self, rank):
        """Returns this shape. Raises ValueError if its rank is larger."""
        if self.rank is not None and self.rank > rank:
            raise ValueError("Shape %s must have rank at most %d" % (self, rank))
        return self

    def merge_with(self, other):
        """Combines what is known of two shapes. Raises ValueError if they contradict each other."""
        other = as_shape(other)
        if self._dims is None:
            return other
        if other._dims is None:
            return self
        self.assert_is_compatible_with(other)
        return TensorShape(tuple(b if a is None else a for a, b in zip(self._dims, other._dims)))

    def concatenate(self, other):
        """Returns the dimensions of this shape followed by those of `other`."""
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return unknown_shape()
        return TensorShape(self._dims + other._dims)

    def most_specific_compatible_shape(self, other):
        """Returns the most specific shape that covers both."""
        other = as_shape(other)
        if self._dims is None or other._dims is None or len(self._dims) != len(other._dims):
            return unknown_shape()
        return TensorShape(tuple(a if a == b else None for a, b in zip(self._dims, other._dims)))

    def __add__(self, other):
        return self.concatenate(other)

    def __radd__(self, other):
        return as_shape(other).concatenate(self)

    def __len__(self):
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self):
        return self._dims is not None

    def __iter__(self):
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self._dims) if self._holds_sizes else iter([Dimension(d) for d in self._dims])

    def __getitem__(self, key):
        if isinstance(key, slice):
            if self._dims is None:
                return unknown_shape()
            return TensorShape(self._dims[key])
        size = None if self._dims is None else self._dims[key]
        return size if self._holds_sizes else Dimension(size)

    def __eq__(self, other):
        try:
            other = as_shape(other)
        except (TypeError, ValueError):
            return NotImplemented
        return self._dims == other._dims

    def __ne__(self, other):
        answer = self.__eq__(other)
        return answer if answer is NotImplemented else not answer

    def __hash__(self):
        return hash(self._dims)

    def __repr__(self):
        if self._holds_sizes:
            return "TensorShape(%s)" % (None if self._dims is None else list(self._dims))
        return "TensorShape(%r)" % (self.dims,)

    def __str__(self):
        if self._dims is None:
            return "<unknown>"
        unknown = "None" if self._holds_sizes else "?"
        if len(self._dims) == 1:
            return "(%s,)" % (unknown if self._dims[0] is None else self._dims[0])
        return "(%s)" % ", ".join(unknown if d is None else str(d) for d in self._dims)

    def __reduce__(self):
        return (TensorShape, (self.dims,))


def as_shape(shape):
    """Converts `shape` to a TensorShape."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(rank=None, **kwargs):
    """Returns a shape of which at most the rank is known."""
    rank = kwargs.pop("ndims", rank)
    return TensorShape(None if rank is None else (None,) * rank)


def scalar():
    """Returns the shape of a scalar."""
    return TensorShape(())


def vector(length):
    """Returns the shape of a vector."""
    return TensorShape((length,))


def matrix(rows, columns):
    """Returns the shape of a matrix."""
    return TensorShape((rows, columns))


def _as_dims(value):
    """For C: returns a tuple of sizes and Nones, or None. Arrays and -1 are accepted."""
    if value is None:
        return None
    if type(value) is TensorShape:
        return value._dims
    if isinstance(value, (list, tuple)):
        return tuple(None if d is None or (type(d) is int and d == -1) else Dimension(d)._value
                     for d in value)
    return TensorShape(value)._dims


_core.register(as_shape=_as_dims)
