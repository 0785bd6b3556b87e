"""The modes of type promotion, and the types that the promoting ones ("safe" and "all") give to operands of different types.

In these modes a type is strong or weak. Python's numbers are weak: they take the type of what they are combined with, as far as its
kind allows. The table has the result for each pair; a promotion that may lose values is marked "!", and only "all" does it.
"""

import enum

from runnel import dtypes, nest


class PromoMode(enum.Enum):
    """How operands of different types are combined."""

    OFF = 0
    LEGACY = 1
    SAFE = 2
    ALL = 3


_state = {"mode": PromoMode.OFF}

_TYPES = {"b8": dtypes.bool, "u8": dtypes.uint8, "u16": dtypes.uint16, "u32": dtypes.uint32, "u64": dtypes.uint64, "i8": dtypes.int8,
          "i16": dtypes.int16, "i32": dtypes.int32, "i64": dtypes.int64, "bf16": dtypes.bfloat16, "f16": dtypes.float16, "f32": dtypes.float32,
          "f64": dtypes.float64, "c64": dtypes.complex64, "c128": dtypes.complex128}
_ORDER = [*_TYPES, "i32w", "i64w", "f32w", "f64w", "c128w"]  # "w" is a weak type

# One row per type; its columns are the types from itself on, in the same order.
_TABLE = """
b8 u8 u16 u32 u64 i8 i16 i32 i64 bf16 f16 f32 f64 c64 c128 i32w i64w f32w f64w c128w
u8 u16 u32 u64 i16! i16 i32 i64 bf16 f16 f32 f64 c64 c128 u8 u8 f64w! f64w c128w
u16 u32 u64 i32! i32! i32 i64 bf16! f16! f32 f64 c64 c128 u16 u16 f64w! f64w c128w
u32 u64 i64! i64! i64! i64 bf16! f16! f32! f64 c64! c128 u32 u32 f64w! f64w c128w
u64 f64w! f64w! f64w! f64w! bf16! f16! f32! f64! c64! c128! u64 u64 f64w! f64w! c128w!
i8 i16 i32 i64 bf16 f16 f32 f64 c64 c128 i8 i8 f64w! f64w c128w
i16 i32 i64 bf16! f16! f32 f64 c64 c128 i16 i16 f64w! f64w c128w
i32 i64 bf16! f16! f32! f64 c64! c128 i32 i32 f64w! f64w c128w
i64 bf16! f16! f32! f64! c64! c128! i64 i64 f64w! f64w! c128w!
bf16 f32! f32 f64 c64 c128 bf16 bf16 bf16 bf16 c64!
f16 f32 f64 c64 c128 f16 f16 f16 f16 c64!
f32 f64 c64 c128 f32 f32 f32 f32 c64!
f64 c128! c128 f64 f64 f64 f64 c128
c64 c128 c64 c64 c64 c64 c64
c128 c128 c128 c128 c128 c128
i32w i64w f32w f64w c128w
i64w f32w f64w c128w
f32w f64w c128w
f64w c128w
c128w
"""


def _typed(name):
    return _TYPES[name.removesuffix("w")], name.endswith("w")


def _half():
    found = {}
    for start, row in enumerate(_TABLE.strip().splitlines()):
        entries = [(_typed(cell.removesuffix("!")), PromoMode.ALL if cell.endswith("!") else PromoMode.SAFE) for cell in row.split()]
        found[_typed(_ORDER[start])] = dict(zip(map(_typed, _ORDER[start:]), entries))
    found[dtypes.string, False] = {(dtypes.string, False): ((dtypes.string, False), PromoMode.SAFE)}
    return found


_BINARY_DTYPE_RES_HALF = _half()
_BINARY_DTYPE_RES_FULL = {key: dict(row) for key, row in _BINARY_DTYPE_RES_HALF.items()}
for _a, _row in _BINARY_DTYPE_RES_HALF.items():
    for _b, _result in _row.items():
        _BINARY_DTYPE_RES_FULL[_b][_a] = _result


def get_dtype_conversion_mode():
    """Returns the mode, a PromoMode."""
    return _state["mode"]


def is_auto_dtype_conversion_enabled():
    """Tells whether the mode is "safe" or "all"."""
    return _state["mode"] in (PromoMode.SAFE, PromoMode.ALL)


def is_numpy_style_type_promotion():
    """Tells whether the mode is "legacy": NumPy's promotion."""
    return _state["mode"] is PromoMode.LEGACY


