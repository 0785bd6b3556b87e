"""tf.dtypes: the types of tensors."""

from runnel import _core

_REF = 100


class DType:
    """The type of a tensor's elements.

    There is one object per type, so `is` compares types. `==` also accepts anything that as_dtype converts: a name,
    a NumPy type, a number of types.proto.
    """

    __slots__ = ("_number", "_name", "_numpy", "_limits_")

    def __new__(cls, type_enum, name=None, numpy_name=None):
        if name is not None:
            return super().__new__(cls)
        found = _by_number.get(int(type_enum))
        if found is None:
            raise TypeError("%d does not correspond to a valid tensorflow::DataType" % int(type_enum))
        return found

    def __init__(self, number, name=None, numpy_name=None):
        if name is None:  # __new__ returned the existing object of that number
            return
        self._number = number
        self._name = name
        self._numpy = numpy_name
        _core.register_dtype(number, self)

    @property
    def name(self):
        """The name, such as "float32"."""
        return self._name

    @property
    def as_datatype_enum(self):
        """The number in types.proto."""
        return self._number

    @property
    def as_numpy_dtype(self):
        """The NumPy type."""
        import numpy as np
        if self.is_quantized:  # a record of one field, so that it differs from the integers
            return np.dtype([(self.base_dtype._name, np.dtype(_numpy_type(self._number % _REF)))])
        return _numpy_type(self._number % _REF)

    @property
    def base_dtype(self):
        """The type that a reference type refers to."""
        return _by_number[self._number - _REF] if self._number >= _REF else self

    @property
    def _is_ref_dtype(self):
        return self._number >= _REF

    @property
    def _as_ref(self):
        return self if self._number >= _REF else _by_number[self._number + _REF]

    @property
    def real_dtype(self):
        """The type of the parts of a complex number."""
        base = self.base_dtype
        return float32 if base is complex64 else float64 if base is complex128 else self

    @property
    def is_bool(self):
        """Whether this is bool."""
        return self.base_dtype is bool

    @property
    def is_integer(self):
        """Whether this is an integer type that is not quantized."""
        return self.base_dtype in _INTEGERS

    @property
    def is_floating(self):
        """Whether this is a floating-point type."""
        return self.base_dtype in _FLOATS

    @property
    def is_complex(self):
        """Whether this is a complex type."""
        return self.base_dtype in (complex64, complex128)

    @property
    def is_quantized(self):
        """Whether this is a quantized type."""
        return self.base_dtype in _QUANTIZED

    @property
    def is_numeric(self):
        """Whether this is a type of numbers."""
        return self.is_integer or self.is_floating or self.is_complex or self.is_quantized

    @property
    def is_unsigned(self):
        """Whether this is an unsigned integer type."""
        return self.base_dtype in (_by_name["uint2"], _by_name["uint4"], uint8, uint16, uint32, uint64)

    @property
    def is_numpy_compatible(self):
        """Whether NumPy has this type."""
        return self.base_dtype not in (resource, variant)

    @property
    def size(self):
        """The number of bytes of an element; 0 for handles and strings."""
        if self.base_dtype in (string, resource, variant):
            return 0
        return _numpy_dtype(self._number % _REF).itemsize

    @property
    def min(self):
        """The smallest value."""
        return self._limit(0)

    @property
    def max(self):
        """The largest value."""
        return self._limit(1)

    @property
    def limits(self):
        """(min, max) of the values of images in this type."""
        base = self.base_dtype
        if base not in (bool, float32, float64) and base not in _INTEGERS or base._number in _BIT_PATTERNS:
            raise ValueError("%s does not have defined limits." % self)
        return (0, True) if base is bool else (0, 1) if base.is_floating else (0, self.max)

    def _limit(self, which):
        import numpy as np
        base, text = self.base_dtype, "Cannot find %s value of %s" % (("minimum", "maximum")[which], self)
        if self.is_quantized:
            raise TypeError("%s with quantized type %s." % (text, self))
        if base in (bool, string, complex64, complex128):
            raise TypeError("%s with type %s." % (text, base))
        if not self.is_numpy_compatible:
            raise TypeError("%s." % text)
        kind = np.dtype(self.as_numpy_dtype)
        if base._number not in _BIT_PATTERNS:
            info = np.finfo(kind) if self.is_floating else np.iinfo(kind)
            return (info.min, info.max)[which]
        try:
            import ml_dtypes
        except ImportError:
            if base is bfloat16:
                return (-1, 1)[which] * float.fromhex("0x1.FEp127")
            raise TypeError("%s without the package ml_dtypes." % text) from None
        info = ml_dtypes.finfo(kind) if self.is_floating else ml_dtypes.iinfo(kind)
        return (info.min, info.max)[which]

    def is_subtype_of(self, other):
        """Tells whether values of this type fit `other`: only those of the same type do."""
        return type(self) is type(other) and self._number == other._number

    def most_specific_common_supertype(self, others):
        """Returns this type if all others are the same, else None."""
        return self if all(self.is_subtype_of(other) for other in others) else None

    @classmethod
    def experimental_type_proto(cls):
        """Returns the message class that holds a type."""
        from runnel.core import protobuf
        return protobuf.SerializedDType

    @classmethod
    def experimental_from_proto(cls, proto):
        """Returns the type that a message holds."""
        return cls(proto.datatype)

    def experimental_as_proto(self):
        """Returns a message that holds this type."""
        return self.experimental_type_proto()(datatype=self._number)

    def is_compatible_with(self, other):
        """Tells whether a tensor of this type may be used where `other` is expected."""
        other = as_dtype(other)
        return self._number in (other._number, other.base_dtype._number)

    def __eq__(self, other):
        if self is other:
            return True
        if other is None:
            return False
        if isinstance(other, DType):
            return self._number == other._number
        try:
            return self._number == as_dtype(other)._number
        except TypeError:
            return False

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return self._number

    def __int__(self):
        return self._number

    def __repr__(self):
        return "tf." + self._name

    def __str__(self):
        return "<dtype: %r>" % self._name

    def __reduce__(self):
        return (as_dtype, (self._name,))


