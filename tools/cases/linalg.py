"""Linear systems, decompositions and einsum."""

from . import linalg_more
from .base import *


def regular(n, shift=5):
    """Returns an invertible matrix whose largest elements are off the diagonal."""
    return [
        (i * 3 + j * 5) % 11 / 11 + (n if j == (i + shift) % n else 0)
        for i in range(n)
        for j in range(n)
    ]


def positive(n):
    return [(i * j) % 7 / 7 + (n if i == j else 0) for i in range(n) for j in range(n)]


def large(t):
    """Adds matrices larger than a panel, batches, and errors."""
    for n in (33, 70):
        for d in ("float", "complex128"):
            tol = 1e-5 if d == "float" else 1e-11
            a = given(d, [n, n], regular(n))
            t.row("large_%d_%s" % (n, d), "MatrixSolve", [a, drawn(d, [n, 19])], tol=tol)
            t.row(
                "large_adjoint_%d_%s" % (n, d),
                "MatrixSolve",
                [a, drawn(d, [n, 2])],
                {"adjoint": True},
                tol=tol,
            )
            t.row("large_%d_%s" % (n, d), "MatrixInverse", [a], tol=tol)
            t.row("large_%d_%s" % (n, d), "Cholesky", [given(d, [n, n], positive(n))], tol=tol)
            for lower in (True, False):
                for adjoint in (True, False):
                    t.row(
                        "large_%d_%s_%d%d" % (n, d, lower, adjoint),
                        "MatrixTriangularSolve",
                        [given(d, [n, n], positive(n)), drawn(d, [n, 18])],
                        {"lower": lower, "adjoint": adjoint},
                        tol=tol,
                    )
    t.row("large", "MatrixDeterminant", [given("double", [20, 20], regular(20))], tol=1e-10)
    t.row("odd", "MatrixDeterminant", [given("double", [2, 2], [0.0, 2, 3, 1])])
    t.row("negative", "MatrixDeterminant", [given("float", [2, 2], [-1, 2, 3, 1])])
    stack = given("double", [3, 2, 2], [2, 1, 0.0, 1, 1, 1, -1, 2, 0.0, 3, 1, 1])
    for op in ("MatrixInverse", "MatrixDeterminant"):
        t.row("stack", op, [stack])
    t.row("stack", "MatrixSolve", [stack, drawn("double", [3, 2, 3])])
    t.row("outer", "MatrixSolve", [stack, drawn("double", [2, 2, 3])])
    t.row("ranks", "MatrixSolve", [stack, drawn("double", [2, 3])])
    t.row("vector", "MatrixSolve", [stack, drawn("double", [2])])
    op = "MatrixTriangularSolve"
    t.row("broadcast", op, [given("double", [2, 1, 2, 2], [2, 0.0, 1, 1, 1, 0.0, 3, 2]), drawn("double", [3, 2, 2])])
    t.row("broadcast_rhs", op, [stack, drawn("double", [2, 3])], {"lower": False})
    t.row("outer", op, [stack, drawn("double", [2, 2, 3])])
    t.row("sizes", op, [stack, drawn("double", [3, 3, 3])])
    t.row("not_square", op, [drawn("double", [2, 3]), drawn("double", [2, 1])])
    t.row("vector", op, [drawn("double", [2]), drawn("double", [2, 1])])
    t.row("empty", op, [given("double", [0, 0], []), given("double", [0, 2], [])])
    t.row("adjoint", "MatrixInverse", [given("complex64", [2, 2], [1, 2, 3, 5])], {"adjoint": True}, tol=1e-5)
    for adjoint in (True, False):
        t.row(
            "grad_adjoint_%d" % adjoint,
            "MatrixSolve",
            [stack, drawn("double", [3, 2, 2])],
            {"adjoint": adjoint},
            grad=True,
            fd_tol=1e-6,
            grad_tol=1e-11,
        )
        t.row(
            "grad_stack_%d" % adjoint,
            "MatrixInverse",
            [stack],
            {"adjoint": adjoint},
            grad=True,
            fd_tol=1e-6,
            grad_tol=1e-11,
        )
    for name, eq, shapes in [
        ("two_sums", "abc,cde->be", [[2, 3, 4], [4, 2, 3]]),
        ("own_sum", "ab,c->b", [[2, 3], [4]]),
        ("repeat_out", "i->ii", [[3]]),
        ("repeat_in", "iij,j->i", [[3, 3, 2], [2]]),
        ("ellipsis_sum", "...i->...", [[2, 3, 4]]),
        ("ellipsis_one", "i...,j...->ij...", [[2, 1, 3], [3, 4, 1]]),
        ("turned", "ji,kj->ki", [[4, 3], [2, 4]]),
        ("shared_last", "ijb,jkb->ikb", [[2, 3, 4], [3, 2, 4]]),
        ("empty", "ij,jk->ik", [[2, 0], [0, 3]]),
        ("empty_out", "ij,jk->ik", [[0, 2], [2, 3]]),
        ("three", "ij,jk,kl->il", [[2, 3], [3, 2], [2, 2]]),
        ("capitals", "Ab,bC->AC", [[2, 3], [3, 2]]),
        ("scalars", ",->", [[], []]),
        ("ellipsis_lost", "...ij,...jk->ik", [[2, 2, 3], [3, 4]]),
        ("ellipsis_lost_one", "a...->a", [[2, 3]]),
        ("ellipsis_lost_none", "a...->a", [[2]]),
        ("ellipsis_clash", "...ij,...jk->...ik", [[5, 2, 3], [7, 3, 4]]),
    ]:
        t.row(name, "Einsum", [[drawn("double", s) for s in shapes]], {"equation": eq})
    t.row(
        "large",
        "Einsum",
        [[drawn("float", [3, 37, 20]), drawn("float", [3, 20, 41])]],
        {"equation": "bij,bjk->bik"},
        tol=1e-5,
    )


