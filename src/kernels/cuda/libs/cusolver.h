// Factors of large matrices by cuSOLVER. Matrices are stored by columns, one after the other.
//
// Every call takes its workspaces from the kernel's memory: RESOURCE_EXHAUSTED if there is none.
// Any thread may call. Only factors of L and U and Cholesky's may be recorded; the others wait for
// the card, or copy from memory of their own.
#ifndef RUNNEL_KERNELS_CUDA_LIBS_CUSOLVER_H_
#define RUNNEL_KERNELS_CUDA_LIBS_CUSOLVER_H_

#include "kernels/cuda/launch.h"

typedef struct rn_cusolver_t rn_cusolver_t;

// The cuSOLVER of the kernel's card, opened at the first call. NULL if the machine has none: the
// log says once what is missing.
RN_MUST_USE rn_status_t rn_cusolver_get(const rn_kernel_ctx_t* ctx, rn_cusolver_t** out);

// What all calls share. float, double, complex64 or complex128.
typedef struct rn_cusolver_call_t {
  rn_kernel_ctx_t* ctx;
  rn_cusolver_t* solver;
  rn_dtype_t dtype;
  int32_t* info;  // on the card, written by each call: 0, or what LAPACK's function would say
} rn_cusolver_call_t;

// A = U* U of the upper triangle, in place.
RN_MUST_USE rn_status_t rn_cusolver_factor_positive(const rn_cusolver_call_t* call, int64_t n,
                                                    void* a);
// A = P L U, in place. |pivots|, on the card, count from 1.
RN_MUST_USE rn_status_t rn_cusolver_factor(const rn_cusolver_call_t* call, int64_t n, void* a,
                                           int64_t* pivots);
// A = Q R of m x n, in place: R and reflectors, whose factors go to |tau|.
RN_MUST_USE rn_status_t rn_cusolver_reflect(const rn_cusolver_call_t* call, int64_t m, int64_t n,
                                            void* a, void* tau);
// The first |width| columns of Q from |count| reflectors, in place. Not of complex64.
RN_MUST_USE rn_status_t rn_cusolver_form_q(const rn_cusolver_call_t* call, int64_t m, int64_t width,
                                           int64_t count, void* a, const void* tau);
// Eigenvalues of the self-adjoint matrix whose upper triangle is in |a|, ascending, and vectors to
// |a| if they are wanted.
RN_MUST_USE rn_status_t rn_cusolver_eigen(const rn_cusolver_call_t* call, bool wants_vectors,
                                          int64_t n, void* a, void* values);
// A = U diag(s) V* of m x n with m >= n. |a| is destroyed. |u| is m x n, or m x m if |is_full|, |v|
// n x n; NULL if vectors are not wanted.
RN_MUST_USE rn_status_t rn_cusolver_singular(const rn_cusolver_call_t* call, bool is_full,
                                             int64_t m, int64_t n, void* a, void* s, void* u,
                                             void* v);

#endif  // RUNNEL_KERNELS_CUDA_LIBS_CUSOLVER_H_
