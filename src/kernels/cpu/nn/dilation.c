// Dilation2D: the maximum over a window of image plus filter; and its gradients, which go to the
// position of the first maximum.
#include <float.h>
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/nn/dilation.h"
#include "kernels/cpu/spans.h"
#include "kernels/cpu/vector.h"
#include "kernels/kernel_rows.h"

// Sums per piece of work.
#define PIECE_SUMS 1e5

static rn_status_t read_list(const rn_kernel_init_t* init, const char* name, const char* called,
                             const char* batch, int64_t* out) {
  const rn_attr_value_t* list = rn_init_attr(init, name);
  if (list->count != 4)
    return rn_invalid_argument("Sliding window %s field must specify 4 dimensions", called);
  if (list->list_i[0] != 1 || list->list_i[3] != 1) return rn_unimplemented("%s", batch);
  if (list->list_i[1] < 1 || list->list_i[2] < 1)
    return rn_unimplemented("%s values must be positive", name);
  for (int i = 0; i < 4; ++i) out[i] = list->list_i[i];
  return RN_OK;
}

rn_status_t rn_dilation_init(const rn_kernel_init_t* init, void* state) {
  rn_window_attrs_t* attrs = state;
  RN_RETURN_IF_ERROR(read_list(init, "strides", "strides",
                               "Stride is only supported across spatial dimensions.",
                               attrs->strides));
  RN_RETURN_IF_ERROR(read_list(init, "rates", "rates",
                               "Rate is only supported across spatial dimensions.",
                               attrs->dilations));
  attrs->padding =
      rn_str_is(rn_init_string(init, "padding"), "SAME") ? RN_PADDING_SAME : RN_PADDING_VALID;
  return RN_OK;
}

typedef enum dilation_work_t { FORWARD, INPUT, FILTER } dilation_work_t;

typedef struct dilation_job_t {
  dilation_work_t work;
  rn_dtype_t dtype;
  rn_dilation_t sizes;
  const void *x, *w, *dy;
  void* out;
} dilation_job_t;

// X(enumerator, C type, smallest value)
#define TYPES(X)                   \
  X(INT8, int8_t, INT8_MIN)        \
  X(INT16, int16_t, INT16_MIN)     \
  X(INT32, int32_t, INT32_MIN)     \
  X(INT64, int64_t, INT64_MIN)     \
  X(UINT8, uint8_t, 0)             \
  X(UINT16, uint16_t, 0)           \
  X(UINT32, uint32_t, 0)           \
  X(UINT64, uint64_t, 0)           \
  X(FLOAT, float, -3.40282347e38f) \
  X(DOUBLE, double, -1.7976931348623157e308)

// One output element: the largest sum, and its position in the image and in the filter.
#define FIND(N, T, LOW)                                                                  \
  static void find_##N(const dilation_job_t* job, const T* image, int64_t r, int64_t c,  \
                       int64_t channel, T* out_value, int64_t* out_x, int64_t* out_w) {  \
    const rn_window_axis_t *rows = &job->sizes.rows, *columns = &job->sizes.columns;     \
    T best = LOW;                                                                        \
    int64_t x_at = -1, w_at = -1;                                                        \
    for (int64_t i = 0; i < rows->filter; ++i) {                                         \
      int64_t row = r * rows->stride - rows->before + i * rows->dilation;                \
      if (row < 0 || row >= rows->in) continue;                                          \
      for (int64_t j = 0; j < columns->filter; ++j) {                                    \
        int64_t column = c * columns->stride - columns->before + j * columns->dilation;  \
        if (column < 0 || column >= columns->in) continue;                               \
        int64_t x = (row * columns->in + column) * job->sizes.depth + channel;           \
        int64_t w = (i * columns->filter + j) * job->sizes.depth + channel;              \
        T sum = SUM_##N(T, image[x], ((const T*)job->w)[w]);                             \
        if (sum > best || x_at < 0) best = sum, x_at = x, w_at = w;                      \
      }                                                                                  \
    }                                                                                    \
    *out_value = best, *out_x = x_at, *out_w = w_at;                                     \
  }                                                                                      \
  static void run_##N(const dilation_job_t* job, int64_t begin, int64_t end) {           \
    int64_t in_size = job->sizes.rows.in * job->sizes.columns.in * job->sizes.depth;     \
    int64_t i = begin * job->sizes.rows.out * job->sizes.columns.out * job->sizes.depth; \
    for (int64_t b = begin; b < end; ++b)                                                \
      for (int64_t r = 0; r < job->sizes.rows.out; ++r)                                  \
        for (int64_t c = 0; c < job->sizes.columns.out; ++c)                             \
          for (int64_t d = 0; d < job->sizes.depth; ++d, ++i) {                          \
            T value;                                                                     \
            int64_t x, w;                                                                \
            find_##N(job, (const T*)job->x + b * in_size, r, c, d, &value, &x, &w);      \
            if (job->work == FORWARD) {                                                  \
              ((T*)job->out)[i] = value;                                                 \
            } else if (x >= 0) {                                                         \
              T* to = (T*)job->out + (job->work == INPUT ? b * in_size + x : w);         \
              *to = SUM_##N(T, *to, ((const T*)job->dy)[i]);                             \
            }                                                                            \
          }                                                                              \
  }
