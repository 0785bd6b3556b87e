"""Conv, convolutions of padded images, ApproxTopK, isotonic regression, outdated gradients."""

from .base import *


def conv(t):
    ones = lambda n: {"strides": [1] * n, "padding": "VALID"}
    for d in F + ["int32"]:
        lo = {"lo": -5, "hi": 6} if d == "int32" else {}
        for n, x, f in [
            (4, [1, 5, 4, 3], [2, 3, 3, 4]),
            (5, [1, 3, 4, 3, 2], [2, 2, 2, 2, 3]),
        ]:
            t.row(
                "%dd_%s" % (n - 2, d),
                "Conv",
                [drawn(d, x, **lo), drawn(d, f, **lo)],
                ones(n),
                tol=loose(d),
            )
    for name, x, f, a in [
        ("same", [2, 5, 5, 2], [3, 3, 2, 3], {"padding": "SAME"}),
        ("same_3d", [2, 3, 4, 3, 2], [2, 3, 2, 2, 3], {"padding": "SAME"}),
        ("stride", [1, 7, 6, 2], [3, 2, 2, 3], {"strides": [1, 2, 1, 1]}),
        ("stride_3d", [1, 5, 4, 5, 2], [2, 2, 2, 2, 1], {"strides": [1, 2, 1, 2, 1]}),
        ("dilated", [1, 7, 7, 2], [3, 3, 2, 2], {"dilations": [1, 2, 2, 1]}),
        ("dilated_3d", [1, 5, 5, 5, 2], [2, 2, 2, 2, 2], {"dilations": [1, 2, 2, 2, 1]}),
        (
            "explicit",
            [1, 4, 5, 2],
            [3, 3, 2, 2],
            {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]},
        ),
        (
            "explicit_short",
            [1, 4, 5, 2],
            [3, 3, 2, 2],
            {"padding": "EXPLICIT", "explicit_paddings": [1, 2]},
        ),
        (
            "explicit_negative",
            [1, 4, 5, 2],
            [3, 3, 2, 2],
            {"padding": "EXPLICIT", "explicit_paddings": [0, 0, -1, 2, 0, 1, 0, 0]},
        ),
        (
            "explicit_batch",
            [1, 4, 5, 2],
            [3, 3, 2, 2],
            {"padding": "EXPLICIT", "explicit_paddings": [1, 0, 1, 2, 0, 1, 0, 0]},
        ),
        ("explicit_same", [1, 4, 5, 2], [3, 3, 2, 2], {"explicit_paddings": [0, 0, 1, 2]}),
        ("no_batch", [4, 5, 2], [3, 3, 2, 2], {"batch_dims": 0}),
        ("no_batch_3d", [3, 4, 3, 2], [2, 2, 2, 2, 3], {"batch_dims": 0, "strides": [1] * 5}),
        ("two_batch", [2, 3, 4, 5, 2], [3, 3, 2, 2], {"batch_dims": 2}),
        ("two_batch_3d", [2, 2, 3, 3, 3, 1], [2, 2, 2, 1, 2], {"batch_dims": 2}),
        ("empty_batch", [0, 4, 4, 2], [3, 3, 2, 3], {}),
        ("empty_batch_3d", [0, 4, 4, 4, 2], [3, 3, 3, 2, 3], {}),
        ("groups", [1, 4, 4, 4], [2, 2, 2, 4], {"groups": 2}),
        ("groups_zero", [1, 4, 4, 4], [2, 2, 4, 4], {"groups": 0}),
        ("groups_input", [1, 4, 4, 3], [2, 2, 3, 4], {"groups": 2}),
        ("groups_output", [1, 4, 4, 4], [2, 2, 2, 3], {"groups": 2}),
        ("first", [1, 2, 4, 4], [2, 2, 2, 3], {"data_format": "CHANNELS_FIRST"}),
        ("first_3d", [1, 2, 4, 4, 4], [2, 2, 2, 2, 3], {"data_format": "CHANNELS_FIRST"}),
        ("depth", [1, 4, 4, 3], [2, 2, 2, 3], {}),
        ("depth_multiple", [1, 4, 4, 4], [2, 2, 2, 4], {}),
        ("depth_zero", [1, 4, 4, 0], [2, 2, 0, 4], {}),
        ("filter_empty", [1, 4, 4, 2], [0, 2, 2, 4], {}),
        ("rank3", [4, 4, 2], [2, 2, 4], {"strides": [1] * 3}),
        ("rank6", [1, 2, 2, 2, 2, 1], [1, 1, 1, 1, 1, 1], {}),
        ("filter_rank", [1, 4, 4, 4, 2], [2, 2, 2, 3], {}),
        ("batch_dims", [1, 4, 4, 2], [2, 2, 2, 3], {"batch_dims": -1}),
        ("batch_dims_many", [1, 4, 4, 2], [2, 2, 2, 3], {"batch_dims": 7}),
        ("strides", [1, 4, 4, 2], [2, 2, 2, 3], {"strides": [1, 1]}),
        ("strides_batch", [1, 4, 4, 2], [2, 2, 2, 3], {"strides": [2, 1, 1, 1]}),
        ("strides_zero", [1, 4, 4, 2], [2, 2, 2, 3], {"strides": [1, 0, 1, 1]}),
        ("dilations", [1, 4, 4, 2], [2, 2, 2, 3], {"dilations": [1, 2]}),
        ("dilations_zero", [1, 4, 4, 2], [2, 2, 2, 3], {"dilations": [1, 1, 0, 1]}),
        ("dilations_depth", [1, 4, 4, 2], [2, 2, 2, 3], {"dilations": [1, 1, 1, 2]}),
        ("no_output", [1, 2, 4, 2], [3, 2, 2, 3], {}),
    ]:
        rank = len(x) - a.get("batch_dims", 1) + 1
        a = dict({"strides": [1] * min(rank, 8), "padding": "VALID"}, **a)
        beyond = {"beyond": True} if name == "dilated_3d" else {}  # stock runs it only with oneDNN
        t.row(name, "Conv", [drawn("float", x), drawn("float", f)], a, tol=1e-5, **beyond)