def set_dtype_conversion_mode(dtype_conversion_mode):
    """Sets the mode: "off", "legacy", "safe" or "all"."""
    _state["mode"] = _get_promo_mode_enum(dtype_conversion_mode)
    if is_auto_dtype_conversion_enabled():
        from runnel.experimental_numpy import weak_functions
        weak_functions.install()


def _get_promo_mode_enum(dtype_conversion_mode):
    for mode in PromoMode:
        if dtype_conversion_mode == mode.name.lower():
            return mode
    raise ValueError("The provided promotion mode %s does not exist. Make sure the provided dtype conversion mode is one of the followings: "
                     "'off', 'legacy', 'safe' or 'all'." % (dtype_conversion_mode,))


def promo_mode_enum_to_string(promo_safety_mode_enum):
    """Returns the name of a mode."""
    if not isinstance(promo_safety_mode_enum, PromoMode):
        raise ValueError("The provided promotion mode %s does not exist." % (promo_safety_mode_enum,))
    return promo_safety_mode_enum.name.lower()


def _unsupported(what):
    return NotImplementedError("Auto dtype conversion semantics does not support %s type." % (what,))


def _get_dtype_and_weakness(x):
    """Returns (the type, whether it is weak) of a tensor, an array, a number or a type."""
    import numpy as np

    from runnel.core import tensor_shape
    from runnel.experimental_numpy.weak_tensor import WeakTensor
    given = x if isinstance(x, dtypes.DType) else getattr(x, "dtype", None)
    if isinstance(given, dtypes.DType):
        return given.base_dtype, isinstance(x, WeakTensor)
    if isinstance(given, np.dtype):
        return _of_numpy(given), False
    if isinstance(x, (bytes, str)) or x is bytes or x is str:
        return dtypes.string, False
    if isinstance(x, bool) or x is bool:
        return dtypes.bool, False
    if isinstance(x, int) or x is int:
        if isinstance(x, int) and not -2**31 <= x < 2**31:
            raise OverflowError("Python int %s too large to convert to np.int32" % x)
        return dtypes.int32, True
    if isinstance(x, float) or x is float:
        return dtypes.float32, True
    if isinstance(x, complex) or x is complex:
        return dtypes.complex128, True
    if isinstance(x, tensor_shape.TensorShape):
        return dtypes.int32, False
    if isinstance(x, np.dtype) or isinstance(x, type) and issubclass(x, np.generic):
        return _of_numpy(np.dtype(x)), False
    raise _unsupported(type(x))


def _of_numpy(dtype):
    try:
        return dtypes.as_dtype(dtype)
    except TypeError as error:
        raise NotImplementedError("Auto dtype conversion semantics does not support %s. Try using a NumPy built-in dtype objects or cast them "
                                  "explicitly." % dtype) from error


def _is_acceptable(value):
    from runnel.core.gradients_impl import IndexedSlices
    from runnel.core.type_spec import CompositeTensor
    from runnel.experimental_numpy.weak_tensor import WeakTensor
    from runnel.ops.variables import Variable
    return isinstance(value, (WeakTensor, IndexedSlices, Variable)) or not isinstance(value, CompositeTensor)


def result_type(*arrays_and_dtypes):
    """Returns (the type, whether it is weak) to which the mode promotes tensors, variables, arrays, numbers and types.

    Raises TypeError if the mode does not allow it, and NotImplementedError for values and pairs of types that the modes do not cover.
    """
    values = [value for value in arrays_and_dtypes if value is not None]
    for value in values:
        if not _is_acceptable(value):
            raise _unsupported(type(value))
    types = [_get_dtype_and_weakness(value) for value in nest.flatten(values)] or [(dtypes.float32, True)]
    found = types[0]
    for other in types[1:]:
        entry = _BINARY_DTYPE_RES_FULL.get(found, {}).get(other)
        if entry is None:
            raise NotImplementedError("Implicit Conversion between %s and %s is not allowed. Please convert the input manually if you need to."
                                      % (found[0], other[0]))
        if entry[1].value > _state["mode"].value:
            raise TypeError("In promotion mode %s, implicit dtype promotion between (%s, weak=%s) and (%s, weak=%s) is disallowed. You need to "
                            "explicitly specify the dtype in your op, or relax your dtype promotion rules (such as from SAFE mode to ALL mode)."
                            % (_state["mode"], *found, *other))
        found = entry[0]
    return found
