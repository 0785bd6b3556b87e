"""3-D convolution and pooling, morphology, fractional pooling, old versions of ops."""

from .base import *


def volumes(t):
    """Adds 3-D convolutions: types, geometry, errors."""
    one5, x, f = [1, 1, 1, 1, 1], [2, 4, 5, 4, 2], [2, 3, 2, 2, 3]
    same, valid = {"strides": one5, "padding": "SAME"}, {"strides": one5, "padding": "VALID"}
    for d in F:
        t.row(d, "Conv3D", [drawn(d, x), drawn(d, f)], same, tol=loose(d))
        y = [2, 4, 5, 4, 3]
        t.row(
            d, "Conv3DBackpropInputV2", [ivec(*x), drawn(d, f), drawn(d, y)], same, tol=loose(d)
        )
        t.row(
            d,
            "Conv3DBackpropFilterV2",
            [drawn(d, x), ivec(*f), drawn(d, y)],
            same,
            tol=0.1 if d == "bfloat16" else max(loose(d), 1e-5),  # stock accumulates in bfloat16
        )
    strided = {"strides": [1, 2, 3, 1, 1], "padding": "SAME"}
    for name, a, y in [
        ("strided", strided, [2, 2, 2, 4, 3]),
        ("strided_valid", dict(strided, padding="VALID"), [2, 2, 1, 3, 3]),
    ]:
        t.row(name, "Conv3D", [drawn("float", x), drawn("float", f)], a, tol=1e-5)
        dy = drawn("float", y)
        t.row(name, "Conv3DBackpropInputV2", [ivec(*x), drawn("float", f), dy], a, tol=1e-5)
        t.row(name, "Conv3DBackpropFilterV2", [drawn("float", x), ivec(*f), dy], a, tol=1e-5)
        t.row("grad_" + name, "Conv3D", [drawn("double", x), drawn("double", f)], a, grad=True)
    dilated = dict(valid, dilations=[1, 2, 2, 2, 1])
    # Stock runs these only with oneDNN.
    t.row("dilated", "Conv3D", [drawn("float", x), drawn("float", f)], dilated, beyond=True)
    y, op = drawn("float", [2, 2, 1, 2, 3]), "Conv3DBackpropInputV2"
    t.row("dilated", op, [ivec(*x), drawn("float", f), y], dilated, beyond=True)
    op = "Conv3DBackpropFilterV2"
    t.row("dilated", op, [drawn("float", x), ivec(*f), y], dilated, beyond=True)
    inputs = [drawn("double", x), drawn("double", f)]
    t.row("grad_dilated", "Conv3D", inputs, dilated, grad=True, beyond=True)
    y = drawn("float", [2, 4, 5, 4, 3])
    t.row(
        "long_sizes",
        "Conv3DBackpropInputV2",
        [const(vec("int64", x)), drawn("float", f), y],
        same,
        tol=1e-5,
    )
    inputs = [drawn("float", x), drawn("float", f)]
    t.row("grouped", "Conv3D", [drawn("float", [1, 3, 3, 3, 4]), drawn("float", [2, 2, 2, 2, 4])], same)
    t.row("channels_first", "Conv3D", inputs, dict(same, data_format="NCDHW"), message="code-only")
    t.row("batch_stride", "Conv3D", inputs, {"strides": [2, 1, 1, 1, 1], "padding": "SAME"})
    t.row("zero_stride", "Conv3D", inputs, {"strides": [1, 0, 1, 1, 1], "padding": "SAME"})
    t.row("channel_dilation", "Conv3D", inputs, dict(same, dilations=[1, 1, 1, 1, 2]))
    t.row("few_strides", "Conv3D", inputs, {"strides": [1, 1, 1, 1, 1, 1], "padding": "SAME"})
    t.row("filter_rank", "Conv3D", [drawn("float", x), drawn("float", f[1:])], same)
    t.row("empty", "Conv3D", [drawn("float", [0] + x[1:]), drawn("float", f)], same)
    t.row("no_filters", "Conv3D", [drawn("float", x), drawn("float", f[:4] + [0])], same)
    t.row("too_small", "Conv3D", [drawn("float", [1, 1, 1, 1, 2]), drawn("float", f)], valid)
    for op, ins in [
        ("Conv3DBackpropInputV2", lambda a, b, c: [a, drawn("float", b), drawn("float", c)]),
        ("Conv3DBackpropFilterV2", lambda a, b, c: [drawn("float", b), a, drawn("float", c)]),
    ]:
        sizes, other = (x, f) if op == "Conv3DBackpropInputV2" else (f, x)
        fed = vec("int32", sizes)
        t.row("fed_sizes", op, ins(fed, other, [2, 4, 5, 4, 3]), same, tol=1e-5)
        t.row("y_rank", op, ins(fed, other, [2, 4, 5, 4]), same)
        t.row("y_batch", op, ins(fed, other, [3, 4, 5, 4, 3]), same)
        t.row("y_depth", op, ins(fed, other, [2, 4, 5, 4, 2]), same)
        t.row("y_size", op, ins(fed, other, [2, 4, 5, 3, 3]), same)
        t.row("rank", op, ins(fed, other[1:], [2, 4, 5, 4, 3]), same)
        t.row("sizes_rank", op, ins(given("int32", [1, 5], sizes), other, [2, 4, 5, 4, 3]), same)
        t.row("few_sizes", op, ins(vec("int32", sizes[1:]), other, [2, 4, 5, 4, 3]), same)
        t.row("negative", op, ins(vec("int32", [-1] + sizes[1:]), other, [2, 4, 5, 4, 3]), same)
        t.row("empty", op, ins(vec("int32", [0] + sizes[1:]), other, [0, 4, 5, 4, 3]), same)


