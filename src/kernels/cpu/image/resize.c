// Image resizing: bilinear, nearest neighbour, area, bicubic; and the gradients.
//
// The input pixels and weights of each output are computed once for the rows and once for the
// columns. Types other than float are converted to float first, as in stock.
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/image/as_float.h"
#include "kernels/cpu/image/loops.h"
#include "kernels/cpu/image/resize.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// Multiplications per piece of work.
#define PIECE_PRODUCTS 4e5

typedef struct resize_strip_t {
  int64_t first, pixels;  // of the original
  int64_t begin, end;     // columns of the result
} resize_strip_t;

// One resize operation: |in| and |out| are rows and columns of the original and the resized image.
typedef struct resize_job_t {
  rn_resize_method_t method;
  int64_t batch, depth, in[2], out[2];
  const rn_image_taps_t *rows, *columns;
  resize_strip_t* strips;
  int64_t strip_count;
  const void* from;
  void* to;
  size_t item;
  float scale;  // of the sums of an area
  rn_dtype_t dtype;
  float* lines;  // of each piece of |grain| rows, if it needs more |memory| than usual
  int64_t line_size, run_size, memory, grain;
} resize_job_t;

// An area and a bicubic kernel weigh the lines of an output row first, then its columns. The part
// of the line that some columns read fits into the L1 cache. A bilinear kernel interpolates along
// the lines first: a line serves all output rows next to it.
// Where a line has more bytes, and more pixels, per pixel of the result than this, only those are
// converted that it is made of. Fewer are quicker to convert than to pick.
enum { APART_BYTES = 128, APART = 8 };
enum { LINE = 4096, RUN = 2048, SLACK = 16, USUAL = LINE + 2 * RUN + 3 * SLACK };

static int64_t bound(int64_t i, int64_t size) { return i < 0 ? 0 : i >= size ? size - 1 : i; }

// The strip that begins at column |begin|: as many columns as fit, and at least one.
static resize_strip_t strip_at(const resize_job_t* job, int64_t begin) {
  const int last = job->method == RN_RESIZE_BICUBIC ? 3 : 1;  // the tap of the last pixel
  const int64_t width = job->in[1], depth = job->depth;
  const int64_t run = job->method == RN_RESIZE_BILINEAR ? RUN : INT64_MAX;
  const int64_t line =
      job->method == RN_RESIZE_BILINEAR && job->dtype == RN_FLOAT ? INT64_MAX : LINE;
  resize_strip_t strip = {
      .first = bound(job->columns[begin].at[0], width), .begin = begin, .end = begin};
  do {
    strip.pixels = bound(job->columns[strip.end++].at[last], width) - strip.first + 1;
  } while (strip.end < job->out[1] && (strip.end + 1 - begin) * depth <= run &&
           (bound(job->columns[strip.end].at[last], width) - strip.first + 1) * depth <= line);
  return strip;
}

// Finds the strips, and the memory of a piece: for the longest line of a strip, and for two lines
// of a result of its own. In multiples of a cache line.
static void find_strips(resize_job_t* job) {
  const bool reads_in_place = job->method == RN_RESIZE_BILINEAR && job->dtype == RN_FLOAT;
  int64_t line = LINE, run = RUN;
  for (int64_t x = 0; x < job->out[1] && job->method != RN_RESIZE_NEAREST;) {
    const resize_strip_t strip = strip_at(job, x);
    job->strips[job->strip_count++] = strip;
    x = strip.end;
    if (strip.pixels * job->depth > line && !reads_in_place) line = strip.pixels * job->depth;
    if ((strip.end - strip.begin) * job->depth > run && job->method == RN_RESIZE_BILINEAR)
      run = (strip.end - strip.begin) * job->depth;
  }
  job->line_size = line / SLACK * SLACK + SLACK;
  job->run_size = run / SLACK * SLACK + SLACK;
  job->memory = job->line_size + 2 * job->run_size;
}

