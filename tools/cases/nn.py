"""Activations, normalization and losses."""

import functools

from .base import *
from . import nn_conv, nn_more

# op, dtypes, gradient
ACTIVATIONS = [
    ("Relu", "F I U", True),
    ("Relu6", "F I U", True),
    ("Elu", "F", True),
    ("Selu", "F", True),
    ("LeakyRelu", "F", True),
    ("Softplus", "F", True),
    ("Softsign", "F", True),
]


def activations(t):
    for op, kinds, grad in ACTIVATIONS:
        t.each("", op, kinds, lambda d: [drawn(d, [11], -8, 8)])
        t.row("scalar", op, [drawn("float", [])])
        t.row("empty", op, [drawn("float", [0, 3])])
        t.row("37", op, [drawn("float", [37], -8, 8)])
        t.row("1000", op, [drawn("float", [8, 125], -8, 8)])
        t.row("string", op, [drawn("string", [2])])
        for d in F:
            t.row("special_" + d, op, [vec(d, SPECIAL[:-3] if d == "half" else SPECIAL)])
        t.row("tails", op, [vec("float", [-100, -20, -15, -1e-6, 1e-6, 15, 20, 100])])
        t.row("tails_double", op, [vec("double", [-800, -40, -1e-12, 1e-12, 40, 800])])
        for d in ("float", "double"):
            t.row("grad_" + d, op, [drawn(d, [3, 4], -3, 3)], grad=True)
        t.row("grad_half", op, [drawn("half", [5], -3, 3)], grad=True)
        t.row("grad_zero", op, [vec("double", [0.0, 6])], grad=True, fd=False)
    for alpha in (0.0, 0.5, 1.5, -0.25):
        t.row("alpha_%g" % alpha, "LeakyRelu", [drawn("float", [9])], {"alpha": alpha})
        t.row(
            "alpha_%g_grad" % alpha,
            "LeakyRelu",
            [drawn("double", [9])],
            {"alpha": alpha},
            grad=True,
        )
    t.row("int32", "LeakyRelu", [drawn("int32", [3])])
    # gradients, features (or outputs)
    for op, kinds in (
        ("ReluGrad", "F I U"),
        ("Relu6Grad", "F I U"),
        ("EluGrad", "F"),
        ("SeluGrad", "F"),
        ("LeakyReluGrad", "F"),
        ("SoftplusGrad", "F"),
        ("SoftsignGrad", "F"),
    ):
        t.each("", op, kinds, lambda d: [drawn(d, [11], -8, 8), drawn(d, [11], -8, 8)])
        t.row(
            "edges",
            op,
            [vec("float", [1, 2, 3, 4, 5, NAN]), vec("float", [0.0, -0.0, 6, NAN, INF, 1])],
        )
        t.row("empty", op, [drawn("float", [0]), drawn("float", [0])])
        t.row("300", op, [drawn("float", [300]), drawn("float", [300], -8, 8)])
        t.row("bad_shapes", op, [drawn("float", [2]), drawn("float", [3])])
        t.row(
            "grad",
            op,
            [drawn("double", [5]), drawn("double", [5], -3, 3)],
            grad=True,
            fd=False,
            **wrong_in_stock(op == "LeakyReluGrad")
        )


