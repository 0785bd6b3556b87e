"""Quantization by scales and zero points: the Uniform ops."""

from .base import *


def f(value):
    return scalar("float", value)


def i(value):
    return scalar("int32", value)


EIGHT = {"quantization_min_val": -128, "quantization_max_val": 127}
WIDE = {"quantization_min_val": -2147483648, "quantization_max_val": 2147483647}


def named(prefix, attrs):
    return {prefix + k: v for k, v in attrs.items()}


def single(t):
    x = drawn("float", [2, 3], -9, 9)
    three, zeros = vec("float", [0.25, 0.5, 2.0]), vec("int32", [3, -20, 0])
    for out, a in [("qint8", EIGHT), ("quint8", {"quantization_min_val": 0, "quantization_max_val": 255}), ("qint32", WIDE)]:
        a = dict(a, Tout=out)
        t.row(out, "UniformQuantize", [x, f(0.1), i(5)], a)
        t.row(out + "_axis", "UniformQuantize", [x, three, zeros], dict(a, quantization_axis=1))
        lo, hi = {"qint8": (-128, 128), "quint8": (0, 256), "qint32": (-100000, 100000)}[out]
        q, b = drawn(out, [2, 3], lo, hi), dict(a, Tout="float")
        t.row(out, "UniformDequantize", [q, f(0.1), i(5)], b, tol=1e-6)
        t.row(out + "_axis", "UniformDequantize", [q, three, zeros], dict(b, quantization_axis=1), tol=1e-6)
    a = dict(EIGHT, Tout="qint8")
    t.row("ties", "UniformQuantize", [vec("float", [0.5, 1.5, -0.5, -1.5, 2.5]), f(1.0), i(0)], a)
    t.row("special", "UniformQuantize", [vec("float", [1e9, -1e9]), f(1.0), i(0)], a)
    t.row("narrow", "UniformQuantize", [x, f(0.05), i(0)], dict(a, quantization_min_val=-127))
    t.row("cube", "UniformQuantize", [drawn("float", [2, 3, 4], -9, 9), three, zeros], dict(a, quantization_axis=1))
    t.row("empty", "UniformQuantize", [drawn("float", [0, 3]), f(0.1), i(5)], a)
    for name, scales, points, more in [
        ("scale_zero", f(0.0), i(0), {}),
        ("scale_negative", f(-1.0), i(0), {}),
        ("scales_vector", three, i(0), {}),
        ("both_vector", three, zeros, {}),
        ("axis_scalars", f(1.0), i(0), {"quantization_axis": 1}),
        ("axis_large", three, zeros, {"quantization_axis": 2}),
        ("axis_size", three, zeros, {"quantization_axis": 0}),
        ("axis_negative", three, zeros, {"quantization_axis": -2}),
        ("limits", f(1.0), i(0), {"quantization_min_val": 10, "quantization_max_val": 5}),
    ]:
        if not name.startswith("scale_"):  # stock divides by such a scale
            t.row(name, "UniformQuantize", [x, scales, points], dict(a, **more), message="code-only")
        q = drawn("qint8", [2, 3], -128, 128)
        t.row(name, "UniformDequantize", [q, scales, points], dict(a, Tout="float", **more), message="code-only")


def again(t):
    three, zeros = vec("float", [0.25, 0.5, 2.0]), vec("int32", [3, -20, 0])
    many, points = vec("float", [0.5, 0.7, 1.5]), vec("int32", [0, 10, -4])
    for d, lo, hi, mine in [("qint8", -128, 128, EIGHT), ("qint32", -3000, 3000, WIDE)]:
        a = dict(named("input_", mine), **named("output_", EIGHT), Tout="qint8")
        x = drawn(d, [4, 3], lo, hi)
        for name, inputs, more in [
            ("", [f(0.3), i(5), f(0.7), i(-3)], {}),
            ("_finer", [f(0.3), i(5), f(0.1), i(-3)], {}),
            ("_same", [f(0.3), i(5), f(0.3), i(5)], {}),
            ("_axes", [three, zeros, many, points], {"input_quantization_axis": 1, "output_quantization_axis": 1}),
            ("_from_axis", [three, zeros, f(0.7), i(-3)], {"input_quantization_axis": 1}),
            ("_to_axis", [f(0.3), i(5), many, points], {"output_quantization_axis": 1}),
        ]:
            t.row(d + name, "UniformRequantize", [x] + inputs, dict(a, **more))


