"""Reductions, arg reductions, scans and segments."""

from .base import *

# op, dtypes, gradient
REDUCE = [
    ("Sum", "F I U C", True),
    ("Prod", "F I U C", True),
    ("Max", "F I U", True),
    ("Min", "F I U", True),
    ("Mean", "F I U C", True),
    ("EuclideanNorm", "F C i", True),
]
AXES = [
    ("all", [0, 1, 2]),
    ("none", []),
    ("0", [0]),
    ("1", [1]),
    ("2", [2]),
    ("01", [0, 1]),
    ("12", [1, 2]),
    ("02", [0, 2]),
    ("last", [-1]),
    ("unsorted", [2, 0]),
]


def reductions(t):
    for op, kinds, grad in REDUCE:
        lo, hi = (0.5, 1.5) if op == "Prod" else (-2, 2)
        draw = lambda d, s: (
            drawn(d, s, lo, hi)
            if d in F + C
            else drawn(d, s, 1, 5) if op == "Prod" else drawn(d, s)
        )
        for d in dtypes(kinds):
            t.row(
                d,
                op,
                [draw(d, [3, 5]), ivec(1)],
                tol=loose(d) * (0.2 if d in ("float", "double") else 1),
            )
            t.row(
                "rows_" + d,
                op,
                [draw(d, [3, 5]), ivec(0)],
                tol=loose(d) * (0.2 if d in ("float", "double") else 1),
            )
        for name, axes in AXES:
            for keep in (False, True):
                t.row(
                    "axes_%s%s" % (name, "_keep" if keep else ""),
                    op,
                    [draw("float", [2, 3, 5]), ivec(*axes)],
                    {"keep_dims": keep},
                    tol=1e-5,
                )
        t.row("scalar_axis", op, [draw("float", [2, 3]), iscalar(1)])
        t.row("int64_axis", op, [draw("float", [2, 3]), const(vec("int64", [0]))])
        t.row("fed_axis", op, [draw("float", [2, 3]), vec("int32", [0])])
        t.row("fed_axis_keep", op, [draw("float", [2, 3]), vec("int32", [0])], {"keep_dims": True})
        t.row("of_scalar", op, [scalar("float", -3), ivec()])
        t.row("rank5", op, [draw("float", [2, 3, 2, 3, 2]), ivec(0, 2, 4)], tol=1e-5)
        t.row("rank5_odd", op, [draw("float", [2, 3, 2, 3, 2]), ivec(1, 3)], tol=1e-5)
        t.row("33x40_rows", op, [draw("float", [33, 40]), ivec(0)], tol=1e-4)
        t.row("33x40_columns", op, [draw("float", [33, 40]), ivec(1)], tol=1e-4)
        t.row("1000", op, [draw("float", [1000]), ivec(0)], tol=1e-4)
        t.row("1000_double", op, [draw("double", [1000]), ivec(0)], tol=1e-12)
        t.row("empty", op, [draw("float", [0]), ivec(0)])
        t.row("empty_rows", op, [draw("float", [0, 3]), ivec(0)])
        t.row("empty_kept", op, [draw("float", [0, 3]), ivec(1)])
        t.row(
            "special",
            op,
            [
                given("float", [4, 3], [1, NAN, 3, INF, 1, 2, INF, "-inf", 0.0, -1, -0.0, 0.0]),
                ivec(1),
            ],
        )
        t.row("axis_high", op, [draw("float", [2, 3]), ivec(2)])
        t.row("axis_low", op, [draw("float", [2, 3]), ivec(-3)])
        t.row("axis_twice", op, [draw("float", [2, 3]), ivec(1, 1)])
        t.row("axis_fed_high", op, [draw("float", [2, 3]), vec("int32", [5])])
        t.row("axis_matrix", op, [draw("float", [2, 3]), const(given("int32", [1, 1], [0]))])
        t.row("axis_type", op, [draw("float", [2, 3]), vec("float", [0])])
        t.row("bool", op, [drawn("bool", [2, 3]), ivec(0)])
        if not grad:
            continue
        for name, axes in AXES:
            t.row("grad_" + name, op, [draw("double", [2, 3, 2]), ivec(*axes)], grad=True)
        t.row("grad_keep", op, [draw("double", [2, 3]), ivec(0)], {"keep_dims": True}, grad=True)
        t.row("grad_float", op, [draw("float", [2, 3]), ivec(1)], grad=True)
        t.row("grad_fed_axis", op, [draw("double", [2, 3]), vec("int32", [-1])], grad=True)
    t.row("truncates", "Mean", [vec("int32", [1, 2, 2, -8]), ivec(0)])
    t.row("int8_wraps", "Sum", [vec("int8", [100, 100, 100]), ivec(0)])
    t.row("with_zero_grad", "Prod", [vec("double", [2, 0.0, 3]), ivec(0)], grad=True)
    t.row("two_zeros_grad", "Prod", [vec("double", [0.0, 0.0, 3]), ivec(0)], grad=True)
    for op in ("Max", "Min"):
        t.row("grad_ties", op, [vec("double", [1, 2, 2, 1]), ivec(0)], grad=True, fd=False)
    for op in ("All", "Any"):
        for name, axes in AXES:
            t.row("axes_" + name, op, [drawn("bool", [2, 3, 2]), ivec(*axes)])
        t.row(
            "keep",
            op,
            [given("bool", [2, 2], [True, True, False, True]), ivec(1)],
            {"keep_dims": True},
        )
        t.row(
            "int64_axis",
            op,
            [given("bool", [2, 2], [True, True, False, False]), const(vec("int64", [-1]))],
        )
        t.row("empty", op, [drawn("bool", [0]), ivec(0)])
        t.row("empty_rows", op, [drawn("bool", [0, 3]), ivec(0)])
        t.row("scalar", op, [scalar("bool", True), ivec()])
        t.row("300", op, [drawn("bool", [3, 100]), ivec(1)])
        t.row("axis_high", op, [drawn("bool", [2]), ivec(1)])
        t.row("axis_fed_high", op, [drawn("bool", [2]), vec("int32", [1])])
        t.row("float", op, [drawn("float", [2]), ivec(0)])


