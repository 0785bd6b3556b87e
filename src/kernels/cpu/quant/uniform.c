// The Uniform ops: levels with a scale and a zero point, for the whole tensor or per index of one
// axis. A value is (level - zero point) * scale.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "kernels/cpu/quant/uniform.h"
#include "kernels/kernel_rows.h"

// Of the limits, stock reads those of outputs, as 32 bits.
static rn_status_t check_limit(const rn_kernel_init_t* init, const char* name, int64_t value) {
  bool is_output = !strncmp(name, "output_", 7) || !strcmp(init->op->name, "UniformQuantize");
  if (value == (int32_t)value || !is_output) return RN_OK;
  return rn_invalid_argument("Attr %s has value %" PRId64 " out of range for an int32", name,
                             value);
}

static rn_status_t read_attrs(const rn_kernel_init_t* init, const char* prefix,
                              rn_uniform_attrs_t* out) {
  char name[64];
  snprintf(name, sizeof name, "%squantization_axis", prefix);
  if (rn_op_attr_index(init->op, rn_str(name)) < 0) return RN_OK;
  out->axis = rn_init_int(init, name);
  snprintf(name, sizeof name, "%squantization_min_val", prefix);
  out->low = rn_init_int(init, name);
  RN_RETURN_IF_ERROR(check_limit(init, name, out->low));
  snprintf(name, sizeof name, "%squantization_max_val", prefix);
  out->high = rn_init_int(init, name);
  RN_RETURN_IF_ERROR(check_limit(init, name, out->high));
  if (out->axis < -1)
    return rn_invalid_argument("%squantization_axis must be >= -1, given: %" PRId64, prefix,
                               out->axis);
  return RN_OK;
}

rn_status_t rn_uniform_init(const rn_kernel_init_t* init, void* state) {
  rn_uniform_state_t* uniform = state;
  static const char* const prefixes[] = {"lhs_", "rhs_", "output_", "", "input_"};
  for (int i = 0; i < 5; ++i)
    RN_RETURN_IF_ERROR(read_attrs(init, prefixes[i], &uniform->operands[i < 3 ? i : 0]));
  return RN_OK;
}

rn_status_t rn_uniform_scales(const rn_kernel_ctx_t* ctx, const rn_uniform_attrs_t* attrs,
                              rn_shape_t shape, int at, rn_uniform_scales_t* out) {
  const rn_tensor_t *scales = rn_in(ctx, at), *zeros = rn_in(ctx, at + 1);
  if (!rn_tensor_same_shape(scales, zeros))
    return rn_invalid_argument(
        "scales and zero_points shape must be same, but given scales shape %s and zero_points "
        "shape %s",
        rn_text_of(scales).text, rn_text_of(zeros).text);
  if (attrs->axis >= shape.rank)
    return rn_invalid_argument(
        "quantization_axis must be -1 or in range [0, input.rank), but given %" PRId64,
        attrs->axis);
  if (attrs->axis == -1 && scales->rank != 0)
    return rn_invalid_argument(
        "If quantization_axis is -1, scales and zero_points must be scalar tensors, but given "
        "scales shape %s and zero_points shape %s",
        rn_text_of(scales).text, rn_text_of(zeros).text);
  if (attrs->axis >= 0 && (scales->rank != 1 || scales->count != shape.dims[attrs->axis]))
    return rn_invalid_argument(
        "If quantization_axis is not -1, scales and zero_points must be a tensor of rank 1 and the "
        "size must be equal to the input.dim_size(quantization_axis), but given quantization_axis "
        "%" PRId64 ", scales shape %s and zero_points shape %s",
        attrs->axis, rn_text_of(scales).text, rn_text_of(zeros).text);
  *out = (rn_uniform_scales_t){scales->data, zeros->data, scales->count, 1};
  for (int d = (int)attrs->axis + 1; attrs->axis >= 0 && d < shape.rank; ++d)
    if (!rn_mul_i64_ok(out->inner, shape.dims[d], &out->inner)) return rn_out_of_memory();
  return RN_OK;
}

rn_status_t rn_uniform_check_positive(const rn_uniform_scales_t* scales, const char* name) {
  for (int64_t i = 0; i < scales->count; ++i)
    if (!(scales->scales[i] > 0))
      return rn_invalid_argument("%s scales elements must be all positive.", name);
  return RN_OK;
}

