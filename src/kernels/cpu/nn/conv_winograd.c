// Float convolutions with 3 × 3 filters by Winograd's algorithm: see rn_conv_winograd in conv.h.
//
// A tile of 2 × 2 or 4 × 4 pixels of y takes 16 or 36 multiplications per pair of channels instead
// of 36 or 144. At each of the 16 or 36 points, all tiles are one GEMM: tiles times input channels
// times output channels. A piece of work is a block of tiles and channels, which it transforms,
// multiplies and transforms back in the cache. (Lavin and Gray, Fast Algorithms for Convolutional
// Neural Networks, 2015.)
//
// Each element is computed in the same way whatever the blocks are, so the number of threads
// changes no bits. Infinities and NaN spread over the pixels of their tile.
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/conv.h"
#include "kernels/cpu/isa/gemm.h"
#include "kernels/cpu/isa/winograd.h"
#include "kernels/cpu/nn/conv_blocks.h"
#include "kernels/cpu/scratch.h"

// Tiles of a block, and bytes of its points up to which it may have more.
#define BLOCK_TILES 48
#define MOST_BLOCK_TILES 96
#define BLOCK_BYTES (1 << 20)
#define PACK_ROWS 32  // input channels of the filter that a thread packs at a time
// Rough throughput of one core, per nanosecond: operations of the plain and of these convolutions,
// bytes of filters from memory, and elements of a tile that are transformed.
#define PLAIN_FLOPS 150.0
#define FLOPS 140.0
#define BYTES 8.0
#define ELEMENTS 16.0

typedef struct conv_winograd_job_t {
  const rn_conv_t* conv;
  rn_conv_data_t data;
  const rn_conv_extra_t* extra;  // NULL if no steps follow
  const rn_gemm_table_t* gemm;
  const rn_conv_fns_t* fns;
  const rn_winograd_fns_t* transforms;
  int size, points;  // pixels of a side of a tile; points of a tile
  int64_t tiles;
  int64_t strip, channels;  // of the panels: channels are whole strips
  rn_conv_blocks_t blocks;
  float* panels;
  rn_status_t status;  // see rn_keep_first_error
} conv_winograd_job_t;

static int64_t tiles_of(const rn_conv_t* conv, int size) {
  return conv->batch * rn_conv_ceil_div(conv->rows.out, size) *
         rn_conv_ceil_div(conv->columns.out, size);
}

static int64_t block_tiles(const rn_conv_t* conv, int points) {
  int64_t tiles = BLOCK_BYTES / (points * (int64_t)sizeof(float) * conv->in_depth);
  return tiles < BLOCK_TILES ? BLOCK_TILES : rn_conv_least(tiles, MOST_BLOCK_TILES);
}

// Estimated nanoseconds on one core with tiles of |size|, or without Winograd if that is 0.
static double cost(const rn_conv_t* conv, int size) {
  double weights = (double)conv->in_depth * (double)conv->out_depth;
  if (!size) return rn_conv_flops(conv) * (double)conv->batch / PLAIN_FLOPS + 36 * weights / BYTES;
  int points = (size + 2) * (size + 2);
  int64_t tiles = tiles_of(conv, size);
  double passes = (double)rn_conv_ceil_div(tiles, block_tiles(conv, points));
  double channels = (double)(conv->in_depth + conv->out_depth);
  return 2.0 * (double)tiles * points * weights / FLOPS + 4 * points * weights * passes / BYTES +
         (double)tiles * points * channels / ELEMENTS;
}

static bool is_axis_fit(const rn_window_axis_t* axis) {
  return axis->filter == 3 && axis->stride == 1 && axis->dilation == 1;
}

int rn_conv_winograd_size(const rn_conv_t* conv) {
  if (conv->kind != RN_CONV_FORWARD || conv->groups != 1 || !is_axis_fit(&conv->rows) ||
      !is_axis_fit(&conv->columns) || conv->in_depth % RN_WINOGRAD_CHANNELS ||
      conv->out_depth % RN_WINOGRAD_CHANNELS)
    return 0;
  double plain = cost(conv, 0), two = cost(conv, 2), four = cost(conv, 4);
  return four <= two && four < plain ? 4 : two < plain ? 2 : 0;
}

// Runs the steps over the pixels of tile |tile|.
static void follow_tile(const conv_winograd_job_t* job, int64_t tile, int64_t first, int64_t last) {
  const rn_conv_t* conv = job->conv;
  int64_t rows = conv->rows.out, width = conv->columns.out, size = job->size;
  int64_t across = rn_conv_ceil_div(width, size), down = rn_conv_ceil_div(rows, size);
  int64_t top = tile / across % down * size, left = tile % across * size;
  int64_t right = rn_conv_least(left + size, width), image = tile / (across * down) * rows;
  for (int64_t row = top; row < rn_conv_least(top + size, rows); ++row)
    job->fns->follow(job->extra, 0, job->data.y, conv->out_depth, (image + row) * width + left,
                     (image + row) * width + right, first, last);
}

// The memory of a piece: points of x, points of one strip of y, zeros, and what GEMM needs.
typedef struct conv_winograd_memory_t {
  rn_winograd_planes_t x, y;
  float* zeros;
  void* scratch;
} conv_winograd_memory_t;

