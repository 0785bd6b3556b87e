// Convolutions of bfloat16 by the products of kernels/cpu/bf16.h: see rn_conv_bf16 in conv.h.
//
// All three kinds gather: a pixel of the result reads the same taps around its place.
//   y: the pixels' patches of x, times w.
//   x's gradient: patches of y's gradient, times w, turned around and transposed. With a stride,
//   the
//     pixels of x are divided into phases, and each phase reads the taps that meet it.
//   w's gradient: the transposed patches of x, times y's gradient.
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/conv.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/nn/conv_blocks.h"
#include "kernels/cpu/vector.h"

#define WIDE RN_BF16_WIDE

// One axis: tap t of pixel i reads position i * step + first + t * gap of |in|, if there is one.
typedef struct tap_axis_t {
  int64_t out, taps, in, step, first, gap;
  // For the gradient of x: tap t is element |filter| - t * |filter_gap| of the filter, and pixel i
  // is position |phase| + i * |stride|.
  int64_t filter, filter_gap, phase, stride;
} tap_axis_t;

typedef struct conv_bf16_job_t {
  const rn_conv_t* conv;
  rn_conv_data_t data;
  const rn_conv_extra_t* extra;  // NULL if no steps follow
  const rn_conv_fns_t* fns;
  // What is gathered: images of |channels|.
  const uint16_t* image;
  int64_t channels;
  tap_axis_t rows, columns;
  bool is_matrix;     // a pixel reads one position, its own
  const uint16_t* b;  // n columns
  int64_t n;
  uint16_t* result;
} conv_bf16_job_t;

static tap_axis_t forward_axis(const rn_window_axis_t* axis) {
  return (tap_axis_t){.out = axis->out,
                      .taps = axis->filter,
                      .in = axis->in,
                      .step = axis->stride,
                      .first = -axis->before,
                      .gap = axis->dilation,
                      .stride = 1};
}

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

// The positions of x that are |phase| plus a multiple of the stride, and the elements of the filter
// that connect them with y, the last one first.
static tap_axis_t backward_axis(const rn_window_axis_t* axis, int64_t phase) {
  const int64_t divisor = common_divisor(axis->stride, axis->dilation);
  tap_axis_t out = {.out = axis->in > phase ? (axis->in - 1 - phase) / axis->stride + 1 : 0,
                    .in = axis->out,
                    .step = 1,
                    .gap = axis->dilation / divisor,
                    .filter_gap = axis->stride / divisor,
                    .phase = phase,
                    .stride = axis->stride};
  for (int64_t r = 0; r < axis->filter; ++r) {
    int64_t offset = phase + axis->before - r * axis->dilation;
    if (offset % axis->stride) continue;
    out.filter = r;
    out.first = offset / axis->stride;
    ++out.taps;
  }
  return out;
}

static void copy_elements(uint16_t* to, const uint16_t* from, int64_t count) {
  if (count >= 32) {
    memcpy(to, from, (size_t)count * sizeof *to);
    return;
  }
  for (; count >= 4; count -= 4, to += 4, from += 4) memcpy(to, from, 4 * sizeof *to);
  for (int64_t i = 0; i < count; ++i) to[i] = from[i];
}

static int64_t within(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}

// Elements [first, last) of what one row of taps reads from |row| of an image, NULL outside of it;
// |left| is where the first tap is.
static void gather_row(const conv_bf16_job_t* job, const uint16_t* row, int64_t left, int64_t first,
                       int64_t last, uint16_t* to) {
  const tap_axis_t* axis = &job->columns;
  const int64_t depth = job->channels;
  if (row && axis->gap == 1) {
    int64_t begin = within(-left * depth, first, last);
    int64_t end = within((axis->in - left) * depth, begin, last);
    memset(to, 0, (size_t)(begin - first) * sizeof *to);
    copy_elements(to + (begin - first), row + left * depth + begin, end - begin);
    memset(to + (end - first), 0, (size_t)(last - end) * sizeof *to);
    return;
  }
  for (int64_t at = first; at < last;) {
    int64_t tap = at / depth, column = left + tap * axis->gap;
    int64_t count = rn_conv_least((tap + 1) * depth, last) - at;
    if (row && column >= 0 && column < axis->in)
      copy_elements(to, row + column * depth + (at - tap * depth), count);
    else
      memset(to, 0, (size_t)count * sizeof *to);
    to += count;
    at += count;
  }
}

