// FusedBatchNorm and its gradient, all versions: batch_norm.cu has the device code.
#include "kernels/cpu/nn/batch_norm.h"

#include <stdio.h>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/nn/batch_norm_args.h"

#define BLOCKS_PER_MULTIPROCESSOR 8
#define ROWS_PER_THREAD 4  // fewer are not worth a chunk
#define FINISH_CHANNELS 8  // 32 bytes of a part
#define FINISH_ROWS 64
#define MOST_INDEX (INT64_C(1) << 31)
#define NAN_BITS 0x7fc00000u

// How a call's elements are cut.
typedef struct norm_t {
  rn_dtype_t dtype;
  int64_t rows, channels, inner;  // in elements
  int64_t pack;                   // elements that a thread handles at a time
  bool is_last;
  rn_cuda_grid_t grid;    // of the sums
  int64_t chunk, chunks;  // rows per chunk, in packs with channels first
} norm_t;

static unsigned power_of_two(int64_t at_least, unsigned most) {
  unsigned value = 1;
  while (value < most && value < at_least) value *= 2;
  return value;
}

static norm_t cut(const rn_kernel_ctx_t* ctx, rn_dtype_t dtype, rn_batch_norm_view_t view,
                  uintptr_t addresses) {
  norm_t norm = {.dtype = dtype,
                 .rows = view.outer * view.inner,
                 .channels = view.channels,
                 .inner = view.inner,
                 .is_last = view.inner == 1};
  int64_t pack = 16 / (int64_t)rn_dtype_size(dtype);
  bool is_packed = (norm.is_last ? view.channels : view.inner) % pack == 0 && addresses % 16 == 0;
  norm.pack = is_packed ? pack : 1;
  int64_t wanted = (int64_t)rn_cuda_card(ctx)->multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
  int64_t rows = norm.is_last ? norm.rows : norm.rows / norm.pack, tiles = view.channels;
  unsigned across = RN_CUDA_BLOCK, down = 1;
  if (norm.is_last) {
    int64_t packs = view.channels / norm.pack;
    across = power_of_two(packs, 32);
    down = RN_CUDA_BLOCK / across;
    tiles = (packs + across - 1) / across;
  }
  int64_t least = (norm.is_last ? down : across) * ROWS_PER_THREAD;
  int64_t chunks = wanted / tiles + 1, most = (rows + least - 1) / least;
  if (chunks > most) chunks = most;
  norm.chunk = (rows + chunks - 1) / chunks;
  norm.chunks = (rows + norm.chunk - 1) / norm.chunk;
  norm.grid = (rn_cuda_grid_t){
      .x = (unsigned)tiles, .y = (unsigned)norm.chunks, .block_x = across, .block_y = down};
  return norm;
}

static rn_cuda_name_t name_of(const norm_t* norm, const char* kernel) {
  char base[64];
  snprintf(base, sizeof base, "nn/batch_norm/%s_%s%s", kernel, norm->is_last ? "last" : "first",
           norm->pack > 1 ? "_pack" : "");
  return rn_cuda_name(base, norm->dtype);
}

static rn_status_t issue_parts(const rn_kernel_ctx_t* ctx, const norm_t* norm, const char* kernel,
                               norm_parts_args* args) {
  args->chunk = norm->chunk;
  args->rows = norm->is_last ? norm->rows : norm->rows / norm->pack;
  args->channels = norm->is_last ? norm->channels / norm->pack : norm->channels;
  args->inner = norm->is_last ? 1 : norm->inner / norm->pack;
  args->is_wide = args->rows >= MOST_INDEX;
  args->inner_div = rn_divisor(args->is_wide ? 1 : (u32)args->inner);
  return rn_cuda_launch(ctx, name_of(norm, kernel).text, norm->grid, args, sizeof *args);
}

static rn_status_t issue_finish(const rn_kernel_ctx_t* ctx, const norm_t* norm, const char* kernel,
                                norm_finish_args* args) {
  args->rows = norm->rows;
  args->channels = norm->channels;
  args->chunks = norm->chunks;
  args->chunk = norm->chunk * (norm->is_last ? 1 : norm->pack);
  rn_cuda_grid_t grid = {.x = (unsigned)((norm->channels + FINISH_CHANNELS - 1) / FINISH_CHANNELS),
                         .block_x = FINISH_CHANNELS,
                         .block_y = FINISH_ROWS};
  return rn_cuda_launch(ctx, kernel, grid, args, sizeof *args);
}

