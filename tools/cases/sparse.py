"""Sparse tensors: conversion to dense, products, reshaping, slices."""

from . import sparse_bad, sparse_csr, sparse_sets
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
    fill_rearranged(t)
    fill_computed(t)
    fill_merged(t)
    sparse_sets.fill(t)
    sparse_bad.fill(t)
    sparse_csr.fill(t)


# Three values of a tensor of shape [3, 4], sorted and unsorted.
SORTED = given("int64", [3, 2], [0, 1, 1, 3, 2, 0])
UNSORTED = given("int64", [4, 2], [2, 0, 0, 1, 1, 3, 0, 0])
NONE = given("int64", [0, 2], [])
SIZES = vec("int64", [3, 4])


def fill_rearranged(t):
    kinds = "F I U C b s"
    t.each("", "SparseReorder", kinds, lambda d: [UNSORTED, drawn(d, [4]), SIZES])
    t.row("sorted", "SparseReorder", [SORTED, drawn("float", [3]), SIZES])
    t.row("none", "SparseReorder", [NONE, drawn("float", [0]), SIZES])
    t.row("equal", "SparseReorder", [given("int64", [2, 2], [1, 1, 0, 0]), drawn("float", [2]), SIZES])
    t.row("grad", "SparseReorder", [UNSORTED, drawn("double", [4]), SIZES], grad=True, grad_outputs=[1])
    t.row("rank", "SparseReorder", [vec("int64", [1]), drawn("float", [1]), SIZES])
    for name, new in (
        ("flat", [12]),
        ("open", [-1, 2]),
        ("three", [2, -1, 3]),
        ("same", [3, 4]),
        ("two_open", [-1, -1]),
        ("wrong", [5, 2]),
        ("uneven", [-1, 5]),
        ("empty", [-1, 0]),
    ):
        t.row(name, "SparseReshape", [SORTED, SIZES, vec("int64", new)])
        t.row(name + "_const", "SparseReshape", [SORTED, const(SIZES), const(vec("int64", new))])
    t.row("none", "SparseReshape", [NONE, SIZES, vec("int64", [12])])
    for name, start, size in (
        ("corner", [0, 0], [2, 2]),
        ("rest", [1, 1], [9, 9]),
        ("nothing", [0, 2], [1, 1]),
        ("behind", [5, 0], [1, 1]),
        ("before", [-1, -2], [3, 4]),
        ("whole", [0, 0], [3, 4]),
    ):
        t.row(name, "SparseSlice", [SORTED, drawn("float", [3]), SIZES, vec("int64", start), vec("int64", size)])
    slice_of = lambda d: [SORTED, drawn(d, [3]), SIZES, vec("int64", [0, 1]), vec("int64", [2, 3])]
    t.each("", "SparseSlice", kinds, slice_of)
    t.row("grad", "SparseSlice", slice_of("double"), grad=True, grad_outputs=[1])
    t.row("short", "SparseSlice", slice_of("float")[:3] + [vec("int64", [0]), vec("int64", [1])])
    for d in dtypes("f i half complex64"):
        t.row(
            d,
            "SparseSliceGrad",
            [drawn(d, [2]), SORTED, vec("int64", [0, 1]), given("int64", [2, 2], [0, 0, 1, 2])],
        )
    t.row(
        "left_over",
        "SparseSliceGrad",
        [drawn("float", [1]), SORTED, vec("int64", [0, 1]), given("int64", [1, 2], [2, 2])],
    )
    for axis in (0, 1, -1, -2):
        t.row(
            "axis_%d" % axis,
            "SparseConcat",
            [[SORTED, SORTED], [drawn("float", [3]), drawn("float", [3])], [SIZES, SIZES]],
            {"concat_dim": axis},
        )
    concat_of = lambda d: [[SORTED, NONE], [drawn(d, [3]), drawn(d, [0])], [SIZES, vec("int64", [3, 2])]]
    t.each("", "SparseConcat", kinds, lambda d: (concat_of(d), {"concat_dim": 1}))
    t.row("axis_high", "SparseConcat", concat_of("float"), {"concat_dim": 2})
    t.row("unlike", "SparseConcat", concat_of("float"), {"concat_dim": 0})
    for axis, n in ((0, 3), (0, 2), (1, 3), (1, 4), (-1, 1)):
        t.row(
            "axis_%d_%d" % (axis, n),
            "SparseSplit",
            [scalar("int64", axis), SORTED, drawn("float", [3]), SIZES],
            {"num_split": n},
        )
    t.each(
        "",
        "SparseSplit",
        kinds,
        lambda d: ([scalar("int64", 1), SORTED, drawn(d, [3]), SIZES], {"num_split": 2}),
    )
    for name, axis, n in (("many", 0, 4), ("axis_high", 2, 1)):
        t.row(
            name,
            "SparseSplit",
            [scalar("int64", axis), SORTED, drawn("float", [3]), SIZES],
            {"num_split": n},
            )
    gaps = given("int64", [3, 2], [3, 1, 1, 3, 1, 0])
    five = vec("int64", [5, 4])
    fill_of = lambda d: [gaps, drawn(d, [3]), five, drawn(d, [])]
    t.each("", "SparseFillEmptyRows", kinds, fill_of)
    t.row("const", "SparseFillEmptyRows", [gaps, drawn("float", [3]), const(five), drawn("float", [])])
    t.row("full", "SparseFillEmptyRows", [SORTED, drawn("float", [3]), SIZES, drawn("float", [])])
    t.row("none", "SparseFillEmptyRows", [NONE, drawn("float", [0]), SIZES, drawn("float", [])])
    t.row("no_rows", "SparseFillEmptyRows", [NONE, drawn("float", [0]), vec("int64", [0, 4]), drawn("float", [])])
    t.row("grad", "SparseFillEmptyRows", fill_of("double"), grad=True, grad_outputs=[1])
    t.row("high", "SparseFillEmptyRows", [gaps, drawn("float", [3]), SIZES, drawn("float", [])])
    t.row(
        "no_rows_values",
        "SparseFillEmptyRows",
        [SORTED, drawn("float", [3]), vec("int64", [0, 4]), drawn("float", [])],
    )
    t.row(
        "default_vector",
        "SparseFillEmptyRows",
        [gaps, drawn("float", [3]), five, drawn("float", [1])],
    )


