"""Special values for every elementwise numeric op, in every type that it accepts.

The ends of the range, infinities, NaN, both zeros, subnormal numbers, ties, the points where
exponentials overflow, and powers of ten over the whole range. Results are compared in units in the
last place.

Cases that stock gets wrong are omitted, with the reason; doc/bindings.md lists them for users.
"""

from .base import *

BITS = {"half": 10, "bfloat16": 7, "float": 23, "double": 52}
LEAST = {"half": 2.0**-14, "bfloat16": 2.0**-126, "float": 2.0**-126, "double": 2.0**-1022}
MOST = {
    "half": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float": 3.4028234663852886e38,
    "double": 1.7976931348623157e308,
}
ULPS = {"half": 2, "bfloat16": 2, "float": 8, "double": 16, "complex64": 16, "complex128": 32}


def finite(d):
    """Returns finite positive numbers that are likely to show errors."""
    least, most, eps = LEAST[d], MOST[d], 2.0 ** -BITS[d]
    out = [1, 0.5, 1.5, 2.5, 2, 3, 6, 5.5, 0.25, 0.75, 10, 20, 100, 3.5, 10.5, 20.25, 4.5, 1e-3]
    out += [least, 2 * least, most, most / 2, 1 + eps, 1 - eps / 2, eps, 1 / eps, most**0.5]
    out += [85, 87, 88, 88.5, 88.75, 89, 89.25, 89.5, 104, 3.14159274, 1.57079637, 127.5, 128]
    if d == "double":
        out += [700, 709, 709.75, 709.9, 710, 710.4, 710.5, 745, 746, 1e153, 1e155]
    if d == "half":
        out += [2.0**-24, 2.0**-20, 1.5 * 2.0**-15]  # subnormal halves
    low, high, step = {"half": (-4, 4, 1), "double": (-307, 308, 15)}.get(d, (-37, 38, 3))
    out += [float("1e%d" % k) for k in range(low, high + 1, step)]
    return out


def special(d):
    signed = [s * x for x in finite(d) for s in (1, -1)]
    return [NAN, INF, "-inf", 0.0, -0.0] + signed


def subnormal(d):
    return [] if d == "half" else [LEAST[d] / 2, -LEAST[d] / 2, LEAST[d] * 2.0 ** -BITS[d]]


def number(x):
    return float(x)


# op: (types, for which x stock is right; None for all)
UNARY = {
    "Abs": ("F", None), "Neg": ("F", None), "Square": ("F", None), "Sqrt": ("F", None),
    "Rsqrt": ("F", None), "Exp": ("F", None), "Expm1": ("F", None), "Log": ("F", None),
    "Log1p": ("F", None), "Tanh": ("F", None), "Sigmoid": ("F", None), "Asin": ("F", None),
    "Acos": ("F", None), "Atan": ("F", None), "Sinh": ("F", None), "Cosh": ("F", None),
    "Asinh": ("F", None), "Acosh": ("F", None), "Atanh": ("F", None), "Erfc": ("F", None),
    "Floor": ("F", None), "Ceil": ("F", None), "Round": ("F", None), "Rint": ("f", None),
    "Softsign": ("F", None), "Relu": ("F", None), "Relu6": ("F", None),
    "IsNan": ("F", None), "IsInf": ("F", None), "IsFinite": ("F", None), "Sign": ("F", None),
    "Lgamma": ("half f", None),
    # Near roots, terms cancel, and both libraries lose digits.
    "Digamma": ("half f", lambda x: not 1.4 < abs(x) < 1.6),
    "Softplus": ("F", lambda x: not -5 < x < 0),  # bfloat16 rounds twice
    # Neither library reduces large angles exactly.
    "Sin": ("F", lambda x: abs(x) < 1e4), "Cos": ("F", lambda x: abs(x) < 1e4),
    "Tan": ("F", lambda x: abs(x) < 1e4),
    # Stock's reciprocals of large floats are off by 1e-4.
    "Reciprocal": ("F", lambda x: abs(x) < 1e30), "Inv": ("F", lambda x: abs(x) < 1e30),
    # Stock returns NaN in double instead of 1.
    "Erf": ("F", lambda x: abs(x) < 1e100),
    # Stock computes exp(x) - 1, which loses all digits near zero.
    "Elu": ("F", lambda x: x >= 0 or x < -0.3), "Selu": ("F", lambda x: x >= 0 or x < -0.3),
    # Stock returns 0 near zero and infinity near one.
    "Erfinv": ("f", lambda x: 1e-2 < abs(x) < 0.99 or abs(x) in (0, 1)),
    "Ndtri": ("f", lambda x: x <= 1 and not 0 < x < 1e-300),
    # Stock overflows too early, and returns NaN at infinity.
    "BesselI0": ("half f", lambda x: abs(x) < 80), "BesselI1": ("half f", lambda x: abs(x) < 80),
    "BesselI0e": ("half f", lambda x: abs(x) < 1e300),
    "BesselI1e": ("half f", lambda x: abs(x) < 1e300),
    "BesselK0": ("half f", lambda x: x == 0 or abs(x) > 1e-30),
    "BesselK1": ("half f", lambda x: x == 0 or abs(x) > 1e-30),
    "BesselK0e": ("half f", lambda x: x == 0 or abs(x) > 1e-30),
    "BesselK1e": ("half f", lambda x: x == 0 or abs(x) > 1e-30),
    # Stock returns NaN at infinity, and loses digits for large numbers and near the function's zeros.
    "BesselJ0": ("half f", lambda x: abs(x) < 2), 
    "BesselJ1": ("half f", lambda x: x == 0 or 1e-30 < abs(x) < 3),
    "BesselY0": ("half f", lambda x: x <= 0 or 1e-30 < x < 0.8),
    "BesselY1": ("half f", lambda x: 1e-30 < x < 2),
    "Dawsn": ("f", lambda x: x > -1e3),  # stock has the wrong sign for large negative numbers
    "Expint": ("f", lambda x: 1e-30 < x < 0.3 or 1 <= x < 80 or x <= 0),
    "FresnelCos": ("f", lambda x: abs(x) < 5), "FresnelSin": ("f", lambda x: abs(x) < 5),
    "Spence": ("f", lambda x: x < 1e30),
}  # fmt: skip
COMPLEX = "Exp Sqrt Log Sinh Cosh Tanh Sin Cos Square Neg Abs".split()

