"""Special functions, counting, sparse segments."""

from .base import *

UNARY = [
    ("Acos", "F C", -0.9, 0.9),
    ("Asin", "F C", -0.9, 0.9),
    ("Atan", "F C", -3, 3),
    ("Sinh", "F C", -2, 2),
    ("Cosh", "F C", -2, 2),
    ("Acosh", "F C", 1.2, 4),
    ("Asinh", "F C", -3, 3),
    ("Atanh", "F C", -0.9, 0.9),
    ("Lgamma", "half f", 0.5, 4),
    ("Digamma", "half f", 0.5, 4),
    ("Erfinv", "f", -0.9, 0.9),
    ("Ndtri", "f", 0.1, 0.9),
]
BINARY = [
    ("Atan2", "F", -2, 2),
    ("Xdivy", "F C", 0.5, 2),
    ("Xlogy", "F C", 0.5, 2),
    ("Xlog1py", "F C", 0.5, 2),
    ("MulNoNan", "F C", -2, 2),
    ("NextAfter", "f", -2, 2),
    ("Igamma", "f", 0.5, 3),
    ("Igammac", "f", 0.5, 3),
    ("IgammaGradA", "f", 0.5, 3),
    ("Zeta", "f", 1.5, 4),
    ("Polygamma", "f", 1, 3),
]


def fill(t):
    for op, kinds, lo, hi in UNARY:
        tol = 1e-5
        for d in dtypes(kinds):
            t.row(d, op, [drawn(d, [9], lo, hi)], tol=max(loose(d), 1e-12))
        t.row(
            "special", op, [vec("float", [NAN, INF, "-inf", 0.0, -0.0, 1, -1, 0.5, -2.5])], tol=tol
        )
        t.row("scalar", op, [drawn("double", [], lo, hi)], tol=1e-12)
        t.row("empty", op, [drawn("float", [0])])
        t.row("37", op, [drawn("float", [37], lo, hi)], tol=tol)
        t.row("int32", op, [drawn("int32", [2])])
        t.row("grad", op, [drawn("double", [2, 3], lo, hi)], grad=True, tol=1e-11)
    for op, kinds, lo, hi in BINARY:
        for d in dtypes(kinds):
            if op == "Polygamma":
                t.row(
                    d, op, [vec(d, [1, 2, 3, 1]), drawn(d, [4], 0.5, 3)], tol=max(loose(d), 1e-11)
                )
            else:
                t.row(
                    d, op, [drawn(d, [9], lo, hi), drawn(d, [9], lo, hi)], tol=max(loose(d), 1e-11)
                )
        t.row(
            "broadcast",
            op,
            [given("double", [2, 1], [1, 2]), drawn("double", [3], lo, hi)],
            tol=1e-11,
        )
        t.row("bad_shapes", op, [drawn("float", [2], lo, hi), drawn("float", [3], lo, hi)])
        t.row(
            "special",
            op,
            [vec("float", [0.0, 0.0, 0.0, 1, NAN]), vec("float", [0.0, NAN, INF, 0.0, 1])],
            tol=1e-5,
        )
        if op not in ("NextAfter", "IgammaGradA"):
            t.row(
                "grad",
                op,
                [drawn("double", [3], lo, hi), drawn("double", [3], lo, hi)],
                grad=True,
                tol=1e-9,
                fd=op not in ("Zeta", "Polygamma", "Igamma", "Igammac"),
            )
    t.row(
        "values",
        "Betainc",
        [vec("double", [0.5, 2, 3]), vec("double", [1, 2, 0.5]), vec("double", [0.2, 0.5, 0.9])],
        tol=1e-11,
    )
    t.row(
        "scalar",
        "Betainc",
        [scalar("float", 2), vec("float", [1, 2]), scalar("float", 0.3)],
        tol=1e-5,
    )
    counting(t)
    sparse_segments(t)
    complex_parts(t)


