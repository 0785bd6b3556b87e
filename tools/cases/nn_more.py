"""Three dimensions, morphology, fractional pooling, older forms."""

from .base import *


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
            t.row(name, op, [drawn("float", [1, 6, 6, 2])], dict(fraction, **more))
        t.row(
            "bad_ratio",
            op,
            [drawn("float", [1, 6, 6, 2])],
            dict(fraction, pooling_ratio=[2.0, 1.0, 1.0, 1.0]),
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
    for d in dtypes("F I U"):
        t.row(d, "NthElement", [drawn(d, [2, 7]), iscalar(2)])
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