// Which scale element |i| of the tensor has.
static int64_t place_of(const rn_uniform_scales_t* scales, int64_t i) {
  return scales->count == 1 ? 0 : i / scales->inner % scales->count;
}

void rn_uniform_put(rn_tensor_t* y, int64_t i, double level, const rn_uniform_attrs_t* attrs) {
  level = level > (double)attrs->high ? (double)attrs->high : level;
  level = level < (double)attrs->low ? (double)attrs->low : level;
  int64_t whole = level > -9e15 && level < 9e15 ? (int64_t)level : 0;
  if (y->dtype == RN_QINT32)
    RN_DATA(y, int32_t)[i] = (int32_t)whole;
  else
    RN_DATA(y, uint8_t)[i] = (uint8_t)whole;
}

static rn_status_t quantize_compute(rn_kernel_ctx_t* ctx) {
  const rn_uniform_attrs_t* attrs = &((const rn_uniform_state_t*)ctx->state)->operands[0];
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_uniform_scales_t scales;
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_uniform_scales(ctx, attrs, rn_tensor_shape(x), 1, &scales));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  for (int64_t i = 0; i < x->count; ++i) {
    int64_t at = place_of(&scales, i);
    float inverse = 1.0f / scales.scales[at];
    float level = floorf(RN_DATA(x, const float)[i] * inverse + 0.5f);
    rn_uniform_put(y, i, (double)level + (double)scales.zeros[at], attrs);
  }
  return RN_OK;
}

static rn_status_t dequantize_compute(rn_kernel_ctx_t* ctx) {
  const rn_uniform_attrs_t* attrs = &((const rn_uniform_state_t*)ctx->state)->operands[0];
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_uniform_scales_t scales;
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_uniform_scales(ctx, attrs, rn_tensor_shape(x), 1, &scales));
  RN_RETURN_IF_ERROR(rn_uniform_check_positive(&scales, "rhs"));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  for (int64_t i = 0; i < x->count; ++i) {
    int64_t at = place_of(&scales, i);
    float level = (float)(rn_uniform_level(x, i) - scales.zeros[at]);
    RN_DATA(y, float)[i] = scales.scales[at] * level;
  }
  return RN_OK;
}

double rn_uniform_rescale(int64_t value, double factor) {
  int shift = 0;
  if (!(factor > 0) || isinf(factor)) return 0;
  int64_t multiplier = llround(frexp(factor, &shift) * 2147483648.0), product;
  shift = 31 - shift;
  if (shift < 1 || shift > 62 || !rn_mul_i64_ok(value, multiplier, &product) ||
      !rn_add_i64_ok(product, INT64_C(1) << (shift - 1), &product))
    return floor(ldexp((double)value * (double)multiplier, -shift) + 0.5);
  return (double)(product >> shift);
}

static rn_status_t requantize_compute(rn_kernel_ctx_t* ctx) {
  const rn_uniform_state_t* state = ctx->state;
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_uniform_scales_t from, to;
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_uniform_scales(ctx, &state->operands[0], rn_tensor_shape(x), 1, &from));
  RN_RETURN_IF_ERROR(rn_uniform_scales(ctx, &state->operands[2], rn_tensor_shape(x), 3, &to));
  RN_RETURN_IF_ERROR(rn_uniform_check_positive(&from, "input/output"));
  RN_RETURN_IF_ERROR(rn_uniform_check_positive(&to, "input/output"));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  for (int64_t i = 0; i < x->count; ++i) {
    int64_t a = place_of(&from, i), b = place_of(&to, i);
    double factor = (double)from.scales[a] / (double)to.scales[b];
    double level = rn_uniform_rescale(rn_uniform_level(x, i) - from.zeros[a], factor);
    rn_uniform_put(y, i, level + (double)to.zeros[b], &state->operands[2]);
  }
  return RN_OK;
}

