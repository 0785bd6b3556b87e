// Arguments of lrn.cu.
#ifndef RUNNEL_KERNELS_CUDA_NN_LRN_ARGS_H_
#define RUNNEL_KERNELS_CUDA_NN_LRN_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

struct rn_lrn_args {
  const void *x, *y, *dy;
  void* out;
  float *norms, *ratios;  // scratch of the gradient: one number per element
  i64 count, depth, radius;
  float bias, alpha, beta;
};

#endif  // RUNNEL_KERNELS_CUDA_NN_LRN_ARGS_H_
