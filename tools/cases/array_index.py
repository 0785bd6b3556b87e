"""Gather, scatter, diagonals, unique elements."""

from .base import *

ALL = "F I U C b s"
EXACT = {"tol": 0}


def gathers(t):
    for d in dtypes(ALL):
        t.row(d, "GatherV2", [drawn(d, [4, 3]), vec("int32", [3, 0, 3]), iscalar(0)], **EXACT)
        t.row(d, "Gather", [drawn(d, [4, 3]), vec("int32", [3, 0, 3])], **EXACT)
        t.row(d, "GatherNd", [drawn(d, [3, 4]), given("int32", [2, 2], [2, 3, 0, 1])], **EXACT)
    ids = lambda s, n: drawn("int32", s, 0, n)
    for name, s, i, axis in [
        ("scalar", [4, 3], ids([], 4), 0),
        ("matrix", [4, 3], ids([2, 2], 4), 0),
        ("axis1", [2, 5, 3], ids([4], 5), 1),
        ("last", [2, 3, 5], ids([2, 2], 5), -1),
        ("vector", [6], ids([3], 6), 0),
        ("no_ids", [4, 3], ids([0], 4), 0),
        ("empty_rows", [4, 0], ids([2], 4), 0),
        ("wide", [9, 64], ids([5], 9), 0),
        ("odd", [9, 37], ids([5], 9), 0),
        ("many", [40, 1], ids([300], 40), 0),
        ("high", [4, 3], vec("int32", [0, 4]), 0),
        ("negative", [4, 3], vec("int32", [-1]), 0),
        ("high_axis1", [2, 3], vec("int32", [3]), 1),
        ("of_empty", [0, 2], vec("int32", [0]), 0),
        ("axis_high", [4, 3], ids([2], 2), 2),
        ("axis_low", [4, 3], ids([2], 2), -3),
        ("of_scalar", [], ids([1], 1), 0),
    ]:
        t.row(name, "GatherV2", [drawn("float", s), i, iscalar(axis)])
        t.row("fed_axis_" + name, "GatherV2", [drawn("float", s), i, scalar("int32", axis)])
        if axis == 0:
            t.row(name, "Gather", [drawn("float", s), i])
    t.row(
        "int64", "GatherV2", [drawn("float", [4]), vec("int64", [3, 1]), const(scalar("int64", 0))]
    )
    t.row("int16", "GatherV2", [drawn("float", [4]), vec("int16", [3, 1]), iscalar(0)])
    t.row("axis_vector", "GatherV2", [drawn("float", [4]), vec("int32", [3, 1]), ivec(0, 0)])
    for name, s, ishape, axis, b in [
        ("1", [2, 4, 3], [2, 2], 1, 1),
        ("1_axis2", [2, 3, 4], [2, 2], 2, 1),
        ("2", [2, 2, 4], [2, 2, 3], 2, 2),
        ("negative", [2, 4], [2, 3], 1, -1),
        ("bad", [2, 4], [3, 2], 1, 1),
        ("high", [2, 4], [2], 1, 2),
        ("after_axis", [2, 4], [2, 2], 0, 1),
    ]:
        t.row(
            "batch_" + name,
            "GatherV2",
            [drawn("float", s), ids(ishape, 3 if axis else 2), iscalar(axis)],
            {"batch_dims": b},
        )
    t.row(
        "batch_grad",
        "GatherV2",
        [drawn("double", [2, 4]), given("int32", [2, 3], [0, 3, 0, 1, 1, 1]), iscalar(1)],
        {"batch_dims": 1},
        grad=True,
    )
    t.row(
        "grad",
        "GatherV2",
        [drawn("double", [4, 2]), vec("int32", [3, 0, 3]), iscalar(0)],
        grad=True,
    )
    t.row(
        "grad_axis1",
        "GatherV2",
        [drawn("double", [2, 4, 2]), vec("int32", [3, 0, 3]), iscalar(1)],
        grad=True,
    )
    t.row(
        "grad_scalar",
        "GatherV2",
        [drawn("double", [4, 2]), scalar("int32", 2), iscalar(0)],
        grad=True,
    )
    t.row("grad", "Gather", [drawn("double", [4, 2]), vec("int32", [3, 0, 3])], grad=True)
    t.row("variable", "Gather", [ref(drawn("float", [4, 2])), vec("int32", [3, 0])])
    t.row("variable", "GatherV2", [ref(drawn("float", [4, 2])), vec("int32", [3, 0]), iscalar(0)])
    for name, s, i in [
        ("slices", [3, 4], given("int32", [2, 1], [2, 0])),
        ("whole", [3, 2], given("int32", [2, 0], [])),
        ("rank3", [2, 3, 4], given("int32", [2, 2, 2], [0, 1, 1, 2, 0, 0, 1, 1])),
        ("vector", [3, 4], vec("int32", [1, 2])),
        ("int64", [3], given("int64", [2, 1], [2, 0])),
        ("no_ids", [3], given("int32", [0, 1], [])),
        ("high", [3, 4], given("int32", [1, 2], [0, 4])),
        ("negative", [3], given("int32", [1, 1], [-1])),
        ("deep", [3], given("int32", [1, 2], [0, 0])),
        ("scalar_ids", [3], scalar("int32", 0)),
        ("of_empty", [0], given("int32", [1, 1], [0])),
    ]:
        t.row(name, "GatherNd", [drawn("float", s), i])
    t.row(
        "grad",
        "GatherNd",
        [drawn("double", [3, 4]), given("int32", [3, 2], [2, 3, 0, 1, 2, 3])],
        grad=True,
    )
    t.row(
        "grad_slices",
        "GatherNd",
        [drawn("double", [3, 2]), given("int32", [2, 1], [2, 0])],
        grad=True,
    )
    t.each(
        "",
        "ScatterNd",
        "F I U C s",
        lambda d: [given("int32", [3, 1], [4, 1, 4]), drawn(d, [3]), ivec(6)],
    )
    t.row("bool", "ScatterNd", [given("int32", [2, 1], [3, 1]), vec("bool", [True, True]), ivec(6)])
    for name, i, u, s in [
        ("slices", given("int32", [2, 1], [2, 0]), [2, 3], [4, 3]),
        ("deep", given("int32", [2, 2], [2, 0, 1, 1]), [2], [4, 3]),
        ("int64", given("int64", [2, 1], [2, 0]), [2], [3]),
        ("no_ids", given("int32", [0, 1], []), [0], [3]),
        ("high", given("int32", [1, 1], [3]), [1], [3]),
        ("negative", given("int32", [1, 1], [-1]), [1], [3]),
        ("bad_updates", given("int32", [2, 1], [1, 0]), [3], [3]),
        ("bad_inner", given("int32", [2, 1], [1, 0]), [2, 2], [4, 3]),
        ("vector_ids", vec("int32", [1]), [], [3]),
    ]:
        sh = const(vec(i["dtype"], s))
        t.row(name, "ScatterNd", [i, drawn("float", u), sh])
        t.row("fed_" + name, "ScatterNd", [i, drawn("float", u), vec(i["dtype"], s)])
    t.row(
        "grad",
        "ScatterNd",
        [given("int32", [3, 1], [4, 1, 4]), drawn("double", [3, 2]), ivec(6, 2)],
        grad=True,
    )


