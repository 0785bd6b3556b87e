// The plain matrix product, per generation of processor; kernels/cpu/gemm.c chooses.
#ifndef RUNNEL_KERNELS_CPU_ISA_GEMM_H_
#define RUNNEL_KERNELS_CPU_ISA_GEMM_H_

#include "tensor/dtype.h"

// Rows [begin, end) of C = A B; A is m x k, B is k x n.
typedef void (*rn_gemm_rows_fn_t)(const void* a, const void* b, void* c, int64_t begin, int64_t end,
                                  int64_t n, int64_t k);

extern const rn_gemm_rows_fn_t rn_gemm_rows_base[RN_DTYPE_COUNT];
#ifdef __x86_64__
extern const rn_gemm_rows_fn_t rn_gemm_rows_avx2[RN_DTYPE_COUNT];
extern const rn_gemm_rows_fn_t rn_gemm_rows_avx512[RN_DTYPE_COUNT];
#endif

#endif  // RUNNEL_KERNELS_CPU_ISA_GEMM_H_
