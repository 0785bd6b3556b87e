"""Requantization per channel, instance normalization, resizing and joining of levels."""

from .base import *


def f(value):
    return scalar("float", value)


def fs(*values):
    return vec("float", list(values))


def q32(*shape):
    return drawn("qint32", shape, -2000000, 2000000)


def requantize(t):
    op = "RequantizationRangePerChannel"
    low, high = fs(-1.0, -2.0, -3.0), fs(1.0, 2.0, 3.0)
    t.row("plain", op, [q32(1, 2, 2, 3), low, high], {"clip_value_max": 100.0})
    t.row("clipped", op, [q32(2, 2, 2, 3), low, high], {"clip_value_max": 0.001})
    t.row("positive", op, [drawn("qint32", [1, 2, 2, 3], 5, 2000000), low, high], {"clip_value_max": 100.0})
    t.row("uneven", op, [q32(1, 2, 2, 3), fs(-1.0, -9.0, 0.5), fs(4.0, 2.0, 3.0)], {"clip_value_max": 100.0})
    t.row("rank", op, [q32(2, 3), low, high], {"clip_value_max": 100.0})
    t.row("sizes", op, [q32(1, 2, 2, 3), fs(-1.0, -2.0), fs(1.0, 2.0)], {"clip_value_max": 100.0})
    t.row("sizes_max", op, [q32(1, 2, 2, 3), low, fs(1.0, 2.0)], {"clip_value_max": 100.0})
    op = "RequantizePerChannel"
    x = drawn("qint32", [1, 3, 2, 3], -200000000, 200000000)
    for out in ["qint8", "quint8"]:
        a = {"out_type": out}
        t.row(out, op, [x, low, high, f(-0.2), f(0.3)], a)
        t.row(out + "_positive", op, [x, low, high, f(0.0), f(0.3)], a)
        t.row(out + "_few", op, [x, low, high, f(-0.01), f(0.02)], a)
    t.row("rank", op, [q32(2, 3), low, high, f(-0.1), f(0.1)])
    t.row("limits", op, [x, low, high, fs(-0.1, 1.0), f(0.1)])
    t.row("limits_max", op, [x, low, high, f(-0.1), fs(0.1, 1.0)])


def norm(t):
    op = "QuantizedInstanceNorm"
    x = drawn("quint8", [2, 4, 4, 3], 0, 256)
    t.row("plain", op, [x, f(0.0), f(2.0)], tol=1e-5)
    t.row("negative", op, [x, f(-3.0), f(2.0)], tol=1e-5)
    t.row("given", op, [x, f(0.0), f(2.0)], {"output_range_given": True, "given_y_min": -2.0, "given_y_max": 1.5})
    t.row("epsilon", op, [x, f(0.0), f(2.0)], {"variance_epsilon": 0.5}, tol=1e-5)
    t.row("constant", op, [given("quint8", [1, 4, 4, 2], 7), f(0.0), f(2.0)], tol=1e-5)
    t.row("separation", op, [given("quint8", [1, 4, 4, 2], 7), f(0.0), f(2.0)], {"min_separation": 2.0}, tol=1e-5)
    t.row("large", op, [drawn("quint8", [1, 9, 8, 5], 0, 256), f(0.0), f(2.0)], tol=1e-5)
    t.row("rank", op, [drawn("quint8", [4, 4, 3], 0, 256), f(0.0), f(2.0)])
    t.row("swapped", op, [x, f(2.0), f(0.0)])
    t.row("vectors", op, [x, fs(0.0, 1.0), fs(1.0, 2.0)])
    t.row("swapped_given", op, [x, f(0.0), f(2.0)], {"output_range_given": True, "given_y_min": 2.0, "given_y_max": 1.5})


def resize(t):
    op = "QuantizedResizeBilinear"
    sizes = [
        ("smaller", (2, 3), {}),
        ("larger", (7, 9), {}),
        ("align", (7, 3), {"align_corners": True}),
        ("half", (7, 3), {"half_pixel_centers": True}),
        ("same", (4, 5), {}),
    ]
    for name, size, a in sizes:
        x = drawn("float", [2, 4, 5, 3], -9, 9)
        t.row("float_" + name, op, [x, ivec(*size), f(-1.0), f(2.0)], a, tol=1e-5)
        for d, lo, hi in [("quint8", 0, 256), ("qint32", -2000000000, 2000000000)]:
            x = drawn(d, [2, 4, 5, 3], lo, hi)
            t.row(d + "_" + name, op, [x, ivec(*size), f(-1.0), f(2.0)], a)
    # Rounding in both directions, and one channel; the limits do not matter.
    for d, lo, hi in [("quint8", 0, 256), ("qint32", -(1 << 31), (1 << 31) - 1)]:
        x = drawn(d, [1, 5, 6, 1], lo, hi)
        t.row(d + "_many", op, [x, ivec(23, 29), f(7.0), f(-2.0)])
        t.row(d + "_many_half", op, [x, ivec(17, 31), f(0.0), f(0.0)], {"half_pixel_centers": True})
    x = drawn("quint8", [1, 4, 5, 3], 0, 256)
    t.row("rank", op, [drawn("quint8", [4, 5, 3], 0, 256), ivec(7, 7), f(0.0), f(2.0)])
    t.row("size", op, [x, ivec(7, 7, 7), f(0.0), f(2.0)])
    t.row("size_zero", op, [x, ivec(0, 7), f(0.0), f(2.0)])
    t.row("limits", op, [x, ivec(7, 7), fs(0.0, 1.0), f(2.0)])


def fill(t):
    requantize(t)
    norm(t)
    resize(t)
