"""numpy's functions under names that mean the same in numpy 1 and 2 (tensorflow.python.util.numpy_compat)."""

import numpy as np


def np_array(values, dtype=None, copy=True, order="K"):
    """Returns a new array; with copy=None or False it may share memory with `values`."""
    return np.array(values, dtype=dtype, order=order) if copy else np.asarray(values, dtype=dtype, order=order)


def np_asarray(values, dtype=None, order=None, copy=None):
    """Returns an array, without a copy if it can."""
    return np.array(values, dtype=dtype, order=order or "K") if copy else np.asarray(values, dtype=dtype, order=order)


def np_where(condition, x=None, y=None):
    """Returns the places where `condition` holds, or a choice between `x` and `y`."""
    return np.atleast_1d(np.asarray(condition)).nonzero() if x is None and y is None else np.where(condition, x, y)


def np_reshape(a, /, shape=None, *, newshape=None, order="C", copy=None):
    """Returns `a` in another shape."""
    reshaped = np.reshape(a, newshape if shape is None else shape, order=order)
    return reshaped.copy() if copy else reshaped