def softmaxes(t):
    for op in ("Softmax", "LogSoftmax"):
        for d in F:
            # In bfloat16, stock rounds each intermediate step of the logarithm.
            rounded = {"tol": 2e-2} if (op, d) == ("LogSoftmax", "bfloat16") else {}
            t.row(d, op, [drawn(d, [3, 5], -4, 4)], **rounded)
        t.row("vector", op, [drawn("float", [7], -4, 4)])
        t.row("rank3", op, [drawn("float", [2, 3, 4], -4, 4)])
        t.row("one_class", op, [drawn("float", [3, 1])])
        t.row("large_values", op, [given("float", [2, 3], [1000, 1001, 999, -1000, -1e30, 0.0])])
        t.row(
            "special",
            op,
            [given("float", [4, 3], [NAN, 1, 2, INF, 1, 2, "-inf", 1, 2, "-inf", "-inf", "-inf"])],
        )
        t.row("empty", op, [drawn("float", [0, 3])])
        t.row("no_classes", op, [drawn("float", [2, 0])])
        t.row("scalar", op, [drawn("float", [])])
        t.row("int32", op, [drawn("int32", [2, 2])])
        t.row("40x25", op, [drawn("float", [40, 25], -4, 4)])
        t.row("2x300", op, [drawn("float", [2, 300], -4, 4)])
        for d in ("float", "double"):
            t.row("grad_" + d, op, [drawn(d, [3, 4], -2, 2)], grad=True)
        t.row(
            "grad_rank3",
            op,
            [drawn("double", [2, 2, 3])],
            grad=True,
            **wrong_in_stock(op == "LogSoftmax")
        )
    op = "SoftmaxCrossEntropyWithLogits"
    t.each("", op, "F", lambda d: [drawn(d, [3, 5], -4, 4), drawn(d, [3, 5], 0, 0.4)])
    t.row(
        "one_hot", op, [drawn("float", [2, 3]), given("float", [2, 3], [0.0, 1, 0.0, 1, 0.0, 0.0])]
    )
    t.row("broadcast_labels", op, [drawn("float", [3, 4]), drawn("float", [1, 4], 0, 0.5)])
    t.row("broadcast_logits", op, [drawn("float", [1, 4]), drawn("float", [3, 4], 0, 0.5)])
    t.row(
        "large_values",
        op,
        [given("float", [1, 3], [1000, 0.0, -1000]), given("float", [1, 3], [0.0, 0.5, 0.5])],
    )
    t.row(
        "zero_times_inf",
        op,
        [given("float", [1, 2], ["-inf", 0.0]), given("float", [1, 2], [0.0, 1])],
    )
    t.row("empty", op, [drawn("float", [0, 3]), drawn("float", [0, 3])])
    t.row("bad_shapes", op, [drawn("float", [2, 3]), drawn("float", [2, 4])])
    t.row("vector", op, [drawn("float", [3]), drawn("float", [3])])
    t.row("40x25", op, [drawn("float", [40, 25], -4, 4), drawn("float", [40, 25], 0, 0.1)])
    for d in ("float", "double"):
        t.row(
            "grad_" + d,
            op,
            [drawn(d, [3, 4], -2, 2), drawn(d, [3, 4], 0, 0.5)],
            grad=True,
            fd=False,
            **wrong_in_stock(d == "double")
        )
        t.row(
            "grad_loss_" + d,
            op,
            [
                drawn(d, [3, 4], -2, 2),
                given(
                    d, [3, 4], [0.0, 1, 0.0, 0.0, 0.25, 0.25, 0.25, 0.25, 0.5, 0.0, 0.375, 0.125]
                ),
            ],
            grad=True,
            grad_outputs=[0],
            **wrong_in_stock(d == "double")
        )
    op = "SparseSoftmaxCrossEntropyWithLogits"
    t.each("", op, "F", lambda d: [drawn(d, [3, 5], -4, 4), vec("int64", [0, 4, 2])])
    t.row("int32_labels", op, [drawn("float", [3, 5]), vec("int32", [0, 4, 2])])
    t.row("label_high", op, [drawn("float", [2, 4]), vec("int64", [0, 4])])
    t.row("label_negative", op, [drawn("float", [2, 4]), vec("int32", [-1, 3])])
    t.row("empty", op, [drawn("float", [0, 3]), vec("int64", [])])
    t.row("bad_shapes", op, [drawn("float", [2, 3]), vec("int64", [0])])
    t.row("label_matrix", op, [drawn("float", [2, 3]), given("int64", [2, 1], [0, 1])])
    t.row("logits_vector", op, [drawn("float", [3]), vec("int64", [0])])
    t.row("40x25", op, [drawn("float", [40, 25], -4, 4), drawn("int64", [40], 0, 25)])
    for d in ("float", "double"):
        t.row(
            "grad_" + d, op, [drawn(d, [3, 4], -2, 2), vec("int64", [0, 3, 1])], grad=True, fd=False
        )
        t.row(
            "grad_loss_" + d,
            op,
            [drawn(d, [3, 4], -2, 2), vec("int64", [0, 3, 1])],
            grad=True,
            grad_outputs=[0],
        )


