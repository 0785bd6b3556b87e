"""Quantized types: quantization, dequantization and arithmetic."""

from .base import *

Q5 = ["qint8", "quint8", "qint16", "quint16", "qint32"]
FULL = {"qint8": (-128, 128), "quint8": (0, 256), "qint16": (-32768, 32768),
        "quint16": (0, 65536), "qint32": (-2000000000, 2000000000)}


def f(value):
    return scalar("float", value)


def full(dtype, shape):
    return drawn(dtype, shape, *FULL[dtype])


def into(t):
    op = "QuantizeV2"
    x = drawn("float", [3, 7], -7, 9)
    for d in Q5:
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            if d == "qint32" and mode != "SCALED":
                continue  # the result depends on the last bits of a float; a few values follow below
            a = {"T": d, "mode": mode}
            t.row("%s_%s" % (mode.lower(), d), op, [x, f(-6), f(6.5)], a)
            if d == "qint32":
                continue  # stock overflows at the upper limit
            t.row("positive_%s_%s" % (mode.lower(), d), op, [x, f(1), f(4)], a)
            t.row("negative_%s_%s" % (mode.lower(), d), op, [x, f(-5), f(-1)], a)
    for mode in ("MIN_COMBINED", "MIN_FIRST"):
        t.row("qint32_" + mode.lower(), op, [vec("float", [-6, -3, 0, 3, 5.5]), f(-6), f(6)],
              {"T": "qint32", "mode": mode})
    scaled = {"T": "qint8", "mode": "SCALED"}
    t.row("narrow", op, [x, f(-6), f(6.5)], dict(scaled, narrow_range=True))
    t.row("even", op, [vec("float", [0.5, 1.5, -0.5, -2.5, 3]), f(-127), f(127)],
          dict(scaled, round_mode="HALF_TO_EVEN"))
    t.row("away", op, [vec("float", [0.5, 1.5, -0.5, -2.5, 3]), f(-127), f(127)], scaled)
    t.row("even_combined", op, [x, f(-6), f(6)], {"T": "qint8", "round_mode": "HALF_TO_EVEN"})
    t.row("close", op, [x, f(1), f(1)], {"T": "quint8"})
    t.row("close_far", op, [x, f(-300), f(-300)], {"T": "quint8"})
    t.row("minimum_range", op, [x, f(0), f(0.1)], {"T": "quint8", "ensure_minimum_range": 0.5})
    t.row("swapped", op, [x, f(2), f(1)], {"T": "quint8"})
    t.row("vector_1", op, [x, vec("float", [-1]), vec("float", [1])], {"T": "quint8"})
    t.row("vector_2", op, [x, vec("float", [-1, 1]), vec("float", [1, 2])], {"T": "quint8"})
    t.row("max_vector", op, [x, f(-1), vec("float", [1, 2])], {"T": "quint8"})
    t.row("empty", op, [given("float", [0, 3], []), f(-1), f(1)], {"T": "quint8"})
    t.row("special", op, [vec("float", [INF, "-inf", 0.0]), f(-1), f(1)], {"T": "qint8"})
    low, high = vec("float", [-1, -4, 0]), vec("float", [2, 4, 9])
    for mode in ("MIN_COMBINED", "SCALED", "MIN_FIRST"):
        a = {"T": "qint8", "mode": mode, "axis": 0}
        t.row("axis_" + mode.lower(), op, [x, low, high], a)
    t.row("axis_last", op, [drawn("float", [2, 4, 3], -5, 5), low, high], {"T": "quint8", "axis": 2})
    t.row("axis_middle", op, [drawn("float", [2, 3, 2], -5, 5), low, high], {"T": "qint16", "axis": 1})
    for name, shape in [("long", [600, 3]), ("runs", [40, 3, 20]), ("wide", [3, 3, 70])]:
        x2 = drawn("float", shape, -5, 5)
        t.row("axis_" + name, op, [x2, low, high], {"T": "qint16", "axis": 1, "mode": "SCALED"})
        t.row("axis_" + name, "Dequantize", [full("quint8", shape), low, high], {"axis": 1})
    t.row("axis_sizes", op, [x, low, high], {"T": "quint8", "axis": 1})
    t.row("axis_scalars", op, [x, f(0), f(1)], {"T": "quint8", "axis": 1})
    t.row("axis_high", op, [x, low, high], {"T": "quint8", "axis": 2})
    t.row("axis_low", op, [x, low, high], {"T": "quint8", "axis": -2})
    t.row("axis_max", op, [x, low, vec("float", [1])], {"T": "quint8", "axis": 0})
    t.row("axis_swapped", op, [x, high, low], {"T": "quint8", "axis": 0})


