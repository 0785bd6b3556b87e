// Divisors for device code that indexes with u32 where a tensor allows it, else with i64: kernels
// are made for both, and the name of the second ends in "_wide".
#ifndef RUNNEL_KERNELS_CUDA_ARRAY_DIVIDE_H_
#define RUNNEL_KERNELS_CUDA_ARRAY_DIVIDE_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

typedef struct rn_cuda_div {
  rn_div32 narrow;
  i64 wide;
} rn_cuda_div;

#endif  // RUNNEL_KERNELS_CUDA_ARRAY_DIVIDE_H_
