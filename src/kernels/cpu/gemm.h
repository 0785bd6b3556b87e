// Matrix products of the CPU: C = op(A) op(B), row-major, for every number type.
#ifndef RUNNEL_KERNELS_CPU_GEMM_H_
#define RUNNEL_KERNELS_CPU_GEMM_H_

#include "base/pool.h"
#include "tensor/dtype.h"

typedef struct rn_gemm_t {
  rn_dtype_t dtype;
  bool transpose_a, transpose_b;  // A is stored k x m, B is stored n x k
  bool conjugate_a, conjugate_b;  // complex only
  int64_t m, n, k;
  const void* a;
  const void* b;
  void* c;  // m x n, overwritten
} rn_gemm_t;

// Computes it on |pool|. The work is cut by sizes alone, so that the result does not depend on the
// number of threads.
RN_MUST_USE rn_status_t rn_gemm(rn_pool_t* pool, const rn_gemm_t* gemm);

#endif  // RUNNEL_KERNELS_CPU_GEMM_H_