def out_of(t):
    op = "Dequantize"
    for d in Q5:
        for mode in ("MIN_COMBINED", "MIN_FIRST", "SCALED"):
            t.row("%s_%s" % (mode.lower(), d), op, [full(d, [3, 7]), f(-6), f(6.5)], {"mode": mode})
        t.row("bfloat16_" + d, op, [full(d, [3, 7]), f(-6), f(6.5)], {"dtype": "bfloat16"})
        t.row("edges_" + d, op, [vec(d, [FULL[d][0], FULL[d][1] - 1]), f(-6), f(6.5)])
        low, high = vec("float", [-1, -4, 0]), vec("float", [2, 4, 9])
        for mode in ("MIN_COMBINED", "SCALED"):
            t.row("axis_%s_%s" % (mode.lower(), d), op, [full(d, [2, 3, 4]), low, high],
                  {"mode": mode, "axis": 1})
    x = full("quint8", [3, 4])
    t.row("narrow", op, [full("qint8", [9]), f(-2), f(1)], {"mode": "SCALED", "narrow_range": True})
    t.row("equal", op, [x, f(2), f(2)], {"mode": "MIN_FIRST"})
    t.row("swapped", op, [x, f(2), f(1)])
    t.row("empty", op, [given("quint8", [0], []), f(0), f(1)])
    t.row("scalar", op, [scalar("quint8", 7), f(0), f(1)])
    t.row("bfloat16_scaled", op, [x, f(0), f(1)], {"mode": "SCALED", "dtype": "bfloat16"})
    t.row("vectors", op, [x, vec("float", [0, 1]), vec("float", [2, 3])])
    t.row("max_vector", op, [x, f(0), vec("float", [2, 3])])
    t.row("vector_1", op, [x, vec("float", [0]), vec("float", [3])])
    t.row("axis_sizes", op, [x, low, high], {"axis": 1})
    t.row("axis_max", op, [x, low, vec("float", [1, 2])], {"axis": 0})
    t.row("axis_high", op, [x, low, high], {"axis": 2})
    t.row("axis_low", op, [x, low, high], {"axis": -2})
    t.row("axis_min_first", op, [x, low, high], {"axis": 0, "mode": "MIN_FIRST"})


