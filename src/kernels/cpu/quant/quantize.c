// QuantizeAndDequantize: rounds floats to the levels of an integer of given bits, and converts
// back.
#include "kernels/cpu/quant/quantize.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/spans.h"
#include "kernels/kernel_rows.h"

static bool bits_are_good(const rn_quantize_t* state, int64_t bits) {
  return bits > 0 && bits < (state->is_signed ? 62 : 63);
}

static rn_status_t common_init(const rn_kernel_init_t* init, rn_quantize_t* state) {
  state->is_signed = rn_init_bool(init, "signed_input");
  state->is_narrow = rn_init_bool(init, "narrow_range");
  state->has_range = rn_init_bool(init, "range_given");
  state->axis = rn_init_int(init, "axis");
  if (state->axis < -1)
    return rn_invalid_argument("Axis must be at least -1. Found %" PRId64, state->axis);
  return RN_OK;
}

static rn_status_t check_bits(const rn_quantize_t* state) {
  if (bits_are_good(state, state->bits)) return RN_OK;
  return rn_invalid_argument("num_bits is out of range: %" PRId64 " with signed_input_ %d",
                             state->bits, state->is_signed);
}

static rn_status_t v1_init(const rn_kernel_init_t* init, rn_quantize_t* state) {
  *state = (rn_quantize_t){.is_first = true,
                           .is_signed = rn_init_bool(init, "signed_input"),
                           .has_range = rn_init_bool(init, "range_given"),
                           .min = rn_init_float(init, "input_min"),
                           .max = rn_init_float(init, "input_max"),
                           .bits = rn_init_int(init, "num_bits"),
                           .axis = -1};
  RN_RETURN_IF_ERROR(check_bits(state));
  if (state->has_range && !(state->min <= state->max))
    return rn_invalid_argument("Invalid range: input_min %g > input_max %g", state->min,
                               state->max);
  return RN_OK;
}

static rn_status_t v2_init(const rn_kernel_init_t* init, rn_quantize_t* state) {
  RN_RETURN_IF_ERROR(common_init(init, state));
  state->bits = rn_init_int(init, "num_bits");
  state->rounds_up = rn_str_is(rn_init_string(init, "round_mode"), "HALF_UP");
  return check_bits(state);
}

static rn_status_t v3_init(const rn_kernel_init_t* init, rn_quantize_t* state) {
  state->has_bits_input = true;
  return common_init(init, state);
}

static rn_status_t gradient_init(const rn_kernel_init_t* init, rn_quantize_t* state) {
  state->axis = rn_init_int(init, "axis");
  state->has_range = true;
  return RN_OK;
}

rn_status_t rn_quantize_init(const rn_kernel_init_t* init, void* state) {
  rn_str_t name = rn_str(init->op->name);
  if (rn_str_ends_with(name, RN_STR("Grad"))) return gradient_init(init, state);
  if (rn_str_ends_with(name, RN_STR("V3"))) return v3_init(init, state);
  return init->input_count > 1 ? v2_init(init, state) : v1_init(init, state);
}

static void extremes_float(const float* in, int64_t n, float* out_least, float* out_most) {
  rn_spans()->extremes(in, n, out_least, out_most);
}

static void extremes_double(const double* in, int64_t n, double* out_least, double* out_most) {
  *out_least = *out_most = in[0];
  for (int64_t i = 1; i < n; ++i) {
    *out_least = in[i] < *out_least ? in[i] : *out_least;
    *out_most = in[i] > *out_most ? in[i] : *out_most;
  }
}

// round(x * scale) * inverse; the lower bound wins: a range below 0 has no levels.
static void round_float(bool rounds_up, float low, float high, float scale, float inverse,
                        const float* in, float* out, int64_t n) {
  const rn_span_rounding_t rounding = {low, high, scale, inverse, rounds_up};
  rn_spans()->to_rounded(&rounding, in, out, n);
}

static void round_double(bool rounds_up, double low, double high, double scale, double inverse,
                         const double* in, double* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    double x = in[i] > high ? high : in[i];
    x = (x < low ? low : x) * scale;
    out[i] = (rounds_up ? floor(x + 0.5) : rint(x)) * inverse;
  }
}

// Widens the range so that 0 is a level, without moving the side that determines the scale.
#define QUANTIZE(T, MAX)                                                                      \
  static void quantize_##T(const rn_quantize_t* state, int64_t bits, const T* in, T* out,     \
                           const rn_quantize_slices_t* slice, T min, T max) {                 \
    T least =                                                                                 \
        (T)(state->is_signed ? -(INT64_C(1) << (bits - 1)) + (state->is_narrow ? 1 : 0) : 0); \
    T most = (T)((INT64_C(1) << (state->is_signed ? bits - 1 : bits)) - 1);                   \
    if (!state->has_range) {                                                                  \
      min = max = in[0];                                                                      \
      for (int64_t o = 0; o < slice->outer && slice->inner; ++o) {                            \
        T low, high;                                                                          \
        extremes_##T(in + o * slice->step, slice->inner, &low, &high);                        \
        min = low < min ? low : min;                                                          \
        max = high > max ? high : max;                                                        \
      }                                                                                       \
    }                                                                                         \
    T from_min = least * min > 0 ? least / min : MAX,                                         \
      from_max = most * max > 0 ? most / max : MAX;                                           \
    T scale, inverse;                                                                         \
    if (from_min < from_max) {                                                                \
      scale = from_min, inverse = min / least, max = most * inverse;                          \
    } else {                                                                                  \
      scale = from_max, inverse = max / most, min = least * inverse;                          \
    }                                                                                         \
    if (!state->has_range) min = -(T)INFINITY, max = (T)INFINITY;                             \
    for (int64_t o = 0; o < slice->outer; ++o)                                                \
      round_##T(state->rounds_up, min, max, scale, inverse, in + o * slice->step,             \
                out + o * slice->step, slice->inner);                                         \
  }
