// See conv_blocks.h.
#include "kernels/cpu/nn/conv_blocks.h"

#include "kernels/cpu/array.h"

// Rows of a block are a multiple of a tile's at every ISA level, unless they are few.
#define ROW_UNIT 12
#define LEAST_ROWS 8
#define FEW_ROWS 48
// Operations of a piece: about 10 us, but 2 us for many threads, which otherwise get one or two
// pieces each of a small layer, and wait for the last one.
#define PIECE_FLOPS 1e6
#define PIECE_FLOPS_OF_MANY 2e5

rn_conv_blocks_t rn_conv_divide(int64_t rows, int64_t columns, double flops, int64_t strip,
                                int64_t most_rows, int threads) {
  rn_conv_blocks_t out;
  int64_t strips = rn_conv_ceil_div(columns, strip);
  int64_t enough = threads > 1 ? RN_CONV_PIECES_PER_THREAD * threads : 1;
  double each = threads < RN_CONV_MANY_THREADS ? PIECE_FLOPS : PIECE_FLOPS_OF_MANY,
         pieces = flops / each;
  int64_t wanted = pieces < 1 ? 1 : pieces < (double)enough ? (int64_t)pieces : enough;
  int64_t down = rn_conv_ceil_div(rows, most_rows);
  out.across = down < wanted ? rn_conv_least(strips, rn_conv_ceil_div(wanted, down)) : 1;
  out.columns = rn_conv_ceil_div(strips, out.across) * strip;
  out.across = rn_conv_ceil_div(columns, out.columns);
  if (down * out.across < wanted) {
    int64_t most = rows / LEAST_ROWS, more = rn_conv_ceil_div(wanted, out.across);
    if (most > down) down = rn_conv_least(more, most);
  }
  out.rows = rn_conv_ceil_div(rows, down);
  if (out.rows >= FEW_ROWS) out.rows = rn_conv_ceil_div(out.rows, ROW_UNIT) * ROW_UNIT;
  if (out.rows > most_rows) out.rows = most_rows;
  out.count = rn_conv_ceil_div(rows, out.rows) * out.across;
  out.grain = (int64_t)(each * (double)out.count / (flops + 1)) + 1;
  return out;
}

rn_conv_block_t rn_conv_block(const rn_conv_blocks_t* blocks, int64_t i, int64_t rows,
                              int64_t columns) {
  int64_t begin = i / blocks->across * blocks->rows, first = i % blocks->across * blocks->columns;
  return (rn_conv_block_t){begin, rn_conv_least(begin + blocks->rows, rows), first,
                           rn_conv_least(first + blocks->columns, columns)};
}

void rn_conv_for_blocks(rn_kernel_ctx_t* ctx, const rn_conv_t* conv, const rn_conv_blocks_t* blocks,
                        rn_pool_body_t body, void* arg) {
  uint64_t pixels = (uint64_t)(conv->rows.out * conv->columns.out);
  uint64_t depths = (uint64_t)conv->in_depth * 0x10001 + (uint64_t)conv->out_depth;
  rn_pool_run(rn_ctx_pool(ctx), &(rn_pool_work_t){.count = blocks->count,
                                                  .grain = blocks->grain,
                                                  .body = body,
                                                  .arg = arg,
                                                  .kind = pixels * 0x100000001 + depths});
}

typedef struct panels_t {
  rn_conv_pack_fn_t pack;
  void* arg;
} panels_t;

static rn_status_t make_panels(rn_kernel_ctx_t* ctx, void* arg, void* to) {
  const panels_t* panels = arg;
  panels->pack(ctx, panels->arg, to);
  return RN_OK;
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
  panels_t panels = {pack, arg};
  return rn_keeper_get(ctx, &cache->kept, filter, (int)way, RN_FLOAT, shape, make_panels, &panels,
                       out);
}
