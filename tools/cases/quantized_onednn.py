"""Convolutions and products of 8-bit levels with what follows them; stock computes them with oneDNN."""

from .base import *


def f(value):
    return const(scalar("float", value))


def fs(*values):
    return const(vec("float", list(values)))


def u8(*shape):
    return drawn("quint8", shape, 0, 256)


def i8(*shape):
    return drawn("qint8", shape, -127, 128)


WITH = ["Bias", "AndRelu", "AndRequantize"]


def layer(t, op, x, w, name="", low=0.0, high=4.0, filters=None, bias=None, summand=None,
          frozen=(-20.0, 25.0), attrs=None, depth=3, **more):
    """Adds a row of |op|, whose name says which inputs it has."""
    few = filters or (f(-2.0), f(2.5))
    inputs = [x, const(w)]
    if "Bias" in op:
        inputs.append(const(bias or drawn("float", [depth], -9, 9)))
    inputs += [f(low), f(high)] + list(few)
    if "Requantize" in op or "Dequantize" in op:
        inputs += [f(frozen[0]), f(frozen[1])]
    if "Sum" in op:
        inputs.append(summand)
        if "Requantize" in op:
            inputs += [f(-11.0), f(12.0)]
    a = dict({} if "MatMul" in op else {"strides": [1, 1, 1, 1], "padding": "VALID"}, **(attrs or {}))
    t.row(name or "plain", op, inputs, a, **more)


CONV = ["", "AndRelu", "WithBias", "WithBiasAndRelu", "AndRequantize", "AndReluAndRequantize",
        "WithBiasAndRequantize", "WithBiasAndReluAndRequantize"]


def conv(t):
    for kind in CONV[1:]:
        op = "QuantizedConv2D" + kind
        layer(t, op, u8(2, 4, 5, 2), i8(2, 3, 2, 3))
        layer(t, op, u8(1, 5, 5, 4), i8(3, 3, 4, 3), "same", attrs={"padding": "SAME", "strides": [1, 2, 2, 1]})
        if "Relu" not in kind or "Requantize" in kind:
            filters = (fs(-2.0, -1.0, -3.1), fs(2.0, 1.7, 2.5))
            layer(t, op, u8(1, 4, 5, 2), i8(2, 3, 2, 3), "channels", filters=filters, any_shape=[1, 2])
        if "Bias" in kind:
            layer(t, op, drawn("qint8", [1, 4, 4, 2], -127, 128), i8(2, 2, 2, 3), "signed", low=-3.0)
        if "Bias" in kind and "Requantize" in kind:
            bias = drawn("qint32", [3], -20000, 20000)
            layer(t, op, u8(1, 4, 5, 2), i8(2, 3, 2, 3), "bias_int", bias=bias)
    channels = (fs(-2.0, -1.0, -3.1), fs(2.0, 1.7, 2.5))
    layer(t, "QuantizedConv2DPerChannel", u8(1, 4, 5, 2), i8(2, 3, 2, 3), filters=channels)
    x, w = u8(1, 4, 4, 2), i8(2, 2, 2, 3)
    op = "QuantizedConv2DWithBiasSumAndReluAndRequantize"
    # Stock crashes if it cannot overwrite the summand.
    bytes_of = lambda d, lo, hi: node("Bitcast", [drawn(d, [1, 3, 3, 3], lo, hi)], {"type": "q" + d})
    layer(t, op, x, w, summand=bytes_of("uint8", 0, 256))
    layer(t, op, x, w, "bias_int", summand=bytes_of("uint8", 0, 256), bias=drawn("qint32", [3], -20000, 20000))
    op = "QuantizedConv2DWithBiasSignedSumAndReluAndRequantize"
    layer(t, op, x, w, summand=bytes_of("int8", -127, 128))
    layer(t, "QuantizedConv2DWithBiasSumAndRelu", x, w, summand=node("Neg", [drawn("float", [1, 3, 3, 3], -9, 9)]))


def depthwise(t):
    for kind in ["", "WithBias", "WithBiasAndRelu", "WithBiasAndReluAndRequantize"]:
        op = "QuantizedDepthwiseConv2D" + kind
        layer(t, op, u8(2, 4, 5, 3), i8(2, 3, 3, 1))
        same = {"padding": "SAME", "strides": [1, 2, 2, 1]}
        layer(t, op, u8(1, 5, 5, 3), i8(3, 3, 3, 1), "same", attrs=same)


def matmul(t):
    # With MIN_FIRST and a lower limit other than 0, stock's results are wrong.
    for kind in ["", "AndRelu", "AndRequantize", "AndReluAndRequantize", "AndDequantize"]:
        op = "QuantizedMatMulWithBias" + kind
        a = {"Toutput": "float"} if "Dequantize" in kind else {}
        for mode in ["MIN_FIRST", "SCALED"]:
            attrs = dict(a, input_quant_mode=mode)
            layer(t, op, u8(3, 5), i8(5, 3), mode.lower(), attrs=attrs, tol=1e-4)
            if kind != "AndRelu":
                bias = drawn("qint32", [3], -20000, 20000)
                layer(t, op, u8(3, 5), i8(5, 3), "bias_int_" + mode.lower(), attrs=attrs, bias=bias, tol=1e-4)


def concat(t):
    op = "QuantizedConcatV2"
    for d in ["quint8", "qint8"]:
        lo, hi = (0, 256) if d == "quint8" else (-128, 128)
        parts = [drawn(d, [2, 3], lo, hi), drawn(d, [2, 2], lo, hi)]
        t.row(d, op, [parts, iscalar(1), [f(-1.0), f(-1.0)], [f(2.0), f(2.0)]])
        t.row(d + "_differ", op, [parts, iscalar(1), [f(-1.0), f(-2.0)], [f(2.0), f(1.0)]])
    parts = [drawn("quint8", [2, 3], 0, 256), drawn("quint8", [1, 3], 0, 256)]
    t.row("rows", op, [parts, iscalar(0), [f(0.0), f(0.0)], [f(2.0), f(2.0)]])
    two = [f(0.0), f(0.0)], [f(2.0), f(2.0)]
    t.row("axis", op, [parts, iscalar(2)] + list(two), message="code-only")
    t.row("sizes", op, [parts, iscalar(1)] + list(two), message="code-only")
    t.row("fed", op, [parts, scalar("int32", 0), [f(0.0), f(1.0)], [f(2.0), f(3.0)]])


def fill(t):
    conv(t)
    depthwise(t)
    matmul(t)
    concat(t)