static void bicubic_line(const resize_job_t* job, const float* image, int64_t y, int64_t at,
                         int64_t n, float* line) {
  const rn_image_taps_t* row = &job->rows[y];
  const int64_t width = job->in[1] * job->depth;
  rn_resize_loops()->weigh(image + row->at[0] * width + at, row->weights[0], line, n);
  for (int k = 1; k < RN_IMAGE_TAPS; ++k)
    rn_resize_loops()->add_weighed(image + row->at[k] * width + at, row->weights[k], line, n);
}

static void area_line(const resize_job_t* job, const float* image, int64_t y, int64_t at, int64_t n,
                      float* line) {
  const rn_image_taps_t* row = &job->rows[y];
  const int64_t width = job->in[1] * job->depth, first = row->at[0], last = row->at[1] - 1;
  for (int64_t i = first; i <= last; ++i) {
    const float* from = image + bound(i, job->in[0]) * width + at;
    const float weight = i == first ? row->weights[0] : i == last ? row->weights[1] : 1.0f;
    (i == first ? rn_resize_loops()->weigh : rn_resize_loops()->add_weighed)(from, weight, line, n);
  }
}

static void bicubic_columns(const resize_job_t* job, const float* line, const resize_strip_t* strip,
                            float* out) {
  rn_resize_loops()->cubic_columns(line, strip->first, job->columns + strip->begin,
                                   strip->end - strip->begin, job->depth, out);
}

static void area_columns(const resize_job_t* job, const float* line, const resize_strip_t* strip,
                         float* out) {
  rn_resize_loops()->area_columns(line, strip->first, strip->first + strip->pixels,
                                  job->columns + strip->begin, strip->end - strip->begin,
                                  job->depth, job->scale, out);
}

static void nearest_row(const resize_job_t* job, const void* from, int64_t y, void* out) {
  char* to = out;
  size_t pixel = (size_t)job->depth * job->item;
  const char* row = (const char*)from + (size_t)(job->rows[y].at[0] * job->in[1]) * pixel;
  for (int64_t x = 0; x < job->out[1]; ++x, to += pixel)
    memcpy(to, row + (size_t)job->columns[x].at[0] * pixel, pixel);
}

static void interpolate_row(const resize_job_t* job, const float* image, int64_t y, float* line,
                            float* out) {
  const bool is_area = job->method == RN_RESIZE_AREA;
  for (int64_t i = 0; i < job->strip_count; ++i) {
    const resize_strip_t* strip = &job->strips[i];
    (is_area ? area_line : bicubic_line)(job, image, y, strip->first * job->depth,
                                         strip->pixels * job->depth, line);
    (is_area ? area_columns : bicubic_columns)(job, line, strip, out + strip->begin * job->depth);
  }
}

// Copies a pixel of |bytes|, mostly a few.
static inline void copy_pixel(char* to, const char* from, size_t bytes) {
  if (bytes > 16)
    memcpy(to, from, bytes);
  else
    for (size_t i = 0; i < bytes; ++i) to[i] = from[i];
}

// A strip that is reduced so much that most pixels of the line |from| are read by none: converts
// only those that are, side by side in |pairs|, which has place for all pixels of the strip.
static void blend_apart(const resize_job_t* job, const resize_strip_t* strip, const char* from,
                        float* pairs, float* out) {
  enum { AT_ONCE = 64 };
  const size_t pixel = (size_t)job->depth * job->item;
  rn_image_taps_t taps[AT_ONCE];
  for (int64_t x = strip->begin, count; x < strip->end; x += count, out += count * job->depth) {
    count = strip->end - x < AT_ONCE ? strip->end - x : AT_ONCE;
    char* copies = (char*)(pairs + 2 * count * job->depth);
    for (int64_t i = 0; i < 2 * count; ++i) {
      const rn_image_taps_t* column = &job->columns[x + i / 2];
      copy_pixel(copies + (size_t)i * pixel,
                 from + (size_t)(column->at[i % 2] - strip->first) * pixel, pixel);
      taps[i / 2].at[i % 2] = i;
      taps[i / 2].weights[i % 2] = column->weights[i % 2];
    }
    rn_image_widen(job->dtype, copies, pairs, 2 * count * job->depth);
    rn_resize_loops()->blend_columns(pairs, 0, 2 * count, taps, count, job->depth, out);
  }
}

