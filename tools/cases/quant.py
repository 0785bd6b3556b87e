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
