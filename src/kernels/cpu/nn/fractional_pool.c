// FractionalMaxPool, FractionalAvgPool and their gradients: windows of varying size (Graham,
// "Fractional max-pooling", 2014).
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/random/philox.h"
#include "kernels/kernel_rows.h"

typedef struct fractional_pool_state_t {
  float ratios[4];
  bool is_pseudo_random, is_overlapping;
  int64_t seed, seed2;
  const rn_env_t* env;
} fractional_pool_state_t;

static rn_status_t read_attrs(const rn_kernel_init_t* init, void* state_, const char* kind) {
  fractional_pool_state_t* state = state_;
  const rn_attr_value_t* ratios = rn_init_attr(init, "pooling_ratio");
  state->env = init->env;
  state->is_pseudo_random = rn_init_bool(init, "pseudo_random");
  state->is_overlapping = rn_init_bool(init, "overlapping");
  if (ratios->count != 4)
    return rn_invalid_argument("pooling_ratio field must specify 4 dimensions");
  for (int i = 0; i < 4; ++i) {
    state->ratios[i] = ratios->list_f[i];
    if (!(state->ratios[i] >= 1))
      return rn_invalid_argument("pooling_ratio cannot be smaller than 1, got: %g",
                                 (double)state->ratios[i]);
  }
  if (state->ratios[0] != 1 || state->ratios[3] != 1)
    return rn_unimplemented(
        "Fractional %s pooling is not yet supported on the batch nor channel dimension.", kind);
  state->seed = rn_init_int(init, "seed");
  state->seed2 = rn_init_int(init, "seed2");
  bool has_seed = state->seed != 0 || state->seed2 != 0;
  if (!rn_init_bool(init, "deterministic") && has_seed)
    return rn_invalid_argument("Both seed and seed2 should be 0 if deterministic is false.");
  if (rn_init_bool(init, "deterministic") && !has_seed) {  // the same in every call
    state->seed = (int64_t)init->env->random(init->env->self);
    state->seed2 = (int64_t)init->env->random(init->env->self);
  }
  return RN_OK;
}
static rn_status_t max_init(const rn_kernel_init_t* init, void* state) {
  return read_attrs(init, state, "max");
}
static rn_status_t average_init(const rn_kernel_init_t* init, void* state) {
  return read_attrs(init, state, "average");
}
static rn_status_t gradient_init(const rn_kernel_init_t* init, void* state) {
  ((fractional_pool_state_t*)state)->is_overlapping = rn_init_bool(init, "overlapping");
  return RN_OK;
}

// Window sizes k or k + 1 that sum to |in|, shuffled.
static void shuffled_sizes(int64_t in, int64_t out, rn_philox_t* philox, int64_t* sizes) {
  for (int64_t i = 0; i < out; ++i) sizes[i] = in / out + (i < in % out ? 1 : 0);
  rn_philox_single_t words = rn_philox_single(*philox);
  rn_philox_skip(philox, ((uint64_t)out + 3) / 4);
  for (int64_t i = 0; i + 1 < out; ++i) {
    int64_t k = i + (int64_t)(rn_philox_word(&words) % (uint32_t)(out - i)), other = sizes[k];
    sizes[k] = sizes[i];
    sizes[i] = other;
  }
}

// Sizes as in the paper: the differences of ceil(alpha (i + u)), with one random number u.
static void stepped_sizes(int64_t in, int64_t out, rn_philox_t* philox, int64_t* sizes) {
  double alpha = (double)in / (double)out;
  int64_t k = in / out;
  double most = (double)(k + 2) / alpha - 1;
  double other = (double)(in + 1 - k) / alpha - (double)(out - 1);
  rn_philox_single_t words = rn_philox_single(*philox);
  rn_philox_skip(philox, 1);
  uint32_t high = rn_philox_word(&words), low = rn_philox_word(&words);
  double u = rn_words_to_double(high, low) * (most < other ? most : other);
  int64_t before = 1;
  for (int64_t i = 1; i <= out; ++i) {
    int64_t next = i == out ? in + 1 : (int64_t)ceil(alpha * ((double)i + u));
    sizes[i - 1] = next - before;
    before = next;
  }
}

