// ScaleAndTranslate: resampling with a kernel of any support, and the gradient.
#include <float.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/image/as_float.h"
#include "kernels/kernel_rows.h"

typedef struct shape_t {
  const char* name;
  float radius;
  float (*weight)(float x, float radius);  // for a distance >= 0
} shape_t;

static float lanczos(float x, float radius) {
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;  // the limit, where the quotient would be NaN
  float pi = (float)M_PI;
  return radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
}

static float gaussian(float x, float radius) {
  float sigma = radius / 3;
  return x >= radius ? 0 : expf(-x * x / (2 * sigma * sigma));
}

static float box(float x, float radius) {
  (void)radius;
  return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0;
}

static float triangle(float x, float radius) {
  (void)radius;
  return x < 1 ? 1 - x : 0;
}

static float keys_cubic(float x, float radius) {
  if (x >= radius) return 0;
  return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : (1.5f * x - 2.5f) * x * x + 1;
}

static float mitchell_cubic(float x, float radius) {
  if (x >= radius) return 0;
  return x >= 1 ? (((-7.0f / 18) * x + 2) * x - 10.0f / 3) * x + 16.0f / 9
                : ((7.0f / 6) * x - 2) * x * x + 8.0f / 9;
}

static const shape_t shapes[] = {
    {"lanczos1", 1, lanczos},
    {"lanczos3", 3, lanczos},
    {"lanczos5", 5, lanczos},
    {"gaussian", 1.5f, gaussian},
    {"box", 1, box},
    {"triangle", 1, triangle},
    {"keyscubic", 2, keys_cubic},
    {"mitchellcubic", 2, mitchell_cubic},
};

typedef struct scale_t {
  const shape_t* shape;
  bool antialias;
} scale_t;

static rn_status_t scale_init(const rn_kernel_init_t* init, void* state) {
  scale_t* s = state;
  rn_str_t name = rn_init_string(init, "kernel_type");
  s->antialias = rn_init_bool(init, "antialias");
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i)
    if (rn_str_is(name, shapes[i].name)) s->shape = &shapes[i];
  if (s->shape) return RN_OK;
  return rn_invalid_argument("Unrecognized kernel type: %.*s", RN_STR_ARGS(name));
}

// Along one axis: the inputs of each output, and their weights.
typedef struct spans_t {
  int64_t in, out, width;  // |width| weights per output
  int64_t* starts;
  int64_t* counts;
  float* weights;
} spans_t;

static void spans_free(spans_t* s, rn_allocator_t allocator) {
  if (s->starts) RN_FREE_ARRAY(allocator, s->starts, s->out);
  if (s->counts) RN_FREE_ARRAY(allocator, s->counts, s->out);
  if (s->weights) RN_FREE_ARRAY(allocator, s->weights, s->out * s->width);
}

static int64_t clamp(float x, int64_t last) {
  return x <= 0 ? 0 : x >= (float)last ? last : (int64_t)x;
}

static void fill_span(spans_t* s, const shape_t* shape, float kernel_scale, float at, int64_t i) {
  float reach = shape->radius * kernel_scale;
  int64_t from = clamp(ceilf(at - reach - 0.5f), s->in - 1);
  int64_t to = clamp(floorf(at + reach - 0.5f), s->in - 1) + 1;
  float *weights = s->weights + i * s->width, sum = 0;
  if (to - from > s->width) to = from + s->width;
  for (int64_t k = from; k < to; ++k) {
    float distance = fabsf(((float)k + 0.5f - at) * (1 / kernel_scale));
    weights[k - from] = shape->weight(distance, shape->radius);
    sum += weights[k - from];
  }
  s->starts[i] = from;
  s->counts[i] = to - from;
  if (!(fabsf(sum) >= 1000 * FLT_MIN)) return;
  for (int64_t k = 0; k < to - from; ++k) weights[k] *= 1 / sum;
}

