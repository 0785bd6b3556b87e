// Arguments of counts.cu.
#ifndef RUNNEL_KERNELS_CUDA_MATH_COUNTS_ARGS_H_
#define RUNNEL_KERNELS_CUDA_MATH_COUNTS_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

#define RN_BUCKETIZE_LIMITS 512  // boundaries per launch

// Sets, or adds to, |out| the number of limits <= each value.
struct rn_bucketize_args {
  const void* in;
  i32* out;
  i64 count;
  i32 is_first, limit_count;
  float limits[RN_BUCKETIZE_LIMITS];
};

struct rn_histogram_args {
  const void* in;
  void* out;
  i64 count, bins;
  double low, step;
  i32 is_wide;  // the bins are int64, not int32
};

struct rn_cross_args {
  const void *a, *b;
  void* out;
  i64 count;  // vectors
};

// Counts values into rows of |size| bins; the rest is skipped.
struct rn_bincount_args {
  const void* in;
  void* bins;
  i64 count, columns, size;
  i32 is_wide;  // the values are int64, not int32
};

#endif  // RUNNEL_KERNELS_CUDA_MATH_COUNTS_ARGS_H_
