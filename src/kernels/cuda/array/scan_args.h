// Arguments of the kernels that number the set flags of an array, in order. A tile is what a block
// looks at at once.
#ifndef RUNNEL_KERNELS_CUDA_ARRAY_SCAN_ARGS_H_
#define RUNNEL_KERNELS_CUDA_ARRAY_SCAN_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

#define RN_SCAN_THREADS 256
#define RN_SCAN_TILE 2048

// |offsets| has one entry per tile, the number of set flags before it, and then the total.
typedef struct rn_cuda_scan_args {
  const unsigned char* flags;
  i64* offsets;
  i64 count, tiles;
} rn_cuda_scan_args;

#endif  // RUNNEL_KERNELS_CUDA_ARRAY_SCAN_ARGS_H_