_ROWS = (
    (1, "float32", "float32"), (2, "float64", "float64"), (3, "int32", "int32"),
    (4, "uint8", "uint8"), (5, "int16", "int16"), (6, "int8", "int8"), (7, "string", "object"),
    (8, "complex64", "complex64"), (9, "int64", "int64"), (10, "bool", "bool"),
    (11, "qint8", "int8"), (12, "quint8", "uint8"), (13, "qint32", "int32"),
    (14, "bfloat16", "bfloat16"), (15, "qint16", "int16"), (16, "quint16", "uint16"),
    (17, "uint16", "uint16"), (18, "complex128", "complex128"), (19, "float16", "float16"),
    (20, "resource", "object"), (21, "variant", "object"), (22, "uint32", "uint32"),
    (23, "uint64", "uint64"), (24, "float8_e5m2", "float8_e5m2"), (25, "float8_e4m3fn", "float8_e4m3fn"),
    (26, "float8_e4m3fnuz", "float8_e4m3fnuz"), (27, "float8_e4m3b11fnuz", "float8_e4m3b11fnuz"),
    (28, "float8_e5m2fnuz", "float8_e5m2fnuz"), (29, "int4", "int4"), (30, "uint4", "uint4"),
    (31, "int2", "int2"), (32, "uint2", "uint2"), (33, "float4_e2m1fn", "float4_e2m1fn"),
)
_BIT_PATTERNS = {number: "uint16" if number == 14 else "uint8" for number in (14, *range(24, 34))}  # NumPy has no such types
_by_number = {}
_by_name = {}
for _number, _name, _numpy in _ROWS:
    _by_name[_name] = _by_number[_number] = DType(_number, _name, _numpy)
    _by_name[_name + "_ref"] = _by_number[_number + _REF] = DType(
        _number + _REF, _name + "_ref", _numpy)
globals().update(_by_name)