// The start of each window, and the end of the last one.
static rn_status_t make_sequence(rn_kernel_ctx_t* ctx, int output, int64_t in, int64_t out,
                                 rn_philox_t* philox, const int64_t** out_sequence) {
  const fractional_pool_state_t* state = ctx->state;
  int64_t length = out + 1;
  rn_tensor_t* sequence = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, output, (rn_shape_t){1, &length}, &sequence));
  int64_t* starts = sequence->data;
  // Equal sizes consume random numbers as well.
  if (state->is_pseudo_random)
    stepped_sizes(in, out, philox, starts + 1);
  else
    shuffled_sizes(in, out, philox, starts + 1);
  starts[0] = 0;
  for (int64_t i = 0; i < out; ++i) starts[i + 1] += starts[i];
  *out_sequence = starts;
  return RN_OK;
}

typedef enum fractional_pool_work_t {
  MAX,
  AVERAGE,
  MAX_GRADIENT,
  AVERAGE_GRADIENT
} fractional_pool_work_t;

typedef struct fractional_pool_t {
  fractional_pool_work_t work;
  bool is_overlapping, is_wrong;  // is_wrong: orig_output does not match orig_input
  int64_t batch, rows, columns, depth, out_rows, out_columns;
  const int64_t *row_starts, *column_starts;
  const void *x, *y, *dy;
  void* to;
  double* shares;  // AVERAGE_GRADIENT: accumulated here first
  int64_t image;   // offset of the current image in elements
  int64_t count;   // for a gradient: elements of all images
} fractional_pool_t;

static int64_t end_of(const fractional_pool_t* pool, const int64_t* starts, int64_t i,
                      int64_t size) {
  int64_t end = starts[i + 1] < size ? starts[i + 1] + (pool->is_overlapping ? 1 : 0) : size;
  return end < size ? end : size;
}

// One window of one channel. W: the accumulation type of T, so that integers wrap.
#define POOL(N, T, W)                                                                             \
  static void pool_##N(fractional_pool_t* pool, const T* x, T* dx, int64_t r, int64_t c,          \
                       int64_t d, int64_t out) {                                                  \
    int64_t row_end = end_of(pool, pool->row_starts, r, pool->rows);                              \
    int64_t column_end = end_of(pool, pool->column_starts, c, pool->columns);                     \
    int64_t count = 0, best = -1;                                                                 \
    double share = 0;                                                                             \
    T sum = 0;                                                                                    \
    if (pool->work == AVERAGE_GRADIENT && row_end > pool->row_starts[r] &&                        \
        column_end > pool->column_starts[c]) {                                                    \
      count = (row_end - pool->row_starts[r]) * (column_end - pool->column_starts[c]);            \
      share = (double)((const T*)pool->dy)[out] / (double)count;                                  \
    }                                                                                             \
    for (int64_t i = pool->row_starts[r]; i < row_end; ++i)                                       \
      for (int64_t k = pool->column_starts[c]; k < column_end; ++k) {                             \
        int64_t at = (i * pool->columns + k) * pool->depth + d;                                   \
        if (pool->work == AVERAGE_GRADIENT)                                                       \
          pool->shares[pool->image + at] += share;                                                \
        else if (pool->work == AVERAGE)                                                           \
          sum = (T)((W)sum + (W)x[at]), ++count;                                                  \
        else if (best < 0 || x[at] > x[best])                                                     \
          best = at;                                                                              \
      }                                                                                           \
    if (pool->work == AVERAGE) ((T*)pool->to)[out] = count ? (T)(sum / (T)count) : 0;             \
    if (pool->work == MAX) ((T*)pool->to)[out] = best < 0 ? 0 : x[best];                          \
    if (pool->work == MAX_GRADIENT && best < 0) pool->is_wrong = true;                            \
    if (pool->work == MAX_GRADIENT && best >= 0) {                                                \
      pool->is_wrong |= x[best] != ((const T*)pool->y)[out];                                      \
      dx[best] = (T)((W)dx[best] + (W)((const T*)pool->dy)[out]);                                 \
    }                                                                                             \
  }                                                                                               \
  static void run_##N(fractional_pool_t* pool) {                                                  \
    int64_t size = pool->rows * pool->columns * pool->depth, out = 0;                             \
    for (int64_t b = 0; b < pool->batch; ++b, pool->image += size)                                \
      for (int64_t r = 0; r < pool->out_rows; ++r)                                                \
        for (int64_t c = 0; c < pool->out_columns; ++c)                                           \
          for (int64_t d = 0; d < pool->depth; ++d, ++out)                                        \
            pool_##N(pool, pool->x ? (const T*)pool->x + b* size : NULL, (T*)pool->to + b * size, \
                     r, c, d, out);                                                               \
    for (int64_t i = 0; pool->shares && i < pool->count; ++i)                                     \
      ((T*)pool->to)[i] = (T)pool->shares[i];                                                     \
  }
