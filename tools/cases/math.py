"""Elementwise arithmetic, reductions, matmuls, ranges, segments."""

from .base import *
from . import math_more, math_reduce

# op, dtypes, range of the random values, whether it has a gradient
UNARY = [
    ("Abs", "F I", -2, 2, True),
    ("Neg", "F I C", -2, 2, True),
    ("Sign", "F I", -2, 2, True),
    ("Square", "F I U C", -3, 3, True),
    ("Sqrt", "F C", 0.1, 4, True),
    ("Rsqrt", "F C", 0.1, 4, True),
    ("Reciprocal", "F C", 0.5, 3, True),
    ("Inv", "F C", 0.5, 3, True),
    ("Exp", "F C", -3, 3, True),
    ("Expm1", "F C", -1, 1, True),
    ("Log", "F C", 0.1, 5, True),
    ("Log1p", "F C", -0.5, 3, True),
    ("Sin", "F C", -4, 4, True),
    ("Cos", "F C", -4, 4, True),
    ("Tan", "F C", -1.2, 1.2, True),
    ("Tanh", "F C", -3, 3, True),
    ("Sigmoid", "F C", -5, 5, True),
    ("Erf", "F", -2, 2, True),
    ("Erfc", "F", -2, 2, True),
    ("Floor", "F", -4, 4, False),
    ("Ceil", "F", -4, 4, False),
    ("Round", "F", -4, 4, False),  # for integers, stock returns 0
    ("Rint", "f", -4, 4, False),
    ("IsNan", "F", -4, 4, False),
    ("IsInf", "F", -4, 4, False),
    ("IsFinite", "F", -4, 4, False),
]
EXACT = "Abs Neg Sign Floor Ceil Round Rint IsNan IsInf IsFinite".split()


def unary(t):
    for op, kinds, lo, hi, grad in UNARY:
        tol = {"tol": 0} if op in EXACT else {}
        half_steps = op in ("Round", "Rint")
        t.each("", op, kinds, lambda d: [drawn(d, [11], lo, hi)], **tol)
        t.row("scalar", op, [drawn("float", [], lo, hi)], **tol)
        t.row("empty", op, [drawn("float", [0, 3])])
        t.row("37", op, [drawn("float", [37], lo, hi)], **tol)
        t.row("rank3", op, [drawn("double", [3, 5, 7], lo, hi)], **tol)
        t.row("1000", op, [drawn("float", [8, 125], lo, hi)], **tol)
        for d in F if "F" in kinds else ["float", "double"]:
            big = SPECIAL if d != "half" else SPECIAL[:-3]
            if op == "Erf" and d == "double":  # stock returns NaN at the infinities
                big = [x for x in big if x not in (INF, "-inf")]
            t.row("special_" + d, op, [vec(d, big)], **tol)
        if half_steps:
            t.row(
                "ties",
                op,
                [vec("float", [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 8388609.0])],
                tol=0,
            )
        t.row("string", op, [drawn("string", [2])])
        if grad:
            t.each("grad", op, "f", lambda d: [drawn(d, [2, 3], lo, hi)], grad=True)
            t.each("grad", op, "half bfloat16", lambda d: [drawn(d, [5], lo, hi)], grad=True)
            t.row("grad_scalar", op, [drawn("double", [], lo, hi)], grad=True)
            t.row("grad_empty", op, [drawn("double", [0])], grad=True)
    # The complex sign divides by a rounded magnitude.
    t.each("", "Sign", "C", lambda d: [drawn(d, [11], -2, 2)])
    t.row("limits", "Abs", [vec("int8", [-128, 127, 0])])
    t.row("limits", "Neg", [vec("int32", [-2147483648, 2147483647, 0])])
    t.row("uint8", "Neg", [vec("uint8", [1])])
    t.row("values", "LogicalNot", [vec("bool", [True, False, True])])
    t.row("empty", "LogicalNot", [given("bool", [0], [])])
    t.row("37", "LogicalNot", [drawn("bool", [37])])
    t.row("float", "LogicalNot", [vec("float", [1])])
    # y, dy -> dx
    for op, lo, hi in [
        ("SigmoidGrad", 0.1, 0.9),
        ("TanhGrad", -0.9, 0.9),
        ("SqrtGrad", 0.5, 2),
        ("RsqrtGrad", 0.5, 2),
        ("ReciprocalGrad", 0.5, 2),
        ("InvGrad", 0.5, 2),
    ]:
        t.each("", op, "F C", lambda d: [drawn(d, [11], lo, hi), drawn(d, [11])])
        t.row("scalar", op, [drawn("float", [], lo, hi), drawn("float", [])])
        t.row("empty", op, [drawn("float", [0]), drawn("float", [0])])
        t.row("300", op, [drawn("float", [300], lo, hi), drawn("float", [300])])
        t.row("shapes", op, [drawn("float", [2], lo, hi), drawn("float", [3])])
        t.row(
            "special",
            op,
            [
                given("float", [5, 1], [NAN, INF, 0.0, 1, -2]),
                given("float", [5, 1], [1, 0.0, 2, "-inf", NAN]),
            ],
        )
        t.row("grad", op, [drawn("double", [5], lo, hi), drawn("double", [5])], grad=True)


