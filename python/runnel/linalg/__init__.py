"""tf.linalg: matrices, decompositions and linear operators."""

from runnel._namespace import namespace

__getattr__, __dir__, __all__ = namespace(
    __name__,
    "cholesky cholesky_solve cross einsum eye global_norm matmul matrix_transpose matvec norm qr svd tensordot trace",
    "band_part=matrix_band_part det=matrix_determinant diag=matrix_diag diag_part=matrix_diag_part eigh=self_adjoint_eig "
    "eigvalsh=self_adjoint_eigvals inv=matrix_inverse l2_normalize=nn.l2_normalize lstsq=matrix_solve_ls set_diag=matrix_set_diag "
    "logm=raw_ops.MatrixLogarithm lu=raw_ops.Lu "
    "slogdet=raw_ops.LogMatrixDeterminant solve=matrix_solve sqrtm=matrix_square_root tensor_diag=diag tensor_diag_part=diag_part "
    "transpose=matrix_transpose triangular_solve=matrix_triangular_solve",
    "linalg.linalg_ops: adjoint expm logdet lu_matrix_inverse lu_reconstruct lu_solve matrix_rank "
    "normalize pinv tridiagonal_matmul tridiagonal_solve",
    "linalg.linear_operator: LinearOperator",
    "linalg.linear_operator_blocks: LinearOperatorBlockDiag LinearOperatorBlockLowerTriangular",
    "linalg.linear_operator_circulant: LinearOperatorCirculant LinearOperatorCirculant2D LinearOperatorCirculant3D LinearOperatorToeplitz",
    "linalg.linear_operator_rows: LinearOperatorPermutation LinearOperatorTridiag",
    "linalg.linear_operator_kinds: LinearOperatorDiag LinearOperatorFullMatrix LinearOperatorHouseholder LinearOperatorIdentity "
    "LinearOperatorLowerTriangular LinearOperatorScaledIdentity LinearOperatorZeros",
    "linalg.linear_operator_made: LinearOperatorAdjoint LinearOperatorComposition LinearOperatorInversion "
    "LinearOperatorKronecker LinearOperatorLowRankUpdate",
    "linalg.iterative: eigh_tridiagonal",
)
