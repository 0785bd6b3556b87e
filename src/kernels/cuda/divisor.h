// Division by a multiplication: what rn_div of prelude.cuh takes.
#ifndef RUNNEL_KERNELS_CUDA_DIVISOR_H_
#define RUNNEL_KERNELS_CUDA_DIVISOR_H_

#include <stdint.h>

typedef struct rn_div32 {
  uint32_t divisor, factor, shift;
} rn_div32;

// For a |divisor| of 1 to 2^31 - 1. With l = ceil(log2 d), the factor 2^32 * (2^l - d) / d + 1
// gives exact quotients for dividends below 2^31.
static inline rn_div32 rn_divisor(uint32_t divisor) {
  uint32_t shift = 0;
  while ((UINT64_C(1) << shift) < divisor) ++shift;
  uint64_t factor = ((UINT64_C(1) << 32) * ((UINT64_C(1) << shift) - divisor)) / divisor + 1;
  return (rn_div32){divisor, (uint32_t)factor, shift};
}

#endif  // RUNNEL_KERNELS_CUDA_DIVISOR_H_
