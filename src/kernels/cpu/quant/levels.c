// Convolutions and matmuls of 8-bit levels: see levels.h.
//
// Pieces of work are blocks of rows of the result and, if there are few of those, of columns. A
// block of a convolution first copies the patches of its pixels as rows of a matrix, unless the
// images are one already.
#include "kernels/cpu/quant/levels.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "kernels/cpu/first_error.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/quant/fake_quant.h"
#include "kernels/cpu/tiles.h"

#define WIDE RN_LEVELS_WIDE
#define BLOCK_BYTES 98304   // of patches; allocators give larger blocks back to the system at once
#define MOST_ROWS 256       // of a block
#define SUM_ROWS 64         // whose sums are kept before they are finished; up to a quarter more
#define SUM_BYTES 16384     // of pixels of a depthwise convolution
#define PIECE_PRODUCTS 4e6  // of levels
#define FEW_BLOCKS 16       // of rows: columns are divided too
#define PART_STRIPS 4       // of such a piece

const rn_levels_table_t* rn_levels_table(void) { return RN_ISA_PICK(&rn_levels_); }

#ifdef __x86_64__
rn_levels_cpu_t rn_levels_cpu(void) {
  const rn_levels_table_t* table = rn_levels_table();
  unsigned a = 0, b, c = 0, d = 0;
  if (!table->multiply_vnni || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
    return (rn_levels_cpu_t){0};
  bool has_tiles =
      table->multiply_tiles && (d >> 24 & 1) && (d >> 25 & 1) && rn_tiles_are_granted();
  bool has_vnni = c >> 11 & 1;  // AVX512-VNNI; below, AVX-VNNI
  if (!table->multiply_tiles) has_vnni = __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
  return (rn_levels_cpu_t){.has_vnni = has_vnni, .has_tiles = has_tiles};
}
#else
rn_levels_cpu_t rn_levels_cpu(void) { return (rn_levels_cpu_t){0}; }
#endif

rn_levels_scale_t rn_levels_scale(float min, float max) {
  rn_fake_quant_range_t range = rn_fake_quant_range(0, 255, min, max);
  return (rn_levels_scale_t){.least = range.least,
                             .most = range.most,
                             .inverse = range.inverse,
                             .scale = range.scale,
                             .zero = range.zero};
}

static int64_t round_up(int64_t x, int64_t step) { return (x + step - 1) / step * step; }

void rn_levels_weights_clear(rn_levels_weights_t* weights) {
  rn_allocator_t allocator = rn_allocator_default();
  rn_free(allocator, weights->packed, weights->packed_bytes);
  rn_free(allocator, weights->start, weights->column_bytes);
  rn_free(allocator, weights->scale, weights->column_bytes);
  *weights = (rn_levels_weights_t){0};
}

static void pack_strips(const rn_levels_pack_t* pack, rn_levels_weights_t* out) {
  const int8_t* from = pack->w->data;
  int8_t* to = out->packed;
  for (int64_t k = 0; k < pack->k; ++k)
    for (int64_t j = 0; j < pack->n; ++j) {
      int64_t strip = j / RN_LEVELS_STRIP, column = j % RN_LEVELS_STRIP;
      int8_t level = pack->transposed ? from[j * pack->k + k] : from[k * pack->n + j];
      to[strip * RN_LEVELS_STRIP * out->depth + k / 4 * 64 + column * 4 + k % 4] = level;
      out->start[j] += level;
    }
}

static void pack_taps(const rn_levels_pack_t* pack, rn_levels_weights_t* out) {
  const int8_t* from = pack->w->data;
  uint32_t* to = out->packed;
  int8_t* fours = out->packed;
  for (int64_t i = 0; i < pack->k * pack->n; ++i) {
    if (out->has_fours)
      fours[rn_levels_four_at(pack->k, pack->n, i / pack->n, i % pack->n)] = from[i];
    else
      to[i] = (uint16_t)(int16_t)from[i];
    out->start[i % pack->n] += from[i];
  }
}

static rn_status_t allocate(rn_levels_weights_t* out) {
  int64_t columns = round_up(out->n, WIDE), count;
  rn_allocator_t allocator = rn_allocator_default();
  if (!rn_mul_i64_ok(out->is_depthwise ? 4 * columns : columns, out->depth, &count))
    return rn_out_of_memory();
  out->packed_bytes = (size_t)count;
  out->column_bytes = (size_t)columns * 4;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(allocator, out->packed_bytes, &out->packed));
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(allocator, out->column_bytes, (void**)&out->start));
  return rn_alloc_zeroed(allocator, out->column_bytes, (void**)&out->scale);
}