#define PLAIN_SUM(T, a, b) ((T)((a) + (b)))
#define WRAPPING_SUM(U, T, a, b) ((T)((U)(a) + (U)(b)))
#define SUM_INT8 PLAIN_SUM
#define SUM_INT16 PLAIN_SUM
#define SUM_INT32(T, a, b) WRAPPING_SUM(uint32_t, T, a, b)
#define SUM_INT64(T, a, b) WRAPPING_SUM(uint64_t, T, a, b)
#define SUM_UINT8 PLAIN_SUM
#define SUM_UINT16 PLAIN_SUM
#define SUM_UINT32 PLAIN_SUM
#define SUM_UINT64 PLAIN_SUM
#define SUM_FLOAT PLAIN_SUM
#define SUM_DOUBLE PLAIN_SUM
TYPES(FIND)

// One pixel of the result in floats, all channels at once.
static void forward_pixel(const dilation_job_t* job, const float* image, int64_t r, int64_t c,
                          float* out) {
  const rn_window_axis_t *rows = &job->sizes.rows, *columns = &job->sizes.columns;
  const int64_t depth = job->sizes.depth;
  bool is_first = true;
  for (int64_t i = 0; i < rows->filter; ++i) {
    const int64_t row = r * rows->stride - rows->before + i * rows->dilation;
    if (row < 0 || row >= rows->in) continue;
    for (int64_t j = 0; j < columns->filter; ++j) {
      const int64_t column = c * columns->stride - columns->before + j * columns->dilation;
      if (column < 0 || column >= columns->in) continue;
      const float* x = image + (row * columns->in + column) * depth;
      const float* w = (const float*)job->w + (i * columns->filter + j) * depth;
      if (is_first)
        rn_vector_run(RN_VECTOR_ADD, RN_FLOAT, x, 1, w, 1, out, depth);
      else
        rn_spans()->raise_to_sums(x, w, out, depth);
      is_first = false;
    }
  }
  for (int64_t d = 0; is_first && d < depth; ++d) out[d] = -FLT_MAX;
}

static void forward_floats(const dilation_job_t* job, int64_t begin, int64_t end) {
  const int64_t rows = job->sizes.rows.out, columns = job->sizes.columns.out;
  const int64_t depth = job->sizes.depth;
  const int64_t in_size = job->sizes.rows.in * job->sizes.columns.in * depth;
  float* out = (float*)job->out + begin * rows * columns * depth;
  for (int64_t b = begin; b < end; ++b)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c, out += depth)
        forward_pixel(job, (const float*)job->x + b * in_size, r, c, out);
}

#define CASE(N, T, LOW)       \
  case RN_##N:                \
    run_##N(job, begin, end); \
    break;

// Images [begin, end).
static void run_piece(void* arg, int64_t begin, int64_t end) {
  const dilation_job_t* job = arg;
  if (job->work == FORWARD && job->dtype == RN_FLOAT) {
    forward_floats(job, begin, end);
    return;
  }
  switch (job->dtype) {
    TYPES(CASE)
    default:
      break;
  }
}

static rn_status_t run_plain(rn_kernel_ctx_t* ctx, dilation_job_t* job, int64_t batch,
                             int64_t out_count) {
  if (job->work != FORWARD) memset(job->out, 0, (size_t)out_count * rn_dtype_size(job->dtype));
  double each = (double)(job->sizes.rows.out * job->sizes.columns.out * job->sizes.depth) *
                (double)(job->sizes.rows.filter * job->sizes.columns.filter);
  int64_t grain = each >= PIECE_SUMS ? 1 : (int64_t)(PIECE_SUMS / (each + 1)) + 1;
  // The filter gradient is one sum over all images.
  rn_pool_for(rn_ctx_pool(ctx), batch, job->work == FILTER ? batch : grain, run_piece, job);
  return RN_OK;
}

