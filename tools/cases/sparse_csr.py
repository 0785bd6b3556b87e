"""CSR matrices: conversions, products, transposes, Cholesky factors."""

from .base import *

SOME = [[0, 0], [0, 2], [2, 1], [3, 0], [3, 2]]
SQUARE = [[0, 0], [0, 2], [1, 1], [1, 3], [2, 0], [2, 2], [3, 1], [3, 3]]
STACK = [[0, 0, 1], [0, 2, 0], [1, 0, 0], [1, 0, 2], [1, 3, 1]]


def i64(rows, width):
    return const(given("int64", [len(rows), width], [x for r in rows for x in r] or []))


def csr(d, rows, shape, values=None):
    """Returns a node that makes a matrix with entries at the given places."""
    v = given(d, [len(rows)], values) if values else drawn(d, [len(rows)])
    return node("SparseTensorToCSRSparseMatrix", [i64(rows, len(shape)), v, const(vec("int64", shape))])


def look(d, x=None):
    """Returns nodes that read the matrix under test."""
    x = x or use("node")
    return [
        node("CSRSparseMatrixToSparseTensor", [x], {"type": d}),
        node("CSRSparseMatrixToDense", [x], {"type": d}),
        node("SparseMatrixNNZ", [x]),
    ]


def conversions(t):
    op = "SparseTensorToCSRSparseMatrix"
    for d in dtypes("f C"):
        for name, rows, shape in (("one", SOME, [4, 3]), ("stack", STACK, [2, 4, 3])):
            count = len(rows)
            t.row("%s_%s" % (name, d), op, [i64(rows, len(shape)), drawn(d, [count]), const(vec("int64", shape))], then=look(d))
            t.row("%s_%s" % (name, d), "DenseToCSRSparseMatrix", [drawn(d, shape), i64(rows, len(shape))], then=look(d))
            m = csr(d, rows, shape)
            t.row("%s_%s" % (name, d), "CSRSparseMatrixToDense", [m], {"type": d})
            t.row("%s_%s" % (name, d), "CSRSparseMatrixToSparseTensor", [m], {"type": d})
            t.row("%s_%s" % (name, d), "SparseMatrixNNZ", [m])
            for i in range(2 if name == "stack" else 1):
                t.row("%s_%d_%s" % (name, i, d), "CSRSparseMatrixComponents", [m, iscalar(i)], {"type": d})
            t.row("%s_%s" % (name, d), "Conj", [m], then=look(d))
    f = lambda *s: drawn("float", list(s))
    t.row("unordered", op, [i64([[1, 0], [0, 1]], 2), f(2), const(vec("int64", [2, 2]))], then=look("float"))
    t.row("twice", op, [i64([[0, 1], [0, 0], [0, 0]], 2), f(3), const(vec("int64", [2, 2]))], then=look("float"))
    t.row("empty", op, [i64([], 2), f(0), const(vec("int64", [2, 3]))], then=look("float"))
    t.row("no_columns", op, [i64([], 2), f(0), const(vec("int64", [2, 0]))], then=look("float"))
    t.row("outside", op, [i64([[0, 0], [3, 1]], 2), f(2), const(vec("int64", [2, 2]))])
    t.row("outside_column", op, [i64([[0, 0], [1, 5]], 2), f(2), const(vec("int64", [2, 2]))])
    t.row("negative", op, [i64([[0, -1]], 2), f(1), const(vec("int64", [2, 2]))])
    t.row("vector", op, [i64([[0]], 1), f(1), const(vec("int64", [2]))], message={"starts": "Invalid rank: 1.  Expected a known rank of either 2 or 3."})
    t.row("rank_4", op, [i64([[0, 0, 0, 0]], 4), f(1), const(vec("int64", [2, 2, 2, 2]))], message={"starts": "Invalid rank: 4.  Expected a known rank of either 2 or 3."})
    t.row("many_rows", op, [i64([[0, 0]], 2), f(1), const(vec("int64", [1 << 31, 2]))])
    t.row("counts", op, [i64([[0, 0]], 2), f(2), const(vec("int64", [2, 2]))])
    t.row("no_matrix", op, [const(vec("int64", [0, 0])), f(1), const(vec("int64", [2, 2]))])
    t.row("ranks", op, [i64([[0, 0]], 2), f(1), const(vec("int64", [2, 2, 2]))])
    op = "DenseToCSRSparseMatrix"
    t.row("unordered", op, [f(2, 2), i64([[1, 0], [0, 1]], 2)], then=look("float"))
    t.row("outside", op, [f(2, 2), i64([[0, 0], [2, 1]], 2)])
    t.row("negative", op, [f(2, 2), i64([[-1, 0]], 2)])
    t.row("vector", op, [const(f(2)), i64([[0, 0]], 2)])
    t.row("no_matrix", op, [const(f(2, 2)), const(vec("int64", [0]))])
    t.row("columns", op, [const(f(2, 2)), i64([[0]], 1)])
    t.row("empty", op, [f(0, 2), i64([], 2)], then=look("float"))
    for op, d in (("CSRSparseMatrixToDense", "double"), ("CSRSparseMatrixToSparseTensor", "complex64")):
        t.row("other_type", op, [csr("float", SOME, [4, 3])], {"type": d})
    op = "CSRSparseMatrixComponents"
    t.row("other_type", op, [csr("float", SOME, [4, 3]), iscalar(0)], {"type": "double"})
    t.row("index", op, [csr("float", SOME, [4, 3]), iscalar(1)], {"type": "float"})
    t.row("below", op, [csr("float", SOME, [4, 3]), iscalar(-1)], {"type": "float"})
    t.row("vector", op, [csr("float", SOME, [4, 3]), ivec(0)], {"type": "float"})