rn_status_t rn_levels_pack(const rn_levels_pack_t* pack, rn_levels_weights_t* out) {
  *out = (rn_levels_weights_t){.is_depthwise = pack->is_depthwise, .k = pack->k, .n = pack->n};
  out->depth = pack->is_depthwise ? pack->k : round_up(pack->k, RN_LEVELS_BLOCK);
  out->has_fours = pack->is_depthwise && pack->cpu.has_vnni && rn_levels_table()->depthwise_vnni;
  if (out->has_fours) out->depth = rn_levels_fours(pack->k);
  rn_status_t status = allocate(out);
  if (!rn_ok(status)) {
    rn_levels_weights_clear(out);
    return status;
  }
  pack->is_depthwise ? pack_taps(pack, out) : pack_strips(pack, out);
  for (int64_t j = 0; j < pack->n; ++j) {
    float low = pack->min[j] / -127, high = pack->max[j] / 127;
    out->scale[j] = pack->x.scale * (low > high ? low : high);
    out->start[j] *= -(int32_t)pack->x.zero;
  }
  return RN_OK;
}

typedef struct levels_job_t {
  const rn_levels_product_t* product;
  const rn_levels_table_t* table;
  rn_levels_multiply_t multiply;
  bool uses_tiles;
  bool is_matrix;      // the images are the rows of A
  int64_t depth;       // of A's rows, as the function wants it
  int64_t block_rows;  // of the result
  int64_t parts, part_strips, strips;
  rn_status_t status;  // see rn_keep_first_error
} levels_job_t;

// The image row and column that a filter's first element is at, and the image, of pixel |row|.
typedef struct pixel_t {
  const uint8_t* image;
  int64_t top, left;
} pixel_t;

static pixel_t pixel_at(const rn_levels_product_t* p, int64_t row) {
  const rn_window_axis_t *rows = &p->rows_axis, *columns = &p->columns_axis;
  int64_t pixels = rows->out * columns->out, within = row % pixels;
  return (pixel_t){.image = p->x + row / pixels * rows->in * columns->in * p->in_depth,
                   .top = within / columns->out * rows->stride - rows->before,
                   .left = within % columns->out * columns->stride - columns->before};
}

// For runs of a few bytes, which are too short for calls.
static inline void copy_bytes(uint8_t* to, const uint8_t* from, int64_t count) {
  if (count >= 64) {
    memcpy(to, from, (size_t)count);
    return;
  }
  for (; count >= 8; count -= 8, to += 8, from += 8) memcpy(to, from, 8);
  if (count & 4) {
    memcpy(to, from, 4);
    to += 4;
    from += 4;
  }
  for (int64_t i = 0; i < (count & 3); ++i) to[i] = from[i];
}

// The pixels [left, left + filter) of an image row, with padding. Windows without gaps only.
static void copy_run(const rn_levels_product_t* p, const uint8_t* image_row, int64_t left,
                     uint8_t* to) {
  const rn_window_axis_t* axis = &p->columns_axis;
  int64_t begin = left < 0 ? -left : 0, end = axis->in - left, depth = p->in_depth;
  if (!begin && end >= axis->filter) {
    copy_bytes(to, image_row + left * depth, axis->filter * depth);
    return;
  }
  if (begin > axis->filter) begin = axis->filter;
  if (end > axis->filter) end = axis->filter;
  if (end < begin) end = begin;
  memset(to, p->zero, (size_t)(begin * depth));
  memcpy(to + begin * depth, image_row + (left + begin) * depth, (size_t)((end - begin) * depth));
  memset(to + end * depth, p->zero, (size_t)((axis->filter - end) * depth));
}

