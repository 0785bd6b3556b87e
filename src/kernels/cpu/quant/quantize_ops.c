// QuantizeV2, Dequantize, Requantize and related ops.
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/broadcasting.h"
#include "kernels/cpu/quant/quantized.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

typedef enum quant_mode_t { MIN_COMBINED = 0, MIN_FIRST, SCALED } quant_mode_t;

typedef struct quantize_ops_state_t {
  quant_mode_t mode;
  bool is_narrow, to_even;
  int64_t axis;
  float least_range;
  rn_dtype_t dtype;  // of the levels
} quantize_ops_state_t;

static void common_init(const rn_kernel_init_t* init, quantize_ops_state_t* state) {
  rn_str_t mode = rn_init_string(init, "mode");
  state->mode = rn_str_is(mode, "SCALED")      ? SCALED
                : rn_str_is(mode, "MIN_FIRST") ? MIN_FIRST
                                               : MIN_COMBINED;
  state->is_narrow = rn_init_bool(init, "narrow_range");
  state->axis = rn_init_int(init, "axis");
  state->dtype = rn_init_type(init, "T");
}

// The number of levels minus one, and how many of them are below zero.
static double span_of(rn_dtype_t dtype) {
  return (double)(rn_quant_highest(dtype) - rn_quant_lowest(dtype));
}
static float half_of(rn_dtype_t dtype) {
  return rn_quant_lowest(dtype) ? (float)((span_of(dtype) + 1) / 2) : 0;
}

// The input as slices with their own limits: one for all of it, or one per index of an axis.
typedef struct quantize_ops_slices_t {
  int64_t count, outer, inner;
} quantize_ops_slices_t;

static quantize_ops_slices_t slices_of(const rn_tensor_t* x, int64_t axis) {
  if (axis < 0) return (quantize_ops_slices_t){1, 1, x->count};
  rn_axis_view_t view = rn_axis_view(x, (int)axis);
  return (quantize_ops_slices_t){view.size, view.outer, view.inner};
}

// QuantizeV2.

static rn_status_t quantize_init(const rn_kernel_init_t* init, void* state_) {
  quantize_ops_state_t* state = state_;
  common_init(init, state);
  state->to_even = rn_str_is(rn_init_string(init, "round_mode"), "HALF_TO_EVEN");
  state->least_range = rn_init_float(init, "ensure_minimum_range");
  if (state->to_even && state->mode != SCALED)
    return rn_invalid_argument(
        "Round mode 'HALF_TO_EVEN' only supported for mode 'SCALED', but mode is '%.*s'.",
        RN_STR_ARGS(rn_init_string(init, "mode")));
  return RN_OK;
}

static rn_status_t check_limit(const rn_tensor_t* x, const rn_tensor_t* limit, int64_t axis,
                               const char* name) {
  if (axis < 0 && limit->count != 1)
    return rn_invalid_argument(
        "If axis is not specified, %s must contain a single float element, "
        "but it contains %" PRId64 " elements",
        name, limit->count);
  if (axis < 0) return RN_OK;
  if (limit->rank != 1)
    return rn_invalid_argument(
        "If axis is specified, %s must be a 1-D tensor whose size matches the axis dimension of "
        "the input and output tensors, but %s dims are %d",
        name, name, limit->rank);
  if (limit->count != rn_tensor_dim(x, (int)axis))
    return rn_invalid_argument(
        "If axis is specified, %s must be a 1-D tensor whose size matches the axis dimension of "
        "the input and output tensors, but %s is a 1-D tensor of size %" PRId64
        " and input's axis dimension is of size %" PRId64,
        name, name, limit->count, rn_tensor_dim(x, (int)axis));
  return RN_OK;
}

// Ensures that the range includes zero and is not too narrow.
static rn_status_t widen(const quantize_ops_state_t* state, rn_quant_limits_t* inout) {
  if (inout->max < inout->min)
    return rn_invalid_argument("input_max_range must be larger than input_min_range.");
  float largest = fmaxf(1.0f, fmaxf(fabsf(inout->min), fabsf(inout->max)));
  float min = fminf(0.0f, inout->min);
  float max = fmaxf(inout->max, min + largest * state->least_range);
  *inout = (rn_quant_limits_t){min, fmaxf(0.0f, max)};
  return RN_OK;
}

