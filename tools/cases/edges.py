"""Edge cases that random comparisons with stock found: ties, NaN and infinities, single pixels,
bytes that are not valid text, ranges on one side of zero."""

import base64

from .base import *


def raw(*texts):
    """Returns a vector of strings that need not be UTF-8."""
    return vec("string", [{"b64": base64.b64encode(x).decode()} for x in texts])


def fill(t):
    resizing(t)
    cropping(t)
    suppression(t)
    segments(t)
    pools(t)
    fake_quant(t)
    texts(t)
    sparse_rows(t)
    sequences(t)
    quantized(t)
    optionals(t)
    casts(t)
    old_graphs(t)
    linear(t)
    lenient(t)
    optimizers(t)
    arguments(t)
    order_of_checks(t)


def resizing(t):
    for align in (False, True):
        for size in ([1, 1], [1, 3], [3, 1], [2, 3]):
            for out in ([1, 1], [3, 1], [1, 4], [3, 2]):
                t.row(
                    "%d_%dx%d_%dx%d" % (align, *size, *out),
                    "ResizeArea",
                    [drawn("float", [2] + size + [2], 0, 255), ivec(*out)],
                    {"align_corners": align},
                    tol=1e-6,
                )
    for op in ("ResizeBilinearGrad", "ResizeBicubicGrad"):
        for name, a in (
            ("plain", {}),
            ("corners", {"align_corners": True}),
            ("centers", {"half_pixel_centers": True}),
        ):
            for d in dtypes("F" if op == "ResizeBilinearGrad" else "f"):
                x = [drawn("float", [2, 7, 5, 3], -100, 100), drawn(d, [2, 4, 3, 3])]
                t.row(name + "_" + d, op, x, a, tol=1e-2 if d == "bfloat16" else None)
    for d in dtypes("f half"):
        x = [drawn(d, [2, 7, 5, 3]), ivec(4, 3)]
        t.row("larger_" + d, "ResizeNearestNeighborGrad", x, tol=4e-3 if d == "half" else None)


def cropping(t):
    boxes = given("float", [3, 4], [0.1, 0.2, 0.7, 0.9, 0, 0, 1, 1, 0.3, -0.1, 1.2, 0.8])
    which = vec("int32", [0, 1, 0])
    for d in dtypes("half f"):
        for method in ("bilinear", "nearest"):
            inputs = [drawn("float", [3, 4, 5, 2]), boxes, which, ivec(2, 7, 6, 2)]
            a = {"T": d, "method": method}
            tol = 4e-3 if d == "half" else None  # stock adds halves up as halves
            t.row("%s_%s" % (method, d), "CropAndResizeGradImage", inputs, a, tol=tol)
        inputs = [drawn("float", [3, 4, 5, 2], -99, 99), drawn(d, [2, 7, 6, 2], -9, 9), boxes, which]
        t.row(d, "CropAndResizeGradBoxes", inputs, tol=1e-4)


def suppression(t):
    f = "float"
    infinite = [0, 0, 1, 1, 0, 0, INF, INF, "-inf", "-inf", INF, INF, 0, "-inf", 1, INF, 5, 5, 6, 6]
    undefined = [NAN, 0, 1, 1, 0, NAN, 1, 1, 0, 0, NAN, 1, 0, 0, 1, NAN, 0, 0, 1, 1]
    large = [0, 0, 3e38, 3e38, -3e38, -3e38, 3e38, 3e38, 0, 0, 1e30, 1e30, 0, 0, 1, 1, 0, 0, 1, 2]
    tiny = [0, 0, 1e-30, 1e-30, 0, 0, 1e-30, 1e-30, 0, 0, 1, 1e-40, 0, 0, 1, 1e-40, 0, 0, 1, 1]
    scores = {
        "falling": [0.9, 0.8, 0.7, 0.6, 0.5],
        "rising": [0.5, 0.6, 0.7, 0.8, 0.9],
        "negative": [-0.1, -2, -3, -0.5, -4],
        "infinite": [INF, 0.5, INF, "-inf", 1],
        "undefined": [NAN, 0.5, 0.5, NAN, 0.1],
    }
    for kind, box in (("inf", infinite), ("nan", undefined), ("large", large), ("tiny", tiny)):
        for name, values in scores.items():
            row = "%s_%s" % (kind, name)
            given_ = [given(f, [5, 4], box), vec(f, values), scalar("int32", 5)]
            t.row(row, "NonMaxSuppression", given_)
            t.row(row, "NonMaxSuppressionV2", given_ + [scalar(f, 0.5)])
            for least in (0.2, -10):
                more = given_ + [scalar(f, 0.5), scalar(f, least)]
                row = "%s_%s_%g" % (kind, name, least)
                t.row(row, "NonMaxSuppressionV3", more)
                t.row(row, "NonMaxSuppressionV4", more, {"pad_to_max_output_size": True})
                for sigma in (0.0, 0.5):
                    a = {"pad_to_max_output_size": sigma == 0}
                    t.row("%s_%g" % (row, sigma), "NonMaxSuppressionV5", more + [scalar(f, sigma)], a)
    overlaps = given(f, [5, 5], [NAN, INF, -1, 0.5, 0.2] * 5)
    for name, values in scores.items():
        x = [overlaps, vec(f, values), scalar("int32", 5), scalar(f, 0.5), scalar(f, -10)]
        t.row(name, "NonMaxSuppressionWithOverlaps", x)
    x = [given(f, [1, 5, 1, 4], infinite), given(f, [1, 5, 1], scores["falling"])]
    x += [scalar("int32", 5), scalar("int32", 5), scalar(f, 0.5), scalar(f, 0.1)]
    t.row("infinite", "CombinedNonMaxSuppression", x, {"clip_boxes": False})
    # Areas too small for half, and sides that are the smallest half.
    small = [0, 0, 1e-4, 1e-4, 0, 0, 1e-4, 9e-5, 0, 0, 6e-8, 1, 0, 0, 6e-8, 1, 1e-3, 0, 2e-3, 3e-4]
    for d in ("half", "float"):
        x = [given(d, [5, 4], small), vec(d, [0.9, 0.8, 0.7, 0.6, 0.5]), scalar("int32", 5)]
        t.row("small_" + d, "NonMaxSuppressionV2", x + [scalar(d, 0.5)])


