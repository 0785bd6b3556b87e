"""Reductions of tf.experimental.numpy."""

import runnel as tf
from runnel import dtypes
from runnel.experimental_numpy.elementwise import FUNCTIONS
from runnel.experimental_numpy.promotion import as_inexact, asarray, axis_of, float_type, is_inexact, numpy_type, result_type, truth


def _wide(a, dtype):
    """Returns what sums and products are computed of: small integers as 64-bit ones."""
    a = asarray(a, dtype)
    if dtype is not None or is_inexact(a) or a.dtype.size == 8 and a.dtype.is_integer:
        return a
    return tf.cast(a, dtypes.uint64 if a.dtype.is_unsigned else dtypes.int64)


def _as_floats(a, dtype):
    return asarray(a, dtype) if dtype is not None else as_inexact(a)


def sum(a, axis=None, dtype=None, keepdims=None):  # noqa: A001
    """Returns sums over axes; small integers are added as 64-bit ones."""
    return tf.reduce_sum(_wide(a, dtype), axis, bool(keepdims))


def prod(a, axis=None, dtype=None, keepdims=None):
    """Returns products over axes; small integers are multiplied as 64-bit ones."""
    return tf.reduce_prod(_wide(a, dtype), axis, bool(keepdims))


def mean(a, axis=None, dtype=None, out=None, keepdims=None):
    """Returns means over axes, as floats."""
    if out is not None:
        raise ValueError("Setting out is not supported.")
    return tf.reduce_mean(_as_floats(a, dtype), axis, bool(keepdims))


def _extreme(compute, of_bools, a, axis, keepdims):
    a = asarray(a)
    return (of_bools if a.dtype == dtypes.bool else compute)(a, axis, bool(keepdims))


def max(a, axis=None, keepdims=None):  # noqa: A001
    """Returns the largest elements along axes."""
    return _extreme(tf.reduce_max, tf.reduce_any, a, axis, keepdims)


def min(a, axis=None, keepdims=None):  # noqa: A001
    """Returns the smallest elements along axes."""
    return _extreme(tf.reduce_min, tf.reduce_all, a, axis, keepdims)


def amax(a, axis=None, out=None, keepdims=None):
    """Returns the largest elements along axes."""
    if out is not None:
        raise ValueError("Setting out is not supported.")
    return max(a, axis, keepdims)


def amin(a, axis=None, out=None, keepdims=None):
    """Returns the smallest elements along axes."""
    if out is not None:
        raise ValueError("Setting out is not supported.")
    return min(a, axis, keepdims)


def ptp(a, axis=None, keepdims=None):
    """Returns the difference between the largest and the smallest element."""
    a = asarray(a)
    return max(a, axis, keepdims) - min(a, axis, keepdims)


def all(a, axis=None, keepdims=None):  # noqa: A001
    """Tells whether all elements along axes are true."""
    return tf.reduce_all(truth(a), axis, bool(keepdims))


def any(a, axis=None, keepdims=None):  # noqa: A001
    """Tells whether some element along axes is true."""
    return tf.reduce_any(truth(a), axis, bool(keepdims))


def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=None):
    """Returns variances over axes; `ddof` is subtracted from the count."""
    if out is not None:
        raise ValueError("Setting out is not supported.")
    a = asarray(a)
    result_type = None if dtype is None else dtypes.as_dtype(numpy_type(dtype))
    if result_type is not None and not (result_type.is_floating or result_type.is_complex):
        result_type = dtypes.as_dtype(float_type())
    a = as_inexact(a) if result_type is None else tf.cast(a, result_type)
    deviation = a - tf.reduce_mean(a, axis, True)
    if a.dtype.is_complex:
        squares = tf.real(deviation * tf.conj(deviation))
    else:
        squares = tf.square(deviation)
    count = tf.size(a) if axis is None else tf.reduce_prod(tf.gather(tf.shape(a), _axes(a, axis)))
    return tf.reduce_sum(squares, axis, bool(keepdims)) / tf.cast(count - ddof, squares.dtype)


def _axes(a, axis):
    return [axis_of(i, a.shape.rank) for i in (axis if isinstance(axis, (list, tuple)) else [axis])]


def std(a, axis=None, keepdims=None):
    """Returns standard deviations over axes."""
    return tf.sqrt(var(a, axis, keepdims=keepdims))


