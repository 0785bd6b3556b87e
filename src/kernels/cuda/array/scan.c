// See scan.h.
#include "kernels/cuda/array/scan.h"

rn_status_t rn_cuda_read(rn_kernel_ctx_t* ctx, const void* from, size_t size, void* to) {
  rn_cuda_card_t* card = rn_cuda_card(ctx);
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  RN_RETURN_IF_ERROR(RN_CARD(card, cuMemcpyDtoHAsync_v2, to, (CUdeviceptr)(uintptr_t)from, size,
                             rn_cuda_stream(card)));
  return rn_device_wait(ctx->kernel->device);
}

// The driver has read pageable memory when the call returns.
rn_status_t rn_cuda_write(rn_kernel_ctx_t* ctx, const void* from, size_t size, void* to) {
  rn_cuda_card_t* card = rn_cuda_card(ctx);
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  return RN_CARD(card, cuMemcpyHtoDAsync_v2, (CUdeviceptr)(uintptr_t)to, from, size,
                 rn_cuda_stream(card));
}

rn_status_t rn_cuda_scan_launch(const rn_kernel_ctx_t* ctx, const char* name,
                                const rn_cuda_scan_args* scan, const void* args, size_t args_size) {
  int64_t most = (int64_t)rn_cuda_card(ctx)->multiprocessors * 8;
  rn_cuda_grid_t grid = {.x = (unsigned)(scan->tiles < most ? scan->tiles : most),
                         .block_x = RN_SCAN_THREADS};
  return scan->tiles ? rn_cuda_launch(ctx, name, grid, args, args_size) : RN_OK;
}

rn_status_t rn_cuda_scan(rn_kernel_ctx_t* ctx, const void* flags, int64_t count,
                         rn_cuda_scan_args* out, rn_tensor_t* offsets, int64_t* out_set) {
  const int64_t tiles = (count + RN_SCAN_TILE - 1) / RN_SCAN_TILE, entries = tiles + 1;
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT64, (rn_shape_t){1, &entries}, offsets));
  *out =
      (rn_cuda_scan_args){.flags = flags, .offsets = offsets->data, .count = count, .tiles = tiles};
  rn_cuda_grid_t one = {.x = 1, .block_x = RN_SCAN_THREADS};
  rn_status_t status = rn_cuda_scan_launch(ctx, "array/selected/tile_sums", out, out, sizeof *out);
  if (rn_ok(status))
    status = rn_cuda_launch(ctx, "array/selected/tile_offsets", one, out, sizeof *out);
  if (rn_ok(status)) status = rn_cuda_read(ctx, out->offsets + tiles, sizeof *out_set, out_set);
  if (!rn_ok(status)) rn_tensor_clear(offsets);
  return status;
}
