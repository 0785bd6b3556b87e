"""Functions of tf.experimental.numpy that work element by element, in one table."""

import math

import runnel as tf
from runnel import dtypes, raw_ops
from runnel.experimental_numpy.promotion import as_inexact, asarray, float_type, is_inexact, promoted, result_type, truth


def _of_one(name, compute, prepare=asarray):
    def function(x):
        return compute(prepare(x))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Computes NumPy's `%s` of each element." % name
    return function


def _of_two(name, compute, prepare=promoted):
    def function(x1, x2):
        return compute(*prepare(x1, x2))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Computes NumPy's `%s` of pairs of elements; the arguments broadcast." % name
    return function


def _logical(*values):
    return [truth(value) for value in values]


def _floats(x1, x2):
    common = result_type(x1, x2)
    x1, x2 = promoted(x1, x2)
    return (x1, x2) if common.kind in "fcV" else (as_inexact(x1), as_inexact(x2))


def _scaled(factor):
    return lambda x: x * _number(factor, x)


def _number(value, like):
    return tf.cast(tf.constant(value, dtypes.float64), like.dtype)


def _complex_or(compute, otherwise):
    return lambda x: compute(x) if x.dtype.is_complex else otherwise(x)


def _with_bools(compute, of_bools):
    return lambda a, b: of_bools(a, b) if a.dtype == dtypes.bool else compute(a, b)


def _cbrt(x):
    return tf.sign(x) * tf.pow(tf.abs(x), _number(1 / 3, x))


def _signbit(x):
    if x.dtype == dtypes.bool or x.dtype.is_unsigned:
        return tf.zeros_like(x, dtypes.bool)
    if not x.dtype.is_floating:
        return x < 0
    same_size = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}[x.dtype.size]
    return raw_ops.Bitcast(input=x, type=same_size) < 0


def _sinc(x):
    scaled = x * _number(math.pi, x)
    is_zero = tf.equal(x, tf.zeros_like(x))
    safe = tf.where_v2(is_zero, tf.ones_like(x), scaled)
    return tf.where_v2(is_zero, tf.ones_like(x), tf.sin(safe) / safe)


def _sign(x):
    if x.dtype == dtypes.bool:
        return x
    return tf.sign(x)


def _truncated(x):
    return tf.where_v2(x < _number(0, x), tf.ceil(x), tf.floor(x))


def _fix(x):
    return _truncated(x)


def _infinite(is_positive):
    def compute(x):
        limit = _number(math.inf if is_positive else -math.inf, x)
        return tf.equal(x, limit)
    return compute


def _exp2(x):
    return tf.exp(x * _number(math.log(2), x))


def _log_of(base):
    def compute(x):  # the base is a float64, and the result is what NumPy makes of that
        return tf.truediv(*promoted(tf.log(x), tf.constant(math.log(base), dtypes.float64)))
    return compute


def _logaddexp(a, b):
    largest = tf.maximum(a, b)
    difference = tf.abs(a - b)
    total = largest + tf.log1p(tf.exp(-difference))
    return tf.where_v2(tf.is_nan(difference), a + b, total)


def _logaddexp2(a, b):
    largest = tf.maximum(a, b)
    difference = tf.abs(a - b)
    largest, more = promoted(largest, tf.truediv(*promoted(tf.log1p(_exp2(-difference)), tf.constant(math.log(2), dtypes.float64))))
    return tf.where_v2(tf.is_nan(difference), tf.cast(a + b, more.dtype), largest + more)


def _heaviside(a, b):
    zero = tf.zeros_like(a)
    return tf.where_v2(a < zero, zero, tf.where_v2(a > zero, tf.ones_like(a), tf.where_v2(tf.is_nan(a), a, b)))


def _gcd(a, b):
    from runnel.ops.control_flow import while_loop
    a, b = tf.abs(a), tf.abs(b)
    shape = tf.broadcast_dynamic_shape(tf.shape(a), tf.shape(b))
    a, b = tf.broadcast_to(a, shape), tf.broadcast_to(b, shape)

    def step(x, y):
        is_left = tf.not_equal(y, tf.zeros_like(y))
        divisor = tf.where_v2(is_left, y, tf.ones_like(y))
        return tf.where_v2(is_left, y, x), tf.where_v2(is_left, tf.floormod(x, divisor), tf.zeros_like(y))
    return while_loop(lambda x, y: tf.reduce_any(tf.not_equal(y, tf.zeros_like(y))), step, (a, b))[0]