// A strip of a line of the original, interpolated: |row| counts over all images.
static void blend_line(const resize_job_t* job, const resize_strip_t* strip, int64_t row,
                       float* line, float* out) {
  const void* from =
      (const char*)job->from + (size_t)((row * job->in[1] + strip->first) * job->depth) * job->item;
  const int64_t count = strip->end - strip->begin, pixel = job->depth * (int64_t)job->item;
  if (job->dtype != RN_FLOAT && strip->pixels > APART * count &&
      strip->pixels * pixel > APART_BYTES * count) {
    blend_apart(job, strip, from, line, out);
    return;
  }
  if (job->dtype != RN_FLOAT) {
    rn_image_widen(job->dtype, from, line, strip->pixels * job->depth);
    from = line;
  }
  rn_resize_loops()->blend_columns(from, strip->first, strip->first + strip->pixels,
                                   job->columns + strip->begin, count, job->depth, out);
}

// Rows [begin, end) of a strip. Neighbouring lines take turns in |lines|.
static void bilinear_strip(const resize_job_t* job, const resize_strip_t* strip, int64_t begin,
                           int64_t end, float* line) {
  float* const lines[2] = {line + job->line_size, line + job->line_size + job->run_size};
  int64_t kept[2] = {-1, -1};
  for (int64_t i = begin; i < end; ++i) {
    const rn_image_taps_t* row = &job->rows[i % job->out[0]];
    const float* from[2];
    for (int k = 0; k < 2; ++k) {
      const int64_t at = i / job->out[0] * job->in[0] + row->at[k], slot = at & 1;
      if (kept[slot] != at) blend_line(job, strip, at, line, lines[slot]);
      kept[slot] = at;
      from[k] = lines[slot];
    }
    rn_resize_loops()->blend(from[0], from[1], row->weights[1],
                             (float*)job->to + (i * job->out[1] + strip->begin) * job->depth,
                             (strip->end - strip->begin) * job->depth);
  }
}

// Rows of the output, counted over all images.
static void resize_piece(void* arg, int64_t begin, int64_t end) {
  const resize_job_t* job = arg;
  const size_t image_bytes = (size_t)(job->in[0] * job->in[1] * job->depth) * job->item;
  const size_t row_bytes = (size_t)(job->out[1] * job->depth) *
                           (job->method == RN_RESIZE_NEAREST ? job->item : sizeof(float));
  _Alignas(64) float small[USUAL];
  float* line = job->lines ? job->lines + begin / job->grain * job->memory : small;
  if (job->method == RN_RESIZE_BILINEAR) {
    for (int64_t i = 0; i < job->strip_count; ++i)
      bilinear_strip(job, &job->strips[i], begin, end, line);
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    const void* image = (const char*)job->from + (size_t)(i / job->out[0]) * image_bytes;
    void* to = (char*)job->to + (size_t)i * row_bytes;
    if (job->method == RN_RESIZE_NEAREST)
      nearest_row(job, image, i % job->out[0], to);
    else
      interpolate_row(job, image, i % job->out[0], line, to);
  }
}

// The gradients go the other way: each output pixel adds to the pixels it was made from. As in
// stock, contributions to double are double for bicubic and float for bilinear.
static void interpolation_piece(const resize_job_t* job, const float* from, double* to64,
                                float* to32) {
  if (to32 && job->method == RN_RESIZE_BILINEAR) {
    for (int64_t y = 0; y < job->out[0]; ++y)
      rn_resize_loops()->spread_columns(from + y * job->out[1] * job->depth, &job->rows[y],
                                        job->columns, job->out[1], job->in[1], job->depth, to32);
    return;
  }
  int taps = job->method == RN_RESIZE_BICUBIC ? RN_IMAGE_TAPS : 2;
  for (int64_t y = 0; y < job->out[0]; ++y)
    for (int64_t x = 0; x < job->out[1]; ++x, from += job->depth)
      for (int i = 0; i < taps; ++i)
        for (int k = 0; k < taps; ++k) {
          const rn_image_taps_t *row = &job->rows[y], *column = &job->columns[x];
          int64_t at = (row->at[i] * job->in[1] + column->at[k]) * job->depth;
          float down = row->weights[i], across = column->weights[k];
          for (int64_t c = 0; c < job->depth; ++c) {
            if (!to64)
              to32[at + c] += from[c] * down * across;
            else if (job->method == RN_RESIZE_BICUBIC)
              to64[at + c] += (double)from[c] * (double)down * (double)across;
            else
              to64[at + c] += (double)(from[c] * down * across);
          }
        }
}