def between(t):
    x = drawn("qint32", [3, 7], -100000, 100000)
    wide = [f(-1000.0), f(1000.0)]
    op = "QuantizeDownAndShrinkRange"
    a = {"out_type": "quint8"}
    t.row("plain", op, [x] + wide, a)
    t.row("positive", op, [drawn("qint32", [9], 5000, 100000)] + wide, a)
    t.row("uneven", op, [full("qint32", [40]), f(-3.0), f(11.0)], a)
    t.row("one", op, [vec("qint32", [0, 0]), f(-3.0), f(3.0)], a)
    t.row("empty", op, [given("qint32", [0], []), f(-3.0), f(3.0)], a)
    t.row("equal", op, [x, f(2), f(2)], a)
    t.row("vectors", op, [x, vec("float", [1, 2]), f(2)], a)
    op = "RequantizationRange"
    t.row("plain", op, [x] + wide)
    t.row("positive", op, [drawn("qint32", [9], 5000, 100000)] + wide)
    t.row("uneven", op, [full("qint32", [40]), f(-3.0), f(11.0)])
    t.row("empty", op, [given("qint32", [0], [])] + wide)
    t.row("vectors", op, [x, vec("float", [1, 2]), f(2)])
    t.row("no_min", op, [x, given("float", [0], []), f(2)])
    t.row("no_max", op, [x, f(2), given("float", [0], [])])
    op = "Requantize"
    for d in ("quint8", "qint8"):
        a = {"out_type": d}
        t.row("plain_" + d, op, [x] + wide + [f(-0.05), f(0.05)], a)
        t.row("uneven_" + d, op, [full("qint32", [40]), f(-3.0), f(11.0), f(-1.0), f(4.0)], a)
        t.row("wide_" + d, op, [full("qint32", [40]), f(-3.0), f(3.0), f(-8.0), f(4.0)], a)
        t.row("empty_" + d, op, [given("qint32", [0], [])] + wide + [f(-1.0), f(4.0)], a)
        t.row("none_" + d, op, [x] + wide + [f(0.0), f(0.0)], a)
    a = {"out_type": "quint8"}
    t.row("min_above", op, [x] + wide + [f(1.0), f(4.0)], a)
    t.row("max_below", op, [x] + wide + [f(-2.0), f(-1.0)], a)
    t.row("max_below_min", op, [x] + wide + [f(-2.0), f(-3.0)], a)
    t.row("vectors", op, [x] + wide + [vec("float", [-1, -2]), f(4.0)], a)
    for i in range(1, 5):
        limits = wide + [f(-1.0), f(4.0)]
        limits[i - 1] = given("float", [0], [])
        t.row("no_%d" % i, op, [x] + limits, a)


