"""tensorflow.python.autograph.operators.logical: Python's operators as converted functions call them; operands are functions."""

from runnel.autograph import branches
from runnel.core.framework import is_tensor

not_ = branches.not_


def and_(a, b):
    """Returns `a() and b()`; b is not called if it does not matter."""
    return branches.and_(a(), b)


def or_(a, b):
    """Returns `a() or b()`; b is not called if it does not matter."""
    return branches.or_(a(), b)


def eq(a, b):
    """Returns `a == b`, element by element for tensors."""
    if is_tensor(a) or is_tensor(b):
        import runnel
        return runnel.equal(a, b)
    return a == b


def not_eq(a, b):
    """Returns `a != b`, element by element for tensors."""
    return not_(eq(a, b))