#define ADD_NEAREST(T)                                                                          \
  do {                                                                                          \
    const T* from = (const T*)job->from + image * out_size;                                     \
    T* to = (T*)job->to + image * in_size;                                                      \
    for (int64_t y = 0; y < job->out[0]; ++y)                                                   \
      for (int64_t x = 0; x < job->out[1]; ++x, from += job->depth) {                           \
        T* pixel = to + (job->rows[y].at[0] * job->in[1] + job->columns[x].at[0]) * job->depth; \
        for (int64_t c = 0; c < job->depth; ++c) pixel[c] = (T)(pixel[c] + from[c]);            \
      }                                                                                         \
  } while (0)

static void nearest_back_floats(const resize_job_t* job, const float* from, float* to) {
  const rn_resize_loops_t* loops = rn_resize_loops();
  for (int64_t y = 0; y < job->out[0]; ++y) {
    float* row = to + job->rows[y].at[0] * job->in[1] * job->depth;
    for (int64_t x = 0; x < job->out[1]; ++x, from += job->depth)
      loops->add_weighed(from, 1, row + job->columns[x].at[0] * job->depth, job->depth);
  }
}

static void nearest_back(const resize_job_t* job, int64_t image, int64_t in_size,
                         int64_t out_size) {
  switch (job->dtype) {
    case RN_DOUBLE:
      ADD_NEAREST(double);
      break;
    case RN_INT8:
    case RN_UINT8:
      ADD_NEAREST(uint8_t);
      break;
    case RN_INT32:
      ADD_NEAREST(uint32_t);
      break;
    default:
      nearest_back_floats(job, (const float*)job->from + image * out_size,
                          (float*)job->to + image * in_size);
  }
}

// Images [begin, end).
static void back_piece(void* arg, int64_t begin, int64_t end) {
  const resize_job_t* job = arg;
  int64_t in_size = job->in[0] * job->in[1] * job->depth;
  int64_t out_size = job->out[0] * job->out[1] * job->depth;
  for (int64_t i = begin; i < end; ++i) {
    const float* from = (const float*)job->from + i * out_size;
    if (job->method == RN_RESIZE_NEAREST)
      nearest_back(job, i, in_size, out_size);
    else if (job->dtype == RN_DOUBLE)
      interpolation_piece(job, from, (double*)job->to + i * in_size, NULL);
    else
      interpolation_piece(job, from, NULL, (float*)job->to + i * in_size);
  }
}

// Computes the taps and runs |piece| over |count| rows or images.
static rn_status_t run(rn_kernel_ctx_t* ctx, resize_job_t* job, int64_t count, double each,
                       void (*piece)(void*, int64_t, int64_t)) {
  rn_tensor_t memory = {0}, lines = {0};
  int64_t bytes = (job->out[0] + job->out[1]) * (int64_t)sizeof(rn_image_taps_t) +
                  job->out[1] * (int64_t)sizeof(resize_strip_t);
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &bytes}, &memory));
  rn_image_taps_t* taps = memory.data;
  rn_resize_find_taps(job->method, ctx->state, job->in[0], job->out[0], taps);
  rn_resize_find_taps(job->method, ctx->state, job->in[1], job->out[1], taps + job->out[0]);
  job->rows = taps;
  job->columns = taps + job->out[0];
  job->strips = (resize_strip_t*)(taps + job->out[0] + job->out[1]);
  job->grain = each >= PIECE_PRODUCTS ? 1 : (int64_t)(PIECE_PRODUCTS / (each + 1)) + 1;
  find_strips(job);
  rn_status_t status = RN_OK;
  if (job->memory > USUAL) {
    int64_t floats = 0;
    if (rn_mul_i64_ok(count / job->grain + 1, job->memory, &floats))
      status = rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &floats}, &lines);
    else
      status = rn_out_of_memory();
    job->lines = lines.data;
  }
  if (rn_ok(status)) rn_pool_for(rn_ctx_pool(ctx), count, job->grain, piece, job);
  rn_tensor_clear(&memory);
  rn_tensor_clear(&lines);
  return status;
}