def fill_computed(t):
    dense = lambda d, dims=(3, 4): drawn(d, list(dims), 1, 9)
    values = lambda d, n=3: drawn(d, [n], 1, 9)
    add_of = lambda d: [SORTED, values(d), SIZES, dense(d)]
    t.each("", "SparseTensorDenseAdd", "F I U C", add_of)
    narrow = [given("int32", [3, 2], [0, 1, 1, 3, 1, 3]), values("float"), vec("int32", [3, 4])]
    t.row("int32", "SparseTensorDenseAdd", narrow + [dense("float")])
    t.row("none", "SparseTensorDenseAdd", [NONE, values("float", 0), SIZES, dense("float")])
    t.row("grad", "SparseTensorDenseAdd", add_of("double"), grad=True)
    t.row(
        "shape",
        "SparseTensorDenseAdd",
        [SORTED, values("float"), SIZES, dense("float", (3, 5))],
    )
    high = given("int64", [3, 2], [0, 1, 1, 3, 3, 0])
    t.row(
        "high",
        "SparseTensorDenseAdd",
        [high, values("float"), SIZES, dense("float")],
    )
    for op in ("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"):
        t.each("", op, "F I U", lambda d: [SORTED, values(d), SIZES, dense(d)])
        for name, dims in (("row", (1, 4)), ("column", (3, 1)), ("vector", (4,)), ("one", ())):
            t.row(name, op, [SORTED, values("float"), SIZES, dense("float", dims)])
        t.row("none", op, [NONE, values("float", 0), SIZES, dense("float")])
        t.row(
            "unlike",
            op,
            [SORTED, values("float"), SIZES, dense("float", (2, 4))],
            )
    for op in ("SparseDenseCwiseMul", "SparseDenseCwiseDiv"):
        for name, dims in (("grad", (3, 4)), ("grad_row", (1, 4)), ("grad_vector", (4,))):
            t.row(name, op, [SORTED, values("double"), SIZES, dense("double", dims)], grad=True)
    for d in dtypes("F C int32"):
        for a in (False, True):
            for b in (False, True):
                t.row(
                    "%s_%d%d" % (d, a, b),
                    "SparseTensorDenseMatMul",
                    [
                        SORTED,
                        values(d),
                        const(SIZES),
                        dense(d, ((3 if a else 4), 5)[:: -1 if b else 1]),
                    ],
                    {"adjoint_a": a, "adjoint_b": b},
                    **({"grad": True, "fd": d == "double"} if d in ("float", "double") else {})
                )
    t.row(
        "fed",
        "SparseTensorDenseMatMul",
        [SORTED, values("float"), SIZES, dense("float", (4, 2))],
    )
    t.row(
        "inner",
        "SparseTensorDenseMatMul",
        [SORTED, values("float"), SIZES, dense("float", (3, 2))],
    )
    t.row(
        "high",
        "SparseTensorDenseMatMul",
        [high, values("float"), SIZES, dense("float", (4, 2))],
    )
    for op, kinds in (("SparseReduceSum", "F I U C"), ("SparseReduceMax", "F I U")):
        rows = given("int64", [4, 2], [0, 0, 0, 2, 2, 1, 2, 2])
        t.each("", op, kinds, lambda d: [rows, drawn(d, [4], -9, 9), SIZES, vec("int32", [1])])
        for name, axes in (("first", [0]), ("all", [0, 1]), ("back", [-1]), ("no_axes", [])):
            for keep in (False, True):
                for known in (const, lambda x: x):
                    t.row(
                        "%s_%d" % (name, keep),
                        op,
                        [rows, values("float", 4), known(SIZES), known(vec("int32", axes))],
                        {"keep_dims": keep},
                    )
        t.row(
            "axis_high",
            op,
            [rows, values("float", 4), SIZES, vec("int32", [2])],
            )
    t.row(
        "grad",
        "SparseReduceSum",
        [SORTED, values("double"), SIZES, vec("int32", [1])],
        grad=True,
    )


