"""Regularisers by name."""

from runnel import math_ops, raw_ops


class L1L2:
    """l1 sum(|x|) + l2 sum(x ** 2)."""

    def __init__(self, l1=0.0, l2=0.0):
        self.l1, self.l2 = float(l1), float(l2)

    def __call__(self, x):
        loss = 0.0
        if self.l1:
            loss += self.l1 * math_ops.reduce_sum(math_ops.abs(x))
        if self.l2:
            loss += self.l2 * math_ops.reduce_sum(raw_ops.Square(x=x))
        return loss


def l1(l=0.01):  # noqa: E741
    return L1L2(l1=l)


def l2(l=0.01):  # noqa: E741
    return L1L2(l2=l)


def l1_l2(l1=0.01, l2=0.01):
    return L1L2(l1, l2)


L1, L2 = l1, l2


def get(identifier):
    """A regulariser, of its name, its config or itself."""
    if isinstance(identifier, dict):
        return L1L2(**identifier)
    return {"l1": l1, "l2": l2, "l1_l2": l1_l2}[identifier]() if isinstance(identifier, str) \
        else identifier