static resize_job_t job_of(rn_resize_method_t method, rn_dtype_t dtype, const rn_resize_t* sizes) {
  return (resize_job_t){.method = method,
                        .dtype = dtype,
                        .batch = sizes->batch,
                        .depth = sizes->depth,
                        .in = {sizes->in[0], sizes->in[1]},
                        .out = {sizes->out[0], sizes->out[1]}};
}

static rn_status_t resize(rn_kernel_ctx_t* ctx, rn_resize_method_t method) {
  const rn_tensor_t* images = rn_in(ctx, 0);
  rn_tensor_t floats = {0};
  rn_resize_t sizes;
  RN_RETURN_IF_ERROR(rn_resize_begin(ctx, &sizes));
  if (sizes.result->count == 0) return RN_OK;
  resize_job_t job = job_of(method, images->dtype, &sizes);
  job.item = sizeof(float);
  job.from = images->data;
  job.to = sizes.result->data;
  // An image of the same size is the same image, what is not finite included.
  if (method == RN_RESIZE_BILINEAR && job.in[0] == job.out[0] && job.in[1] == job.out[1]) {
    rn_image_widen(images->dtype, images->data, job.to, images->count);
    return RN_OK;
  }
  if (method == RN_RESIZE_NEAREST) {
    job.item = rn_dtype_size(images->dtype);
  } else if (method == RN_RESIZE_BILINEAR) {
    job.item = rn_dtype_size(images->dtype);
  } else {
    const float* from = NULL;
    RN_RETURN_IF_ERROR(rn_image_floats(ctx, images, &floats, &from));
    job.from = from;
  }
  job.scale = 1 / (rn_resize_area_scale(ctx->state, job.in[0], job.out[0]) *
                   rn_resize_area_scale(ctx->state, job.in[1], job.out[1]));
  double each = (double)(job.out[1] * job.depth) * (method == RN_RESIZE_BICUBIC ? 20 : 4);
  if (method == RN_RESIZE_AREA)
    each = (double)(job.in[0] / job.out[0] + 2) * (double)(job.in[1] * job.depth);
  rn_status_t status = run(ctx, &job, job.batch * job.out[0], each, resize_piece);
  rn_tensor_clear(&floats);
  return status;
}

static rn_status_t bilinear_compute(rn_kernel_ctx_t* ctx) {
  return resize(ctx, RN_RESIZE_BILINEAR);
}
static rn_status_t nearest_compute(rn_kernel_ctx_t* ctx) { return resize(ctx, RN_RESIZE_NEAREST); }
static rn_status_t area_compute(rn_kernel_ctx_t* ctx) { return resize(ctx, RN_RESIZE_AREA); }
static rn_status_t bicubic_compute(rn_kernel_ctx_t* ctx) { return resize(ctx, RN_RESIZE_BICUBIC); }

