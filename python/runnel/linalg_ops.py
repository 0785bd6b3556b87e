"""Linear algebra beyond products."""

from runnel import raw_ops as _ops
from runnel.convert import convert_to_tensor
from runnel.framework import name_scope


def adjoint(matrix, name=None):
    """The conjugate transpose of the last two dimensions."""
    from runnel.array_ops import matrix_transpose
    with name_scope(name, "adjoint", [matrix]):
        return matrix_transpose(convert_to_tensor(matrix, name="matrix"), conjugate=True)


def logdet(matrix, name=None):
    """The logarithm of the determinant of a positive definite matrix."""
    from runnel.array_ops import matrix_diag_part
    from runnel.math_ops import reduce_sum
    with name_scope(name, "logdet", [matrix]):
        chol = _ops.Cholesky(matrix)
        return 2.0 * reduce_sum(_ops.Log(matrix_diag_part(chol)), axis=[-1])


def cholesky_solve(chol, rhs, name=None):
    """The solution of A x = rhs, from the Cholesky factor of A."""
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        y = _ops.MatrixTriangularSolve(chol, rhs, adjoint=False, lower=True)
        return _ops.MatrixTriangularSolve(chol, y, adjoint=True, lower=True)


def normalize(tensor, ord="euclidean", axis=None, name=None):  # noqa: A002
    """(the tensor by its norm, the norm)."""
    from runnel.special_ops import norm
    with name_scope(name, "normalize", [tensor]):
        tensor = convert_to_tensor(tensor)
        size = norm(tensor, ord, axis, keepdims=True)
        return tensor / size, size
