"""Factors, functions and eigenvalues of general matrices; solvers of banded and overdetermined systems."""

from .base import *

NEAR = [2, 0.5, 0.0, 0.25, 3, 1, 0.0, -0.5, 1.5]


def shapes(t, op, d, **more):
    """Adds the rows that every op on square matrices has: a batch, empty ones, and bad shapes."""
    t.row("empty", op, [drawn(d, [0, 0])], **more)
    t.row("empty_batch", op, [drawn(d, [0, 2, 2])], **more)
    t.row("not_square", op, [drawn(d, [2, 3])], **more)
    t.row("vector", op, [drawn(d, [3])], **more)


def factors(t):
    for d in dtypes("f C"):
        for n in (1, 2, 5, 37):
            t.row("%s_%d" % (d, n), "Lu", [drawn(d, [n, n])], tol=loose(d) * 20)
        for i in dtypes("i"):
            t.row("%s_%s" % (d, i), "Lu", [drawn(d, [2, 3, 3])], {"output_idx_type": i}, tol=loose(d) * 10)
    t.row("pivots", "Lu", [given("double", [3, 3], [0.0, 1, 2, 3, 0.0, 1, 1, 5, 0.0])])
    t.row("singular", "Lu", [given("double", [2, 2], [1, 2, 2, 4])])
    for name, a in (("nan_first", [NAN, 1, 1, 2]), ("nan_last", [1, 2, 1, NAN]), ("nan_below", [1, 2, NAN, 2])):
        t.row(name, "Lu", [given("double", [2, 2], a)])
        t.row(name, "MatrixInverse", [given("double", [2, 2], a)])
        t.row(name, "MatrixSolve", [given("double", [2, 2], a), drawn("double", [2, 1])])
    t.row("zeros", "Lu", [given("float", [2, 2], [0.0] * 4)])
    shapes(t, "Lu", "double")
    t.row("grad", "Lu", [given("double", [2, 3, 3], NEAR + [0.5, 2, 1, 3, 0.25, 1, 1, 1, 4])], grad=True, fd_tol=1e-6)


def functions(t):
    for d in dtypes("f C"):
        t.row(d, "MatrixSquareRoot", [given(d, [3, 3], NEAR)], tol=loose(d) * 10)
    for d in C:
        t.row(d, "MatrixLogarithm", [given(d, [3, 3], NEAR)], tol=loose(d) * 10)
        t.row("one_" + d, "MatrixLogarithm", [given(d, [1, 1], [2])], tol=loose(d))
        t.row("negative_" + d, "MatrixLogarithm", [given(d, [2, 2], [-1, 0.5, 0.0, 2])], tol=loose(d) * 10)
        t.row("far_" + d, "MatrixLogarithm", [given(d, [2, 2], [1000, 3, 0.0, 0.001])], tol=loose(d) * 10)
    big = [(i * 3 + j * 5) % 11 / 11 + (8 if i == j else 0) for i in range(9) for j in range(9)]
    t.row("large", "MatrixSquareRoot", [given("double", [9, 9], big)], tol=1e-11)
    t.row("large", "MatrixLogarithm", [given("complex128", [9, 9], big)], tol=1e-11)
    t.row("stack", "MatrixSquareRoot", [given("double", [2, 2, 2], [4, 1, 1, 3, 2, 0.5, 0.5, 2])], tol=1e-11)
    t.row("stack", "MatrixLogarithm", [given("complex128", [2, 2, 2], [4, 1, 1, 3, 2, 0.5, 0.5, 2])], tol=1e-11)
    t.row("no_real", "MatrixSquareRoot", [given("double", [2, 2, 2], [10, 1.5, -3.5, -5, 4, 1, 1, 3])], tol=1e-11)
    t.row("rotation", "MatrixSquareRoot", [given("double", [2, 2], [0.0, -1, 1, 0.0])], tol=1e-11)
    shapes(t, "MatrixSquareRoot", "double")
    shapes(t, "MatrixLogarithm", "complex64")
    t.row("grad", "MatrixSquareRoot", [given("double", [2, 2, 2], [4, 1, 0.5, 3, 2, 0.5, 0.25, 2])], grad=True, grad_tol=1e-10, fd_tol=1e-6)