// Elements [first, last) of the patches of some pixels, |step| apart.
static void gather(const conv_bf16_job_t* job, int64_t pixel, int64_t count, int64_t first,
                   int64_t last, uint16_t* to, int64_t step) {
  const tap_axis_t *rows = &job->rows, *columns = &job->columns;
  const int64_t span = columns->taps * job->channels, width = columns->in * job->channels;
  int64_t x = pixel % columns->out, y = pixel / columns->out % rows->out;
  int64_t image = pixel / columns->out / rows->out;
  for (int64_t i = 0; i < count; ++i, to += step) {
    const int64_t left = x * columns->step + columns->first;
    uint16_t* at = to;
    for (int64_t t = first / span; t * span < last; ++t) {
      const int64_t row = y * rows->step + rows->first + t * rows->gap;
      const int64_t begin = first > t * span ? first - t * span : 0;
      const int64_t end = rn_conv_least(last - t * span, span);
      const bool is_inside = row >= 0 && row < rows->in;
      gather_row(job, is_inside ? job->image + (image * rows->in + row) * width : NULL, left, begin,
                 end, at);
      at += end - begin;
    }
    if (++x < columns->out) continue;
    x = 0;
    if (++y < rows->out) continue;
    y = 0;
    ++image;
  }
}

// Rows of A: patches.
static const uint16_t* patch_rows(const rn_bf16_way_t* way, void* arg, int64_t row, int64_t rows,
                                  int64_t at, int64_t depth, uint16_t* to, int64_t* step,
                                  void* scratch) {
  (void)scratch;
  const conv_bf16_job_t* job = arg;
  if (job->is_matrix) {
    rn_bf16_pack_t pack = {.from = job->image + row * job->channels + at,
                           .step = job->channels,
                           .is_along = true,
                           .lines = rows,
                           .depth = depth,
                           .to = to,
                           .to_step = *step};
    way->table->pack_rows(&pack);
    return to;
  }
  gather(job, row, rows, at, at + depth, to, *step);
  const int64_t filled = rn_conv_ceil_div(depth, RN_BF16_BLOCK) * RN_BF16_BLOCK;
  for (int64_t i = 0; i < rows && filled > depth; ++i)
    memset(to + i * *step + depth, 0, (size_t)(filled - depth) * sizeof *to);
  for (int64_t i = rows; i % 16; ++i) memset(to + i * *step, 0, (size_t)filled * sizeof *to);
  return to;
}

// Rows of A for the gradient of w: elements of the patches, one after the other over all pixels.
static const uint16_t* element_rows(const rn_bf16_way_t* way, void* arg, int64_t row, int64_t rows,
                                    int64_t at, int64_t depth, uint16_t* to, int64_t* step,
                                    void* scratch) {
  const conv_bf16_job_t* job = arg;
  rn_bf16_pack_t pack = {.from = scratch,
                         .step = rows,
                         .is_along = false,
                         .lines = rows,
                         .depth = depth,
                         .to = to,
                         .to_step = *step};
  if (job->is_matrix) {
    pack.from = job->image + at * job->channels + row;
    pack.step = job->channels;
  } else {
    gather(job, at, depth, row, row + rows, scratch, rows);
  }
  way->table->pack_rows(&pack);
  return to;
}

static void columns_of(const rn_bf16_way_t* way, void* arg, int64_t first, int64_t last, int64_t at,
                       int64_t depth, uint16_t* to, int64_t step) {
  const conv_bf16_job_t* job = arg;
  rn_bf16_pack_t pack = {.from = job->b + at * job->n + first,
                         .step = job->n,
                         .is_along = false,
                         .lines = last - first,
                         .depth = depth,
                         .to = to,
                         .to_step = step};
  way->table->pack_columns(&pack);
}

// Runs the steps over a block of y. An operand as large as y is bfloat16: its block is widened.
static void follow(const conv_bf16_job_t* job, float* sums, int64_t row, int64_t rows,
                   int64_t first, int64_t columns) {
  float wide[RN_BF16_SUM_ROWS * WIDE];
  rn_conv_extra_t some = {.step_count = 0};
  const int64_t all = job->conv->batch * rn_conv_y_size(job->conv);
  bool has_wide = false;
  for (int32_t i = 0; i < job->extra->step_count; ++i) {
    rn_conv_step_t step = job->extra->steps[i];
    if (step.operand && step.count > 1 && step.count == job->n) {
      step.operand += first;
      step.count = WIDE;
    } else if (step.operand && step.count > 1 && step.count == all) {
      if (has_wide) job->fns->follow(&some, 0, sums, WIDE, 0, rows, 0, columns);
      if (has_wide) some.step_count = 0;
      has_wide = true;
      const uint16_t* from = (const uint16_t*)step.operand + row * job->n + first;
      for (int64_t r = 0; r < rows; ++r)
        rn_vector_table()->widen_bfloat16(from + r * job->n, wide + r * WIDE, columns);
      step.operand = wide;
      step.count = RN_BF16_SUM_ROWS * WIDE;
    }
    some.steps[some.step_count++] = step;
  }
  job->fns->follow(&some, 0, sums, WIDE, 0, rows, 0, columns);
}