// How to quantize floats between |*inout|; adjusts the limits as the mode requires.
static rn_quant_in_t quantizer(const quantize_ops_state_t* state, rn_quant_limits_t* inout) {
  rn_quant_in_t how = rn_quant_in(state->dtype, *inout);
  if (state->mode == MIN_FIRST) return how;
  how.shift = 0;
  if (state->mode == MIN_COMBINED) {
    bool is_signed = rn_quant_lowest(state->dtype) < 0;
    how.scale = (float)(span_of(state->dtype) / (inout->max - inout->min));
    how.sub = inout->min;
    how.add = is_signed ? -half_of(state->dtype) : 0.5f;
    how.rounding = is_signed ? RN_QUANT_AWAY : RN_QUANT_DOWN;
  } else {
    float least = (float)(rn_quant_lowest(state->dtype) + (state->is_narrow ? 1 : 0));
    float most = (float)rn_quant_highest(state->dtype);
    float by_min = least * inout->min > 0 ? least / inout->min : FLT_MAX;
    float by_max = most * inout->max > 0 ? most / inout->max : FLT_MAX;
    how.scale = by_min < by_max ? by_min : by_max;
    *inout = (rn_quant_limits_t){least / how.scale, most / how.scale};
    how.rounding = state->to_even ? RN_QUANT_EVEN : RN_QUANT_AWAY;
  }
  how.low = inout->min;
  how.high = inout->max;
  return how;
}

// Elements per block into which short runs are gathered, and the length from which a run is not
// short.
#define BLOCK 512
#define LONG_RUN 64

// One slice: runs of |inner| elements, |step| apart.
typedef struct quantize_ops_job_t {
  const rn_quant_in_t* in;    // floats to levels, or NULL
  const rn_quant_out_t* out;  // levels to floats
  rn_dtype_t dtype;           // of the levels
  size_t from_size, to_size;  // bytes per element
  const char* from;
  char* to;
  int64_t inner, step;
} quantize_ops_job_t;

static void convert(const quantize_ops_job_t* job, const void* from, void* to, int64_t n) {
  if (job->in)
    rn_quant_levels(job->in, from, job->dtype, to, n);
  else
    rn_quant_values(job->out, job->dtype, from, to, n);
}

// Elements [begin, end) of one run.
static void convert_piece(void* arg, int64_t begin, int64_t end) {
  const quantize_ops_job_t* job = arg;
  convert(job, job->from + (size_t)begin * job->from_size, job->to + (size_t)begin * job->to_size,
          end - begin);
}

// Runs [begin, end).
static void convert_runs(void* arg, int64_t begin, int64_t end) {
  const quantize_ops_job_t* job = arg;
  const size_t from_step = (size_t)job->step * job->from_size;
  const size_t to_step = (size_t)job->step * job->to_size;
  const size_t from_run = (size_t)job->inner * job->from_size;
  const size_t to_run = (size_t)job->inner * job->to_size;
  _Alignas(8) char in[BLOCK * sizeof(float)], out[BLOCK * sizeof(float)];
  int64_t some = job->inner < LONG_RUN ? BLOCK / job->inner : 1;
  for (int64_t at = begin; at < end; at += some) {
    const char* from = job->from + (size_t)at * from_step;
    char* to = job->to + (size_t)at * to_step;
    int64_t n = end - at < some ? end - at : some;
    if (some == 1) {
      convert(job, from, to, job->inner);
      continue;
    }
    for (int64_t i = 0; i < n; ++i)
      memcpy(in + (size_t)i * from_run, from + (size_t)i * from_step, from_run);
    convert(job, in, out, n * job->inner);
    for (int64_t i = 0; i < n; ++i)
      memcpy(to + (size_t)i * to_step, out + (size_t)i * to_run, to_run);
  }
}