def segments(t):
    values = [NAN, NAN, 1, NAN, NAN, 1, 2, NAN, 3, NAN, INF, "-inf", "-inf"]
    ids = [0, 0, 1, 1, 2, 2, 3, 3, 3, 4, 5, 6, 6]
    for d in dtypes("F"):
        for op in ("SegmentMax", "SegmentMin"):
            t.row("nan_" + d, op, [vec(d, values), vec("int32", ids)])
        for op in ("UnsortedSegmentMax", "UnsortedSegmentMin"):
            t.row("nan_" + d, op, [vec(d, values), vec("int32", ids), scalar("int32", 8)])
            wide = given(d, [13, 9], [v for v in values for _ in range(9)])
            t.row("nan_wide_" + d, op, [wide, vec("int32", ids), scalar("int32", 8)])


def pools(t):
    for op in ("FractionalMaxPool", "FractionalAvgPool"):
        for size, ratio in ((6, 1.2), (12, 1.2), (11, 1.1), (22, 1.1), (7, 1.4), (10, 1.25), (9, 1.8)):
            # Stock's shape function infers pooling sequences that are one element too short.
            t.row(
                "%d_by_%g" % (size, ratio),
                op,
                [drawn("float", [1, size, size + 1, 2])],
                {"pooling_ratio": [1.0, ratio, ratio, 1.0], "deterministic": True, "seed": 3, "seed2": 7},
                wrong_static=[1, 2],
                tol=1e-6,
            )
    # At the borders, our result is -inf or NaN, too; stock's is the lowest finite number.
    for d in ("bfloat16", "float"):
        for name, values in (("minus_inf", ["-inf"] * 16), ("one", ["-inf"] * 15 + [-1e38]), ("nan", [NAN] * 16)):
            a = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 1, 1, 2, 1], "padding": "VALID"}
            t.row("%s_%s" % (name, d), "MaxPool3D", [given(d, [1, 2, 2, 4, 1], values)], a)
    # Windows smaller than the strides.
    for size in (4, 5, 6, 7):
        for ksize, stride in ((1, 2), (1, 3), (2, 3)):
            for padding in ("VALID", "SAME"):
                name = "sparse_%d_%d_%d_%s" % (size, ksize, stride, padding)
                x = drawn("float", [1, size, size, size, 2])
                a = {"ksize": [1] + [ksize] * 3 + [1], "strides": [1] + [stride] * 3 + [1], "padding": padding}
                # With leftover pixels, stock's 3-D pooling (but not its gradients, nor 2-D pooling) drops
                # some on both sides; ours starts at 0, as SAME is defined.
                if padding == "VALID" or (size - ksize) % stride < 2:
                    t.row(name, "MaxPool3D", [x], a)
                    t.row(name, "AvgPool3D", [x], a, tol=1e-6)
                    a = {"strides": [1] + [stride] * 3 + [1], "padding": padding}
                    t.row(name, "Conv3D", [x, drawn("float", [ksize] * 3 + [2, 3])], a, tol=1e-5)
                x = drawn("float", [1, size, size, 2])
                a = {"ksize": [1, ksize, ksize, 1], "strides": [1, stride, stride, 1], "padding": padding}
                t.row(name, "MaxPool", [x], a)
                t.row(name, "AvgPool", [x], a, tol=1e-6)
                a = {"strides": [1, stride, stride, 1], "padding": padding}
                t.row(name, "Conv2D", [x, drawn("float", [ksize, ksize, 2, 3])], a, tol=1e-5)