// Returns its size, and divides what is at |at|; NULL: nothing is there yet.
static size_t place_memory(const conv_winograd_job_t* job, char* at, conv_winograd_memory_t* out) {
  int64_t tiles = job->blocks.rows, depth = job->conv->in_depth;
  out->x.row = rn_conv_odd_lines(depth), out->x.plane = rn_conv_odd_lines(tiles * out->x.row);
  out->y.row = job->strip, out->y.plane = rn_conv_odd_lines(tiles * out->y.row);
  int64_t x = job->points * out->x.plane, y = job->points * out->y.plane;
  int64_t zeros = rn_conv_odd_lines(depth);
  if (at) {
    out->x.data = (float*)at, out->y.data = out->x.data + x, out->zeros = out->y.data + y;
    out->scratch = out->zeros + zeros;
  }
  return (size_t)(x + y + zeros) * sizeof(float) + RN_GEMM_SCRATCH;
}

// One strip of the channels of a block.
static void run_strip(const conv_winograd_job_t* job, const conv_winograd_memory_t* memory,
                      int64_t begin, int64_t end, int64_t first, int64_t n) {
  int64_t depth = job->conv->in_depth;
  rn_gemm_part_t part = {.a_row = memory->x.row,
                         .a_column = 1,
                         .b_column = 1,
                         .c_row = memory->y.row,
                         .m = end - begin,
                         .n = n,
                         .k = depth,
                         .way = RN_GEMM_BLOCKS,
                         .scratch = memory->scratch};
  for (int p = 0; p < job->points; ++p) {
    part.a = memory->x.data + p * memory->x.plane;
    part.c = memory->y.data + p * memory->y.plane;
    part.panels = job->panels + (p * job->channels + first) * depth;
    job->gemm->fn[RN_FLOAT](&part);
  }
  job->transforms->output(job->conv, job->size, memory->y, begin, end, first, n, job->data.y);
  for (int64_t tile = begin; job->extra && tile < end; ++tile)
    follow_tile(job, tile, first, first + n);
}

static void run_blocks(void* arg, int64_t begin, int64_t end) {
  conv_winograd_job_t* job = arg;
  conv_winograd_memory_t memory;
  rn_scratch_t scratch;
  if (!rn_scratch_take(&scratch, place_memory(job, NULL, &memory), &job->status)) return;
  place_memory(job, scratch.at, &memory);
  memset(memory.zeros, 0, (size_t)job->conv->in_depth * sizeof(float));
  for (int64_t i = begin; i < end; ++i) {
    rn_conv_block_t at = rn_conv_block(&job->blocks, i, job->tiles, job->conv->out_depth);
    job->transforms->input(job->conv, job->size, job->data.x, memory.zeros, at.begin, at.end,
                           memory.x);
    for (int64_t first = at.first; first < at.last; first += job->strip)
      run_strip(job, &memory, at.begin, at.end, first, rn_conv_least(job->strip, at.last - first));
  }
  rn_scratch_free(&scratch);
}

// Packs strips, counted over all bands of the depth.
static void pack_strips(void* arg, int64_t begin, int64_t end) {
  const conv_winograd_job_t* job = arg;
  int64_t depth = job->conv->in_depth, strips = job->channels / job->strip;
  for (int64_t i = begin; i < end; ++i) {
    int64_t first = i % strips * job->strip, top = i / strips * PACK_ROWS;
    rn_winograd_planes_t planes = {job->panels + first * depth + top * job->strip, job->strip,
                                   job->channels * depth};
    job->transforms->filter(job->conv, job->size, job->data.w, top,
                            rn_conv_least(top + PACK_ROWS, depth), first,
                            rn_conv_least(job->strip, job->conv->out_depth - first), planes);
  }
}

static void pack(rn_kernel_ctx_t* ctx, void* arg, float* panels) {
  conv_winograd_job_t* job = arg;
  job->panels = panels;
  int64_t bands = rn_conv_ceil_div(job->conv->in_depth, PACK_ROWS);
  rn_pool_for(rn_ctx_pool(ctx), bands * (job->channels / job->strip), 1, pack_strips, job);
}

rn_status_t rn_conv_winograd(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, const rn_conv_t* conv,
                             int size, rn_conv_data_t data, const rn_conv_extra_t* extra) {
  conv_winograd_job_t job = {.conv = conv,
                             .data = data,
                             .extra = extra,
                             .gemm = RN_ISA_PICK(&rn_gemm_),
                             .fns = RN_ISA_PICK(rn_conv_),
                             .transforms = RN_ISA_PICK(rn_winograd_),
                             .size = size,
                             .points = (size + 2) * (size + 2),
                             .tiles = tiles_of(conv, size)};
  job.strip = job.gemm->strip_bytes / (int64_t)sizeof(float);
  job.channels = rn_conv_ceil_div(conv->out_depth, job.strip) * job.strip;
  double flops =
      2.0 * (double)(job.tiles * job.points) * (double)conv->in_depth * (double)conv->out_depth;
  job.blocks = rn_conv_divide(job.tiles, conv->out_depth, flops, job.strip,
                              block_tiles(conv, job.points), rn_pool_threads(rn_ctx_pool(ctx)));
  int64_t count = 0;
  if (!rn_mul_i64_ok(conv->in_depth * job.points, job.channels, &count)) return rn_out_of_memory();
  rn_tensor_t panels = {0};
  RN_RETURN_IF_ERROR(rn_conv_panels(ctx, cache, extra ? extra->filter : NULL,
                                    size == 2 ? RN_CONV_BY_WINOGRAD_2 : RN_CONV_BY_WINOGRAD_4,
                                    count, pack, &job, &panels));
  job.panels = panels.data;
  rn_conv_for_blocks(ctx, conv, &job.blocks, run_blocks, &job);
  rn_tensor_clear(&panels);
  return job.status;
}