def complex_parts(t):
    for z, r in (("complex64", "float"), ("complex128", "double")):
        x = given(z, [4], [[3, 4], [-1, 0.0], [0.0, -2], [0.0, 0.0]])
        t.row(z, "ComplexAbs", [x], {"Tout": r})
        t.row(z, "Angle", [x], {"Tout": r})
    for d in dtypes("f i"):
        t.row(d, "Cross", [drawn(d, [2, 3]), drawn(d, [2, 3])])
    t.row("not_three", "Cross", [drawn("float", [2]), drawn("float", [2])])
    t.row("grad", "Cross", [drawn("double", [2, 3]), drawn("double", [2, 3])], grad=True)
    for d in dtypes("F I uint8 uint16"):
        t.row(d, "ClipByValue", [drawn(d, [9], -4, 5), scalar(d, 0), scalar(d, 2)])
    t.row(
        "vectors",
        "ClipByValue",
        [drawn("float", [3], -4, 4), vec("float", [-1, -1, 0.0]), vec("float", [1, 0.0, 2])],
    )
    t.row(
        "special",
        "ClipByValue",
        [vec("float", [NAN, INF, "-inf"]), scalar("float", -1), scalar("float", 1)],
    )
    t.row(
        "bad_shapes", "ClipByValue", [drawn("float", [3]), vec("float", [1, 2]), scalar("float", 1)]
    )
    t.row(
        "grad",
        "ClipByValue",
        [drawn("double", [5], -2, 2), scalar("double", -1), scalar("double", 1)],
        grad=True,
    )
    m = "BatchMatMulV3"
    t.row(
        "float",
        m,
        [drawn("float", [2, 2, 3]), drawn("float", [2, 3, 2])],
        {"Tout": "float"},
        tol=1e-5,
    )
    t.row(
        "adj",
        m,
        [drawn("float", [2, 3, 2]), drawn("float", [2, 2, 3])],
        {"Tout": "float", "adj_x": True, "adj_y": True},
        tol=1e-5,
    )
    t.row("int8", m, [drawn("int8", [2, 3]), drawn("int8", [3, 2])], {"Tout": "int32"})
    for d in ("float", "bfloat16"):
        for a in (False, True):
            attrs = {"transpose_a": a, "transpose_b": not a, "a_is_sparse": a}
            t.row(
                "%s_%d" % (d, a),
                "SparseMatMul",
                [drawn(d, [3, 4] if not a else [4, 3]), drawn(d, [4, 5] if a else [5, 4])],
                attrs,
                tol=loose("bfloat16") if d == "bfloat16" else 1e-5,
            )


def counting(t):
    for d in dtypes("f i"):
        t.row(d, "Bucketize", [drawn(d, [9], -4, 8)], {"boundaries": [-1.0, 2.0, 5.0]})
        t.row(d, "Bincount", [vec("int32", [1, 3, 1, 7]), scalar("int32", 5), vec(d, [1, 2, 3, 4])])
    t.row("edges", "Bucketize", [vec("float", [0.0, 1, 10, NAN])], {"boundaries": [0.0, 1.0, 10.0]})
    t.row("unsorted", "Bucketize", [drawn("float", [2])], {"boundaries": [1.0, 0.0]})
    t.row("none", "Bucketize", [drawn("float", [2])], {"boundaries": []})
    t.row(
        "no_weights",
        "Bincount",
        [given("int32", [2, 2], [0, 2, 2, 1]), scalar("int32", 3), vec("float", [])],
    )
    many = [(i * i) % 11 for i in range(59)]  # some are beyond the last bin
    for d in dtypes("f i"):
        for index in ("int32", "int64"):
            for name, binary in (("many", False), ("many_binary", True)):
                t.row(
                    "%s_%s_%s" % (name, index, d),
                    "DenseBincount",
                    [given(index, [59], many), scalar(index, 8), vec(d, [])],
                    {"binary_output": binary},
                )
    t.row(
        "negative_among_many",
        "DenseBincount",
        [vec("int32", many + [-1]), scalar("int32", 8), vec("float", [])],
    )
    t.row("negative", "Bincount", [vec("int32", [-1]), scalar("int32", 3), vec("float", [])])
    t.row("negative_size", "Bincount", [vec("int32", [1]), scalar("int32", -1), vec("float", [])])
    for d in dtypes("f i"):
        t.row(
            d,
            "DenseBincount",
            [vec("int32", [1, 3, 1, 7]), scalar("int32", 5), vec(d, [1, 2, 3, 4])],
        )
    t.row(
        "rows",
        "DenseBincount",
        [given("int64", [2, 3], [0, 2, 2, 1, 1, 0]), scalar("int64", 3), vec("float", [])],
    )
    t.row(
        "binary",
        "DenseBincount",
        [given("int32", [2, 3], [0, 2, 2, 1, 1, 0]), scalar("int32", 3), vec("float", [])],
        {"binary_output": True},
    )
    t.row("negative", "DenseBincount", [vec("int32", [-1]), scalar("int32", 3), vec("float", [])])
    for d in dtypes("f i"):
        t.row(d, "HistogramFixedWidth", [vec(d, [-1, 0, 1, 2, 5, 15]), vec(d, [0, 5]), iscalar(5)])
    t.row(
        "int64_out",
        "HistogramFixedWidth",
        [vec("float", [1, 2]), vec("float", [0, 5]), iscalar(5)],
        {"dtype": "int64"},
    )
    t.row(
        "bad_range",
        "HistogramFixedWidth",
        [vec("float", [1, 2]), vec("float", [5, 0]), scalar("int32", 5)],
    )
    t.row(
        "no_bins",
        "HistogramFixedWidth",
        [vec("float", [1, 2]), vec("float", [0, 5]), scalar("int32", 0)],
    )
    for op in ("LowerBound", "UpperBound"):
        for d in dtypes("f i"):
            t.row(
                d,
                op,
                [given(d, [2, 4], [0, 3, 9, 9, 1, 2, 3, 4]), given(d, [2, 3], [9, 4, 0, 5, 2, 1])],
            )
        t.row(
            "int64_out",
            op,
            [given("float", [1, 2], [0, 3]), given("float", [1, 1], [2])],
            {"out_type": "int64"},
        )
        t.row("bad_shapes", op, [drawn("float", [2, 2]), drawn("float", [1, 2])])


