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
  const void* panels;  // NULL, or what rn_gemm_pack made of B; |b| is set nevertheless
  void* c;             // m x n, overwritten
  bool adds;           // with panels, m and n > 1 only: C is what the sums begin with
  const void* bias;    // with panels, m and n > 1 only: NULL, or a row added to every row of C
  bool backwards;      // with panels only: the last columns first. Of two products by the same
                       // panels, the second finds in the cache what the first read last.
} rn_gemm_t;

// Computes it on |pool|. How the work is cut, and whether B is packed, changes no bit.
RN_MUST_USE rn_status_t rn_gemm(rn_pool_t* pool, const rn_gemm_t* gemm);

// B in the order in which tiles read it, for those who multiply by it more than once; float and
// double. The elements that it takes, and the packing: of |gemm|, the B and its sizes count, and
// the panels go to |c|. Panels are of the processor that made them.
int64_t rn_gemm_panels_count(rn_dtype_t dtype, int64_t n, int64_t k);
void rn_gemm_pack(rn_pool_t* pool, const rn_gemm_t* gemm);

#endif  // RUNNEL_KERNELS_CPU_GEMM_H_
