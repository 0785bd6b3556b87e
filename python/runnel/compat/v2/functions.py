"""Functions of 2.x that are not those of 1.x with other parameters."""

import runnel as _v1
from runnel.core.framework import executing_eagerly


def ones_like(input, dtype=None, name=None, layout=None):  # noqa: A002
    """Creates ones with the shape of `input`."""
    return _v1.ones_like(input, dtype, name)


def zeros_like(input, dtype=None, name=None, layout=None):  # noqa: A002
    """Creates zeros with the shape of `input`."""
    return _v1.zeros_like(input, dtype, name)


def random_normal_initializer(mean=0.0, stddev=0.05, seed=None):
    """Returns an initializer with a normal distribution."""
    return _v1.random_normal_initializer(mean, stddev, seed)


def random_uniform_initializer(minval=-0.05, maxval=0.05, seed=None):
    """Returns an initializer with a uniform distribution."""
    return _v1.random_uniform_initializer(minval, maxval, seed)


def zeros_initializer():
    """Returns an initializer with zeros."""
    return _v1.zeros_initializer()


def ones_initializer():
    """Returns an initializer with ones."""
    return _v1.ones_initializer()


def constant_initializer(value=0, support_partition=False):
    """Returns an initializer with the given values."""
    return _v1.constant_initializer(value)


def cond(pred, true_fn=None, false_fn=None, name=None):
    """Returns `true_fn()` if `pred` is true, else `false_fn()`, in the structure that the functions return."""
    return _v1.cond(pred, true_fn, false_fn, strict=True, name=name)


def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True, swap_memory=False,
               maximum_iterations=None, name=None):
    """Repeats `body` while `cond` is true. Returns the final loop variables in the structure of `loop_vars`."""
    return _v1.while_loop(cond, body, loop_vars, shape_invariants, parallel_iterations, back_prop, swap_memory, name, maximum_iterations,
                          return_same_structure=True)


def inside_function():
    """Tells whether a function is being traced."""
    return not executing_eagerly() and bool(_v1.get_default_graph()._building_function)


def einsum(equation, *inputs, **kwargs):
    """Computes sums of products in Einstein's notation. `optimize` is accepted: the op finds an order itself."""
    kwargs.pop("optimize", None)
    return _v1.einsum(equation, *inputs, **kwargs)
