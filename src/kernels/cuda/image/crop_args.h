// Arguments of the kernels of crop.cu.
#ifndef RUNNEL_KERNELS_CUDA_IMAGE_CROP_ARGS_H_
#define RUNNEL_KERNELS_CUDA_IMAGE_CROP_ARGS_H_

#include "kernels/cuda/array/divide.h"

// Images are [batch, height, width, depth], crops [boxes, crop_height, crop_width, depth].
typedef struct rn_cuda_crop_args {
  const void* image;
  const float *boxes, *grads;
  const i32* which;  // the image of each box
  void* out;
  i64 count;                         // elements of |out|
  rn_cuda_div rows, columns, depth;  // of |out|
  i64 batch, height, width;
  i64 box_count, crop_height, crop_width;
  float outside;
  i32 is_nearest;
} rn_cuda_crop_args;

#endif  // RUNNEL_KERNELS_CUDA_IMAGE_CROP_ARGS_H_
