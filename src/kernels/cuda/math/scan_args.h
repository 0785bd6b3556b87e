// Arguments of scan.cu.
#ifndef RUNNEL_KERNELS_CUDA_MATH_SCAN_ARGS_H_
#define RUNNEL_KERNELS_CUDA_MATH_SCAN_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

#define RN_SCAN_BLOCK 256  // threads per line of scan_rows

// Lines of |size| elements, |inner| apart.
struct rn_scan_args {
  const void* in;
  void* out;
  i64 outer, size, inner;
  i32 is_product, exclusive, reverse;
};

#endif  // RUNNEL_KERNELS_CUDA_MATH_SCAN_ARGS_H_