def pools(t, pool, x, y):
    """Adds 3-D pooling: geometry, errors."""
    odd = {"ksize": [1, 3, 2, 3, 1], "strides": [1, 2, 1, 2, 1], "padding": "SAME"}
    pooled = lambda a, **more: node("MaxPool3D", [use("x")], a, **more)
    for name, a, size in [
        ("odd", odd, [1, 2, 4, 2, 2]),
        ("odd_valid", dict(odd, padding="VALID"), [1, 1, 3, 1, 2]),
    ]:
        t.row(name, "MaxPool3D", [drawn("float", x)], a)
        t.row(name, "AvgPool3D", [drawn("float", x)], a, tol=1e-6)
        t.row(name, "AvgPool3DGrad", [ivec(*x), drawn("float", size)], a, tol=1e-6)
        t.row(
            name,
            "MaxPool3DGrad",
            [drawn("float", x, id="x"), pooled(a), drawn("float", size)],
            a,
            tol=1e-6,
        )
        t.row(
            name,
            "MaxPool3DGradGrad",
            [drawn("float", x, id="x"), pooled(a), drawn("float", x)],
            a,
        )
        t.row("grad_" + name, "AvgPool3D", [drawn("float", x)], a, grad=True)
        t.row("grad_" + name, "MaxPool3D", [drawn("float", x)], a, grad=True, fd=False)
    t.row(
        "grad",
        "AvgPool3DGrad",
        [ivec(*x), drawn("float", y)],
        pool,
        grad=True,
    )
    t.row(
        "bfloat16",
        "MaxPool3DGrad",
        [drawn("bfloat16", x, id="x"), pooled(pool), drawn("bfloat16", y)],
        pool,
    )
    t.row(
        "bfloat16",
        "MaxPool3DGradGrad",
        [drawn("bfloat16", x, id="x"), pooled(pool), drawn("bfloat16", x)],
        pool,
    )
    t.row("ties", "MaxPool3D", [given("float", x, 1)], pool)
    t.row(
        "ties",
        "MaxPool3DGrad",
        [given("float", x, 1, id="x"), pooled(pool), drawn("float", y)],
        pool,
    )
    for op in ("MaxPool3D", "AvgPool3D"):
        t.row("empty", op, [drawn("float", [0] + x[1:])], pool)
        t.row("channels_first", op, [drawn("float", x)], dict(pool, data_format="NCDHW"), message="code-only")
        t.row("batch", op, [drawn("float", x)], dict(pool, ksize=[2, 1, 1, 1, 1]))
        t.row("depth", op, [drawn("float", x)], dict(pool, ksize=[1, 1, 1, 1, 2]))
        t.row("zero", op, [drawn("float", x)], dict(pool, ksize=[1, 0, 1, 1, 1]))
        t.row("zero_stride", op, [drawn("float", x)], dict(pool, strides=[1, 0, 1, 1, 1]))
        t.row("too_large", op, [drawn("float", x)], dict(pool, ksize=[1, 5, 1, 1, 1], padding="VALID"))
    three = [drawn("float", x), drawn("float", y), drawn("float", y)]
    t.row("bad_y", "MaxPool3DGrad", [three[0], drawn("float", [1, 2, 2, 1, 2]), three[2]], pool)
    t.row("bad_dy", "MaxPool3DGrad", three[:2] + [drawn("float", [1, 2, 2, 1, 2])], pool)
    t.row("rank", "MaxPool3DGrad", [drawn("float", x[1:])] + three[1:], pool)
    t.row("bad_dy", "AvgPool3DGrad", [vec("int32", x), drawn("float", [1, 2, 2, 1, 2])], pool)
    t.row("few_sizes", "AvgPool3DGrad", [vec("int32", x[1:]), drawn("float", y)], pool)
    t.row("rank", "AvgPool3DGrad", [vec("int32", x), drawn("float", y[1:])], pool)


