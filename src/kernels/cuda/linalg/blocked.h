// Factors and triangular solutions of stacks of matrices of any size, in place.
//
// Up to RN_CUDA_PANEL rows, one block per matrix does it all. Larger matrices are cut into panels:
// the kernels factor a panel or invert a block of the diagonal, and products, which take most of
// the time, do the rest.
#ifndef RUNNEL_KERNELS_CUDA_LINALG_BLOCKED_H_
#define RUNNEL_KERNELS_CUDA_LINALG_BLOCKED_H_

#include "kernels/cuda/launch.h"

#define RN_CUDA_PANEL 64

// |stack| matrices on the card: |row| elements between rows, |stride| between matrices.
typedef struct rn_cuda_matrices_t {
  rn_dtype_t dtype;
  char* data;
  int64_t row, stride, stack;
} rn_cuda_matrices_t;

// A = L L*. |a| is dense; |l|, dense too, may be the same memory. L has zeros above the diagonal.
// It is NaN if A is not positive definite.
RN_MUST_USE rn_status_t rn_cuda_factor_positive(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t n,
                                                int64_t stack, const void* a, void* l);

// A = P L U of dense matrices, in place, without L's unit diagonal. |pivots| gets n int32 per
// matrix: the row that was exchanged with row k. |is_singular|, an int32, is set to 1 if a pivot is
// 0.
RN_MUST_USE rn_status_t rn_cuda_factor(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t n,
                                       int64_t stack, void* lu, void* pivots, void* is_singular);
// Exchanges rows of X, dense with |columns|, as rn_cuda_factor did.
RN_MUST_USE rn_status_t rn_cuda_exchange(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, int64_t n,
                                         int64_t stack, void* x, int64_t columns,
                                         const void* pivots);

// Which triangle of a matrix, as it is stored, and how it is used.
typedef struct rn_cuda_triangle_t {
  bool is_lower, is_adjoint, has_unit_diagonal;
} rn_cuda_triangle_t;

// X := A^-1 X for n x n triangles A and n x |columns| X with adjacent rows.
RN_MUST_USE rn_status_t rn_cuda_solve_triangle(rn_kernel_ctx_t* ctx, rn_cuda_triangle_t triangle,
                                               int64_t n, const rn_cuda_matrices_t* a,
                                               int64_t columns, const rn_cuda_matrices_t* x);

// Copies a part of |rows| x |columns| of each matrix; |from| may repeat one matrix (stride 0).
RN_MUST_USE rn_status_t rn_cuda_copy_matrices(rn_kernel_ctx_t* ctx, int64_t rows, int64_t columns,
                                              const rn_cuda_matrices_t* from,
                                              const rn_cuda_matrices_t* to);

#endif  // RUNNEL_KERNELS_CUDA_LINALG_BLOCKED_H_