QUANTIZE(float, FLT_MAX)
QUANTIZE(double, DBL_MAX)

static rn_status_t check_range(const rn_tensor_t* min, const rn_tensor_t* max, int64_t i) {
  double low = min->dtype == RN_FLOAT ? (double)RN_DATA(min, float)[i] : RN_DATA(min, double)[i];
  double high = max->dtype == RN_FLOAT ? (double)RN_DATA(max, float)[i] : RN_DATA(max, double)[i];
  if (low <= high) return RN_OK;
  return rn_invalid_argument("Invalid range: input_min %g > input_max %g", low, high);
}

static rn_status_t check_limits(rn_kernel_ctx_t* ctx, const rn_quantize_t* state, int64_t slices) {
  static const char* const names[2] = {"input_min", "input_max"};
  if (state->is_first) return RN_OK;
  for (int i = 0; i < 2 && state->has_range; ++i) {
    const rn_tensor_t* limit = rn_in(ctx, i + 1);
    if ((state->axis == -1 || !state->has_bits_input) && limit->rank != 0)
      return rn_invalid_argument("%s must be a scalar.", names[i]);
    if (state->axis != -1 && state->has_bits_input && limit->count != slices)
      return rn_invalid_argument("%s_tensor has incorrect size, was %" PRId64 " expected %" PRId64
                                 " to match dim %" PRId64 " of the input %s",
                                 names[i], limit->count, slices, state->axis,
                                 rn_text_of(limit).text);
  }
  for (int64_t i = 0; state->has_range && i < rn_in(ctx, 1)->count; ++i)
    RN_RETURN_IF_ERROR(check_range(rn_in(ctx, 1), rn_in(ctx, 2), i));
  return RN_OK;
}

static rn_status_t read_bits(rn_kernel_ctx_t* ctx, const rn_quantize_t* state, int64_t* out) {
  *out = state->bits;
  if (!state->has_bits_input) return RN_OK;
  const rn_tensor_t* bits = rn_in(ctx, 3);
  if (bits->rank != 0)
    return rn_invalid_argument(
        "Invalid shape. The `num_bits` tensor should be a scalar. Got dimensions: %d", bits->rank);
  *out = *RN_DATA(bits, const int32_t);
  if (bits_are_good(state, *out)) return RN_OK;
  return rn_invalid_argument("num_bits is out of range: %" PRId64 " with `signed_input_` %d", *out,
                             state->is_signed);
}

static rn_quantize_slices_t slices_of(const rn_quantize_t* state, const rn_tensor_t* x) {
  if (state->axis == -1) return (rn_quantize_slices_t){1, 1, x->count, x->count};
  rn_axis_view_t view = rn_axis_view(x, (int)state->axis);
  return (rn_quantize_slices_t){view.size, view.outer, view.inner, view.size * view.inner};
}

double rn_quantize_limit(const rn_kernel_ctx_t* ctx, int at, int64_t i) {
  const rn_quantize_t* state = ctx->state;
  if (!state->has_range) return 0;
  if (state->is_first) return at == 1 ? state->min : state->max;
  const rn_tensor_t* limit = rn_in(ctx, at);
  if (limit->count <= 1) i = 0;
  return limit->dtype == RN_FLOAT ? (double)RN_DATA(limit, float)[i] : RN_DATA(limit, double)[i];
}

rn_status_t rn_quantize_begin(rn_kernel_ctx_t* ctx, int64_t* out_bits,
                              rn_quantize_slices_t* out_slices, rn_tensor_t** out) {
  const rn_quantize_t* state = ctx->state;
  const rn_tensor_t* in = rn_in(ctx, 0);
  if (state->axis != -1 && in->rank <= state->axis)
    return rn_invalid_argument("Shape must be at least rank %" PRId64 " but is rank %d",
                               state->axis + 1, in->rank);
  *out_slices = slices_of(state, in);
  RN_RETURN_IF_ERROR(read_bits(ctx, state, out_bits));
  RN_RETURN_IF_ERROR(check_limits(ctx, state, out_slices->count));
  return rn_output(ctx, 0, rn_tensor_shape(in), out);
}