static rn_status_t issue_apply(const rn_kernel_ctx_t* ctx, const norm_t* norm, const char* kernel,
                               norm_apply_args* args) {
  int64_t inner = norm->is_last ? 1 : norm->inner / norm->pack;
  int64_t channels = norm->is_last ? norm->channels / norm->pack : norm->channels;
  if (inner >= MOST_INDEX || channels >= MOST_INDEX)
    return rn_unimplemented("Normalizing an image of more than 2^31 pixels on a GPU");
  args->channels = norm->channels;
  args->count = norm->rows * norm->channels / norm->pack;
  args->is_wide = args->count >= MOST_INDEX;
  args->inner_div = rn_divisor((u32)inner);
  args->channels_div = rn_divisor((u32)channels);
  return rn_cuda_each(ctx, name_of(norm, kernel).text, args->count, args, sizeof *args);
}

// Scratch: the parts and the factors.
static rn_status_t make_scratch(rn_kernel_ctx_t* ctx, const norm_t* norm, rn_tensor_t* out,
                                float** parts, float** factors) {
  int64_t dims[2] = {2 * norm->chunks + 3, norm->channels};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){2, dims}, out));
  *factors = out->data;
  *parts = *factors + 3 * norm->channels;
  return RN_OK;
}

static rn_status_t forward_run(rn_kernel_ctx_t* ctx, const norm_t* norm, rn_tensor_t* y,
                               rn_tensor_t* const outs[4], float* parts, float* factors) {
  const rn_batch_norm_t* state = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  norm_parts_args sums = {.x = x->data, .parts = parts};
  norm_finish_args finish = {.parts = state->is_training ? parts : NULL,
                             .scale = rn_in(ctx, 1)->data,
                             .mean = rn_in(ctx, 3)->data,
                             .variance = rn_in(ctx, 4)->data,
                             .batch_mean = outs[0]->data,
                             .batch_variance = outs[1]->data,
                             .saved_mean = outs[2]->data,
                             .saved_variance = outs[3]->data,
                             .factors = factors,
                             .epsilon = state->epsilon,
                             .average_factor = state->factor};
  norm_apply_args apply = {.x = x->data,
                           .to = y->data,
                           .mean = outs[2]->data,
                           .offset = rn_in(ctx, 2)->data,
                           .factors = factors};
  if (state->is_training) RN_RETURN_IF_ERROR(issue_parts(ctx, norm, "stats", &sums));
  RN_RETURN_IF_ERROR(issue_finish(ctx, norm, "nn/batch_norm/finish", &finish));
  return issue_apply(ctx, norm, "apply", &apply);
}