# op, dtypes, whether it has a gradient, range of the second operand
BINARY = [
    ("Add", "F I C uint8", True, -2, 2),
    ("AddV2", "F I U C", True, -2, 2),
    ("Sub", "F I U C", True, -2, 2),
    ("Mul", "F I U C", True, -2, 2),
    ("Div", "F I U C", True, 1, 4),
    ("RealDiv", "F C", True, 1, 4),
    ("DivNoNan", "F C", True, 1, 4),
    ("FloorDiv", "F I U", False, 1, 4),
    ("TruncateDiv", "I U", False, 1, 4),
    ("FloorMod", "F I U", True, 1, 4),
    ("Mod", "f i", False, 1, 4),
    ("TruncateMod", "f i", False, 1, 4),
    ("Maximum", "F I U", True, -2, 2),
    ("Minimum", "F I U", True, -2, 2),
    ("SquaredDifference", "F C i", True, -2, 2),
    ("Pow", "F I C", True, 0.5, 3),
    ("Equal", "F I U C b s Q", False, -2, 2),
    ("NotEqual", "F I U C b s Q", False, -2, 2),
    ("Less", "F I U", False, -2, 2),
    ("LessEqual", "F I U", False, -2, 2),
    ("Greater", "F I U", False, -2, 2),
    ("GreaterEqual", "F I U", False, -2, 2),
]
SHAPES = [
    ("scalars", [], []),
    ("scalar_vector", [], [5]),
    ("vector_scalar", [5], []),
    ("row_column", [3, 1], [1, 4]),
    ("suffix", [2, 3, 4], [3, 1]),
    ("lead", [4], [2, 3, 4]),
    ("rank5", [2, 1, 3, 1, 2], [1, 2, 1, 3, 1]),
    ("ones", [1, 1], [1]),
    ("empty", [0], [1]),
    ("empty_broadcast", [0, 1], [3]),
    ("37", [37], [37]),
    ("300", [300], [300]),
    ("matrix_row", [9, 17], [17]),
    ("matrix_column", [9, 17], [9, 1]),
]
BINARY_SPECIAL = [NAN, INF, "-inf", 0.0, -0.0, 1, -2]


