// Launching device code: see launch.h.
#include "kernels/cuda/launch.h"

#include <stdio.h>

// Beyond this many threads per card, a kernel's own loop is as good as more blocks.
#define BLOCKS_PER_MULTIPROCESSOR 32

bool rn_cuda_allows_tf32(const rn_kernel_ctx_t* ctx) {
  (void)ctx;
  const char* text = getenv("NVIDIA_TF32_OVERRIDE");
  return !text || strcmp(text, "0") != 0;
}

bool rn_cuda_is_on(const char* name) {
  const char* value = getenv(name);
  return value && (strcmp(value, "1") == 0 || strcmp(value, "true") == 0);
}

rn_status_t rn_cuda_issue(rn_cuda_card_t* card, CUfunction function, rn_cuda_grid_t grid,
                          const void* args, size_t args_size) {
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void*)args, CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &args_size, CU_LAUNCH_PARAM_END};
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  if ((int64_t)grid.shared > card->max_shared)
    return rn_resource_exhausted(
        "A kernel needs %u bytes of shared memory per block, but GPU %d (%s) has %d", grid.shared,
        card->ordinal, card->name, card->max_shared);
  if (grid.shared > 48 * 1024)
    RN_RETURN_IF_ERROR(RN_CARD(card, cuFuncSetAttribute, function,
                               CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)grid.shared));
  return RN_CARD(card, cuLaunchKernel, function, grid.x, grid.y ? grid.y : 1, grid.z ? grid.z : 1,
                 grid.block_x, grid.block_y ? grid.block_y : 1, grid.block_z ? grid.block_z : 1,
                 grid.shared, rn_cuda_stream(card), NULL, extra);
}

rn_status_t rn_cuda_launch(const rn_kernel_ctx_t* ctx, const char* name, rn_cuda_grid_t grid,
                           const void* args, size_t args_size) {
  rn_cuda_card_t* card = rn_cuda_card(ctx);
  CUfunction function = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_kernel(card, name, &function));
  return rn_cuda_issue(card, function, grid, args, args_size);
}

rn_status_t rn_cuda_each(const rn_kernel_ctx_t* ctx, const char* name, int64_t count,
                         const void* args, size_t args_size) {
  if (count <= 0) return RN_OK;
  int64_t blocks = (count + RN_CUDA_BLOCK - 1) / RN_CUDA_BLOCK;
  int64_t most = (int64_t)rn_cuda_card(ctx)->multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
  if (blocks > most) blocks = most;
  return rn_cuda_launch(ctx, name,
                        (rn_cuda_grid_t){.x = (unsigned)blocks, .block_x = RN_CUDA_BLOCK}, args,
                        args_size);
}

rn_status_t rn_cuda_zero(const rn_kernel_ctx_t* ctx, rn_tensor_t* tensor) {
  rn_cuda_card_t* card = rn_cuda_card(ctx);
  size_t size = rn_tensor_bytes(tensor);
  if (size == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  return RN_CARD(card, cuMemsetD8Async, (CUdeviceptr)(uintptr_t)tensor->data, 0, size,
                 rn_cuda_stream(card));
}

const char* rn_cuda_type(rn_dtype_t dtype) {
  switch (dtype) {
    case RN_FLOAT:
      return "f32";
    case RN_DOUBLE:
      return "f64";
    case RN_HALF:
      return "f16";
    case RN_BFLOAT16:
      return "bf16";
    case RN_INT8:
      return "i8";
    case RN_INT16:
      return "i16";
    case RN_INT32:
      return "i32";
    case RN_INT64:
      return "i64";
    case RN_UINT8:
      return "u8";
    case RN_UINT16:
      return "u16";
    case RN_UINT32:
      return "u32";
    case RN_UINT64:
      return "u64";
    case RN_BOOL:
      return "b8";
    case RN_COMPLEX64:
      return "c64";
    case RN_COMPLEX128:
      return "c128";
    default:
      return NULL;
  }
}

rn_cuda_name_t rn_cuda_name(const char* base, rn_dtype_t dtype) {
  rn_cuda_name_t name;
  const char* type = rn_cuda_type(dtype);
  snprintf(name.text, sizeof name.text, "%s_%s", base, type ? type : "none");
  return name;
}

rn_cuda_name_t rn_cuda_size_name(const char* base, rn_dtype_t dtype) {
  rn_cuda_name_t name;
  snprintf(name.text, sizeof name.text, "%s_%zu", base, rn_dtype_size(dtype));
  return name;
}
