// Arguments of the kernels of fake_quant.cu.
#ifndef RUNNEL_KERNELS_CUDA_QUANT_FAKE_QUANT_ARGS_H_
#define RUNNEL_KERNELS_CUDA_QUANT_FAKE_QUANT_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

// |parts| blocks add up one channel each; |sums| has two numbers per channel and part.
#define RN_FAKE_QUANT_THREADS 256
#define RN_FAKE_QUANT_PARTS 64

typedef struct rn_cuda_fake_quant_args {
  const float *x, *dy;
  const float *mins, *maxes;  // NULL: |min| and |max|
  float *out, *dmin, *dmax;
  double* sums;
  i64 count, channels, parts;
  float min, max, first, last;
  i32 divides;
} rn_cuda_fake_quant_args;

#endif  // RUNNEL_KERNELS_CUDA_QUANT_FAKE_QUANT_ARGS_H_
