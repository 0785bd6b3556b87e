"""Sparse to dense."""

from .base import *


def fill(t):
    op = "SparseToDense"
    t.each(
        "",
        op,
        "F I U C b s",
        lambda d: [given("int32", [2, 2], [0, 1, 2, 0]), ivec(3, 2), drawn(d, [2]), drawn(d, [])],
    )
    for name, i, s, v, a in [
        ("vector", vec("int64", [0, 3]), [5], [2], {}),
        ("scalar", scalar("int32", 2), [4], [], {}),
        ("one_value", vec("int32", [0, 3]), [5], [], {}),
        ("unsorted", vec("int32", [3, 0]), [5], [2], {}),
        ("unsorted_allowed", vec("int32", [3, 0]), [5], [2], {"validate_indices": False}),
        ("twice", vec("int32", [3, 3]), [5], [2], {}),
        ("high", vec("int32", [5]), [5], [1], {}),
        ("negative", vec("int32", [-1]), [5], [1], {}),
        ("none", vec("int32", []), [3], [0], {}),
        ("counts", vec("int32", [0, 1]), [5], [3], {}),
        ("rank", given("int32", [1, 2], [0, 0]), [5], [1], {}),
    ]:
        t.row(name, op, [i, const(vec(i["dtype"], s)), drawn("float", v), scalar("float", 9)], a)
