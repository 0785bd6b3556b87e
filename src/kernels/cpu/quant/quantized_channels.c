// Levels with limits per channel, the last axis: RequantizationRangePerChannel,
// RequantizePerChannel; and QuantizedInstanceNorm.
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/quant/quantized.h"
#include "kernels/kernel_rows.h"

static float largest_of(const rn_kernel_ctx_t* ctx, int64_t channel) {
  return fmaxf(fabsf(RN_DATA(rn_in(ctx, 1), const float)[channel]),
               fabsf(RN_DATA(rn_in(ctx, 2), const float)[channel]));
}

static rn_status_t check_channels(const rn_kernel_ctx_t* ctx, int64_t depth) {
  const rn_tensor_t *min = rn_in(ctx, 1), *max = rn_in(ctx, 2);
  if (min->count != max->count)
    return rn_invalid_argument("input_min has incorrect size, expected %" PRId64 " was %" PRId64,
                               max->count, min->count);
  if (min->rank != 1 || min->count != depth)
    return rn_invalid_argument(
        "input must have same number of channels as length of input_min: %" PRId64 " vs %" PRId64,
        depth, min->count);
  return RN_OK;
}

typedef struct range_state_t {
  float clip;
} range_state_t;

static rn_status_t range_init(const rn_kernel_init_t* init, void* state) {
  ((range_state_t*)state)->clip = rn_init_attr(init, "clip_value_max")->f;
  return RN_OK;
}

static rn_status_t range_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  if (x->rank != 4) return rn_invalid_argument("input must be in NHWC format");
  int64_t depth = rn_tensor_dim(x, 3);
  RN_RETURN_IF_ERROR(check_channels(ctx, depth));
  float largest = FLT_MIN;
  bool has_negative = false;
  for (int64_t c = 0; c < depth; ++c) {
    int64_t furthest = 0;
    for (int64_t i = c; i < x->count; i += depth) {
      int64_t level = RN_DATA(x, const int32_t)[i];
      has_negative |= level < 0;
      if (level < 0) level = -level;
      if (level > furthest) furthest = level;
    }
    largest = fmaxf(largest, (float)furthest * largest_of(ctx, c) / 2147483648.0f);
  }
  largest = fminf(largest, ((const range_state_t*)ctx->state)->clip);
  return rn_quant_set_limits(ctx, 0, (rn_quant_limits_t){has_negative ? -largest : 0, largest});
}

static rn_status_t requantize_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  static const char* const names[] = {"requested_output_min", "requested_output_max"};
  if (x->rank != 4)
    return rn_invalid_argument("Current RequantizePerChannel operatorsupports 4D tensors only.");
  int64_t depth = rn_tensor_dim(x, 3);
  RN_RETURN_IF_ERROR(check_channels(ctx, depth));
  for (int i = 0; i < 2; ++i)
    if (rn_in(ctx, 3 + i)->rank != 0) return rn_invalid_argument("%s must be a scalar", names[i]);
  rn_quant_limits_t to = rn_quant_limits_at(ctx, 3);
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  RN_RETURN_IF_ERROR(rn_quant_set_limits(ctx, 1, to));
  bool is_signed = y->dtype == RN_QINT8;
  if (is_signed && !(to.min < 0))  // the words are stock's
    return rn_invalid_argument(
        "If out_type is QINT8, requested_output_max must be non negative, got %g", (double)to.min);
  float low = is_signed ? -128.0f : 0, high = is_signed ? 127.0f : 255.0f;
  float range = fmaxf(fabsf(to.min), fabsf(to.max));
  for (int64_t i = 0; i < x->count; ++i) {
    float scale = high * (largest_of(ctx, i % depth) / range / 2147483648.0f);
    float level = (float)RN_DATA(x, const int32_t)[i] * scale;
    level = rintf(level < low ? low : level > high ? high : level);
    RN_DATA(y, uint8_t)[i] = (uint8_t)(int32_t)level;
  }
  return RN_OK;
}

// Instance normalization: each channel of each image gets mean 0 and variance 1.

