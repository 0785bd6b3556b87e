// Arguments of the kernels of windows.cu. Counts are in units of the kernel.
#ifndef RUNNEL_KERNELS_CUDA_ARRAY_WINDOWS_ARGS_H_
#define RUNNEL_KERNELS_CUDA_ARRAY_WINDOWS_ARGS_H_

#include "kernels/cuda/array/divide.h"

// Matrices of |rows| by |columns|; a negative number of diagonals is all of them.
typedef struct rn_cuda_band_args {
  const void* input;
  void* out;
  i64 count, below, above;
  rn_cuda_div rows, columns;
} rn_cuda_band_args;

// The output is [batch, windows of 3 axes, sizes of 3 axes, channels].
typedef struct rn_cuda_patches_args {
  const void* input;
  void* out;
  i64 count;
  rn_cuda_div channels, sizes[3], windows[3];
  i64 in[3], strides[3], rates[3], before[3];
} rn_cuda_patches_args;

// Element i of an axis is element i - before of the input's, or the value, repeated to 16 bytes.
#define RN_CUDA_PAD_RANK 6
typedef struct rn_cuda_pad_args {
  const void* input;
  void* out;
  i64 count;
  i32 rank;
  rn_cuda_div sizes[RN_CUDA_PAD_RANK];
  i64 in[RN_CUDA_PAD_RANK], before[RN_CUDA_PAD_RANK];
  u64 value[2];
} rn_cuda_pad_args;

#endif  // RUNNEL_KERNELS_CUDA_ARRAY_WINDOWS_ARGS_H_