def arg_reductions(t):
    for op in ("ArgMax", "ArgMin"):
        t.each("", op, "F I U", lambda d: [drawn(d, [3, 7]), iscalar(1)])
        for name, axis in (("0", 0), ("1", 1), ("2", 2), ("last", -1), ("first", -3)):
            t.row("axis_" + name, op, [drawn("float", [3, 4, 5]), iscalar(axis)])
        t.row("int32_out", op, [drawn("float", [3, 4]), iscalar(0)], {"output_type": "int32"})
        t.row("int64_axis", op, [drawn("float", [3, 4]), const(scalar("int64", 1))])
        t.row("ties", op, [given("int32", [2, 4], [3, 1, 3, 1, 0, 0, 0, 0]), iscalar(1)])
        t.row(
            "special",
            op,
            [
                given(
                    "float",
                    [5, 3],
                    [1, NAN, 3, NAN, 1, 2, NAN, NAN, NAN, INF, "-inf", 0.0, -0.0, 0.0, 1],
                ),
                iscalar(1),
            ],
        )
        t.row("vector", op, [drawn("double", [300]), iscalar(0)])
        t.row("matrix_300", op, [drawn("float", [300, 3]), iscalar(0)])
        t.row("bool", op, [vec("bool", [False, True, True]), iscalar(0)])
        t.row("empty", op, [drawn("float", [0]), iscalar(0)])
        t.row("empty_other", op, [drawn("float", [0, 3]), iscalar(1)])
        t.row("scalar", op, [drawn("float", []), iscalar(0)])
        t.row("axis_high", op, [drawn("float", [2, 3]), iscalar(2)])
        t.row("axis_fed_high", op, [drawn("float", [2, 3]), scalar("int32", 2)])
        t.row("axis_vector", op, [drawn("float", [2, 3]), ivec(0)])
        t.row("fed_axis", op, [drawn("float", [2, 3]), scalar("int32", 0)])
    t.row("uint16_out", "ArgMax", [drawn("float", [3, 4]), iscalar(0)], {"output_type": "uint16"})
    t.row("int16_out", "ArgMax", [drawn("float", [3, 4]), iscalar(0)], {"output_type": "int16"})


def scans(t):
    for op, kinds in (("Cumsum", "F I U C"), ("Cumprod", "F I U C")):
        lo, hi = (0.5, 1.5) if op == "Cumprod" else (-1, 1)
        draw = lambda d, s: drawn(d, s, lo, hi) if d in F + C else drawn(d, s, 0, 4)
        t.each("", op, kinds, lambda d: [draw(d, [2, 5]), iscalar(1)])
        for axis in (0, 1, 2, -1):
            for exclusive in (False, True):
                for rev in (False, True):
                    tag = "axis%d%s%s" % (
                        axis,
                        "_exclusive" if exclusive else "",
                        "_reverse" if rev else "",
                    )
                    t.row(
                        tag,
                        op,
                        [draw("float", [2, 3, 4]), iscalar(axis)],
                        {"exclusive": exclusive, "reverse": rev},
                    )
                    if axis == 1:
                        t.row(
                            "grad_" + tag,
                            op,
                            [draw("double", [2, 3, 2]), iscalar(axis)],
                            {"exclusive": exclusive, "reverse": rev},
                            grad=True,
                        )
        t.row("vector_300", op, [drawn("float", [300], 0.9, 1.1), iscalar(0)], tol=1e-4)
        t.row("int64_axis", op, [draw("float", [3]), const(scalar("int64", 0))])
        t.row("special", op, [vec("float", [1, INF, 2, "-inf", 1, NAN, 1]), iscalar(0)])
        t.row("empty", op, [draw("float", [0, 2]), iscalar(0)])
        t.row("scalar", op, [draw("float", []), iscalar(0)])
        t.row("axis_high", op, [draw("float", [2]), iscalar(1)])
        t.row("axis_vector", op, [draw("float", [2]), ivec(0)])