def products(t):
    op = "SparseMatrixMatMul"
    turns = ((4, 3, {}), (3, 4, {"transpose_a": True}), (3, 4, {"adjoint_a": True}))
    for d in dtypes("f C"):
        tol = loose(d)
        for k, (rows, inner, a) in enumerate(turns):
            for j, b in enumerate(({}, {"transpose_b": True}, {"adjoint_b": True})):
                for o, c in enumerate(({}, {"transpose_output": True}, {"conjugate_output": True}, {"transpose_output": True, "conjugate_output": True})):
                    if d in ("float", "complex64") and o > 1:
                        continue
                    right = [2, inner] if b else [inner, 2]
                    t.row("%s_%d%d%d" % (d, k, j, o), op, [csr(d, SOME, [4, 3]), drawn(d, right)], dict(a, **b, **c), tol=tol)
                    t.row("stack_%s_%d%d%d" % (d, k, j, o), op, [csr(d, STACK, [2, 4, 3]), drawn(d, [2] + right)], dict(a, **b, **c), tol=tol)
                right = [[0, 1], [1, 0], [1, 3], [2, 2]] if not b else [[0, 1], [1, 0], [3, 1], [2, 2]]
                fits = [inner, 4] if not b else [4, inner]
                right = [r for r in right if r[0] < fits[0] and r[1] < fits[1]]
                t.row("%s_%d%d" % (d, k, j), "SparseMatrixSparseMatMul", [csr(d, SOME, [4, 3]), csr(d, right, fits)], dict(a, type=d, **b), then=look(d), tol=tol)
        for c in (False, True):
            for name, rows, shape in (("one", SOME, [4, 3]), ("stack", STACK, [2, 4, 3])):
                t.row("%s_%s_%d" % (name, d, c), "SparseMatrixTranspose", [csr(d, rows, shape)], {"type": d, "conjugate": c}, then=look(d))
        t.row("stack_" + d, "SparseMatrixSparseMatMul", [csr(d, STACK, [2, 4, 3]), csr(d, STACK, [2, 4, 3])], {"type": d, "transpose_b": True}, then=look(d), tol=tol)
    f = lambda *s: drawn("float", list(s))
    a = csr("float", SOME, [4, 3])
    t.row("sizes", op, [a, f(2, 2)])
    t.row("ranks", op, [a, f(1, 3, 2)])
    t.row("batches", op, [csr("float", STACK, [2, 4, 3]), f(3, 3, 2)])
    t.row("other_type", op, [a, drawn("double", [3, 2])])
    t.row("both_a", op, [a, f(3, 2)], {"transpose_a": True, "adjoint_a": True})
    t.row("both_b", op, [a, f(3, 2)], {"transpose_b": True, "adjoint_b": True})
    t.row("vector", op, [a, f(3)])
    t.row("empty", op, [csr("float", [], [4, 3]), f(3, 2)])
    t.row("no_columns", op, [a, f(3, 0)])
    op = "SparseMatrixSparseMatMul"
    t.row("sizes", op, [a, a], {"type": "float"})
    t.row("other_type_a", op, [a, a], {"type": "double"})
    t.row("other_type_b", op, [a, csr("double", SOME, [4, 3])], {"type": "float"})
    t.row("ranks", op, [a, csr("float", [[0, 0, 0]], [1, 4, 3])], {"type": "float", "transpose_b": True}, message={"starts": "Inner product dimensions of A and B do not agree.  Shapes are: [4,3] vs. "})
    t.row("both_a", op, [a, a], {"type": "float", "transpose_a": True, "adjoint_a": True})
    t.row("cancels", op, [csr("float", [[0, 0], [0, 1]], [1, 2], [1, -1]), csr("float", [[0, 0], [1, 0]], [2, 1], [1, 1])], {"type": "float"}, then=look("float"))
    t.row("other_type", "SparseMatrixTranspose", [a], {"type": "double"})