def _lcm(a, b):
    divisor = _gcd(a, b)
    safe = tf.where_v2(tf.equal(divisor, tf.zeros_like(divisor)), tf.ones_like(divisor), divisor)
    return tf.abs(a // safe * b)


def _power(a, b):
    return tf.logical_or(a, tf.logical_not(b)) if a.dtype == dtypes.bool else tf.pow(a, b)


def _quotient(a, b):
    return tf.cast(tf.floordiv(tf.cast(a, dtypes.int8), tf.cast(b, dtypes.int8)), dtypes.int8) if a.dtype == dtypes.bool else tf.floordiv(a, b)


def _remainder(a, b):
    return tf.cast(tf.floormod(tf.cast(a, dtypes.int8), tf.cast(b, dtypes.int8)), dtypes.int8) if a.dtype == dtypes.bool else tf.floormod(a, b)


def _divided(a, b):
    if a.dtype == dtypes.bool:
        a, b = as_inexact(a), as_inexact(b)
    return tf.truediv(a, b)


def _is_kind(is_real):
    def compute(x):
        if x.dtype.is_complex:
            imaginary = tf.imag(x)
            zero = tf.zeros_like(imaginary)
            return tf.equal(imaginary, zero) if is_real else tf.not_equal(imaginary, zero)
        return tf.fill(tf.shape(x), is_real)
    return compute


def _invert(x):
    return tf.logical_not(x) if x.dtype == dtypes.bool else raw_ops.Invert(x=x)


def _bits(op, of_bools):
    return _with_bools(lambda a, b: op(x=a, y=b), of_bools)


def _ordered(compute):
    return _with_bools(compute, lambda a, b: compute(tf.cast(a, dtypes.int8), tf.cast(b, dtypes.int8)))


def _absolute(x):
    return x if x.dtype == dtypes.bool else tf.abs(x)


_ONE = [
    (("abs", "absolute", "fabs"), _absolute, asarray),
    (("negative",), tf.negative, asarray),
    (("positive",), tf.identity, asarray),
    (("reciprocal",), tf.reciprocal, asarray),
    (("square",), lambda x: x * x, asarray),
    (("sign_of",), _sign, asarray),
    (("signbit",), _signbit, asarray),
    (("conj", "conjugate"), tf.conj, asarray),
    (("bitwise_not",), _invert, asarray),
    (("logical_not",), tf.logical_not, truth),
    (("isreal",), _is_kind(True), asarray),
    (("iscomplex",), _is_kind(False), asarray),
    (("exp",), tf.exp, as_inexact),
    (("exp2",), _exp2, as_inexact),
    (("expm1",), tf.expm1, as_inexact),
    (("log",), tf.log, as_inexact),
    (("log1p",), tf.log1p, as_inexact),
    (("log2",), _log_of(2), as_inexact),
    (("log10",), _log_of(10), as_inexact),
    (("sqrt",), tf.sqrt, as_inexact),
    (("cbrt",), _cbrt, as_inexact),
    (("sin",), tf.sin, as_inexact),
    (("cos",), tf.cos, as_inexact),
    (("tan",), tf.tan, as_inexact),
    (("sinh",), tf.sinh, as_inexact),
    (("cosh",), tf.cosh, as_inexact),
    (("tanh",), tf.tanh, as_inexact),
    (("arcsin",), tf.asin, as_inexact),
    (("arccos",), tf.acos, as_inexact),
    (("arctan",), tf.atan, as_inexact),
    (("arcsinh",), tf.asinh, as_inexact),
    (("arccosh",), tf.acosh, as_inexact),
    (("arctanh",), tf.atanh, as_inexact),
    (("deg2rad",), _scaled(math.pi / 180), as_inexact),
    (("rad2deg",), _scaled(180 / math.pi), as_inexact),
    (("sinc",), _sinc, as_inexact),
    (("ceil",), tf.ceil, as_inexact),
    (("floor",), tf.floor, as_inexact),
    (("fix",), _fix, as_inexact),
    (("isfinite",), tf.is_finite, as_inexact),
    (("isinf",), tf.is_inf, as_inexact),
    (("isnan",), tf.is_nan, as_inexact),
    (("isposinf",), _infinite(True), as_inexact),
    (("isneginf",), _infinite(False), as_inexact),
]
_TWO = [
    (("add",), _with_bools(tf.add, tf.logical_or), promoted),
    (("subtract",), tf.subtract, promoted),
    (("multiply",), _with_bools(tf.multiply, tf.logical_and), promoted),
    (("divide", "true_divide"), _divided, promoted),
    (("floor_divide",), _quotient, promoted),
    (("mod", "remainder"), _remainder, promoted),
    (("power",), _power, promoted),
    (("float_power",), tf.pow, promoted),
    (("maximum",), _with_bools(tf.maximum, tf.logical_or), promoted),
    (("minimum",), _with_bools(tf.minimum, tf.logical_and), promoted),
    (("arctan2",), tf.atan2, _floats),
    (("logaddexp",), _logaddexp, _floats),
    (("logaddexp2",), _logaddexp2, _floats),
    (("heaviside",), _heaviside, _floats),
    (("nextafter",), lambda a, b: raw_ops.NextAfter(x1=a, x2=b), _floats),
    (("gcd",), _gcd, promoted),
    (("lcm",), _lcm, promoted),
    (("bitwise_and",), _bits(raw_ops.BitwiseAnd, tf.logical_and), promoted),
    (("bitwise_or",), _bits(raw_ops.BitwiseOr, tf.logical_or), promoted),
    (("bitwise_xor",), _bits(raw_ops.BitwiseXor, tf.logical_xor), promoted),
    (("logical_and",), tf.logical_and, _logical),
    (("logical_or",), tf.logical_or, _logical),
    (("logical_xor",), tf.logical_xor, _logical),
    (("equal",), tf.equal, promoted),
    (("not_equal",), tf.not_equal, promoted),
    (("less",), _ordered(tf.less), promoted),
    (("less_equal",), _ordered(tf.less_equal), promoted),
    (("greater",), _ordered(tf.greater), promoted),
    (("greater_equal",), _ordered(tf.greater_equal), promoted),
]
FUNCTIONS = {name: make(name, compute, prepare) for make, rows in ((_of_one, _ONE), (_of_two, _TWO))
             for names, compute, prepare in rows for name in names}


def __getattr__(name):
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


def sign(x, out=None, where=None, **kwargs):
    """Returns -1, 0 or 1 for each element."""
    if out is not None or where is not None or kwargs:
        raise ValueError("tf.numpy doesn't support setting out, where or %s" % list(kwargs))
    return FUNCTIONS["sign_of"](x)


def hypot(x1, x2):
    """Returns the lengths of the hypotenuses."""
    squares = FUNCTIONS["add"](FUNCTIONS["square"](x1), FUNCTIONS["square"](x2))
    return tf.sqrt(as_inexact(squares))


def divmod(x1, x2):  # noqa: A001
    """Returns the floored quotient and the remainder."""
    return FUNCTIONS["floor_divide"](x1, x2), FUNCTIONS["mod"](x1, x2)


def angle(z, deg=False):
    """Returns the angle of complex numbers, in radians or degrees."""
    z = as_inexact(z)
    found = tf.angle(z) if z.dtype.is_complex else tf.cast(tf.angle(z), dtypes.float32)
    return found * _number(180 / math.pi, found) if deg else found


def real(val):
    """Returns the real part."""
    return tf.real(asarray(val))


def imag(val):
    """Returns the imaginary part: zeros for real numbers."""
    val = asarray(val)
    return tf.imag(val) if val.dtype.is_complex else tf.zeros_like(val)


def iscomplexobj(x):
    """Tells whether the type is complex."""
    return asarray(x).dtype.is_complex


def isrealobj(x):
    """Tells whether the type is not complex."""
    return not iscomplexobj(x)


def around(a, decimals=0):
    """Rounds to a number of decimals, halves to even."""
    import numpy as np
    a = asarray(a)
    number = a.dtype
    factor = 10.0 ** decimals
    if number.is_integer and decimals >= 0:
        return a
    scaled = a if is_inexact(a) else tf.cast(a, dtypes.as_dtype(float_type()))
    factor = tf.constant(np.asarray(factor, scaled.dtype.as_numpy_dtype))
    return tf.cast(tf.round(scaled * factor) / factor, number)


round = around  # noqa: A001


def clip(a, a_min, a_max):
    """Limits the elements to a range; None is no limit."""
    if a_min is None and a_max is None:
        raise ValueError("Not more than one of `a_min` and `a_max` may be `None`.")
    if a_min is None:
        return FUNCTIONS["minimum"](a, a_max)
    if a_max is None:
        return FUNCTIONS["maximum"](a, a_min)
    a, low, high = promoted(a, a_min, a_max)
    return tf.minimum(tf.maximum(a, low), high)


def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Tells for each pair whether |a - b| <= atol + rtol * |b|."""
    a, b = promoted(a, b)
    if not is_inexact(a):
        return tf.equal(a, b)
    near = tf.abs(a - b)
    bound = _number(atol, near) + _number(rtol, near) * tf.abs(b)
    result = tf.logical_or(tf.equal(a, b), tf.less_equal(near, bound))
    finite = tf.logical_and(tf.is_finite(b), tf.is_finite(a)) if not a.dtype.is_complex else None
    if finite is not None:
        result = tf.logical_or(tf.equal(a, b), tf.logical_and(result, finite))
        if equal_nan:
            result = tf.logical_or(result, tf.logical_and(tf.is_nan(a), tf.is_nan(b)))
    return result


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Tells whether all pairs are close."""
    return tf.reduce_all(isclose(a, b, rtol, atol, equal_nan))