def eigenvalues(t):
    """Adds Eig. Values come in no particular order and vectors with any phase; tests/python sorts them."""
    for d in dtypes("f C"):
        wide = d in ("double", "complex128")
        out = "complex128" if wide else "complex64"
        t.row("one_" + d, "Eig", [given(d, [1, 1], [2])], {"Tout": out})
        t.row("shape_" + d, "Eig", [drawn(d, [2, 4, 4])], {"Tout": out}, undefined=[0, 1])
        t.row("values_" + d, "Eig", [drawn(d, [3, 3])], {"Tout": out, "compute_v": False}, undefined=[0, 1])
    for name, shape in (("empty", [0, 0]), ("empty_batch", [0, 2, 2]), ("not_square", [2, 3]), ("vector", [3])):
        t.row(name, "Eig", [drawn("double", shape)], {"Tout": "complex128"})
    for d in ("double", "complex128"):
        t.row("by_size_" + d, "Eig", [given(d, [3, 3], [-1.5, 0.5, -0.25, 0.0, 2, 0.75, 0.0, 0.0, -0.75])], {"Tout": "complex128", "compute_v": False}, undefined=[1], tol=1e-12)
    # Of a triangular matrix, the values come in the order of the diagonal.
    upper = [1, 0.5, -0.25, 0.0, 2, 0.75, 0.0, 0.0, 4]
    for d in ("double", "complex128"):
        # Differences exchange the values.
        more = {"undefined": [1], "grad_outputs": [0], "grad_tol": 1e-10, "fd": False}
        t.row("grad_" + d, "Eig", [given(d, [3, 3], upper)], {"Tout": "complex128", "compute_v": False}, grad="complex", **more)
    t.row("nan", "Eig", [given("double", [2, 2], [NAN, 1, 1, 2])], {"Tout": "complex128"}, undefined=[0, 1])
    t.row("wrong_type", "Eig", [drawn("double", [2, 2])], {"Tout": "complex64"}, undefined=[0, 1])


def least_squares(t):
    zero = const(scalar("double", 0.0))
    some = const(scalar("double", 0.5))
    op = "MatrixSolveLs"
    for d in dtypes("f C"):
        for m, n in ((3, 3), (5, 3), (3, 5)):
            for fast in (True, False):
                x = [drawn(d, [m, n]), drawn(d, [m, 2]), zero]
                t.row("%s_%d_%d_%d" % (d, m, n, fast), op, x, {"fast": fast}, tol=loose(d) * 1000)
                x = [drawn(d, [2, m, n]), drawn(d, [2, m, 2]), some]
                t.row("regular_%s_%d_%d_%d" % (d, m, n, fast), op, x, {"fast": fast}, tol=loose(d) * 100)
    a, b = drawn("double", [4, 2]), drawn("double", [4, 3])
    t.row("not_regular", op, [given("double", [3, 2], [1, 2, 2, 4, 3, 6]), drawn("double", [3, 1]), zero])
    t.row("deficient", op, [given("double", [3, 2], [1, 2, 2, 4, 3, 6]), drawn("double", [3, 1]), zero], {"fast": False}, tol=1e-11)
    t.row("negative", op, [a, b, const(scalar("double", -1))])
    t.row("vector_regularizer_no_matrix", op, [drawn("double", [0, 4, 2]), drawn("double", [0, 4, 3]), const(vec("double", [0.0]))], message="code-only")
    t.row("vector_regularizer", op, [a, b, const(vec("double", [0.0]))])
    t.row("rows", op, [a, drawn("double", [3, 3]), zero])
    t.row("outer", op, [drawn("double", [2, 4, 2]), drawn("double", [3, 4, 2]), zero])
    t.row("ranks", op, [drawn("double", [2, 4, 2]), b, zero])
    t.row("vector", op, [drawn("double", [4]), b, zero])
    t.row("empty_rows", op, [drawn("double", [0, 2]), drawn("double", [0, 3]), zero], undefined=[0])
    t.row("empty_columns", op, [drawn("double", [2, 0]), drawn("double", [2, 3]), zero])
    t.row("empty_right", op, [a, drawn("double", [4, 0]), zero])
    for m, n in ((4, 3), (3, 3), (2, 4)):
        grads = {"grad": True, "grad_tol": 1e-9, "fd_tol": 1e-5}
        t.row("grad_%d_%d" % (m, n), op, [drawn("double", [2, m, n]), drawn("double", [2, m, 2]), some], **grads)