def products(t):
    op = "QuantizedMatMul"
    ranges = [f(-1.0), f(2.0), f(-3.0), f(1.5)]
    t.row("plain", op, [full("quint8", [2, 3]), full("quint8", [3, 4])] + ranges)
    for name, shapes in [("one", ([1, 1], [1, 1])), ("odd", ([7, 19], [19, 5])),
                         ("row", ([1, 300], [300, 37])), ("column", ([37, 20], [20, 1])),
                         ("blocks", ([50, 65], [65, 70])), ("empty", ([0, 3], [3, 2])),
                         ("nothing", ([2, 0], [0, 3]))]:
        x, y = [given("quint8", s, []) if 0 in s else full("quint8", s) for s in shapes]
        t.row(name, op, [x, y] + ranges, undefined=[0] if name == "nothing" else [])
    for ta in (False, True):
        for tb in (False, True):
            a = full("quint8", [9, 13] if ta else [13, 9])
            b = full("quint8", [6, 9] if tb else [9, 6])
            t.row("transposed_%d%d" % (ta, tb), op, [a, b] + ranges,
                  {"transpose_a": ta, "transpose_b": tb})
    m = [full("quint8", [2, 3]), full("quint8", [3, 4])]
    t.row("above_zero", op, m + [f(1.0), f(2.0), f(5.0), f(5.5)])
    t.row("below_zero", op, m + [f(-2.0), f(-1.0), f(-5.0), f(0.0)])
    t.row("equal", op, m + [f(1.0), f(1.0), f(-3.0), f(1.5)])
    t.row("swapped", op, m + [f(-1.0), f(2.0), f(3.0), f(-1.5)])
    t.row("sizes", op, [m[0], m[0]] + ranges)
    t.row("vector", op, [m[0], full("quint8", [3])] + ranges)
    t.row("vector_a", op, [full("quint8", [3]), m[1]] + ranges)
    for i in range(4):
        r = list(ranges)
        r[i] = vec("float", [1.0, 2.0])
        t.row("limits_%d" % i, op, m + r)
    r = list(ranges)
    r[1] = vec("float", [2.0])
    t.row("limit_vector_1", op, m + r)

    op = "QuantizedConv2D"
    for name, x, w, a in [
        ("plain", [1, 5, 5, 3], [3, 3, 3, 4], {}),
        ("same", [2, 5, 6, 3], [3, 2, 3, 4], {"padding": "SAME"}),
        ("stride", [2, 7, 6, 2], [3, 3, 2, 5], {"strides": [1, 2, 2, 1]}),
        ("stride_same", [1, 7, 6, 2], [3, 3, 2, 5], {"strides": [1, 2, 2, 1], "padding": "SAME"}),
        ("stride_3", [1, 9, 9, 1], [2, 2, 1, 2], {"strides": [1, 3, 3, 1], "padding": "SAME"}),
        ("point", [2, 4, 4, 7], [1, 1, 7, 3], {}),
        ("large", [1, 3, 3, 2], [5, 5, 2, 2], {"padding": "SAME"}),
        ("whole", [2, 4, 4, 3], [4, 4, 3, 2], {}),
        ("many", [1, 12, 12, 8], [3, 3, 8, 33], {"padding": "SAME"}),
        ("too_large", [1, 3, 3, 2], [5, 5, 2, 2], {}),
        ("depths", [1, 5, 5, 3], [3, 3, 2, 4], {}),
        ("rank_x", [5, 5, 3], [3, 3, 3, 4], {}),
        ("rank_w", [1, 5, 5, 3], [3, 3, 3], {}),
        ("strides_differ", [1, 5, 5, 3], [3, 3, 3, 4], {"strides": [1, 1, 2, 1]}),
        ("stride_batch", [1, 5, 5, 3], [3, 3, 3, 4], {"strides": [2, 1, 1, 1]}),
        ("strides_3", [1, 5, 5, 3], [3, 3, 3, 4], {"strides": [1, 1, 1]}),
        ("stride_0", [1, 5, 5, 3], [3, 3, 3, 4], {"strides": [1, 0, 0, 1]}),
        ("dilated", [1, 5, 5, 3], [2, 2, 3, 4], {"dilations": [1, 2, 2, 1]}),
        ("dilated_batch", [1, 5, 5, 3], [2, 2, 3, 4], {"dilations": [2, 1, 1, 1]}),
        ("dilations_3", [1, 5, 5, 3], [2, 2, 3, 4], {"dilations": [1, 1, 1]}),
    ]:
        a = dict({"strides": [1, 1, 1, 1], "padding": "VALID"}, **a)
        t.row(name, op, [full("quint8", x), full("quint8", w)] + ranges, a)
    a = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    x, w = full("quint8", [1, 4, 4, 2]), full("quint8", [3, 3, 2, 3])
    t.row("above_zero", op, [x, w, f(1.0), f(2.0), f(5.0), f(5.5)], a)
    t.row("below_zero", op, [x, w, f(-2.0), f(-1.0), f(-5.0), f(0.0)], a)
    t.row("far_above_zero", op, [x, w, f(1000.0), f(1001.0), f(-3.0), f(1.5)], a)
    t.row("far_below_zero", op, [x, w, f(-1001.0), f(-1000.0), f(-3.0), f(1.5)], a)
    t.row("equal", op, [x, w, f(1.0), f(1.0), f(-3.0), f(1.5)], a)
    t.row("no_batch", op, [given("quint8", [0, 4, 4, 2], []), w] + ranges, a)
    t.row("no_filters", op, [x, given("quint8", [3, 3, 2, 0], [])] + ranges, a)
    t.row("no_depth", op, [given("quint8", [1, 4, 4, 0], []), given("quint8", [3, 3, 0, 2], [])] + ranges, a)
    for i in range(4):
        r = list(ranges)
        r[i] = vec("float", [1.0, 2.0])
        t.row("limits_%d" % i, op, [x, w] + r, a)
    t.row("signed", op, [x, full("qint8", [3, 3, 2, 3]), f(-1.0), f(2.0), f(-3.0), f(3.0)], a, beyond=True)