static void copy_patch(const rn_levels_product_t* p, int64_t row, uint8_t* to) {
  const rn_window_axis_t *rows = &p->rows_axis, *columns = &p->columns_axis;
  const int64_t depth = p->in_depth, run = columns->filter * depth;
  pixel_t pixel = pixel_at(p, row);
  for (int64_t i = 0; i < rows->filter; ++i, to += run) {
    int64_t y = pixel.top + i * rows->dilation;
    if (y < 0 || y >= rows->in) {
      memset(to, p->zero, (size_t)run);
      continue;
    }
    const uint8_t* image_row = pixel.image + y * columns->in * depth;
    if (columns->dilation == 1) {
      copy_run(p, image_row, pixel.left, to);
      continue;
    }
    for (int64_t j = 0; j < columns->filter; ++j) {
      int64_t x = pixel.left + j * columns->dilation;
      if (x < 0 || x >= columns->in)
        memset(to + j * depth, p->zero, (size_t)depth);
      else
        memcpy(to + j * depth, image_row + x * depth, (size_t)depth);
    }
  }
}

// Finishes the sums of some rows from |row| on, |columns| columns from |first| on.
static void finish_rows(const levels_job_t* job, int64_t row, int64_t rows, int64_t first,
                        int64_t columns, const int32_t* sums, int64_t sum_step) {
  rn_levels_finish_t f = job->product->finish;
  int64_t step = job->product->weights->n, at = row * step + first;
  f.scale += first;
  if (f.bias) f.bias += first;
  if (f.addend) f.addend += at;
  if (f.addend_levels) f.addend_levels += at;
  if (f.y)
    f.y += at;
  else
    f.y_levels += at;
  job->table->finish(&f, sums, sum_step, rows, columns, step);
}

// Rows [begin, end) of the result, |a| their patches, strips [first, last).
static void run_strips(const levels_job_t* job, const uint8_t* a, int64_t a_step, int64_t begin,
                       int64_t end, int64_t first, int64_t last) {
  const rn_levels_weights_t* w = job->product->weights;
  int32_t sums[(SUM_ROWS + SUM_ROWS / 4) * WIDE] __attribute__((aligned(64)));
  const int64_t strip_bytes = w->depth * RN_LEVELS_STRIP;
  for (int64_t s = first; s < last; s += RN_LEVELS_STRIPS) {
    int64_t column = s * RN_LEVELS_STRIP;
    int strips = last - s < RN_LEVELS_STRIPS ? 1 : RN_LEVELS_STRIPS;
    int64_t columns = strips * RN_LEVELS_STRIP;
    if (columns > w->n - column) columns = w->n - column;
    for (int64_t row = begin, rows; row < end; row += rows) {
      rows = end - row <= SUM_ROWS + SUM_ROWS / 4 ? end - row : SUM_ROWS;
      rn_levels_part_t part = {.a = a + (row - begin) * a_step,
                               .a_step = a_step,
                               .rows = rows,
                               .depth = job->depth,
                               .b = (const int8_t*)w->packed + s * strip_bytes,
                               .b_step = strip_bytes,
                               .strips = strips,
                               .start = w->start + column,
                               .c = sums};
      job->multiply(&part);
      finish_rows(job, row, rows, column, columns, sums, WIDE);
    }
  }
}

static void run_block(const levels_job_t* job, int64_t piece, uint8_t* patches) {
  const rn_levels_product_t* p = job->product;
  int64_t begin = piece / job->parts * job->block_rows, end = begin + job->block_rows;
  int64_t first = piece % job->parts * job->part_strips, last = first + job->part_strips;
  // A short last block would leave tiles without enough rows: it joins the one before.
  if (begin && p->rows - begin < 16) return;
  if (p->rows - end < 16) end = p->rows;
  if (last > job->strips) last = job->strips;
  if (job->is_matrix) {
    run_strips(job, p->x + begin * p->in_depth, p->in_depth, begin, end, first, last);
    return;
  }
  const int64_t k = p->weights->k, rest = job->depth - k;
  for (int64_t row = begin; row < end; ++row) {
    uint8_t* to = patches + (row - begin) * job->depth;
    copy_patch(p, row, to);
    memset(to + k, 0, (size_t)rest);  // its weights are zero, but it is read
  }
  run_strips(job, patches, job->depth, begin, end, first, last);
}

