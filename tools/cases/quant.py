"""Fake quantization."""

from .base import *


def fill(t):
    x = drawn("float", [11], -8, 8)
    for name, a in [
        ("plain", {}),
        ("range", {"min": -1.0, "max": 3.0}),
        ("bits4", {"num_bits": 4}),
        ("narrow", {"narrow_range": True}),
        ("positive", {"min": 1.0, "max": 3.0}),
        ("bad_range", {"min": 1.0, "max": -3.0}),
        ("bad_bits", {"num_bits": 1}),
    ]:
        t.row(name, "FakeQuantWithMinMaxArgs", [x], a)
        t.row(name, "FakeQuantWithMinMaxArgsGradient", [drawn("float", [11]), x], a)
        a = dict(a)
        lo, hi = a.pop("min", -6.0), a.pop("max", 6.0)
        t.row(name, "FakeQuantWithMinMaxVars", [x, scalar("float", lo), scalar("float", hi)], a)
        t.row(
            name,
            "FakeQuantWithMinMaxVarsGradient",
            [drawn("float", [11]), x, scalar("float", lo), scalar("float", hi)],
            a,
        )
    t.row("grad", "FakeQuantWithMinMaxArgs", [x], grad=True, fd=False)
    t.row(
        "grad",
        "FakeQuantWithMinMaxVars",
        [x, scalar("float", -4), scalar("float", 4)],
        grad=True,
        fd=False,
    )
    t.row("special", "FakeQuantWithMinMaxArgs", [vec("float", [INF, "-inf", 0.0])])
    for d in ("float", "double"):
        t.row(
            "given_" + d,
            "QuantizeAndDequantizeV3",
            [drawn(d, [7], -3, 3), scalar(d, -2), scalar(d, 2), scalar("int32", 8)],
        )
        t.row(
            "found_" + d,
            "QuantizeAndDequantizeV3",
            [drawn(d, [7], -3, 3), scalar(d, 0), scalar(d, 0), scalar("int32", 4)],
            {"range_given": False},
        )
    t.row(
        "unsigned",
        "QuantizeAndDequantizeV3",
        [drawn("float", [7], 0, 3), scalar("float", 0), scalar("float", 2), scalar("int32", 8)],
        {"signed_input": False},
    )
    t.row(
        "bad_bits",
        "QuantizeAndDequantizeV3",
        [drawn("float", [7]), scalar("float", 0), scalar("float", 2), scalar("int32", 99)],
    )
    channels = [drawn("float", [5, 3], -8, 8), vec("float", [-1, -6, 1]), vec("float", [1, 6, 3])]
    op = "FakeQuantWithMinMaxVarsPerChannel"
    for name, a in [("plain", {}), ("bits4", {"num_bits": 4}), ("narrow", {"narrow_range": True})]:
        t.row(name, op, channels, a)
        t.row(name, op + "Gradient", [drawn("float", [5, 3])] + channels, a)
    bounds = [vec("float", [-1, -4]), vec("float", [1, 2])]
    t.row("rank4", op, [drawn("float", [2, 2, 3, 2], -5, 5)] + bounds)
    t.row(
        "rank4",
        op + "Gradient",
        [drawn("float", [2, 2, 3, 2]), drawn("float", [2, 2, 3, 2], -5, 5)] + bounds,
        tol=1e-5,
    )
    t.row("vector", op, [drawn("float", [2], -5, 5)] + bounds)
    t.row("grad", op, [drawn("float", [4, 2], -5, 5)] + bounds, grad=True, fd=False)
    t.row("bad_bits", op, [drawn("float", [2], -5, 5)] + bounds, {"num_bits": 17})
    t.row("bad_size", op, [drawn("float", [3], -5, 5)] + bounds)
    t.row("bad_max", op, [drawn("float", [2]), bounds[0], vec("float", [1])])
    t.row("scalar", op, [scalar("float", 1)] + bounds)
    t.row("empty", op, [given("float", [0, 2], [])] + bounds)
    t.row("empty", op + "Gradient", [given("float", [0, 2], [])] * 2 + bounds)
    t.row("bad_size", op + "Gradient", [drawn("float", [3]), drawn("float", [2])] + bounds)
    t.row("bad_max", op + "Gradient", [drawn("float", [2])] * 2 + [bounds[0], vec("float", [1])])
    t.row("swapped", op, [drawn("float", [2], -5, 5)] + bounds[::-1])
    t.row("vectors", "FakeQuantWithMinMaxVars", [x] + bounds)
    t.row("vectors", "FakeQuantWithMinMaxVarsGradient", [x, x] + bounds)
    t.row("zero_range", "FakeQuantWithMinMaxVars", [x, scalar("float", 0.0), scalar("float", 0.0)])
    op = "QuantizeAndDequantizeV2"
    lo, hi = scalar("float", -2), scalar("float", 1.5)
    x = drawn("float", [3, 4], -3, 3)
    for name, a in [
        ("given", {}),
        ("unsigned", {"signed_input": False}),
        ("bits4", {"num_bits": 4}),
        ("narrow", {"narrow_range": True}),
        ("half_up", {"num_bits": 3, "round_mode": "HALF_UP"}),
        ("found", {"range_given": False}),
        ("found_narrow", {"range_given": False, "narrow_range": True, "num_bits": 5}),
        ("bad_bits", {"num_bits": 99}),
        ("no_bits", {"num_bits": 0}),
    ]:
        t.row(name, op, [x, lo, hi], dict({"range_given": True}, **a))
    t.row("double", op, [drawn("double", [7], -3, 3), scalar("double", -2), scalar("double", 2)], {"range_given": True})
    t.row("zeros", op, [given("float", [3], 0.0), lo, hi])
    t.row("empty", op, [given("float", [0], []), lo, hi])
    t.row("swapped", op, [x, hi, lo], {"range_given": True})
    bounds = [vec("float", [-2, -1, -3]), vec("float", [1, 2, 3])]
    t.row("axis", op, [x] + bounds, {"range_given": True, "axis": 0})
    t.row("axis_found", op, [x] + bounds, {"axis": 0})
    t.row("axis_last", op, [x, vec("float", [-1, -2, -1, -1]), vec("float", [1, 1, 2, 1])], {"range_given": True, "axis": 1})
    t.row("axis_sizes", op, [x] + bounds, {"range_given": True, "axis": 1})
    t.row("axis_high", op, [x] + bounds, {"range_given": True, "axis": 2})
    t.row("vectors", op, [x] + bounds, {"range_given": True})
    t.row("grad", op, [x, lo, hi], {"range_given": True}, grad=True, fd=False, message="code-only")
    op = "QuantizeAndDequantizeV3"
    bits = scalar("int32", 6)
    t.row("axis", op, [x] + bounds + [bits], {"axis": 0})
    t.row("axis_sizes", op, [x] + bounds + [bits], {"axis": 1})
    t.row("swapped", op, [x, hi, lo, bits])
    t.row("bits", op, [x, lo, hi, vec("int32", [8, 8])])
    t.row("narrow", op, [x, lo, hi, bits], {"narrow_range": True})