POOL(f32, float, float)
POOL(f64, double, double)
POOL(i32, int32_t, uint32_t)
POOL(i64, int64_t, uint64_t)

static void run(fractional_pool_t* pool, rn_dtype_t dtype) {
  switch (dtype) {
    case RN_DOUBLE:
      run_f64(pool);
      break;
    case RN_INT32:
      run_i32(pool);
      break;
    case RN_INT64:
      run_i64(pool);
      break;
    default:
      run_f32(pool);
  }
}

static rn_status_t forward(rn_kernel_ctx_t* ctx, fractional_pool_work_t work) {
  const fractional_pool_state_t* state = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  if (x->rank != 4) return rn_invalid_argument("tensor_in must be 4-dimensional");
  int64_t dims[4];
  for (int i = 0; i < 4; ++i) {
    int64_t size = rn_tensor_dim(x, i);
    if ((float)size < state->ratios[i])
      return rn_invalid_argument(
          "Pooling ratio is higher than input dimension size for dimension "
          "%d. Input dim size: %" PRId64 " pooling ratio: %g",
          i, size, (double)state->ratios[i]);
    dims[i] = (int64_t)floorf((float)size / state->ratios[i]);  // in float: 6 / 1.2f is 5
    if (dims[i] <= 0 || size > INT32_MAX)
      return rn_invalid_argument("A dimension of %" PRId64 " cannot be pooled", size);
  }
  fractional_pool_t pool = {.work = work,
                            .is_overlapping = state->is_overlapping,
                            .batch = dims[0],
                            .rows = rn_tensor_dim(x, 1),
                            .columns = rn_tensor_dim(x, 2),
                            .depth = dims[3],
                            .out_rows = dims[1],
                            .out_columns = dims[2],
                            .x = x->data};
  rn_philox_t philox = rn_philox_seeded(state->env, state->seed, state->seed2);
  RN_RETURN_IF_ERROR(make_sequence(ctx, 1, pool.rows, pool.out_rows, &philox, &pool.row_starts));
  RN_RETURN_IF_ERROR(
      make_sequence(ctx, 2, pool.columns, pool.out_columns, &philox, &pool.column_starts));
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &y));
  pool.to = y->data;
  run(&pool, x->dtype);
  return RN_OK;
}

static rn_status_t max_compute(rn_kernel_ctx_t* ctx) { return forward(ctx, MAX); }
static rn_status_t average_compute(rn_kernel_ctx_t* ctx) { return forward(ctx, AVERAGE); }

// Rejects a sequence with a negative element, with stock's message: all elements, aligned.
static rn_status_t negative(rn_kernel_ctx_t* ctx, const char* name, const rn_tensor_t* sequence) {
  const int64_t* values = sequence->data;
  int width = 0;
  for (int64_t i = 0; i < sequence->count; ++i) {
    int length = snprintf(NULL, 0, "%" PRId64, values[i]);
    if (length > width) width = length;
  }
  rn_strbuf_t text;
  rn_strbuf_init(&text, ctx->kernel->allocator);
  for (int64_t i = 0; i < sequence->count; ++i)
    rn_strbuf_printf(&text, "%s%*" PRId64, i ? " " : "", width, values[i]);
  rn_status_t status = rn_strbuf_status(&text);
  if (rn_ok(status))
    status = rn_invalid_argument("%s sequence tensor values must not be negative, got %.*s", name,
                                 RN_STR_ARGS(rn_strbuf_view(&text)));
  rn_strbuf_clear(&text);
  return status;
}

