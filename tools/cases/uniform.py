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
    t.row("vector_scalar", op, [q(3, 5), q(5, 4), f(0.3), i(5), f(0.5), i(0), four, zeros], a)
    t.row("vectors_no_axis", op, [q(3, 5), q(5, 4), f(0.3), i(5), four, zeros, four, zeros], a)
    for name, axis in [("lhs", 0), ("rhs", 0), ("output", 2)]:
        t.row(name + "_axis", op, [q(3, 5), q(5, 4), f(0.3), i(5), f(0.5), i(0), f(0.01), i(2)],
              dict(a, **{name + "_quantization_axis": axis}))
    t.row("scalars_axis", op, [q(3, 5), q(5, 4), f(0.3), i(5), f(0.5), i(0), f(0.01), i(2)],
          dict(a, rhs_quantization_axis=1, output_quantization_axis=1))
    wide = dict(a, output_quantization_max_val=1 << 31)
    t.row("attr_wide", op, [q(3, 5), q(5, 4), f(0.3), i(5), f(0.5), i(0), f(0.01), i(2)], wide)
    op, b = "UniformQuantizedDotHybrid", dict(named("rhs_", EIGHT), Tout="float")
    x = drawn("float", [3, 5], -2, 2)
    t.row("plain", op, [x, q(5, 4), f(0.5), i(0)], b, tol=1e-4)
    t.row("point", op, [x, q(5, 4), f(0.5), i(7)], b, tol=1e-4)
    t.row("axis", op, [x, q(5, 4), four, vec("int32", [1, 2, 3, 4])], dict(b, rhs_quantization_axis=1), tol=1e-4)
    t.row("sizes", op, [x, q(4, 4), f(0.5), i(0)], b, message="code-only")


def packed(numbers):
    """A serialized UniformQuantizedConvolutionDimensionNumbersAttr; |numbers| by field."""
    out = ""
    for field, value in enumerate(numbers, 1):
        if isinstance(value, list):
            out += chr(field << 3 | 2) + chr(len(value)) + "".join(chr(v) for v in value)
        elif value:
            out += chr(field << 3) + chr(value)
    return out


LAST = [0, 3, [1, 2], 2, 3, [0, 1], 0, 3, [1, 2]]  # channels last
ODD = [2, 0, [3, 1], 1, 2, [0, 3], 3, 2, [1, 0]]


