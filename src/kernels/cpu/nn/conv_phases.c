// Float convolutions with dilation by Winograd's algorithm: see rn_conv_phases in conv.h.
//
// With dilation d and stride 1, pixels of y whose rows and columns have the same remainders by d
// read pixels of x of the same kind only. So each pair of remainders, a phase, is a convolution
// without dilation, of an image of its own.
#include "kernels/cpu/isa.h"
#include "kernels/cpu/isa/move.h"
#include "kernels/cpu/nn/conv.h"

// Bytes worth a hand-off to another thread.
#define PIECE_BYTES (128 << 10)

typedef struct conv_phases_t {
  const rn_conv_t* conv;
  rn_conv_t phases;  // with one image per phase of an image
  const float* x;
  float *y, *phase_x, *phase_y;
  const rn_conv_extra_t* extra;  // NULL if no steps follow
} conv_phases_t;

static rn_window_axis_t phase_axis(const rn_window_axis_t* axis) {
  const int64_t out = (axis->out + axis->dilation - 1) / axis->dilation;
  return (rn_window_axis_t){
      .in = out + axis->filter - 1, .filter = axis->filter, .stride = 1, .dilation = 1, .out = out};
}

static rn_conv_t phases_of(const rn_conv_t* conv) {
  rn_conv_t out = *conv;
  out.batch = conv->batch * conv->rows.dilation * conv->columns.dilation;
  out.rows = phase_axis(&conv->rows);
  out.columns = phase_axis(&conv->columns);
  return out;
}

int rn_conv_phases_size(const rn_conv_t* conv) {
  const rn_window_axis_t *rows = &conv->rows, *columns = &conv->columns;
  int64_t phases = 0, batch = 0;
  if (conv->kind != RN_CONV_FORWARD || rows->stride != 1 || columns->stride != 1 ||
      (rows->dilation == 1 && columns->dilation == 1) || rows->out < rows->dilation ||
      columns->out < columns->dilation || rows->before < 0 || columns->before < 0 ||
      !rn_mul_i64_ok(rows->dilation, columns->dilation, &phases) ||
      !rn_mul_i64_ok(phases, conv->batch, &batch))
    return 0;
  const rn_conv_t without = phases_of(conv);
  return rn_conv_winograd_size(&without);
}

// The remainders and the image of image |i| of the phases.
typedef struct conv_phase_t {
  int64_t image, row, column;
} conv_phase_t;

static conv_phase_t phase_at(const rn_conv_t* conv, int64_t i) {
  const int64_t down = conv->rows.dilation, across = conv->columns.dilation;
  return (conv_phase_t){i / (down * across), i / across % down, i % across};
}

// Rows [begin, end) of the phases of x, counted over all images: with zeros around them.
static void take_rows(void* arg, int64_t begin, int64_t end) {
  const conv_phases_t* job = arg;
  const rn_conv_t *conv = job->conv, *phases = &job->phases;
  const rn_window_axis_t *rows = &conv->rows, *columns = &conv->columns;
  const int64_t depth = conv->in_depth, width = phases->columns.in, step = columns->dilation;
  const size_t pixel = (size_t)depth * sizeof(float);
  for (int64_t r = begin; r < end; ++r) {
    const conv_phase_t at = phase_at(conv, r / phases->rows.in);
    const int64_t row = r % phases->rows.in * rows->dilation + at.row - rows->before;
    const int64_t left = at.column - columns->before;  // the column of x that comes first
    float* to = job->phase_x + r * width * depth;
    // The columns that are inside: first <= t < last.
    int64_t first = left < 0 ? (step - 1 - left) / step : 0;
    int64_t last = left < columns->in ? (columns->in - left + step - 1) / step : 0;
    if (row < 0 || row >= rows->in) last = 0;
    if (last > width) last = width;
    if (first >= last) first = last = 0;
    memset(to, 0, (size_t)first * pixel);
    const float* from =
        job->x + ((at.image * rows->in + row) * columns->in + left + first * step) * depth;
    if (last > first)
      RN_ISA_PICK(&rn_move_table_)
          ->rows((const char*)from, step * (int64_t)pixel, (char*)(to + first * depth),
                 (int64_t)pixel, last - first, pixel);
    memset(to + last * depth, 0, (size_t)(width - last) * pixel);
  }
}

// Rows [begin, end) of y, counted over all images: from its phases, with the steps that follow.
static void give_rows(void* arg, int64_t begin, int64_t end) {
  const conv_phases_t* job = arg;
  const rn_conv_t *conv = job->conv, *phases = &job->phases;
  const int64_t down = conv->rows.dilation, across = conv->columns.dilation;
  const int64_t depth = conv->out_depth, width = conv->columns.out;
  const int64_t pixel = depth * (int64_t)sizeof(float);
  for (int64_t r = begin; r < end; ++r) {
    const int64_t image = r / conv->rows.out, row = r % conv->rows.out;
    for (int64_t c = 0; c < across; ++c) {
      const int64_t phase = (image * down + row % down) * across + c;
      const float* from =
          job->phase_y + (phase * phases->rows.out + row / down) * phases->columns.out * depth;
      RN_ISA_PICK(&rn_move_table_)
          ->rows((const char*)from, pixel, (char*)(job->y + (r * width + c) * depth),
                 across * pixel, (width - c + across - 1) / across, (size_t)pixel);
    }
    if (job->extra) rn_conv_follow(job->extra, 0, job->y, depth, r * width, (r + 1) * width);
  }
}

rn_status_t rn_conv_phases(rn_kernel_ctx_t* ctx, rn_conv_cache_t* cache, const rn_conv_t* conv,
                           int size, rn_conv_data_t data, const rn_conv_extra_t* extra) {
  conv_phases_t job = {
      .conv = conv, .phases = phases_of(conv), .x = data.x, .y = data.y, .extra = extra};
  int64_t xs = 0, ys = 0, count = 0;
  if (!rn_mul_i64_ok(rn_conv_x_size(&job.phases), job.phases.batch, &xs) ||
      !rn_mul_i64_ok(rn_conv_y_size(&job.phases), job.phases.batch, &ys) ||
      !rn_add_i64_ok(xs, ys, &count))
    return rn_out_of_memory();
  rn_tensor_t memory = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &count}, &memory));
  job.phase_x = memory.data;
  job.phase_y = job.phase_x + xs;
  rn_pool_t* pool = rn_ctx_pool(ctx);
  const int64_t x_row = job.phases.columns.in * conv->in_depth * (int64_t)sizeof(float);
  rn_pool_for(pool, job.phases.batch * job.phases.rows.in, PIECE_BYTES / (x_row + 1) + 1, take_rows,
              &job);
  const rn_conv_extra_t only = {.filter = extra ? extra->filter : NULL};
  rn_status_t status = rn_conv_winograd(ctx, cache, &job.phases, size,
                                        (rn_conv_data_t){job.phase_x, data.w, job.phase_y}, &only);
  const int64_t y_row = conv->columns.out * conv->out_depth * (int64_t)sizeof(float);
  if (rn_ok(status))
    rn_pool_for(pool, conv->batch * conv->rows.out, PIECE_BYTES / (y_row + 1) + 1, give_rows, &job);
  rn_tensor_clear(&memory);
  return status;
}