def binary(t):
    for op, kinds, grad, lo, hi in BINARY:
        first_lo = 0.5 if op == "Pow" else -4
        a = lambda d, s: drawn(d, s, first_lo, 4) if d in F + C else drawn(d, s, -9, 10)
        b = lambda d, s: drawn(d, s, lo, hi)
        if op == "Pow":
            a = lambda d, s: drawn(d, s, 0.5 if d in F + C else -3, 4)
        t.each("", op, kinds, lambda d: [a(d, [11]), b(d, [11])])
        d0 = "int32" if op == "TruncateDiv" else "float"
        for name, s1, s2 in SHAPES:
            t.row(name, op, [a(d0, s1), b(d0, s2)])
        for d in [x for x in F if x in dtypes(kinds)]:
            t.row(
                "special_" + d,
                op,
                [given(d, [7, 1], BINARY_SPECIAL), given(d, [1, 7], BINARY_SPECIAL)],
            )
        t.row("bad_shapes", op, [a(d0, [2, 3]), b(d0, [2])])
        t.row("type_mismatch", op, [a(d0, [2]), b("int64", [2])])
        t.row(
            "bad_type",
            op,
            [drawn("bool", [2]) if op not in ("Equal", "NotEqual") else drawn("qint16", [2])] * 2,
        )
        if grad:
            fd = {"fd": False} if op in ("FloorMod",) else {}
            for name, s1, s2 in SHAPES[:7] + [SHAPES[9]]:
                t.row("grad_" + name, op, [a("double", s1), b("double", s2)], grad=True, **fd)
            t.row("grad_float", op, [a("float", [4]), b("float", [4])], grad=True, **fd)
            t.row("grad_half", op, [a("half", [4]), b("half", [4])], grad=True)
            if op in ("Maximum", "Minimum"):
                t.row(
                    "grad_ties",
                    op,
                    [vec("double", [1, 2, 3]), vec("double", [1, 3, 2])],
                    grad=True,
                    fd=False,
                )
    integers(t)
    for op in ("LogicalAnd", "LogicalOr"):
        t.row(
            "table",
            op,
            [given("bool", [2, 1], [True, False]), given("bool", [1, 2], [True, False])],
        )
        t.row("scalar", op, [drawn("bool", [5]), scalar("bool", True)])
        t.row("empty", op, [drawn("bool", [0]), drawn("bool", [1])])
        t.row("300", op, [drawn("bool", [300]), drawn("bool", [300])])
        t.row("bad_shapes", op, [drawn("bool", [2]), drawn("bool", [3])])
        t.row("int32", op, [drawn("int32", [2]), drawn("int32", [2])])
    for d in ("float", "double"):
        t.row(d, "ApproximateEqual", [vec(d, [1, 1, 1, NAN]), vec(d, [1.000001, 1.1, 1, NAN])])
        t.row(
            "tolerance_" + d,
            "ApproximateEqual",
            [vec(d, [1, 2]), vec(d, [1.2, 2.5])],
            {"tolerance": 0.3},
        )
    t.row("bad_shapes", "ApproximateEqual", [drawn("float", [2]), drawn("float", [3])])


