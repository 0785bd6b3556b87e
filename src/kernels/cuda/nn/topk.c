// TopK and InTopK: see topk.cu.
#include "kernels/cpu/nn/topk.h"

#include "kernels/cuda/nn/topk_args.h"

#define MOST_BLOCKS (1 << 20)
#define MOST_KEPT (RN_TOPK_CHUNK / 2)  // of a chunk; for a greater k, rows are sorted

static int64_t power_from(int64_t least) {
  int64_t power = 2;
  while (power < least) power *= 2;
  return power;
}

static rn_cuda_grid_t blocks_of(int64_t chunks, int64_t width) {
  return (rn_cuda_grid_t){.x = (unsigned)(chunks < MOST_BLOCKS ? chunks : MOST_BLOCKS),
                          .block_x = width < 64         ? 32
                                     : width / 2 > 1024 ? 1024
                                                        : (unsigned)(width / 2)};
}

static rn_status_t make_pairs(rn_kernel_ctx_t* ctx, int64_t count, rn_tensor_t* out) {
  const int64_t dims[2] = {count, sizeof(struct rn_topk_pair)};
  return rn_temp(ctx, RN_UINT8, (rn_shape_t){2, dims}, out);
}

// Sorts chunks of |x|, then of what they left, until each row has one chunk. |*out_width| is what
// is left per row.
static rn_status_t select_best(rn_kernel_ctx_t* ctx, const rn_tensor_t* x, int64_t rows, int64_t k,
                               rn_tensor_t* pairs, int64_t* out_width) {
  rn_tensor_t from = {0};
  rn_cuda_name_t name = rn_cuda_name("nn/topk/topk", x->dtype);
  struct rn_topk_args args = {.in = x->data, .rows = rows, .columns = x->count / rows, .kept = k};
  rn_status_t status = RN_OK;
  do {
    const int64_t power = power_from(args.columns);
    args.width = (i32)(power < RN_TOPK_CHUNK ? power : RN_TOPK_CHUNK);
    args.chunks = (args.columns + args.width - 1) / args.width;
    status = make_pairs(ctx, rows * args.chunks * k, pairs);
    args.pairs = pairs->data;
    if (rn_ok(status))
      status = rn_cuda_launch(ctx, name.text, blocks_of(rows * args.chunks, args.width), &args,
                              sizeof args);
    rn_tensor_clear(&from);
    if (!rn_ok(status) || args.chunks == 1) break;
    from = *pairs;
    *pairs = (rn_tensor_t){0};
    args.in = from.data;
    args.columns = args.chunks * k;
    name = (rn_cuda_name_t){"nn/topk/topk_pairs"};
  } while (true);
  *out_width = k;
  return status;
}

// Sorts whole rows, padded to |*out_width| pairs.
static rn_status_t sort_rows(rn_kernel_ctx_t* ctx, const rn_tensor_t* x, int64_t rows,
                             rn_tensor_t* pairs, int64_t* out_width) {
  const int64_t columns = x->count / rows, width = power_from(columns);
  const int64_t chunks = width / RN_TOPK_CHUNK;
  *out_width = width;
  RN_RETURN_IF_ERROR(make_pairs(ctx, rows * width, pairs));
  struct rn_topk_args args = {.in = x->data,
                              .pairs = pairs->data,
                              .rows = rows,
                              .columns = columns,
                              .chunks = chunks,
                              .kept = RN_TOPK_CHUNK,
                              .width = RN_TOPK_CHUNK,
                              .alternates = true};
  const rn_cuda_grid_t grid = blocks_of(rows * chunks, RN_TOPK_CHUNK);
  RN_RETURN_IF_ERROR(
      rn_cuda_launch(ctx, rn_cuda_name("nn/topk/topk", x->dtype).text, grid, &args, sizeof args));
  struct rn_topk_merge_args merge = {.pairs = pairs->data, .rows = rows, .width = width};
  for (merge.size = 2 * RN_TOPK_CHUNK; merge.size <= width; merge.size *= 2) {
    for (merge.distance = merge.size / 2; merge.distance >= RN_TOPK_CHUNK; merge.distance /= 2)
      RN_RETURN_IF_ERROR(
          rn_cuda_each(ctx, "nn/topk/topk_step", rows * width / 2, &merge, sizeof merge));
    RN_RETURN_IF_ERROR(rn_cuda_launch(ctx, "nn/topk/topk_merge", grid, &merge, sizeof merge));
  }
  return RN_OK;
}