def biases(t):
    for d in dtypes("F I U C"):
        t.row(d, "BiasAdd", [drawn(d, [2, 3]), drawn(d, [3])])
        t.row(d, "BiasAddGrad", [drawn(d, [4, 3])], tol=loose(d))
    for s in ([2, 3, 4], [1, 2, 3, 4], [1, 2, 1, 2, 5], [7, 37]):
        t.row("rank%d" % len(s), "BiasAdd", [drawn("float", s), drawn("float", [s[-1]])])
        t.row("rank%d" % len(s), "BiasAddGrad", [drawn("float", s)])
        t.row("rank%d" % len(s), "BiasAddV1", [drawn("float", s), drawn("float", [s[-1]])])
        if len(s) >= 3:
            t.row(
                "nchw_rank%d" % len(s),
                "BiasAdd",
                [drawn("float", s), drawn("float", [s[1]])],
                {"data_format": "NCHW"},
            )
            t.row(
                "nchw_rank%d" % len(s), "BiasAddGrad", [drawn("float", s)], {"data_format": "NCHW"}
            )
    t.row(
        "nchw_rank2",
        "BiasAdd",
        [drawn("float", [2, 3]), drawn("float", [3])],
        {"data_format": "NCHW"},
    )
    t.row("empty", "BiasAdd", [drawn("float", [0, 3]), drawn("float", [3])])
    t.row("empty", "BiasAddGrad", [drawn("float", [0, 3])])
    t.row("vector", "BiasAdd", [drawn("float", [3]), drawn("float", [3])])
    t.row("vector", "BiasAddGrad", [drawn("float", [3])])
    t.row("bad_bias", "BiasAdd", [drawn("float", [2, 3]), drawn("float", [2])])
    t.row("bias_matrix", "BiasAdd", [drawn("float", [2, 3]), drawn("float", [1, 3])])
    t.row(
        "bad_format",
        "BiasAdd",
        [drawn("float", [2, 3]), drawn("float", [3])],
        {"data_format": "HWCN"},
    )
    t.row("33x40", "BiasAddGrad", [drawn("float", [33, 40])], tol=1e-5)
    for d in ("float", "double"):
        t.row("grad_" + d, "BiasAdd", [drawn(d, [2, 2, 3]), drawn(d, [3])], grad=True)
    t.row(
        "grad_nchw",
        "BiasAdd",
        [drawn("double", [2, 3, 2, 2]), drawn("double", [3])],
        {"data_format": "NCHW"},
        grad=True,
    )
    t.row("grad", "BiasAddGrad", [drawn("double", [4, 3])], grad=True)
    t.row(
        "grad_nchw",
        "BiasAddGrad",
        [drawn("double", [2, 3, 2, 2])],
        {"data_format": "NCHW"},
        grad=True,
    )