def integers(t):
    """Adds what only integers do: truncation, division by zero, wrap-around."""
    a, b = vec("int32", [7, -7, 7, -7, 6]), vec("int32", [2, 2, -2, -2, 3])
    for op in "Div FloorDiv TruncateDiv FloorMod Mod TruncateMod".split():
        t.row("signs", op, [a, b])
        t.row("zero", op, [vec("int32", [1, 2]), vec("int32", [1, 0])])
        t.row("zero_int64_scalar", op, [vec("int64", [1, 2]), scalar("int64", 0)])
        t.row("lowest", op, [vec("int32", [-2147483648]), vec("int32", [-1])])
        if op != "TruncateDiv":
            t.row(
                "signs_float",
                op,
                [vec("float", [7, -7, 7, -7, 6.5]), vec("float", [2, 2, -2, -2, 3])],
            )
    t.row("negative_exponent", "Pow", [vec("int32", [2, 3]), vec("int32", [2, -1])])
    t.row("int_values", "Pow", [vec("int32", [2, -3, 0, 10, -1]), vec("int32", [10, 3, 0, 9, 7])])
    t.row(
        "zero_to_zero",
        "Pow",
        [vec("float", [0.0, 0.0, -2, -8]), vec("float", [0.0, -1, 3, 0.3333])],
    )
    t.row(
        "grad_zero_base",
        "Pow",
        [vec("double", [0.0, 0.0, 2]), vec("double", [2, 1, 3])],
        grad=True,
        fd=False,
    )
    for op in ("Add", "AddV2", "Sub", "Mul"):
        t.row("wrap_int8", op, [vec("int8", [127, -128, 100]), vec("int8", [1, 1, 100])])
        t.row(
            "wrap_int32",
            op,
            [vec("int32", [2147483647, -2147483648]), vec("int32", [2147483647, 3])],
        )
    t.row("wrap_uint8", "AddV2", [vec("uint8", [255, 1]), vec("uint8", [1, 2])])
    t.row("wrap_uint64", "AddV2", [vec("uint64", ["18446744073709551615"]), vec("uint64", [2])])
    t.row("string", "Add", [vec("string", ["a", "b"]), scalar("string", "z")])
    for op in ("Equal", "NotEqual"):
        no = {"incompatible_shape_error": False}
        t.row("unlike_allowed", op, [drawn("float", [2]), drawn("float", [3])], no)
        t.row("like_allowed", op, [vec("float", [1, 2]), vec("float", [1, 3])], no)
        t.row("broadcast_allowed", op, [drawn("int32", [2, 1]), drawn("int32", [3])], no)
        t.row("strings", op, [vec("string", ["a", "", "abc"]), vec("string", ["a", "b", "abd"])])
    for op in ("Less", "Greater"):
        t.row("uint64_top", op, [vec("uint64", ["18446744073709551615", 1]), vec("uint64", [1, 2])])
    t.row(
        "no_nan", "DivNoNan", [vec("float", [1, 0.0, NAN, INF]), vec("float", [0.0, 0.0, 0.0, 0.0])]
    )


def many(t):
    t.each("", "AddN", "F I U C", lambda d: [[drawn(d, [7]), drawn(d, [7]), drawn(d, [7])]])
    for n in (1, 2, 8, 9, 17):
        t.row("n%d" % n, "AddN", [[drawn("float", [3])] * n])
    t.row("scalar", "AddN", [[drawn("float", [])] * 2])
    t.row("empty", "AddN", [[drawn("float", [0, 2])] * 2])
    t.row("bad_shapes", "AddN", [[drawn("float", [2]), drawn("float", [3])]])
    t.row("type_mismatch", "AddN", [[drawn("float", [2]), drawn("double", [2])]])
    t.row("none", "AddN", [[]], {"T": "float"})
    t.row("grad", "AddN", [[drawn("double", [2, 2])] * 3], grad=True)
    t.row("two", "AccumulateNV2", [[drawn("float", [3])] * 2], {"shape": [3]})


