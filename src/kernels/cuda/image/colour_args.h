// Arguments of the kernels of colour.cu.
#ifndef RUNNEL_KERNELS_CUDA_IMAGE_COLOUR_ARGS_H_
#define RUNNEL_KERNELS_CUDA_IMAGE_COLOUR_ARGS_H_

#include "kernels/cuda/array/divide.h"

// Pixels of three channels each.
typedef struct rn_cuda_colour_args {
  const void* in;
  void* out;
  const float* by;  // hue or saturation; NULL for conversions
  i64 pixels;
} rn_cuda_colour_args;

// Images are [images, pixels, channels]. The sum of each channel of each image is made in |parts|
// parts, then the mean, then the output.
typedef struct rn_cuda_contrast_args {
  const void* in;
  void* out;
  const float* by;
  double* sums;  // [images, parts, channels]
  float* means;  // [images, channels]
  i64 images, parts, pixels, channels;
  i64 count;                      // elements of |in|
  rn_cuda_div channel_div, size;  // channels, and elements of an image
} rn_cuda_contrast_args;

#endif  // RUNNEL_KERNELS_CUDA_IMAGE_COLOUR_ARGS_H_