def elements(t):
    ranges = [f(-1.0), f(2.0), f(-3.0), f(1.5)]
    for op in ("QuantizedAdd", "QuantizedMul"):
        for name, x, y in [("plain", [3, 5], [3, 5]), ("scalar", [7], []), ("scalar_x", [], [7]),
                           ("scalars", [], []), ("one", [7], [1]), ("vector", [4, 6], [6]),
                           ("vector_x", [6], [4, 2, 6]), ("empty", [0], [0]), ("long", [300], [300]),
                           ("sizes", [3], [4])]:
            x, y = [given("quint8", s, []) if 0 in s else full("quint8", s) for s in (x, y)]
            t.row(name, op, [x, y] + ranges)
        x = full("quint8", [2, 3, 2])
        t.row("middle", op, [x, full("quint8", [3, 1])] + ranges, beyond=True)
        x = full("quint8", [4])
        t.row("equal", op, [x, x, f(1.0), f(1.0), f(-3.0), f(1.5)])
        t.row("swapped", op, [x, x, f(1.0), f(2.0), f(3.0), f(1.5)])
        t.row("above_zero", op, [x, full("quint8", [4]), f(1.0), f(2.0), f(5.0), f(5.5)])
        for i in range(4):
            r = list(ranges)
            r[i] = vec("float", [1.0])
            t.row("limits_%d" % i, op, [x, x] + r)
    op = "QuantizedBiasAdd"
    a = {"out_type": "qint32"}
    for d in ("quint8", "qint8"):
        t.row("plain_" + d, op, [full(d, [3, 5]), full(d, [5])] + ranges, a)
        t.row("image_" + d, op, [full(d, [2, 2, 3, 7]), full(d, [7])] + ranges, a)
        t.row("uneven_" + d, op, [full(d, [30, 3]), full(d, [3]), f(0.0), f(0.3), f(2.0), f(17.0)], a)
    x = full("quint8", [3, 5])
    t.row("sizes", op, [x, full("quint8", [3])] + ranges, a)
    t.row("rank", op, [full("quint8", [5]), full("quint8", [5])] + ranges, a)
    t.row("bias_rank", op, [x, full("quint8", [1, 5])] + ranges, a)
    t.row("empty", op, [given("quint8", [0, 5], []), full("quint8", [5])] + ranges, a)
    t.row("nothing", op, [given("quint8", [3, 0], []), given("quint8", [0], [])] + ranges, a)
    for i in range(4):
        r = list(ranges)
        r[i] = vec("float", [1.0, 2.0])
        t.row("limits_%d" % i, op, [x, full("quint8", [5])] + r, a)
    for op in ("QuantizedRelu", "QuantizedRelu6", "QuantizedReluX"):
        more = [f(3.5)] if op == "QuantizedReluX" else []
        beyond = {"beyond": True, "message": "code-only"} if more else {}
        code = {"message": "code-only"} if more else {}
        for d in ("quint8", "qint32"):
            a = {"out_type": d}
            t.row("plain_" + d, op, [full(d, [3, 7])] + more + [f(-4.0), f(9.0)], a, **beyond)
            t.row("positive_" + d, op, [full(d, [3, 7])] + more + [f(1.0), f(9.0)], a, **beyond)
            t.row("negative_" + d, op, [full(d, [3, 7])] + more + [f(-4.0), f(-1.0)], a, **beyond)
        a = {"out_type": "quint8"}
        t.row("equal", op, [full("quint8", [7])] + more + [f(1.0), f(1.0)], a, **beyond)
        t.row("empty", op, [given("quint8", [0], [])] + more + [f(-4.0), f(9.0)], a, **beyond)
        t.row("limits", op, [full("quint8", [7])] + more + [vec("float", [1.0, 2.0]), f(9.0)], a, **code)
        t.row("limits_max", op, [full("quint8", [7])] + more + [f(9.0), vec("float", [1.0, 2.0])], a, **code)
    for op in ("QuantizedMaxPool", "QuantizedAvgPool"):
        for d in ("quint8", "qint8"):
            for padding in ("SAME", "VALID"):
                a = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 2, 1], "padding": padding}
                t.row("%s_%s" % (padding.lower(), d), op, [full(d, [2, 5, 7, 3]), f(-1.0), f(2.0)], a)
                a = {"ksize": [1, 3, 3, 1], "strides": [1, 1, 1, 1], "padding": padding}
                t.row("over_%s_%s" % (padding.lower(), d), op, [full(d, [1, 6, 5, 20]), f(-1.0), f(2.0)], a)
        x = full("quint8", [2, 5, 7, 4])
        ok = {"ksize": [1, 2, 3, 1], "strides": [1, 2, 2, 1], "padding": "SAME"}
        t.row("rank", op, [full("quint8", [5, 7, 4]), f(-1.0), f(2.0)], ok)
        t.row("batch", op, [x, f(-1.0), f(2.0)], dict(ok, ksize=[2, 2, 2, 1]))
        t.row("depth", op, [x, f(-1.0), f(2.0)], dict(ok, ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2]))
        t.row("sizes", op, [x, f(-1.0), f(2.0)], dict(ok, ksize=[1, 2, 2]))
        t.row("strides", op, [x, f(-1.0), f(2.0)], dict(ok, strides=[1, 2, 2]))
        t.row("zero", op, [x, f(-1.0), f(2.0)], dict(ok, ksize=[1, 0, 2, 1]))
        t.row("large", op, [x, f(-1.0), f(2.0)], dict(ok, ksize=[1, 9, 9, 1], padding="VALID"))
        t.row("empty", op, [given("quint8", [0, 5, 7, 4], []), f(-1.0), f(2.0)], ok)
        t.row("limits", op, [x, vec("float", [1.0, 2.0]), f(2.0)], ok)
        t.row("limits_max", op, [x, f(-1.0), vec("float", [1.0, 2.0])], ok)
        t.row("no_limit", op, [x, given("float", [0], []), f(2.0)], ok)


