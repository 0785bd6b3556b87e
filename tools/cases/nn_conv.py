"""Convolution and pooling."""

from .base import *

# name, input, filter, attrs
CONV = [
    ("valid", [1, 5, 5, 2], [3, 3, 2, 4], {"padding": "VALID"}),
    ("same", [2, 5, 4, 2], [3, 3, 2, 3], {"padding": "SAME"}),
    ("same_even", [1, 4, 5, 1], [2, 2, 1, 2], {"padding": "SAME"}),
    ("1x1", [2, 3, 3, 5], [1, 1, 5, 4], {"padding": "VALID"}),
    ("1x1_stride", [1, 5, 5, 3], [1, 1, 3, 2], {"padding": "SAME", "strides": [1, 2, 2, 1]}),
    ("stride2", [1, 7, 6, 2], [3, 3, 2, 3], {"padding": "SAME", "strides": [1, 2, 2, 1]}),
    ("stride21", [1, 7, 6, 2], [3, 2, 2, 3], {"padding": "VALID", "strides": [1, 2, 1, 1]}),
    ("stride3", [1, 8, 8, 1], [2, 2, 1, 1], {"padding": "SAME", "strides": [1, 3, 3, 1]}),
    ("dilated", [1, 7, 7, 2], [3, 3, 2, 2], {"padding": "VALID", "dilations": [1, 2, 2, 1]}),
    ("dilated_same", [1, 6, 6, 1], [2, 2, 1, 2], {"padding": "SAME", "dilations": [1, 2, 3, 1]}),
    (
        "explicit",
        [1, 4, 5, 2],
        [3, 3, 2, 2],
        {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]},
    ),
    ("whole", [2, 3, 4, 2], [3, 4, 2, 3], {"padding": "VALID"}),
    ("wide_channels", [1, 3, 3, 17], [2, 2, 17, 19], {"padding": "SAME"}),
    ("batch", [5, 4, 4, 3], [3, 3, 3, 2], {"padding": "SAME"}),
    ("row_filter", [1, 3, 7, 2], [1, 5, 2, 2], {"padding": "SAME"}),
    ("filter_larger", [1, 2, 2, 1], [3, 3, 1, 1], {"padding": "SAME"}),
]


