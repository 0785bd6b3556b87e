"""Bitwise ops on integers."""

from .base import *


def fill(t):
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        t.each("", op, "I U", lambda d: [drawn(d, [11], -100, 100), drawn(d, [11], -100, 100)])
        t.row("broadcast", op, [drawn("int32", [3, 1], -100, 100), drawn("int32", [4], -100, 100)])
        t.row("scalar", op, [drawn("int32", [5], -100, 100), scalar("int32", 12)])
        t.row("empty", op, [drawn("int32", [0]), drawn("int32", [1])])
        t.row("300", op, [drawn("int32", [300], -1000, 1000), drawn("int32", [300], -1000, 1000)])
        t.row("bad_shapes", op, [drawn("int32", [2]), drawn("int32", [3])])
        t.row("float", op, [drawn("float", [2]), drawn("float", [2])])
    t.each("", "Invert", "I U", lambda d: [drawn(d, [11], -100, 100)])
    t.each("", "PopulationCount", "I U", lambda d: [drawn(d, [11], -100, 100)])
    for op in ("LeftShift", "RightShift"):
        t.each("", op, "I U", lambda d: [drawn(d, [11], -100, 100), drawn(d, [11], 0, 7)])
        t.row("too_far", op, [vec("int32", [1, -1]), vec("int32", [40, 33])])
        t.row("negative", op, [vec("int32", [1, -1]), vec("int32", [-1, -2])])