def positive(d):
    """Returns a matrix with a dense last row, and one that fills in."""
    n = 5
    rows = [[i, i] for i in range(n)] + [[4, j] for j in range(4)] + [[i, 4] for i in range(4)] + [[2, 0], [0, 2]]
    rows.sort()
    values = [8.0 if i == j else 0.5 + (i + j) % 3 for i, j in rows]
    return csr(d, rows, [n, n], values)


def cholesky(t):
    op = "SparseMatrixSparseCholesky"
    for d in dtypes("f C"):
        for name, order in (("natural", [0, 1, 2, 3, 4]), ("turned", [4, 3, 2, 1, 0]), ("mixed", [2, 4, 0, 3, 1])):
            t.row("%s_%s" % (name, d), op, [positive(d), ivec(*order)], {"type": d}, then=look(d), tol=loose(d))
    c = csr("complex128", [[0, 0], [1, 0], [1, 1]], [2, 2], [[4, 0], [1, 2], [5, 0]])
    for order in ((0, 1), (1, 0)):
        t.row("lower_%d" % order[0], op, [c, ivec(*order)], {"type": "complex128"}, then=look("complex128"), tol=1e-11)
    stack = csr("double", [[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]], [2, 2, 2], [4, 9, 2, 1, 3])
    t.row("stack", op, [stack, const(given("int32", [2, 2], [0, 1, 1, 0]))], {"type": "double"}, then=look("double"), tol=1e-11)
    a = positive("float")
    t.row("indefinite", op, [csr("float", [[0, 0], [1, 0], [1, 1]], [2, 2], [1, 2, 1]), ivec(0, 1)], {"type": "float"})
    t.row("no_diagonal", op, [csr("float", [[1, 0]], [2, 2], [1]), ivec(0, 1)], {"type": "float"})
    t.row("twice", op, [a, ivec(0, 1, 2, 2, 4)], {"type": "float"})
    t.row("short", op, [a, ivec(0, 1)], {"type": "float"})
    t.row("matrix", op, [a, const(given("int32", [1, 5], [0, 1, 2, 3, 4]))], {"type": "float"})
    t.row("other_type", op, [a, ivec(0, 1, 2, 3, 4)], {"type": "double"})
    t.row("not_square", op, [csr("float", SOME, [4, 3]), ivec(0, 1, 2, 3)], {"type": "float"})
    op = "SparseMatrixOrderingAMD"
    t.row("apart", op, [csr("float", [[0, 0], [0, 1], [1, 0], [1, 1], [2, 2]], [3, 3])])
    t.row("any", op, [positive("double")], undefined=[0])
    t.row("stack", op, [stack], undefined=[0])
    t.row("not_square", op, [csr("float", SOME, [4, 3])])