static rn_status_t fill_nan(const rn_kernel_ctx_t* ctx, rn_tensor_t* tensor) {
  rn_cuda_card_t* card = rn_cuda_card(ctx);
  if (tensor->count == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  return RN_CARD(card, cuMemsetD32Async, (CUdeviceptr)(uintptr_t)tensor->data, NAN_BITS,
                 (size_t)tensor->count, rn_cuda_stream(card));
}

static rn_status_t forward_compute(rn_kernel_ctx_t* ctx) {
  rn_batch_norm_view_t view;
  RN_RETURN_IF_ERROR(rn_batch_norm_check(ctx, &view));
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_tensor_t *y = NULL, *outs[4], *reserve = NULL, scratch = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  for (int i = 0; i < 4; ++i)
    RN_RETURN_IF_ERROR(rn_output(ctx, i + 1, (rn_shape_t){1, &view.channels}, &outs[i]));
  if (ctx->kernel->output_count > 5)  // stays empty, as on the CPU
    RN_RETURN_IF_ERROR(rn_output(ctx, 5, (rn_shape_t){1, &(int64_t){0}}, &reserve));
  if (x->count == 0) {
    for (int i = 0; i < 4; ++i) RN_RETURN_IF_ERROR(fill_nan(ctx, outs[i]));
    return RN_OK;
  }
  norm_t norm = cut(ctx, x->dtype, view, (uintptr_t)x->data | (uintptr_t)y->data);
  float *parts = NULL, *factors = NULL;
  RN_RETURN_IF_ERROR(make_scratch(ctx, &norm, &scratch, &parts, &factors));
  rn_status_t status = forward_run(ctx, &norm, y, outs, parts, factors);
  rn_tensor_clear(&scratch);
  return status;
}

static rn_status_t gradient_run(rn_kernel_ctx_t* ctx, const norm_t* norm, rn_tensor_t* dx,
                                rn_tensor_t* dscale, rn_tensor_t* doffset, float* parts,
                                float* factors) {
  const rn_batch_norm_t* state = ctx->state;
  const rn_tensor_t *dy = rn_in(ctx, 0), *x = rn_in(ctx, 1), *mean = rn_in(ctx, 3);
  norm_parts_args sums = {.x = x->data, .dy = dy->data, .mean = mean->data, .parts = parts};
  norm_finish_args finish = {.parts = parts,
                             .scale = rn_in(ctx, 2)->data,
                             .variance = rn_in(ctx, 4)->data,
                             .dscale = dscale->data,
                             .doffset = doffset->data,
                             .factors = factors,
                             .epsilon = state->epsilon,
                             .is_training = state->is_training};
  norm_apply_args apply = {.x = x->data,
                           .dy = dy->data,
                           .to = dx->data,
                           .mean = mean->data,
                           .factors = factors,
                           .is_training = state->is_training};
  RN_RETURN_IF_ERROR(issue_parts(ctx, norm, "products", &sums));
  RN_RETURN_IF_ERROR(issue_finish(ctx, norm, "nn/batch_norm/finish_gradient", &finish));
  return issue_apply(ctx, norm, "gradient", &apply);
}

static rn_status_t gradient_compute(rn_kernel_ctx_t* ctx) {
  static const int64_t none = 0;
  rn_batch_norm_view_t view;
  RN_RETURN_IF_ERROR(rn_batch_norm_gradient_check(ctx, &view));
  const rn_tensor_t *dy = rn_in(ctx, 0), *x = rn_in(ctx, 1);
  rn_tensor_t *dx = NULL, *dscale = NULL, *doffset = NULL, *unused = NULL, scratch = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &dx));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){1, &view.channels}, &dscale));
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, (rn_shape_t){1, &view.channels}, &doffset));
  for (int i = 3; i < 5; ++i)
    RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){1, &none}, &unused));
  if (dx->count == 0) {
    RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, dscale));
    return rn_cuda_zero(ctx, doffset);
  }
  norm_t norm =
      cut(ctx, x->dtype, view, (uintptr_t)x->data | (uintptr_t)dy->data | (uintptr_t)dx->data);
  float *parts = NULL, *factors = NULL;
  RN_RETURN_IF_ERROR(make_scratch(ctx, &norm, &scratch, &parts, &factors));
  rn_status_t status = gradient_run(ctx, &norm, dx, dscale, doffset, parts, factors);
  rn_tensor_clear(&scratch);
  return status;
}

// The parts of norms that step/split_batch_norms.c has split.

typedef struct norm_piece_t {
  float epsilon, factor, rows;
} norm_piece_t;

static rn_status_t piece_init(const rn_kernel_init_t* init, void* state) {
  norm_piece_t* piece = state;
  piece->epsilon = rn_init_float(init, "epsilon");
  if (rn_op_attr_index(init->op, RN_STR("exponential_avg_factor")) >= 0)
    piece->factor = rn_init_float(init, "exponential_avg_factor");
  if (rn_op_attr_index(init->op, RN_STR("count")) >= 0)
    piece->rows = (float)rn_init_int(init, "count");
  return RN_OK;
}

// Makes |count| outputs with an element per channel.
static rn_status_t make_channels(rn_kernel_ctx_t* ctx, int64_t channels, int count, float** out) {
  for (int i = 0; i < count; ++i) {
    rn_tensor_t* made = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, i, (rn_shape_t){1, &channels}, &made));
    out[i] = made->data;
  }
  return RN_OK;
}

