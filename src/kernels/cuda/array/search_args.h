// Arguments of the kernels of search.cu.
#ifndef RUNNEL_KERNELS_CUDA_ARRAY_SEARCH_ARGS_H_
#define RUNNEL_KERNELS_CUDA_ARRAY_SEARCH_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

// |count| values in rows of |width|, each looked for in the row of |length| of the same number.
typedef struct rn_cuda_search_args {
  const void *sorted, *values;
  void* out;
  i64 count, width, length;
  i32 out_size;  // bytes of an index
  i32 is_upper;
} rn_cuda_search_args;

#endif  // RUNNEL_KERNELS_CUDA_ARRAY_SEARCH_ARGS_H_