def one_hots(t):
    hot = lambda d: [
        iscalar(4),
        scalar(d, "on" if d == "string" else True if d == "bool" else 5),
        scalar(d, "off" if d == "string" else False if d == "bool" else 1),
    ]
    t.each("", "OneHot", ALL, lambda d: [vec("int32", [0, 3, -1, 4, 2])] + hot(d))
    for ti in ("uint8", "int8", "int64"):
        t.row("ids_" + ti, "OneHot", [vec(ti, [1, 3])] + hot("float"))
    for axis in (0, 1, 2, -1, 3, -2):
        t.row(
            "axis%d" % axis,
            "OneHot",
            [given("int32", [2, 3], [0, 1, 2, 3, 0, 9])] + hot("float"),
            {"axis": axis},
        )
    t.row("scalar", "OneHot", [scalar("int32", 2)] + hot("float"))
    t.row("empty", "OneHot", [vec("int32", [])] + hot("float"))
    t.row("depth_zero", "OneHot", [vec("int32", [0]), iscalar(0)] + hot("float")[1:])
    t.row("depth_negative", "OneHot", [vec("int32", [0]), iscalar(-1)] + hot("float")[1:])
    t.row(
        "fed_depth_negative", "OneHot", [vec("int32", [0]), scalar("int32", -1)] + hot("float")[1:]
    )
    t.row("fed_depth", "OneHot", [vec("int32", [0]), scalar("int32", 3)] + hot("float")[1:])
    t.row("depth_vector", "OneHot", [vec("int32", [0]), ivec(3, 3)] + hot("float")[1:])
    t.row(
        "on_vector",
        "OneHot",
        [vec("int32", [0]), iscalar(3), vec("float", [1, 2]), scalar("float", 0)],
    )
    t.row("rows_40", "OneHot", [drawn("int32", [40], 0, 10), iscalar(10)] + hot("float")[1:])
    t.each(
        "",
        "Where",
        "F I U C b",
        lambda d: [
            given(
                d,
                [2, 4],
                (
                    [True, False, True, True, False, False, True, False]
                    if d == "bool"
                    else [1, 0, 2, 3, 0, 0, 4, 0]
                ),
            )
        ],
    )
    t.row("special", "Where", [vec("float", [0.0, -0.0, NAN, 1e-30, INF])])
    t.row("none", "Where", [given("bool", [2, 2], [False])])
    t.row("empty", "Where", [drawn("bool", [0, 2])])
    t.row("scalar", "Where", [scalar("bool", True)])
    t.row("rank3", "Where", [drawn("bool", [2, 3, 4])])
    t.row("300", "Where", [drawn("bool", [300])])
    t.each("", "InvertPermutation", "i", lambda d: [vec(d, [3, 0, 2, 1])])
    t.row("empty", "InvertPermutation", [vec("int32", [])])
    t.row("twice", "InvertPermutation", [vec("int32", [0, 0])])
    t.row("high", "InvertPermutation", [vec("int32", [0, 2])])
    t.row("matrix", "InvertPermutation", [given("int32", [1, 1], [0])])
    for op in ("Unique", "UniqueWithCounts"):
        t.each("", op, "F I U s", lambda d: [drawn(d, [9], -2, 3)])
        t.row("int64_ids", op, [vec("int32", [3, 1, 3])], {"out_idx": "int64"})
        t.row("empty", op, [vec("int32", [])])
        t.row("matrix", op, [given("int32", [1, 1], [0])])
        t.row("300", op, [drawn("int32", [300], 0, 50)])
    t.each("", "ListDiff", "F I U s", lambda d: [drawn(d, [9], -2, 3), drawn(d, [2], -2, 3)])
    t.row(
        "int64_ids",
        "ListDiff",
        [vec("int32", [3, 1, 3, 5]), vec("int32", [3])],
        {"out_idx": "int64"},
    )
    t.row("matrix", "ListDiff", [given("int32", [1, 1], [0]), vec("int32", [0])])


