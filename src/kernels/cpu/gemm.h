// Matrix multiplication on the CPU: C = op(A) op(B), row-major, for every numeric type.
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
  const void* panels;  // NULL, or B packed by rn_gemm_pack; |b| is set in either case
  void* c;             // m x n, overwritten
  bool adds;           // with panels and n > 1 only: accumulates onto C
  const void* bias;    // with panels and n > 1 only: NULL, or a row added to every row of C
  bool backwards;      // last columns first. If two GEMMs use the same B, the second then starts
                       // with what the first left in the cache.
} rn_gemm_t;

// Runs the GEMM on |pool|. Neither the partitioning nor the packing of B affects the result's bits.
RN_MUST_USE rn_status_t rn_gemm(rn_pool_t* pool, const rn_gemm_t* gemm);

// Packs B into the order in which tiles read it, for callers that multiply by it more than once;
// float and double only. rn_gemm_panels_count gives the number of elements needed. rn_gemm_pack
// uses only B and its sizes from |gemm| and writes the panels to |c|. Panels are specific to the
// ISA level of the CPU that packed them.
int64_t rn_gemm_panels_count(rn_dtype_t dtype, int64_t n, int64_t k);
void rn_gemm_pack(rn_pool_t* pool, const rn_gemm_t* gemm);

#endif  // RUNNEL_KERNELS_CPU_GEMM_H_
