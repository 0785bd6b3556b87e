// The gradient of a convolution's filter, in float, by the tiles of GEMM: see rn_conv_filter in
// conv.h.
//
// The gradient is a matrix, elements of the patch times channels of y, and each of its elements a
// sum over all pixels. A piece of work is a block of it over a slice of the pixels. There is more
// than one slice only if the blocks are few; each but the first then sums into a matrix of its own,
// and these are added in the end. A piece takes some pixels at a time: their patches, copied next
// to each other (a 1 × 1 convolution reads them where they lie), and their y, packed into panels.
//
// Blocks and slices depend on the sizes alone, so the number of threads changes no bits.
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/conv.h"
#include "kernels/cpu/isa/gemm.h"
#include "kernels/cpu/nn/conv_blocks.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/vector.h"

// The most rows and columns of a block, and the pixels at a time, so that the copies stay in the
// second-level cache. Rows are a multiple of a tile's at every ISA level.
#define BLOCK_ROWS 144
#define ROW_UNIT 12
#define BLOCK_COLUMNS 256
#define PIXELS 256
// As many pieces keep 16 threads evenly busy. A piece has at least this many operations, about 40
// us, and a slice this many pixels.
#define MOST_PIECES 64
#define PIECE_FLOPS 4e6
#define LEAST_PIXELS (2 * PIXELS)
#define SUM_ELEMENTS (1 << 14)
#define LEAST_IN_DEPTH 16
#define LEAST_OUT_DEPTH 128

typedef struct conv_filter_job_t {
  const rn_conv_t* conv;
  rn_conv_data_t data;
  const rn_gemm_table_t* gemm;
  const rn_conv_fns_t* fns;
  int64_t pixels, patch;
  bool is_matrix;         // patches lie next to each other in x
  int64_t rows, columns;  // of a block
  int64_t down, across;   // blocks of the gradient
  int64_t slices, slice;  // slices, and pixels of each
  float* parts;           // the gradients of all slices but the first
  rn_status_t status;     // see rn_keep_first_error
} conv_filter_job_t;

// Divides |length| into at most |most| equal parts of a multiple of |unit|; returns their length.
static int64_t even_part(int64_t length, int64_t most, int64_t unit) {
  int64_t parts = rn_conv_ceil_div(length, most);
  return rn_conv_ceil_div(rn_conv_ceil_div(length, parts), unit) * unit;
}

static void divide(conv_filter_job_t* job) {
  int64_t strip = job->gemm->strip_bytes / (int64_t)sizeof(float), n = job->conv->out_depth;
  job->rows = even_part(job->patch, BLOCK_ROWS, ROW_UNIT);
  job->columns = even_part(n, BLOCK_COLUMNS, strip);
  job->down = rn_conv_ceil_div(job->patch, job->rows);
  job->across = rn_conv_ceil_div(n, job->columns);
  double pieces = rn_conv_flops(job->conv) * (double)job->conv->batch / PIECE_FLOPS;
  int64_t wanted = pieces < MOST_PIECES ? (int64_t)pieces : MOST_PIECES;
  int64_t slices = rn_conv_ceil_div(wanted, job->down * job->across);
  slices = rn_conv_least(slices, job->pixels / LEAST_PIXELS);
  job->slice = rn_conv_ceil_div(job->pixels, slices > 1 ? slices : 1);
  job->slices = rn_conv_ceil_div(job->pixels, job->slice);
}

// The memory of a piece: patches, panels of y, and what GEMM needs.
typedef struct conv_filter_memory_t {
  float *patches, *panels;
  int64_t patch_row;
  void* scratch;
} conv_filter_memory_t;

// Returns its size, and divides what is at |at|; NULL: nothing is there yet.
static size_t place_memory(const conv_filter_job_t* job, char* at, conv_filter_memory_t* out) {
  out->patch_row = rn_conv_odd_lines(job->rows);
  int64_t patches = job->is_matrix ? 0 : PIXELS * out->patch_row;
  int64_t panels = PIXELS * (job->columns + job->gemm->strip_bytes / (int64_t)sizeof(float));
  if (at) {
    out->patches = (float*)at;
    out->panels = out->patches + patches;
    out->scratch = out->panels + panels;
  }
  return (size_t)(patches + panels) * sizeof(float) + RN_GEMM_SCRATCH;
}

