"""Decompositions, determinants and norms (tf.linalg)."""

from runnel import dtypes, raw_ops as _ops
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
        if size.dtype != tensor.dtype:
            size = _ops.Cast(size, DstT=tensor.dtype)
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


def matrix_solve_ls(matrix, rhs, l2_regularizer=0.0, fast=True, name=None):
    """Solves matrix x = rhs in the least-squares sense."""
    return _ops.MatrixSolveLs(matrix, rhs, l2_regularizer, fast=fast, name=name)


def lu_reconstruct(lower_upper, perm, validate_args=False, name=None):
    """Returns the matrix whose factors lu() gave."""
    from runnel.ops.array_ops import matrix_set_diag, one_hot, ones_like
    from runnel.ops.math_ops import matmul
    with name_scope(name, "lu_reconstruct", [lower_upper, perm]):
        lu = convert_to_tensor(lower_upper, name="lower_upper")
        lower = _ops.MatrixBandPart(lu, num_lower=convert_to_tensor(-1, "int64"), num_upper=convert_to_tensor(0, "int64"))
        lower = matrix_set_diag(lower, ones_like(lu[..., 0]))
        product = matmul(lower, _ops.MatrixBandPart(lu, num_lower=convert_to_tensor(0, "int64"), num_upper=convert_to_tensor(-1, "int64")))
        return matmul(one_hot(perm, lu.shape.as_list()[-1], dtype=lu.dtype), product, transpose_a=True)


def lu_solve(lower_upper, perm, rhs, validate_args=False, name=None):
    """Solves A x = rhs, given the factors of A that lu() gave."""
    from runnel.ops.array_ops import matrix_set_diag, one_hot, ones_like
    from runnel.ops.math_ops import matmul
    with name_scope(name, "lu_solve", [lower_upper, perm, rhs]):
        lu = convert_to_tensor(lower_upper, name="lower_upper")
        rhs = convert_to_tensor(rhs, dtype=lu.dtype, name="rhs")
        rhs = matmul(one_hot(perm, lu.shape.as_list()[-1], dtype=lu.dtype), rhs)
        lower = matrix_set_diag(lu, ones_like(lu[..., 0]))
        return _ops.MatrixTriangularSolve(lu, _ops.MatrixTriangularSolve(lower, rhs, lower=True), lower=False)


def lu_matrix_inverse(lower_upper, perm, validate_args=False, name=None):
    """Returns the inverse of the matrix whose factors lu() gave."""
    from runnel.ops.array_ops import matrix_diag, ones_like
    with name_scope(name, "lu_matrix_inverse", [lower_upper, perm]):
        lu = convert_to_tensor(lower_upper, name="lower_upper")
        return lu_solve(lu, perm, matrix_diag(ones_like(lu[..., 0])))


def _packed_diagonals(diagonals, diagonals_format, join):
    """Returns the diagonals as [..., 3, n] or, if not `join`, three of [..., n]."""
    from runnel.ops.array_ops import matrix_diag_part, pad, stack, unstack
    if diagonals_format == "compact":
        diagonals = convert_to_tensor(diagonals, name="diagonals")
        return diagonals if join else [diagonals[..., i, :] for i in range(3)] if diagonals.shape.ndims is None else unstack(diagonals, 3, axis=-2)
    if diagonals_format == "matrix":
        matrix = convert_to_tensor(diagonals, name="diagonals")
        packed = matrix_diag_part(matrix, k=(-1, 1), align="LEFT_RIGHT")
        return packed if join else [packed[..., i, :] for i in range(3)] if packed.shape.ndims is None else unstack(packed, 3, axis=-2)
    if diagonals_format != "sequence":
        raise ValueError("Unrecognized diagonals_format: %s" % diagonals_format)
    upper, main, lower = (convert_to_tensor(d) for d in diagonals)
    n = main.shape.as_list()[-1] if main.shape.ndims else None  # diagonals of unknown length are as long as the main one
    if n is not None and upper.shape.ndims and upper.shape.as_list()[-1] == n - 1:
        upper = pad(upper, [[0, 0]] * (upper.shape.ndims - 1) + [[0, 1]])
    if n is not None and lower.shape.ndims and lower.shape.as_list()[-1] == n - 1:
        lower = pad(lower, [[0, 0]] * (lower.shape.ndims - 1) + [[1, 0]])
    return stack([upper, main, lower], axis=-2) if join else [upper, main, lower]