def segments(t):
    for op, kinds in (
        ("SegmentSum", "F I U C"),
        ("SegmentMean", "F I U C"),
        ("SegmentProd", "F I U C"),
        ("SegmentMax", "F I U"),
        ("SegmentMin", "F I U"),
    ):
        t.each("", op, kinds, lambda d: [drawn(d, [5, 2], -2, 3), vec("int32", [0, 0, 1, 3, 3])])
        t.row("int64_ids", op, [drawn("float", [3]), vec("int64", [0, 1, 1])])
        t.row("const_ids", op, [drawn("float", [3]), ivec(0, 1, 1)])
        t.row("unsorted", op, [drawn("float", [3]), vec("int32", [1, 0, 1])])
        t.row("negative", op, [drawn("float", [3]), vec("int32", [-1, 0, 1])])
        t.row("empty", op, [drawn("float", [0, 2]), vec("int32", [])])
        t.row("first_not_zero", op, [drawn("float", [2, 2]), vec("int32", [2, 2])])
        t.row("bad_shapes", op, [drawn("float", [3]), vec("int32", [0, 1])])
        t.row("matrix_ids", op, [drawn("float", [2]), given("int32", [1, 2], [0, 1])])
        t.row("scalar", op, [drawn("float", []), vec("int32", [0])])
        t.row("rank3", op, [drawn("float", [4, 3, 17]), vec("int32", [0, 0, 0, 1])])
        t.row("grad", op, [drawn("double", [4, 2], 0.5, 2), vec("int32", [0, 0, 1, 2])], grad=True)
    for op, kinds in (
        ("UnsortedSegmentSum", "F I U C"),
        ("UnsortedSegmentProd", "F I U C"),
        ("UnsortedSegmentMax", "F I U"),
        ("UnsortedSegmentMin", "F I U"),
    ):
        t.each(
            "",
            op,
            kinds,
            lambda d: [drawn(d, [5, 2], -2, 3), vec("int32", [2, 0, 2, -1, 0]), iscalar(4)],
        )
        t.row(
            "int64_ids",
            op,
            [drawn("float", [3]), vec("int64", [1, 0, 1]), const(scalar("int64", 2))],
        )
        t.row(
            "matrix_ids",
            op,
            [drawn("float", [2, 2, 3]), given("int32", [2, 2], [0, 1, 1, 0]), iscalar(2)],
        )
        t.row("fed_count", op, [drawn("float", [3]), vec("int32", [1, 0, 1]), scalar("int32", 2)])
        t.row("id_high", op, [drawn("float", [3]), vec("int32", [1, 0, 2]), iscalar(2)])
        t.row("empty", op, [drawn("float", [0, 3]), vec("int32", []), iscalar(2)])
        t.row("no_segments", op, [drawn("float", [2]), vec("int32", [-1, -1]), iscalar(0)])
        t.row(
            "negative_count", op, [drawn("float", [2]), vec("int32", [0, 0]), scalar("int32", -1)]
        )
        t.row("scalar_id", op, [drawn("float", [3]), scalar("int32", 1), iscalar(2)])
        t.row("bad_shapes", op, [drawn("float", [3]), vec("int32", [0, 1]), iscalar(2)])
        t.row(
            "grad",
            op,
            [drawn("double", [5, 2], 0.5, 2), vec("int32", [2, 0, 2, 1, 0]), iscalar(3)],
            grad=True,
        )
        t.row(
            "grad_negative",
            op,
            [drawn("double", [4], 0.5, 2), vec("int32", [1, -1, 1, 0]), iscalar(2)],
            grad=True,
        )


def long_ones(t):
    """Adds rows that take several turns of a GPU's block, or more than one block."""
    t.row("long", "Cumsum", [drawn("float", [1, 1200]), iscalar(1)])
    flags = {"exclusive": True, "reverse": True}
    t.row("long_backwards", "Cumsum", [drawn("int64", [1, 1300]), iscalar(1)], flags)
    t.row("tiles", "Cumsum", [drawn("int8", [1, 9000], -1, 2), iscalar(1)], flags)
    for op, d in (("UnsortedSegmentSum", "double"), ("UnsortedSegmentMax", "half")):
        ids = drawn("int32", [9000], 0, 4)
        t.row("long", op, [drawn(d, [9000], -2, 2), ids, iscalar(6)])
    counts = [drawn("int32", [9000], 0, 12), scalar("int32", 10), drawn("double", [9000])]
    t.row("long", "Bincount", counts)
    for op in ("SparseSegmentMeanGrad", "SparseSegmentSumGradV2"):
        indices, ids = drawn("int32", [700], 0, 30), drawn("int32", [700], 0, 2)
        t.row("long", op, [drawn("double", [3, 2]), indices, ids, iscalar(40)])
    t.row("n40", "AddN", [[drawn("double", [3])] * 40])


def fill(t):
    reductions(t)
    arg_reductions(t)
    scans(t)
    segments(t)
    long_ones(t)
