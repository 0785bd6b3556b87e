"""tf.__operators__: the operators of tensors as functions, by which Keras names the layers that they become."""

from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops


def add(x, y, name=None):
    """Returns x + y."""
    with name_scope(name, "add", [x, y]) as scope:
        x, y = math_ops._two(x, y)
        return math_ops._add_operator(x, y, scope)


def eq(self, other):
    """Returns self == other."""
    return array_ops.Tensor.__eq__(self, other)


def ne(self, other):
    """Returns self != other."""
    return array_ops.Tensor.__ne__(self, other)


def getitem(tensor, slice_spec, var=None):
    """Returns tensor[slice_spec]."""
    return array_ops._slice_helper(tensor, slice_spec, var)


def ragged_getitem(rt_input, key):
    """Returns rt_input[key] of a ragged tensor."""
    return rt_input[key]