def tridiagonal(t):
    op = "TridiagonalSolve"
    for d in dtypes("f C"):
        for pivots in (True, False):
            for n in (1, 2, 3, 9):
                x = [drawn(d, [2, 3, n], 0.5, 2), drawn(d, [2, n, 2])]
                t.row("%s_%d_%d" % (d, n, pivots), op, x, {"partial_pivoting": pivots}, tol=loose(d) * 100)
        x = [drawn(d, [3, 5]), drawn(d, [3, 5]), drawn(d, [3, 5])]
        parts = [drawn(d, [2, 1, 5]), drawn(d, [2, 1, 5]), drawn(d, [2, 1, 5])]
        t.row(d, "TridiagonalMatMul", parts + [drawn(d, [2, 5, 3])], tol=loose(d))
        for n in (1, 2):
            t.row("%s_%d" % (d, n), "TridiagonalMatMul", [drawn(d, [1, n])] * 3 + [drawn(d, [n, 3])], tol=loose(d))
    double = lambda *s: drawn("double", list(s))
    for pivots in (True, False):
        a = {"partial_pivoting": pivots}
        t.row("swaps_%d" % pivots, op, [given("double", [3, 3], [1, 2, 0.0, 0.0, 0.0, 3, 0.0, 1, 2]), double(3, 1)], a, tol=1e-11)
        t.row("singular_%d" % pivots, op, [given("double", [3, 3], [0.0] * 9), double(3, 1)], a)
        t.row("singular_one_%d" % pivots, op, [given("double", [3, 1], [1, 0.0, 1]), double(1, 1)], a)
        t.row("singular_two_%d" % pivots, op, [given("double", [3, 2], [1, 0.0, 1, 1, 0.0, 1]), double(2, 1)], a)
        t.row("empty_%d" % pivots, op, [double(3, 0), double(0, 2)], a)
        t.row("empty_right_%d" % pivots, op, [double(3, 2), double(2, 0)], a)
        t.row("bad_outer_%d" % pivots, op, [double(2, 3, 4), double(3, 4, 1)], a)
        t.row("bad_size_%d" % pivots, op, [double(3, 4), double(5, 1)], a)
        t.row("bad_diagonals_%d" % pivots, op, [double(2, 4), double(4, 1)], a)
        t.row("bad_rank_%d" % pivots, op, [double(2, 3, 4), double(4, 1)], a)
        t.row("vector_%d" % pivots, op, [double(3, 4), double(4)], a)
        t.row("grad_%d" % pivots, op, [drawn("double", [2, 3, 4], 0.5, 2), double(2, 4, 2)], a, grad=True, grad_tol=1e-8, fd_tol=1e-4)
    t.row("perturb", op, [given("double", [3, 2], [1, 0.0, 1, 1, 0.0, 1]), double(2, 1)], {"perturb_singular": True})
    op = "TridiagonalMatMul"
    t.row("bad_size", op, [double(1, 4), double(1, 4), double(1, 4), double(5, 2)])
    t.row("bad_diagonal", op, [double(1, 3), double(1, 4), double(1, 4), double(4, 2)])
    t.row("bad_rank", op, [double(4), double(1, 4), double(1, 4), double(4, 2)])
    t.row("bad_rows", op, [double(2, 4), double(1, 4), double(1, 4), double(4, 2)])
    t.row("bad_outer", op, [double(2, 1, 4), double(2, 1, 4), double(2, 1, 4), double(3, 4, 2)])
    t.row("empty", op, [double(1, 0), double(1, 0), double(1, 0), double(0, 2)])
    t.row("grad", op, [double(2, 1, 4), double(2, 1, 4), double(2, 1, 4), double(2, 4, 3)], grad=True, grad_tol=1e-11)
    t.row("grad_one", op, [double(1, 1), double(1, 1), double(1, 1), double(1, 3)], grad=True, grad_tol=1e-11)