def decompositions(t):
    """Adds Svd and SelfAdjointEigV2, of which only the values are compared, because vectors are unique only up to sign; and Qr, whose signs are fixed."""
    op = "SelfAdjointEigV2"
    for d in dtypes("f C"):
        for full in (True, False):
            for m, n in ((4, 4), (5, 3), (3, 5)):
                name = "%s_%d_%d_%d" % (d, full, m, n)
                t.row(name, "Qr", [drawn(d, [m, n])], {"full_matrices": full}, tol=loose(d))
        for m, n in ((4, 4), (5, 3), (3, 5)):
            t.row("%s_%d_%d" % (d, m, n), "Svd", [drawn(d, [m, n])], {"compute_uv": False}, undefined=[1, 2], tol=loose(d))
        t.row(d, op, [drawn(d, [4, 4])], {"compute_v": False}, undefined=[1], tol=loose(d))
        t.row(d, "LogMatrixDeterminant", [drawn(d, [3, 3])], tol=loose(d))
        t.row("one_" + d, "Svd", [given(d, [1, 1], [2])])
        t.row("one_" + d, op, [given(d, [1, 1], [2])])
    for name, shape in (("stack", [2, 3, 3]), ("empty_stack", [0, 2, 2]), ("empty", [0, 0]), ("vector", [2])):
        t.row(name, "Qr", [drawn("double", shape)], tol=1e-11)
        t.row(name, "Svd", [drawn("double", shape)], {"compute_uv": False}, undefined=[1, 2], tol=1e-11)
        t.row(name, op, [drawn("double", shape)], {"compute_v": False}, undefined=[1], tol=1e-11)
        t.row(name, "LogMatrixDeterminant", [drawn("double", shape)], tol=1e-11)
    for full in (True, False):
        for shape in ([3, 0], [0, 3]):
            name = "empty_%d_%d" % (shape[0], full)
            t.row(name, "Qr", [drawn("float", shape)], {"full_matrices": full})
            t.row(name, "Svd", [drawn("float", shape)], {"full_matrices": full})
    t.row("large", "Qr", [drawn("double", [40, 20])], tol=1e-11)
    t.row("large", "Svd", [drawn("double", [40, 20])], {"compute_uv": False}, undefined=[1, 2], tol=1e-11)
    t.row("large", op, [drawn("double", [30, 30])], {"compute_v": False}, undefined=[1], tol=1e-11)
    t.row("zeros", "Qr", [given("double", [2, 2], [0.0] * 4)])
    t.row("zeros", "Svd", [given("double", [2, 2], [0.0] * 4)], {"compute_uv": False}, undefined=[1, 2])
    t.row("zeros", op, [given("double", [2, 2], [0.0] * 4)], {"compute_v": False}, undefined=[1])
    t.row("singular", "LogMatrixDeterminant", [given("double", [2, 2], [1, 2, 2, 4])])
    t.row("not_square", "LogMatrixDeterminant", [drawn("double", [2, 3])])
    t.row("not_square", op, [drawn("double", [2, 3])])
    near = [2, 0.5, 0.0, 0.25, 3, 1, 0.0, -0.5, 1.5]
    grads = {"grad": True, "fd_tol": 1e-6, "grad_tol": 1e-10}
    t.row("grad", "Qr", [given("double", [3, 3], near)], **grads)
    t.row("grad_tall", "Qr", [drawn("double", [2, 4, 3])], **grads)
    t.row("grad", "Svd", [given("double", [3, 3], near)], {"compute_uv": False}, undefined=[1, 2], grad_outputs=[0], **grads)
    t.row("grad", op, [given("double", [3, 3], near)], {"compute_v": False}, undefined=[1], grad_outputs=[0], **grads)
    t.row("grad", "LogMatrixDeterminant", [given("double", [3, 3], near)], **grads)


