// Arguments of scan.cu.
#ifndef RUNNEL_KERNELS_CUDA_MATH_SCAN_ARGS_H_
#define RUNNEL_KERNELS_CUDA_MATH_SCAN_ARGS_H_

#ifdef __cplusplus
#include "kernels/cuda/prelude.cuh"
#else
#include "kernels/cuda/launch.h"
#endif

#define RN_SCAN_BLOCK 256  // threads per line, or tile of one, of scan_rows

// Lines of |size| elements, |inner| apart.
struct rn_scan_args {
  const void* in;
  void* out;
  i64 outer, size, inner;
  i32 is_product, exclusive, reverse;
  // Of scan_rows: lines are cut into |tiles| of |tile| elements. |carries|, unless NULL, has what
  // comes before each tile; if |only_sums|, the tile's own sum goes there and there is no output.
  i32 only_sums;
  i64 tile, tiles;
  void* carries;
};

#endif  // RUNNEL_KERNELS_CUDA_MATH_SCAN_ARGS_H_