// Whether window |i| starts or ends before the image.
static bool is_before(const fractional_pool_t* pool, const int64_t* starts, int64_t i) {
  return starts[i] < 0 || starts[i + 1] < (pool->is_overlapping ? 0 : 1);
}

// Checks the sequences in inputs |first| and |first| + 1: windows may extend beyond the end of the
// image, but not before its start. Row by row, in stock's order.
static rn_status_t check_sequences(rn_kernel_ctx_t* ctx, const fractional_pool_t* pool, int first) {
  for (int64_t r = 0; r < pool->out_rows; ++r) {
    if (is_before(pool, pool->row_starts, r)) return negative(ctx, "Row", rn_in(ctx, first));
    for (int64_t c = 0; r == 0 && c < pool->out_columns; ++c)
      if (is_before(pool, pool->column_starts, c))
        return negative(ctx, "Column", rn_in(ctx, first + 1));
  }
  return RN_OK;
}

// |dims| are those of the original image; |pool| has the sequences.
static rn_status_t back(rn_kernel_ctx_t* ctx, const int64_t dims[4], fractional_pool_t* pool) {
  rn_tensor_t* dx = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, dims}, &dx));
  memset(dx->data, 0, rn_tensor_bytes(dx));
  pool->to = dx->data;
  pool->count = dx->count;
  rn_tensor_t shares = {0};
  if (pool->work == AVERAGE_GRADIENT) {
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_DOUBLE, rn_tensor_shape(dx), &shares));
    memset(shares.data, 0, rn_tensor_bytes(&shares));
    pool->shares = shares.data;
  }
  run(pool, dx->dtype);
  rn_tensor_clear(&shares);
  return RN_OK;
}

// What both gradients set from input |first| (dy), the sequences after it, and the image.
static fractional_pool_t pool_of(rn_kernel_ctx_t* ctx, fractional_pool_work_t work,
                                 const int64_t dims[4], int first) {
  const rn_tensor_t* dy = rn_in(ctx, first);
  return (fractional_pool_t){
      .work = work,
      .is_overlapping = ((const fractional_pool_state_t*)ctx->state)->is_overlapping,
      .batch = rn_tensor_dim(dy, 0),
      .rows = dims[1],
      .columns = dims[2],
      .depth = dims[3],
      .out_rows = rn_tensor_dim(dy, 1),
      .out_columns = rn_tensor_dim(dy, 2),
      .row_starts = rn_in(ctx, first + 1)->data,
      .column_starts = rn_in(ctx, first + 2)->data,
      .dy = dy->data};
}

static rn_status_t not_empty(const rn_tensor_t* tensor, const char* name) {
  if (tensor->rank != 4) return rn_invalid_argument("%s must be 4-dimensional", name);
  if (tensor->count > 0) return RN_OK;
  return rn_invalid_argument("%s must not be empty, got Tensor<type: %s shape: %s values: >", name,
                             rn_dtype_name(tensor->dtype), rn_text_of(tensor).text);
}