def casts(t):
    kinds = dtypes("F I U C b")
    for src in kinds:
        for dst in kinds:
            values = (
                [True, False]
                if src == "bool"
                else (
                    [0, 1, 2, 100, 127]
                    if src[0] == "u"
                    else [0, 1, -1, 100, -128] if src[0] == "i" else [0.0, 1, -1, 1.5, -2.5, 100.25]
                )
            )
            if src in F + C and dst[0] == "u":
                values = [0.0, 1, 1.5, 100.25]
            t.row("%s_to_%s" % (src, dst), "Cast", [vec(src, values)], {"DstT": dst}, tol=0)
    for dst in ("int32", "int64"):
        t.row(
            "float_edges_to_" + dst,
            "Cast",
            [vec("float", [NAN, INF, "-inf", 1e10, -1e10, 2.9, -2.9])],
            {"DstT": dst},
        )
    t.row("float_to_uint8_edges", "Cast", [vec("float", [300, -1, 255.9])], {"DstT": "uint8"})
    t.row(
        "int64_to_int32_edges", "Cast", [vec("int64", [4294967297, -2147483649])], {"DstT": "int32"}
    )
    t.row(
        "double_to_float_edges",
        "Cast",
        [vec("double", [1e300, -1e300, 1e-300, NAN])],
        {"DstT": "float"},
    )
    t.row(
        "float_to_half_edges",
        "Cast",
        [vec("float", [65504, 65520, 1e-8, 6e-8, 2049, 2051, NAN])],
        {"DstT": "half"},
        tol=0,
    )
    t.row(
        "float_to_bfloat16_edges",
        "Cast",
        [vec("float", [3.4e38, 1.00390625, 1.01171875, NAN, 1e-30])],
        {"DstT": "bfloat16"},
        tol=0,
    )
    t.row("float_to_bool_edges", "Cast", [vec("float", [NAN, -0.0, 1e-30, 2])], {"DstT": "bool"})
    t.row(
        "truncate",
        "Cast",
        [vec("float", [1.01171875, 1.99])],
        {"DstT": "bfloat16", "Truncate": True},
        tol=0,
    )
    t.row("same", "Cast", [drawn("float", [37])], {"DstT": "float"}, tol=0)
    t.row("empty", "Cast", [drawn("float", [0, 2])], {"DstT": "int32"})
    t.row("scalar", "Cast", [scalar("int32", 3)], {"DstT": "float"})
    t.row("1000", "Cast", [drawn("int32", [1000], -1000, 1000)], {"DstT": "int64"})
    t.row("300_float_half", "Cast", [drawn("float", [300])], {"DstT": "half"}, tol=0)
    t.row("300_half_float", "Cast", [drawn("half", [300])], {"DstT": "float"}, tol=0)
    t.row("grad_float_double", "Cast", [drawn("float", [3])], {"DstT": "double"}, grad=True)
    t.row(
        "grad_double_float",
        "Cast",
        [drawn("double", [3])],
        {"DstT": "float"},
        grad=True,
        fd_tol=1e-2,
        fd=False,
    )
    t.row("grad_to_int", "Cast", [drawn("float", [3])], {"DstT": "int32"})
    t.row("string", "Cast", [drawn("string", [2])], {"DstT": "float"}, message="code-only")
    for d, out in (("float", "complex64"), ("double", "complex128")):
        x = [vec(d, [1, -2, NAN]), vec(d, [0.5, 3, INF])]
        t.row(d, "Complex", x, {"Tout": out})
        t.row("broadcast_" + d, "Complex", [drawn(d, [2, 1]), drawn(d, [3])], {"Tout": out})
        z = given(out, [3], [[1, 2], [-3, 4], [0.5, -0.25]])
        for op in ("Real", "Imag"):
            t.row(out, op, [z], {"Tout": d})
        t.row(out, "Conj", [z])
    t.row("bad_shapes", "Complex", [drawn("float", [2]), drawn("float", [3])])


