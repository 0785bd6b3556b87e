// Arguments of the kernels of resize.cu.
#ifndef RUNNEL_KERNELS_CUDA_IMAGE_RESIZE_ARGS_H_
#define RUNNEL_KERNELS_CUDA_IMAGE_RESIZE_ARGS_H_

#include "kernels/cuda/array/divide.h"

// Tensors are [batch, rows, columns, depth]; |in| is the original, |out| the resized image. The
// divisors are the sizes of the tensor that the kernel makes, in units of the kernel.
typedef struct rn_cuda_resize_args {
  const void* from;
  void* to;
  i64 count;
  rn_cuda_div rows, columns, depth;
  i64 in[2], out[2];
  float scale[2];  // pixels of the original per pixel of the resized image
  i32 align_corners, half_pixel_centers;
  i32 is_same;  // both images have one size: pixels are copied, what is not finite included
} rn_cuda_resize_args;

#endif  // RUNNEL_KERNELS_CUDA_IMAGE_RESIZE_ARGS_H_
