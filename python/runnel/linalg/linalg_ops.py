"""Decompositions, determinants and norms (tf.linalg)."""

from runnel import raw_ops as _ops
from runnel.core.convert import convert_to_tensor
from runnel.core.framework import name_scope


def adjoint(matrix, name=None):
    """Returns the conjugate transpose of the last two dimensions."""
    from runnel.ops.array_ops import matrix_transpose
    with name_scope(name, "adjoint", [matrix]):
        return matrix_transpose(convert_to_tensor(matrix, name="matrix"), conjugate=True)


def logdet(matrix, name=None):
    """Returns the logarithm of the determinant of a positive definite matrix."""
    from runnel.ops.array_ops import matrix_diag_part
    from runnel.ops.math_ops import reduce_sum
    with name_scope(name, "logdet", [matrix]):
        chol = _ops.Cholesky(matrix)
        return 2.0 * reduce_sum(_ops.Log(matrix_diag_part(chol)), axis=[-1])


def cholesky_solve(chol, rhs, name=None):
    """Solves A x = rhs, given the Cholesky factor of A."""
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        y = _ops.MatrixTriangularSolve(chol, rhs, adjoint=False, lower=True)
        return _ops.MatrixTriangularSolve(chol, y, adjoint=True, lower=True)


def normalize(tensor, ord="euclidean", axis=None, name=None):  # noqa: A002
    """Returns (tensor divided by its norm, norm)."""
    from runnel.ops.special_ops import norm
    with name_scope(name, "normalize", [tensor]):
        tensor = convert_to_tensor(tensor)
        size = norm(tensor, ord, axis, keepdims=True)
        return tensor / size, size


def svd(tensor, full_matrices=False, compute_uv=True, name=None):
    """Returns (s, u, v): descending singular values and singular vectors; without `compute_uv`, s alone."""
    s, u, v = _ops.Svd(tensor, compute_uv=compute_uv, full_matrices=full_matrices, name=name)
    return (s, u, v) if compute_uv else s


def self_adjoint_eig(tensor, name=None):
    """Returns (e, v): ascending eigenvalues and eigenvectors of self-adjoint matrices."""
    e, v = _ops.SelfAdjointEigV2(tensor, compute_v=True, name=name)
    return e, v


def self_adjoint_eigvals(tensor, name=None):
    """Returns the ascending eigenvalues of self-adjoint matrices."""
    return _ops.SelfAdjointEigV2(tensor, compute_v=False, name=name)[0]


def matrix_rank(a, tol=None, validate_args=False, name=None):
    """Returns the number of singular values above a tolerance."""
    import numpy as np
    from runnel.ops.math_ops import cast, reduce_max, reduce_sum
    with name_scope(name, "matrix_rank", [a]):
        a = convert_to_tensor(a, name="a")
        s = svd(a, compute_uv=False)
        if tol is None:
            most = max(d for d in a.shape.as_list()[-2:])
            epsilon = np.finfo(a.dtype.real_dtype.as_numpy_dtype).eps
            tol = epsilon * cast(most, a.dtype) * reduce_max(s, axis=-1, keepdims=True)
        return reduce_sum(cast(_ops.Greater(s, tol), "int32"), axis=-1)


def pinv(a, rcond=None, validate_args=False, name=None):
    """Returns the pseudo-inverse; singular values below rcond times the largest count as 0."""
    import numpy as np
    from runnel.ops.array_ops import expand_dims, where_v2
    from runnel.ops.math_ops import matmul, reduce_max
    with name_scope(name, "pinv", [a]):
        a = convert_to_tensor(a, name="a")
        if rcond is None:
            rcond = 10.0 * max(a.shape.as_list()[-2:]) * np.finfo(a.dtype.real_dtype.as_numpy_dtype).eps
        rcond = convert_to_tensor(rcond, dtype=a.dtype, name="rcond")
        s, u, v = svd(a)
        limit = rcond * reduce_max(s, axis=-1)
        s = where_v2(_ops.Greater(s, expand_dims(limit, -1)), s, convert_to_tensor(np.inf, dtype=a.dtype))
        return matmul(v / expand_dims(s, -2), u, adjoint_b=True)