def selects(t):
    for op in ("Select", "SelectV2"):
        t.each(
            "",
            op,
            "F I U C b s",
            lambda d: [drawn("bool", [9]), drawn(d, [9]), drawn(d, [9])],
            tol=0,
        )
        t.row(
            "scalar_condition",
            op,
            [scalar("bool", True), drawn("float", [2, 3]), drawn("float", [2, 3])],
        )
        t.row(
            "vector_condition",
            op,
            [vec("bool", [True, False]), drawn("float", [2, 3]), drawn("float", [2, 3])],
        )
        t.row("scalars", op, [scalar("bool", False), scalar("float", 1), scalar("float", 2)])
        t.row("empty", op, [drawn("bool", [0]), drawn("float", [0]), drawn("float", [0])])
        t.row(
            "300", op, [drawn("bool", [300]), drawn("float", [300]), drawn("float", [300])], tol=0
        )
        t.row("bad_shapes", op, [drawn("bool", [2]), drawn("float", [3]), drawn("float", [3])])
        t.row("branch_shapes", op, [drawn("bool", [2]), drawn("float", [2]), drawn("float", [3])])
        t.row("broadcast", op, [drawn("bool", [2, 1]), drawn("float", [3]), drawn("float", [])])
        t.row(
            "rank4_broadcast",
            op,
            [
                drawn("bool", [2, 1, 3, 1]),
                drawn("float", [1, 2, 1, 2]),
                drawn("float", [2, 1, 1, 1]),
            ],
        )
        t.row("condition_type", op, [drawn("float", [2]), drawn("float", [2]), drawn("float", [2])])
        t.row(
            "grad",
            op,
            [vec("bool", [True, False, True]), drawn("double", [3]), drawn("double", [3])],
            grad=True,
        )
        t.row(
            "grad_scalar_condition",
            op,
            [scalar("bool", True), drawn("double", [2, 2]), drawn("double", [2, 2])],
            grad=True,
        )
    t.row(
        "grad_vector_condition",
        "Select",
        [vec("bool", [True, False]), drawn("double", [2, 2]), drawn("double", [2, 2])],
        grad=True,
    )
    t.row(
        "grad_broadcast",
        "SelectV2",
        [given("bool", [2, 1], [True, False]), drawn("double", [3]), drawn("double", [])],
        grad=True,
    )


def products(t):
    for op in ("MatMul", "BatchMatMul", "BatchMatMulV2"):
        names = ("transpose_a", "transpose_b") if op == "MatMul" else ("adj_x", "adj_y")
        lead = [] if op == "MatMul" else [2]
        kinds = "F C i" if op == "MatMul" else "F C int16 i"
        for d in dtypes(kinds):
            t.row(d, op, [drawn(d, lead + [3, 4]), drawn(d, lead + [4, 5])], tol=loose(d))
        for ta in (False, True):
            for tb in (False, True):
                attrs = {names[0]: ta, names[1]: tb}
                x = lead + ([4, 3] if ta else [3, 4])
                y = lead + ([5, 4] if tb else [4, 5])
                tag = "%d%d" % (ta, tb)
                t.row("t" + tag, op, [drawn("float", x), drawn("float", y)], attrs, tol=1e-5)
                t.row(
                    "t_complex" + tag,
                    op,
                    [drawn("complex64", x), drawn("complex64", y)],
                    attrs,
                    tol=1e-5,
                )
                t.row("grad" + tag, op, [drawn("double", x), drawn("double", y)], attrs, grad=True)
                t.row(
                    "grad_float" + tag,
                    op,
                    [drawn("float", x), drawn("float", y)],
                    attrs,
                    grad=True,
                    tol=1e-5,
                )
        for name, x, y in [
            ("1x1", [1, 1], [1, 1]),
            ("row", [1, 7], [7, 5]),
            ("column", [5, 7], [7, 1]),
            ("outer", [5, 1], [1, 6]),
            ("no_rows", [0, 3], [3, 2]),
            ("no_inner", [2, 0], [0, 3]),
            ("no_columns", [2, 3], [3, 0]),
            ("odd", [17, 33], [33, 19]),
            ("long", [2, 300], [300, 3]),
            ("wide", [3, 5], [5, 129]),
            ("inner_mismatch", [2, 3], [4, 5]),
        ]:
            t.row(name, op, [drawn("float", lead + x), drawn("float", lead + y)], tol=1e-5)
        t.row(
            "special",
            op,
            [
                given("float", lead + [2, 2], [1, NAN, INF, 0.0] * (2 if lead else 1)),
                given("float", lead + [2, 2], [1, 2, 0.0, 3] * (2 if lead else 1)),
            ],
        )
        t.row(
            "grad_no_inner",
            op,
            [drawn("double", lead + [2, 0]), drawn("double", lead + [0, 3])],
            grad=True,
        )
        t.row("vector", op, [drawn("float", [3]), drawn("float", [3, 2])])
        t.row("type_mismatch", op, [drawn("float", lead + [2, 2]), drawn("double", lead + [2, 2])])
        t.row("bool", op, [drawn("bool", lead + [2, 2])] * 2)
    m = "BatchMatMulV2"
    t.row("rank4", m, [drawn("float", [2, 3, 2, 4]), drawn("float", [2, 3, 4, 3])], tol=1e-5)
    t.row("broadcast", m, [drawn("float", [2, 1, 2, 3]), drawn("float", [4, 3, 2])], tol=1e-5)
    t.row("matrix_batch", m, [drawn("float", [2, 3]), drawn("float", [4, 3, 2])], tol=1e-5)
    t.row("empty_batch", m, [drawn("float", [0, 2, 3]), drawn("float", [0, 3, 2])])
    t.row("bad_batch", m, [drawn("float", [2, 2, 3]), drawn("float", [3, 3, 2])])
    t.row("bad_batch", "BatchMatMul", [drawn("float", [2, 2, 3]), drawn("float", [1, 3, 2])])
    t.row(
        "grad_broadcast", m, [drawn("double", [2, 1, 2, 3]), drawn("double", [4, 3, 2])], grad=True
    )
    t.row(
        "grad_broadcast_adj",
        m,
        [drawn("double", [1, 3, 2]), drawn("double", [4, 2, 3])],
        {"adj_x": True, "adj_y": True},
        grad=True,
    )


