// Matrix products per generation of processor; kernels/cpu/gemm.c chooses.
#ifndef RUNNEL_KERNELS_CPU_ISA_GEMM_H_
#define RUNNEL_KERNELS_CPU_ISA_GEMM_H_

#include "tensor/dtype.h"

// C = op(A) op(B), or a part of it. Elements of op(A) and op(B) are found by their steps: one of
// the two is 1.
typedef struct rn_gemm_part_t {
  const void* a;
  int64_t a_row, a_column;
  const void* b;
  int64_t b_row, b_column;
  void* c;
  int64_t c_row;
  int64_t m, n, k;  // k > 0
} rn_gemm_part_t;

typedef void (*rn_gemm_fn_t)(const rn_gemm_part_t* part);

// Rows for float and double (tiles in registers), and for the integers and complex numbers (plain
// loops, b_column = 1 only). Signed integers wrap as unsigned ones do.
extern const rn_gemm_fn_t rn_gemm_base[RN_DTYPE_COUNT];
#ifdef __x86_64__
extern const rn_gemm_fn_t rn_gemm_avx2[RN_DTYPE_COUNT];
extern const rn_gemm_fn_t rn_gemm_avx512[RN_DTYPE_COUNT];
#endif

#endif  // RUNNEL_KERNELS_CPU_ISA_GEMM_H_