static void finish(const rn_bf16_way_t* way, void* arg, float* sums, int64_t row, int64_t rows,
                   int64_t first, int64_t columns) {
  const conv_bf16_job_t* job = arg;
  if (job->extra) follow(job, sums, row, rows, first, columns);
  way->table->narrow(sums, WIDE, rows, columns, job->result + row * job->n + first, job->n);
}

// The pixels of a phase lie apart.
static void finish_phase(const rn_bf16_way_t* way, void* arg, float* sums, int64_t row,
                         int64_t rows, int64_t first, int64_t columns) {
  const conv_bf16_job_t* job = arg;
  const rn_conv_t* conv = job->conv;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t x = (row + i) % job->columns.out;
    const int64_t y = (row + i) / job->columns.out % job->rows.out;
    const int64_t image = (row + i) / job->columns.out / job->rows.out;
    const int64_t line =
        image * conv->rows.in + job->rows.phase + y * job->rows.stride;  // of all images
    const int64_t pixel = line * conv->columns.in + job->columns.phase + x * job->columns.stride;
    way->table->narrow(sums + i * WIDE, WIDE, 1, columns, job->result + pixel * job->n + first,
                       job->n);
  }
}

static bool reads_itself(const tap_axis_t* axis) {
  return axis->taps == 1 && axis->step == 1 && axis->first == 0 && axis->out == axis->in;
}

typedef struct pack_arg_t {
  const rn_bf16_way_t* way;
  const rn_bf16_product_t* product;
} pack_arg_t;

static void pack_filter(rn_kernel_ctx_t* ctx, void* arg, float* panels) {
  const pack_arg_t* pack = arg;
  rn_bf16_pack(rn_ctx_pool(ctx), pack->way, pack->product, (uint16_t*)panels);
}

static rn_status_t run_forward(rn_kernel_ctx_t* ctx, const rn_bf16_way_t* way,
                               rn_conv_cache_t* cache, conv_bf16_job_t* job) {
  const rn_conv_t* conv = job->conv;
  job->image = job->data.x;
  job->channels = conv->in_depth;
  job->rows = forward_axis(&conv->rows);
  job->columns = forward_axis(&conv->columns);
  job->is_matrix = reads_itself(&job->rows) && reads_itself(&job->columns);
  job->b = job->data.w;
  job->n = conv->out_depth;
  job->result = job->data.y;
  rn_bf16_product_t product = {.m = conv->batch * conv->rows.out * conv->columns.out,
                               .n = job->n,
                               .k = conv->rows.filter * conv->columns.filter * conv->in_depth,
                               .arg = job,
                               .rows = patch_rows,
                               .columns = columns_of,
                               .finish = finish};
  if (!job->extra || !job->extra->filter) return rn_bf16_product(rn_ctx_pool(ctx), way, &product);
  int64_t count = 0;
  if (!rn_bf16_panels_count(product.n, product.k, &count)) return rn_out_of_memory();
  rn_tensor_t panels = {0};
  pack_arg_t pack = {way, &product};
  RN_RETURN_IF_ERROR(rn_conv_panels(ctx, cache, job->extra->filter, RN_CONV_BY_BF16, count / 2,
                                    pack_filter, &pack, &panels));
  product.panels = panels.data;
  rn_status_t status = rn_bf16_product(rn_ctx_pool(ctx), way, &product);
  rn_tensor_clear(&panels);
  return status;
}

// Writes the filter's taps of a phase, each transposed, one after the other.
static rn_status_t turn_filter(rn_kernel_ctx_t* ctx, const conv_bf16_job_t* job, uint16_t* to) {
  const rn_conv_t* conv = job->conv;
  const int64_t in = conv->in_depth, out = conv->out_depth;
  for (int64_t i = 0; i < job->rows.taps; ++i)
    for (int64_t j = 0; j < job->columns.taps; ++j, to += in * out) {
      int64_t row = job->rows.filter - i * job->rows.filter_gap;
      int64_t column = job->columns.filter - j * job->columns.filter_gap;
      rn_move_t move;
      rn_move_begin(&move);
      rn_move_add(&move, out, 1, in);
      rn_move_add(&move, in, out, 1);
      RN_RETURN_IF_ERROR(rn_move_run(
          &move, rn_ctx_pool(ctx), RN_BFLOAT16,
          (uint16_t*)job->data.w + (row * conv->columns.filter + column) * in * out, to));
    }
  return RN_OK;
}