// Slice |i| of the elements at |from| and |to|.
static void convert_slice(rn_kernel_ctx_t* ctx, const quantize_ops_slices_t* slices, int64_t i,
                          quantize_ops_job_t job, const void* from, void* to) {
  if (slices->inner == 0) return;
  size_t float_size = sizeof(float), level_size = rn_dtype_size(job.dtype);
  job.from_size = job.in ? float_size : level_size;
  job.to_size = job.in ? level_size : float_size;
  job.from = (const char*)from + (size_t)(i * slices->inner) * job.from_size;
  job.to = (char*)to + (size_t)(i * slices->inner) * job.to_size;
  job.inner = slices->inner;
  job.step = slices->count * slices->inner;
  if (slices->outer == 1)
    rn_pool_for(rn_ctx_pool(ctx), job.inner, RN_GRAIN_CHEAP, convert_piece, &job);
  else
    rn_pool_for(rn_ctx_pool(ctx), slices->outer, RN_GRAIN_CHEAP / job.inner + 1, convert_runs,
                &job);
}

static rn_status_t quantize_compute(rn_kernel_ctx_t* ctx) {
  const quantize_ops_state_t* state = ctx->state;
  const rn_tensor_t *x = rn_in(ctx, 0), *mins = rn_in(ctx, 1), *maxes = rn_in(ctx, 2);
  if (state->axis >= x->rank)
    return rn_invalid_argument(
        "Axis is on a zero-based index, so its value must always be less "
        "than number of input's dims, but given axis value was %" PRId64 " and input's dims was %d",
        state->axis, x->rank);
  RN_RETURN_IF_ERROR(check_limit(x, mins, state->axis, "min_range"));
  RN_RETURN_IF_ERROR(check_limit(x, maxes, state->axis, "max_range"));
  quantize_ops_slices_t slices = slices_of(x, state->axis);
  rn_tensor_t *y = NULL, *min = NULL, *max = NULL;
  rn_shape_t limits_shape = state->axis < 0 ? RN_SHAPE_SCALAR : rn_tensor_shape(mins);
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, limits_shape, &min));
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, limits_shape, &max));
  if (slices.count > 1 && state->mode == MIN_FIRST)
    return rn_unimplemented("MIN_FIRST mode is not implemented for Quantize with axis != -1.");
  for (int64_t i = 0; i < slices.count; ++i) {
    rn_quant_limits_t limits = {RN_DATA(mins, float)[i], RN_DATA(maxes, float)[i]};
    RN_RETURN_IF_ERROR(widen(state, &limits));
    rn_quant_in_t how = quantizer(state, &limits);
    convert_slice(ctx, &slices, i, (quantize_ops_job_t){.in = &how, .dtype = state->dtype}, x->data,
                  y->data);
    RN_DATA(min, float)[i] = limits.min;
    RN_DATA(max, float)[i] = limits.max;
  }
  return RN_OK;
}

// Dequantize.

static rn_status_t dequantize_init(const rn_kernel_init_t* init, void* state_) {
  quantize_ops_state_t* state = state_;
  common_init(init, state);
  if (rn_init_type(init, "dtype") == RN_BFLOAT16 && state->mode != MIN_COMBINED)
    return rn_invalid_argument(
        "When output type is bfloat16, Mode string must be 'MIN_COMBINED', is '%.*s'",
        RN_STR_ARGS(rn_init_string(init, "mode")));
  return RN_OK;
}

static rn_quant_out_t dequantizer(const quantize_ops_state_t* state, rn_quant_limits_t limits) {
  if (state->mode == MIN_FIRST) return rn_quant_out(state->dtype, limits);
  if (state->mode == MIN_COMBINED)
    return (rn_quant_out_t){.add = half_of(state->dtype),
                            .scale = (limits.max - limits.min) / (float)span_of(state->dtype),
                            .base = limits.min};
  float by_max = limits.max / (float)rn_quant_highest(state->dtype);
  int64_t lowest = rn_quant_lowest(state->dtype);
  if (lowest == 0) return (rn_quant_out_t){.scale = by_max};
  float by_min = limits.min / (float)(lowest + (state->is_narrow ? 1 : 0));
  return (rn_quant_out_t){.scale = by_min < by_max ? by_max : by_min};
}

