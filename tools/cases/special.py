"""Bessel functions, exponential and Fresnel integrals, and other special functions."""

from .base import *

# In double, two good implementations agree to about 2e-13.
TOL = {"half": 2e-3, "float": 4e-6, "double": 2e-13}


def fill(t):
    bessel = [a + b for a in "IJKY" for b in "01"] + ["I0e", "I1e", "K0e", "K1e"]
    for name in bessel:
        op = "Bessel" + name
        lo = 0.1 if name[0] in "KY" else -6
        for d in dtypes("half f"):
            t.row(d, op, [drawn(d, [3, 5], lo, 6)], tol=TOL[d])
            # A larger range would overflow half.
            hi = 10 if d == "half" else 60
            t.row("wide_" + d, op, [drawn(d, [37], lo if lo > 0 else -hi, hi)], tol=2 * TOL[d])
        t.row("none", op, [drawn("float", [0, 2])])
        t.row("scalar", op, [drawn("double", [], 0.5, 3)], tol=TOL["double"])
        t.row("small", op, [vec("double", [1e-30, 1e-12, 1e-5, 0.01])], tol=TOL["double"])
        t.row("zero", op, [vec("double", [0.0])])
        t.row("nan", op, [vec("double", [NAN])])
        t.row("grad", op, [drawn("double", [7], 0.2, 4)], grad=True, grad_tol=1e-11)
        if name[0] in "KY":
            t.row("negative", op, [vec("double", [-1.0, -3.5])])
        else:
            t.row("grad_negative", op, [drawn("double", [5], -4, -0.2)], grad=True, grad_tol=1e-11)
            if name != "I1":  # stock returns 1 instead of 1/2
                t.row("grad_zero", op, [vec("double", [0.0])], grad=True, fd=False)
    for op, lo, hi in [
        ("Dawsn", -4, 4),
        ("Expint", 0.05, 6),
        ("FresnelCos", -4, 4),
        ("FresnelSin", -4, 4),
        ("Spence", 0.01, 6),
    ]:
        for d in dtypes("f"):
            t.row(d, op, [drawn(d, [3, 5], lo, hi)], tol=TOL[d])
            t.row("wide_" + d, op, [drawn(d, [37], 0.01 if lo > 0 else -60, 60)], tol=4 * TOL[d])
        t.row("none", op, [drawn("float", [0, 2])])
        t.row("scalar", op, [drawn("double", [], 0.5, 3)], tol=TOL["double"])
        t.row("small", op, [vec("double", [1e-30, 1e-12, 1e-5, 0.01, 0.1, 0.3])], tol=TOL["double"])
        t.row("zero", op, [vec("double", [0.0])])
        t.row("nan", op, [vec("double", [NAN])])
        t.row("grad", op, [drawn("double", [7], 0.2, 3)], grad=True)
        if lo > 0:
            t.row("negative", op, [vec("double", [-1.0, -3.5])])
    t.row("one", "Spence", [vec("double", [1, 0.5, 1.5, 2, 0.999, 1.001])], tol=1e-13)
    t.row("grad_one", "Spence", [vec("double", [1.0, 2.0])], grad=True, fd=False)