static rn_status_t max_gradient(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"row", "col"};
  const rn_tensor_t *x = rn_in(ctx, 0), *y = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(not_empty(x, "orig_input"));
  RN_RETURN_IF_ERROR(not_empty(y, "orig_output"));
  for (int i = 0; i < 2; ++i)
    if (rn_in(ctx, 3 + i)->rank != 1)
      return rn_invalid_argument("%s_pooling_sequence must be a vector, received shape %s",
                                 names[i], rn_text_of(rn_in(ctx, 3 + i)).text);
  if (!rn_tensor_same_shape(y, rn_in(ctx, 2)))
    return rn_invalid_argument("orig_output and out_backprop must have the same shape");
  fractional_pool_t pool = pool_of(ctx, MAX_GRADIENT, rn_tensor_dims(x), 2);
  pool.x = x->data, pool.y = y->data;
  // Some outputs would belong to no window of this image.
  pool.is_wrong = pool.batch != rn_tensor_dim(x, 0) || rn_tensor_dim(y, 3) != pool.depth ||
                  rn_in(ctx, 3)->count <= pool.out_rows || rn_in(ctx, 4)->count <= pool.out_columns;
  if (!pool.is_wrong) {
    RN_RETURN_IF_ERROR(check_sequences(ctx, &pool, 3));
    RN_RETURN_IF_ERROR(back(ctx, rn_tensor_dims(x), &pool));
  }
  if (pool.is_wrong) return rn_invalid_argument("tensor_out_dup is not the same as tensor_out");
  return RN_OK;
}

// The checks of FractionalAvgPoolGrad, in stock's order.
static rn_status_t check_average(rn_kernel_ctx_t* ctx, int64_t dims[RN_MAX_RANK]) {
  static const char *const sequences[] = {"row", "col"}, *const axes[] = {"Batch", "Rows",
                                                                          "Columns", "Depth"};
  const rn_tensor_t *sizes = rn_in(ctx, 0), *dy = rn_in(ctx, 1);
  if (sizes->rank != 1 || sizes->count != 4)
    return rn_invalid_argument("original input tensor shape must be1-dimensional and 4 elements");
  if (dy->rank != 4) return rn_invalid_argument("out_backprop must be 4-dimensional");
  for (int i = 0; i < 4; ++i)
    if (rn_tensor_dim(dy, i) == 0)
      return rn_invalid_argument("out_backprop must be positive for all dimension, got:0");
  for (int i = 0; i < 2; ++i)
    if (rn_in(ctx, 2 + i)->count <= rn_tensor_dim(dy, 1 + i))
      return rn_invalid_argument(
          "Given out_backprop shape %s, %s_seq_tensor must have at least "
          "%" PRId64 " elements, but got %" PRId64,
          rn_text_of(dy).text, sequences[i], rn_tensor_dim(dy, 1 + i) + 1,
          rn_in(ctx, 2 + i)->count);
  for (int i = 0; i < 4; ++i)
    if (RN_DATA(sizes, const int64_t)[i] == 0)
      return rn_invalid_argument("%s dimension of input must not be 0", axes[i]);
  rn_shape_t shape;
  return rn_read_dims(sizes, dims, &shape);
}

static rn_status_t average_gradient(rn_kernel_ctx_t* ctx) {
  int64_t dims[RN_MAX_RANK];
  RN_RETURN_IF_ERROR(check_average(ctx, dims));
  fractional_pool_t pool = pool_of(ctx, AVERAGE_GRADIENT, dims, 1);
  RN_RETURN_IF_ERROR(check_sequences(ctx, &pool, 2));
  // If dy has fewer images, the others get no gradient.
  if (pool.batch > dims[0] || rn_tensor_dim(rn_in(ctx, 1), 3) != pool.depth)
    return rn_invalid_argument("out_backprop must have the batch and the depth of the input");
  return back(ctx, dims, &pool);
}

#define ROW(op_, init_, compute_)                                                     \
  {                                                                                   \
    .op = op_, .device = "CPU",                                                       \
    .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE) | RN_T(INT32) | RN_T(INT64)}},         \
    .state_size = sizeof(fractional_pool_state_t), .init = init_, .compute = compute_ \
  }
static const rn_kernel_def_t rows[] = {
    ROW("FractionalMaxPool", max_init, max_compute),
    ROW("FractionalAvgPool", average_init, average_compute),
    ROW("FractionalMaxPoolGrad", gradient_init, max_gradient),
    ROW("FractionalAvgPoolGrad", gradient_init, average_gradient),
};
RN_KERNEL_FAMILY(cpu_fractional_pool, rows);