# Ops that also get subnormal numbers. For the others, stock's vector code flushes them to zero and its scalar code does not.
TAKES_SUBNORMALS = "Abs Neg Square Sqrt Exp Sigmoid Cosh Floor Ceil Round Softplus IsNan IsInf IsFinite Lgamma".split()

BINARY = {
    "Add": "F", "AddV2": "F", "Sub": "F", "Mul": "F", "Div": "F", "RealDiv": "F", "DivNoNan": "F",
    "MulNoNan": "F", "FloorDiv": "F", "TruncateDiv": "F", "FloorMod": "F", "Mod": "f",
    "TruncateMod": "f", "Maximum": "F", "Minimum": "F", "SquaredDifference": "F", "Pow": "F",
    "Atan2": "F", "Xdivy": "F", "Xlogy": "F", "Xlog1py": "F", "NextAfter": "f", "ReluGrad": "F",
    "Relu6Grad": "F", "EluGrad": "F", "SeluGrad": "F", "SoftplusGrad": "F", "LeakyReluGrad": "F",
    "Less": "F", "LessEqual": "F", "Equal": "F", "NotEqual": "F", "ApproximateEqual": "f",
}  # fmt: skip
# Ops that multiply in another order than stock, and so overflow or underflow earlier or later.
WITHIN = {"SigmoidGrad": "F", "TanhGrad": "F", "SqrtGrad": "F", "RsqrtGrad": "F",
          "ReciprocalGrad": "F", "InvGrad": "F", "SoftsignGrad": "F"}  # fmt: skip
INTS = "Add AddV2 Sub Mul FloorDiv FloorMod TruncateDiv Maximum Minimum SquaredDifference".split()
INT_TYPES = {"Add": "I uint8", "SquaredDifference": "i"}


def pairs(d, numbers):
    """Returns two vectors with all pairs of the numbers."""
    xs, ys = [x for x in numbers for _ in numbers], [y for _ in numbers for y in numbers]
    return [vec(d, xs), vec(d, ys)]


def crossed(d, rows, columns):
    """Returns a column and a row with the numbers, for ops that broadcast."""
    return [given(d, [len(rows), 1], rows), given(d, [1, len(columns)], columns)]