def padded(t):
    # Stock gives wrong values for more than one image.
    pads = lambda *p: const(given("int32", [4, 2], [0, 0] + list(p) + [0, 0]))
    a = {"strides": [1, 1, 1, 1], "padding": "VALID", "mode": "REFLECT"}
    for d in F:
        t.row(
            d,
            "FusedPadConv2D",
            [drawn(d, [1, 4, 5, 2]), pads(1, 2, 0, 3), drawn(d, [2, 3, 2, 3])],
            a,
            tol=loose(d),
        )
    for d in ["half", "float", "double"]:
        t.row(
            d,
            "FusedResizeAndPadConv2D",
            [drawn(d, [1, 4, 5, 2]), ivec(7, 6), pads(1, 2, 0, 3), drawn(d, [2, 3, 2, 3])],
            a,
            tol=loose(d),
        )
    for name, x, p, f, more in [
        ("symmetric", [1, 4, 4, 1], pads(4, 4, 2, 0), [3, 3, 1, 2], {"mode": "SYMMETRIC"}),
        ("same", [1, 4, 4, 2], pads(1, 1, 1, 1), [3, 3, 2, 2], {"padding": "SAME"}),
        ("stride", [1, 6, 5, 2], pads(1, 1, 1, 1), [3, 3, 2, 2], {"strides": [1, 2, 2, 1]}),
        ("no_padding", [1, 4, 4, 2], pads(0, 0, 0, 0), [1, 1, 2, 3], {}),
        ("empty_batch", [0, 4, 4, 2], pads(1, 1, 1, 1), [3, 3, 2, 2], {}),
        ("too_far", [1, 4, 4, 1], pads(4, 0, 0, 0), [3, 3, 1, 2], {}),
        ("too_far_sym", [1, 4, 4, 1], pads(5, 0, 0, 0), [3, 3, 1, 2], {"mode": "SYMMETRIC"}),
        ("negative", [1, 4, 4, 1], pads(0, 0, -1, 0), [3, 3, 1, 2], {}),
        ("everywhere", [2, 4, 4, 1], const(given("int32", [4, 2], [1, 0] * 4)), [3, 3, 1, 2], {}),
        ("rows", [2, 4, 4, 1], const(given("int32", [3, 2], [0, 0] * 3)), [3, 3, 1, 2], {}),
        ("vector", [2, 4, 4, 1], ivec(0, 0, 0, 0), [3, 3, 1, 2], {}),
        ("depth", [1, 4, 4, 2], pads(1, 1, 1, 1), [3, 3, 3, 2], {}),
        ("rank", [4, 4, 2], pads(1, 1, 1, 1), [3, 3, 3, 2], {}),
        ("filter_rank", [1, 4, 4, 2], pads(1, 1, 1, 1), [3, 3, 2], {}),
        ("strides", [1, 4, 4, 2], pads(1, 1, 1, 1), [3, 3, 2, 2], {"strides": [1, 1]}),
        ("strides_batch", [1, 4, 4, 2], pads(1, 1, 1, 1), [3, 3, 2, 2], {"strides": [2, 1, 1, 1]}),
        ("strides_zero", [1, 4, 4, 2], pads(1, 1, 1, 1), [3, 3, 2, 2], {"strides": [1, 0, 1, 1]}),
    ]:
        attrs = dict(a, **more)
        image, f = drawn("float", x), drawn("float", f)
        t.row(name, "FusedPadConv2D", [image, p, f], attrs, tol=1e-5)
        t.row(name, "FusedResizeAndPadConv2D", [image, ivec(4, 4), p, f], attrs, tol=1e-5)
    image, p, f = drawn("float", [1, 5, 4, 2]), pads(1, 0, 2, 1), drawn("float", [2, 2, 2, 3])
    for name, size, more in [
        ("smaller", ivec(3, 2), {"mode": "SYMMETRIC"}),
        ("larger", ivec(9, 11), {}),
        ("align", ivec(9, 7), {"resize_align_corners": True}),
        ("align_smaller", ivec(3, 3), {"resize_align_corners": True}),
        ("fed", vec("int32", [6, 6]), {}),
        ("size_zero", ivec(0, 3), {}),
        ("size_three", ivec(3, 3, 3), {}),
        ("size_matrix", const(given("int32", [1, 2], [3, 3])), {}),
    ]:
        t.row(name, "FusedResizeAndPadConv2D", [image, size, p, f], dict(a, **more), tol=1e-5)