// Adds what |count| pixels from |pixel| on contribute to the block of |part|.
static void add_pixels(const conv_filter_job_t* job, const conv_filter_memory_t* memory,
                       rn_conv_block_t block, int64_t pixel, int64_t count, rn_gemm_part_t part) {
  const rn_conv_t* conv = job->conv;
  const float* x = job->data.x;
  part.k = count;
  part.a = job->is_matrix ? x + pixel * job->patch + block.begin : memory->patches;
  part.a_column = job->is_matrix ? job->patch : memory->patch_row;
  if (!job->is_matrix)
    job->fns->patches(conv, x, pixel, pixel + count, block.begin, block.end, memory->patches,
                      memory->patch_row);
  part.b = (const float*)job->data.y + pixel * conv->out_depth + block.first;
  job->gemm->pack_f32(&part, memory->panels);
  part.panels = memory->panels;
  job->gemm->fn[RN_FLOAT](&part);
}

static void run_piece(const conv_filter_job_t* job, const conv_filter_memory_t* memory, int64_t i) {
  int64_t n = job->conv->out_depth, slice = i / (job->down * job->across);
  int64_t begin = i / job->across % job->down * job->rows, first = i % job->across * job->columns;
  rn_conv_block_t block = {begin, rn_conv_least(begin + job->rows, job->patch), first,
                           rn_conv_least(first + job->columns, n)};
  float* sums = slice ? job->parts + (slice - 1) * job->patch * n : job->data.w;
  rn_gemm_part_t part = {.a_row = 1,
                         .b_row = n,
                         .b_column = 1,
                         .c = sums + block.begin * n + block.first,
                         .c_row = n,
                         .m = block.end - block.begin,
                         .n = block.last - block.first,
                         .way = RN_GEMM_BLOCKS,
                         .scratch = memory->scratch};
  int64_t pixel = slice * job->slice, end = rn_conv_least(pixel + job->slice, job->pixels);
  for (; pixel < end; pixel += PIXELS, part.adds = true)
    add_pixels(job, memory, block, pixel, rn_conv_least(PIXELS, end - pixel), part);
}

static void run_pieces(void* arg, int64_t begin, int64_t end) {
  conv_filter_job_t* job = arg;
  conv_filter_memory_t memory;
  rn_scratch_t scratch;
  if (!rn_scratch_take(&scratch, place_memory(job, NULL, &memory), &job->status)) return;
  place_memory(job, scratch.at, &memory);
  for (int64_t i = begin; i < end; ++i) run_piece(job, &memory, i);
  rn_scratch_free(&scratch);
}

static void add_slices(void* arg, int64_t begin, int64_t end) {
  const conv_filter_job_t* job = arg;
  int64_t size = job->patch * job->conv->out_depth;
  float* sum = (float*)job->data.w + begin;
  for (int64_t s = 1; s < job->slices; ++s)
    rn_vector_run(RN_VECTOR_ADD, RN_FLOAT, sum, 1, job->parts + (s - 1) * size + begin, 1, sum,
                  end - begin);
}

static bool is_matrix(const rn_conv_t* conv) {
  return rn_conv_is_whole_axis(&conv->rows) && rn_conv_is_whole_axis(&conv->columns);
}

// With few channels, copying the patches takes too large a part of the time.
bool rn_conv_filter_fits(const rn_conv_t* conv) {
  return conv->kind == RN_CONV_FILTER && conv->groups == 1 && conv->in_depth >= LEAST_IN_DEPTH &&
         (is_matrix(conv) || conv->out_depth >= LEAST_OUT_DEPTH);
}

rn_status_t rn_conv_filter(rn_kernel_ctx_t* ctx, const rn_conv_t* conv, rn_conv_data_t data) {
  conv_filter_job_t job = {.conv = conv,
                           .data = data,
                           .gemm = RN_ISA_PICK(&rn_gemm_),
                           .fns = RN_ISA_PICK(rn_conv_),
                           .pixels = conv->batch * conv->rows.out * conv->columns.out,
                           .patch = conv->rows.filter * conv->columns.filter * conv->in_depth,
                           .is_matrix = is_matrix(conv)};
  divide(&job);
  rn_tensor_t parts = {0};
  int64_t size = job.patch * conv->out_depth, count = 0;
  if (!rn_mul_i64_ok(size, job.slices - 1, &count)) return rn_out_of_memory();
  if (count) RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &count}, &parts));
  job.parts = parts.data;
  rn_conv_blocks_t blocks = {.count = job.slices * job.down * job.across, .grain = 1};
  rn_conv_for_blocks(ctx, conv, &blocks, run_pieces, &job);
  if (rn_ok(job.status) && count)
    rn_pool_for(rn_ctx_pool(ctx), size, SUM_ELEMENTS, add_slices, &job);
  rn_tensor_clear(&parts);
  return job.status;
}