static rn_status_t spans_make(const scale_t* scale, rn_allocator_t allocator, int64_t in,
                              int64_t out, float by, float move, spans_t* s) {
  float inverse = 1 / by, back = -inverse * move;
  float kernel_scale = scale->antialias && inverse > 1 ? inverse : 1;
  float reach = ceilf(scale->shape->radius * kernel_scale);
  *s = (spans_t){.in = in, .out = out};
  s->width = reach < (float)in ? 2 * (int64_t)reach + 1 : in;
  if (s->width > in) s->width = in;
  size_t count = 0;
  if (!rn_mul_ok((size_t)out, (size_t)s->width, &count)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)out, &s->starts));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, (size_t)out, &s->counts));
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count, &s->weights));
  for (int64_t i = 0; i < out; ++i) {
    float at = ((float)i + 0.5f) * inverse + back;
    // Outputs whose centre lies outside the image stay zero.
    if (at >= 0 && at <= (float)in) fill_span(s, scale->shape, kernel_scale, at, i);
  }
  return RN_OK;
}

typedef struct scale_job_t {
  const float* in;
  float *between, *out;
  spans_t rows, columns;
  int64_t depth;
  bool is_back;
} scale_job_t;

static void add(float* to, const float* from, float weight, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += weight * from[i];
}

// One image: rows first, then columns. The gradient runs in the opposite order and scatters the
// weights instead of gathering.
static void scale_image(const scale_job_t* job, int64_t image) {
  const spans_t *rows = &job->rows, *columns = &job->columns;
  int64_t wide = columns->in * job->depth, narrow = columns->out * job->depth;
  int64_t big = rows->in * wide, small = rows->out * narrow;
  float* between = job->between + image * rows->out * wide;
  memset(between, 0, (size_t)(rows->out * wide) * sizeof *between);
  if (!job->is_back) {
    const float* in = job->in + image * big;
    float* out = job->out + image * small;
    for (int64_t y = 0; y < rows->out; ++y)
      for (int64_t k = 0; k < rows->counts[y]; ++k)
        add(between + y * wide, in + (rows->starts[y] + k) * wide,
            rows->weights[y * rows->width + k], wide);
    memset(out, 0, (size_t)small * sizeof *out);
    for (int64_t i = 0; i < rows->out * columns->out; ++i) {
      int64_t y = i / columns->out, x = i % columns->out;
      for (int64_t k = 0; k < columns->counts[x]; ++k)
        add(out + i * job->depth, between + y * wide + (columns->starts[x] + k) * job->depth,
            columns->weights[x * columns->width + k], job->depth);
    }
    return;
  }
  const float* grads = job->in + image * small;
  float* out = job->out + image * big;
  for (int64_t i = 0; i < rows->out * columns->out; ++i) {
    int64_t y = i / columns->out, x = i % columns->out;
    for (int64_t k = 0; k < columns->counts[x]; ++k)
      add(between + y * wide + (columns->starts[x] + k) * job->depth, grads + i * job->depth,
          columns->weights[x * columns->width + k], job->depth);
  }
  memset(out, 0, (size_t)big * sizeof *out);
  for (int64_t y = 0; y < rows->out; ++y)
    for (int64_t k = 0; k < rows->counts[y]; ++k)
      add(out + (rows->starts[y] + k) * wide, between + y * wide,
          rows->weights[y * rows->width + k], wide);
}

static void scale_piece(void* arg, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) scale_image(arg, i);
}

// |big| is the size of the image, |small| that of the result (or of the incoming gradients).
static rn_status_t run(rn_kernel_ctx_t* ctx, scale_job_t* job, const int64_t* big,
                       const int64_t* small, const float* by, const float* move) {
  rn_allocator_t allocator = ctx->kernel->allocator;
  int64_t dims[4] = {big[0], small[1], big[2], big[3]};
  rn_tensor_t between = {0};
  job->depth = big[3];
  rn_status_t status =
      spans_make(ctx->state, allocator, big[1], small[1], by[0], move[0], &job->rows);
  if (rn_ok(status))
    status = spans_make(ctx->state, allocator, big[2], small[2], by[1], move[1], &job->columns);
  if (rn_ok(status)) status = rn_temp(ctx, RN_FLOAT, (rn_shape_t){4, dims}, &between);
  if (rn_ok(status)) {
    job->between = between.data;
    rn_pool_for(rn_ctx_pool(ctx), big[0], 1, scale_piece, job);
  }
  rn_tensor_clear(&between);
  spans_free(&job->rows, allocator);
  spans_free(&job->columns, allocator);
  return status;
}

