// Image resizing: bilinear, nearest neighbour, area, bicubic; and the gradients.
//
// The input pixels and weights of each output are computed once for the rows and once for the
// columns. Types other than float are converted to float first, as in stock.
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/image/resize.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// Multiplications per piece of work.
#define PIECE_PRODUCTS 1e5

typedef enum resize_method_t { BILINEAR, NEAREST, AREA, BICUBIC } resize_method_t;

// The input pixels of one output pixel: positions and weights. For AREA: the first to the last
// pixel, of which only the ends have their own weights.
enum { TAPS = 4 };
typedef struct taps_t {
  int64_t at[TAPS];
  float weights[TAPS];
} taps_t;

static int64_t bound(int64_t i, int64_t size) { return i < 0 ? 0 : i >= size ? size - 1 : i; }

// The centre of output |i| in the input.
static float place_of(const rn_resize_attrs_t* state, float scale, int64_t i) {
  return state->half_pixel_centers ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
}

static void bilinear_taps(const rn_resize_attrs_t* state, int64_t in, int64_t out, taps_t* taps) {
  float scale = rn_resize_scale(state, in, out);
  for (int64_t i = 0; i < out; ++i) {
    float place = place_of(state, scale, i), below = floorf(place);
    int64_t low = (int64_t)below, high = (int64_t)ceilf(place);
    taps[i].at[1] = high < in - 1 ? high : in - 1;
    taps[i].at[0] = low > 0 ? low : 0;
    if (taps[i].at[0] > taps[i].at[1]) taps[i].at[0] = taps[i].at[1];
    taps[i].weights[1] = place - below;
    taps[i].weights[0] = 1 - taps[i].weights[1];
  }
}

static void nearest_taps(const rn_resize_attrs_t* state, int64_t in, int64_t out, taps_t* taps) {
  float scale = rn_resize_scale(state, in, out);
  for (int64_t i = 0; i < out; ++i) {
    float place = state->half_pixel_centers ? ((float)i + 0.5f) * scale : (float)i * scale;
    taps[i].at[0] = bound((int64_t)(state->align_corners ? roundf(place) : floorf(place)), in);
  }
}

// The part of pixel |v| inside [from, to), which is |scale| long.
static float covered(float v, float from, float to, float scale) {
  if (v < from) return v + 1 > to ? scale : v + 1 - from;
  return v + 1 > to ? to - v : 1.0f;
}

// A single pixel has no two corners to align: each output covers part of it.
static float area_scale_of(const rn_resize_attrs_t* state, int64_t in, int64_t out) {
  return in == 1 ? 1.0f / (float)out : rn_resize_scale(state, in, out);
}

static void area_taps(const rn_resize_attrs_t* state, int64_t in, int64_t out, taps_t* taps) {
  float scale = area_scale_of(state, in, out);
  for (int64_t i = 0; i < out; ++i) {
    float from = (float)i * scale, to = (float)(i + 1) * scale;
    taps[i].at[0] = (int64_t)floorf(from);
    taps[i].at[1] = (int64_t)ceilf(to);
    taps[i].weights[0] = covered((float)taps[i].at[0], from, to, scale);
    taps[i].weights[1] = covered((float)(taps[i].at[1] - 1), from, to, scale);
  }
}

