"""Calls and functional control flow. Rows hold no function bodies: what a node needs is checked."""

from .base import *


def fill(t):
    yes = scalar("bool", True)
    for op in ("PartitionedCall", "StatefulPartitionedCall", "SymbolicGradient"):
        t.row("no_function", op, [[drawn("float", [2])]], {"Tout": ["float"]})
    for op in ("If", "StatelessIf"):
        t.row("no_branches", op, [yes, [drawn("float", [2])]], {"Tout": ["float"]})
    for op in ("While", "StatelessWhile"):
        t.row("no_body", op, [[drawn("float", [2])]])
    for op in ("Case", "StatelessCase"):
        t.row("no_branches", op, [scalar("int32", 0), [drawn("float", [2])]], {"Tout": ["float"]})