def sparse_segments(t):
    for op in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
        for d in F:
            t.row(
                d,
                op,
                [drawn(d, [4, 2]), vec("int32", [3, 0, 3]), vec("int32", [0, 0, 2])],
                tol=loose(d),
            )
        t.row("int64", op, [drawn("float", [4, 2]), vec("int64", [3, 0]), vec("int64", [0, 1])])
        t.row("unsorted", op, [drawn("float", [4]), vec("int32", [3, 0]), vec("int32", [1, 0])])
        t.row("high", op, [drawn("float", [4]), vec("int32", [4]), vec("int32", [0])])
        t.row("empty", op, [drawn("float", [4, 2]), vec("int32", []), vec("int32", [])])
        t.row("counts", op, [drawn("float", [4]), vec("int32", [0, 1]), vec("int32", [0])])
        t.row(
            "grad",
            op,
            [drawn("double", [4, 2]), vec("int32", [3, 0, 3]), vec("int32", [0, 0, 1])],
            grad=True,
        )
        t.row(
            "float",
            op + "Grad",
            [
                drawn("float", [2, 2]),
                vec("int32", [3, 0, 3]),
                vec("int32", [0, 0, 1]),
                scalar("int32", 4),
            ],
        )
        t.row(
            "high",
            op + "Grad",
            [drawn("float", [2, 2]), vec("int32", [4]), vec("int32", [0]), scalar("int32", 4)],
        )
        chosen = [vec("int32", [3, 0, 3]), vec("int32", [0, 0, 1])]
        for d in F:
            t.row(
                d,
                op + "GradV2",
                [drawn(d, [2, 2])] + chosen + [scalar("int32", 4)],
                tol=loose(d),
            )
            t.row(
                d,
                op + "WithNumSegments",
                [drawn(d, [4, 2])] + chosen + [scalar("int32", 4)],
                tol=loose(d),
            )
        long = [vec("int64", [3, 0, 3]), vec("int64", [0, 0, 1])]
        t.row("int64", op + "GradV2", [drawn("float", [2, 2])] + long + [iscalar(9)])
        t.row("int64", op + "WithNumSegments", [drawn("float", [4, 2])] + long + [iscalar(3)])
        nothing = [vec("int32", []), vec("int32", [])]
        t.row("empty", op + "GradV2", [drawn("float", [0, 2])] + nothing + [iscalar(3)])
        t.row("empty", op + "WithNumSegments", [drawn("float", [4, 2])] + nothing + [iscalar(3)])
        t.row("few", op + "WithNumSegments", [drawn("float", [4, 2])] + chosen + [iscalar(1)])
        t.row("negative", op + "WithNumSegments", [drawn("float", [4, 2])] + chosen + [iscalar(-1)])
        t.row("high", op + "GradV2", [drawn("float", [2, 2])] + chosen + [scalar("int32", 2)])
        t.row(
            "grad",
            op + "WithNumSegments",
            [drawn("double", [4, 2])] + chosen + [iscalar(3)],
            grad=True,
        )
    t.row(
        "int32",
        "SparseSegmentSum",
        [drawn("int32", [4, 2]), vec("int32", [3, 0, 3]), vec("int32", [0, 0, 2])],
    )


def fill_sobol(t):
    op = "SobolSample"
    for d in dtypes("f"):
        for dims, count, skip in ((1, 5, 0), (3, 17, 0), (3, 8, 5), (40, 33, 1000), (1024, 3, 123456)):
            name = "%s_%d_%d_%d" % (d, dims, count, skip)
            t.row(name, op, [scalar("int32", dims), scalar("int32", count), scalar("int32", skip)], {"dtype": d}, tol=0)
    t.row("const", op, [iscalar(3), iscalar(4), iscalar(0)])
    t.row("const_dims", op, [iscalar(3), scalar("int32", 4), iscalar(0)])
    for name, numbers in (
        ("dim_0", (0, 1, 0)),
        ("dim_high", (21201, 1, 0)),
        ("count_0", (1, 0, 0)),
        ("count_low", (1, -1, 0)),
        ("skip_low", (1, 1, -1)),
        ("count_high", (1, 2, 2147483646)),
        ("results_high", (2, 1 << 30, 0)),
        ("results_high_dims", (2560, 16384000, 0)),
    ):
        t.row(name, op, [scalar("int32", n) for n in numbers])
    t.row("vector", op, [vec("int32", [1]), iscalar(1), iscalar(0)])
