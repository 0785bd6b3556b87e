"""Gradients of a function beside finite differences (tensorflow.python.ops.gradient_checker_v2)."""

import numpy as np

from runnel import dtypes
from runnel.core import framework, session as session_lib
from runnel.core.composite import IndexedSlices
from runnel.core.convert import convert_to_tensor
from runnel.core.gradients_impl import gradients
from runnel.eager.backprop import GradientTape
from runnel.ops.array_ops import placeholder
from runnel.test import _jacobians


def _slices_or_array(value):
    """Returns the numbers of an eager gradient; None stays."""
    if isinstance(value, IndexedSlices):
        value = convert_to_tensor(value)
    return None if value is None else value.numpy()


class _EagerFunction:
    """`f` of arrays, run op by op."""

    def __init__(self, f, values):
        self._f = f

    def forward(self, values):
        return convert_to_tensor(self._f(*map(convert_to_tensor, values))).numpy()

    def backward(self, values, i, dy):
        xs = [convert_to_tensor(value) for value in values]
        with GradientTape() as tape:
            tape.watch(xs[i])
            y = convert_to_tensor(self._f(*xs))
        return _slices_or_array(tape.gradient(y, xs[i], output_gradients=convert_to_tensor(dy)))


class _GraphFunction:
    """`f` of arrays, as nodes of the default graph."""

    def __init__(self, f, values):
        self._session = session_lib.get_default_session() or session_lib.Session()
        self._xs = [placeholder(value.dtype, value.shape) for value in values]
        self._y = convert_to_tensor(f(*self._xs))
        self._dy = placeholder(self._y.dtype)
        self._dy.set_shape(self._y.shape)
        self._gradients = gradients(self._y, self._xs, self._dy)

    def forward(self, values):
        return self._session.run(self._y, dict(zip(self._xs, values)))

    def backward(self, values, i, dy):
        if self._gradients[i] is None:
            return None
        return self._session.run(self._gradients[i], {**dict(zip(self._xs, values)), self._dy: dy})


def _arrays(xs):
    """Returns the values of tensors, or what can be converted to them, as arrays."""
    tensors = [convert_to_tensor(x) for x in xs]
    if framework.executing_eagerly():
        return [np.array(tensor.numpy()) for tensor in tensors]
    session = session_lib.get_default_session() or session_lib.Session()
    return [np.array(value) for value in session.run(tensors)]


def compute_gradient(f, x, delta=None):
    """Returns the theoretical and the numerical Jacobians of `f` by each of the arguments `x`, as two tuples.

    A Jacobian has one row per number of the result and one column per number of the argument; complex numbers are two each.
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError("`x` must be a list or tuple of values convertible to a Tensor (arguments to `f`), not a %s" % type(x))
    values = _arrays(x)
    function = (_EagerFunction if framework.executing_eagerly() else _GraphFunction)(f, values)
    y = np.asarray(function.forward(values))
    y_dtype, pairs = dtypes.as_dtype(y.dtype), []
    for i, value in enumerate(values):
        pairs.append(_jacobians(lambda moved, i=i: function.forward([*values[:i], moved, *values[i + 1:]]),
                                lambda dy, i=i: function.backward(values, i, dy),
                                value, dtypes.as_dtype(value.dtype), y.shape, y_dtype, delta or 1.0 / 1024))
    return tuple(theory.T for theory, _ in pairs), tuple(numeric.T for _, numeric in pairs)


def max_error(grad1, grad2):
    """Returns the largest difference between two tuples of Jacobians."""
    return max((float(np.abs(a - b).max()) for a, b in zip(grad1, grad2) if a.size), default=0)