static rn_status_t run_blocks(const levels_job_t* job, int64_t begin, int64_t end) {
  rn_allocator_t allocator = rn_allocator_default();
  size_t bytes = job->is_matrix ? 0 : (size_t)((job->block_rows + 16) * job->depth);
  uint8_t* patches = NULL;
  if (bytes) RN_RETURN_IF_ERROR(rn_alloc(allocator, bytes, (void**)&patches));
  if (job->uses_tiles) job->table->tiles_begin();
  for (int64_t i = begin; i < end; ++i) run_block(job, i, patches);
  if (job->uses_tiles) job->table->tiles_end();
  rn_free(allocator, patches, bytes);
  return RN_OK;
}

static void run_piece(void* arg, int64_t begin, int64_t end) {
  levels_job_t* job = arg;
  rn_status_t status = run_blocks(job, begin, end);
  rn_keep_first_error(&job->status, status);
}

// Layers of other sizes may have as many pieces.
static void run_loop(rn_kernel_ctx_t* ctx, levels_job_t* job, int64_t count, int64_t grain,
                     rn_pool_body_t body) {
  const rn_levels_weights_t* w = job->product->weights;
  uint64_t kind = ((uint64_t)job->product->rows * 0x10001 + (uint64_t)w->k) * 0x10001;
  rn_pool_run(
      rn_ctx_pool(ctx),
      &(rn_pool_work_t){
          .count = count, .grain = grain, .body = body, .arg = job, .kind = kind + (uint64_t)w->n});
}

static rn_status_t run_matrix(rn_kernel_ctx_t* ctx, levels_job_t* job) {
  const rn_levels_product_t* p = job->product;
  const rn_levels_weights_t* w = p->weights;
  const rn_window_axis_t *rows = &p->rows_axis, *columns = &p->columns_axis;
  job->uses_tiles = p->cpu.has_tiles && p->rows >= 16 && w->k >= RN_LEVELS_BLOCK;
  job->multiply = job->uses_tiles   ? job->table->multiply_tiles
                  : p->cpu.has_vnni ? job->table->multiply_vnni
                                    : job->table->multiply;
  job->depth = round_up(w->k, job->uses_tiles ? RN_LEVELS_BLOCK : 4);
  job->is_matrix = rows->filter * columns->filter == 1 && rows->stride * columns->stride == 1 &&
                   rows->in == rows->out && columns->in == columns->out && job->depth == w->k;
  job->strips = (w->n + RN_LEVELS_STRIP - 1) / RN_LEVELS_STRIP;
  job->block_rows = BLOCK_BYTES / job->depth / SUM_ROWS * SUM_ROWS;
  if (job->block_rows < SUM_ROWS) job->block_rows = SUM_ROWS;
  if (job->block_rows > MOST_ROWS) job->block_rows = MOST_ROWS;
  int64_t blocks = (p->rows + job->block_rows - 1) / job->block_rows;
  job->part_strips = blocks < FEW_BLOCKS ? PART_STRIPS : job->strips;
  job->parts = (job->strips + job->part_strips - 1) / job->part_strips;
  int64_t piece_rows = p->rows < job->block_rows ? p->rows : job->block_rows;
  double work = (double)piece_rows * (double)w->k * (double)(job->part_strips * RN_LEVELS_STRIP);
  int64_t grain = work < PIECE_PRODUCTS ? (int64_t)(PIECE_PRODUCTS / work) + 1 : 1;
  run_loop(ctx, job, blocks * job->parts, grain, run_piece);
  return job->status;
}