float32 = _by_name["float32"]
float64 = double = _by_name["float64"]
float16 = half = _by_name["float16"]
bfloat16 = _by_name["bfloat16"]
int8 = _by_name["int8"]
int16 = _by_name["int16"]
int32 = _by_name["int32"]
int64 = _by_name["int64"]
uint8 = _by_name["uint8"]
uint16 = _by_name["uint16"]
uint32 = _by_name["uint32"]
uint64 = _by_name["uint64"]
complex64 = _by_name["complex64"]
complex128 = _by_name["complex128"]
string = _by_name["string"]
resource = _by_name["resource"]
variant = _by_name["variant"]
qint8 = _by_name["qint8"]
quint8 = _by_name["quint8"]
qint16 = _by_name["qint16"]
quint16 = _by_name["quint16"]
qint32 = _by_name["qint32"]
_python_bool = __builtins__["bool"] if isinstance(__builtins__, dict) else __builtins__.bool
bool = _by_name["bool"]  # noqa: A001

_FLOATS_8 = tuple(_by_number[number] for number in (*range(24, 29), 33))
_INTEGERS = frozenset((*(_by_number[number] for number in range(29, 33)), int8, int16, int32, int64, uint8, uint16, uint32, uint64))
_FLOATS = frozenset((float16, float32, float64, bfloat16, *_FLOATS_8))
_QUANTIZED = frozenset((qint8, quint8, qint16, quint16, qint32))
QUANTIZED_DTYPES = _QUANTIZED
TF_VALUE_DTYPES = frozenset(dtype for number, dtype in _by_number.items() if number < _REF)
_TYPE_TO_STRING = {number: dtype._name for number, dtype in _by_number.items()}
_by_name["half"] = float16
_by_name["float"] = float32
_by_name["double"] = float64
_PYTHON = {_python_bool: bool, float: float32, object: string}
_numpy_types: dict = {}


def _numpy_type(number):
    known = _numpy_types.get(number)
    if known is None:
        import numpy as np
        name = _by_number[number]._numpy
        if number in _BIT_PATTERNS:
            try:
                import ml_dtypes
                known = getattr(ml_dtypes, name)
            except ImportError:
                known = getattr(np, _BIT_PATTERNS[number])
        elif name == "object":
            known = object
        else:
            known = getattr(np, name + "_" if name == "bool" else name)
        _numpy_types[number] = known
    return known


def _numpy_dtype(number):
    import numpy as np
    return np.dtype(_numpy_type(number))


_NUMPY_KINDS = {"O": string, "S": string, "U": string}


def as_dtype(type_value):
    """Converts a value to a DType: a DType, a name, a number, a NumPy type, `float`, `bool`, or what has a `dtype`."""
    if isinstance(type_value, DType):
        return type_value
    found = None
    if isinstance(type_value, int):
        found = _by_number.get(type_value)
    elif isinstance(type_value, str):
        found = _by_name.get(type_value)
    elif type_value in _PYTHON if isinstance(type_value, type) else False:
        found = _PYTHON[type_value]
    if found is None:
        found = _of_numpy(type_value)
    if found is None:
        raise TypeError("Cannot convert the argument `type_value`: %r to a TensorFlow DType." % (type_value,))
    return found


def _of_numpy(value):
    """Returns the type of a NumPy type, or of what has one, or None."""
    import numpy as np
    try:
        if isinstance(value, np.dtype):
            kind = value
        elif isinstance(value, type) and issubclass(value, np.generic):
            kind = np.dtype(value)
        elif hasattr(value, "dtype"):
            kind = np.dtype(value.dtype)
        else:
            return None
    except TypeError:
        return None
    if kind.names is not None:
        found = _by_name.get(kind.names[0]) if len(kind.names) == 1 else None
        return found if found is not None and found.is_quantized else None
    return _NUMPY_KINDS.get(kind.kind) or _by_name.get(kind.name)