typedef struct norm_state_t {
  bool has_range;
  rn_quant_limits_t range;
  float epsilon, separation;
} norm_state_t;

static rn_status_t norm_init(const rn_kernel_init_t* init, void* state) {
  norm_state_t* norm = state;
  *norm = (norm_state_t){
      .has_range = rn_init_bool(init, "output_range_given"),
      .range = {rn_init_attr(init, "given_y_min")->f, rn_init_attr(init, "given_y_max")->f},
      .epsilon = rn_init_attr(init, "variance_epsilon")->f,
      .separation = rn_init_attr(init, "min_separation")->f};
  if (norm->has_range && !(norm->range.min < norm->range.max))
    return rn_invalid_argument("given_y_min must be less than given_y_max : %g >= %g",
                               (double)norm->range.min, (double)norm->range.max);
  return RN_OK;
}

// Normalizes one channel of one image: |size| values, |step| apart.
static void norm_channel(float* x, int64_t size, int64_t step, float epsilon) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < size; ++i) sum += (double)x[i * step];
  double mean = sum / (double)size;
  for (int64_t i = 0; i < size; ++i) {
    double part = (double)x[i * step] - mean;
    squares += part * part;
  }
  double scale = 1 / sqrt(squares / (double)size + (double)epsilon);
  for (int64_t i = 0; i < size; ++i) x[i * step] = (float)(((double)x[i * step] - mean) * scale);
}

static rn_status_t norm_compute(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"x_min", "x_max"};
  const norm_state_t* state = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(rn_quant_check_scalars(ctx, 1, names, 2));
  rn_quant_limits_t limits = rn_quant_limits_at(ctx, 1), to = state->range;
  if (!(limits.min < limits.max))
    return rn_invalid_argument("input_min must be less than input_max : %g >= %g",
                               (double)limits.min, (double)limits.max);
  if (x->rank != 4) return rn_invalid_argument("x must be rank 4 but is rank %d", x->rank);
  rn_tensor_t *y = NULL, values = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, rn_tensor_shape(x), &values));
  const int64_t* dims = rn_tensor_dims(x);
  int64_t size = dims[1] * dims[2], depth = dims[3];
  float* floats = values.data;
  rn_quant_out_t out_of = rn_quant_out(x->dtype, limits);
  rn_quant_values(&out_of, x->dtype, x->data, floats, x->count);
  for (int64_t b = 0; x->count && b < dims[0]; ++b)
    for (int64_t c = 0; c < depth; ++c)
      norm_channel(floats + b * size * depth + c, size, depth, state->epsilon);
  if (!state->has_range) {
    to = (rn_quant_limits_t){FLT_MAX, -FLT_MAX};
    for (int64_t i = 0; i < x->count; ++i) {
      to.min = fminf(to.min, floats[i]);
      to.max = fmaxf(to.max, floats[i]);
    }
    if (x->count == 0) to = (rn_quant_limits_t){0, 0};
    if (to.max - to.min < state->separation) to.max = to.min + state->separation;
  }
  rn_quant_in_t into = rn_quant_in(y->dtype, to);
  rn_quant_levels(&into, floats, y->dtype, y->data, y->count);
  rn_tensor_clear(&values);
  return rn_quant_set_limits(ctx, 1, to);
}

static const rn_kernel_def_t rows[] = {
    {.op = "RequantizationRangePerChannel",
     .device = "CPU",
     .types = {{"T", RN_T(QINT32)}},
     .state_size = sizeof(range_state_t),
     .init = range_init,
     .compute = range_compute},
    {.op = "RequantizePerChannel",
     .device = "CPU",
     .types = {{"T", RN_T(QINT32)}, {"out_type", RN_T(QUINT8) | RN_T(QINT8)}},
     .compute = requantize_compute},
    {.op = "QuantizedInstanceNorm",
     .device = "CPU",
     .types = {{"T", RN_T(QUINT8)}},
     .state_size = sizeof(norm_state_t),
     .init = norm_init,
     .compute = norm_compute},
};
RN_KERNEL_FAMILY(cpu_quantized_channels, rows);
