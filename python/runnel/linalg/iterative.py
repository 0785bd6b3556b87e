"""Conjugate gradients, banded and tridiagonal matrices."""

import collections

from runnel import raw_ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope
from runnel.ops import array_ops, math_ops

CGState = collections.namedtuple("CGState", "i x r p gamma")


def conjugate_gradient(operator, rhs, preconditioner=None, x=None, tol=1e-5, max_iter=20, name="conjugate_gradient"):
    """Solves `operator @ x = rhs` for a positive definite operator. Returns a tuple of the iteration `i`, `x`, the residual `r`, `p` and `gamma`."""
    from runnel.ops.control_flow import while_loop
    if not (operator.is_self_adjoint and operator.is_positive_definite):
        raise ValueError("Expected a self-adjoint, positive definite operator.")

    def dot(a, b):
        return array_ops.squeeze(math_ops.matvec(a[..., None, :], b), [-1])

    def scaled(vector, factor):
        return vector * factor[..., None]

    def applied(vector):
        return vector if preconditioner is None else preconditioner.matvec(vector)

    def more(i, state):
        return math_ops.logical_and(i < max_iter, math_ops.reduce_any(raw_ops.Sqrt(x=math_ops.reduce_sum(state.r * state.r, -1)) > limit))

    def step(i, state):
        z = operator.matvec(state.p)
        alpha = state.gamma / dot(state.p, z)
        x_next, r = state.x + scaled(state.p, alpha), state.r - scaled(z, alpha)
        q = applied(r)
        gamma = dot(r, q)
        return i + 1, CGState(i + 1, x_next, r, q + scaled(state.p, gamma / state.gamma), gamma)

    with name_scope(name):
        rhs = convert_to_tensor(rhs, operator.dtype)
        limit = tol * raw_ops.Sqrt(x=math_ops.reduce_sum(rhs * rhs, -1))
        r = rhs if x is None else rhs - operator.matvec(x)
        p = applied(r)
        i = convert_to_tensor(0)
        first = CGState(i, array_ops.zeros_like(rhs) if x is None else x, r, p, dot(r, p))
        return while_loop(more, step, [i, first])[1]


def banded_triangular_solve(bands, rhs, lower=True, adjoint=False, name=None):
    """Solves `A @ x = rhs` for a triangular matrix of which only the bands are given, the main diagonal first if it is upper."""
    with name_scope(name, "banded_triangular_solve", [bands, rhs]):
        return raw_ops.BandedTriangularSolve(matrix=bands, rhs=rhs, lower=lower, adjoint=adjoint)


def eigh_tridiagonal(alpha, beta, eigvals_only=True, select="a", select_range=None, tol=None, name=None):
    """Returns the eigenvalues, ascending, of the Hermitian matrix with the diagonal `alpha` and the diagonals `beta` beside it.

    Args:
      eigvals_only: whether to return only them, and not also the eigenvectors.
      select: "a" for all, "v" for those in (low, high], "i" for those of numbers low to high; `select_range` is (low, high).
      tol: kept; the eigenvalues are as exact as the type allows.
    """
    from runnel.linalg import linalg_ops
    with name_scope(name, "eigh_tridiagonal", [alpha, beta]):
        alpha, beta = convert_to_tensor(alpha, name="alpha"), convert_to_tensor(beta, name="beta")
        other = math_ops.conj(beta) if beta.dtype.is_complex else beta
        matrix = array_ops.matrix_diag(alpha) + array_ops.matrix_diag(beta, k=-1) + array_ops.matrix_diag(other, k=1)
        if select not in ("a", "i", "v"):
            raise ValueError("'select must have a value in {'a', 'i', 'v'}.")
        if select != "a" and select_range is None:
            raise ValueError("`select_range` must be given with select=%r" % select)
        values, vectors = linalg_ops.self_adjoint_eig(matrix)
        values = math_ops.real(values) if values.dtype.is_complex else values
        if select == "i":
            low, high = select_range
            values, vectors = values[low:high + 1], vectors[:, low:high + 1]
        elif select == "v":
            low, high = select_range
            inside = array_ops.reshape(array_ops.where(math_ops.logical_and(values > low, values <= high)), [-1])
            values, vectors = array_ops.gather(values, inside), array_ops.gather(vectors, inside, axis=1)
        return values if eigvals_only else (values, vectors)