def fractional(t, fraction):
    """Adds fractional pooling: types, gradients, errors."""
    x, wrong = [2, 5, 7, 2], {"wrong_static": [1, 2]}
    even = dict(fraction, pooling_ratio=[1.0, 1.4, 1.6, 1.0])
    for op in ("FractionalMaxPool", "FractionalAvgPool"):
        t.each("", op, "f i", lambda d: [drawn(d, x, -50, 50)], even, **wrong)
        t.row("larger", op, [drawn("float", [1, 23, 19, 1])], even, **wrong)
        t.row("larger_pseudo", op, [drawn("float", [1, 23, 19, 1])], dict(even, pseudo_random=True), **wrong)
        t.row("rank", op, [drawn("float", x[1:])], even, **wrong)
        t.row("small_ratio", op, [drawn("float", x)], dict(even, pooling_ratio=[1.0, 0.5, 1.0, 1.0]))
        t.row("few_ratios", op, [drawn("float", x)], dict(even, pooling_ratio=[1.0] * 5))
        t.row("no_seed", op, [drawn("float", x)], dict(even, deterministic=False), **wrong)
        for name, more in (("", {}), ("overlapping", {"overlapping": True})):
            t.row(
                "grad" + name,
                op,
                [drawn("double", x)],
                dict(even, **more),
                grad=True,
                grad_outputs=[0],
                fd=False,
                **wrong
            )
    starts = [const(vec("int64", [0, 1, 3, 5])), const(vec("int64", [0, 2, 4, 5, 7]))]
    dy, size = drawn("float", [2, 3, 4, 2]), const(vec("int64", x))
    for name, a in (("", {}), ("_overlapping", {"overlapping": True})):
        for d in dtypes("f i"):
            t.row(
                d + name,
                "FractionalAvgPoolGrad",
                [size, drawn(d, [2, 3, 4, 2], 10, 90)] + starts,
                a,
            )
        t.row(
            "f" + name,
            "FractionalMaxPoolGrad",
            [
                drawn("float", x, id="x"),
                node("FractionalMaxPool", [use("x")], dict(even, **a), id="p"),
                drawn("float", [2, 3, 4, 2]),
                use("p", 1),
                use("p", 2),
            ],
            a,
        )
    t.row("dy_rank", "FractionalAvgPoolGrad", [size, drawn("float", [3, 4, 2])] + starts, message="code-only")
    average_sequences(t, x, starts)
    images = [drawn("float", x), drawn("float", dy["shape"]), dy]
    for name, rows in (("scalar", scalar("int64", 0)), ("matrix", given("int64", [1, 2], [0, 2]))):
        t.row("rows_" + name, "FractionalMaxPoolGrad", images + [rows, starts[1]])
        t.row("columns_" + name, "FractionalMaxPoolGrad", images + [starts[0], rows])
    t.row("few_sizes", "FractionalAvgPoolGrad", [vec("int64", x[1:]), dy] + starts, message="code-only")