def norm(t):
    op = "QuantizedBatchNormWithGlobalNormalization"
    def inputs(x, channels):
        out = [full("quint8", x), f(-1.0), f(3.0)]
        for low, high in [(-0.5, 1.0), (0.1, 2.0), (-1.0, 1.0), (0.5, 1.5)]:
            out += [full("quint8", [channels]), f(low), f(high)]
        return out
    for scale in (True, False):
        a = {"out_type": "qint32", "variance_epsilon": 0.001, "scale_after_normalization": scale}
        t.row("scale" if scale else "plain", op, inputs([2, 3, 2, 5], 5), a)
    for at, name in [(3, "mean"), (6, "variance"), (9, "beta"), (12, "gamma")]:
        bad = inputs([2, 3, 2, 5], 5)
        bad[at] = full("quint8", [5, 1])
        t.row("rank_" + name, op, bad, a)
        bad[at] = full("quint8", [4])
        t.row("size_" + name, op, bad, a)
    bad = inputs([2, 3, 2, 5], 5)
    bad[0] = full("quint8", [2, 3, 5])
    t.row("rank", op, bad, a)
    for i in (1, 2, 4, 5, 7, 8, 10, 11, 13, 14):
        bad = inputs([2, 3, 2, 5], 5)
        bad[i] = vec("float", [1, 2])
        t.row("limits_%d" % i, op, bad, a)
    t.row("empty", op, [given("quint8", [0, 3, 2, 5], [])] + inputs([1], 5)[1:], a)