// 16-bit floats are accumulated in float.
static rn_status_t run_back(rn_kernel_ctx_t* ctx, resize_job_t* job, const rn_tensor_t* dy,
                            rn_tensor_t* dx) {
  bool is_narrow = dx->dtype == RN_HALF || dx->dtype == RN_BFLOAT16;
  rn_tensor_t sums = {0}, floats = {0};
  rn_status_t status = RN_OK;
  job->from = dy->data;
  job->to = dx->data;
  if (is_narrow) {
    status = rn_temp(ctx, RN_FLOAT, rn_tensor_shape(dx), &sums);
    job->to = sums.data;
  }
  if (rn_ok(status) && dy->dtype != RN_FLOAT && is_narrow) {
    const float* from = NULL;
    status = rn_image_floats(ctx, dy, &floats, &from);
    job->from = from;
  }
  if (rn_ok(status)) {
    size_t item = is_narrow ? sizeof(float) : rn_dtype_size(dx->dtype);
    memset(job->to, 0, (size_t)dx->count * item);
    double each = (double)(job->out[0] * job->out[1] * job->depth) *
                  (job->method == RN_RESIZE_BICUBIC    ? 16
                   : job->method == RN_RESIZE_BILINEAR ? 4
                                                       : 1);
    status = run(ctx, job, job->batch, each, back_piece);
  }
  const rn_vector_table_t* table = rn_vector_table();
  if (rn_ok(status) && is_narrow)
    (dx->dtype == RN_HALF ? table->narrow_half : table->narrow_bfloat16)(sums.data, dx->data,
                                                                         dx->count);
  rn_tensor_clear(&sums);
  rn_tensor_clear(&floats);
  return status;
}

static rn_status_t interpolation_back(rn_kernel_ctx_t* ctx, rn_resize_method_t method) {
  rn_resize_t sizes;
  RN_RETURN_IF_ERROR(rn_resize_gradient_begin(ctx, &sizes));
  if (sizes.result->count == 0) return RN_OK;
  resize_job_t job = job_of(method, sizes.result->dtype, &sizes);
  return run_back(ctx, &job, rn_in(ctx, 0), sizes.result);
}

static rn_status_t bilinear_gradient(rn_kernel_ctx_t* ctx) {
  return interpolation_back(ctx, RN_RESIZE_BILINEAR);
}
static rn_status_t bicubic_gradient(rn_kernel_ctx_t* ctx) {
  return interpolation_back(ctx, RN_RESIZE_BICUBIC);
}

static rn_status_t nearest_gradient(rn_kernel_ctx_t* ctx) {
  rn_resize_t sizes;
  RN_RETURN_IF_ERROR(rn_resize_nearest_gradient_begin(ctx, &sizes));
  rn_tensor_t* dx = sizes.result;
  if (dx->count == 0) return RN_OK;
  if (rn_in(ctx, 0)->count == 0) {
    memset(dx->data, 0, rn_tensor_bytes(dx));
    return RN_OK;
  }
  resize_job_t job = job_of(RN_RESIZE_NEAREST, dx->dtype, &sizes);
  return run_back(ctx, &job, rn_in(ctx, 0), dx);
}

#define IMAGES (RN_TYPES_FLOATS | RN_TYPES_INTS | RN_T(UINT8) | RN_T(UINT16))
#define ROW(op_, types_, compute_)                                                      \
  {                                                                                     \
    .op = op_, .device = "CPU", .types = {{"T", types_}}, .flags = RN_KERNEL_EXPENSIVE, \
    .host_args = RN_HOST_ARGS("size"), .state_size = sizeof(rn_resize_attrs_t),         \
    .init = rn_resize_init, .compute = compute_                                         \
  }
static const rn_kernel_def_t rows[] = {
    ROW("ResizeBilinear", IMAGES, bilinear_compute),
    ROW("ResizeNearestNeighbor", IMAGES, nearest_compute),
    ROW("ResizeArea", IMAGES, area_compute),
    ROW("ResizeBicubic", IMAGES, bicubic_compute),
    ROW("ResizeBilinearGrad", RN_TYPES_FLOATS, bilinear_gradient),
    ROW("ResizeBicubicGrad", RN_T(FLOAT) | RN_T(DOUBLE), bicubic_gradient),
    ROW("ResizeNearestNeighborGrad", RN_TYPES_FLOATS | RN_T(INT8) | RN_T(UINT8) | RN_T(INT32),
        nearest_gradient),
};
RN_KERNEL_FAMILY(cpu_resize, rows);
