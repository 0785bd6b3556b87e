// Image resizing: bilinear, nearest neighbour, area, bicubic; and the gradients.
//
// The input pixels and weights of each output are computed once for the rows and once for the
// columns. Types other than float are converted to float first, as in stock.
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/image/loops.h"
#include "kernels/cpu/image/resize.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// Multiplications per piece of work.
#define PIECE_PRODUCTS 1e5

// One resize operation: |in| and |out| are rows and columns of the original and the resized image.
typedef struct resize_job_t {
  rn_resize_method_t method;
  int64_t batch, depth, in[2], out[2];
  const rn_image_taps_t *rows, *columns;
  const void* from;
  void* to;
  size_t item;
  float scale;  // of the sums of an area
  rn_dtype_t dtype;
  float* lines;  // one per piece of |grain| rows, if they are longer than LINE
  int64_t line_size, grain;
} resize_job_t;

// Interpolates the lines of an output row first, then its columns. The part of the line that some
// columns read fits into the L1 cache.
enum { LINE = 4096 };

typedef struct resize_strip_t {
  int64_t first, pixels;  // of the original
  int64_t begin, end;     // columns of the result
} resize_strip_t;

static int64_t bound(int64_t i, int64_t size) { return i < 0 ? 0 : i >= size ? size - 1 : i; }

// The strip that begins at column |begin|: as many columns as fit, and at least one. |last| is the
// tap of the last pixel.
static resize_strip_t strip_at(const resize_job_t* job, int64_t begin, int last) {
  const int64_t width = job->in[1];
  resize_strip_t strip = {
      .first = bound(job->columns[begin].at[0], width), .begin = begin, .end = begin};
  do {
    strip.pixels = bound(job->columns[strip.end++].at[last], width) - strip.first + 1;
  } while (strip.end < job->out[1] &&
           (bound(job->columns[strip.end].at[last], width) - strip.first + 1) * job->depth <= LINE);
  return strip;
}

// The longest line of a strip, in floats.
static int64_t longest_line(const resize_job_t* job) {
  int64_t longest = LINE;
  for (int64_t x = 0; x < job->out[1] && job->method != RN_RESIZE_NEAREST;) {
    const resize_strip_t strip = strip_at(job, x, job->method == RN_RESIZE_BICUBIC ? 3 : 1);
    if (strip.pixels * job->depth > longest) longest = strip.pixels * job->depth;
    x = strip.end;
  }
  return longest;
}

// A strip of a line, from the lines of the original that make up row |y|.
static void bilinear_line(const resize_job_t* job, const float* image, int64_t y, int64_t at,
                          int64_t n, float* line) {
  const rn_image_taps_t* row = &job->rows[y];
  const int64_t width = job->in[1] * job->depth;
  rn_image_loops()->blend(image + row->at[0] * width + at, image + row->at[1] * width + at,
                          row->weights[1], line, n);
}

static void bicubic_line(const resize_job_t* job, const float* image, int64_t y, int64_t at,
                         int64_t n, float* line) {
  const rn_image_taps_t* row = &job->rows[y];
  const int64_t width = job->in[1] * job->depth;
  rn_image_loops()->weigh(image + row->at[0] * width + at, row->weights[0], line, n);
  for (int k = 1; k < RN_IMAGE_TAPS; ++k)
    rn_image_loops()->add_weighed(image + row->at[k] * width + at, row->weights[k], line, n);
}

static void area_line(const resize_job_t* job, const float* image, int64_t y, int64_t at, int64_t n,
                      float* line) {
  const rn_image_taps_t* row = &job->rows[y];
  const int64_t width = job->in[1] * job->depth, first = row->at[0], last = row->at[1] - 1;
  for (int64_t i = first; i <= last; ++i) {
    const float* from = image + bound(i, job->in[0]) * width + at;
    const float weight = i == first ? row->weights[0] : i == last ? row->weights[1] : 1.0f;
    (i == first ? rn_image_loops()->weigh : rn_image_loops()->add_weighed)(from, weight, line, n);
  }
}

static void bilinear_columns(const resize_job_t* job, const float* line,
                             const resize_strip_t* strip, float* out) {
  rn_image_loops()->blend_columns(line, strip->first, job->columns + strip->begin,
                                  strip->end - strip->begin, job->depth, out);
}

static void bicubic_columns(const resize_job_t* job, const float* line, const resize_strip_t* strip,
                            float* out) {
  rn_image_loops()->cubic_columns(line, strip->first, job->columns + strip->begin,
                                  strip->end - strip->begin, job->depth, out);
}

// The part of a line that a column covers.
static void area_columns(const resize_job_t* job, const float* line, const resize_strip_t* strip,
                         float* out) {
  const int64_t depth = job->depth;
  for (int64_t x = strip->begin; x < strip->end; ++x, out += depth) {
    const rn_image_taps_t* column = &job->columns[x];
    const int64_t first = column->at[0], last = column->at[1] - 1;
    const float* from = line + (bound(first, job->in[1]) - strip->first) * depth;
    for (int64_t c = 0; c < depth; ++c) out[c] = from[c] * column->weights[0];
    for (int64_t i = first + 1; i <= last; ++i) {
      const float* next = line + (bound(i, job->in[1]) - strip->first) * depth;
      const float weight = i < last ? 1.0f : column->weights[1];
      for (int64_t c = 0; c < depth; ++c) out[c] += next[c] * weight;
    }
    for (int64_t c = 0; c < depth; ++c) out[c] *= job->scale;
  }
}