def moves(t):
    op = "QuantizedConcat"
    x, y = full("quint8", [2, 3]), full("quint8", [2, 4])
    t.row("same_range", op, [iscalar(1), [x, y], [f(-1.0), f(-1.0)], [f(2.0), f(2.0)]])
    t.row("ranges", op, [iscalar(1), [x, y], [f(-1.0), f(-3.0)], [f(2.0), f(1.5)]])
    t.row("axis_0", op, [iscalar(0), [x, full("quint8", [5, 3])], [f(-1.0), f(0.0)], [f(2.0), f(3.0)]])
    t.row("three", op, [iscalar(1), [full("quint8", [2, 1, 3]), full("quint8", [2, 2, 3]), full("quint8", [2, 3, 3])],
                        [f(-1.0), f(0.0), f(-0.5)], [f(2.0), f(1.0), f(0.5)]])
    z = drawn("qint32", [2, 3], -1000000, 1000000)
    t.row("qint32_same", op, [iscalar(0), [z, z], [f(-2.0), f(-2.0)], [f(2.0), f(2.0)]])
    t.row("qint32_uneven", op, [iscalar(0), [z, z], [f(-2.0), f(-2.0)], [f(1.0), f(1.0)]], message="code-only")
    t.row("equal", op, [iscalar(1), [x, y], [f(1.0), f(1.0)], [f(1.0), f(2.0)]])
    t.row("no_number", op, [iscalar(1), [y, x], [f(-1.0), f(-3.0)], [f("nan"), f(1.5)]], undefined=[0])
    t.row("negative", op, [iscalar(1), [x, y], [f(-4.0), f(-3.0)], [f(-2.0), f(-1.0)]])
    t.row("fed", op, [scalar("int32", 1), [x, y], [f(-1.0), f(-3.0)], [f(2.0), f(1.5)]])
    t.row("empty", op, [iscalar(1), [given("quint8", [2, 0], []), y], [f(-1.0), f(-3.0)], [f(2.0), f(1.5)]],
          undefined=[0])  # stock uses the range of the wrong input
    t.row("nothing", op, [iscalar(0), [given("quint8", [0, 2], []), given("quint8", [0, 2], [])], [f(-1.0), f(-3.0)], [f(2.0), f(1.5)]])
    t.row("axis_high", op, [scalar("int32", 2), [x, y], [f(-1.0), f(-3.0)], [f(2.0), f(1.5)]])
    t.row("axis_low", op, [scalar("int32", -1), [x, y], [f(-1.0), f(-3.0)], [f(2.0), f(1.5)]])
    t.row("axis_vector", op, [vec("int32", [1, 2]), [x, y], [f(-1.0), f(-3.0)], [f(2.0), f(1.5)]])
    t.row("ranks", op, [iscalar(0), [x, full("quint8", [3])], [f(-1.0), f(-3.0)], [f(2.0), f(1.5)]])
    t.row("sizes", op, [iscalar(0), [x, y], [f(-1.0), f(-3.0)], [f(2.0), f(1.5)]])
    t.row("scalars", op, [scalar("int32", 0), [scalar("quint8", 3), scalar("quint8", 4)], [f(-1.0), f(-3.0)], [f(2.0), f(1.5)]])
    t.row("limits", op, [iscalar(1), [x, y], [vec("float", [-1.0, 2.0]), f(-3.0)], [f(2.0), f(1.5)]])
    t.row("limits_max", op, [iscalar(1), [x, y], [f(-1.0), f(-3.0)], [f(2.0), vec("float", [1.5, 2.0])]])
    op = "QuantizedReshape"
    for d in ("quint8", "qint32"):
        t.row("plain_" + d, op, [full(d, [2, 6]), ivec(3, 4), f(-1.0), f(2.0)])
        t.row("open_" + d, op, [full(d, [2, 6]), ivec(-1, 4), f(-1.0), f(2.0)])
    t.row("wide", op, [x, const(vec("int64", [6])), f(-1.0), f(2.0)])
    t.row("fed", op, [x, vec("int32", [3, -1]), f(-1.0), f(2.0)])
    t.row("sizes", op, [x, ivec(7), f(-1.0), f(2.0)])
    t.row("two_open", op, [x, ivec(-1, -1), f(-1.0), f(2.0)])
    t.row("vector_1", op, [x, ivec(6), vec("float", [-1.0]), vec("float", [2.0])])
    t.row("limits", op, [x, ivec(6), vec("float", [-1.0, 1.0]), f(2.0)])
    t.row("limits_max", op, [x, ivec(6), f(2.0), vec("float", [-1.0, 1.0])])