def ranking(t):
    t.each("", "ApproxTopK", "half bfloat16 float", lambda d: ([drawn(d, [3, 7])], {"k": 3}))
    x = drawn("float", [2, 3, 5])
    t.row("zero", "ApproxTopK", [x], {"k": 0})
    t.row("all", "ApproxTopK", [x], {"k": 5})
    t.row("vector", "ApproxTopK", [drawn("float", [9])], {"k": 2})
    t.row("ties", "ApproxTopK", [vec("float", [1, 3, 3, 1, 3, 2])], {"k": 4})
    t.row("special", "ApproxTopK", [vec("float", [1, INF, "-inf", 3, -0.0, 0.0])], {"k": 6})
    t.row("recall", "ApproxTopK", [x], {"k": 2, "recall_target": 0.5})
    t.row("override", "ApproxTopK", [x], {"k": 2, "reduction_input_size_override": 9})
    # Stock's CPU kernel gives k candidates, its shape function the number for a TPU.
    t.row("aggregate", "ApproxTopK", [x], {"k": 2, "aggregate_to_topk": False}, wrong_static=[0, 1])
    t.row("too_many", "ApproxTopK", [x], {"k": 6})
    t.row("scalar", "ApproxTopK", [scalar("float", 1)], {"k": 0})
    t.row("recall_zero", "ApproxTopK", [x], {"k": 2, "recall_target": 0.0})
    t.row("recall_large", "ApproxTopK", [x], {"k": 2, "recall_target": 1.5})
    t.row("axis_large", "ApproxTopK", [x], {"k": 2, "reduction_dimension": 3})
    t.row("axis_small", "ApproxTopK", [x], {"k": 2, "reduction_dimension": -4})
    # Only XLA has these in stock.
    for name, more in [
        ("axis", {"reduction_dimension": 1}),
        ("last", {"reduction_dimension": 2}),
        ("first", {"reduction_dimension": -3, "k": 1}),
        ("min", {"is_max_k": False}),
        ("min_axis", {"is_max_k": False, "reduction_dimension": 1}),
    ]:
        a = dict({"k": 2}, **more)
        t.row(name, "ApproxTopK", [x], a, beyond=True, message="code-only")
    t.row("grad", "ApproxTopK", [drawn("float", [3, 6])], {"k": 2}, grad=True, grad_outputs=[0])


def isotonic(t):
    op = "IsotonicRegression"
    for d in F:
        t.row(d, op, [drawn(d, [3, 9])], {"output_dtype": d}, tol=loose(d))
    for d, out in [("int8", "float"), ("int16", "float"), ("int32", "double"), ("int64", "double")]:
        t.row(d, op, [drawn(d, [3, 9], -9, 9)], {"output_dtype": out}, tol=loose(out))
    a = {"output_dtype": "float"}
    t.row("vector", op, [vec("float", [3, 1, 2, 2, 0, 5, 4])], a, tol=1e-6)
    t.row("falling", op, [vec("float", [5, 4, 4, 3, -1])], a)
    t.row("rising", op, [vec("float", [1, 2, 3, 4])], a)
    t.row("cube", op, [drawn("float", [2, 2, 5])], a, tol=1e-6)
    t.row("one", op, [drawn("float", [4, 1])], a)
    t.row("empty", op, [drawn("float", [0, 3])], a)
    t.row("empty_rows", op, [drawn("float", [3, 0])], a)
    t.row("uint8", op, [drawn("uint8", [2, 3])], a, message="code-only")
    t.row("mixed", op, [drawn("float", [2, 3])], {"output_dtype": "double"}, message="code-only")
    t.row("grad", op, [drawn("double", [3, 8])], {"output_dtype": "double"}, grad=True)
    t.row("grad_cube", op, [drawn("double", [2, 2, 4])], {"output_dtype": "double"}, grad=True)