def diagonals(t):
    kinds = "F I U C b"
    t.each("", "Diag", "half float double i C", lambda d: [drawn(d, [3])])
    t.each("", "DiagPart", "half float double i C", lambda d: [drawn(d, [3, 3])])
    t.row("matrix", "Diag", [drawn("float", [2, 3])])
    t.row("empty", "Diag", [drawn("float", [0])])
    t.row("scalar", "Diag", [drawn("float", [])])
    t.row("rank4", "DiagPart", [drawn("float", [2, 3, 2, 3])])
    t.row("odd_rank", "DiagPart", [drawn("float", [2, 2, 2])])
    t.row("not_square", "DiagPart", [drawn("float", [2, 3])])
    t.row("grad", "Diag", [drawn("double", [3])], grad=True)
    t.row("grad", "DiagPart", [drawn("double", [3, 3])], grad=True)
    t.each("", "MatrixDiag", kinds, lambda d: [drawn(d, [2, 3])])
    t.each("", "MatrixDiagPart", kinds, lambda d: [drawn(d, [2, 3, 4])])
    t.each("", "MatrixSetDiag", kinds, lambda d: [drawn(d, [2, 3, 4]), drawn(d, [2, 3])])
    t.each(
        "",
        "MatrixBandPart",
        kinds,
        lambda d: [drawn(d, [4, 5]), const(scalar("int64", 1)), const(scalar("int64", 2))],
    )
    t.row("vector", "MatrixDiag", [drawn("float", [3])])
    t.row("scalar", "MatrixDiag", [drawn("float", [])])
    t.row("grad", "MatrixDiag", [drawn("double", [2, 3])], grad=True)
    t.row("tall", "MatrixDiagPart", [drawn("float", [4, 2])])
    t.row("vector", "MatrixDiagPart", [drawn("float", [4])])
    t.row("grad", "MatrixDiagPart", [drawn("double", [2, 3])], grad=True)
    t.row("tall", "MatrixSetDiag", [drawn("float", [4, 2]), drawn("float", [2])])
    t.row("bad_shapes", "MatrixSetDiag", [drawn("float", [3, 3]), drawn("float", [2])])
    t.row("grad", "MatrixSetDiag", [drawn("double", [3, 2]), drawn("double", [2])], grad=True)
    for lo in (-1, 0, 1, 3):
        for hi in (-1, 0, 2):
            t.row(
                "band%d_%d" % (lo, hi),
                "MatrixBandPart",
                [drawn("float", [2, 4, 5]), const(scalar("int64", lo)), const(scalar("int64", hi))],
            )
    t.row("int32", "MatrixBandPart", [drawn("float", [3, 3]), iscalar(0), iscalar(1)])
    t.row("low_high", "MatrixBandPart", [drawn("float", [3, 3]), iscalar(4), iscalar(0)])
    t.row("vector", "MatrixBandPart", [drawn("float", [3]), iscalar(0), iscalar(0)])
    t.row("empty", "MatrixBandPart", [drawn("float", [0, 3]), iscalar(0), iscalar(0)])
    t.row(
        "grad",
        "MatrixBandPart",
        [drawn("double", [3, 4]), const(scalar("int64", 1)), const(scalar("int64", 0))],
        grad=True,
    )


def fill(t):
    gathers(t)
    one_hots(t)
    diagonals(t)