// Computes 16-bit floats in float and rounds once.
static rn_status_t run(rn_kernel_ctx_t* ctx, dilation_job_t* job, rn_tensor_t* out) {
  int64_t batch = rn_tensor_dim(rn_in(ctx, 0), 0);
  job->dtype = out->dtype;
  job->out = out->data;
  if (out->dtype != RN_HALF && out->dtype != RN_BFLOAT16)
    return run_plain(ctx, job, batch, out->count);
  const rn_vector_table_t* table = rn_vector_table();
  bool is_half = out->dtype == RN_HALF;
  int inputs = job->work == FORWARD ? 2 : 3;
  int64_t total = out->count;
  for (int i = 0; i < inputs; ++i) total += rn_in(ctx, i)->count;
  rn_tensor_t temp = {0};
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, (rn_shape_t){1, &total}, &temp));
  float *result = temp.data, *next = result + out->count;
  const void** slots[3] = {&job->x, &job->w, &job->dy};
  for (int i = 0; i < inputs; ++i) {
    const rn_tensor_t* in = rn_in(ctx, i);
    (is_half ? table->widen_half : table->widen_bfloat16)(in->data, next, in->count);
    *slots[i] = next;
    next += in->count;
  }
  job->dtype = RN_FLOAT;
  job->out = result;
  rn_status_t status = run_plain(ctx, job, batch, out->count);
  (is_half ? table->narrow_half : table->narrow_bfloat16)(result, out->data, out->count);
  rn_tensor_clear(&temp);
  return status;
}

rn_status_t rn_dilation_sizes(const rn_kernel_ctx_t* ctx, rn_dilation_t* out, int64_t y_dims[4]) {
  const rn_tensor_t *x = rn_in(ctx, 0), *w = rn_in(ctx, 1);
  const rn_window_attrs_t* attrs = ctx->state;
  if (x->rank != 4) return rn_invalid_argument("input must be 4-dimensional%s", rn_text_of(x).text);
  if (w->rank != 3)
    return rn_invalid_argument("filter must be 3-dimensional: %s", rn_text_of(w).text);
  out->depth = rn_tensor_dim(x, 3);
  if (out->depth != rn_tensor_dim(w, 2))
    return rn_invalid_argument("input and filter must have the same depth: %" PRId64 " vs %" PRId64,
                               out->depth, rn_tensor_dim(w, 2));
  RN_RETURN_IF_ERROR(
      rn_window_axis(attrs, 1, rn_tensor_dim(x, 1), rn_tensor_dim(w, 0), &out->rows));
  RN_RETURN_IF_ERROR(
      rn_window_axis(attrs, 2, rn_tensor_dim(x, 2), rn_tensor_dim(w, 1), &out->columns));
  y_dims[0] = rn_tensor_dim(x, 0), y_dims[1] = out->rows.out;
  y_dims[2] = out->columns.out, y_dims[3] = out->depth;
  return RN_OK;
}

rn_status_t rn_dilation_gradient_sizes(const rn_kernel_ctx_t* ctx, rn_dilation_t* out) {
  int64_t dims[4];
  RN_RETURN_IF_ERROR(rn_dilation_sizes(ctx, out, dims));
  if (!rn_shape_eq(rn_tensor_shape(rn_in(ctx, 2)), (rn_shape_t){4, dims}))
    return rn_invalid_argument("out_backprop has incompatible size.");
  return RN_OK;
}

static rn_status_t forward_compute(rn_kernel_ctx_t* ctx) {
  dilation_job_t job = {.work = FORWARD, .x = rn_in(ctx, 0)->data, .w = rn_in(ctx, 1)->data};
  int64_t dims[4];
  RN_RETURN_IF_ERROR(rn_dilation_sizes(ctx, &job.sizes, dims));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &out));
  return out->count ? run(ctx, &job, out) : RN_OK;
}

static rn_status_t gradient(rn_kernel_ctx_t* ctx, dilation_work_t work) {
  dilation_job_t job = {
      .work = work, .x = rn_in(ctx, 0)->data, .w = rn_in(ctx, 1)->data, .dy = rn_in(ctx, 2)->data};
  RN_RETURN_IF_ERROR(rn_dilation_gradient_sizes(ctx, &job.sizes));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(rn_in(ctx, work == INPUT ? 0 : 1)), &out));
  return out->count ? run(ctx, &job, out) : RN_OK;
}

static rn_status_t input_compute(rn_kernel_ctx_t* ctx) { return gradient(ctx, INPUT); }
static rn_status_t filter_compute(rn_kernel_ctx_t* ctx) { return gradient(ctx, FILTER); }

#define ROW(op_, compute_)                                                                     \
  {                                                                                            \
    .op = op_, .device = "CPU", .types = {{"T", RN_TYPES_REAL}}, .flags = RN_KERNEL_EXPENSIVE, \
    .state_size = sizeof(rn_window_attrs_t), .init = rn_dilation_init, .compute = compute_     \
  }
static const rn_kernel_def_t rows[] = {
    ROW("Dilation2D", forward_compute),
    ROW("Dilation2DBackpropInput", input_compute),
    ROW("Dilation2DBackpropFilter", filter_compute),
};
RN_KERNEL_FAMILY(cpu_dilation, rows);
