// See produce.h.
#include "kernels/cuda/array/produce.h"

#include <stdio.h>

#define UNITS_PER_BLOCK (4 * RN_CUDA_BLOCK)
#define BLOCKS_PER_MULTIPROCESSOR 16

rn_status_t rn_cuda_produce(const rn_kernel_ctx_t* ctx, const char* base, int64_t unit,
                            int64_t count, const void* args, size_t args_size) {
  if (count <= 0) return RN_OK;
  rn_cuda_name_t name;
  snprintf(name.text, sizeof name.text, "%s_%d%s", base, (int)unit,
           count > INT64_C(1) << 30 ? "_wide" : "");
  int64_t blocks = (count + UNITS_PER_BLOCK - 1) / UNITS_PER_BLOCK;
  int64_t most = (int64_t)rn_cuda_card(ctx)->multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
  rn_cuda_grid_t grid = {.x = (unsigned)(blocks < most ? blocks : most), .block_x = RN_CUDA_BLOCK};
  return rn_cuda_launch(ctx, name.text, grid, args, args_size);
}