def banded(t):
    op = "BandedTriangularSolve"
    for d in dtypes("f C"):
        for lower in (True, False):
            for adjoint in (True, False):
                a = {"lower": lower, "adjoint": adjoint}
                name = "%s_%d%d" % (d, lower, adjoint)
                for bands, n in ((1, 3), (2, 4), (3, 3), (3, 7)):
                    t.row("%s_%d_%d" % (name, bands, n), op, [drawn(d, [bands, n], 0.5, 2), drawn(d, [n, 2])], a, tol=loose(d) * 100)
    double = lambda *s: drawn("double", list(s), 0.5, 2)
    t.row("stack", op, [double(2, 2, 4), double(2, 4, 3)], tol=1e-11)
    t.row("broadcast", op, [double(2, 4), double(3, 4, 2)], tol=1e-11)
    t.row("broadcast_matrix", op, [double(2, 1, 2, 4), double(3, 4, 2)], {"lower": False}, tol=1e-11)
    t.row("singular", op, [given("double", [1, 2], [1, 0.0]), double(2, 1)])
    t.row("singular_stack", op, [given("double", [2, 1, 2], [1, 2, 1, 0.0]), double(2, 2, 1)])
    t.row("singular_broadcast", op, [given("double", [1, 2], [1, 0.0]), double(2, 2, 1)])
    t.row("singular_broadcast_matrix", op, [given("double", [2, 1, 2], [1, 2, 1, 0.0]), double(2, 1)])
    t.row("nan_first", op, [given("double", [1, 2], [NAN, 1]), double(2, 1)])
    t.row("nan_last", op, [given("double", [1, 2], [1, NAN]), double(2, 1)])
    t.row("many_bands", op, [double(5, 4), double(4, 2)])
    t.row("no_bands", op, [double(0, 4), double(4, 2)])
    t.row("sizes", op, [double(2, 4), double(5, 2)])
    t.row("outer", op, [double(2, 2, 4), double(3, 4, 2)])
    t.row("vector", op, [double(4), double(4, 2)])
    t.row("vector_right", op, [double(2, 4), double(4)])
    t.row("empty", op, [double(1, 0), double(0, 2)])
    t.row("empty_right", op, [double(2, 4), double(4, 0)])
    for lower in (True, False):
        for adjoint in (True, False):
            a = {"lower": lower, "adjoint": adjoint}
            t.row("grad_%d%d" % (lower, adjoint), op, [double(2, 2, 3), double(2, 3, 2)], a, grad=True, grad_tol=1e-10, fd_tol=1e-5)
    t.row("grad_broadcast", op, [double(2, 3), double(2, 3, 2)], grad=True, grad_tol=1e-10, fd_tol=1e-5)


def old_gradient(t):
    """Adds the gradient op of old graphs."""
    l = given("double", [3, 3], [2, 0.0, 0.0, 0.5, 1.5, 0.0, 0.25, -0.5, 1])
    for d in dtypes("f"):
        t.row(d, "CholeskyGrad", [dict(l, dtype=d), drawn(d, [3, 3])], tol=loose(d) * 10)
    t.row("stack", "CholeskyGrad", [given("double", [2, 2, 2], [2, 0.0, 1, 1, 1, 0.0, 3, 2]), drawn("double", [2, 2, 2])], tol=1e-11)
    t.row("large", "CholeskyGrad", [given("double", [40, 40], [(2.0 if i == j else (i + j) % 5 / 20.0) if j <= i else 0.0 for i in range(40) for j in range(40)]), drawn("double", [40, 40])], tol=1e-9)
    t.row("bad_shapes", "CholeskyGrad", [l, drawn("double", [2, 2])])
    t.row("not_square", "CholeskyGrad", [drawn("double", [2, 3]), drawn("double", [2, 3])])
    t.row("empty", "CholeskyGrad", [drawn("double", [0, 0]), drawn("double", [0, 0])])


def old_names(t):
    """Adds the ops of old graphs, which new ones may not have; tests/capi/outdated_test.c runs them."""
    m = drawn("double", [2, 2])
    for op in ("BatchCholesky", "BatchMatrixDeterminant", "BatchMatrixInverse", "BatchSelfAdjointEig", "BatchSelfAdjointEigV2", "BatchSvd", "MatrixExponential", "SelfAdjointEig"):
        t.row("removed", op, [m])
    for op in ("BatchCholeskyGrad", "BatchMatrixSolve", "BatchMatrixTriangularSolve"):
        t.row("removed", op, [m, m])
    t.row("removed", "BatchMatrixSolveLs", [m, m, const(scalar("double", 0.0))])


def fill(t):
    old_names(t)
    factors(t)
    functions(t)
    eigenvalues(t)
    least_squares(t)
    tridiagonal(t)
    banded(t)
    old_gradient(t)
