// Attention as one kernel, and its gradients as two (step/fuse_attention.c).
#include <stdio.h>

#include "kernels/cpu/array.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/nn/attention_args.h"

typedef struct cuda_attention_t {
  float scale;
  bool is_causal;
} cuda_attention_t;

static rn_status_t attention_init(const rn_kernel_init_t* init, void* state) {
  cuda_attention_t* attention = state;
  attention->scale = rn_init_float(init, "scale");
  attention->is_causal = rn_init_bool(init, "is_causal");
  return RN_OK;
}

// The rows of tiles that attention.cu uses for heads of up to 64 and of up to 128.
typedef struct tile_sizes_t {
  int rows, columns;
} tile_sizes_t;
static const tile_sizes_t forward_tiles[2] = {{128, 64}, {64, 32}};
static const tile_sizes_t query_tiles[2] = {{128, 32}, {64, 32}};
static const tile_sizes_t key_tiles[2] = {{64, 64}, {64, 32}};

static struct rn_attention_side side_of(const rn_tensor_t* tensor) {
  const int64_t rows = rn_tensor_dim(tensor, tensor->rank - 2);
  const int64_t depth = rn_tensor_dim(tensor, tensor->rank - 1);
  return (struct rn_attention_side){.data = tensor->data, .head = rows * depth, .row_step = depth};
}

static bool is_vector(const struct rn_attention_side* side, size_t item) {
  return (uintptr_t)side->data % (4 * item) == 0 && side->row_step % 4 == 0 &&
         side->head % 4 == 0 && side->batch % 4 == 0;
}

// A mask [..., queries, keys], whose dimensions of size 1 repeat. Of the dimensions before the last
// two, the first ones may be those of the heads; the others must be 1.
static bool set_mask(const rn_tensor_t* mask, const rn_tensor_t* q, struct attention_args* args) {
  const int64_t rows = mask->rank > 1 ? rn_tensor_dim(mask, mask->rank - 2) : 1;
  const int64_t columns = mask->rank > 0 ? rn_tensor_dim(mask, mask->rank - 1) : 1;
  const int batch = q->rank - 2, extra = q->rank - mask->rank;
  if ((rows != 1 && rows != args->queries) || (columns != 1 && columns != args->keys) || extra < 0)
    return false;
  int64_t heads = 1, matrices = 1;
  for (int d = 0; d < batch; ++d) {
    const int64_t size = d < extra ? 1 : rn_tensor_dim(mask, d - extra), full = rn_tensor_dim(q, d);
    if (size != 1 && (size != full || heads != 1)) return false;
    if (size == 1) heads *= full;
    matrices *= size;
  }
  args->mask = mask->data;
  args->mask_kind = mask->dtype == RN_BOOL ? RN_MASK_BOOL : RN_MASK_ADD;
  args->mask_heads = (i32)heads;
  args->mask_batch = matrices == 1 ? 0 : rows * columns;
  args->mask_query = rows == 1 ? 0 : columns;
  args->mask_key = columns == 1 ? 0 : 1;
  return mask->dtype == RN_BOOL || mask->dtype == q->dtype;
}

static bool is_head(const rn_tensor_t* tensor, const rn_tensor_t* q, int64_t rows) {
  if (tensor->rank != q->rank || rn_tensor_dim(tensor, q->rank - 2) != rows) return false;
  for (int d = 0; d < q->rank; ++d)
    if (d != q->rank - 2 && rn_tensor_dim(tensor, d) != rn_tensor_dim(q, d)) return false;
  return true;
}

