// Large matrices, factored by cuSOLVER one after the other. Matrices are dense, by rows.
#ifndef RUNNEL_KERNELS_CUDA_LINALG_LARGE_H_
#define RUNNEL_KERNELS_CUDA_LINALG_LARGE_H_

#include "kernels/cuda/libs/cusolver.h"

// |*out| is NULL if our kernels are to compute: many or small matrices, no cuSOLVER, or a type that
// it does not have.
RN_MUST_USE rn_status_t rn_cuda_large_solver(const rn_kernel_ctx_t* ctx, rn_dtype_t dtype,
                                             int64_t stack, int64_t m, int64_t n,
                                             rn_cusolver_t** out);

// The lower triangles become L of A = L L*. |has_failed|, per matrix, is not 0 if it is not
// positive definite.
RN_MUST_USE rn_status_t rn_cuda_large_factor_positive(rn_kernel_ctx_t* ctx, rn_cusolver_t* solver,
                                                      rn_dtype_t dtype, int64_t n, int64_t stack,
                                                      void* a, rn_tensor_t* has_failed);
// As rn_cuda_factor.
RN_MUST_USE rn_status_t rn_cuda_large_factor(rn_kernel_ctx_t* ctx, rn_cusolver_t* solver,
                                             rn_dtype_t dtype, int64_t n, int64_t stack, void* lu,
                                             int32_t* pivots, int32_t* is_singular);

// A stack of decompositions of m x n matrices: q and r; eigenvalues and vectors; singular values, u
// and v. NULL: not wanted.
typedef struct rn_cuda_large_t {
  rn_dtype_t dtype;
  int64_t m, n, stack;
  const void* a;
  void* outs[3];
  bool is_full;
} rn_cuda_large_t;
// |*out_done| is false, and the outputs are unknown, if a matrix has numbers that are not finite,
// or cuSOLVER did not converge. Those but the first wait for the card.
RN_MUST_USE rn_status_t rn_cuda_large_qr(rn_kernel_ctx_t* ctx, rn_cusolver_t* solver,
                                         const rn_cuda_large_t* work, bool* out_done);
RN_MUST_USE rn_status_t rn_cuda_large_eigen(rn_kernel_ctx_t* ctx, rn_cusolver_t* solver,
                                            const rn_cuda_large_t* work, bool* out_done);
RN_MUST_USE rn_status_t rn_cuda_large_singular(rn_kernel_ctx_t* ctx, rn_cusolver_t* solver,
                                               const rn_cuda_large_t* work, bool* out_done);

#endif  // RUNNEL_KERNELS_CUDA_LINALG_LARGE_H_
