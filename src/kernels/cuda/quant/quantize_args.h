// Arguments of the kernels of quantize.cu.
#ifndef RUNNEL_KERNELS_CUDA_QUANT_QUANTIZE_ARGS_H_
#define RUNNEL_KERNELS_CUDA_QUANT_QUANTIZE_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

#define RN_QUANTIZE_THREADS 256
#define RN_QUANTIZE_PARTS 64
#define RN_QUANTIZE_STORED 400  // numbers that one launch can store

// |limits| has a lower and an upper one per slice, or two in all if |limit_step| is 0. Element i is
// in slice i / inner % slices.
typedef struct rn_cuda_quantize_args {
  const void *x, *dy;
  void *out, *limits, *partial;  // |partial|: two numbers per slice and part
  i64 count, slices, inner, limit_step, parts;
  double least, most;  // levels
  i32 has_range, rounds_up;
} rn_cuda_quantize_args;

// Stores numbers that travel with the launch.
typedef struct rn_cuda_store_args {
  void* to;
  i64 count;
  double numbers[RN_QUANTIZE_STORED];
} rn_cuda_store_args;

#endif  // RUNNEL_KERNELS_CUDA_QUANT_QUANTIZE_ARGS_H_
