"""tf.linalg."""

from runnel._namespace import namespace

__getattr__, __dir__ = namespace(
    __name__,
    "cholesky cholesky_solve cross einsum eye global_norm matmul matrix_transpose matvec norm qr svd tensordot trace",
    "adjoint=linalg_ops.adjoint band_part=matrix_band_part det=matrix_determinant diag=matrix_diag diag_part=matrix_diag_part "
    "inv=matrix_inverse l2_normalize=nn.l2_normalize logdet=linalg_ops.logdet set_diag=matrix_set_diag "
    "solve=matrix_solve sqrtm=matrix_square_root tensor_diag=diag tensor_diag_part=diag_part transpose=matrix_transpose "
    "triangular_solve=matrix_triangular_solve eigh=self_adjoint_eig eigvalsh=self_adjoint_eigvals lstsq=matrix_solve_ls "
    "normalize=linalg_ops.normalize matrix_rank=linalg_ops.matrix_rank pinv=linalg_ops.pinv "
    "slogdet=raw_ops.LogMatrixDeterminant",
    "LinearOperator=linear_operator.LinearOperator " + " ".join(
        "LinearOperator%s=linear_operator_kinds.LinearOperator%s" % (kind, kind)
        for kind in "Diag FullMatrix Householder Identity LowerTriangular ScaledIdentity Zeros".split()) + " " + " ".join(
        "LinearOperator%s=linear_operator_made.LinearOperator%s" % (kind, kind)
        for kind in "Adjoint BlockDiag Composition Inversion Kronecker LowRankUpdate".split()),
)
