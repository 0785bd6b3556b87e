// Cumsum, Cumprod and CumulativeLogsumexp.
#include <stdio.h>

#include "kernels/cpu/math/axes.h"
#include "kernels/cuda/math/scan_args.h"

#define SHORT_LINE 32  // elements that one thread adds
#define TILE 4096

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

static rn_cuda_name_t name_of(const cuda_scan_t* state, const char* ending, rn_dtype_t dtype) {
  char base[48];
  snprintf(base, sizeof base, "math/scan/%s_%s", state->is_log ? "log_scan" : "scan", ending);
  return rn_cuda_name(base, without_sign(dtype));
}

static rn_status_t launch_rows(rn_kernel_ctx_t* ctx, rn_dtype_t dtype,
                               const struct rn_scan_args* args) {
  const int64_t blocks = args->outer * args->tiles;
  rn_cuda_grid_t grid = {.x = (unsigned)(blocks < 65536 ? blocks : 65536),
                         .block_x = RN_SCAN_BLOCK};
  return rn_cuda_launch(ctx, name_of(ctx->state, "rows", dtype).text, grid, args, sizeof *args);
}

// The type that sums of |dtype| are kept in.
static rn_dtype_t sum_type(const cuda_scan_t* state, rn_dtype_t dtype) {
  if (state->is_log) return RN_DOUBLE;
  return dtype == RN_HALF || dtype == RN_BFLOAT16 ? RN_FLOAT : dtype;
}

// Few long lines: the sums of their tiles, what comes before each tile, then every tile by itself.
static rn_status_t scan_tiles(rn_kernel_ctx_t* ctx, rn_dtype_t dtype, struct rn_scan_args* args) {
  const rn_dtype_t type = sum_type(ctx->state, dtype);
  const int64_t count = args->outer * args->tiles;
  rn_tensor_t sums = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, type, (rn_shape_t){1, &count}, &sums));
  args->carries = sums.data;
  args->only_sums = true;
  rn_status_t status = launch_rows(ctx, dtype, args);
  struct rn_scan_args carries = {.in = sums.data,
                                 .out = sums.data,
                                 .outer = args->outer,
                                 .size = args->tiles,
                                 .inner = 1,
                                 .is_product = args->is_product,
                                 .exclusive = true,
                                 .tile = args->tiles,
                                 .tiles = 1};
  if (rn_ok(status)) status = launch_rows(ctx, type, &carries);
  args->only_sums = false;
  if (rn_ok(status)) status = launch_rows(ctx, dtype, args);
  rn_tensor_clear(&sums);
  return status;
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
                              .reverse = state->reverse,
                              .tile = view.size,
                              .tiles = 1};
  if (view.inner > 1 || view.size <= SHORT_LINE)
    return rn_cuda_each(ctx, name_of(state, "lines", input->dtype).text, view.outer * view.inner,
                        &args, sizeof args);
  if (view.size < 2 * TILE || view.outer >= rn_cuda_card(ctx)->multiprocessors)
    return launch_rows(ctx, input->dtype, &args);
  args.tile = TILE;
  args.tiles = (view.size + TILE - 1) / TILE;
  return scan_tiles(ctx, input->dtype, &args);
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
