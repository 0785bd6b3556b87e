// Arguments of the kernels of transform.cu.
#ifndef RUNNEL_KERNELS_CUDA_IMAGE_TRANSFORM_ARGS_H_
#define RUNNEL_KERNELS_CUDA_IMAGE_TRANSFORM_ARGS_H_

#include "kernels/cuda/array/divide.h"

typedef struct rn_cuda_transform_args {
  const void* images;
  const float* matrices;
  void* out;
  i64 count;
  rn_cuda_div rows, columns, depth;  // of the output
  i64 height, width;                 // of the input
  i64 matrix_step;                   // 8, or 0 if all images share one
  float fill;
  i32 is_bilinear, border;  // an rn_border_t
} rn_cuda_transform_args;

#endif  // RUNNEL_KERNELS_CUDA_IMAGE_TRANSFORM_ARGS_H_
