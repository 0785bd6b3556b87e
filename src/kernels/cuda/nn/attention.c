// Attention as one kernel, and its gradients as two (step/fuse_attention.c).
#include <stdio.h>

#include "kernels/cpu/nn/attention.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/nn/attention_args.h"

// The rows of tiles that attention.cu uses for heads of up to 64 and of up to 128.
typedef struct tile_sizes_t {
  int rows, columns;
} tile_sizes_t;
static const tile_sizes_t forward_tiles[2] = {{128, 64}, {64, 32}};
static const tile_sizes_t query_tiles[2] = {{128, 32}, {64, 32}};
static const tile_sizes_t key_tiles[2] = {{64, 64}, {64, 32}};

static bool is_vector(const struct rn_attention_side* side, size_t item) {
  return (uintptr_t)side->data % (4 * item) == 0 && side->row_step % 4 == 0 &&
         side->head % 4 == 0 && side->batch % 4 == 0;
}

// Side number |at|, in |tensor|; |rows| per head.
static rn_status_t set_side(const rn_kernel_ctx_t* ctx, int at, int64_t rows,
                            const rn_tensor_t* tensor, struct rn_attention_side* out) {
  const rn_attention_shape_t* attention = ctx->state;
  const int64_t* layout = attention->layouts[at];
  RN_RETURN_IF_ERROR(rn_attention_check(attention, at, rows, tensor));
  *out = (struct rn_attention_side){
      .data = (char*)tensor->data + (size_t)layout[0] * rn_dtype_size(tensor->dtype),
      .batch = layout[1],
      .head = layout[2],
      .row_step = layout[3]};
  return RN_OK;
}

// The mask is input |at|.
static rn_status_t set_mask(const rn_kernel_ctx_t* ctx, int at, struct attention_args* args) {
  const rn_attention_shape_t* attention = ctx->state;
  const int64_t* steps = attention->mask_steps;
  const rn_tensor_t* mask = rn_in(ctx, at);
  RN_RETURN_IF_ERROR(rn_attention_check_mask(attention, mask));
  args->mask = mask->data;
  args->mask_kind = mask->dtype == RN_BOOL ? RN_MASK_BOOL : RN_MASK_ADD;
  args->mask_heads = (i32)steps[0];
  args->mask_batch = steps[1], args->mask_query = steps[2], args->mask_key = steps[3];
  return RN_OK;
}

// Sizes, q, k, v and the mask, which is input |mask_at|.
static rn_status_t begin(const rn_kernel_ctx_t* ctx, int mask_at, struct attention_args* args) {
  const rn_attention_shape_t* attention = ctx->state;
  *args = (struct attention_args){.mask_heads = 1,
                                  .mask_kind = attention->is_causal ? RN_MASK_CAUSAL : RN_MASK_NONE,
                                  .heads = (i32)attention->heads,
                                  .queries = (i32)attention->queries,
                                  .keys = (i32)attention->keys,
                                  .depth = (i32)attention->depth,
                                  .scale = attention->scale};
  RN_RETURN_IF_ERROR(set_side(ctx, 0, attention->queries, rn_in(ctx, 0), &args->q));
  RN_RETURN_IF_ERROR(set_side(ctx, 1, attention->keys, rn_in(ctx, 1), &args->k));
  RN_RETURN_IF_ERROR(set_side(ctx, 2, attention->keys, rn_in(ctx, 2), &args->v));
  return attention->has_mask ? set_mask(ctx, mask_at, args) : RN_OK;
}