def gradients(t):
    """Adds gradients. Those of matrices go through dense tensors, because a variant has no values."""
    for d in ("double", "complex128"):
        g = "complex" if d == "complex128" else True
        more = {"grad": g, "grad_tol": 1e-11, "stock_grad": False}
        dense = lambda rows, shape: node("DenseToCSRSparseMatrix", [drawn(d, shape), i64(rows, len(shape))])
        t.row("grad_" + d, "CSRSparseMatrixToDense", [dense(SOME, [4, 3])], {"type": d}, **more)
        t.row("grad_stack_" + d, "CSRSparseMatrixToDense", [csr(d, STACK, [2, 4, 3])], {"type": d}, **more)
        t.row("grad_" + d, "CSRSparseMatrixToSparseTensor", [dense(STACK, [2, 4, 3])], {"type": d}, **more)
        m = node("SparseMatrixTranspose", [dense(SOME, [4, 3])], {"type": d, "conjugate": True})
        t.row("grad_transpose_" + d, "CSRSparseMatrixToDense", [m], {"type": d}, **more)
        for k, a in enumerate(({}, {"transpose_a": True}, {"adjoint_a": True})):
            for j, b in enumerate(({}, {"transpose_b": True}, {"adjoint_b": True})):
                for o, c in enumerate(({}, {"transpose_output": True}, {"transpose_output": True, "conjugate_output": True})):
                    inner = 4 if a else 3
                    right = [2, inner] if b else [inner, 2]
                    t.row("grad_%s_%d%d%d" % (d, k, j, o), "SparseMatrixMatMul", [dense(SOME, [4, 3]), drawn(d, right)], dict(a, **b, **c), **more)
                square = node("SparseMatrixSparseMatMul", [dense(SQUARE, [4, 4]), dense(SQUARE[:5], [4, 4])], dict(a, type=d, **b))
                t.row("grad_product_%s_%d%d" % (d, k, j), "CSRSparseMatrixToDense", [square], {"type": d}, **more)
        t.row("grad_stack_" + d, "SparseMatrixMatMul", [dense(STACK, [2, 4, 3]), drawn(d, [2, 3, 2])], **more)


def without_kernels(t):
    """Adds the ops that stock has for GPUs only: what is inferred of their results."""
    a = csr("float", SOME, [4, 3])
    one = const(scalar("float", 1))
    t.row("two", "SparseMatrixAdd", [a, a, one, one])
    t.row("shapes", "SparseMatrixAdd", [a, csr("float", SOME, [4, 4]), one, one])
    t.row("vector", "SparseMatrixAdd", [a, a, const(vec("float", [1])), one])
    t.row("scalar", "SparseMatrixMul", [a, one])
    t.row("matrix", "SparseMatrixMul", [a, const(given("float", [1, 1], [1]))])
    t.row("stack", "SparseMatrixMul", [a, const(given("float", [1, 1, 1], [1]))])
    t.row("one", "SparseMatrixSoftmax", [a], {"type": "float"})
    t.row("two", "SparseMatrixSoftmaxGrad", [a, a], {"type": "float"})
    t.row("shapes", "SparseMatrixSoftmaxGrad", [a, csr("float", SOME, [4, 4])], {"type": "float"})
    t.row("one", "SparseMatrixZeros", [const(vec("int64", [2, 3]))], {"type": "float"})
    t.row("vector", "SparseMatrixZeros", [const(vec("int64", [2]))], {"type": "float"}, message={"starts": "Invalid rank: 1.  Expected a known rank of either 2 or 3."})


def fill(t):
    without_kernels(t)
    conversions(t)
    products(t)
    cholesky(t)
    gradients(t)
