// ZerosLike and OnesLike of int32. As in stock, the result is in host memory, where integers are
// shapes and counters, but the input may be on the device: only its shape is read.
#include "kernels/kernel_rows.h"

static rn_status_t fill(rn_kernel_ctx_t* ctx, int32_t value) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(rn_in(ctx, 0)), &out));
  for (int64_t i = 0; i < out->count; ++i) RN_DATA(out, int32_t)[i] = value;
  return RN_OK;
}

static rn_status_t zeros_like(rn_kernel_ctx_t* ctx) { return fill(ctx, 0); }
static rn_status_t ones_like(rn_kernel_ctx_t* ctx) { return fill(ctx, 1); }

#define ROW(name, function)                                                                     \
  {                                                                                             \
    .op = name, .device = "GPU", .types = {{"T", RN_T(INT32)}}, .host_args = RN_HOST_ARGS("y"), \
    .compute = function                                                                         \
  }
static const rn_kernel_def_t rows[] = {ROW("ZerosLike", zeros_like), ROW("OnesLike", ones_like)};
RN_KERNEL_FAMILY(cuda_like, rows);