def wide(t):
    a = dict(named("lhs_", WIDE), **named("rhs_", WIDE), **named("output_", WIDE))
    q = lambda *s: drawn("qint32", s, -3000, 3000)
    op = "UniformQuantizedAdd"
    for name, x, y in [("plain", q(2, 3), q(2, 3)), ("row", q(2, 3), q(3)), ("column", q(2, 3), q(2, 1))]:
        t.row(name, op, [x, y, f(0.3), i(5), f(0.5), i(-7), f(0.4), i(2)], a)
    t.row("same", op, [q(4), q(4), f(0.3), i(5), f(0.3), i(5), f(0.3), i(5)], a)
    t.row("shapes", op, [q(4), q(3), f(0.3), i(5), f(0.3), i(5), f(0.3), i(5)], a, message="code-only")
    op = "UniformQuantizedClipByValue"
    one = drawn("qint32", [2, 3], -3000, 3000)
    b = lambda v: scalar("qint32", v)
    t.row("plain", op, [one, b(-100), b(900), f(0.3), i(5)], WIDE)
    three, zeros = vec("float", [0.25, 0.5, 2.0]), vec("int32", [3, -20, 0])
    t.row("axis", op, [one, vec("qint32", [-5, -500, 0]), vec("qint32", [5, 100, 900]), three, zeros], dict(WIDE, quantization_axis=1))
    t.row("vectors", op, [one, vec("qint32", [-5, -500, 0]), vec("qint32", [5, 100, 900]), f(0.3), i(5)], WIDE, message="code-only")


def dot(t):
    a = dict(named("lhs_", EIGHT), **named("rhs_", EIGHT), **named("output_", WIDE), Tout="qint32")
    q = lambda *s: drawn("qint8", s, -128, 128)
    op = "UniformQuantizedDot"
    t.row("plain", op, [q(3, 5), q(5, 4), f(0.3), i(5), f(0.5), i(0), f(0.01), i(2)], a)
    t.row("point", op, [q(3, 5), q(5, 4), f(0.3), i(5), f(0.5), i(-9), f(0.9), i(2)], a)
    four, zeros = vec("float", [0.25, 0.5, 2.0, 1.0]), vec("int32", [0, 0, 0, 0])
    t.row("axis", op, [q(3, 5), q(5, 4), f(0.3), i(5), four, zeros, four, zeros],
          dict(a, rhs_quantization_axis=1, output_quantization_axis=1))
    t.row("axis_single", op, [q(3, 5), q(5, 4), f(0.3), i(5), four, zeros, f(0.1), i(3)], dict(a, rhs_quantization_axis=1))
    t.row("sizes", op, [q(3, 5), q(4, 4), f(0.3), i(5), f(0.5), i(0), f(0.01), i(2)], a, message="code-only")
    t.row("rank", op, [q(3, 5, 1), q(5, 4), f(0.3), i(5), f(0.5), i(0), f(0.01), i(2)], a, message="code-only")
    op, b = "UniformQuantizedDotHybrid", dict(named("rhs_", EIGHT), Tout="float")
    x = drawn("float", [3, 5], -2, 2)
    t.row("plain", op, [x, q(5, 4), f(0.5), i(0)], b, tol=1e-4)
    t.row("point", op, [x, q(5, 4), f(0.5), i(7)], b, tol=1e-4)
    t.row("axis", op, [x, q(5, 4), four, vec("int32", [1, 2, 3, 4])], dict(b, rhs_quantization_axis=1), tol=1e-4)
    t.row("sizes", op, [x, q(4, 4), f(0.5), i(0)], b, message="code-only")


def fill(t):
    single(t)
    again(t)
    wide(t)
    dot(t)
