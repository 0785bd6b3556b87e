// Cumsum, Cumprod and CumulativeLogsumexp.
#include <stdio.h>

#include "kernels/cpu/math/axes.h"
#include "kernels/cuda/math/scan_args.h"

typedef struct cuda_scan_t {
  bool is_product, is_log, exclusive, reverse;
} cuda_scan_t;

static rn_status_t scan_init(const rn_kernel_init_t* init, void* state) {
  rn_str_t name = rn_str(init->op->name);
  *(cuda_scan_t*)state = (cuda_scan_t){.is_product = rn_str_is(name, "Cumprod"),
                                       .is_log = rn_str_is(name, "CumulativeLogsumexp"),
                                       .exclusive = rn_init_bool(init, "exclusive"),
                                       .reverse = rn_init_bool(init, "reverse")};
  return RN_OK;
}

// Sums and products of integers wrap around, so signed ones have the bits of unsigned ones.
static rn_dtype_t without_sign(rn_dtype_t dtype) {
  switch (dtype) {
    case RN_INT8:
      return RN_UINT8;
    case RN_INT16:
      return RN_UINT16;
    case RN_INT32:
      return RN_UINT32;
    case RN_INT64:
      return RN_UINT64;
    default:
      return dtype;
  }
}

static rn_status_t scan(rn_kernel_ctx_t* ctx) {
  const cuda_scan_t* state = ctx->state;
  const rn_tensor_t* input = rn_in(ctx, 0);
  int axis = 0;
  RN_RETURN_IF_ERROR(rn_read_scan_axis(input, rn_in(ctx, 1), &axis));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(input), &out));
  if (input->count == 0) return RN_OK;
  const rn_axis_view_t view = rn_axis_view(input, axis);
  struct rn_scan_args args = {.in = input->data,
                              .out = out->data,
                              .outer = view.outer,
                              .size = view.size,
                              .inner = view.inner,
                              .is_product = state->is_product,
                              .exclusive = state->exclusive,
                              .reverse = state->reverse};
  const bool by_rows = view.inner == 1 && view.size > 32;
  char base[48];
  snprintf(base, sizeof base, "math/scan/%s_%s", state->is_log ? "log_scan" : "scan",
           by_rows ? "rows" : "lines");
  rn_cuda_name_t name = rn_cuda_name(base, without_sign(input->dtype));
  if (!by_rows) return rn_cuda_each(ctx, name.text, view.outer * view.inner, &args, sizeof args);
  rn_cuda_grid_t grid = {.x = (unsigned)(view.outer < 65536 ? view.outer : 65536),
                         .block_x = RN_SCAN_BLOCK};
  return rn_cuda_launch(ctx, name.text, grid, &args, sizeof args);
}

#define ROW(name, set)                                                                     \
  {                                                                                        \
    .op = name, .device = "GPU", .types = {{"T", set}}, .host_args = RN_HOST_ARGS("axis"), \
    .flags = RN_KERNEL_REPLAYS, .state_size = sizeof(cuda_scan_t), .init = scan_init,      \
    .compute = scan                                                                        \
  }

static const rn_kernel_def_t rows[] = {
    ROW("Cumsum", RN_TYPES_NUMBERS),
    ROW("Cumprod", RN_TYPES_NUMBERS),
    ROW("CumulativeLogsumexp", RN_TYPES_FLOATS),
};
RN_KERNEL_FAMILY(cuda_scan, rows);
