// See conv_blocks.h.
#include "kernels/cpu/nn/conv_blocks.h"

#include "kernels/cpu/array.h"

// Rows of a block are a multiple of a tile's at every ISA level.
#define ROW_UNIT 12
#define LEAST_ROWS 24
// Operations of a piece, about 40 us.
#define PIECE_FLOPS 4e6
#define PIECES_PER_THREAD 4

rn_conv_blocks_t rn_conv_divide(int64_t rows, int64_t columns, double flops, int64_t strip,
                                int64_t most_rows, int threads) {
  rn_conv_blocks_t out;
  int64_t strips = rn_conv_ceil_div(columns, strip);
  int64_t enough = threads > 1 ? PIECES_PER_THREAD * threads : 1;
  double pieces = flops / PIECE_FLOPS;
  int64_t wanted = pieces < 1 ? 1 : pieces < (double)enough ? (int64_t)pieces : enough;
  int64_t down = rn_conv_ceil_div(rows, most_rows);
  out.across = down < wanted ? rn_conv_least(strips, rn_conv_ceil_div(wanted, down)) : 1;
  out.columns = rn_conv_ceil_div(strips, out.across) * strip;
  out.across = rn_conv_ceil_div(columns, out.columns);
  if (down * out.across < wanted) {
    int64_t most = rows / LEAST_ROWS, more = rn_conv_ceil_div(wanted, out.across);
    if (most > down) down = rn_conv_least(more, most);
  }
  out.rows = rn_conv_ceil_div(rn_conv_ceil_div(rows, down), ROW_UNIT) * ROW_UNIT;
  if (out.rows > most_rows) out.rows = most_rows;
  out.count = rn_conv_ceil_div(rows, out.rows) * out.across;
  out.grain = (int64_t)(PIECE_FLOPS * (double)out.count / (flops + 1)) + 1;
  return out;
}

rn_conv_block_t rn_conv_block(const rn_conv_blocks_t* blocks, int64_t i, int64_t rows,
                              int64_t columns) {
  int64_t begin = i / blocks->across * blocks->rows, first = i % blocks->across * blocks->columns;
  return (rn_conv_block_t){begin, rn_conv_least(begin + blocks->rows, rows), first,
                           rn_conv_least(first + blocks->columns, columns)};
}

static bool is_same(const rn_tensor_t* a, const rn_tensor_t* b) {
  return a->data == b->data && a->buffer == b->buffer;
}

// Puts new panels into the cache. What they replace goes to the caller, to be cleared outside the
// lock.
static void keep(rn_conv_cache_t* cache, rn_conv_way_t way, rn_tensor_t* filter,
                 rn_tensor_t* panels, rn_tensor_t old[RN_CONV_WAYS]) {
  for (int i = 0; i < RN_CONV_WAYS; ++i) {
    if (i != (int)way && is_same(&cache->filter, filter)) continue;
    old[i] = cache->panels[i];
    cache->panels[i] = (rn_tensor_t){0};
  }
  cache->panels[way] = *panels;
  rn_tensor_t before = cache->filter;
  cache->filter = *filter;
  *filter = before;
}

rn_status_t rn_conv_panels(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, const rn_tensor_t* filter,
                           rn_conv_way_t way, int64_t count, rn_conv_pack_fn_t pack, void* arg,
                           rn_tensor_t* out) {
  rn_shape_t shape = {1, &count};
  if (!filter) {
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, shape, out));
    pack(ctx, arg, out->data);
    return RN_OK;
  }
  rn_mutex_lock(&cache->mutex);
  rn_status_t status = RN_OK;
  bool is_kept = is_same(&cache->filter, filter) && rn_tensor_is_set(&cache->panels[way]);
  if (is_kept) status = rn_tensor_share(&cache->panels[way], out);
  rn_mutex_unlock(&cache->mutex);
  if (is_kept) return status;
  rn_tensor_t made = {0}, owner = {0}, old[RN_CONV_WAYS] = {0};
  RN_RETURN_IF_ERROR(rn_tensor_create(ctx->kernel->device_memory, RN_FLOAT, shape, &made));
  pack(ctx, arg, made.data);
  status = rn_tensor_share(filter, &owner);
  if (rn_ok(status)) status = rn_tensor_share(&made, out);
  if (!rn_ok(status)) {
    rn_tensor_clear(&made);
    rn_tensor_clear(&owner);
    return status;
  }
  rn_mutex_lock(&cache->mutex);
  keep(cache, way, &owner, &made, old);
  rn_mutex_unlock(&cache->mutex);
  rn_tensor_clear(&owner);
  for (int i = 0; i < RN_CONV_WAYS; ++i) rn_tensor_clear(&old[i]);
  return RN_OK;
}