// Keys' cubic by distance, in steps of 1/1024, as in stock's table.
#define STEPS 1024
static float cubic_near(double a, double x) { return (float)(((a + 2) * x - (a + 3)) * x * x + 1); }
static float cubic_far(double a, double x) {
  return (float)(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
}

static void bicubic_taps(const rn_resize_attrs_t* state, int64_t in, int64_t out, taps_t* taps) {
  float scale = rn_resize_scale(state, in, out);
  double a = state->half_pixel_centers ? -0.5 : -0.75;
  for (int64_t i = 0; i < out; ++i) {
    float place = place_of(state, scale, i), below = floorf(place);
    int64_t low = (int64_t)below;
    int64_t step = lrintf((place - below) * STEPS);
    double near = (double)step / STEPS, far = (double)(STEPS - step) / STEPS;
    float weights[TAPS] = {cubic_far(a, near + 1), cubic_near(a, near), cubic_near(a, far),
                           cubic_far(a, far + 1)};
    float sum = 0;
    for (int k = 0; k < TAPS; ++k) {
      taps[i].at[k] = bound(low - 1 + k, in);
      // With half-pixel centres, pixels outside have weight 0; otherwise the edge is repeated.
      if (state->half_pixel_centers && taps[i].at[k] != low - 1 + k) weights[k] = 0;
      sum += weights[k];
    }
    bool normalises = state->half_pixel_centers && fabsf(sum) >= 1000 * FLT_MIN;
    for (int k = 0; k < TAPS; ++k)
      taps[i].weights[k] = normalises ? weights[k] * (1 / sum) : weights[k];
  }
}

// One resize operation: |in| and |out| are rows and columns of the original and the resized image.
typedef struct resize_job_t {
  resize_method_t method;
  int64_t batch, depth, in[2], out[2];
  const taps_t *rows, *columns;
  const void* from;
  void* to;
  size_t item;
  float scale;  // AREA: scale of the sums
  rn_dtype_t dtype;
} resize_job_t;

static void bilinear_row(const resize_job_t* job, const void* from, int64_t y, void* out) {
  const float* image = from;
  float* to = out;
  const taps_t* row = &job->rows[y];
  const float* top = image + row->at[0] * job->in[1] * job->depth;
  const float* bottom = image + row->at[1] * job->in[1] * job->depth;
  float down = row->weights[1];
  for (int64_t x = 0; x < job->out[1]; ++x, to += job->depth) {
    const taps_t* column = &job->columns[x];
    int64_t left = column->at[0] * job->depth, right = column->at[1] * job->depth;
    float across = column->weights[1];
    for (int64_t c = 0; c < job->depth; ++c) {
      float upper = top[left + c] + (top[right + c] - top[left + c]) * across;
      float lower = bottom[left + c] + (bottom[right + c] - bottom[left + c]) * across;
      to[c] = upper + (lower - upper) * down;
    }
  }
}

// The part of one input row that output column |column| covers.
static float row_sum(const resize_job_t* job, const float* row, const taps_t* column) {
  int64_t first = column->at[0], last = column->at[1] - 1, width = job->in[1];
  float sum = row[bound(first, width) * job->depth] * column->weights[0];
  if (first == last) return sum;
  for (int64_t x = first + 1; x < last; ++x) sum += row[bound(x, width) * job->depth];
  return sum + row[bound(last, width) * job->depth] * column->weights[1];
}

static void area_row(const resize_job_t* job, const void* from, int64_t y, void* out) {
  const float* image = from;
  float* to = out;
  const taps_t* row = &job->rows[y];
  int64_t first = row->at[0], last = row->at[1] - 1;
  for (int64_t x = 0; x < job->out[1]; ++x)
    for (int64_t c = 0; c < job->depth; ++c) {
      float sum = 0;
      for (int64_t i = first; i <= last; ++i) {
        const float* from = image + bound(i, job->in[0]) * job->in[1] * job->depth + c;
        float weight = i == first ? row->weights[0] : i == last ? row->weights[1] : 1.0f;
        sum += row_sum(job, from, &job->columns[x]) * weight;
      }
      *to++ = sum * job->scale;
    }
}

static void bicubic_row(const resize_job_t* job, const void* from, int64_t y, void* out) {
  const float* image = from;
  float* to = out;
  const taps_t* row = &job->rows[y];
  const float* lines[TAPS];
  for (int i = 0; i < TAPS; ++i) lines[i] = image + row->at[i] * job->in[1] * job->depth;
  const float* down = row->weights;
  for (int64_t x = 0; x < job->out[1]; ++x, to += job->depth) {
    const taps_t* column = &job->columns[x];
    for (int64_t c = 0; c < job->depth; ++c) {
      float value = 0;
      for (int k = 0; k < TAPS; ++k) {
        int64_t at = column->at[k] * job->depth + c;
        float part = lines[0][at] * down[0] + lines[1][at] * down[1] + lines[2][at] * down[2] +
                     lines[3][at] * down[3];
        value = k == 0 ? part * column->weights[0] : value + part * column->weights[k];
      }
      to[c] = value;
    }
  }
}

static void nearest_row(const resize_job_t* job, const void* from, int64_t y, void* out) {
  char* to = out;
  size_t pixel = (size_t)job->depth * job->item;
  const char* row = (const char*)from + (size_t)(job->rows[y].at[0] * job->in[1]) * pixel;
  for (int64_t x = 0; x < job->out[1]; ++x, to += pixel)
    memcpy(to, row + (size_t)job->columns[x].at[0] * pixel, pixel);
}

// By resize_method_t: computes the taps of an output pixel, and one row of output.
static const struct {
  void (*find_taps)(const rn_resize_attrs_t* state, int64_t in, int64_t out, taps_t* taps);
  void (*row)(const resize_job_t* job, const void* from, int64_t y, void* out);
} ways[] = {[BILINEAR] = {bilinear_taps, bilinear_row},
            [NEAREST] = {nearest_taps, nearest_row},
            [AREA] = {area_taps, area_row},
            [BICUBIC] = {bicubic_taps, bicubic_row}};

// Rows of the output, counted over all images.
static void resize_piece(void* arg, int64_t begin, int64_t end) {
  const resize_job_t* job = arg;
  size_t image_bytes = (size_t)(job->in[0] * job->in[1] * job->depth) * job->item;
  size_t row_bytes = (size_t)(job->out[1] * job->depth) * job->item;
  for (int64_t i = begin; i < end; ++i) {
    const void* image = (const char*)job->from + (size_t)(i / job->out[0]) * image_bytes;
    void* to = (char*)job->to + (size_t)i * row_bytes;
    int64_t y = i % job->out[0];
    ways[job->method].row(job, image, y, to);
  }
}

// The gradients go the other way: each output pixel adds to the pixels it was made from. As in
// stock, contributions to double are double for bicubic and float for bilinear.
static void interpolation_piece(const resize_job_t* job, const float* from, double* to64,
                                float* to32) {
  int taps = job->method == BICUBIC ? TAPS : 2;
  for (int64_t y = 0; y < job->out[0]; ++y)
    for (int64_t x = 0; x < job->out[1]; ++x, from += job->depth)
      for (int i = 0; i < taps; ++i)
        for (int k = 0; k < taps; ++k) {
          const taps_t *row = &job->rows[y], *column = &job->columns[x];
          int64_t at = (row->at[i] * job->in[1] + column->at[k]) * job->depth;
          float down = row->weights[i], across = column->weights[k];
          for (int64_t c = 0; c < job->depth; ++c) {
            if (!to64)
              to32[at + c] += from[c] * down * across;
            else if (job->method == BICUBIC)
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
      ADD_NEAREST(float);
  }
}

// Images [begin, end).
static void back_piece(void* arg, int64_t begin, int64_t end) {
  const resize_job_t* job = arg;
  int64_t in_size = job->in[0] * job->in[1] * job->depth;
  int64_t out_size = job->out[0] * job->out[1] * job->depth;
  for (int64_t i = begin; i < end; ++i) {
    const float* from = (const float*)job->from + i * out_size;
    if (job->method == NEAREST)
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
  rn_tensor_t memory = {0};
  int64_t bytes = (job->out[0] + job->out[1]) * (int64_t)sizeof(taps_t);
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT8, (rn_shape_t){1, &bytes}, &memory));
  taps_t* taps = memory.data;
  ways[job->method].find_taps(ctx->state, job->in[0], job->out[0], taps);
  ways[job->method].find_taps(ctx->state, job->in[1], job->out[1], taps + job->out[0]);
  job->rows = taps;
  job->columns = taps + job->out[0];
  int64_t grain = each >= PIECE_PRODUCTS ? 1 : (int64_t)(PIECE_PRODUCTS / (each + 1)) + 1;
  rn_pool_for(rn_ctx_pool(ctx), count, grain, piece, job);
  rn_tensor_clear(&memory);
  return RN_OK;
}

static resize_job_t job_of(resize_method_t method, rn_dtype_t dtype, const rn_resize_t* sizes) {
  return (resize_job_t){.method = method,
                        .dtype = dtype,
                        .batch = sizes->batch,
                        .depth = sizes->depth,
                        .in = {sizes->in[0], sizes->in[1]},
                        .out = {sizes->out[0], sizes->out[1]}};
}

static rn_status_t resize(rn_kernel_ctx_t* ctx, resize_method_t method) {
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
  if (method == BILINEAR && job.in[0] == job.out[0] && job.in[1] == job.out[1]) {
    to_floats(images, job.to);
    return RN_OK;
  }
  if (method == NEAREST) {
    job.item = rn_dtype_size(images->dtype);
  } else if (images->dtype != RN_FLOAT) {
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, rn_tensor_shape(images), &floats));
    to_floats(images, floats.data);
    job.from = floats.data;
  }
  job.scale = 1 / (area_scale_of(ctx->state, job.in[0], job.out[0]) *
                   area_scale_of(ctx->state, job.in[1], job.out[1]));
  double each = (double)(job.out[1] * job.depth) * (method == BICUBIC ? 20 : 4);
  if (method == AREA) each = (double)(job.in[0] / job.out[0] + 2) * (double)(job.in[1] * job.depth);
  rn_status_t status = run(ctx, &job, job.batch * job.out[0], each, resize_piece);
  rn_tensor_clear(&floats);
  return status;
}