def convolutions(t):
    of = dict(named("lhs_", EIGHT), **named("rhs_", EIGHT), **named("output_", WIDE), Tout="qint32")
    scales = [f(0.5), i(1), f(0.25), i(-2), f(0.125), i(3)]

    def row(name, a=(2, 2, 5, 4), b=(4, 2, 3, 2), scales=scales, hybrid=True, padding="VALID", message=None, **attrs):
        lhs, rhs = drawn("qint8", a, -128, 128), drawn("qint8", b, -128, 128)
        more = dict(attrs, padding=padding)
        extra = {"message": message} if message else {}
        t.row(name, "UniformQuantizedConvolution", [lhs, rhs] + scales, dict(of, **more), **extra)
        if not hybrid:
            return
        more = {k: v for k, v in more.items() if not k.startswith(("lhs_quantization", "output_quantization"))}
        more.update(named("rhs_", EIGHT), Tout="float")
        lhs = drawn("float", a, -3, 3)
        t.row(name, "UniformQuantizedConvolutionHybrid", [lhs, rhs] + scales[2:4], more, tol=1e-5, **extra)

    row("valid")
    row("same", padding="SAME")
    row("same_strides", padding="SAME", window_strides=[2, 3])
    row("strides", window_strides=[2, 1])
    row("explicit", padding="EXPLICIT", explicit_padding=[1, 2, 0, 3])
    row("lhs_dilation", lhs_dilation=[2, 3])
    row("rhs_dilation", rhs_dilation=[2, 2])
    row("all", padding="SAME", lhs_dilation=[2, 1], rhs_dilation=[1, 2], window_strides=[3, 2])
    row("groups", (1, 4, 4, 4), (6, 2, 2, 2), feature_group_count=2)
    row("depthwise", (1, 3, 4, 4), (6, 1, 2, 2), feature_group_count=3)
    row("batch_groups", (4, 2, 4, 4), (6, 2, 2, 2), batch_group_count=2)
    row("line", (2, 3, 7), (2, 3, 3))
    row("cube", (1, 2, 3, 4, 3), (2, 2, 2, 2, 2), padding="SAME")
    row("last", (2, 5, 4, 2), (3, 2, 2, 4), dimension_numbers=packed(LAST))
    row("odd", (2, 4, 3, 5), (3, 2, 4, 2), dimension_numbers=packed(ODD))
    row("clipped", output_quantization_min_val=-100, output_quantization_max_val=50, hybrid=False)
    filters = [vec("float", [0.25, 0.5, 2.0, 0.1]), vec("int32", [3, -20, 0, 5])]
    outs = [vec("float", [0.5, 0.3, 4.0, 0.1]), vec("int32", [0, 1, 2, -3])]
    row("filters", scales=scales[:2] + filters + scales[4:], rhs_quantization_axis=0)
    row("filters_last", (2, 5, 4, 2), (3, 2, 2, 4), scales=scales[:2] + filters + scales[4:],
        rhs_quantization_axis=3, dimension_numbers=packed(LAST))  # fmt: skip
    row("outs", scales=scales[:2] + filters + outs, rhs_quantization_axis=0, output_quantization_axis=1, hybrid=False)
    row("no_images", (0, 2, 5, 4))
    row("no_filters", b=(0, 2, 3, 2))
    row("no_places", b=(4, 2, 6, 2))
    # Refused.
    row("rank", (2, 2, 5), (4, 2, 3, 2))
    row("rank_2", (2, 2), (4, 2))
    row("window", b=(4, 2, 7, 2))
    row("features", b=(4, 1, 3, 2))
    row("features_3", (2, 3, 5, 4))
    row("groups_3", feature_group_count=3)
    row("groups_0", feature_group_count=0)
    row("batch_groups_0", batch_group_count=0)
    row("batch_groups_3", batch_group_count=3)
    row("both_groups", (2, 4, 5, 4), feature_group_count=2, batch_group_count=2)
    row("outputs", (1, 4, 4, 4), (3, 2, 2, 2), feature_group_count=2)
    row("outputs_batch", b=(3, 2, 2, 2), batch_group_count=2)
    row("padding", padding="LEAST")
    row("no_padding", padding="EXPLICIT")
    row("negative_padding", padding="EXPLICIT", explicit_padding=[-1, 1, 0, 0])
    row("padding_given", explicit_padding=[1, 1, 1, 1])
    for name in ("window_strides", "lhs_dilation", "rhs_dilation"):
        row(name + "_0", **{name: [0, 1]})
        row(name + "_1", **{name: [1]})
    row("rhs_axis", rhs_quantization_axis=1)
    row("lhs_axis", lhs_quantization_axis=1, hybrid=False)
    row("output_axis", output_quantization_axis=0, hybrid=False)
    row("numbers_far", dimension_numbers=packed([0, 7] + LAST[2:]))
    row("numbers_space", dimension_numbers=packed([0, 3, [1, 2, 1]] + LAST[3:]))
    row("rhs_scalars", rhs_quantization_axis=0, message="code-only")
    row("outs_only", scales=scales[:4] + outs, output_quantization_axis=1, hybrid=False)
    row("rhs_zero", scales=scales[:2] + [f(0.0), i(0)] + scales[4:])
    row("lhs_zero", scales=[f(0.0), i(0)] + scales[2:], hybrid=False)
    row("output_zero", scales=scales[:4] + [f(0.0), i(0)], hybrid=False)
    row("lhs_vector", scales=[vec("float", [1.0]), vec("int32", [1])] + scales[2:], hybrid=False)


def fill(t):
    convolutions(t)
    single(t)
    again(t)
    wide(t)
    dot(t)