def norms(t):
    t.each("", "L2Loss", "F", lambda d: [drawn(d, [3, 4])])
    t.row("scalar", "L2Loss", [drawn("float", [])])
    t.row("empty", "L2Loss", [drawn("float", [0])])
    t.row("1000", "L2Loss", [drawn("float", [1000])], tol=1e-5)
    t.row("special", "L2Loss", [vec("float", [1, INF, NAN])])
    t.row("grad", "L2Loss", [drawn("double", [3])], grad=True)
    t.row("grad_float", "L2Loss", [drawn("float", [3])], grad=True)
    for d in ("half", "float"):
        t.row(d, "LRN", [drawn(d, [1, 2, 2, 7])])
    lrn = {"depth_radius": 2, "bias": 2.0, "alpha": 0.5, "beta": 0.75}
    t.row("attrs", "LRN", [drawn("float", [2, 3, 3, 8])], lrn)
    t.row("beta", "LRN", [drawn("float", [1, 1, 2, 5])], dict(lrn, beta=0.5))
    t.row("beta_one", "LRN", [drawn("float", [1, 1, 2, 5])], dict(lrn, beta=1.0, depth_radius=1))
    t.row("rank3", "LRN", [drawn("float", [2, 2, 3])])
    t.row(
        "grad",
        "LRN",
        [drawn("float", [1, 2, 2, 5])],
        lrn,
        grad=True,
        grad_tol=1e-5,
        **wrong_in_stock()
    )
    x = lambda: drawn("float", [1, 2, 2, 5])
    t.row("attrs", "LRNGrad", [x(), x(), x()], lrn, tol=1e-5)
    c = lambda n=3: drawn("float", [n], 0.5, 1.5)
    for op in ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"):
        none = [vec("float", []), vec("float", [])]
        reserves = [3, 4]
        # The third reserve output is empty with oneDNN, and a scalar without.
        row = functools.partial(t.row, **({"any_shape": [5]} if op.endswith("V3") else {}))
        for d in ["float"] if op == "FusedBatchNorm" else ["float", "half", "bfloat16"]:
            row("training_" + d, op, [drawn(d, [2, 3, 2, 3]), c(), c()] + none, tol=loose(d))
            row(
                "inference_" + d,
                op,
                [drawn(d, [2, 3, 2, 3]), c(), c(), c(), c()],
                {"is_training": False},
                undefined=reserves,
                tol=loose(d),
            )
        row(
            "epsilon",
            op,
            [drawn("float", [2, 2, 2, 3]), c(), c()] + none,
            {"epsilon": 0.1},
            tol=1e-5,
        )
        row(
            "nchw",
            op,
            [drawn("float", [2, 3, 2, 2]), c(), c()] + none,
            {"data_format": "NCHW"},
            tol=1e-5,
        )
        row("one_pixel", op, [drawn("float", [1, 1, 1, 3]), c(), c()] + none, tol=1e-5)
        row("empty", op, [drawn("float", [0, 2, 2, 3]), c(), c()] + none, undefined=reserves)
        row("bad_scale", op, [drawn("float", [2, 2, 2, 3]), c(2), c()] + none)
        row("rank3", op, [drawn("float", [2, 2, 3]), c(), c()] + none)
        row(
            "grad",
            op,
            [drawn("float", [2, 2, 2, 3]), c(), c()] + none,
            grad=True,
            grad_outputs=[0, 1, 2, 3, 4],
            fd=False,
            grad_tol=1e-4,
        )
        row(
            "grad_y",
            op,
            [drawn("float", [2, 2, 2, 3], -3, 3), c(), c()] + none,
            grad=True,
            grad_outputs=[0],
            fd_tol=2e-2,
            grad_tol=1e-4,
        )
        row(
            "grad_y_nchw",
            op,
            [drawn("float", [2, 3, 2, 2], -3, 3), c(), c()] + none,
            {"data_format": "NCHW"},
            grad=True,
            grad_outputs=[0],
            fd_tol=2e-2,
            grad_tol=1e-4,
        )
        row(
            "grad_inference",
            op,
            [drawn("float", [2, 2, 2, 3]), c(), c(), c(), c()],
            {"is_training": False},
            undefined=reserves,
            grad=True,
            grad_outputs=[0, 1, 2, 3, 4],
            fd=False,
            grad_tol=1e-4,
        )
    t.row(
        "average",
        "FusedBatchNormV3",
        [drawn("float", [2, 2, 2, 3]), c(), c(), c(), c()],
        {"exponential_avg_factor": 0.25},
        any_shape=[5],
        tol=1e-5,
    )
    for op in ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3"):
        y = lambda: drawn("float", [2, 3, 2, 3])
        more = [vec("float", [0.0, 0.0, 0.0])] if op.endswith("V3") else []
        for training in (True, False):
            t.row(
                "training" if training else "inference",
                op,
                [y(), y(), c(), c(), c()] + more,
                {"is_training": training},
                tol=1e-4,
            )