def average_sequences(t, x, starts):
    """Adds unusual sequences and sizes: those that FractionalAvgPoolGrad accepts, and those that it rejects."""
    dy, size = drawn("float", [2, 3, 4, 2]), vec("int64", x)
    ints = lambda values: vec("int64", values)
    for name, rows in (
        ("short", [0, 1]),
        ("negative", [-10, 1, 2, 3]),
        ("negative_later", [0, 1, -2, 100]),
        ("ends_at_0", [0, 0, 3, 5]),
        ("beyond", [0, 2, 30, 40]),
        ("descending", [0, 3, 1, 5]),
        ("long", [0, 1, 3, 5, 6, -7]),
    ):
        for a in ({}, {"overlapping": True}):
            more = "_overlapping" if a else ""
            t.row("rows_" + name + more, "FractionalAvgPoolGrad", [size, dy, ints(rows), starts[1]], a)
            columns = [size, drawn("float", [2, 3, 3, 2]), starts[0], ints(rows)]
            t.row("columns_" + name + more, "FractionalAvgPoolGrad", columns, a)
    t.row("fewer_images", "FractionalAvgPoolGrad", [size, drawn("float", [1, 3, 4, 2])] + starts)
    t.row("rows_matrix", "FractionalAvgPoolGrad", [size, dy, given("int64", [2, 2], [0, 1, 3, 5]), starts[1]])
    t.row("no_rows", "FractionalAvgPoolGrad", [size, drawn("float", [2, 0, 4, 2])] + starts)
    for axis in range(4):
        none = x[:axis] + [0] + x[axis + 1 :]
        t.row("size_0_%d" % axis, "FractionalAvgPoolGrad", [ints(none), dy] + starts)
    images = [drawn("float", x), drawn("float", [2, 3, 4, 2]), dy]
    for name, rows in (("beyond", [0, 20, 30, 40]), ("descending", [0, 3, 1, 5])):
        t.row("rows_" + name, "FractionalMaxPoolGrad", images + [ints(rows), starts[1]])
    ones = [const(given("float", s, [1.0] * n)) for s, n in (([1, 4, 4, 1], 16), ([1, 2, 2, 1], 4))]
    halves = [ints([0, 2, 40]), ints([0, 2, 4])]
    t.row("rows_far", "FractionalMaxPoolGrad", [ones[0], ones[1], ones[1]] + halves)
    for name, sizes in (("no_input", [[1, 0, 4, 1], [1, 2, 2, 1]]), ("no_output", [[1, 4, 4, 1], [1, 0, 2, 1]])):
        given_ = [drawn("float", sizes[0]), drawn("float", sizes[1]), drawn("float", sizes[1])]
        t.row(name, "FractionalMaxPoolGrad", given_ + halves)