// The pixels that the taps of one pixel of the result read; |padding| where there is none.
static void find_taps(const rn_levels_product_t* p, pixel_t pixel, const uint8_t* padding,
                      const uint8_t** out) {
  const rn_window_axis_t *rows = &p->rows_axis, *columns = &p->columns_axis;
  for (int64_t i = 0; i < rows->filter; ++i) {
    int64_t row = pixel.top + i * rows->dilation;
    bool is_row = row >= 0 && row < rows->in;
    const uint8_t* from = pixel.image + row * columns->in * p->in_depth;
    for (int64_t j = 0; j < columns->filter; ++j) {
      int64_t at = pixel.left + j * columns->dilation;
      *out++ = is_row && at >= 0 && at < columns->in ? from + at * p->in_depth : padding;
    }
  }
}

// How many pixels of the result, from column |at| on, need no padding; 1 if the first needs some,
// or if it is the last.
static int64_t pixels_inside(const rn_window_axis_t* columns, int64_t at, int64_t most) {
  int64_t left = at * columns->stride - columns->before;
  int64_t last = columns->in - ((columns->filter - 1) * columns->dilation + 1);
  if (left < 0 || left > last) return 1;
  int64_t count = (last - left) / columns->stride + 1, rest = columns->out - at;
  if (count > rest) count = rest;
  return count < most ? count : most;
}

// A depthwise convolution: rows [begin, end) of the images of the result.
static rn_status_t run_pixels(const levels_job_t* job, int64_t begin, int64_t end) {
  const rn_levels_product_t* p = job->product;
  const rn_levels_weights_t* w = p->weights;
  const rn_window_axis_t* columns = &p->columns_axis;
  rn_allocator_t allocator = rn_allocator_default();
  int64_t most = SUM_BYTES / (4 * w->n) + 1;
  // Pointers, then sums, then a pixel of padding.
  size_t taps = (size_t)w->k * sizeof(void*), sums = (size_t)(most * w->n) * sizeof(int32_t);
  size_t bytes = taps + sums + (size_t)w->n;
  char* block = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(allocator, bytes, (void**)&block));
  const uint8_t** x = (const uint8_t**)block;
  int32_t* sum = (int32_t*)(block + taps);
  uint8_t* padding = (uint8_t*)block + taps + sums;
  memset(padding, p->zero, (size_t)w->n);
  rn_levels_taps_t part = {.x = x,
                           .w = w->packed,
                           .fours = w->packed,
                           .start = w->start,
                           .taps = w->k,
                           .channels = w->n};
  for (int64_t row = begin; row < end; ++row) {
    pixel_t pixel = pixel_at(p, row * columns->out);
    bool is_inside =
        pixel.top >= 0 &&
        pixel.top + (p->rows_axis.filter - 1) * p->rows_axis.dilation < p->rows_axis.in;
    for (int64_t at = 0; at < columns->out; at += part.pixels) {
      part.pixels = is_inside ? pixels_inside(columns, at, most) : 1;
      part.step = columns->stride * p->in_depth;
      find_taps(p, pixel, padding, x);
      if (w->has_fours)
        job->table->depthwise_vnni(&part, sum);
      else
        job->table->depthwise(&part, sum);
      finish_rows(job, row * columns->out + at, part.pixels, 0, w->n, sum, w->n);
      pixel.left += part.pixels * columns->stride;
    }
  }
  rn_free(allocator, block, bytes);
  return RN_OK;
}

static void run_pixels_piece(void* arg, int64_t begin, int64_t end) {
  levels_job_t* job = arg;
  rn_status_t status = run_pixels(job, begin, end);
  rn_keep_first_error(&job->status, status);
}

rn_status_t rn_levels_product(rn_kernel_ctx_t* ctx, const rn_levels_product_t* product) {
  levels_job_t job = {.product = product, .table = rn_levels_table()};
  const rn_levels_weights_t* w = product->weights;
  if (!w->is_depthwise) return run_matrix(ctx, &job);
  // A tap of a channel takes about as long as ten products of a matmul.
  int64_t out = product->columns_axis.out;
  double work = 10.0 * (double)w->k * (double)w->n * (double)out;
  run_loop(ctx, &job, product->rows / out, (int64_t)(PIECE_PRODUCTS / work) + 1, run_pixels_piece);
  return job.status;
}