def integers(d):
    bits = int("".join(c for c in d if c.isdigit()))
    low, high = (0, 2**bits - 1) if d[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    out = [low, low + 1, high, high - 1, 1, 2, 3, 7, high // 2, high // 3]
    out += [] if d[0] == "u" else [-1, -2, -3, low // 2]
    return [str(x) if x >= 2**63 else x for x in out]


def fill(t):
    for op, (kinds, is_right) in UNARY.items():
        for d in dtypes(kinds):
            values = special(d) + (subnormal(d) if op in TAKES_SUBNORMALS else [])
            if is_right:
                values = [x for x in values if x == NAN or is_right(number(x))]
            t.row("values_" + d, op, [vec(d, values)], ulps=ULPS[d])
            t.row("values_alone_" + d, op, [vec(d, values[5:8])], ulps=ULPS[d])
    t.row("types", "ComplexAbs", [vec("complex128", [[3, 4]])], {"Tout": "float"})
    for op in COMPLEX:
        op = "ComplexAbs" if op == "Abs" else op
        for d in C:
            parts = [0.0, -0.0, 1, -1, 0.5, 20, -20, 1e-3, 1e18, -1e18]
            if op not in ("Sqrt", "Log", "Neg", "ComplexAbs"):
                parts = [x for x in parts if abs(x) < 1e3]
            if op == "Log":  # stock's complex logarithm loses digits near 1
                parts.remove(1e-3)
            attrs = {"Tout": "float" if d == "complex64" else "double"} if op == "ComplexAbs" else None
            numbers = [[x, y] for x in parts for y in parts]
            t.row("values_" + d, op, [vec(d, numbers)], attrs, ulps=ULPS[d])
    for op, kinds in BINARY.items():
        for d in dtypes(kinds):
            numbers = [NAN, INF, "-inf", 0.0, -0.0, 1, -1, 0.5, 2.5, -3, 6, 1e-3, 100, 1e4]
            numbers += [MOST[d], -MOST[d], 2 * LEAST[d], -2 * LEAST[d], MOST[d] ** 0.5]
            if d == "half" and op not in ("FloorMod", "FloorDiv", "TruncateDiv"):
                numbers += [2.0**-24, -(2.0**-20)]
            is_crossed = not op.endswith("Grad") and op != "ApproximateEqual"
            inputs = crossed(d, numbers, numbers) if is_crossed else pairs(d, numbers)
            t.row("values_" + d, op, inputs, ulps=ULPS[d])
    for op, kinds in WITHIN.items():
        for d in dtypes(kinds):
            t.row("values_" + d, op, pairs(d, [NAN, 0.0, -0.0, 1, -1, 0.5, 2.5, -3]), ulps=ULPS[d])
    for op in INTS:
        for d in dtypes(INT_TYPES.get(op, "I U")):
            divides = "Div" in op or "Mod" in op
            divisors = [x for x in integers(d) if x != 0 or not divides]
            t.row("values_" + d, op, crossed(d, integers(d), divisors))
    for d in I:
        for op in ("Abs", "Neg", "Sign", "Square"):
            t.row("values_" + d, op, [vec(d, integers(d))])
    for d in ("half", "bfloat16"):
        # The results depend on where a 16-bit intermediate value is rounded.
        for op in ("FloorDiv", "TruncateDiv", "FloorMod", "Xdivy", "Xlogy", "Xlog1py"):
            t.row("rounded_" + d, op, [drawn(d, [300], -9, 9), drawn(d, [300], 0.1, 3)], tol=0)
            t.row("rounded_row_" + d, op, [drawn(d, [40, 37], -9, 9), drawn(d, [37], 0.1, 3)], tol=0)
            t.row("rounded_by_" + d, op, [drawn(d, [1300], -9, 9), drawn(d, [], 0.1, 3)], tol=0)
            t.row("rounded_of_" + d, op, [drawn(d, [], -9, 9), drawn(d, [37], 0.1, 3)], tol=0)
    t.row("negative", "RandomPoissonV2", [ivec(5), vec("double", [-1, "-inf", -0.0, 3])],
          {"seed": 7, "seed2": 11, "dtype": "float"})
    t.row("nan", "MatrixDeterminant", [given("float", [2, 2], [NAN, 0, 0, 1])])
    for d in dtypes("f"):
        # Both tails and the middle of the distribution; stock returns 0 where the density underflows to 0.
        a = [0.01, 0.5, 1, 2.5, 10, 40]
        for op in ("IgammaGradA", "RandomGammaGrad"):
            xs = [x for p in a for x in (p / 20, p / 3, p, 3 * p if p < 2 else 2 * p, 20 * p if p < 2 else 2.5 * p)]
            t.row("values_" + d, op, [vec(d, [p for p in a for _ in range(5)]), vec(d, xs)], ulps=512)
        t.row("values_" + d, "Zeta", crossed(d, [2, 3, 4, 20, INF], [2, 3, 4, 20, INF]), ulps=64)
        t.row("poles_" + d, "Zeta", [vec(d, [2, 2, 3, 3, 2.5]), vec(d, [0.0, -2, 0.0, -2, -2])])
        t.row("values_" + d, "Polygamma", [vec(d, [1, 2, 3, 1, 1]), vec(d, [1, 2, 3, INF, 0.0])], ulps=64)
        t.row(
            "values_" + d,
            "LogMatrixDeterminant",
            [given(d, [4, 2, 2], diagonal(d))],
            ulps=16,
        )


def diagonal(d):
    most, small = MOST[d], MOST[d] ** -0.75
    return [most, 0, 0, most, INF, 0, 0, 1, small, 0, 0, small, 2, 3, 1, "-inf"]
