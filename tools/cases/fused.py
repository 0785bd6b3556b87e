"""Ops that stock's graph optimizer makes of several."""

from .base import *


def matmul(t):
    op = "_FusedMatMul"
    a, b, bias = [3, 4], [4, 5], [5]
    for d in ["half", "bfloat16", "float"]:
        inputs = [drawn(d, a), drawn(d, b), [drawn(d, bias)]]
        t.row(d, op, inputs, {"fused_ops": ["BiasAdd"]}, tol=loose(d))
    x, w, v = drawn("float", a), drawn("float", b), drawn("float", bias)
    for after in ["Relu", "Relu6", "Elu", "Tanh", "Sigmoid", "LeakyRelu"]:
        t.row(after, op, [x, w, [v]], {"fused_ops": ["BiasAdd", after]}, tol=1e-5)
    t.row("alpha", op, [x, w, [v]], {"fused_ops": ["BiasAdd", "LeakyRelu"], "leakyrelu_alpha": 0.5}, tol=1e-5)
    turned = {"fused_ops": ["BiasAdd"], "transpose_a": True, "transpose_b": True}
    t.row("transposed", op, [drawn("float", [4, 3]), drawn("float", [5, 4]), [v]], turned, tol=1e-5)
    t.row("unknown", op, [x, w, [v]], {"fused_ops": ["BiasAdd", "Cos"]}, message="code-only")
    t.row("sizes", op, [x, drawn("float", [3, 5]), [v]], {"fused_ops": ["BiasAdd"]})


def conv(t):
    op = "_FusedConv2D"
    same = {"strides": [1, 1, 1, 1], "padding": "SAME", "num_args": 1}
    x, w, v = [2, 4, 5, 2], [2, 3, 2, 3], [3]
    for d in ["float", "double"]:
        inputs = [drawn(d, x), drawn(d, w), [drawn(d, v)], []]
        t.row(d, op, inputs, dict(same, fused_ops=["BiasAdd"]), tol=loose(d))
    inputs = [drawn("float", x), drawn("float", w), [drawn("float", v)], []]
    for after in ["Relu", "Relu6", "Elu", "LeakyRelu"]:
        t.row(after, op, inputs, dict(same, fused_ops=["BiasAdd", after]), tol=1e-5)
    t.row("stride", op, inputs, dict(same, fused_ops=["BiasAdd"], strides=[1, 2, 2, 1]), tol=1e-5)
    t.row("dilated", op, inputs, dict(same, fused_ops=["BiasAdd"], dilations=[1, 2, 2, 1]), tol=1e-5)
    explicit = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0]}
    t.row("explicit", op, inputs, dict(same, fused_ops=["BiasAdd"], **explicit), tol=1e-5)
    norm = [drawn("float", v, 0.5, 2), drawn("float", v), drawn("float", v), drawn("float", v, 0.5, 2)]
    a = dict(same, num_args=4, epsilon=0.01)
    inputs = [drawn("float", x), drawn("float", w), norm, []]
    t.row("norm", op, inputs, dict(a, fused_ops=["FusedBatchNorm"]), tol=1e-5)
    for after in ["Relu", "Relu6", "Elu", "LeakyRelu"]:
        t.row("norm_" + after, op, inputs, dict(a, fused_ops=["FusedBatchNorm", after]), tol=1e-5)
    t.row("unknown", op, inputs, dict(a, fused_ops=["Cos"]), message="code-only")


def unary(t):
    op = "_UnaryOpsComposition"
    for d in ["half", "float", "double"]:
        t.row(d, op, [drawn(d, [3, 4])], {"op_names": ["Abs", "Sqrt", "Neg", "Exp"]}, tol=loose(d))
    names = ["Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh"]
    names += ["Expm1", "Exp", "Floor", "Inv", "Log", "Log1p", "Neg", "Reciprocal", "Rint", "Round"]
    names += ["Rsqrt", "Sigmoid", "Sin", "Sinh", "Sqrt", "Square", "Tan", "Tanh", "Elu", "Relu"]
    names += ["Relu6", "Selu"]
    for name in names:
        inside = drawn("float", [3, 4], 1.1, 3) if name == "Acosh" else drawn("float", [3, 4], 0.1, 0.9)
        t.row(name, op, [inside], {"op_names": ["Neg", "Neg", name]}, tol=1e-5)
    t.row("empty", op, [drawn("float", [0, 4])], {"op_names": ["Exp"]})
    t.row("none", op, [drawn("float", [4])], {"op_names": []}, message="code-only")
    t.row("unknown", op, [drawn("float", [4])], {"op_names": ["Exp", "Nonsense"]}, message="code-only")


def fill(t):
    matmul(t)
    conv(t)
    unary(t)
    a = {"num_buckets": 1000}
    t.each("", "_TensorToHashBucketFast", "I", lambda d: [drawn(d, [2, 7])], a)
    t.each("", "_TensorToHashBucketFast", "U", lambda d: [drawn(d, [2, 7])], a, beyond=True)
    t.row("scalar", "_TensorToHashBucketFast", [scalar("int64", -12345)], a)
    t.row("empty", "_TensorToHashBucketFast", [drawn("int32", [0])], a)
