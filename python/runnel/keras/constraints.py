"""Constraints on variables after a step."""

from runnel import math_ops, raw_ops
from runnel.convert import convert_to_tensor


class MaxNorm:
    """Norms along an axis of at most max_value."""

    def __init__(self, max_value=2, axis=0):
        self.max_value, self.axis = max_value, axis

    def __call__(self, w):
        norms = raw_ops.Sqrt(x=math_ops.reduce_sum(raw_ops.Square(x=w), self.axis, keepdims=True))
        wanted = raw_ops.Minimum(x=norms, y=convert_to_tensor(float(self.max_value)))
        return w * (wanted / (1e-7 + norms))


class NonNeg:
    """No number below 0."""

    def __call__(self, w):
        return w * math_ops.cast(w >= 0.0, w.dtype)


class UnitNorm:
    """Norms of 1 along an axis."""

    def __init__(self, axis=0):
        self.axis = axis

    def __call__(self, w):
        return w / (1e-7 + raw_ops.Sqrt(x=math_ops.reduce_sum(raw_ops.Square(x=w), self.axis,
                                                              keepdims=True)))


max_norm, non_neg, unit_norm = MaxNorm, NonNeg, UnitNorm


def get(identifier):
    """A constraint, of its name or itself."""
    return globals()[identifier]() if isinstance(identifier, str) else identifier
