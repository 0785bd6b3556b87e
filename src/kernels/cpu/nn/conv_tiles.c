// Float convolutions by the tiles of GEMM: see rn_conv_tiles in conv.h.
//
// y is a matrix of pixels times channels. A piece of work is a block of it; its columns come from
// panels of the filter, packed once per call or once per filter. The rows of the other operand, the
// patches of the pixels, are copied next to each other, one block of the depth at a time, so that
// they stay in the cache; a 1 × 1 convolution reads them where they lie. The steps after the
// convolution run while the block is in the cache.
//
// Each element is one chain of operations in the order of the patch, whatever the blocks are, so
// the number of threads, which decides about them, changes no bits.
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/conv.h"
#include "kernels/cpu/isa/gemm.h"
#include "kernels/cpu/nn/conv_blocks.h"
#include "kernels/cpu/scratch.h"

#define BLOCK_ROWS 96
// Elements that a thread packs at a time.
#define PACK_ELEMENTS (1 << 16)

typedef struct conv_tiles_job_t {
  const rn_conv_t* conv;
  rn_conv_data_t data;
  const rn_conv_extra_t* extra;  // NULL if no steps follow
  const rn_gemm_table_t* gemm;
  const rn_conv_fns_t* fns;
  int64_t pixels, patch;
  int64_t strip, channels;  // of the panels: channels are whole strips
  int64_t depth;            // of a block of the patch
  bool is_matrix;           // patches lie next to each other in x
  rn_conv_blocks_t blocks;
  float* panels;
  rn_status_t status;  // see rn_keep_first_error
} conv_tiles_job_t;

// The last block of the depth: one strip of the channels after the other, each with the steps that
// follow, which then find it in the L1 cache.
static void run_last(const conv_tiles_job_t* job, rn_conv_block_t block, rn_gemm_part_t part) {
  const float* panels = part.panels;
  float *y = job->data.y, *c = part.c;
  for (int64_t first = block.first; first < block.last; first += job->strip) {
    int64_t last = rn_conv_least(first + job->strip, block.last);
    part.n = last - first;
    part.panels = panels + (first - block.first) * part.k;
    part.c = c + (first - block.first);
    job->gemm->fn[RN_FLOAT](&part);
    job->fns->follow(job->extra, 0, y, job->conv->out_depth, block.begin, block.end, first, last);
  }
}

static void run_block(const conv_tiles_job_t* job, rn_conv_block_t block, float* patches,
                      void* scratch) {
  const rn_conv_t* conv = job->conv;
  rn_gemm_part_t part = {.a_row = job->is_matrix ? job->patch : rn_conv_odd_lines(job->depth),
                         .a_column = 1,
                         .b_column = 1,
                         .c = (float*)job->data.y + block.begin * conv->out_depth + block.first,
                         .c_row = conv->out_depth,
                         .m = block.end - block.begin,
                         .n = block.last - block.first,
                         .way = RN_GEMM_BLOCKS,
                         .scratch = scratch};
  for (int64_t p = 0; p < job->patch; p += job->depth) {
    part.k = rn_conv_least(job->depth, job->patch - p);
    part.a = job->is_matrix ? (const float*)job->data.x + block.begin * job->patch + p : patches;
    part.panels = job->panels + p * job->channels + block.first * part.k;
    part.adds = p > 0;
    if (!job->is_matrix)
      job->fns->patches(conv, job->data.x, block.begin, block.end, p, p + part.k, patches,
                        part.a_row);
    if (job->extra && p + part.k == job->patch)
      run_last(job, block, part);
    else
      job->gemm->fn[RN_FLOAT](&part);
  }
}

static void run_blocks(void* arg, int64_t begin, int64_t end) {
  conv_tiles_job_t* job = arg;
  int64_t floats = job->is_matrix ? 0 : job->blocks.rows * rn_conv_odd_lines(job->depth);
  size_t patches = (size_t)floats * sizeof(float);
  rn_scratch_t memory;
  if (!rn_scratch_take(&memory, RN_GEMM_SCRATCH + patches, &job->status)) return;
  for (int64_t i = begin; i < end; ++i)
    run_block(job, rn_conv_block(&job->blocks, i, job->pixels, job->conv->out_depth),
              (float*)memory.at, memory.at + patches);
  rn_scratch_free(&memory);
}

// Packs strips, counted over all blocks of the depth.
static void pack_strips(void* arg, int64_t begin, int64_t end) {
  const conv_tiles_job_t* job = arg;
  int64_t strips = job->channels / job->strip, n = job->conv->out_depth;
  for (int64_t i = begin; i < end; ++i) {
    int64_t p = i / strips * job->depth, first = i % strips * job->strip;
    int64_t k = rn_conv_least(job->depth, job->patch - p);
    rn_gemm_part_t part = {.b = (const float*)job->data.w + p * n + first,
                           .b_row = n,
                           .b_column = 1,
                           .n = rn_conv_least(job->strip, n - first),
                           .k = k};
    job->gemm->pack_f32(&part, job->panels + p * job->channels + first * k);
  }
}

static void pack(rn_kernel_ctx_t* ctx, void* arg, float* panels) {
  conv_tiles_job_t* job = arg;
  job->panels = panels;
  int64_t strips = job->channels / job->strip * rn_conv_ceil_div(job->patch, job->depth);
  rn_pool_for(rn_ctx_pool(ctx), strips, rn_conv_ceil_div(PACK_ELEMENTS, job->strip * job->depth),
              pack_strips, job);
}

bool rn_conv_tiles_fit(const rn_conv_t* conv) {
  return conv->kind == RN_CONV_FORWARD && conv->groups == 1;
}

rn_status_t rn_conv_tiles(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, const rn_conv_t* conv,
                          rn_conv_data_t data, const rn_conv_extra_t* extra) {
  conv_tiles_job_t job = {
      .conv = conv,
      .data = data,
      .extra = extra,
      .gemm = RN_ISA_PICK(&rn_gemm_),
      .fns = RN_ISA_PICK(rn_conv_),
      .pixels = conv->batch * conv->rows.out * conv->columns.out,
      .patch = conv->rows.filter * conv->columns.filter * conv->in_depth,
      .is_matrix = rn_conv_is_whole_axis(&conv->rows) && rn_conv_is_whole_axis(&conv->columns)};
  job.strip = job.gemm->strip_bytes / (int64_t)sizeof(float);
  job.channels = rn_conv_ceil_div(conv->out_depth, job.strip) * job.strip;
  job.depth = rn_conv_ceil_div(job.patch, rn_conv_ceil_div(job.patch, RN_GEMM_BLOCK_DEPTH));
  job.blocks =
      rn_conv_divide(job.pixels, conv->out_depth, rn_conv_flops(conv) * (double)conv->batch,
                     job.strip, BLOCK_ROWS, rn_pool_threads(rn_ctx_pool(ctx)));
  rn_tensor_t panels = {0};
  int64_t count = 0;
  if (!rn_mul_i64_ok(job.patch, job.channels, &count)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(rn_conv_panels(ctx, cache, extra ? extra->filter : NULL, RN_CONV_BY_TILES,
                                    count, pack, &job, &panels));
  job.panels = panels.data;
  rn_conv_for_blocks(ctx, conv, &job.blocks, run_blocks, &job);
  rn_tensor_clear(&panels);
  return job.status;
}