def average(a, axis=None, weights=None, returned=False):
    """Returns means weighted by `weights`; with `returned`, also the sums of the weights."""
    if axis is not None and not isinstance(axis, int):
        raise ValueError("The `axis` argument must be an integer if weights are used.")
    a = as_inexact(a)
    if weights is None:
        result = tf.reduce_mean(a, axis)
        weight = tf.cast(tf.size(a) // tf.size(result), result.dtype)
        return (result, tf.broadcast_to(weight, tf.shape(result))) if returned else result
    common = result_type(a, weights)
    a, weights = asarray(a, common), asarray(weights, common)
    if weights.shape.rank == 1 and a.shape.rank != 1:
        if axis is None:
            raise ValueError("Axis must be specified when shapes of a and weights differ.")
        weights = tf.reshape(weights, [-1 if i == axis_of(axis, a.shape.rank) else 1 for i in range(a.shape.rank)])
        weights = tf.broadcast_to(weights, tf.shape(a))
    total = tf.reduce_sum(weights, axis)
    result = tf.reduce_sum(a * weights, axis) / total
    return (result, total) if returned else result


def _scanned(compute, a, axis, dtype):
    a = asarray(a, dtype)
    if axis is None:
        a, axis = tf.reshape(a, [-1]), 0
    if dtype is None and not is_inexact(a):
        a = tf.cast(a, dtypes.int64)
    return compute(a, axis_of(axis, a.shape.rank))


def cumsum(a, axis=None, dtype=None):
    """Returns sums of all elements up to each one."""
    return _scanned(tf.cumsum, a, axis, dtype)


def cumprod(a, axis=None, dtype=None):
    """Returns products of all elements up to each one."""
    return _scanned(tf.cumprod, a, axis, dtype)


def _without_nan(a, number):
    a = asarray(a)
    if not is_inexact(a):
        return a
    return tf.where_v2(tf.is_nan(a), tf.cast(number, a.dtype), a)


def nansum(a, axis=None, dtype=None, keepdims=False):
    """Returns sums that leave NaN out."""
    return sum(_without_nan(a, 0), axis, dtype, keepdims)


def nanprod(a, axis=None, dtype=None, keepdims=False):
    """Returns products that leave NaN out."""
    return prod(_without_nan(a, 1), axis, dtype, keepdims)


def nanmean(a, axis=None, dtype=None, keepdims=None):
    """Returns means that leave NaN out."""
    a = asarray(a)
    if not is_inexact(a):
        return mean(a, axis, dtype, keepdims=keepdims)
    total = nansum(a, axis, dtype, keepdims)
    count = tf.reduce_sum(tf.cast(tf.logical_not(tf.is_nan(a)), dtypes.int64), axis, bool(keepdims))
    return total / tf.cast(count, total.dtype)


def count_nonzero(a, axis=None):
    """Counts the elements that are not zero."""
    return tf.reduce_sum(tf.cast(truth(a), dtypes.int64), axis)


def _extreme_place(compute, a, axis):
    a = asarray(a)
    if a.dtype == dtypes.bool:
        a = tf.cast(a, dtypes.int8)
    if axis is None or not a.shape.rank:
        a, axis = tf.reshape(a, [-1]), 0
    return compute(a, axis)


def argmax(a, axis=None):
    """Returns the index of the largest element."""
    return _extreme_place(tf.argmax, a, axis)


def argmin(a, axis=None):
    """Returns the index of the smallest element."""
    return _extreme_place(tf.argmin, a, axis)


def _sorted(compute, a, axis, kind, order):
    if order is not None:
        raise ValueError("The `order` argument is not supported. Pass order=None")
    if kind not in ("quicksort", "stable"):
        raise ValueError("Invalid value for argument `kind`. Only kind='quicksort' and kind='stable' are supported. Received: kind=%s" % kind)
    a = asarray(a)
    if axis is None:
        a, axis = tf.reshape(a, [-1]), 0
    return compute(a, axis, kind == "stable")


def sort(a, axis=-1, kind="quicksort", order=None):
    """Sorts along an axis."""
    from runnel.ops.special_ops import sort as sorted_
    return _sorted(lambda x, i, stable: sorted_(x, i), a, axis, kind, order)


def argsort(a, axis=-1, kind="quicksort", order=None):
    """Returns the indices that sort along an axis."""
    from runnel.ops.special_ops import argsort as places
    return _sorted(lambda x, i, stable: tf.cast(places(x, i, stable=stable), dtypes.int64), a, axis, kind, order)


def diff(a, n=1, axis=-1):
    """Returns differences of neighbours, `n` times."""
    a = asarray(a)
    rank = a.shape.rank
    if n < 0:
        raise ValueError("Argument `order` must be a non-negative integer. Received: axis=%s" % n)
    axis = axis_of(axis, rank)
    for _ in range(n):
        later = a[(slice(None),) * axis + (slice(1, None),)]
        earlier = a[(slice(None),) * axis + (slice(None, -1),)]
        a = (FUNCTIONS["not_equal"] if a.dtype == dtypes.bool else tf.subtract)(later, earlier)
    return a