static rn_status_t run_phase(rn_kernel_ctx_t* ctx, const rn_bf16_way_t* way, conv_bf16_job_t* job,
                             uint16_t* filter) {
  const rn_conv_t* conv = job->conv;
  job->is_matrix = reads_itself(&job->rows) && reads_itself(&job->columns);
  RN_RETURN_IF_ERROR(turn_filter(ctx, job, filter));
  const bool is_whole = job->rows.stride == 1 && job->columns.stride == 1;
  rn_bf16_product_t product = {.m = conv->batch * job->rows.out * job->columns.out,
                               .n = job->n,
                               .k = job->rows.taps * job->columns.taps * job->channels,
                               .arg = job,
                               .rows = patch_rows,
                               .columns = columns_of,
                               .finish = is_whole ? finish : finish_phase};
  return rn_bf16_product(rn_ctx_pool(ctx), way, &product);
}

static rn_status_t run_input(rn_kernel_ctx_t* ctx, const rn_bf16_way_t* way, conv_bf16_job_t* job) {
  const rn_conv_t* conv = job->conv;
  rn_tensor_t filter = {0};
  const int64_t count = rn_conv_w_size(conv);
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_BFLOAT16, (rn_shape_t){1, &count}, &filter));
  job->image = job->data.y;
  job->channels = conv->out_depth;
  job->b = filter.data;
  job->n = conv->in_depth;
  job->result = job->data.x;
  // Where no tap meets a phase, the gradient is zero.
  memset(job->data.x, 0, (size_t)(conv->batch * rn_conv_x_size(conv)) * sizeof(uint16_t));
  rn_status_t status = RN_OK;
  for (int64_t i = 0; i < conv->rows.stride && rn_ok(status); ++i)
    for (int64_t j = 0; j < conv->columns.stride && rn_ok(status); ++j) {
      job->rows = backward_axis(&conv->rows, i);
      job->columns = backward_axis(&conv->columns, j);
      if (job->rows.taps && job->columns.taps && job->rows.out && job->columns.out)
        status = run_phase(ctx, way, job, filter.data);
    }
  rn_tensor_clear(&filter);
  return status;
}

static rn_status_t run_filter(rn_kernel_ctx_t* ctx, const rn_bf16_way_t* way,
                              conv_bf16_job_t* job) {
  const rn_conv_t* conv = job->conv;
  job->image = job->data.x;
  job->channels = conv->in_depth;
  job->rows = forward_axis(&conv->rows);
  job->columns = forward_axis(&conv->columns);
  job->is_matrix = reads_itself(&job->rows) && reads_itself(&job->columns);
  job->b = job->data.y;
  job->n = conv->out_depth;
  job->result = job->data.w;
  rn_bf16_product_t product = {.m = conv->rows.filter * conv->columns.filter * conv->in_depth,
                               .n = job->n,
                               .k = conv->batch * conv->rows.out * conv->columns.out,
                               .arg = job,
                               .rows = element_rows,
                               .columns = columns_of,
                               .finish = finish};
  if (!job->is_matrix) product.scratch_bytes = RN_BF16_MOST_ROWS * RN_BF16_DEPTH * sizeof(uint16_t);
  return rn_bf16_product(rn_ctx_pool(ctx), way, &product);
}

bool rn_conv_bf16_fits(const rn_conv_t* conv) {
  return conv->groups == 1 && rn_bf16_way().multiply != NULL;
}

rn_status_t rn_conv_bf16(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, const rn_conv_t* conv,
                         rn_conv_data_t data, const rn_conv_extra_t* extra) {
  const rn_bf16_way_t way = rn_bf16_way();
  conv_bf16_job_t job = {.conv = conv, .data = data, .extra = extra, .fns = RN_ISA_PICK(rn_conv_)};
  switch (conv->kind) {
    case RN_CONV_INPUT:
      return run_input(ctx, &way, &job);
    case RN_CONV_FILTER:
      return run_filter(ctx, &way, &job);
    default:
      return run_forward(ctx, &way, cache, &job);
  }
}