static void nearest_row(const resize_job_t* job, const void* from, int64_t y, void* out) {
  char* to = out;
  size_t pixel = (size_t)job->depth * job->item;
  const char* row = (const char*)from + (size_t)(job->rows[y].at[0] * job->in[1]) * pixel;
  for (int64_t x = 0; x < job->out[1]; ++x, to += pixel)
    memcpy(to, row + (size_t)job->columns[x].at[0] * pixel, pixel);
}

static const struct {
  void (*line)(const resize_job_t* job, const float* image, int64_t y, int64_t at, int64_t n,
               float* line);
  void (*columns)(const resize_job_t* job, const float* line, const resize_strip_t* strip,
                  float* out);
  int last;  // the tap of the last pixel
} ways[] = {[RN_RESIZE_BILINEAR] = {bilinear_line, bilinear_columns, 1},
            [RN_RESIZE_AREA] = {area_line, area_columns, 1},
            [RN_RESIZE_BICUBIC] = {bicubic_line, bicubic_columns, 3}};

static void interpolate_row(const resize_job_t* job, const float* image, int64_t y, float* line,
                            float* out) {
  for (int64_t x = 0; x < job->out[1];) {
    const resize_strip_t strip = strip_at(job, x, ways[job->method].last);
    ways[job->method].line(job, image, y, strip.first * job->depth, strip.pixels * job->depth,
                           line);
    ways[job->method].columns(job, line, &strip, out + x * job->depth);
    x = strip.end;
  }
}

// Rows of the output, counted over all images.
static void resize_piece(void* arg, int64_t begin, int64_t end) {
  const resize_job_t* job = arg;
  const size_t image_bytes = (size_t)(job->in[0] * job->in[1] * job->depth) * job->item;
  const size_t row_bytes = (size_t)(job->out[1] * job->depth) * job->item;
  float small[LINE];
  float* line = job->lines ? job->lines + begin / job->grain * job->line_size : small;
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
  const rn_image_loops_t* loops = rn_image_loops();
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

#define WIDEN(T)                                                                   \
  for (int64_t i = 0; i < in->count; ++i) out[i] = (float)RN_DATA(in, const T)[i]; \
  break

static void to_floats(const rn_tensor_t* in, float* out) {
  switch (in->dtype) {
    case RN_HALF:
      rn_vector_table()->widen_half(in->data, out, in->count);
      break;
    case RN_BFLOAT16:
      rn_vector_table()->widen_bfloat16(in->data, out, in->count);
      break;
    case RN_DOUBLE:
      WIDEN(double);
    case RN_INT8:
      WIDEN(int8_t);
    case RN_UINT8:
      WIDEN(uint8_t);
    case RN_INT16:
      WIDEN(int16_t);
    case RN_UINT16:
      WIDEN(uint16_t);
    case RN_INT32:
      WIDEN(int32_t);
    case RN_INT64:
      WIDEN(int64_t);
    default:
      memcpy(out, in->data, rn_tensor_bytes(in));
  }
}

// Computes the taps and runs |piece| over |count| rows or images.
static rn_status_t run(rn_kernel_ctx_t* ctx, resize_job_t* job, int64_t count, double each,
                       void (*piece)(void*, int64_t, int64_t)) {
  rn_tensor_t memory = {0}, lines = {0};
  int64_t bytes = (job->out[0] + job->out[1]) * (int64_t)sizeof(rn_image_taps_t);
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &bytes}, &memory));
  rn_image_taps_t* taps = memory.data;
  rn_resize_find_taps(job->method, ctx->state, job->in[0], job->out[0], taps);
  rn_resize_find_taps(job->method, ctx->state, job->in[1], job->out[1], taps + job->out[0]);
  job->rows = taps;
  job->columns = taps + job->out[0];
  job->grain = each >= PIECE_PRODUCTS ? 1 : (int64_t)(PIECE_PRODUCTS / (each + 1)) + 1;
  job->line_size = longest_line(job);
  rn_status_t status = RN_OK;
  if (job->line_size > LINE) {
    int64_t floats = 0;
    if (rn_mul_i64_ok(count / job->grain + 1, job->line_size, &floats))
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
    to_floats(images, job.to);
    return RN_OK;
  }
  if (method == RN_RESIZE_NEAREST) {
    job.item = rn_dtype_size(images->dtype);
  } else if (images->dtype != RN_FLOAT) {
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, rn_tensor_shape(images), &floats));
    to_floats(images, floats.data);
    job.from = floats.data;
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
    status = rn_temp(ctx, RN_FLOAT, rn_tensor_shape(dy), &floats);
    if (rn_ok(status)) to_floats(dy, floats.data);
    job->from = floats.data;
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