// Sizes, q, k, v and the mask, which is input |mask_at|.
static rn_status_t begin(const rn_kernel_ctx_t* ctx, int mask_at, struct attention_args* args,
                         int64_t* out_heads) {
  const cuda_attention_t* attention = ctx->state;
  const rn_tensor_t *q = rn_in(ctx, 0), *k = rn_in(ctx, 1), *v = rn_in(ctx, 2);
  if (q->rank < 2 || k->rank != q->rank) return rn_internal("Operands of attention do not fit");
  const int64_t queries = rn_tensor_dim(q, q->rank - 2), keys = rn_tensor_dim(k, k->rank - 2);
  const int64_t depth = rn_tensor_dim(q, q->rank - 1);
  const int64_t heads = rn_dims_product(rn_tensor_dims(q), 0, q->rank - 2);
  if (!is_head(k, q, keys) || !is_head(v, q, keys) || depth < 1 || depth > RN_ATTENTION_DEPTH ||
      keys < 1 || keys > INT32_MAX / 2 || queries > INT32_MAX / 2 || heads > INT32_MAX / 2)
    return rn_internal("Operands of attention do not fit");
  *args = (struct attention_args){.q = side_of(q),
                                  .k = side_of(k),
                                  .v = side_of(v),
                                  .mask_heads = 1,
                                  .mask_kind = attention->is_causal ? RN_MASK_CAUSAL : RN_MASK_NONE,
                                  .heads = (i32)(heads > 0 ? heads : 1),
                                  .queries = (i32)queries,
                                  .keys = (i32)keys,
                                  .depth = (i32)depth,
                                  .scale = attention->scale};
  *out_heads = heads;
  if (ctx->kernel->input_count > mask_at && !set_mask(rn_in(ctx, mask_at), q, args))
    return rn_internal("The mask of attention does not fit");
  return RN_OK;
}

// Issues the kernel |base| over |rows| rows of every head. |kept| of its tiles have a block's rows,
// two have the columns that it walks over.
static rn_status_t issue(const rn_kernel_ctx_t* ctx, const char* base, const tile_sizes_t* tiles,
                         int kept, int64_t rows, int64_t heads, struct attention_args* args) {
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
  if (args->tiles > INT32_MAX / heads) return rn_unimplemented("Attention over so many heads");
  const int pitch = (is_wide ? 128 : 64) + 4;  // 16 bytes more than a row
  const size_t floats = (size_t)((kept * tile.rows + 2 * tile.columns) * pitch + 3 * tile.columns);
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
  const rn_tensor_t* q = rn_in(ctx, 0);
  struct attention_args args;
  int64_t heads;
  RN_RETURN_IF_ERROR(begin(ctx, 3, &args, &heads));
  rn_tensor_t *y = NULL, *sums = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(q), &y));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, (rn_shape_t){q->rank - 1, rn_tensor_dims(q)}, &sums));
  if (y->count == 0) return RN_OK;
  args.y = side_of(y);
  args.sums = sums->data;
  return issue(ctx, "forward", forward_tiles, 1, args.queries, heads, &args);
}

static rn_status_t gradient_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *y = rn_in(ctx, 3), *sums = rn_in(ctx, 4), *dy = rn_in(ctx, 5);
  struct attention_args args;
  int64_t heads;
  RN_RETURN_IF_ERROR(begin(ctx, 6, &args, &heads));
  rn_tensor_t* out[3];
  for (int i = 0; i < 3; ++i)
    RN_RETURN_IF_ERROR(rn_output(ctx, i, rn_tensor_shape(rn_in(ctx, i)), &out[i]));
  if (!rn_tensor_same_shape(y, rn_in(ctx, 0)) || !rn_tensor_same_shape(dy, y) ||
      sums->count != heads * args.queries)
    return rn_internal("Operands of attention do not fit");
  if (y->count == 0) {
    RN_RETURN_IF_ERROR(rn_cuda_zero(ctx, out[1]));
    return rn_cuda_zero(ctx, out[2]);
  }
  args.y = side_of(y), args.dy = side_of(dy);
  args.dq = side_of(out[0]), args.dk = side_of(out[1]), args.dv = side_of(out[2]);
  rn_tensor_t deltas = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, rn_tensor_shape(sums), &deltas));
  args.sums = sums->data;
  args.deltas = deltas.data;
  rn_status_t status = issue(ctx, "by_queries", query_tiles, 2, args.queries, heads, &args);
  if (rn_ok(status)) status = issue(ctx, "by_keys", key_tiles, 2, args.keys, heads, &args);
  rn_tensor_clear(&deltas);
  return status;
}

#define ROW(op_, compute_)                                                                    \
  {                                                                                           \
    .op = op_, .device = "GPU", .types = {{"T", RN_T(HALF) | RN_T(BFLOAT16) | RN_T(FLOAT)}},  \
    .flags = RN_KERNEL_REPLAYS | RN_KERNEL_EXPENSIVE, .state_size = sizeof(cuda_attention_t), \
    .init = attention_init, .compute = compute_                                               \
  }
static const rn_kernel_def_t rows[] = {ROW("_Attention", attention_compute),
                                       ROW("_AttentionGrad", gradient_compute)};
RN_KERNEL_FAMILY(cuda_attention, rows);