def there_and_back(t):
    t.row("deprecated", "QuantizeAndDequantize", [drawn("float", [7], -3, 3)])
    op = "QuantizeAndDequantizeV4"
    x = drawn("float", [3, 4], -3, 3)
    lo, hi = f(-2), f(1.5)
    for name, a in [
        ("given", {}),
        ("unsigned", {"signed_input": False}),
        ("bits4", {"num_bits": 4}),
        ("narrow", {"narrow_range": True}),
        ("half_up", {"num_bits": 3, "round_mode": "HALF_UP"}),
        ("found", {"range_given": False}),
        ("bad_bits", {"num_bits": 99}),
    ]:
        t.row(name, op, [x, lo, hi], dict({"range_given": True}, **a))
    t.row("double", op, [drawn("double", [7], -3, 3), scalar("double", -2), scalar("double", 2)], {"range_given": True})
    t.row("swapped", op, [x, hi, lo], {"range_given": True})
    bounds = [vec("float", [-2, -1, -3]), vec("float", [1, 2, 3])]
    t.row("axis", op, [x] + bounds, {"range_given": True, "axis": 0})
    t.row("axis_found", op, [x] + bounds, {"axis": 0})
    t.row("axis_sizes", op, [x] + bounds, {"range_given": True, "axis": 1})
    t.row("axis_high", op, [x] + bounds, {"range_given": True, "axis": 2})
    t.row("axis_low", op, [x] + bounds, {"range_given": True, "axis": -2})
    t.row("vectors", op, [x] + bounds, {"range_given": True})
    t.row("empty", op, [given("float", [0], []), lo, hi])
    t.row("grad", op, [x, lo, hi], {"range_given": True}, grad=True, fd=False)
    t.row("grad_axis", op, [x] + bounds, {"range_given": True, "axis": 0}, grad=True, fd=False)
    op = "QuantizeAndDequantizeV4Grad"
    dy = drawn("float", [3, 4])
    t.row("plain", op, [dy, x, lo, hi])
    t.row("double", op, [drawn("double", [7]), drawn("double", [7], -3, 3), scalar("double", -2), scalar("double", 2)])
    t.row("axis", op, [dy, x] + bounds, {"axis": 0})
    t.row("axis_last", op, [drawn("float", [4, 2, 3]), drawn("float", [4, 2, 3], -3, 3)] + bounds, {"axis": 2})
    t.row("axis_sizes", op, [dy, x] + bounds, {"axis": 1})
    t.row("axis_high", op, [dy, x] + bounds, {"axis": 2})
    t.row("axis_low", op, [dy, x] + bounds, {"axis": -2})
    t.row("sizes", op, [drawn("float", [4]), x, lo, hi])
    t.row("vectors", op, [dy, x] + bounds)
    t.row("max_vector", op, [dy, x, lo, bounds[0]])
    t.row("empty", op, [given("float", [0], []), given("float", [0], []), lo, hi])
    t.row("grad", op, [dy, x, lo, hi], grad=True, fd=False, stock_grad=False)


def fill(t):
    into(t)
    out_of(t)
    between(t)
    products(t)
    elements(t)
    norm(t)
    moves(t)
    there_and_back(t)
