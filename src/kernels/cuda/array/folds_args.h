// Arguments of the kernels of folds.cu.
#ifndef RUNNEL_KERNELS_CUDA_ARRAY_FOLDS_ARGS_H_
#define RUNNEL_KERNELS_CUDA_ARRAY_FOLDS_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

// Adds element k of a border to element k of the inner part, in [outer, k, inner]. |step| is the
// sign of the direction in which the border's elements follow each other, the inner ones go the
// other way.
typedef struct rn_cuda_fold_args {
  void* work;
  i64 count, size, inner;  // |size| of the whole axis
  i64 border;              // elements of the border
  i64 from, into, step;    // first elements
} rn_cuda_fold_args;

#endif  // RUNNEL_KERNELS_CUDA_ARRAY_FOLDS_ARGS_H_
