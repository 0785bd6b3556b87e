"""New arrays of tf.experimental.numpy."""

import runnel as tf
from runnel import dtypes
from runnel.experimental_numpy.promotion import array, as_inexact, asarray, float_type, is_tensor, numpy_type, promoted, result_type


def _type(dtype, default=None):
    if dtype is None:
        return dtypes.as_dtype(default)
    return dtypes.as_dtype(float_type() if dtype is float else numpy_type(dtype))


def _dims(shape):
    import numpy as np
    return shape if is_tensor(shape) else [shape] if isinstance(shape, (int, np.integer)) else list(shape)


def zeros(shape, dtype=float):
    """Returns zeros."""
    return tf.zeros(_dims(shape), _type(dtype, float_type()))


def ones(shape, dtype=float):
    """Returns ones."""
    return tf.ones(_dims(shape), _type(dtype, float_type()))


def empty(shape, dtype=float):
    """Returns an array of a shape. Its elements are zeros."""
    return zeros(shape, dtype)


def zeros_like(a, dtype=None):
    """Returns zeros of the shape and type of `a`."""
    a = asarray(a)
    return tf.zeros_like(a, _type(dtype, a.dtype))


def ones_like(a, dtype=None):
    """Returns ones of the shape and type of `a`."""
    a = asarray(a)
    return tf.ones_like(a, _type(dtype, a.dtype))


def empty_like(a, dtype=None):
    """Returns an array of the shape and type of `a`. Its elements are zeros."""
    return zeros_like(a, dtype)


def full(shape, fill_value, dtype=None):
    """Returns an array filled with a value, which may broadcast."""
    return tf.broadcast_to(asarray(fill_value, dtype), _dims(shape))


def full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None):
    """Returns an array of the shape and type of `a`, filled with a value."""
    if order != "K":
        raise ValueError("Non-standard orders are not supported.")
    if not subok:
        raise ValueError("subok being False is not supported.")
    if shape:
        raise ValueError("Overriding the shape is not supported.")
    a = asarray(a)
    return tf.broadcast_to(asarray(fill_value, dtype or a.dtype), tf.shape(a))


def eye(N, M=None, k=0, dtype=float):  # noqa: N803
    """Returns a matrix of `N` rows with ones on diagonal `k`."""
    columns = N if M is None else M
    rows, cols = tf.range(N)[:, None], tf.range(columns)[None, :]
    return tf.cast(tf.equal(cols - rows, k), _type(dtype, float_type()))


def identity(n, dtype=float):
    """Returns the identity matrix of `n` rows."""
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):  # noqa: N803
    """Returns a matrix with ones on and below diagonal `k`."""
    columns = N if M is None else M
    return tf.cast(tf.range(columns)[None, :] - tf.range(N)[:, None] <= k, _type(dtype, float_type()))


def arange(start, stop=None, step=1, dtype=None):
    """Returns the numbers from `start` up to, but without, `stop`."""
    if not step:
        raise ValueError("step must be non-zero.")
    kind = _type(dtype, result_type(start, step) if stop is None else result_type(start, step, stop))
    if stop is None:
        start, stop = 0, start
    wide = kind if kind in (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64) else dtypes.float64 if kind.is_floating else dtypes.int64
    return tf.cast(tf.range(*[tf.cast(asarray(x), wide) for x in (start, stop, step)]), kind)


def _spaced(start, stop, num, endpoint):
    start, stop = promoted(as_inexact(start), as_inexact(stop))
    parts = num - 1 if endpoint else num
    step = (stop - start) / tf.cast(parts, start.dtype) if parts > 0 else tf.fill(tf.shape(stop - start), tf.cast(float("nan"), start.dtype))
    places = tf.reshape(tf.cast(tf.range(num), start.dtype), [num] + [1] * (step.shape.rank or 0))
    values = start + places * step if parts > 0 else tf.broadcast_to(start, tf.concat([[num], tf.shape(step)], 0))
    if endpoint and num > 1:  # exactly the end
        values = tf.concat([values[:-1], tf.broadcast_to(stop, tf.shape(step))[None]], 0)
    return values, step


