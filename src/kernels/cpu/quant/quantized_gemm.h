// Matmul of 8-bit levels: C = (A - a_zero) (B - b_zero), in 32 bits, wrapping.
#ifndef RUNNEL_KERNELS_CPU_QUANT_QUANTIZED_GEMM_H_
#define RUNNEL_KERNELS_CPU_QUANT_QUANTIZED_GEMM_H_

#include "framework/kernel.h"

typedef struct rn_quant_gemm_t {
  int64_t m, n, k;  // all > 0
  // Writes row |row| of A, |k| levels as int16.
  void (*row)(const void* arg, int64_t row, int16_t* out);
  const void* arg;
  const void* b;  // element [i, j] is at i * b_row + j * b_column
  int64_t b_row, b_column;
  bool b_is_signed;
  int32_t a_zero, b_zero;  // the levels that represent zero
  int32_t* c;              // m x n, overwritten
} rn_quant_gemm_t;

RN_MUST_USE rn_status_t rn_quant_gemm(rn_kernel_ctx_t* ctx, const rn_quant_gemm_t* gemm);

#endif  // RUNNEL_KERNELS_CPU_QUANT_QUANTIZED_GEMM_H_
