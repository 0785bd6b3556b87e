// Batch normalization loops for one ISA level; kernels/cpu/nn/batch_norm.c selects them. All work
// on [rows, columns] of floats, with one number per column in the other arguments.
#ifndef RUNNEL_KERNELS_CPU_ISA_NORM_H_
#define RUNNEL_KERNELS_CPU_ISA_NORM_H_

#include <stdint.h>

#include "kernels/cpu/isa.h"

typedef struct rn_norm_fns_t {
  // sums[c] = the sum of (x - mean)^2.
  void (*squares)(const float* x, const float* mean, int64_t rows, int64_t columns, float* sums);
  // sums[c] = the sum of dy (x - mean).
  void (*products)(const float* dy, const float* x, const float* mean, int64_t rows,
                   int64_t columns, float* sums);
  // y = (x - mean) scale + offset; |y| may be |x|.
  void (*apply)(const float* x, const float* mean, const float* scale, const float* offset,
                float* y, int64_t rows, int64_t columns);
  // dx = (dy - dy_mean - (x - mean) slope) scale; |dx| may be |dy| or |x|.
  void (*gradient)(const float* dy, const float* x, const float* mean, const float* dy_mean,
                   const float* slope, const float* scale, float* dx, int64_t rows,
                   int64_t columns);
  // out = scale / sqrt(variance + epsilon), rounded as these operations are: the same at every
  // level.
  void (*factors)(const float* scale, const float* variance, float epsilon, int64_t columns,
                  float* out);
} rn_norm_fns_t;

RN_ISA_DECLARE(rn_norm_fns_t, rn_norm_, [1]);

#endif  // RUNNEL_KERNELS_CPU_ISA_NORM_H_