static rn_status_t check_count(const rn_tensor_t* limit, const char* name, int64_t axis,
                               int64_t slices) {
  if (limit->count == slices) return RN_OK;
  return rn_invalid_argument(
      "%s must have as many elements as input on the dequantization axis (%" PRId64
      "), got %" PRId64 ", expected %" PRId64,
      name, axis, limit->count, slices);
}

// Into |to|, floats.
static void dequantize(rn_kernel_ctx_t* ctx, const quantize_ops_slices_t* slices, float* to) {
  const quantize_ops_state_t* state = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  for (int64_t i = 0; i < slices->count; ++i) {
    rn_quant_limits_t limits = {RN_DATA(rn_in(ctx, 1), float)[i], RN_DATA(rn_in(ctx, 2), float)[i]};
    rn_quant_out_t how = dequantizer(state, limits);
    convert_slice(ctx, slices, i, (quantize_ops_job_t){.out = &how, .dtype = state->dtype}, x->data,
                  to);
  }
}

static rn_status_t dequantize_compute(rn_kernel_ctx_t* ctx) {
  const quantize_ops_state_t* state = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  if (state->axis >= x->rank)
    return rn_invalid_argument("Axis must be less than input dimension(%d), got %" PRId64, x->rank,
                               state->axis);
  quantize_ops_slices_t slices = slices_of(x, state->axis);
  RN_RETURN_IF_ERROR(check_count(rn_in(ctx, 1), "input_min_tensor", state->axis, slices.count));
  RN_RETURN_IF_ERROR(check_count(rn_in(ctx, 2), "input_max_tensor", state->axis, slices.count));
  if (slices.count > 1 && state->mode == MIN_FIRST)
    return rn_unimplemented("MIN_FIRST mode is not implemented for Dequantize with axis != -1.");
  rn_tensor_t *y = NULL, wide = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  if (y->dtype == RN_FLOAT) {
    dequantize(ctx, &slices, y->data);
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_FLOAT, rn_tensor_shape(x), &wide));
  dequantize(ctx, &slices, wide.data);
  for (int64_t i = 0; i < y->count; ++i)
    RN_DATA(y, uint16_t)[i] = rn_float_to_bfloat16(RN_DATA(&wide, float)[i]);
  rn_tensor_clear(&wide);
  return RN_OK;
}

// 32 bits to fewer.

typedef struct again_t {
  rn_quant_out_t out_of;
  rn_quant_in_t into;
  int64_t scale, offset;
  bool is_fixed;
  const int32_t* x;
  void* y;
} again_t;

// Values outside 64 bits, and NaN, become the least number, as on x86; sums of such numbers wrap.
static int64_t whole_of(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }

// To 8 unsigned bits in fixed point, with 16 fractional bits.
static void fix(again_t* again, rn_quant_limits_t from, rn_quant_limits_t to) {
  float from_range = from.max - from.min, to_range = to.max - to.min;
  float levels = to_range == 0 ? 0 : (float)(255.0 / to_range);
  float middle = (float)((from.min + from.max) / 2.0);
  again->is_fixed = true;
  again->scale = to_range == 0 ? 0 : whole_of(255.0 * 65536 * from_range / to_range);
  uint64_t offset = (uint64_t)whole_of(middle * levels * 65536.0f) + 32768;
  if (to_range != 0) offset -= (uint64_t)whole_of(round(65536 * (to.min * 255.0) / to_range));
  again->offset = (int64_t)offset;
}

static void again_piece(void* arg, int64_t begin, int64_t end) {
  const again_t* again = arg;
  if (!again->is_fixed) {
    rn_quant_again(&again->out_of, RN_QINT32, again->x + begin, &again->into, RN_QINT8,
                   (int8_t*)again->y + begin, end - begin);
    return;
  }
  uint8_t* y = again->y;
  for (int64_t i = begin; i < end; ++i) {
    int64_t product = (int64_t)((uint64_t)(int64_t)again->x[i] * (uint64_t)again->scale) >> 32;
    int64_t level = (int64_t)((uint64_t)product + (uint64_t)again->offset) >> 16;
    y[i] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
  }
}