def fake_quant(t):
    for bits, narrow in ((8, False), (8, True), (3, False), (2, True), (16, False)):
        for lo, hi in ((-6, 6), (-1, 1), (0, 6), (-0.5, 10), (-3, 0), (0.1, 0.9), (-7, -1)):
            steps = 2**bits - 1 - narrow
            # Values halfway between two levels, and close to that.
            values = [lo + (hi - lo) * (k + 0.5) / steps for k in range(0, steps, max(1, steps // 60))]
            values += [v * (1 + 1e-7) for v in values] + [lo, hi, 0, lo - 1, hi + 1]
            a = {"num_bits": bits, "narrow_range": narrow}
            name = "ties_%d_%d_%g_%g" % (bits, narrow, lo, hi)
            x = vec("float", values)
            t.row(name, "FakeQuantWithMinMaxArgs", [x], dict(a, min=float(lo), max=float(hi)), tol=0)
            ends = [scalar("float", lo), scalar("float", hi)]
            t.row(name, "FakeQuantWithMinMaxVars", [x] + ends, a, tol=0)
            op = "FakeQuantWithMinMaxVarsPerChannel"
            ends = [vec("float", [lo]), vec("float", [hi])]
            t.row(name, op, [given("float", [len(values), 1], values)] + ends, a, tol=0)
            ends = [given("float", [len(values)], lo), given("float", [len(values)], hi)]
            t.row(name + "_vector", op, [x] + ends, a, tol=0)


BAD = (
    b"\xff", b"a\xffb", b"\xc3", b"\xc3(", b"\xe2\x82", b"ab\xc3\xa9", b"\x80\x80", b"\xf0\x9f\x98",
    b"\xe2\x82\xff\xac", b"\xf8\x88\x80\x80\x80", b"\xc0\x80", b"", b"ok", b"a\xc3\xa9\xff\xc3\xa9z", b"\xffa\xff",
)  # fmt: skip
# RE2 matches these as characters if a class contains all characters beyond ASCII.
SURROGATES = (b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"a\xed\xa0\x80b")


def texts(t):
    for op in ("StringUpper", "StringLower"):
        for encoding in ("", "utf-8"):
            t.row("bad_" + encoding, op, [raw(*BAD, *SURROGATES)], {"encoding": encoding})
    for i, p in enumerate(
        (".", ".*", "a.b", "..", "...", "[^a]*", "(?s).*", r"\W+", r"\pL+", r"\PL+", "", "b*", "^", "$", r"\b", "(.)(.)?", r"\x{e9}", "[\u0080-\u00ff]")
    ):
        t.row("bad_%d" % i, "RegexFullMatch", [raw(*BAD), scalar("string", p)])
        t.row("bad_%d" % i, "RegexReplace", [raw(*BAD), scalar("string", p), scalar("string", r"<\0>")])
        a = {"pattern": p, "rewrite": r"<\0>", "replace_global": False}
        t.row("bad_%d" % i, "StaticRegexReplace", [raw(*BAD)], a)
        t.row("bad_%d" % i, "StaticRegexFullMatch", [raw(*BAD)], {"pattern": p})
    for skip in (False, True):
        for i, sep in enumerate(("", " ", ",", ", ")):
            x = [vec("string", ["", " ", "a", "a,b", ",", " a , b "]), scalar("string", sep)]
            t.row("empty_%d_%d" % (skip, i), "StringSplit", x, {"skip_empty": skip})
            x = [vec("string", [""]), scalar("string", sep)]
            t.row("nothing_%d_%d" % (skip, i), "StringSplit", x, {"skip_empty": skip})
    op = "UnsortedSegmentJoin"
    x = [vec("string", ["", "a", "", "b", "", "", ""]), vec("int32", [0, 0, 0, 0, 1, 2, 2]), scalar("int32", 4)]
    t.row("empties", op, x, {"separator": ", "})
    x = [given("string", [3, 2], ["", "a", "b", "", "", "c"]), vec("int32", [0, 0, 0]), scalar("int32", 1)]
    t.row("empty_columns", op, x, {"separator": ":"})


def sparse_rows(t):
    big = given("half", [4, 3], [60000, 30000, -60000] * 4)
    index, ids = vec("int32", [0, 1, 2, 3, 0]), vec("int32", [0, 0, 0, 2, 2])
    for op in ("SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSum"):
        t.row("large_half", op, [big, index, ids])
        t.row("large_half", op + "WithNumSegments", [big, index, ids, scalar("int32", 4)])
        for d in ("half", "bfloat16"):
            x = [drawn(d, [40, 5]), given("int32", [40], list(range(40))), given("int32", [40], [0] * 33 + [1] * 7)]
            t.row("many_" + d, op, x)
            x = [drawn(d, [3, 5]), vec("int32", [0, 1, 1, 0, 1, 1, 0]), vec("int32", [0, 0, 0, 1, 1, 1, 2]), scalar("int32", 2)]
            t.row("many_" + d, op + "Grad", x)
    for d in ("half", "bfloat16", "float"):
        indices = given("int64", [60, 2], [v for i in range(60) for v in (i % 5, i // 2)])
        x = [indices, drawn(d, [60]), vec("int64", [5, 30]), drawn(d, [30, 40])]
        # Stock adds bfloat16 up as bfloat16.
        tol = 4e-2 if d == "bfloat16" else None
        t.row("many_" + d, "SparseTensorDenseMatMul", x, tol=tol)
        indices = given("int64", [60, 2], [v for i in range(60) for v in (i // 2, i % 5)])
        x = [indices, drawn(d, [60]), vec("int64", [30, 5]), drawn(d, [30, 40])]
        t.row("adjoint_" + d, "SparseTensorDenseMatMul", x, {"adjoint_a": True}, tol=tol)
        x = [indices, drawn(d, [60]), vec("int64", [30, 5]), drawn(d, [7, 5])]
        t.row("adjoint_b_" + d, "SparseTensorDenseMatMul", x, {"adjoint_b": True}, tol=tol)


def sequences(t):
    labels = [
        given("int64", [7, 2], [0, 0, 0, 1, 0, 2, 0, 3, 1, 0, 1, 1, 1, 2]),
        vec("int32", [1, 1, 1, 2, 0, 1, 3]),
    ]
    for lengths in ([6, 6], [3, 6], [2, 6], [6, 2], [4, 3]):
        for collapse in (False, True):
            for ignore in (False, True):
                a = {"preprocess_collapse_repeated": collapse, "ignore_longer_outputs_than_inputs": ignore}
                name = "longer_%d%d_%d%d" % (*lengths, collapse, ignore)
                x = [drawn("float", [6, 2, 4], -2, 2)] + labels + [vec("int32", lengths)]
                t.row(name, "CTCLoss", x, a, tol=1e-5)


def quantized(t):
    op = "QuantizeDownAndShrinkRange"
    for name, values in (
        ("positive", [5, 1 << 20, 1 << 30]),
        ("negative", [-(1 << 30), -5, -(1 << 20)]),
        ("one", [12345]),
        ("zero", [0, 0]),
        ("ends", [-(2**31), 2**31 - 1, 0, 1]),
        ("many", list(range(-(1 << 28), 1 << 28, 1 << 21))),
        ("small", list(range(-300, 300, 7))),
        ("empty", []),
    ):
        for lo, hi in ((-1, 1), (0, 255), (-100, 3), (-5, -1), (1, 5), (0, 0), (5, -5)):
            x = [vec("qint32", values), scalar("float", lo), scalar("float", hi)]
            t.row("%s_%g_%g" % (name, lo, hi), op, x, {"out_type": "quint8"})
    values = vec("qint32", [-184881, -174866, -238583, 0, 5, 1 << 20, -(1 << 30), (1 << 31) - 1])
    negative = vec("qint32", [-184881, -174866, -188288, -238583, -134479, -210513])
    for i, lo in enumerate((NAN, INF, "-inf", -1e30, 0, 1e-30, -89.61576)):
        for k, hi in enumerate((NAN, INF, "-inf", 1e30, 0, 3e38, -1)):
            x = [scalar("float", lo), scalar("float", hi)]
            if lo != INF or hi != INF:
                t.row("range_%d_%d" % (i, k), op, [values] + x, {"out_type": "quint8"})
                t.row("negative_%d_%d" % (i, k), op, [negative] + x, {"out_type": "quint8"})
    for signed in (False, True):
        for narrow in (False, True):
            for lo, hi in ((-5, -1), (-1, 0), (0, 0), (1, 5), (-3, 3), (5, -5)):
                for mode in ("HALF_TO_EVEN", "HALF_UP"):
                    a = {"signed_input": signed, "narrow_range": narrow, "range_given": True}
                    name = "%d_%d_%g_%g_%s" % (signed, narrow, lo, hi, mode)
                    x = [drawn("float", [9], -6, 6), scalar("float", lo), scalar("float", hi)]
                    t.row(name, "QuantizeAndDequantizeV2", x, dict(a, round_mode=mode, num_bits=8))
                    t.row(name, "QuantizeAndDequantizeV4", x, dict(a, round_mode=mode, num_bits=8))
                t.row(name, "QuantizeAndDequantizeV3", x + [scalar("int32", 8)], a)
    for signed in (False, True):
        x = [drawn("float", [9], -6, -1), scalar("float", 0), scalar("float", 0)]
        t.row("below_%d" % signed, "QuantizeAndDequantizeV2", x, {"signed_input": signed})


def optionals(t):
    f, i = given("float", [2], [1, 2]), scalar("int32", 3)
    opt = lambda *values: node("OptionalFromValue", [list(values)])
    get = lambda x, types, shapes: node("OptionalGetValue", [x], {"output_types": types, "output_shapes": shapes})
    two = {"output_types": ["float", "int32"], "output_shapes": [[2], []]}
    one = {"output_types": ["float"], "output_shapes": [[2]]}
    nested = {"output_types": ["variant"], "output_shapes": [[]]}
    t.row("zeros", "OptionalGetValue", [node("ZerosLike", [opt(f, i)])], two)
    t.row("zeros_none", "OptionalHasValue", [node("ZerosLike", [node("OptionalNone")])])
    inner = node("OptionalGetValue", [node("ZerosLike", [opt(opt(f))])], nested)
    t.row("zeros_nested", "OptionalGetValue", [inner], one)
    t.row("sum", "OptionalGetValue", [node("AddN", [[opt(f, i), opt(f, i), opt(f, i)]])], two)
    t.row("sum_none", "OptionalHasValue", [node("AddN", [[node("OptionalNone"), node("OptionalNone")]])])
    t.row("sum_half", "OptionalHasValue", [node("AddN", [[opt(f), node("OptionalNone")]])], message="code-only")
    inner = node("OptionalGetValue", [node("AddN", [[opt(opt(f)), opt(opt(f))]])], nested)
    t.row("sum_nested", "OptionalGetValue", [inner], one)
    rows = lambda x: node("TensorListFromTensor", [x, iscalar(-1)], {"element_dtype": "float", "shape_type": "int32"})
    for name, op in (("zeros", node("ZerosLike", [opt(rows(f))])), ("sum", node("AddN", [[opt(rows(f)), opt(rows(f))]]))):
        lst = node("OptionalGetValue", [op], nested)
        t.row(name + "_list", "TensorListStack", [lst, iscalar(-1)], {"element_dtype": "float"})


def casts(t):
    floats = [0.0, -0.0, 1, -2.3, 1e-9, 448, 449, 464, 464.1, 465, 500, 57344, 61439, 61440, 61441, 65536, 1e30]
    floats += [INF, "-inf", NAN, 2**-9, 2**-10, 3 * 2**-11, 2**-17, 2**-16, 1.5 * 2**-17, -448, 0.3, 1.0625, 1.1875]
    floats += [k / 8 * 2.0**e for e in range(-12, 9) for k in range(8, 16)]
    cast = lambda x, to: node("Cast", [x], {"DstT": to})
    for small in ("float8_e5m2", "float8_e4m3fn"):
        for d in dtypes("F"):
            t.row("%s_from_%s" % (small, d), "Cast", [cast(vec(d, floats), small)], {"DstT": "float"})
        for d in dtypes("F I U C b qint8 qint32"):
            # Numbers that every type can represent.
            x = vec("float", [0, 1, 2, 5, 14, 0.5, 28, 112] if d != "bool" else [0, 1, 0.5])
            back = "int32" if d.startswith("q") else d
            t.row("%s_to_%s" % (small, d), "Cast", [cast(cast(x, small), d)], {"DstT": back})
        other = "float8_e4m3fn" if small == "float8_e5m2" else "float8_e5m2"
        t.row("%s_to_%s" % (small, other), "Cast", [cast(cast(vec("float", floats), small), other)], {"DstT": "double"})
        t.row("%s_from_int" % small, "Cast", [vec("int32", [1, 2])], {"DstT": small})
    integers = list(range(-20, 40)) + [127, 128, 255, -128, 1000]
    for small in ("int4", "uint4"):
        for d in dtypes("I U qint8 quint8 qint32"):
            back = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}.get(d, d)
            t.row("%s_%s" % (small, d), "Cast", [cast(cast(vec("int32", integers), d), small)], {"DstT": back})
        other = "int4" if small == "uint4" else "uint4"
        t.row("%s_%s" % (small, other), "Cast", [cast(cast(vec("int32", integers), small), other)], {"DstT": "int32"})
        t.row("%s_from_float" % small, "Cast", [vec("float", [1, 2])], {"DstT": small})
        t.row("%s_to_float" % small, "Cast", [cast(vec("int32", [1, 2]), small)], {"DstT": "float"})


def old_graphs(t):
    """Adds cases that shape inference rejects, but that kernels must handle when shapes are unknown."""
    f = "float"
    for name, size in (("one", 1), ("rest", -1), ("bad", 3)):
        t.row("scalar_" + name, "Reshape", [vec(f, [7.0] if size == 1 else [7.0, 8.0]), scalar("int32", size)])
    t.row("scalar", "BroadcastTo", [scalar(f, 7.0), scalar("int32", 3)])
    for name, values, axis in (
        ("scalars", [scalar(f, 1), scalar(f, 2)], 0),
        ("scalars_axis", [scalar(f, 1), scalar(f, 2)], -1),
        ("scalar_last", [vec(f, [1]), scalar(f, 2)], 0),
        ("scalar_matrix", [given(f, [1, 1], [1]), scalar(f, 2)], 0),
    ):
        t.row(name, "ConcatV2", [values, scalar("int32", axis)])
    for shape in ([], [3], None):
        made = node("SparseConditionalAccumulator", attrs={"dtype": f, "shape": shape, "shared_name": "a"})
        for name, dims in (("none", []), ("three", [3])):
            given_ = [made, scalar("int64", 0), vec("int64", [0, 2]), vec(f, [1, 2]), vec("int64", dims)]
            t.row(
                "%s_%s" % ("any" if shape is None else len(shape), name),
                "SparseAccumulatorApplyGradient",
                given_,
                {"has_known_shape": True},
                then=[node("SparseAccumulatorTakeGradient", [made, scalar("int32", 1)], {"dtype": f})],
            )
    for name, shapes in (("none", [None]), ("scalars", [[]]), ("open", [[-1]])):
        for what, values in (("scalars", vec(f, [1, 2])), ("rows", given(f, [2, 2], [1])), ("nothing", given(f, [2, 0], []))):
            a = {"component_types": [f], "shapes": shapes, "shared_name": "b"}
            made = node("Barrier", attrs=a)
            t.row(
                "%s_%s" % (name, what),
                "BarrierInsertMany",
                [made, vec("string", ["x", "y"]), values],
                {"component_index": 0},
                then=[node("BarrierReadySize", [made])],
            )


def linear(t):
    for d in ("half", "float"):
        for adjoint in (False, True):
            x = given(d, [2, 2, 2], [2, 1, 1, 3, 0, 1, -1, 4])
            t.row("%s_%d" % (d, adjoint), "MatrixInverse", [x], {"adjoint": adjoint}, tol=2e-3 if d == "half" else None)
        t.row("singular_" + d, "MatrixInverse", [given(d, [2, 2], [1, 2, 2, 4])])
        t.row("empty_" + d, "MatrixInverse", [given(d, [0, 2, 2], [])])
        t.row("not_square_" + d, "MatrixInverse", [given(d, [2, 3], [1])])
        for full in (False, True):
            x = drawn(d, [2, 4, 3])
            t.row("%s_%d" % (d, full), "Qr", [x], {"full_matrices": full}, tol=4e-3 if d == "half" else 1e-5)



def lenient(t):
    """Adds unusual inputs that random calls found."""
    f = "float"
    for op in ("UnsortedSegmentSum", "UnsortedSegmentMax"):
        t.row("no_segments", op, [vec(f, [1, 2]), vec("int32", [0, -1]), scalar("int32", 0)])
        t.row("no_columns", op, [given(f, [2, 0], []), vec("int32", [0, 3]), scalar("int32", 2)])
        t.row("ids_int16", op, [vec(f, [1, 2, 4, 8, 16]), vec("int16", [2, 0, 2, -1, 0]), scalar("int32", 4)])
        t.row("rows_int16", op, [given(f, [3, 2], [1, 2, 4, 8, 16, 32]), vec("int16", [1, 1, 0]), scalar("int32", 2)])
    for most in (0, 1, 2, -1):
        x = vec("string", ["a b  c", "", " d ", "   "])
        t.row("blanks_%d" % most, "StringSplitV2", [x, scalar("string", "")], {"maxsplit": most})
        t.row("word_%d" % most, "StringSplitV2", [x, scalar("string", " ")], {"maxsplit": most})
    for unit in ("BYTE", "UTF8_CHAR"):
        x = [vec("string", ["abc", "d\u00e9f"]), vec("int32", [0, 1]), vec("int32", [-2, -1])]
        t.row("negative_" + unit, "Substr", x, {"unit": unit})
    texts = vec("string", ["one two", "", "12"])
    for i, rewrite in enumerate(("<\\", "<\\x>", "\\1", "\\\\", "a\\0b\\", "\\9")):
        for every in (False, True):
            a = {"replace_global": every}
            t.row("rewrite_%d_%d" % (i, every), "RegexReplace", [texts, scalar("string", r"\w+"), scalar("string", rewrite)], a)
    t.row("scalar", "Reverse", [scalar(f, 1), scalar("bool", True)])
    t.row("scalar", "ReverseV2", [scalar(f, 1), scalar("int32", 0)])
    t.row("nothing", "ReverseV2", [given(f, [0, 2], []), vec("int32", [5])])
    t.row("negative", "DynamicStitch", [[vec("int32", [1 << 30, -1])], [vec(f, [1, 2])]])
    for op, make in (("StridedSliceAssign", ref), ("ResourceStridedSliceAssign", resource)):
        for name, first, last in (("empty", 3, 3), ("beyond", 7, 9), ("some", 1, 3)):
            x = make(vec(f, [1, 2, 3, 4]))
            ends = [vec("int32", [first]), vec("int32", [last]), vec("int32", [1])]
            t.row(name, op, [x] + ends + [given(f, [2, 2], [9])])
    x = resource(given(f, [4, 3], list(range(12))))
    t.row("negative_batch", "ResourceGather", [x, vec("int32", [2, 0])], {"dtype": f, "batch_dims": -1})


def optimizers(t):
    """Adds parameters that stock rejects, and gradients with NaN and infinities."""
    f = "float"
    nan = vec(f, [1, NAN, INF, 0.5])
    var = lambda: ref(vec(f, [1, 2, 3, 4]))
    some = lambda: ref(vec(f, [0.1, 0.2, 0.3, -0.4]))
    index = vec("int32", [0, 1, 2, 3])
    n = lambda x: scalar(f, x)
    for lr, l1, l2 in ((0.1, 0.2, 0.3), (0, 0.2, 0.3), (-1, 0, 0), (0.1, -1, 0), (0.1, 0, -1), (NAN, 0, 0), (0.1, 0, 0)):
        name = "%s_%g_%g" % (lr, l1, l2)
        t.row(name, "ApplyProximalAdagrad", [var(), some(), n(lr), n(l1), n(l2), nan])
        t.row(name, "SparseApplyProximalAdagrad", [var(), some(), n(lr), n(l1), n(l2), nan, index])
        t.row(name, "ApplyProximalGradientDescent", [var(), n(lr), n(l1), n(l2), nan])
        for power in (-0.5, 0.5):
            for by_lr in (False, True):
                row = "%s_%g_%d" % (name, power, by_lr)
                a = {"multiply_linear_by_lr": by_lr}
                plain = vec(f, [1, -2, 0.1, 0.5])
                if lr != NAN:
                    t.row(row, "ApplyFtrl", [var(), ref(vec(f, [1, 2, 3, 4])), some(), plain, n(lr), n(l1), n(l2), n(power)], a, tol=1e-5)
                x = [var(), ref(vec(f, [1, 2, 3, 4])), some(), nan, index, n(lr), n(l1), n(l2)]
                t.row(row, "SparseApplyFtrl", x + [n(power)], a, tol=1e-5)
                t.row(row, "SparseApplyFtrlV2", x + [n(0.1), n(power)], a, tol=1e-5)
    for i in (4, 5, 6, 7):
        x = [var(), ref(vec(f, [1, 2, 3, 4])), some(), nan, n(0.1), n(0.2), n(0.3), n(-0.5)]
        x[i] = vec(f, [1, 2])
        t.row("vector_%d" % i, "SparseApplyFtrl", x[:4] + [index] + x[4:])
    for op in ("FusedBatchNormGrad", "FusedBatchNormGradV3"):
        x = given(f, [1, 2, 2, 2], [1, NAN, 2, INF, -3, "-inf", 4, 0.5])
        x = [drawn(f, [1, 2, 2, 2]), x, drawn(f, [2], 0.5, 1), drawn(f, [2]), drawn(f, [2], 0.5, 1)]
        x += [drawn(f, [2])] if op.endswith("3") else []
        t.row("constant", op, x, {"is_training": False}, tol=1e-5)
    x = [vec(f, [1, NAN, INF, 0.5]), vec(f, [-3, 0.5, 7, -9]), scalar(f, -1), scalar(f, 1)]
    t.row("nan", "FakeQuantWithMinMaxVarsGradient", x)
    x = [given(f, [2, 2], [1, NAN, INF, 0.5]), given(f, [2, 2], [-3, 0.5, 7, -9]), vec(f, [-1, -1]), vec(f, [1, 1])]
    t.row("nan", "FakeQuantWithMinMaxVarsPerChannelGradient", x)
    made = node("Barrier", attrs={"component_types": [f], "shapes": [[]], "shared_name": "n"})
    nothing = [made, vec("string", []), vec(f, [])]
    t.row("no_keys", "BarrierInsertMany", nothing, {"component_index": 0}, then=[node("BarrierReadySize", [made])])
    queue = node("PriorityQueueV2", attrs={"component_types": ["string"], "shapes": [[]]})
    for i, key in enumerate([scalar("int64", 1), vec("int64", [0, 2]), given("int64", [2, 2], [0])]):
        t.row("priority_%d" % i, "QueueEnqueueV2", [queue, [key, scalar("string", "a")]])
        if i > 0:  # for a scalar, stock reads a size that does not exist
            t.row("priority_%d" % i, "QueueEnqueueManyV2", [queue, [key, vec("string", ["a", "b"])]])


def arguments(t):
    """Adds bad arguments that stock checks early, late or not at all."""
    f = "float"
    made = node("ConditionalAccumulator", attrs={"dtype": f, "shape": [2], "shared_name": "stale"})
    count = node("AccumulatorNumAccumulated", [made])
    for step in (-1, 0):
        t.row("step_%d" % step, "AccumulatorApplyGradient", [made, scalar("int64", step), vec(f, [1, 2, 3])], then=[count])
    for rate in (0.02, 0.5, 1.5, 2.5):
        t.row("rate_%g" % rate, "AudioSummaryV2", [scalar("string", "t"), given(f, [1, 1], [0.5]), scalar(f, rate)])
    for name, size in (("frames", [1, 0, 2]), ("channels", [1, 2, 0]), ("sounds", [0, 2, 0])):
        t.row("no_" + name, "AudioSummaryV2", [scalar("string", "t"), given(f, size, []), scalar(f, 8)])
    x = drawn(f, [1, 4, 4, 2])
    t.row("depth_stride", "AvgPool", [x], {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 2], "padding": "VALID"})
    a = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
    for name, size, dy in (
        ("larger", [1, 2, 4, 2], [1, 3, 2, 2]),
        ("by_a_window", [1, 4, 4, 2], [1, 3, 3, 2]),
        ("no_batch", [1, 4, 4, 2], [0, 2, 2, 1]),
        ("no_batch_larger", [1, 4, 4, 2], [0, 9, 2, 2]),
    ):
        t.row(name, "AvgPoolGrad", [ivec(*size), drawn(f, dy)], a)
        if dy[0]:
            window = {k: a[k][:2] + a[k][1:] for k in ("ksize", "strides")}
            size, dy = size[:2] + size[1:], dy[:2] + dy[1:]
            t.row(name, "AvgPool3DGrad", [ivec(*size), drawn(f, dy)], dict(window, padding="SAME"))
    t.row("no_depth", "AvgPoolGrad", [ivec(1, 4, 4, 0), drawn(f, [1, 2, 2, 1])], dict(a, ksize=[1, 2, 2, 2]))
    t.row("none_larger", "AvgPool3DGrad", [ivec(1, 0, 4, 4, 2), drawn(f, [1, 2, 2, 2, 2])],
          {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"})  # fmt: skip
    for op in ("MatrixDiagV2", "MatrixDiagV3"):
        for i, name in ((2, "rows"), (3, "columns")):
            x = [vec(f, [1, 2, 3]), scalar("int32", 0), scalar("int32", 3), scalar("int32", 3), scalar(f, 0)]
            x[i] = vec("int32", [3])
            t.row("fed_%s_vector" % name, op, x)
    for bits, low, high in ((3, 0.5, 1), (4, 1, 3), (8, 1, 3)):
        name, x = "above_zero_%d" % bits, [vec(f, [0.25, 0.5, 1, 1.5])]
        t.row(name, "FakeQuantWithMinMaxArgs", x, {"min": low, "max": high, "num_bits": bits})
        t.row(name, "FakeQuantWithMinMaxVars", x + [scalar(f, low), scalar(f, high)], {"num_bits": bits})
        x = [given(f, [4, 1], [0.25, 0.5, 1, 1.5]), vec(f, [low]), vec(f, [high])]
        t.row(name, "FakeQuantWithMinMaxVarsPerChannel", x, {"num_bits": bits})
    for i, text in enumerate([b"\xff\xfe", b"\x80", b"\xc3\xa4", b"\xed\xa0\x80"]):
        summary = b"\n" + bytes([2 + len(text)]) + b"\n" + bytes([len(text)]) + text
        t.row("tag_%d" % i, "MergeSummary", [[raw(summary)]])
    for d in ("float", "double"):
        dy = vec(d, [1, -1, NAN, INF, "-inf", NAN, INF, -2])
        x = [dy, vec(d, [0.5, 3, 3, -4, 5, 0, 0.1, 0.2]), scalar(d, -1), scalar(d, 2)]
        t.row("nan_" + d, "QuantizeAndDequantizeV4Grad", x)
    for op in ("FractionalMaxPool", "FractionalAvgPool"):
        for pseudo in (False, True):
            a = {"pooling_ratio": [1, 2, 1.4, 1], "pseudo_random": pseudo, "deterministic": True, "seed": 3, "seed2": 7}
            t.row("even_rows_%d" % pseudo, op, [drawn(f, [1, 8, 23, 1])], a, wrong_static=[1, 2])
    sizes, starts = vec("int64", [2, 5, 7, 2]), [vec("int64", [0, 1, 3, 5]), vec("int64", [0, 2, 4, 5, 7])]
    for name, dy in (("no_rows", [2, 0, 4, 2]), ("no_columns", [2, 3, 0, 2])):
        t.row(name, "FractionalAvgPoolGrad", [sizes, drawn(f, dy)] + starts)
    for name, size in (("no_batch", [0, 4, 4, 1]), ("no_rows", [1, 0, 4, 1]), ("no_depth", [1, 4, 4, 0])):
        t.row(name, "MaxPoolWithArgmax", [drawn(f, size)], {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "SAME"})
    for i, pattern in enumerate(["/dev/", "/dev/null/", "/dev//null", "//dev", "/dev/nul?/", "/nothing/"]):
        t.row("slash_%d" % i, "MatchingFiles", [scalar("string", pattern)])
    for op in ("MatrixDiagV2", "MatrixDiagV3", "MatrixDiagPartV2", "MatrixDiagPartV3"):
        is_part = "Part" in op
        x = [drawn(f, [3, 3] if is_part else [3]), scalar("int32", 0)] + ([] if is_part else [scalar("int32", 3)] * 2)
        t.row("fed_padding_vector", op, x + [vec(f, [7])])


def order_of_checks(t):
    """Adds inputs with several errors, and empty inputs: they show which check comes first."""
    f = "float"
    for op in ("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor", "ResizeArea"):
        for name, size, out in (
            ("channels", [0, 2, 2, 0], [3, 3]),
            ("channels_some", [1, 2, 2, 0], [3, 3]),
            ("channels_height", [1, 0, 2, 0], [3, 3]),
            ("channels_out", [1, 2, 2, 0], [0, 3]),
            ("height_out", [1, 0, 2, 1], [0, 3]),
            ("no_images", [0, 2, 2, 1], [3, 3]),
        ):
            t.row(name, op, [given(f, size, []), ivec(*out)])
    for size in ([0, 2, 2, 0], [1, 2, 2, 0], [1, 0, 2, 0], [0, 2, 2, 1]):
        x = [given(f, size, []), ivec(3, 3), vec(f, [1, 1]), vec(f, [0, 0])]
        t.row("channels_%d%d%d%d" % tuple(size), "ScaleAndTranslate", x)
    for op in ("ResizeBilinearGrad", "ResizeBicubicGrad"):
        for dy, x in (
            ([2, 0, 4, 1], [2, 3, 3, 1]),
            ([2, 3, 0, 1], [2, 3, 3, 1]),
            ([2, 0, 4, 1], [2, 0, 3, 1]),
            ([0, 3, 4, 1], [2, 3, 3, 1]),
            ([2, 3, 4, 0], [2, 3, 3, 0]),
        ):
            name = "".join(map(str, dy + ["_"] + x))
            t.row(name, op, [given(f, dy, []), given(f, x, [1] if 0 not in x else [])])
    unknown = lambda d, x: node("PlaceholderWithDefault", [x], {"dtype": d, "shape": None})
    for op in ("Update", "Add", "Sub", "Mul", "Div", "Max", "Min"):
        for name, size in (("rows", [3, 2]), ("wide", [3, 5]), ("vector", [4])):
            x = [resource(given(f, [4, 2], list(range(8)))), vec("int32", []), unknown(f, given(f, size, [1]))]
            t.row("nothing_" + name, "ResourceScatter" + op, x)
    for mask in (1, 2, 3, 6, -1):
        x = [vec(f, [1, 2, 3]), ivec(0), ivec(2), ivec(1)]
        t.row("ellipsis_%d" % mask, "StridedSlice", x, {"ellipsis_mask": mask})
        x = [resource(vec(f, [1, 2, 3]))] + x[1:] + [vec(f, [7, 8, 9])]
        t.row("ellipsis_%d" % mask, "ResourceStridedSliceAssign", x, {"ellipsis_mask": mask})
    for name, size, dims in (
        ("first", [0, 3], [False, True]),
        ("second", [3, 0], [False, True]),
        ("first_few", [0, 3], [True]),
        ("second_few", [3, 0], [True]),
    ):
        t.row("none_" + name, "Reverse", [given(f, size, []), vec("bool", dims)])
    places = given("int64", [2, 2], [0, 1, 1, 0])
    for d in ("int32", "uint8", f):
        for name, dense in (("named", [1, 0, 2, 3]), ("other", [0, 1, 2, 3]), ("none", [4, 1, 2, 3])):
            x = [places, vec(d, [6, 8]), vec("int64", [2, 2]), given(d, [2, 2], dense)]
            t.row("zero_%s_%s" % (name, d), "SparseDenseCwiseDiv", x)
    x = [places, vec(f, [6, 8]), vec("int64", [2, 2]), given(f, [2, 2], [1, -0.0, 2, 3])]
    t.row("zero_negative", "SparseDenseCwiseDiv", x)
    far = given("int64", [2, 2], [0, 1, 5, 0])
    x = [far, vec("int32", [6, 8]), vec("int64", [2, 2]), given("int32", [2, 2], [0, 1, 2, 3])]
    t.row("zero_far", "SparseDenseCwiseDiv", x)
    for name, sizes, target in (
        ("same", [3, 4], [3, 4]),
        ("same_open", [3, 4], [-1, 4]),
        ("other", [3, 4], [4, 3]),
    ):
        x = [given("int64", [3, 2], [0, 1, -1, 3, 2, 9]), vec("int64", sizes), vec("int64", target)]
        t.row("far_" + name, "SparseReshape", x)
    for rows in (-4, 0, 2):
        x = [given("int64", [0, 2], []), vec("int32", []), vec("int64", [rows, 1]), vec(f, [])]
        t.row("rows_%d" % rows, "SparseCountSparseOutput", x, {"binary_output": False})
    for name, indices, dims in (
        ("no_dims", ivec(), ivec()),
        ("one", ivec(), ivec(1)),
        ("zero", ivec(), ivec(2, 0)),
        ("only_dims", ivec(0), ivec()),
        ("scalar", scalar("int32", 0), ivec()),
    ):
        t.row("nothing_" + name, "UnravelIndex", [indices, dims])
    for prefix in ("", "Resource"):
        made = node(prefix + "ConditionalAccumulator", attrs={"dtype": f, "shape": [2], "shared_name": "late"})
        for step in (-1, 0):
            x = [made, scalar("int64", step), vec(f, [1, 2, 3])]
            t.row("late_%d" % step, prefix + "AccumulatorApplyGradient", x)
    made = node("SparseConditionalAccumulator", attrs={"dtype": f, "shape": [3, 2], "shared_name": "late"})
    for step in (-1, 0):
        x = [made, scalar("int64", step), vec("int64", [1]), given(f, [1, 3], [1]), vec("int64", [3, 3])]
        t.row("late_%d" % step, "SparseAccumulatorApplyGradient", x, {"has_known_shape": True})
    for name, shape in (("other", [2]), ("rank", [1, 3]), ("open", [-1]), ("same", [3])):
        array = node("TensorArrayV3", [iscalar(2)], {"dtype": f}, id="ta")
        flow = use("ta", 1)
        for i in (0, 1):
            flow = node("TensorArrayWriteV3", [use("ta"), iscalar(i), vec(f, [1, 2, 3]), flow])
        t.row("element_" + name, "TensorArrayGatherV3", [array, ivec(1, 0), flow], {"dtype": f, "element_shape": shape})
    whole = given(f, [2, 2], [1, 2, 3, 4])
    for op in ("Update", "Add", "Sub", "Max", "Min"):
        t.row("depth_0", "TensorScatter" + op, [whole, unknown("int32", vec("int32", [])), whole])
        x = [whole, unknown("int32", given("int32", [2, 0], [])), given(f, [2, 2, 2], [1])]
        t.row("depth_0_twice", "TensorScatter" + op, x)
    t.row("depth_0", "ScatterNdNonAliasingAdd", [whole, unknown("int32", vec("int32", [])), whole])
    x = [whole, unknown("int32", given("int32", [2, 0], [])), given(f, [2, 2, 2], [1])]
    t.row("depth_0_twice", "ScatterNdNonAliasingAdd", x)
    for op in ("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad"):
        for name, index, ids in (("index", [5, 0], [0, 1]), ("id", [0, 0], [-1, 1]), ("last", [0, 0], [0, 7]), ("none", [], [])):
            x = [given(f, [2, 2], [1]), vec("int32", index), vec("int32", ids), scalar("int32", 0)]
            t.row("no_rows_" + name, op, x)
            t.row("no_rows_" + name, op + "V2", x)
            x = [given(f, [2, 0], []), vec("int32", index), vec("int32", ids), scalar("int32", 3)]
            t.row("no_columns_" + name, op, x)
    for d in (f, "double", "half", "complex64"):
        for zero in (0, -0.0):
            x = [resource(given(d, [4], [1])), vec("int32", [3, 0]), vec(d, [2, zero])]
            t.row("zero_%s_%s" % (zero, d), "ResourceScatterDiv", x)
    n = lambda x: scalar(f, x)
    thin = lambda: ref(given(f, [5, 0], []))
    for rows in ([], [4, 0]):
        dy, index = given(f, [len(rows), 0], []), vec("int32", rows)
        more = lambda *x: [dy, index] + [n(a) for a in x]
        t.row("thin_%d" % len(rows), "SparseApplyProximalGradientDescent", [thin(), n(0.1), n(0), n(0), dy, index])
        t.row("thin_%d" % len(rows), "SparseApplyProximalAdagrad", [thin(), thin(), n(0.1), n(0), n(0), dy, index])
        t.row("thin_%d" % len(rows), "SparseApplyAdagradDA", [thin(), thin(), thin()] + more(0.1, 0, 0) + [scalar("int64", 3)])
        t.row("thin_%d" % len(rows), "SparseApplyAdagrad", [thin(), thin(), n(0.1), dy, index])
        t.row("thin_%d" % len(rows), "SparseApplyFtrl", [thin(), thin(), thin()] + more(0.1, 0, 0, -0.5))
        t.row("thin_%d" % len(rows), "SparseApplyAdagradV2", [thin(), thin(), n(0.1), n(0.1), dy, index])
        t.row("thin_%d" % len(rows), "SparseApplyFtrlV2", [thin(), thin(), thin()] + more(0.1, 0, 0, 0.1, -0.5))
        t.row("thin_%d" % len(rows), "SparseApplyMomentum", [thin(), thin(), n(0.1), dy, index, n(0.9)])
        t.row("thin_%d" % len(rows), "SparseApplyAdadelta", [thin(), thin(), thin(), n(0.1), n(0.9), n(0.1), dy, index])
        t.row("thin_%d" % len(rows), "SparseApplyRMSProp", [thin(), thin(), thin(), n(0.1), n(0.9), n(0.1), n(0.1), dy, index])
    for unit in ("BYTE", "UTF8_CHAR"):
        for pos in (-1, -4, 3, 4):
            for size in (-1, 0):
                x = [vec("string", ["abc"]), vec("int32", [pos]), vec("int32", [size])]
                t.row("edge_%d_%d_%s" % (pos, size, unit), "Substr", x, {"unit": unit})
    for name, dims in (("first", [-1, 4]), ("second", [4, -1]), ("two", [-2, -2]), ("zero", [-1, 0]), ("zero_first", [0, -1])):
        for index in (-5, 0, 1):
            t.row("negative_%s_%d" % (name, index), "UnravelIndex", [scalar("int64", index), vec("int64", dims)])
    for covered in (-1, 1, 2, NAN):
        boxes = given(f, [1, 1, 4], [0.1, 0.2, 0.6, 0.7])
        x = [ivec(100, 90, 3), boxes, scalar(f, covered)]
        t.row("covered_%s" % covered, "SampleDistortedBoundingBoxV2", x, {"seed": 7, "seed2": 1})
