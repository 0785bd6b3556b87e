// Deprecated ops, which only old graphs contain.
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/float_args.h"
#include "kernels/cpu/nn/global_norm.h"
#include "kernels/cpu/random/random.h"
#include "kernels/kernel_rows.h"

// BatchNormWithGlobalNormalization: mean and variance are inputs.

#define NORM(T, SQRT)                                                                              \
  static void norm_##T(const rn_global_norm_t* state, const T* x, const T* m, const T* v,          \
                       const T* b, const T* g, T* y, int64_t count, int64_t depth) {               \
    for (int64_t c = 0; c < depth; ++c) {                                                          \
      T scale = 1 / SQRT(v[c] + (T)state->epsilon);                                                \
      if (state->scales) scale *= g[c];                                                            \
      T shift = b[c] - m[c] * scale;                                                               \
      for (int64_t i = c; i < count; i += depth) y[i] = x[i] * scale + shift;                      \
    }                                                                                              \
  }                                                                                                \
  static void norm_gradient_##T(const rn_global_norm_t* state, const T* x, const T* m, const T* v, \
                                const T* g, const T* dy, T* const* out, int64_t count,             \
                                int64_t depth) {                                                   \
    for (int64_t c = 0; c < depth; ++c) {                                                          \
      T inverse = 1 / SQRT(v[c] + (T)state->epsilon);                                              \
      T scale = state->scales ? inverse * g[c] : inverse, sum = 0, products = 0;                   \
      for (int64_t i = c; i < count; i += depth) {                                                 \
        out[0][i] = dy[i] * scale;                                                                 \
        sum += dy[i];                                                                              \
        products += dy[i] * (x[i] - m[c]);                                                         \
      }                                                                                            \
      out[1][c] = -sum * scale;                                                                    \
      out[2][c] = products * (T)-0.5 * scale * inverse * inverse;                                  \
      out[3][c] = sum;                                                                             \
      out[4][c] = state->scales ? products * inverse : 0;                                          \
    }                                                                                              \
  }
NORM(float, sqrtf)
NORM(double, sqrt)

static rn_status_t norm_compute(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_global_norm_check(ctx));
  const rn_tensor_t* x = rn_in(ctx, 0);
  const int64_t depth = rn_tensor_dim(x, 3);
  if (x->dtype == RN_DOUBLE) {
    rn_tensor_t* y = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
    norm_double(ctx->state, x->data, rn_in(ctx, 1)->data, rn_in(ctx, 2)->data, rn_in(ctx, 3)->data,
                rn_in(ctx, 4)->data, y->data, x->count, depth);
    return RN_OK;
  }
  rn_float_args_t args = {.ctx = ctx};
  const float* in[5] = {0};
  float* y = NULL;
  rn_status_t status = RN_OK;
  for (int i = 0; i < 5 && rn_ok(status); ++i) status = rn_float_args_in(&args, i, &in[i]);
  if (rn_ok(status)) status = rn_float_args_out(&args, 0, rn_tensor_shape(x), &y);
  if (rn_ok(status)) norm_float(ctx->state, in[0], in[1], in[2], in[3], in[4], y, x->count, depth);
  return rn_float_args_end(&args, status);
}

static rn_status_t norm_gradient_double_compute(rn_kernel_ctx_t* ctx) {
  double* out[5];
  for (int i = 0; i < 5; ++i) {
    rn_tensor_t* tensor = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, i, rn_tensor_shape(rn_in(ctx, i ? 1 : 0)), &tensor));
    out[i] = tensor->data;
  }
  const rn_tensor_t* x = rn_in(ctx, 0);
  norm_gradient_double(ctx->state, x->data, rn_in(ctx, 1)->data, rn_in(ctx, 2)->data,
                       rn_in(ctx, 3)->data, rn_in(ctx, 4)->data, out, x->count,
                       rn_tensor_dim(x, 3));
  return RN_OK;
}