def _placed(values, axis, dtype):
    from runnel.experimental_numpy.shapes import moveaxis
    values = values if not axis else moveaxis(values, 0, axis)
    return values if dtype is None else tf.cast(values, dtype)


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=float, axis=0):
    """Returns `num` numbers with equal distances; with `retstep`, also the distance."""
    if num < 0:
        raise ValueError("Argument `num` (number of samples) must be a non-negative integer. Received: num=%s" % num)
    values, step = _spaced(start, stop, num, endpoint)
    values = _placed(values, axis, None if dtype is None else _type(dtype, float_type()))
    return (values, step) if retstep else values


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """Returns `num` powers of `base` whose exponents have equal distances."""
    values, _ = _spaced(start, stop, num, endpoint)
    return _placed(tf.pow(tf.cast(base, values.dtype), values), axis, None if dtype is None else _type(dtype))


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """Returns `num` numbers with equal ratios."""
    kind = _type(dtype) if dtype is not None else dtypes.as_dtype(result_type(start, stop, float(num), zeros((), dtype=float)))
    work = kind if kind.is_floating else dtypes.as_dtype(float_type())
    start, stop = (tf.cast(asarray(x), work) for x in (start, stop))
    values, _ = _spaced(tf.log(tf.abs(start)), tf.log(tf.abs(stop)), num, endpoint)
    return _placed(tf.sign(start) * tf.exp(values), axis, kind)


def diag(v, k=0):
    """Returns the matrix with a diagonal, or the diagonal of a matrix."""
    v = asarray(v)
    if v.shape.rank == 1:
        return tf.linalg.diag(v, k=k)
    if v.shape.rank != 2:
        raise ValueError("Argument to diag must be 0-2D and not %s" % v.shape)
    size = v.shape.as_list()
    if None not in size and not -size[0] < k < size[1]:
        return tf.zeros([0], v.dtype)
    return tf.linalg.diag_part(v, k=k)


def diagflat(v, k=0):
    """Returns the matrix with the elements of `v` on diagonal `k`."""
    return diag(tf.reshape(asarray(v), [-1]), k)


def diag_indices(n, ndim=2):
    """Returns the indices of the diagonal of an array of `ndim` dimensions."""
    if n < 0:
        raise ValueError("n argument to diag_indices must be nonnegative but got %d" % n)
    if ndim < 0:
        raise ValueError("ndim argument to diag_indices must be nonnegative but got %d" % ndim)
    return (tf.range(n),) * ndim


def copy(a):
    """Returns a copy."""
    return array(a, copy=True)


def vander(x, N=None, increasing=False):  # noqa: N803
    """Returns the matrix of powers of the elements of `x`."""
    x = asarray(x)
    count = x.shape.as_list()[0] if N is None else N
    powers = tf.range(count) if increasing else tf.range(count - 1, -1, -1)
    return tf.pow(x[:, None], tf.cast(powers, x.dtype)[None, :]) if is_power_type(x.dtype) else _cast_power(x, powers)


def is_power_type(dtype):
    """Tells whether tf.pow takes a type."""
    return dtype.is_floating or dtype.is_complex or dtype in (dtypes.int32, dtypes.int64)


def _cast_power(x, powers):
    return tf.cast(tf.pow(tf.cast(x, dtypes.int64)[:, None], tf.cast(powers, dtypes.int64)[None, :]), x.dtype)


def meshgrid(*xi, **kwargs):
    """Returns coordinate matrices of coordinate vectors."""
    if kwargs.pop("sparse", False):
        raise ValueError("Function `meshgrid` does not support returning sparse arrays yet")
    if not kwargs.pop("copy", True):
        raise ValueError("Function `meshgrid` only supports copy=True")
    indexing = kwargs.pop("indexing", "xy")
    if indexing not in ("xy", "ij"):
        raise ValueError("Argument `indexing` can only be 'xy' or 'ij'. Received: indexing=%s" % indexing)
    return tf.meshgrid(*[asarray(x) for x in xi], indexing=indexing)