def fill(t):
    one5 = [1, 1, 1, 1, 1]
    for pad in ("SAME", "VALID"):
        a = {"strides": one5, "padding": pad}
        y = [1, 3, 3, 4, 2] if pad == "SAME" else [1, 2, 2, 3, 2]
        for d in ("float", "double"):
            t.row(
                "%s_%s" % (pad, d),
                "Conv3D",
                [drawn(d, [1, 3, 3, 4, 2]), drawn(d, [2, 2, 2, 2, 2])],
                a,
                tol=loose(d),
            )
        t.row(
            pad,
            "Conv3DBackpropInputV2",
            [ivec(1, 3, 3, 4, 2), drawn("float", [2, 2, 2, 2, 2]), drawn("float", y)],
            a,
            tol=1e-5,
        )
        t.row(
            pad,
            "Conv3DBackpropFilterV2",
            [drawn("float", [1, 3, 3, 4, 2]), ivec(2, 2, 2, 2, 2), drawn("float", y)],
            a,
            tol=1e-5,
        )
        t.row(
            "grad_" + pad,
            "Conv3D",
            [drawn("double", [1, 3, 3, 2, 1]), drawn("double", [2, 2, 2, 1, 2])],
            a,
            grad=True,
        )
    t.row(
        "stride",
        "Conv3D",
        [drawn("float", [1, 4, 4, 4, 1]), drawn("float", [2, 2, 2, 1, 2])],
        {"strides": [1, 2, 2, 2, 1], "padding": "SAME"},
        tol=1e-5,
    )
    t.row(
        "channels",
        "Conv3D",
        [drawn("float", [1, 4, 4, 4, 3]), drawn("float", [2, 2, 2, 1, 2])],
        {"strides": one5, "padding": "SAME"},
        message="code-only",
    )
    t.row(
        "rank",
        "Conv3D",
        [drawn("float", [4, 4, 4, 3]), drawn("float", [2, 2, 2, 3, 2])],
        {"strides": one5, "padding": "SAME"},
    )
    volumes(t)
    pool = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": "SAME"}
    x, y = [1, 3, 4, 4, 2], [1, 2, 2, 2, 2]
    for d in ("float", "bfloat16"):
        t.row(d, "MaxPool3D", [drawn(d, x)], pool)
    for d in ("float", "bfloat16"):
        t.row(d, "AvgPool3D", [drawn(d, x)], pool)
        t.row(d, "AvgPool3DGrad", [ivec(*x), drawn(d, y)], pool)
    t.row(
        "float",
        "MaxPool3DGrad",
        [drawn("float", x, id="x"), node("MaxPool3D", [use("x")], pool), drawn("float", y)],
        pool,
    )
    pools(t, pool, x, y)
    t.row("valid", "MaxPool3D", [drawn("float", x)], dict(pool, padding="VALID"))
    t.row("valid", "AvgPool3D", [drawn("float", x)], dict(pool, padding="VALID"))
    t.row("rank", "MaxPool3D", [drawn("float", x[1:])], pool)
    t.row("grad", "MaxPool3D", [drawn("float", x)], pool, grad=True, fd=False)
    t.row("grad", "AvgPool3D", [drawn("float", x)], pool, grad=True)
    k = [ivec(1, 2, 2, 1), ivec(1, 2, 2, 1)]
    for d in ("float", "double", "half", "int32"):
        t.row(d, "MaxPoolV2", [drawn(d, [1, 4, 4, 2])] + k, {"padding": "VALID"})
    t.row(
        "fed",
        "MaxPoolV2",
        [drawn("float", [1, 5, 5, 1]), vec("int32", [1, 3, 3, 1]), vec("int32", [1, 2, 2, 1])],
        {"padding": "SAME"},
    )
    t.row(
        "short",
        "MaxPoolV2",
        [drawn("float", [1, 5, 5, 1]), vec("int32", [3, 3]), vec("int32", [1, 2, 2, 1])],
        {"padding": "SAME"},
    )
    t.row("grad", "MaxPoolV2", [drawn("double", [1, 4, 4, 1])] + k, {"padding": "VALID"}, grad=True)
    t.row(
        "float",
        "MaxPoolGradV2",
        [
            drawn("float", [1, 4, 4, 1], id="x"),
            node("MaxPoolV2", [use("x")] + k, {"padding": "VALID"}),
            drawn("float", [1, 2, 2, 1]),
        ]
        + k,
        {"padding": "VALID"},
    )
    flat = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    t.row(
        "float",
        "MaxPoolGradWithArgmax",
        [
            drawn("float", [1, 4, 4, 1], id="x"),
            drawn("float", [1, 2, 2, 1]),
            dict(node("MaxPoolWithArgmax", [use("x")], flat), output=1),
        ],
        flat,
    )
    t.row("int32", "MaxPoolWithArgmax", [drawn("float", [2, 4, 4, 2])], dict(flat, Targmax="int32"))
    t.row(
        "batch_index",
        "MaxPoolWithArgmax",
        [drawn("float", [2, 4, 4, 2])],
        dict(flat, include_batch_in_index=True),
    )
    t.row(
        "grad",
        "MaxPoolWithArgmax",
        [drawn("double", [1, 4, 4, 1])],
        flat,
        grad=True,
        grad_outputs=[0],
    )
    morphology = {"strides": [1, 1, 1, 1], "rates": [1, 1, 1, 1], "padding": "SAME"}
    for d in dtypes("half f i"):
        t.row(d, "Dilation2D", [drawn(d, [1, 4, 4, 2]), drawn(d, [2, 2, 2])], morphology)
    for op in ("Dilation2DBackpropInput", "Dilation2DBackpropFilter"):
        t.row(
            "float",
            op,
            [drawn("float", [1, 4, 4, 2]), drawn("float", [2, 2, 2]), drawn("float", [1, 4, 4, 2])],
            morphology,
        )
    for size, stride in ((4, 1), (5, 1), (5, 2), (6, 2), (7, 3), (8, 2)):
        t.row(
            "large_%d_%d" % (size, stride),
            "Dilation2D",
            [drawn("float", [1, 3, 3, 1]), drawn("float", [size, 2, 1])],
            dict(morphology, strides=[1, stride, 1, 1], padding="VALID"),
        )
    t.row(
        "rates",
        "Dilation2D",
        [drawn("float", [1, 5, 5, 1]), drawn("float", [2, 2, 1])],
        dict(morphology, rates=[1, 2, 2, 1], padding="VALID"),
    )
    t.row(
        "grad",
        "Dilation2D",
        [drawn("double", [1, 3, 3, 1]), drawn("double", [2, 2, 1])],
        morphology,
        grad=True,
    )
    fraction = {
        "pooling_ratio": [1.0, 1.44, 1.73, 1.0],
        "deterministic": True,
        "seed": 5,
        "seed2": 2,
    }
    for op in ("FractionalMaxPool", "FractionalAvgPool"):
        for name, more in (
            ("plain", {}),
            ("pseudo", {"pseudo_random": True}),
            ("overlapping", {"overlapping": True}),
        ):
            t.row(name, op, [drawn("float", [1, 6, 6, 2])], dict(fraction, **more), wrong_static=[1, 2])
        t.row(
            "bad_ratio",
            op,
            [drawn("float", [1, 6, 6, 2])],
            dict(fraction, pooling_ratio=[2.0, 1.0, 1.0, 1.0]),
            wrong_static=[1, 2],
        )
    t.row(
        "float",
        "FractionalMaxPoolGrad",
        [
            drawn("float", [1, 4, 4, 1], id="x"),
            node(
                "FractionalMaxPool",
                [use("x")],
                dict(fraction, pooling_ratio=[1.0, 2.0, 2.0, 1.0]),
                id="p",
            ),
            drawn("float", [1, 2, 2, 1]),
            use("p", 1),
            use("p", 2),
        ],
    )
    fractional(t, fraction)
    for d in dtypes("F I U"):
        t.row(d, "NthElement", [drawn(d, [2, 7]), iscalar(2)])
        t.row("repeated_" + d, "NthElement", [drawn(d, [3, 60], 0, 3), iscalar(29)])
        t.row("equal_" + d, "NthElement", [given(d, [1, 300], [1] * 300), iscalar(7)])
    t.row("long", "NthElement", [drawn("float", [2, 300]), iscalar(150)])
    t.row("reverse", "NthElement", [drawn("float", [2, 7]), iscalar(2)], {"reverse": True})
    t.row("high", "NthElement", [drawn("float", [7]), scalar("int32", 7)])
    t.row("grad", "NthElement", [drawn("double", [2, 5]), iscalar(1)], grad=True)
    c = lambda: drawn("float", [2], 0.5, 1.5)
    norm = {"variance_epsilon": 0.01, "scale_after_normalization": True}
    t.row(
        "deprecated",
        "BatchNormWithGlobalNormalization",
        [drawn("float", [1, 2, 2, 2]), c(), c(), c(), c()],
        norm,
    )
    t.row(
        "deprecated",
        "BatchNormWithGlobalNormalizationGrad",
        [drawn("float", [1, 2, 2, 2]), c(), c(), c(), drawn("float", [1, 2, 2, 2])],
        norm,
    )