static rn_status_t topk(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  int64_t k = 0, width = 0;
  rn_tensor_t *values = NULL, *places = NULL, pairs = {0};
  RN_RETURN_IF_ERROR(rn_topk_outputs(ctx, &k, &values, &places));
  if (values->count == 0) return RN_OK;
  const int64_t rows = values->count / k, columns = x->count / rows;
  rn_status_t status = k <= MOST_KEPT || columns <= RN_TOPK_CHUNK
                           ? select_best(ctx, x, rows, k, &pairs, &width)
                           : sort_rows(ctx, x, rows, &pairs, &width);
  struct rn_topk_finish_args finish = {.pairs = pairs.data,
                                       .in = x->data,
                                       .values = values->data,
                                       .places = places->data,
                                       .rows = rows,
                                       .columns = columns,
                                       .width = width,
                                       .k = k,
                                       .place_size = (i32)rn_dtype_size(places->dtype)};
  if (rn_ok(status))
    status = rn_cuda_each(ctx, rn_cuda_size_name("nn/topk/topk_finish", x->dtype).text, rows * k,
                          &finish, sizeof finish);
  rn_tensor_clear(&pairs);
  return status;
}

static rn_status_t in_topk_init(const rn_kernel_init_t* init, void* state) {
  if (rn_op_attr_index(init->op, RN_STR("k")) >= 0) *(int64_t*)state = rn_init_int(init, "k");
  return RN_OK;
}

static rn_status_t in_topk(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *predictions = rn_in(ctx, 0), *targets = rn_in(ctx, 1);
  const rn_tensor_t* k = ctx->kernel->input_count > 2 ? rn_in(ctx, 2) : NULL;
  if (k && k->rank != 0)
    return rn_invalid_argument("k must be 0-D, got shape %s", rn_text_of(k).text);
  RN_RETURN_IF_ERROR(rn_in_topk_check(predictions, targets));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(targets), &out));
  if (out->count == 0) return RN_OK;
  struct rn_in_topk_args args = {.predictions = predictions->data,
                                 .targets = targets->data,
                                 .given_k = k ? k->data : NULL,
                                 .out = out->data,
                                 .rows = out->count,
                                 .classes = rn_tensor_dim(predictions, 1),
                                 .k = *(const int64_t*)ctx->state,
                                 .is_wide = targets->dtype == RN_INT64};
  return rn_cuda_each(ctx, "nn/topk/in_topk", 32 * args.rows, &args, sizeof args);
}

static const rn_kernel_def_t rows[] = {
    {.op = "TopK",
     .device = "GPU",
     .types = {{"T", RN_TYPES_REAL}},
     .flags = RN_KERNEL_REPLAYS,
     .state_size = sizeof(rn_topk_t),
     .init = rn_topk_init,
     .compute = topk},
    {.op = "TopKV2",
     .device = "GPU",
     .types = {{"T", RN_TYPES_REAL}, {"index_type", RN_T(INT16) | RN_TYPES_INDEX}},
     .host_args = RN_HOST_ARGS("k"),
     .flags = RN_KERNEL_REPLAYS,
     .state_size = sizeof(rn_topk_t),
     .init = rn_topk_init,
     .compute = topk},
    {.op = "InTopK",
     .device = "GPU",
     .types = {{"T", RN_TYPES_INDEX}},
     .flags = RN_KERNEL_REPLAYS,
     .state_size = sizeof(int64_t),
     .init = in_topk_init,
     .compute = in_topk},
    {.op = "InTopKV2",
     .device = "GPU",
     .types = {{"T", RN_TYPES_INDEX}},
     .flags = RN_KERNEL_REPLAYS,
     .state_size = sizeof(int64_t),
     .init = in_topk_init,
     .compute = in_topk},
};
RN_KERNEL_FAMILY(cuda_topk, rows);
