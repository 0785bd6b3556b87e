"""tf.experimental.numpy.random."""

import runnel as tf
from runnel import dtypes
from runnel.experimental_numpy.promotion import asarray, float_type, numpy_type, promoted


def _shape(size):
    return [] if size is None else [size] if isinstance(size, int) else size


def seed(s):
    """Sets the seed of the numbers that follow."""
    tf.set_random_seed(int(asarray(s)))


def randn(*args):
    """Returns numbers of the standard normal distribution; the arguments are the shape."""
    return standard_normal(args)


def standard_normal(size=None):
    """Returns numbers of the standard normal distribution."""
    return tf.random.normal(_shape(size), dtype=dtypes.as_dtype(float_type()))


def rand(*size):
    """Returns numbers from 0 up to 1; the arguments are the shape."""
    return uniform(0.0, 1.0, size)


def random(size=None):
    """Returns numbers from 0 up to 1."""
    return uniform(0.0, 1.0, size)


def uniform(low=0.0, high=1.0, size=None):
    """Returns numbers from `low` up to `high`, which may be arrays."""
    kind = dtypes.as_dtype(float_type())
    low, high = (asarray(x, kind) for x in (low, high))
    shape = tf.broadcast_dynamic_shape(tf.shape(low), tf.shape(high)) if size is None else _shape(size)
    return tf.random.uniform(shape, dtype=kind) * (high - low) + low


def poisson(lam=1.0, size=None):
    """Returns numbers of Poisson's distribution."""
    shape = [] if size is None else _shape(size)
    return tf.random.poisson(asarray(lam, float_type()), shape, dtype=dtypes.int64)


def randint(low, high=None, size=None, dtype=int):
    """Returns integers from `low` up to, but without, `high`."""
    low, high = (0, low) if high is None else (low, high)
    kind = dtypes.as_dtype(numpy_type(dtype))
    drawn = dtypes.int32 if kind == dtypes.int32 else dtypes.int64
    low, high = (tf.cast(x, drawn) for x in promoted(low, high))
    return tf.cast(tf.random.uniform(_shape(size), low, high, dtype=drawn), kind)