static rn_status_t moments_compute(rn_kernel_ctx_t* ctx) {
  const norm_piece_t* piece = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *scale = rn_in(ctx, 1);
  float *out[5], *parts = NULL, *unused = NULL;
  rn_batch_norm_view_t view = {x->count / scale->count, scale->count, 1};
  RN_RETURN_IF_ERROR(make_channels(ctx, view.channels, 5, out));
  norm_t norm = cut(ctx, x->dtype, view, (uintptr_t)x->data);
  rn_tensor_t scratch = {0};
  RN_RETURN_IF_ERROR(make_scratch(ctx, &norm, &scratch, &parts, &unused));
  norm_parts_args sums = {.x = x->data, .parts = parts};
  norm_finish_args finish = {.parts = parts,
                             .scale = scale->data,
                             .mean = rn_in(ctx, 2)->data,
                             .variance = rn_in(ctx, 3)->data,
                             .batch_mean = out[0],
                             .batch_variance = out[1],
                             .saved_mean = out[2],
                             .saved_variance = out[3],
                             .factors = out[4],
                             .epsilon = piece->epsilon,
                             .average_factor = piece->factor};
  rn_status_t status = issue_parts(ctx, &norm, "stats", &sums);
  if (rn_ok(status)) status = issue_finish(ctx, &norm, "nn/batch_norm/finish", &finish);
  rn_tensor_clear(&scratch);
  return status;
}

static rn_status_t factor_compute(rn_kernel_ctx_t* ctx) {
  const norm_piece_t* piece = ctx->state;
  const rn_tensor_t* scale = rn_in(ctx, 0);
  norm_factor_args args = {.scale = scale->data,
                           .variance = rn_in(ctx, 1)->data,
                           .epsilon = piece->epsilon,
                           .count = scale->count};
  RN_RETURN_IF_ERROR(make_channels(ctx, scale->count, 1, &args.factor));
  return rn_cuda_each(ctx, "nn/batch_norm/factor", args.count, &args, sizeof args);
}

static rn_status_t slopes_compute(rn_kernel_ctx_t* ctx) {
  const norm_piece_t* piece = ctx->state;
  const rn_tensor_t* scale = rn_in(ctx, 2);
  float* out[4];
  RN_RETURN_IF_ERROR(make_channels(ctx, scale->count, 4, out));
  norm_factor_args args = {.scale = scale->data,
                           .variance = rn_in(ctx, 3)->data,
                           .sum = rn_in(ctx, 0)->data,
                           .product_sum = rn_in(ctx, 1)->data,
                           .dscale = out[0],
                           .factor = out[1],
                           .mean = out[2],
                           .slope = out[3],
                           .epsilon = piece->epsilon,
                           .rows = piece->rows,
                           .count = scale->count};
  return rn_cuda_each(ctx, "nn/batch_norm/slopes", args.count, &args, sizeof args);
}

#define TYPES (RN_TYPES_HALVES | RN_T(FLOAT))
#define ROW(op_, compute_)                                                                         \
  {                                                                                                \
    .op = op_, .device = "GPU", .types = {{"T", TYPES}, {"U", RN_T(FLOAT)}},                       \
    .flags = RN_KERNEL_REPLAYS, .state_size = sizeof(rn_batch_norm_t), .init = rn_batch_norm_init, \
    .compute = compute_                                                                            \
  }
#define FIRST_ROW(op_, compute_)                                                           \
  {                                                                                        \
    .op = op_, .device = "GPU", .types = {{"T", RN_T(FLOAT)}}, .flags = RN_KERNEL_REPLAYS, \
    .state_size = sizeof(rn_batch_norm_t), .init = rn_batch_norm_init, .compute = compute_ \
  }
#define PIECE_ROW(op_, types_, compute_)                                                \
  {                                                                                     \
    .op = op_, .device = "GPU", .types = {{types_ ? "T" : NULL, types_}},               \
    .flags = RN_KERNEL_REPLAYS, .state_size = sizeof(norm_piece_t), .init = piece_init, \
    .compute = compute_                                                                 \
  }
static const rn_kernel_def_t rows[] = {
    PIECE_ROW("_BatchNormMoments", TYPES, moments_compute),
    PIECE_ROW("_BatchNormFactor", 0, factor_compute),
    PIECE_ROW("_BatchNormSlopes", 0, slopes_compute),
    FIRST_ROW("FusedBatchNorm", forward_compute),
    ROW("FusedBatchNormV2", forward_compute),
    ROW("FusedBatchNormV3", forward_compute),
    FIRST_ROW("FusedBatchNormGrad", gradient_compute),
    ROW("FusedBatchNormGradV2", gradient_compute),
    ROW("FusedBatchNormGradV3", gradient_compute),
};
RN_KERNEL_FAMILY(cuda_batch_norm, rows);