static rn_status_t clip_compute(rn_kernel_ctx_t* ctx) {
  const rn_uniform_attrs_t* attrs = &((const rn_uniform_state_t*)ctx->state)->operands[0];
  const rn_tensor_t *x = rn_in(ctx, 0), *min = rn_in(ctx, 1), *max = rn_in(ctx, 2);
  rn_uniform_scales_t scales;
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_uniform_scales(ctx, attrs, rn_tensor_shape(x), 3, &scales));
  for (int i = 1; i < 3; ++i)
    if (!rn_tensor_same_shape(rn_in(ctx, i), rn_in(ctx, 3)))
      return rn_invalid_argument(
          "Input %s shape must be same as scales/zero_points. Given %s of shape %s and "
          "scales/zero_points of shape %s",
          i == 1 ? "min" : "max", i == 1 ? "min" : "max", rn_text_of(rn_in(ctx, i)).text,
          rn_text_of(rn_in(ctx, 3)).text);
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  for (int64_t i = 0; i < x->count; ++i) {
    int64_t at = place_of(&scales, i), level = rn_uniform_level(x, i);
    if (level < rn_uniform_level(min, at)) level = rn_uniform_level(min, at);
    if (level > rn_uniform_level(max, at)) level = rn_uniform_level(max, at);
    RN_DATA(y, int32_t)[i] = (int32_t)level;
  }
  return RN_OK;
}

// Sums. Both operands get the output's scale first.

// The element of |x| that is broadcast to element |i| of a tensor with |dims|.
static int64_t broadcast_from(const rn_tensor_t* x, const int64_t* dims, int rank, int64_t i) {
  int64_t at = 0, step = 1;
  for (int d = rank - 1, e = x->rank - 1; d >= 0; --d, --e) {
    int64_t place = i % dims[d];
    i /= dims[d];
    if (e < 0 || rn_tensor_dim(x, e) == 1) continue;
    at += place * step;
    step *= rn_tensor_dim(x, e);
  }
  return at;
}

static rn_status_t broadcast_dims(const rn_tensor_t* a, const rn_tensor_t* b, int64_t* dims,
                                  int* out_rank) {
  int rank = a->rank > b->rank ? a->rank : b->rank;
  for (int d = 0; d < rank; ++d) {
    int da = d - (rank - a->rank), db = d - (rank - b->rank);
    int64_t x = da < 0 ? 1 : rn_tensor_dim(a, da), y = db < 0 ? 1 : rn_tensor_dim(b, db);
    if (x != y && x != 1 && y != 1)
      return rn_invalid_argument("Cannot Add tensors of shapes: %s%s", rn_text_of(a).text,
                                 rn_text_of(b).text);
    dims[d] = x == 1 ? y : x;
  }
  *out_rank = rank;
  return RN_OK;
}

static rn_status_t add_compute(rn_kernel_ctx_t* ctx) {
  const rn_uniform_state_t* state = ctx->state;
  const rn_tensor_t* x[2] = {rn_in(ctx, 0), rn_in(ctx, 1)};
  rn_uniform_scales_t from[2], to;
  rn_tensor_t* y = NULL;
  int64_t dims[RN_MAX_RANK];
  int rank = 0;
  RN_RETURN_IF_ERROR(broadcast_dims(x[0], x[1], dims, &rank));
  for (int k = 0; k < 2; ++k) {
    RN_RETURN_IF_ERROR(
        rn_uniform_scales(ctx, &state->operands[k], rn_tensor_shape(x[k]), 2 + 2 * k, &from[k]));
    RN_RETURN_IF_ERROR(rn_uniform_check_positive(&from[k], "lhs/rhs/output"));
  }
  RN_RETURN_IF_ERROR(rn_uniform_scales(ctx, &state->operands[2], (rn_shape_t){rank, dims}, 6, &to));
  RN_RETURN_IF_ERROR(rn_uniform_check_positive(&to, "lhs/rhs/output"));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){rank, dims}, &y));
  for (int64_t i = 0; i < y->count; ++i) {
    int64_t c = place_of(&to, i);
    double sum = (double)to.zeros[c];
    for (int k = 0; k < 2; ++k) {
      int64_t at = broadcast_from(x[k], dims, rank, i), place = place_of(&from[k], at);
      double factor = (double)from[k].scales[place] / (double)to.scales[c];
      sum += rn_uniform_rescale(rn_uniform_level(x[k], at) - from[k].zeros[place], factor);
    }
    rn_uniform_put(y, i, sum, &state->operands[2]);
  }
  return RN_OK;
}

