"""Exact values of elementwise functions, to tell which of two results is better.

They come from the C library's long double functions, so they are right to the last bit of a double.
Ops that are not listed have no oracle.
"""

import ctypes
import ctypes.util
import math

import numpy as np

libm = ctypes.CDLL(ctypes.util.find_library("m"))


def long_double(name, arguments=1):
    function = getattr(libm, name)
    function.restype = ctypes.c_longdouble
    function.argtypes = [ctypes.c_longdouble] * arguments
    return function


def of(name):
    return long_double(name)


expm1, exp, log, log1p, tanh = of("expm1l"), of("expl"), of("logl"), of("log1pl"), of("tanhl")
ALPHA, SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def sigmoid(x):
    return 1 / (1 + exp(-x)) if x > -11000 else 0.0


def softplus(x):
    return x + log1p(exp(-x)) if x > 0 else log1p(exp(x))


def erfinv(x):
    """By Newton's rule on erf, from numbers between which the answer lies."""
    if not abs(x) < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    if abs(x) < 1e-8:
        return x * 0.886226925452758013649
    low, high = 0.0, 7.0
    for _ in range(80):
        middle = (low + high) / 2
        if math.erfc(middle) > 1 - abs(x) if abs(x) > 0.5 else math.erf(middle) < abs(x):
            low = middle
        else:
            high = middle
    return math.copysign((low + high) / 2, x)


UNARY = {
    "Abs": abs, "Neg": lambda x: -x, "Square": lambda x: x * x, "Sqrt": of("sqrtl"), "Exp": exp,
    "Expm1": expm1, "Log": log, "Log1p": log1p, "Sin": of("sinl"), "Cos": of("cosl"),
    "Tan": of("tanl"), "Asin": of("asinl"), "Acos": of("acosl"), "Atan": of("atanl"),
    "Sinh": of("sinhl"), "Cosh": of("coshl"), "Tanh": tanh, "Asinh": of("asinhl"),
    "Acosh": of("acoshl"), "Atanh": of("atanhl"), "Erf": of("erfl"), "Erfc": of("erfcl"),
    "Lgamma": of("lgammal"), "Sigmoid": sigmoid, "Softplus": softplus, "Erfinv": erfinv,
    "BesselJ0": of("j0l"), "BesselJ1": of("j1l"),
    "BesselY0": lambda x: -math.inf if x <= 0 else of("y0l")(x),
    "BesselY1": lambda x: -math.inf if x <= 0 else of("y1l")(x),
    "Elu": lambda x: expm1(x) if x < 0 else x,
    "Selu": lambda x: SCALE * ALPHA * expm1(x) if x < 0 else SCALE * x,
    "Reciprocal": lambda x: 1 / x if x else math.copysign(math.inf, x),
    "Inv": lambda x: 1 / x if x else math.copysign(math.inf, x),
    "Rsqrt": lambda x: 1 / of("sqrtl")(x) if x else math.copysign(math.inf, x),
    "Softsign": lambda x: x / (1 + abs(x)),
}  # fmt: skip
BINARY = {
    "Pow": long_double("powl", 2),
    "Atan2": long_double("atan2l", 2),
    "SquaredDifference": lambda x, y: (x - y) * (x - y),
    "Xlogy": lambda x, y: 0.0 if x == 0 else x * log(y),
    "Xlog1py": lambda x, y: 0.0 if x == 0 else x * log1p(y),
    "SoftplusGrad": lambda x, y: x * sigmoid(y),
    "SoftsignGrad": lambda x, y: x / (1 + abs(y)) ** 2,
    "SigmoidGrad": lambda x, y: y * x * (1 - x),
    "TanhGrad": lambda x, y: y * (1 - x * x),
    "SqrtGrad": lambda x, y: y * 0.5 / x,
    "ReciprocalGrad": lambda x, y: -y * x * x,
    "InvGrad": lambda x, y: -y * x * x,
    "RsqrtGrad": lambda x, y: -0.5 * y * x * x * x,
}


def exact(op, arguments):
    """What |op| gives for numbers, as double arrays of one shape; None without a judge."""
    function = UNARY.get(op) if len(arguments) == 1 else BINARY.get(op)
    if function is None:
        return None
    out = np.empty(arguments[0].size)
    for i, numbers in enumerate(zip(*(a.reshape(-1).tolist() for a in arguments))):
        try:
            out[i] = function(*numbers)
        except (ArithmeticError, ValueError):
            out[i] = math.nan
    return out.reshape(arguments[0].shape)
