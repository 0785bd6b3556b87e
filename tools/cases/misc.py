"""Ops without a family; stock defines them, but has no CPU kernel."""

from .base import *


def fill(t):
    t.row("no_kernel", "InfeedEnqueueTuple", [[drawn("float", [2])]], {"shapes": [[2]]}, message="code-only")
    t.row("no_shapes", "InfeedEnqueueTuple", [[drawn("float", [2])]])