// Matrices.

static rn_status_t dot_sizes(const rn_kernel_ctx_t* ctx, int64_t dims[2], int64_t* out_inner) {
  static const char* const names[] = {"lhs", "rhs"};
  const rn_tensor_t *lhs = rn_in(ctx, 0), *rhs = rn_in(ctx, 1);
  for (int i = 0; i < 2; ++i)
    if (rn_in(ctx, i)->rank != 2)
      return rn_invalid_argument("%s rank must be 2, but given %s shape %s", names[i], names[i],
                                 rn_text_of(rn_in(ctx, i)).text);
  if (rn_tensor_dim(lhs, 1) != rn_tensor_dim(rhs, 0))
    return rn_invalid_argument(
        "lhs.dim_size(1) and rhs.dim_size(0) must be equal, but given lhs shape %s and rhs shape "
        "%s",
        rn_text_of(lhs).text, rn_text_of(rhs).text);
  dims[0] = rn_tensor_dim(lhs, 0), dims[1] = rn_tensor_dim(rhs, 1);
  *out_inner = rn_tensor_dim(lhs, 1);
  return RN_OK;
}

// Scales of a matrix are scalars, or one per column, whatever the attribute says.
static rn_status_t column_scales(const rn_kernel_ctx_t* ctx, rn_shape_t shape, int at,
                                 rn_uniform_scales_t* out) {
  const rn_uniform_attrs_t attrs = {.axis = rn_in(ctx, at)->rank == 0 ? -1 : 1};
  return rn_uniform_scales(ctx, &attrs, shape, at, out);
}

static rn_status_t dot_init(const rn_kernel_init_t* init, void* state) {
  static const char* const names[] = {"lhs", "rhs", "output"};
  rn_uniform_state_t* uniform = state;
  for (int i = 0; i < 3; ++i) uniform->operands[i].axis = -1;  // a hybrid has one of them
  RN_RETURN_IF_ERROR(rn_uniform_init(init, state));
  if (uniform->operands[0].axis != -1)
    return rn_invalid_argument("lhs_quantization_axis Attr must be -1 (per-tensor).");
  for (int i = 1; i < 3; ++i)
    if (uniform->operands[i].axis != -1 && uniform->operands[i].axis != 1)
      return rn_invalid_argument(
          "%s_quantization_axis Attr must be 1 (per-channel) or -1 (per-tensor).", names[i]);
  return RN_OK;
}

static rn_status_t dot_compute(rn_kernel_ctx_t* ctx) {
  const rn_uniform_state_t* state = ctx->state;
  const rn_tensor_t *lhs = rn_in(ctx, 0), *rhs = rn_in(ctx, 1);
  int64_t dims[2], inner;
  rn_uniform_scales_t left, right, to;
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(dot_sizes(ctx, dims, &inner));
  RN_RETURN_IF_ERROR(rn_uniform_scales(ctx, &state->operands[0], rn_tensor_shape(lhs), 2, &left));
  RN_RETURN_IF_ERROR(column_scales(ctx, rn_tensor_shape(rhs), 4, &right));
  RN_RETURN_IF_ERROR(column_scales(ctx, (rn_shape_t){2, dims}, 6, &to));
  if (rn_in(ctx, 4)->rank == 0 && rn_in(ctx, 6)->rank > 0)
    return rn_invalid_argument(
        "If rhs is per-tensor quantized, output must be also per-tensor quantized. Given rhs "
        "scales and zero_points of shape %s but given output scales and zero_points of shape %s",
        rn_text_of(rn_in(ctx, 4)).text, rn_text_of(rn_in(ctx, 6)).text);
  RN_RETURN_IF_ERROR(rn_uniform_check_positive(&left, "lhs"));
  RN_RETURN_IF_ERROR(rn_uniform_check_positive(&right, "rhs"));
  RN_RETURN_IF_ERROR(rn_uniform_check_positive(&to, "output"));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &y));
  for (int64_t i = 0; i < y->count; ++i) {
    int64_t row = i / dims[1], column = i % dims[1], sum = 0;
    int64_t a = right.count == 1 ? 0 : column, b = to.count == 1 ? 0 : column;
    for (int64_t k = 0; k < inner; ++k)
      sum += (rn_uniform_level(lhs, row * inner + k) - left.zeros[0]) *
             (rn_uniform_level(rhs, k * dims[1] + column) - right.zeros[a]);
    double factor = (double)left.scales[0] * (double)right.scales[a] / (double)to.scales[b];
    rn_uniform_put(y, i, rn_uniform_rescale(sum, factor) + (double)to.zeros[b],
                   &state->operands[2]);
  }
  return RN_OK;
}

