// Shape checks of solvers and decompositions, for the kernels of every device.
#ifndef RUNNEL_KERNELS_CPU_LINALG_SHAPES_H_
#define RUNNEL_KERNELS_CPU_LINALG_SHAPES_H_

#include "kernels/cpu/matmul_shapes.h"

// How many matrices |a| holds.
int64_t rn_linalg_stack(const rn_tensor_t* a);
// Rank 2 at least.
RN_MUST_USE rn_status_t rn_linalg_check_matrices(const rn_tensor_t* a);
RN_MUST_USE rn_status_t rn_linalg_check_square(const rn_tensor_t* a);
// The operands of MatrixSolve.
RN_MUST_USE rn_status_t rn_linalg_check_solve(const rn_tensor_t* a, const rn_tensor_t* b);

// The operands of MatrixTriangularSolve, whose outer dims broadcast. |out->dims| are those of the
// result.
RN_MUST_USE rn_status_t rn_linalg_check_triangular(const rn_tensor_t* a, const rn_tensor_t* b,
                                                   bool is_lower, bool is_adjoint,
                                                   rn_matmul_batch_t* out);

// The operands of TridiagonalSolve, and of TridiagonalMatMul: its diagonals and the right-hand
// side.
RN_MUST_USE rn_status_t rn_linalg_check_tridiagonal(const rn_tensor_t* a, const rn_tensor_t* b);
RN_MUST_USE rn_status_t rn_linalg_check_tridiagonal_product(const rn_tensor_t* const a[3],
                                                            const rn_tensor_t* b);

// The index in an operand, which has |steps| along the outer dims, of each result matrix.
void rn_linalg_fill_index(const rn_matmul_batch_t* outer, const int64_t* steps, int64_t count,
                          int64_t* index);

#endif  // RUNNEL_KERNELS_CPU_LINALG_SHAPES_H_