def out_shape(x, f, attrs):
    s, dil = attrs.get("strides", [1, 1, 1, 1]), attrs.get("dilations", [1, 1, 1, 1])
    pads = attrs.get("explicit_paddings", [0] * 8)
    out = [x[0]]
    for i in (1, 2):
        k = (f[i - 1] - 1) * dil[i] + 1
        n = x[i] + pads[2 * i] + pads[2 * i + 1]
        out.append(-(-n // s[i]) if attrs["padding"] == "SAME" else (n - k) // s[i] + 1)
    return out + [f[3]]


def beyond(attrs):
    """Marks rows of dilated convolutions, for which stock has no gradients on the CPU."""
    return {"beyond": True} if "dilations" in attrs else {}


def conv(t):
    with_strides = lambda a: dict({"strides": [1, 1, 1, 1]}, **a)
    for d in F:
        x, f = [1, 5, 5, 2], [3, 3, 2, 3]
        a = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        t.row(d, "Conv2D", [drawn(d, x), drawn(d, f)], a, tol=loose(d))
        t.row(
            d,
            "Conv2DBackpropInput",
            [ivec(*x), drawn(d, f), drawn(d, [1, 5, 5, 3])],
            a,
            tol=loose(d),
        )
        t.row(
            d,
            "Conv2DBackpropFilter",
            [drawn(d, x), ivec(*f), drawn(d, [1, 5, 5, 3])],
            a,
            tol=loose(d),
        )
    t.row(
        "int32",
        "Conv2D",
        [drawn("int32", [1, 4, 4, 1]), drawn("int32", [2, 2, 1, 1])],
        {"strides": [1, 1, 1, 1], "padding": "VALID"},
    )
    for name, x, f, a in CONV:
        a = with_strides(a)
        y = out_shape(x, f, a)
        t.row(name, "Conv2D", [drawn("float", x), drawn("float", f)], a, tol=1e-5)
        t.row(
            name,
            "Conv2DBackpropInput",
            [ivec(*x), drawn("float", f), drawn("float", y)],
            a,
            tol=1e-5,
            **beyond(a)
        )
        t.row(
            name,
            "Conv2DBackpropFilter",
            [drawn("float", x), ivec(*f), drawn("float", y)],
            a,
            tol=1e-5,
            **beyond(a)
        )
        if name not in ("wide_channels", "batch"):
            t.row(
                "grad_" + name,
                "Conv2D",
                [drawn("double", x), drawn("double", f)],
                a,
                grad=True,
                **wrong_in_stock(name == "explicit")
            )
        if "dilations" in a:
            t.row(
                "grad_float_" + name,
                "Conv2D",
                [drawn("float", x), drawn("float", f)],
                a,
                grad=True,
                tol=1e-5,
            )
    same = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    t.row(
        "grad_float",
        "Conv2D",
        [drawn("float", [1, 4, 4, 2]), drawn("float", [3, 3, 2, 2])],
        same,
        grad=True,
        tol=1e-5,
    )
    t.row(
        "grad",
        "Conv2DBackpropInput",
        [ivec(1, 4, 4, 2), drawn("double", [3, 3, 2, 2]), drawn("double", [1, 4, 4, 2])],
        same,
        grad=True,
    )
    t.row(
        "grad",
        "Conv2DBackpropFilter",
        [drawn("double", [1, 4, 4, 2]), ivec(3, 3, 2, 2), drawn("double", [1, 4, 4, 2])],
        same,
        grad=True,
    )
    for name, x, f, a in [
        ("empty_batch", [0, 4, 4, 2], [3, 3, 2, 3], same),
        ("no_output", [1, 2, 2, 1], [3, 3, 1, 1], dict(same, padding="VALID")),
        ("channels", [1, 4, 4, 2], [3, 3, 3, 3], same),
        ("groups", [1, 4, 4, 4], [2, 2, 2, 4], same),
        ("rank3", [4, 4, 2], [3, 3, 2, 3], same),
        ("filter_rank", [1, 4, 4, 2], [3, 3, 2], same),
        ("stride_batch", [1, 4, 4, 2], [3, 3, 2, 3], dict(same, strides=[2, 1, 1, 1])),
        ("stride_zero", [1, 4, 4, 2], [3, 3, 2, 3], dict(same, strides=[1, 0, 1, 1])),
        ("strides_short", [1, 4, 4, 2], [3, 3, 2, 3], dict(same, strides=[1, 1, 1])),
        ("dilation_zero", [1, 4, 4, 2], [3, 3, 2, 3], dict(same, dilations=[1, 0, 1, 1])),
        ("bad_padding", [1, 4, 4, 2], [3, 3, 2, 3], dict(same, padding="FULL")),
        ("explicit_missing", [1, 4, 4, 2], [3, 3, 2, 3], dict(same, padding="EXPLICIT")),
        (
            "explicit_negative",
            [1, 4, 4, 2],
            [3, 3, 2, 3],
            dict(same, padding="EXPLICIT", explicit_paddings=[0, 0, -1, 0, 0, 0, 0, 0]),
        ),
        (
            "paddings_unasked",
            [1, 4, 4, 2],
            [3, 3, 2, 3],
            dict(same, explicit_paddings=[0, 0, 1, 1, 1, 1, 0, 0]),
        ),
        ("no_filter", [1, 4, 4, 2], [0, 3, 2, 3], same),
    ]:
        t.row(name, "Conv2D", [drawn("float", x), drawn("float", f)], a, tol=1e-5)
    t.row(
        "special",
        "Conv2D",
        [given("float", [1, 2, 2, 1], [1, NAN, INF, 2]), given("float", [1, 2, 1, 1], [1, 0.0])],
        same,
    )
    t.row(
        "no_padding_attr",
        "Conv2D",
        [drawn("float", [1, 4, 4, 2]), drawn("float", [3, 3, 2, 3])],
        {"strides": [1, 1, 1, 1]},
    )
    t.row(
        "fed_sizes",
        "Conv2DBackpropInput",
        [vec("int32", [1, 4, 4, 2]), drawn("float", [3, 3, 2, 2]), drawn("float", [1, 4, 4, 2])],
        same,
        tol=1e-5,
    )
    t.row(
        "fed_sizes",
        "Conv2DBackpropFilter",
        [drawn("float", [1, 4, 4, 2]), vec("int32", [3, 3, 2, 2]), drawn("float", [1, 4, 4, 2])],
        same,
        tol=1e-5,
    )
    t.row(
        "bad_sizes",
        "Conv2DBackpropInput",
        [vec("int32", [1, 9, 4, 2]), drawn("float", [3, 3, 2, 2]), drawn("float", [1, 4, 4, 2])],
        same,
    )
    t.row(
        "bad_sizes",
        "Conv2DBackpropFilter",
        [drawn("float", [1, 4, 4, 2]), vec("int32", [3, 3, 3, 2]), drawn("float", [1, 4, 4, 2])],
        same,
    )
    t.row(
        "two_sizes",
        "Conv2DBackpropInput",
        [vec("int32", [4, 4]), drawn("float", [3, 3, 2, 2]), drawn("float", [1, 4, 4, 2])],
        same,
        tol=1e-5,
    )
    t.row(
        "empty_batch",
        "Conv2DBackpropFilter",
        [drawn("float", [0, 4, 4, 2]), ivec(3, 3, 2, 2), drawn("float", [0, 4, 4, 2])],
        same,
    )


POOL = [
    ("2x2", [1, 4, 4, 2], [2, 2], [2, 2], "VALID"),
    ("2x2_odd", [1, 5, 5, 1], [2, 2], [2, 2], "VALID"),
    ("same_odd", [1, 5, 5, 1], [2, 2], [2, 2], "SAME"),
    ("3x3_stride2", [2, 7, 6, 3], [3, 3], [2, 2], "VALID"),
    ("3x3_same", [1, 5, 6, 2], [3, 3], [1, 1], "SAME"),
    ("overlap", [1, 5, 5, 1], [3, 3], [1, 1], "VALID"),
    ("3x2", [1, 6, 5, 2], [3, 2], [1, 2], "SAME"),
    ("whole", [2, 4, 3, 3], [4, 3], [1, 1], "VALID"),
    ("gaps", [1, 7, 7, 1], [1, 1], [3, 3], "VALID"),
    ("channels", [1, 4, 4, 37], [2, 2], [2, 2], "VALID"),
    ("larger_same", [1, 2, 2, 1], [3, 3], [1, 1], "SAME"),
]


def pool(t):
    attrs = lambda k, s, p, **more: dict(
        {"ksize": [1] + k + [1], "strides": [1] + s + [1], "padding": p}, **more
    )
    plain = attrs([2, 2], [2, 2], "VALID")
    t.each("", "MaxPool", "F I uint8 uint16", lambda d: [drawn(d, [1, 4, 4, 2])], plain)
    t.each("", "AvgPool", "F", lambda d: [drawn(d, [1, 4, 4, 2])], plain)
    for d in F:
        x, y = [1, 4, 4, 2], [1, 2, 2, 2]
        t.row(d, "AvgPoolGrad", [ivec(*x), drawn(d, y)], plain)
    for name, x, k, s, p in POOL:
        y = (
            [x[0]]
            + [
                -(-n // st) if p == "SAME" else (n - kk) // st + 1
                for n, kk, st in zip(x[1:3], k, s)
            ]
            + [x[3]]
        )
        a = attrs(k, s, p)
        t.row(name, "MaxPool", [drawn("float", x)], a)
        t.row(name, "AvgPool", [drawn("float", x)], a)
        t.row(name, "AvgPoolGrad", [ivec(*x), drawn("float", y)], a)
        t.row(
            name,
            "MaxPoolGrad",
            [drawn("float", x, id="x"), node("MaxPool", [use("x")], a), drawn("float", y)],
            a,
        )
        t.row(name, "MaxPoolWithArgmax", [drawn("float", x)], a)
        if name != "channels":
            for op in ("MaxPool", "AvgPool"):
                t.row("grad_" + name, op, [drawn("double", x)], a, grad=True)
            t.row("grad_" + name, "AvgPoolGrad", [ivec(*x), drawn("double", y)], a, grad=True)
    t.row("grad_float", "MaxPool", [drawn("float", [1, 4, 4, 2])], plain, grad=True, fd=False)
    t.row("grad_float", "AvgPool", [drawn("float", [1, 4, 4, 2])], plain, grad=True)
    for d in ("half", "bfloat16", "double"):
        t.row(
            d,
            "MaxPoolGrad",
            [
                drawn(d, [1, 4, 4, 1], id="x"),
                node("MaxPool", [use("x")], plain),
                drawn(d, [1, 2, 2, 1]),
            ],
            plain,
        )
    t.row(
        "ties", "MaxPool", [given("double", [1, 2, 2, 1], [1, 1, 1, 1])], plain, grad=True, fd=False
    )
    t.row(
        "special",
        "MaxPool",
        [given("float", [1, 2, 4, 1], [1, NAN, 2, INF, 3, 4, "-inf", 5])],
        plain,
    )
    t.row(
        "all_low",
        "MaxPool",
        [given("float", [1, 2, 2, 1], ["-inf"])],
        attrs([3, 3], [1, 1], "SAME"),
    )
    t.row(
        "special",
        "AvgPool",
        [given("float", [1, 2, 4, 1], [1, NAN, 2, INF, 3, 4, "-inf", 5])],
        plain,
    )
    explicit = attrs([2, 2], [2, 2], "EXPLICIT", explicit_paddings=[0, 0, 1, 1, 0, 1, 0, 0])
    t.row("explicit", "MaxPool", [drawn("float", [1, 4, 5, 1], -3, -1)], explicit)
    for op in ("MaxPool", "AvgPool"):
        t.row("empty", op, [drawn("float", [0, 4, 4, 1])], plain)
        t.row("rank3", op, [drawn("float", [4, 4, 1])], plain)
        t.row("no_output", op, [drawn("float", [1, 1, 1, 1])], plain)
        t.row("ksize_short", op, [drawn("float", [1, 4, 4, 1])], dict(plain, ksize=[2, 2]))
        t.row("ksize_zero", op, [drawn("float", [1, 4, 4, 1])], dict(plain, ksize=[1, 0, 2, 1]))
        t.row("stride_zero", op, [drawn("float", [1, 4, 4, 1])], dict(plain, strides=[1, 0, 2, 1]))
        t.row(
            "batch_pool",
            op,
            [drawn("float", [2, 4, 4, 1])],
            dict(plain, ksize=[2, 1, 1, 1], strides=[2, 1, 1, 1]),
        )
        t.row("bool", op, [drawn("bool", [1, 4, 4, 1])], plain)
    t.row(
        "depth_pool",
        "MaxPool",
        [drawn("float", [1, 2, 2, 4])],
        dict(plain, ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2]),
    )
    t.row(
        "bad_dy",
        "MaxPoolGrad",
        [drawn("float", [1, 4, 4, 1]), drawn("float", [1, 2, 2, 1]), drawn("float", [1, 3, 3, 1])],
        plain,
    )
    t.row("bad_dy", "AvgPoolGrad", [ivec(1, 4, 4, 1), drawn("float", [1, 3, 3, 1])], plain)
    ones = {"ksize": [1, 1, 1, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}
    t.row("many_images", "AvgPoolGrad", [ivec(1, 1, 3, 1), drawn("float", [3, 1, 3, 1])], ones)
    t.row("few_columns", "AvgPoolGrad", [ivec(1, 1, 3, 1), drawn("float", [1, 1, 2, 1])], ones)
    far = {"ksize": [1, 40, 128, 1], "strides": [1, 128, 128, 30], "padding": "SAME"}
    t.row("far", "AvgPoolGrad", [ivec(11, 9, 78, 9), drawn("double", [16, 16, 16, 16])], far)
    t.row("depth", "AvgPoolGrad", [ivec(1, 4, 4, 4), drawn("float", [1, 2, 2, 2])], dict(far, ksize=[1, 2, 2, 2], strides=[1, 2, 2, 2]))
    t.row(
        "grad",
        "MaxPoolGrad",
        [
            drawn("double", [1, 4, 4, 1]),
            node("MaxPool", [drawn("double", [1, 4, 4, 1])], plain),
            drawn("double", [1, 2, 2, 1]),
        ],
        plain,
        grad=True,
        fd=False,
    )
    t.row(
        "plain",
        "MaxPoolGradGrad",
        [
            drawn("float", [1, 4, 4, 1], id="x"),
            node("MaxPool", [use("x")], plain),
            drawn("float", [1, 4, 4, 1]),
        ],
        plain,
    )


def depthwise(t):
    op = "DepthwiseConv2dNative"
    for d in F:
        t.row(
            d,
            op,
            [drawn(d, [1, 4, 4, 2]), drawn(d, [3, 3, 2, 2])],
            {"strides": [1, 1, 1, 1], "padding": "SAME"},
            tol=loose(d),
        )
    for name, x, f, a in [
        ("valid", [2, 5, 5, 3], [3, 2, 3, 1], {"padding": "VALID"}),
        ("stride2", [1, 6, 5, 2], [3, 3, 2, 3], {"padding": "SAME", "strides": [1, 2, 2, 1]}),
        (
            "explicit",
            [1, 4, 4, 2],
            [3, 3, 2, 1],
            {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 0, 0, 1, 0, 0]},
        ),
    ]:
        a = dict({"strides": [1, 1, 1, 1]}, **a)
        y = out_shape(x, f[:3] + [f[2] * f[3]], a)
        t.row(name, op, [drawn("float", x), drawn("float", f)], a, tol=1e-5)
        t.row(
            name,
            op + "BackpropInput",
            [ivec(*x), drawn("float", f), drawn("float", y)],
            a,
            tol=1e-5,
        )
        t.row(
            name,
            op + "BackpropFilter",
            [drawn("float", x), ivec(*f), drawn("float", y)],
            a,
            tol=1e-5,
        )
        t.row("grad_" + name, op, [drawn("double", x), drawn("double", f)], a, grad=True)
    t.row(
        "channels",
        op,
        [drawn("float", [1, 4, 4, 2]), drawn("float", [3, 3, 3, 1])],
        {"strides": [1, 1, 1, 1], "padding": "SAME"},
    )


def fill(t):
    conv(t)
    pool(t)
    depthwise(t)