static rn_status_t norm_gradient_compute(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(rn_global_norm_grad_check(ctx));
  const rn_tensor_t* x = rn_in(ctx, 0);
  if (x->dtype == RN_DOUBLE) return norm_gradient_double_compute(ctx);
  rn_float_args_t args = {.ctx = ctx};
  const float* in[5] = {0};
  float* out[5] = {0};
  rn_status_t status = RN_OK;
  for (int i = 0; i < 5 && rn_ok(status); ++i) status = rn_float_args_in(&args, i, &in[i]);
  for (int i = 0; i < 5 && rn_ok(status); ++i)
    status = rn_float_args_out(&args, i, rn_tensor_shape(rn_in(ctx, i ? 1 : 0)), &out[i]);
  if (rn_ok(status))
    norm_gradient_float(ctx->state, in[0], in[1], in[2], in[3], in[4], out, x->count,
                        rn_tensor_dim(x, 3));
  return rn_float_args_end(&args, status);
}

// RandomCrop.

static rn_status_t check_crop(const rn_tensor_t* x, const rn_tensor_t* size) {
  static const char* const names[2] = {"height", "width"};
  if (x->rank != 3) return rn_invalid_argument("input must be 3-dimensional%s", rn_text_of(x).text);
  if (size->rank != 1)
    return rn_invalid_argument("shape_t must be 1-dimensional%s", rn_text_of(size).text);
  if (size->count != 2)
    return rn_invalid_argument("shape_t must have two elements%s", rn_text_of(size).text);
  for (int i = 0; i < 2; ++i) {
    int64_t have = rn_tensor_dim(x, i), want = RN_DATA(size, const int64_t)[i];
    if (want < 0 || have > INT32_MAX)
      return rn_invalid_argument("target_%s must not be negative: %" PRId64, names[i], want);
    if (have < want)
      return rn_invalid_argument("%s must be >= target_%s: %s = %" PRId64 ", target_%s = %" PRId64,
                                 names[i], names[i], names[i], have, names[i], want);
  }
  return RN_OK;
}

static rn_status_t crop_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *x = rn_in(ctx, 0), *size = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(check_crop(x, size));
  const int64_t *dims = rn_tensor_dims(x), *wanted = size->data;
  if (dims[0] == wanted[0] && dims[1] == wanted[1]) return rn_forward(ctx, 0, 0);
  int64_t out_dims[3] = {wanted[0], wanted[1], dims[2]}, at[2] = {0};
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){3, out_dims}, &y));
  rn_philox_single_t words = rn_philox_single(rn_random_stream_reserve(ctx->state, 1));
  for (int i = 1; i >= 0; --i)
    if (dims[i] > wanted[i]) at[i] = rn_philox_word(&words) % (dims[i] - wanted[i] + 1);
  size_t pixel = (size_t)dims[2] * rn_dtype_size(x->dtype), row = pixel * (size_t)wanted[1];
  for (int64_t i = 0; i < wanted[0] && row; ++i)
    memcpy((char*)y->data + (size_t)i * row,
           (const char*)x->data + (size_t)((at[0] + i) * dims[1] + at[1]) * pixel, row);
  return RN_OK;
}

#define NORM_TYPES (RN_T(HALF) | RN_T(FLOAT) | RN_T(DOUBLE))
static const rn_kernel_def_t rows[] = {
    {.op = "BatchNormWithGlobalNormalization",
     .device = "CPU",
     .types = {{"T", NORM_TYPES}},
     .state_size = sizeof(rn_global_norm_t),
     .init = rn_global_norm_init,
     .compute = norm_compute},
    {.op = "BatchNormWithGlobalNormalizationGrad",
     .device = "CPU",
     .types = {{"T", NORM_TYPES}},
     .state_size = sizeof(rn_global_norm_t),
     .init = rn_global_norm_init,
     .compute = norm_gradient_compute},
    {.op = "RandomCrop",
     .device = "CPU",
     .types = {{"T", RN_TYPES_REAL}},
     .state_size = sizeof(rn_random_stream_t),
     .init = rn_random_stream_init,
     .destroy = rn_random_stream_destroy,
     .compute = crop_compute},
};
RN_KERNEL_FAMILY(cpu_outdated, rows);