def ranking(t):
    for op in ("InTopK", "InTopKV2"):
        k = (lambda n: ([], {"k": n})) if op == "InTopK" else (lambda n: ([iscalar(n)], None))
        for d in ("int32", "int64"):
            more, attrs = k(2)
            t.row(
                d,
                op,
                [
                    given("float", [3, 4], [1, 2, 3, 4, 4, 3, 2, 1, 0.0, 0.0, 1, 1]),
                    vec(d, [2, 3, 0]),
                ]
                + more,
                attrs,
            )
        for name, n, p, ids in [
            ("ties", 2, [3, 3, 3, 1], [2]),
            ("zero", 0, [1, 2, 3, 4], [3]),
            ("negative", -1, [1, 2, 3, 4], [3]),
            ("large", 9, [1, 2, 3, 4], [0]),
            ("nan", 1, [1, NAN, 3, 4], [3]),
            ("inf", 1, [1, INF, 3, 4], [1]),
            ("target_high", 1, [1, 2, 3, 4], [4]),
            ("target_negative", 1, [1, 2, 3, 4], [-1]),
        ]:
            more, attrs = k(n)
            t.row(name, op, [given("float", [1, 4], p), vec("int32", ids)] + more, attrs)
        more, attrs = k(1)
        t.row("bad_shapes", op, [drawn("float", [2, 4]), vec("int32", [0])] + more, attrs)
        t.row("vector", op, [drawn("float", [4]), vec("int32", [0])] + more, attrs)
    t.each("", "TopKV2", "F I U", lambda d: [drawn(d, [2, 9]), iscalar(3)])
    for name, s, k, attrs in [
        ("vector", [37], 5, {}),
        ("all", [6], 6, {}),
        ("one", [3, 5], 1, {}),
        ("zero", [4], 0, {}),
        ("unsorted", [2, 9], 4, {"sorted": False}),
        ("rank3", [2, 2, 5], 2, {}),
        ("many", [300], 100, {}),
        ("too_many", [4], 5, {}),
        ("negative", [4], -1, {}),
        ("scalar", [], 1, {}),
        ("empty", [0, 4], 2, {}),
    ]:
        t.row(name, "TopKV2", [drawn("float", s), iscalar(k)], attrs)
        if name != "unsorted":
            t.row("fed_" + name, "TopKV2", [drawn("float", s), scalar("int32", k)], attrs)
    t.row("ties", "TopKV2", [vec("int32", [1, 3, 3, 2, 3, 1]), iscalar(4)])
    t.row("k_vector", "TopKV2", [drawn("float", [4]), ivec(1)])
    t.row("int64", "TopKV2", [drawn("float", [4]), iscalar(2)], {"index_type": "int64"})
    t.row("grad", "TopKV2", [drawn("double", [2, 5]), iscalar(3)], grad=True)
    t.row("deprecated", "TopK", [drawn("float", [4])], {"k": 1})


def long_rows(t):
    """Adds rows of matrices that are longer than what a GPU's block takes at once."""
    t.row("long", "TopKV2", [drawn("float", [2, 5000]), iscalar(7)])
    t.row("long_ties", "TopKV2", [drawn("int32", [4500], 0, 90), iscalar(40)])
    t.row("long_all", "TopKV2", [drawn("float", [2100]), iscalar(1100)])
    op = "SparseSoftmaxCrossEntropyWithLogits"
    t.row("long", op, [drawn("float", [1, 1100]), vec("int32", [1000])])


def fill(t):
    activations(t)
    softmaxes(t)
    biases(t)
    norms(t)
    ranking(t)
    long_rows(t)
    nn_conv.fill(t)
    nn_more.fill(t)
