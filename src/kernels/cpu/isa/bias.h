// Bias loops for one ISA level; kernels/cpu/nn/bias.c selects them.
#ifndef RUNNEL_KERNELS_CPU_ISA_BIAS_H_
#define RUNNEL_KERNELS_CPU_ISA_BIAS_H_

#include "kernels/cpu/isa.h"
#include "tensor/dtype.h"

typedef struct rn_bias_fns_t {
  // out[r][c] = x[r][c] + bias[c]; |out| may be |x|, or |bias| if there is one row.
  void (*add)(const void* x, const void* bias, void* out, int64_t rows, int64_t columns);
  // sums[c] = the sum of x[r][c] over r; |columns| > 0. Sums in blocks, so that long sums stay
  // accurate.
  void (*sum_rows)(const void* x, int64_t rows, int64_t columns, void* sums);
  // The sum of n elements.
  void (*sum)(const void* x, int64_t n, void* out);
  // The sum of the squares of n elements; floats only.
  void (*sum_squares)(const void* x, int64_t n, void* out);
} rn_bias_fns_t;

// Rows for float, double and the unsigned integers; the signed ones use the unsigned rows.
RN_ISA_DECLARE(rn_bias_fns_t, rn_bias_, [RN_DTYPE_COUNT]);

#endif  // RUNNEL_KERNELS_CPU_ISA_BIAS_H_