// Issues the kernel |base| over |rows| rows of every head. |kept| of its tiles have a block's rows,
// two have the columns that it walks over.
static rn_status_t issue(const rn_kernel_ctx_t* ctx, const char* base, const tile_sizes_t* tiles,
                         int kept, int64_t rows, struct attention_args* args) {
  const rn_attention_shape_t* attention = ctx->state;
  const int64_t heads = attention->batch * attention->heads;
  const bool is_wide = args->depth > 64;
  const tile_sizes_t tile = tiles[is_wide];
  const rn_dtype_t dtype = rn_in(ctx, 0)->dtype;
  const size_t item = rn_dtype_size(dtype);
  const struct rn_attention_side* const sides[] = {&args->q,  &args->k,  &args->v,  &args->y,
                                                   &args->dy, &args->dq, &args->dk, &args->dv};
  args->is_vector = args->depth % 4 == 0;
  for (int i = 0; i < 8; ++i)
    if (sides[i]->data && !is_vector(sides[i], item)) args->is_vector = 0;
  args->tiles = (i32)((rows + tile.rows - 1) / tile.rows);
  if (args->tiles > INT32_MAX / heads)
    return rn_unimplemented("Attention over more heads than fit a grid");
  const int pitch = (is_wide ? 128 : 64) + 4;  // 99 KB at most, which every card has
  const size_t floats = (size_t)((kept * tile.rows + 2 * tile.columns) * pitch);
  char name[64];
  const bool is_exact = dtype == RN_FLOAT && !rn_cuda_allows_tf32(ctx);
  snprintf(name, sizeof name, "nn/attention/%s_%d%s", base, is_wide ? 128 : 64,
           is_exact ? "_exact" : "");
  rn_cuda_grid_t grid = {.x = (unsigned)(args->tiles * heads),
                         .block_x = RN_ATTENTION_THREADS,
                         .shared = (unsigned)(floats * sizeof(float))};
  return rn_cuda_launch(ctx, rn_cuda_name(name, dtype).text, grid, args, sizeof *args);
}

static rn_status_t attention_compute(rn_kernel_ctx_t* ctx) {
  const rn_attention_shape_t* attention = ctx->state;
  const int64_t rows[2] = {attention->batch * attention->heads, attention->queries};
  struct attention_args args;
  rn_tensor_t *y = NULL, *sums = NULL;
  RN_RETURN_IF_ERROR(begin(ctx, 3, &args));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){attention->rank, attention->dims}, &y));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){2, rows}, &sums));
  RN_RETURN_IF_ERROR(set_side(ctx, 3, attention->queries, y, &args.y));
  args.sums = sums->data;
  return issue(ctx, "forward", forward_tiles, 1, args.queries, &args);
}

// The gradients are one tensor or three.
static rn_status_t make_gradients(rn_kernel_ctx_t* ctx, struct attention_args* args) {
  const rn_attention_shape_t* attention = ctx->state;
  struct rn_attention_side* const sides[] = {&args->dq, &args->dk, &args->dv};
  rn_tensor_t* out[3] = {NULL, NULL, NULL};
  for (int i = 0; i < attention->outputs; ++i)
    RN_RETURN_IF_ERROR(rn_output(
        ctx, i, (rn_shape_t){attention->rank, attention->dims + i * attention->rank}, &out[i]));
  for (int i = 0; i < 3; ++i)
    RN_RETURN_IF_ERROR(set_side(ctx, 5 + i, i == 0 ? attention->queries : attention->keys,
                                out[attention->outputs == 3 ? i : 0], sides[i]));
  return RN_OK;
}

static rn_status_t gradient_compute(rn_kernel_ctx_t* ctx) {
  const rn_attention_shape_t* attention = ctx->state;
  const rn_tensor_t* sums = rn_in(ctx, 4);
  struct attention_args args;
  RN_RETURN_IF_ERROR(begin(ctx, 6, &args));
  RN_RETURN_IF_ERROR(set_side(ctx, 3, attention->queries, rn_in(ctx, 3), &args.y));
  RN_RETURN_IF_ERROR(set_side(ctx, 4, attention->queries, rn_in(ctx, 5), &args.dy));
  RN_RETURN_IF_ERROR(make_gradients(ctx, &args));
  if (sums->count != attention->batch * attention->heads * attention->queries)
    return rn_internal("The sums of attention do not fit");
  rn_tensor_t deltas = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, rn_tensor_shape(sums), &deltas));
  args.sums = sums->data;
  args.deltas = deltas.data;
  rn_status_t status = issue(ctx, "by_queries", query_tiles, 2, args.queries, &args);
  if (rn_ok(status)) status = issue(ctx, "by_keys", key_tiles, 2, args.keys, &args);
  rn_tensor_clear(&deltas);
  return status;
}

#define ROW(op_, compute_)                                                                        \
  {                                                                                               \
    .op = op_, .device = "GPU", .types = {{"T", RN_T(HALF) | RN_T(BFLOAT16) | RN_T(FLOAT)}},      \
    .flags = RN_KERNEL_REPLAYS | RN_KERNEL_EXPENSIVE, .state_size = sizeof(rn_attention_shape_t), \
    .init = rn_attention_init, .compute = compute_                                                \
  }
static const rn_kernel_def_t rows[] = {ROW("_Attention", attention_compute),
                                       ROW("_AttentionGrad", gradient_compute)};
RN_KERNEL_FAMILY(cuda_attention, rows);