static rn_status_t requantize(rn_kernel_ctx_t* ctx, rn_quant_limits_t from, rn_quant_limits_t to) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  RN_RETURN_IF_ERROR(rn_quant_set_limits(ctx, 1, to));
  again_t again = {.x = x->data, .y = y->data};
  if (y->dtype == RN_QUINT8) {
    fix(&again, from, to);
  } else {
    again.out_of = rn_quant_out(RN_QINT32, from);
    again.into = rn_quant_in(RN_QINT8, to);
  }
  rn_pool_for(rn_ctx_pool(ctx), x->count, RN_GRAIN_CHEAP, again_piece, &again);
  return RN_OK;
}

static rn_status_t requantize_compute(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"input_min", "input_max", "requested_output_min",
                                      "requested_output_max"};
  RN_RETURN_IF_ERROR(rn_quant_check_scalars(ctx, 1, names, 4));
  rn_quant_limits_t to = rn_quant_limits_at(ctx, 3);
  if (!(to.min <= 0))
    return rn_invalid_argument("requested_output_min must be <= 0, but got %g", to.min);
  if (!(to.max >= to.min))
    return rn_invalid_argument(
        "requested_output_max must be >= requested_output_min, but got %g and %g", to.max, to.min);
  return requantize(ctx, rn_quant_limits_at(ctx, 1), to);
}

// The actual range of the numbers, extended to include zero.
static rn_quant_limits_t real_limits(const rn_tensor_t* x, rn_quant_limits_t limits) {
  int32_t least = INT32_MAX, most = INT32_MIN;
  const int32_t* levels = x->data;
  for (int64_t i = 0; i < x->count; ++i) {
    least = levels[i] < least ? levels[i] : least;
    most = levels[i] > most ? levels[i] : most;
  }
  float min = rn_quant_value(RN_QINT32, least, limits);
  return (rn_quant_limits_t){min < 0 ? min : 0, rn_quant_value(RN_QINT32, most, limits)};
}

static rn_status_t shrink_compute(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"input_min", "input_max"};
  RN_RETURN_IF_ERROR(rn_quant_check_scalars(ctx, 1, names, 2));
  rn_quant_limits_t limits = rn_quant_limits_at(ctx, 1);
  return requantize(ctx, limits, real_limits(rn_in(ctx, 0), limits));
}

static rn_status_t range_compute(rn_kernel_ctx_t* ctx) {
  if (rn_in(ctx, 1)->count == 0) return rn_invalid_argument("Input min must not be empty.");
  if (rn_in(ctx, 2)->count == 0) return rn_invalid_argument("Input max must not be empty.");
  rn_quant_limits_t limits = rn_quant_limits_at(ctx, 1);
  return rn_quant_set_limits(ctx, 0, real_limits(rn_in(ctx, 0), limits));
}

static const rn_kernel_def_t rows[] = {
    {.op = "QuantizeV2",
     .device = "CPU",
     .types = {{"T", RN_TYPES_QUANTISED}},
     .state_size = sizeof(quantize_ops_state_t),
     .init = quantize_init,
     .compute = quantize_compute},
    {.op = "Dequantize",
     .device = "CPU",
     .types = {{"T", RN_TYPES_QUANTISED}, {"dtype", RN_T(FLOAT) | RN_T(BFLOAT16)}},
     .state_size = sizeof(quantize_ops_state_t),
     .init = dequantize_init,
     .compute = dequantize_compute},
    {.op = "Requantize",
     .device = "CPU",
     .types = {{"Tinput", RN_T(QINT32)}, {"out_type", RN_T(QUINT8) | RN_T(QINT8)}},
     .compute = requantize_compute},
    {.op = "QuantizeDownAndShrinkRange",
     .device = "CPU",
     .types = {{"Tinput", RN_T(QINT32)}, {"out_type", RN_T(QUINT8)}},
     .compute = shrink_compute},
    {.op = "RequantizationRange",
     .device = "CPU",
     .types = {{"Tinput", RN_T(QINT32)}},
     .compute = range_compute},
};
RN_KERNEL_FAMILY(cpu_quantize_ops, rows);