def gradients(t):
    a = {"strides": [1, 1, 1, 1, 1], "padding": "VALID"}
    x, f, y = [1, 3, 4, 3, 2], [2, 2, 2, 2, 3], [1, 2, 3, 2, 3]
    for d in ["half", "float", "double"]:
        inputs = lambda: [drawn(d, x), drawn(d, f), drawn(d, y)]
        t.row(d, "Conv3DBackpropInput", inputs(), a, tol=loose(d))
        t.row(d, "Conv3DBackpropFilter", inputs(), a, tol=loose(d))
    for name, x, f, y, more in [
        ("same", [2, 3, 4, 3, 2], [2, 2, 2, 2, 3], [2, 3, 4, 3, 3], {"padding": "SAME"}),
        ("stride", [1, 4, 4, 4, 1], [2, 2, 2, 1, 2], [1, 2, 2, 2, 2], {"strides": [1, 2, 2, 2, 1]}),
        ("empty", [0, 3, 3, 3, 1], [2, 2, 2, 1, 2], [0, 2, 2, 2, 2], {}),
        ("depth", [1, 3, 3, 3, 1], [2, 2, 2, 2, 2], [1, 2, 2, 2, 2], {}),
        ("out_depth", [1, 3, 3, 3, 1], [2, 2, 2, 1, 3], [1, 2, 2, 2, 2], {}),
        ("batch", [2, 3, 3, 3, 1], [2, 2, 2, 1, 2], [1, 2, 2, 2, 2], {}),
        ("size", [1, 3, 3, 3, 1], [2, 2, 2, 1, 2], [1, 2, 3, 2, 2], {}),
        ("rank", [1, 3, 3, 1], [2, 2, 2, 1, 2], [1, 2, 2, 2, 2], {}),
        ("filter_rank", [1, 3, 3, 3, 1], [2, 2, 1, 2], [1, 2, 2, 2, 2], {}),
        ("y_rank", [1, 3, 3, 3, 1], [2, 2, 2, 1, 2], [1, 2, 2, 2], {}),
        ("dilated", [1, 4, 3, 3, 1], [2, 2, 2, 1, 2], [1, 2, 2, 2, 2], {"dilations": [1, 2, 1, 1, 1]}),
    ]:
        inputs = [drawn("float", x), drawn("float", f), drawn("float", y)]
        for op in ["Conv3DBackpropInput", "Conv3DBackpropFilter"]:
            beyond = {"beyond": True} if name == "dilated" else {}  # stock runs it only with oneDNN
            t.row(name, op, inputs, dict(a, **more), tol=1e-5, **beyond)


def pooling(t):
    op, a = "MaxPoolGradGradV2", {"padding": "VALID"}
    # The pooled image holds the maxima, so that ties are found.
    x = [[1, 4, 2, 3], [5, 0, 7, 6], [8, 9, 1, 2], [3, 4, 6, 5]]
    flat = sum(x, [])
    for d in ["float", "double", "half", "bfloat16"] + I + U:
        image, pooled = given(d, [1, 4, 4, 1], flat), given(d, [1, 2, 2, 1], [5, 7, 9, 6])
        dx = drawn(d, [1, 4, 4, 1], 0, 9)
        t.row(d, op, [image, pooled, dx, ivec(1, 2, 2, 1), ivec(1, 2, 2, 1)], a)
    image, pooled = given("float", [1, 4, 4, 1], flat), given("float", [1, 2, 2, 1], [5, 7, 9, 6])
    dx = drawn("float", [1, 4, 4, 1])
    two = ivec(1, 2, 2, 1)
    t.row("fed", op, [image, pooled, dx, vec("int32", [1, 2, 2, 1]), two], a)
    t.row("same", op, [image, pooled, dx, two, two], {"padding": "SAME"})
    t.row("first", op, [image, pooled, dx, two, two], dict(a, data_format="NCHW"))
    t.row("depth", op, [image, pooled, dx, ivec(1, 1, 1, 2), two], a)
    t.row("batch", op, [image, pooled, dx, ivec(2, 2, 2, 1), two], a)
    t.row("three", op, [image, pooled, dx, ivec(2, 2, 1), two], a)
    t.row("strides_zero", op, [image, pooled, dx, two, ivec(1, 0, 2, 1)], a)
    t.row("sizes", op, [image, drawn("float", [1, 3, 2, 1]), dx, two, two], a)
    t.row("dx", op, [image, pooled, drawn("float", [1, 4, 3, 1]), two, two], a)
    g = [given("double", [1, 4, 4, 1], flat), given("double", [1, 2, 2, 1], [5, 7, 9, 6])]
    t.row("grad", op, g + [drawn("double", [1, 4, 4, 1]), two, two], a, grad=True, fd=False)


def fill(t):
    conv(t)
    padded(t)
    ranking(t)
    isotonic(t)
    gradients(t)
    pooling(t)