static rn_status_t read_two(const rn_tensor_t* t, const float** out) {
  if (t->rank != 1) return rn_invalid_argument("t must be 1-dimensional%s", rn_text_of(t).text);
  if (t->count != 2) return rn_invalid_argument("t must have two elements%s", rn_text_of(t).text);
  *out = t->data;
  return RN_OK;
}

static rn_status_t read_moves(rn_kernel_ctx_t* ctx, const float** by, const float** move) {
  RN_RETURN_IF_ERROR(read_two(rn_in(ctx, 2), by));
  if (!((*by)[0] > 0 && (*by)[1] > 0))
    return rn_invalid_argument("Scale must be greater than zero.");
  return read_two(rn_in(ctx, 3), move);
}

static rn_status_t scale_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *images = rn_in(ctx, 0), *size = rn_in(ctx, 1);
  const float *by = NULL, *move = NULL;
  if (images->rank != 4)
    return rn_invalid_argument("input must be 4-dimensional%s", rn_text_of(images).text);
  if (size->rank != 1)
    return rn_invalid_argument("output_shape_t must be 1-dimensional%s", rn_text_of(size).text);
  if (size->count != 2)
    return rn_invalid_argument("output_shape_t must have two elements%s", rn_text_of(size).text);
  const int32_t* wanted = size->data;
  if (wanted[0] <= 0 || wanted[1] <= 0)
    return rn_invalid_argument("output dimensions must be positive");
  const int64_t* dims = rn_tensor_dims(images);
  if (dims[3] == 0) return rn_invalid_argument("image must have at least one channel");
  if (dims[1] <= 0 || dims[2] <= 0)
    return rn_invalid_argument("input image must be of non-zero size");
  RN_RETURN_IF_ERROR(read_moves(ctx, &by, &move));
  int64_t shape[4] = {dims[0], wanted[0], wanted[1], dims[3]};
  rn_tensor_t *out = NULL, temp = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, shape}, &out));
  if (out->count == 0) return RN_OK;
  scale_job_t job = {.out = out->data};
  rn_status_t status = rn_image_floats(ctx, images, &temp, &job.in);
  if (rn_ok(status)) status = run(ctx, &job, dims, shape, by, move);
  rn_tensor_clear(&temp);
  return status;
}

static rn_status_t grad_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *grads = rn_in(ctx, 0), *image = rn_in(ctx, 1);
  const float *by = NULL, *move = NULL;
  if (grads->rank != 4)
    return rn_invalid_argument("input_grad must be 4-dimensional%s", rn_text_of(grads).text);
  if (image->rank != 4)
    return rn_invalid_argument("original_image must be 4-dimensional%s", rn_text_of(image).text);
  const int64_t *small = rn_tensor_dims(grads), *big = rn_tensor_dims(image);
  if (small[0] != big[0] || small[3] != big[3])
    return rn_invalid_argument("input_grad%s and original_image%s do not fit",
                               rn_text_of(grads).text, rn_text_of(image).text);
  RN_RETURN_IF_ERROR(read_moves(ctx, &by, &move));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(image), &out));
  if (out->count == 0) return RN_OK;
  if (grads->count == 0) {
    memset(out->data, 0, rn_tensor_bytes(out));
    return RN_OK;
  }
  scale_job_t job = {.in = grads->data, .out = out->data, .is_back = true};
  return run(ctx, &job, big, small, by, move);
}

#define ROW(name, types_, function)                                                      \
  {                                                                                      \
    .op = name, .device = "CPU", .types = {{"T", types_}}, .flags = RN_KERNEL_EXPENSIVE, \
    .state_size = sizeof(scale_t), .init = scale_init, .compute = function               \
  }

static const rn_kernel_def_t rows[] = {
    ROW("ScaleAndTranslate", RN_TYPES_FLOATS | RN_TYPES_INTS | RN_T(UINT8) | RN_T(UINT16),
        scale_compute),
    ROW("ScaleAndTranslateGrad", RN_T(FLOAT), grad_compute),
};
RN_KERNEL_FAMILY(cpu_image_scale, rows);