static rn_status_t quantize_compute(rn_kernel_ctx_t* ctx) {
  const rn_quantize_t* state = ctx->state;
  const rn_tensor_t* in = rn_in(ctx, 0);
  int64_t bits = 0;
  rn_quantize_slices_t slices;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_quantize_begin(ctx, &bits, &slices, &out));
  for (int64_t i = 0; i < slices.count && out->count; ++i) {
    int64_t at = i * slices.inner;
    double min = rn_quantize_limit(ctx, 1, i), max = rn_quantize_limit(ctx, 2, i);
    if (in->dtype == RN_FLOAT)
      quantize_float(state, bits, RN_DATA(in, float) + at, RN_DATA(out, float) + at, &slices,
                     (float)min, (float)max);
    else
      quantize_double(state, bits, RN_DATA(in, double) + at, RN_DATA(out, double) + at, &slices,
                      min, max);
  }
  return RN_OK;
}

// The gradient passes between the limits; the limits themselves get none. Elsewhere it is
// multiplied by zero, so that NaN and infinities show.
#define PASS(T)                                                                                 \
  static void pass_##T(const T* dy, const T* x, const rn_quantize_slices_t* slice, double min_, \
                       double max_, T* dx) {                                                    \
    const T min = (T)min_, max = (T)max_;                                                       \
    for (int64_t o = 0; o < slice->outer; ++o)                                                  \
      for (int64_t i = o * slice->step; i < o * slice->step + slice->inner; ++i)                \
        dx[i] = dy[i] * (x[i] >= min && x[i] <= max ? 1 : 0);                                   \
  }
PASS(float)
PASS(double)

static rn_status_t check_gradient(rn_kernel_ctx_t* ctx, int64_t slices) {
  static const char* const names[2] = {"min", "max"};
  const rn_quantize_t* state = ctx->state;
  for (int i = 0; i < 2; ++i) {
    const rn_tensor_t* limit = rn_in(ctx, 2 + i);
    if (state->axis == -1 && limit->rank != 0)
      return rn_invalid_argument("input_%s must be a scalar if axis is unspecified", names[i]);
    if (state->axis != -1 && (limit->rank != 1 || limit->count != slices))
      return rn_invalid_argument("%s has incorrect size, expected %" PRId64 " was %" PRId64,
                                 names[i], slices, limit->count);
  }
  return RN_OK;
}

rn_status_t rn_quantize_grad_begin(rn_kernel_ctx_t* ctx, rn_quantize_slices_t* out_slices,
                                   rn_tensor_t** out) {
  const rn_quantize_t* state = ctx->state;
  const rn_tensor_t *dy = rn_in(ctx, 0), *x = rn_in(ctx, 1);
  if (!rn_tensor_same_shape(dy, x))
    return rn_invalid_argument("gradient and input must be the same size");
  if (state->axis < -1 || (state->axis != -1 && state->axis >= x->rank))
    return rn_invalid_argument(
        "Axis should be -1 or 0 or a positive value less than %dbut given axis value was %" PRId64,
        x->rank, state->axis);
  *out_slices = slices_of(state, x);
  RN_RETURN_IF_ERROR(check_gradient(ctx, out_slices->count));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), out));
  for (int i = 1; i < 3; ++i) {
    rn_tensor_t* limit = NULL;
    RN_RETURN_IF_ERROR(rn_output(ctx, i, rn_tensor_shape(rn_in(ctx, 1 + i)), &limit));
    RN_RETURN_IF_ERROR(rn_ctx_zero(ctx, limit));
  }
  return RN_OK;
}

static rn_status_t gradient_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *dy = rn_in(ctx, 0), *x = rn_in(ctx, 1);
  rn_quantize_slices_t slices;
  rn_tensor_t* dx = NULL;
  RN_RETURN_IF_ERROR(rn_quantize_grad_begin(ctx, &slices, &dx));
  for (int64_t i = 0; i < slices.count && x->count; ++i) {
    int64_t at = i * slices.inner;
    double min = rn_quantize_limit(ctx, 2, i), max = rn_quantize_limit(ctx, 3, i);
    if (x->dtype == RN_FLOAT)
      pass_float(RN_DATA(dy, float) + at, RN_DATA(x, float) + at, &slices, min, max,
                 RN_DATA(dx, float) + at);
    else
      pass_double(RN_DATA(dy, double) + at, RN_DATA(x, double) + at, &slices, min, max,
                  RN_DATA(dx, double) + at);
  }
  return RN_OK;
}

#define ROW(op_, compute_)                                                             \
  {                                                                                    \
    .op = op_, .device = "CPU", .types = {{"T", RN_T(FLOAT) | RN_T(DOUBLE)}},          \
    .state_size = sizeof(rn_quantize_t), .init = rn_quantize_init, .compute = compute_ \
  }
static const rn_kernel_def_t rows[] = {
    ROW("QuantizeAndDequantize", quantize_compute),
    ROW("QuantizeAndDequantizeV2", quantize_compute),
    ROW("QuantizeAndDequantizeV3", quantize_compute),
    ROW("QuantizeAndDequantizeV4", quantize_compute),
    ROW("QuantizeAndDequantizeV4Grad", gradient_compute),
};
RN_KERNEL_FAMILY(cpu_quantize, rows);