def fill_merged(t):
    other = given("int64", [3, 2], [0, 0, 1, 3, 2, 3])
    pair = lambda d, lo=-9: [
        SORTED,
        drawn(d, [3], lo, 9),
        SIZES,
        other,
        drawn(d, [3], lo, 9),
        SIZES,
    ]
    real = {"complex64": "float", "complex128": "double"}
    for d in dtypes("I C f"):
        t.row(d, "SparseAdd", pair(d) + [scalar(real.get(d, d), 0)])
        t.row(d + "_threshold", "SparseAdd", pair(d) + [scalar(real.get(d, d), 5)])
    t.row("negative", "SparseAdd", pair("float") + [scalar("float", -1)])
    a = [SORTED, vec("float", [1, 2, 3]), SIZES]
    t.row("none", "SparseAdd", a + [NONE, vec("float", []), SIZES, scalar("float", 0)])
    t.row("cancel", "SparseAdd", a + [SORTED, vec("float", [1, -2, 3]), SIZES, scalar("float", 0.5)])
    t.row(
        "shapes",
        "SparseAdd",
        a + [SORTED, vec("float", [1, 2, 3]), vec("int64", [3, 5]), scalar("float", 0)],
    )
    t.row("grad", "SparseAdd", pair("double") + [scalar("double", 0)], grad=True, grad_outputs=[1], fd=False)
    both = given("int64", [5, 2], [0, 0, 0, 1, 1, 3, 2, 0, 2, 3])
    for d in dtypes("I C f"):
        t.row(d, "SparseAddGrad", [drawn(d, [5], -9, 9), SORTED, other, both])
    t.row(
        "count",
        "SparseAddGrad",
        [drawn("float", [4]), SORTED, other, both],
    )
    for op in ("SparseSparseMaximum", "SparseSparseMinimum"):
        t.each("", op, "F I U", lambda d: pair(d))
        t.row("none", op, a + [NONE, vec("float", []), SIZES])
        t.row(
            "shapes",
            op,
            a + [SORTED, vec("float", [1, 2, 3]), vec("int64", [3, 5])],
            )
    for d in dtypes("F I U C"):
        t.row(d, "SparseFillEmptyRowsGrad", [vec("int64", [3, 0]), drawn(d, [5], -9, 9)])
    t.row(
        "high",
        "SparseFillEmptyRowsGrad",
        [vec("int64", [5, 0]), drawn("float", [5])],
    )