def ranges(t):
    r = lambda d, a, b, c, **k: [const(scalar(d, a)), const(scalar(d, b)), const(scalar(d, c))]
    for d in dtypes("F i"):
        t.row("up_" + d, "Range", r(d, 0, 7, 2), tol=0)
        t.row("down_" + d, "Range", r(d, 5, -1, -2), tol=0)
    t.row("fed", "Range", [scalar("int32", 1), scalar("int32", 4), scalar("int32", 1)])
    t.row("empty", "Range", r("int32", 3, 3, 1))
    # Stock's message names the allocator that is full.
    most = (1 << 63) - 1
    t.row("most", "Range", r("int64", 0, most, 1), message="code-only")
    t.row("more", "Range", r("int64", -2, most, 1))
    t.row("step_zero", "Range", r("int32", 0, 3, 0))
    t.row("wrong_way", "Range", r("int32", 0, 3, -1))
    t.row("wrong_way_down", "Range", r("float", 3, 0, 1))
    t.row("fed_step_zero", "Range", [scalar("int32", 0), scalar("int32", 3), scalar("int32", 0)])
    t.row("fraction", "Range", r("float", 0.1, 1.0, 0.1), tol=0)
    t.row("37", "Range", r("int64", -5, 32, 1))
    t.row("vector", "Range", [ivec(0, 1), iscalar(3), iscalar(1)])
    for d in ("float", "double"):
        t.row(d, "LinSpace", [scalar(d, 1), scalar(d, 2), iscalar(5)])
        for name, start, stop in (("from", "-inf", 1), ("to", 1, INF)):
            t.row("%s_infinity_%s" % (name, d), "LinSpace", [scalar(d, start), scalar(d, stop), iscalar(4)])
        t.row("down_" + d, "LinSpace", [scalar(d, 3), scalar(d, -3), const(scalar("int64", 7))])
    t.row("one", "LinSpace", [scalar("float", 3), scalar("float", 9), iscalar(1)])
    t.row("none", "LinSpace", [scalar("float", 3), scalar("float", 9), iscalar(0)])
    t.row("fed_zero", "LinSpace", [scalar("float", 3), scalar("float", 9), scalar("int32", 0)])
    t.row("vector", "LinSpace", [vec("float", [3]), scalar("float", 9), iscalar(4)])
    t.row("many", "LinSpace", [scalar("double", 0), scalar("double", 1), iscalar(101)])


def fill(t):
    unary(t)
    binary(t)
    many(t)
    casts(t)
    selects(t)
    products(t)
    ranges(t)
    math_reduce.fill(t)
    math_more.fill(t)
    math_more.fill_sobol(t)