def _from_numpy(value, number):
    """For C: returns (number, contiguous array) of any value; for strings, (number, (lists, shape))."""
    import numpy as np
    array = value if isinstance(value, np.ndarray) else _to_array(value, number)
    if number:
        wanted = _by_number[number]
    else:
        wanted = as_dtype(array.dtype)
        if not isinstance(value, (np.ndarray, np.generic)) and not _has_arrays(value):
            # Plain Python numbers are single precision.
            if wanted is float64:
                wanted = float32
            elif wanted is int64 and (array.size == 0 or (
                    array.min() >= -2**31 and array.max() < 2**31)):
                wanted = int32
    if wanted is string:
        return 7, (_texts(array), array.shape)
    kind = _numpy_dtype(wanted._number % _REF)
    if array.dtype.names is not None and wanted.is_quantized:
        array = np.ascontiguousarray(array).view(kind)
    if array.dtype != kind:
        _check_cast(array, wanted, value)
        array = array.astype(kind)
    array = np.asarray(array, order="C")
    if wanted._number in _BIT_PATTERNS:
        array = array.view(_BIT_PATTERNS[wanted._number])
    return wanted._number, array


def _has_arrays(value):
    import numpy as np
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return isinstance(value, (np.ndarray, np.generic)) or hasattr(value, "__array__")


def _to_array(value, number):
    import numpy as np
    if value is None:
        raise ValueError("None values not supported.")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError("Can't convert non-rectangular Python sequence to Tensor.") from None
    if array.dtype == object and number != 7:
        flat = array.ravel().tolist()
        if not all(isinstance(item, (str, bytes)) for item in flat):
            bad = next(item for item in flat if not isinstance(item, (str, bytes)))
            if bad is None:
                raise ValueError("None values not supported.")
            if number and _by_number[number].is_integer and all(hasattr(item, "__index__") for item in flat):
                return np.array([item.__index__() for item in flat]).reshape(array.shape)  # such as Dimensions
            if _core.current() is None:  # eager execution says it otherwise
                raise ValueError("Attempt to convert a value (%s) with an unsupported type (%s) to a Tensor." % (bad, type(bad)))
            raise TypeError("Failed to convert elements of %s to Tensor. Consider casting elements to a supported type. See "
                            "https://www.tensorflow.org/api_docs/python/tf/dtypes for supported TF dtypes." % (value,))
    return array


def _texts(array):
    """Returns nested lists of str or bytes."""
    if array.dtype.kind not in "OSU":
        raise TypeError("Expected string, got an array of %s instead." % array.dtype)
    return array.tolist()


def _check_cast(array, wanted, value):
    import numpy as np
    kind = array.dtype.kind
    if kind in "OSU" or (
            kind == "f" and wanted.is_integer and not isinstance(value, (np.ndarray, np.generic))):
        if _core.current() is None:
            raise TypeError("Cannot convert %r to EagerTensor of dtype %s" % (value, wanted.name))
        raise TypeError("Expected %s, but got %s of type '%s'." % (wanted.name, value, type(value).__name__))
    if kind == "c" and not wanted.is_complex:
        raise TypeError("Expected %s, got complex numbers instead." % wanted.name)


def _feed_array(value, number):
    """For C: converts a fed value with NumPy, and raises NumPy's error if that fails."""
    import numpy as np
    wanted = _by_number[number]
    if isinstance(value, int) and wanted.is_integer and not wanted.min <= value <= wanted.max:
        raise TypeError("Type of feed value %s with type %s is not compatible with Tensor type %s. Try explicitly setting the type of "
                        "the feed tensor to a larger type (e.g. int64)." % (value, type(value), wanted.as_numpy_dtype))
    return np.asarray(value, dtype=_numpy_dtype(wanted._number % _REF))


_core.register(feed_array=_feed_array, dtype_class=DType, as_dtype=as_dtype, numpy_dtype=_numpy_dtype,
               from_numpy=_from_numpy)


def __getattr__(name):
    if name.startswith("_np_") and name[4:] in _by_name:  # the NumPy type of one that NumPy itself lacks
        return _by_name[name[4:]].as_numpy_dtype
    if name in ("as_string", "cast", "complex", "saturate_cast"):  # tf.dtypes.cast
        import runnel
        return getattr(runnel, name)
    raise AttributeError(name)