def fill(t):
    linalg_more.fill(t)
    large(t)
    decompositions(t)
    near = [2, 0.5, 0.0, 0.25, 3, 1, 0.0, -0.5, 1.5]
    for d in dtypes("f C"):
        t.row(d, "MatrixSolve", [given(d, [3, 3], near), drawn(d, [3, 2])], tol=loose(d))
        t.row(
            "adjoint_" + d,
            "MatrixSolve",
            [given(d, [3, 3], near), drawn(d, [3, 2])],
            {"adjoint": True},
            tol=loose(d),
        )
    t.row(
        "batch",
        "MatrixSolve",
        [given("double", [2, 2, 2], [2, 1, 0.0, 1, 1, 1, -1, 2]), drawn("double", [2, 2, 1])],
    )
    t.row(
        "pivots",
        "MatrixSolve",
        [given("double", [2, 2], [0.0, 1, 1, 0.0]), drawn("double", [2, 3])],
    )
    t.row("empty", "MatrixSolve", [drawn("double", [0, 0]), drawn("double", [0, 2])])
    t.row("no_right_side", "MatrixSolve", [given("double", [1, 1], [2]), drawn("double", [1, 0])])
    t.row(
        "singular", "MatrixSolve", [given("double", [2, 2], [1, 2, 2, 4]), drawn("double", [2, 1])]
    )
    t.row("not_square", "MatrixSolve", [drawn("double", [2, 3]), drawn("double", [2, 1])])
    t.row("bad_shapes", "MatrixSolve", [drawn("double", [2, 2]), drawn("double", [3, 1])])
    t.row(
        "grad",
        "MatrixSolve",
        [given("double", [3, 3], near), drawn("double", [3, 2])],
        grad=True,
        fd_tol=1e-6,
    )
    for name, eq, shapes in [
        ("matmul", "ij,jk->ik", [[2, 3], [3, 4]]),
        ("transpose", "ij->ji", [[2, 3]]),
        ("trace", "ii->", [[3, 3]]),
        ("diagonal", "ii->i", [[3, 3]]),
        ("sum", "ij->", [[2, 3]]),
        ("batch", "bij,bjk->bik", [[2, 2, 3], [2, 3, 2]]),
        ("ellipsis", "...ij,...jk->...ik", [[2, 1, 2, 3], [3, 3, 2]]),
        ("outer", "i,j->ij", [[2], [3]]),
        ("dot", "i,i->", [[4], [4]]),
        ("bilinear", "abc,cd->abd", [[2, 2, 3], [3, 2]]),
        ("bad_label", "ij,jk->il", [[2, 3], [3, 4]]),
        ("bad_size", "ij,jk->ik", [[2, 3], [4, 4]]),
        ("rank", "ijk->ik", [[2, 3]]),
    ]:
        t.row(name, "Einsum", [[drawn("float", s) for s in shapes]], {"equation": eq}, tol=1e-5)
        if not name.startswith("bad") and name != "rank":
            t.row(
                "grad_" + name,
                "Einsum",
                [[drawn("double", s) for s in shapes]],
                {"equation": eq},
                grad=True,
            )
    for d in dtypes("F C i"):
        t.row(
            d,
            "Einsum",
            [[drawn(d, [2, 3]), drawn(d, [3, 2])]],
            {"equation": "ij,jk->ik"},
            tol=loose(d),
        )
        t.row("sum_" + d, "Einsum", [[drawn(d, [2, 3, 2])]], {"equation": "abc->ca"}, tol=loose(d))
    spd = [4, 1, 0.5, 1, 3, 0.25, 0.5, 0.25, 2]
    for d in dtypes("f C"):
        t.row(d, "Cholesky", [given(d, [3, 3], spd)], tol=loose(d))
        for op in ("MatrixDeterminant", "MatrixInverse"):
            t.row(d, op, [given(d, [3, 3], near)], tol=loose(d))
        for lower in (True, False):
            for adjoint in (False, True):
                t.row(
                    "%s_%d%d" % (d, lower, adjoint),
                    "MatrixTriangularSolve",
                    [given(d, [3, 3], near), drawn(d, [3, 2])],
                    {"lower": lower, "adjoint": adjoint},
                    tol=loose(d),
                )
    for op in ("Cholesky", "MatrixDeterminant", "MatrixInverse"):
        t.row("batch", op, [given("double", [2, 2, 2], [4, 1, 1, 3, 2, 0.5, 0.5, 2])])
        t.row("empty", op, [drawn("double", [0, 0])])
        t.row("not_square", op, [drawn("double", [2, 3])])
        t.row(
            "singular",
            op,
            [given("double", [2, 2], [1, 2, 2, 4])],
            **({"undefined": [0]} if op == "Cholesky" else {})
        )
        t.row("vector", op, [drawn("double", [3])])
        t.row(
            "grad",
            op,
            [given("double", [3, 3], spd)],
            grad=True,
            fd=op != "Cholesky",
            fd_tol=1e-6,
            grad_tol=1e-11,
        )
    t.row("adjoint", "MatrixInverse", [given("double", [2, 2], [1, 2, 0.0, 4])], {"adjoint": True})
    for n, columns in ((39, 5), (70, 1), (33, 40)):  # several panels, and groups that are not whole
        upright = [3.0 if i == j else 0.01 * ((3 * i + 5 * j) % 7) for i in range(n) for j in range(n)]
        for lower in (True, False):
            for adjoint in (False, True):
                t.row(
                    "%dx%d_%d%d" % (n, columns, lower, adjoint),
                    "MatrixTriangularSolve",
                    [given("double", [n, n], upright), drawn("double", [n, columns])],
                    {"lower": lower, "adjoint": adjoint},
                    tol=1e-12,
                )
    t.row(
        "singular",
        "MatrixTriangularSolve",
        [given("double", [2, 2], [1, 0.0, 2, 0.0]), drawn("double", [2, 1])],
    )
    t.row(
        "grad",
        "MatrixTriangularSolve",
        [given("double", [3, 3], near), drawn("double", [3, 2])],
        grad=True,
        fd_tol=1e-6,
        grad_tol=1e-11,
    )