rn_uniform_range_t rn_uniform_range(float min, float max) {
  if (!(max > min)) return (rn_uniform_range_t){1, 1, 0};
  rn_uniform_range_t out = {.scale = (float)(((double)max - (double)min) / 255)};
  out.inverse = 1.0f / out.scale;
  out.zero = rintf(-128.0f - min / out.scale);
  return out;
}

float rn_uniform_round(const rn_uniform_range_t* range, float x) {
  float level = floorf(x * range->inverse + 0.5f) + range->zero;
  return (level < -128 ? -128 : level > 127 ? 127 : level) - range->zero;
}

static rn_uniform_range_t range_of(const float* x, int64_t n) {
  float min = 0, max = 0;
  for (int64_t i = 0; i < n; ++i) {
    min = fminf(min, x[i]);
    max = fmaxf(max, x[i]);
  }
  return rn_uniform_range(min, max);
}

static rn_status_t hybrid_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *lhs = rn_in(ctx, 0), *rhs = rn_in(ctx, 1);
  int64_t dims[2], inner;
  rn_uniform_scales_t right;
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(dot_sizes(ctx, dims, &inner));
  RN_RETURN_IF_ERROR(column_scales(ctx, rn_tensor_shape(rhs), 2, &right));
  RN_RETURN_IF_ERROR(rn_uniform_check_positive(&right, "rhs"));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){2, dims}, &y));
  for (int64_t row = 0; y->count && row < dims[0]; ++row) {
    const float* from = RN_DATA(lhs, const float) + row * inner;
    rn_uniform_range_t range = range_of(from, inner);
    for (int64_t column = 0; column < dims[1]; ++column) {
      int64_t a = right.count == 1 ? 0 : column;
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k)
        sum += (double)rn_uniform_round(&range, from[k]) *
               (double)(rn_uniform_level(rhs, k * dims[1] + column) - right.zeros[a]);
      RN_DATA(y, float)
      [row * dims[1] + column] = (float)(sum * (double)range.scale * (double)right.scales[a]);
    }
  }
  return RN_OK;
}

#define WIDE RN_T(QINT32)
#define BYTE RN_T(QINT8)
#define WITH(op_, init_, compute_, ...)                                                           \
  {                                                                                               \
    .op = op_, .device = "CPU", .types = {__VA_ARGS__}, .state_size = sizeof(rn_uniform_state_t), \
    .init = init_, .compute = compute_                                                            \
  }
#define ROW(op_, compute_, ...) WITH(op_, rn_uniform_init, compute_, __VA_ARGS__)
static const rn_kernel_def_t rows[] = {
    ROW("UniformQuantize", quantize_compute, {"Tin", RN_T(FLOAT)},
        {"Tout", BYTE | RN_T(QUINT8) | WIDE}),
    ROW("UniformDequantize", dequantize_compute, {"Tin", BYTE | RN_T(QUINT8) | WIDE},
        {"Tout", RN_T(FLOAT)}),
    ROW("UniformRequantize", requantize_compute, {"Tin", BYTE | WIDE}, {"Tout", BYTE}),
    ROW("UniformQuantizedAdd", add_compute, {"T", WIDE}),
    ROW("UniformQuantizedClipByValue", clip_compute, {"T", WIDE}),
    WITH("UniformQuantizedDot", dot_init, dot_compute, {"Tin", BYTE}, {"Tout", WIDE}),
    WITH("UniformQuantizedDotHybrid", dot_init, hybrid_compute, {"Tlhs", RN_T(FLOAT)},
         {"Trhs", BYTE}, {"Tout", RN_T(FLOAT)}),
};
RN_KERNEL_FAMILY(cpu_uniform, rows);