static rn_status_t bilinear_compute(rn_kernel_ctx_t* ctx) { return resize(ctx, BILINEAR); }
static rn_status_t nearest_compute(rn_kernel_ctx_t* ctx) { return resize(ctx, NEAREST); }
static rn_status_t area_compute(rn_kernel_ctx_t* ctx) { return resize(ctx, AREA); }
static rn_status_t bicubic_compute(rn_kernel_ctx_t* ctx) { return resize(ctx, BICUBIC); }

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
    double each =
        (double)(job->out[0] * job->out[1] * job->depth) * (job->method == BICUBIC    ? 16
                                                            : job->method == BILINEAR ? 4
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

static rn_status_t interpolation_back(rn_kernel_ctx_t* ctx, resize_method_t method) {
  rn_resize_t sizes;
  RN_RETURN_IF_ERROR(rn_resize_gradient_begin(ctx, &sizes));
  if (sizes.result->count == 0) return RN_OK;
  resize_job_t job = job_of(method, sizes.result->dtype, &sizes);
  return run_back(ctx, &job, rn_in(ctx, 0), sizes.result);
}

static rn_status_t bilinear_gradient(rn_kernel_ctx_t* ctx) {
  return interpolation_back(ctx, BILINEAR);
}
static rn_status_t bicubic_gradient(rn_kernel_ctx_t* ctx) {
  return interpolation_back(ctx, BICUBIC);
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
  resize_job_t job = job_of(NEAREST, dx->dtype, &sizes);
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