def tridiagonal_solve(diagonals, rhs, diagonals_format="compact", transpose_rhs=False, conjugate_rhs=False, name=None,
                      partial_pivoting=True, perturb_singular=False):
    """Solves A x = rhs for tridiagonal matrices A; the format is compact, sequence or matrix."""
    from runnel.ops.array_ops import expand_dims, matrix_transpose, squeeze
    from runnel.ops.math_ops import conj
    with name_scope(name, "tridiagonal_solve", [rhs]):
        packed = _packed_diagonals(diagonals, diagonals_format, True)
        rhs = convert_to_tensor(rhs, dtype=packed.dtype, name="rhs")
        is_vector = None not in (rhs.shape.ndims, packed.shape.ndims) and rhs.shape.ndims == packed.shape.ndims - 1
        if conjugate_rhs:
            rhs = conj(rhs)
        if is_vector:
            rhs = expand_dims(rhs, -1)
        elif transpose_rhs:
            rhs = matrix_transpose(rhs)
        x = _ops.TridiagonalSolve(packed, rhs, partial_pivoting=partial_pivoting, perturb_singular=perturb_singular)
        return squeeze(x, -1) if is_vector else x


def tridiagonal_matmul(diagonals, rhs, diagonals_format="compact", name=None):
    """Returns the product of tridiagonal matrices with rhs; the format is compact, sequence or matrix."""
    from runnel.ops.array_ops import expand_dims
    with name_scope(name, "tridiagonal_matmul", [rhs]):
        parts = _packed_diagonals(diagonals, diagonals_format, False)
        rhs = convert_to_tensor(rhs, dtype=parts[0].dtype, name="rhs")
        return _ops.TridiagonalMatMul(*[expand_dims(p, -2) for p in parts], rhs)


def _complex_of(tensor):
    return dtypes.complex64 if tensor.dtype in (dtypes.float32, dtypes.complex64) else dtypes.complex128


def eig(tensor, name=None):
    """Returns (eigenvalues, eigenvectors) of square matrices, complex numbers."""
    tensor = convert_to_tensor(tensor, name="tensor")
    return _ops.Eig(input=tensor, Tout=_complex_of(tensor), compute_v=True, name=name)


def eigvals(tensor, name=None):
    """Returns the eigenvalues of square matrices, complex numbers."""
    tensor = convert_to_tensor(tensor, name="tensor")
    return _ops.Eig(input=tensor, Tout=_complex_of(tensor), compute_v=False, name=name)[0]


# Coefficients of the numerator of the Padé approximant of degree 13; the odd ones change sign in the denominator.
_PADE = (64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0, 10559470521600.0,
         670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0)
_PADE_NORM = 5.371920351148152  # up to which the approximant has full precision


def _pade(a, unit):
    """Returns (u, v) such that exp(a) is about (v - u)^-1 (v + u)."""
    b, product = _PADE, _ops.BatchMatMulV2
    a2 = product(a, a)
    a4 = product(a2, a2)
    a6 = product(a4, a2)
    u = product(a6, b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * unit
    v = product(a6, b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * unit
    return product(a, u), v


def expm(input, name=None):  # noqa: A002
    """Returns the exponential of each matrix, by scaling, a Padé approximant and squaring."""
    from runnel.core.convert import constant
    from runnel.ops import array_ops, control_flow, math_ops
    with name_scope(name, "matrix_exponential", [input]):
        matrix = convert_to_tensor(input, name="input")
        sizes = array_ops.shape(matrix)
        # Batches are flattened, so that each matrix has its own number of squarings.
        a = array_ops.reshape(matrix, array_ops.concat([[-1], sizes[-2:]], 0))
        norm = math_ops.reduce_max(math_ops.reduce_sum(math_ops.abs(a), axis=-2), axis=-1)
        real = norm.dtype
        many = _ops.Floor(_ops.Log(norm / constant(_PADE_NORM, real)) / _ops.Log(constant(2, real))) + 1
        squarings = _ops.Maximum(many, array_ops.zeros([], real))
        scale = math_ops.pow(constant(2, real), squarings)
        a = a / math_ops.cast(scale[:, None, None], a.dtype)
        u, v = _pade(a, array_ops.eye(sizes[-1], dtype=a.dtype))
        result = _ops.MatrixSolve(v - u, v + u)
        last = math_ops.reduce_max(array_ops.concat([squarings, array_ops.zeros([1], real)], 0))

        def step(i, x):
            return i + 1, _ops.SelectV2((i < squarings)[:, None, None], _ops.BatchMatMulV2(x, x), x)

        _, result = control_flow.while_loop(lambda i, x: i < last, step, [array_ops.zeros([], real), result])
        return array_ops.reshape(result, sizes)


matrix_exponential = expm  # its name in tensorflow.python.ops.linalg.linalg_impl
