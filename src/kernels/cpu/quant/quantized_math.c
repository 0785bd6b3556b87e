// Arithmetic on quantized numbers: sums, products, biases, activations, normalization, concat.
//
// There are 256 levels in 8 bits: what each becomes in 32 bits is computed once, in a table.
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/broadcasting.h"
#include "kernels/cpu/quant/quantized.h"
#include "kernels/kernel_rows.h"

// Sums and products of two.

typedef struct quantized_math_pair_t {
  int32_t x[256], y[256];
} quantized_math_pair_t;

static void add_run(void* arg, const void* const* in, const int* steps, void* out, int64_t n) {
  const quantized_math_pair_t* pair = arg;
  const uint8_t *x = in[0], *y = in[1];
  uint32_t* z = out;
  for (int64_t i = 0; i < n; ++i)
    z[i] = (uint32_t)pair->x[x[i * steps[0]]] + (uint32_t)pair->y[y[i * steps[1]]];
}

static void multiply_run(void* arg, const void* const* in, const int* steps, void* out, int64_t n) {
  const quantized_math_pair_t* pair = arg;
  const uint8_t *x = in[0], *y = in[1];
  uint32_t* z = out;
  for (int64_t i = 0; i < n; ++i)
    z[i] = (uint32_t)pair->x[x[i * steps[0]]] * (uint32_t)pair->y[y[i * steps[1]]];
}

// The 32-bit equivalents of 8-bit levels: starting at that of 0, in steps of the distance between 0
// and 1.
static void fill_steps(int32_t* table, rn_quant_limits_t limits, rn_quant_limits_t to) {
  int64_t zero = rn_quant_level(RN_QINT32, rn_quant_value(RN_QUINT8, 0, limits), to);
  int64_t one = rn_quant_level(RN_QINT32, rn_quant_value(RN_QUINT8, 1, limits), to);
  int32_t step = (int32_t)(uint64_t)(one - zero);
  for (int i = 0; i < 256; ++i) {
    int64_t level = zero + (int64_t)i * step;
    table[i] = (int32_t)(level < INT32_MIN ? INT32_MIN : level > INT32_MAX ? INT32_MAX : level);
  }
}

static void fill_each(int32_t* table, rn_quant_limits_t limits, rn_quant_limits_t to) {
  for (int i = 0; i < 256; ++i)
    table[i] = (int32_t)rn_quant_level_again(RN_QUINT8, i, limits, RN_QINT32, to);
}

static rn_status_t add_compute(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"min_x", "max_x", "min_y", "max_y"};
  RN_RETURN_IF_ERROR(rn_quant_check_scalars(ctx, 2, names, 4));
  rn_broadcast_t broadcast;
  if (!rn_broadcast_make((const rn_tensor_t* const*)ctx->in, 2, &broadcast))
    return rn_broadcast_error(rn_in(ctx, 0), rn_in(ctx, 1));
  rn_quant_limits_t x = rn_quant_limits_at(ctx, 2), y = rn_quant_limits_at(ctx, 4);
  if (!(x.max > x.min)) return rn_invalid_argument("max_x must be larger than min_x.");
  if (!(y.max > y.min)) return rn_invalid_argument("max_y must be larger than min_y.");
  float min = x.min < y.min ? x.min : y.min, max = x.max > y.max ? x.max : y.max;
  float range = fmaxf(fabsf(min), fabsf(max)) * (1 << 14);
  rn_quant_limits_t sum = {-range, range};
  bool x_is_one = rn_in(ctx, 0)->count == 1, y_is_one = !x_is_one && rn_in(ctx, 1)->count == 1;
  quantized_math_pair_t pair;
  (x_is_one ? fill_each : fill_steps)(pair.x, x, sum);
  (y_is_one ? fill_each : fill_steps)(pair.y, y, sum);
  RN_RETURN_IF_ERROR(rn_broadcast_compute(ctx, 2, 0, RN_GRAIN_CHEAP, add_run, &pair));
  return rn_quant_set_limits(ctx, 1, sum);
}

static rn_status_t multiply_compute(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"min_x", "max_x", "min_y", "max_y"};
  for (int i = 0; i < 4; ++i)
    if (rn_in(ctx, 2 + i)->rank != 0) return rn_invalid_argument("%s must be a scalar", names[i]);
  rn_broadcast_t broadcast;
  if (!rn_broadcast_make((const rn_tensor_t* const*)ctx->in, 2, &broadcast))
    return rn_broadcast_error(rn_in(ctx, 0), rn_in(ctx, 1));
  rn_quant_limits_t x = rn_quant_limits_at(ctx, 2), y = rn_quant_limits_at(ctx, 4);
  if (!(x.max > x.min)) return rn_invalid_argument("max_x must be larger than min_a.");
  if (!(y.max > y.min)) return rn_invalid_argument("max_x must be larger than min_b.");
  uint32_t x_zero = (uint32_t)rn_quant_level(RN_QUINT8, 0, x);
  uint32_t y_zero = (uint32_t)rn_quant_level(RN_QUINT8, 0, y);
  quantized_math_pair_t pair;
  for (uint32_t i = 0; i < 256; ++i) {
    pair.x[i] = (int32_t)(i - x_zero);
    pair.y[i] = (int32_t)(i - y_zero);
  }
  RN_RETURN_IF_ERROR(rn_broadcast_compute(ctx, 2, 0, RN_GRAIN_CHEAP, multiply_run, &pair));
  return rn_quant_set_limits(ctx, 1, rn_quant_product_limits(RN_QUINT8, x, RN_QUINT8, y));
}

// Biases.

// The 32-bit equivalent of each byte of an 8-bit type, computed in float.
static void fill_bytes(int32_t* table, rn_dtype_t dtype, rn_quant_limits_t limits,
                       rn_quant_limits_t to) {
  uint8_t bytes[256];
  for (int i = 0; i < 256; ++i) bytes[i] = (uint8_t)i;
  rn_quant_out_t out_of = rn_quant_out(dtype, limits);
  rn_quant_in_t into = rn_quant_in(RN_QINT32, to);
  rn_quant_again(&out_of, dtype, bytes, &into, RN_QINT32, table, 256);
}

static rn_status_t check_bias(const rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"min_input", "max_input", "min_bias", "max_bias"};
  const rn_tensor_t *x = rn_in(ctx, 0), *bias = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_quant_check_scalars(ctx, 2, names, 4));
  if (x->rank < 2)
    return rn_invalid_argument("Input tensor must be at least 2D: %s", rn_text_of(x).text);
  if (bias->rank != 1) return rn_invalid_argument("Biases must be 1D: %s", rn_text_of(bias).text);
  if (bias->count != rn_tensor_dim(x, x->rank - 1))
    return rn_invalid_argument(
        "Must provide as many biases as the last dimension of the input tensor: %s vs. %s",
        rn_text_of(bias).text, rn_text_of(x).text);
  if (bias->count == 0) return rn_invalid_argument("Must provide at least 1 bias");
  return RN_OK;
}

typedef struct bias_job_t {
  const int32_t* table;
  const uint32_t* bias;
  int64_t columns;
  const uint8_t* x;
  uint32_t* y;
} bias_job_t;

static void bias_rows(void* arg, int64_t begin, int64_t end) {
  const bias_job_t* job = arg;
  for (int64_t row = begin; row < end; ++row) {
    const uint8_t* x = job->x + row * job->columns;
    uint32_t* y = job->y + row * job->columns;
    for (int64_t i = 0; i < job->columns; ++i) y[i] = (uint32_t)job->table[x[i]] + job->bias[i];
  }
}

static rn_status_t bias_compute(rn_kernel_ctx_t* ctx) {
  RN_RETURN_IF_ERROR(check_bias(ctx));
  const rn_tensor_t *x = rn_in(ctx, 0), *bias = rn_in(ctx, 1);
  rn_quant_limits_t of_x = rn_quant_limits_at(ctx, 2), of_bias = rn_quant_limits_at(ctx, 4);
  // Headroom for sums of many such numbers.
  float largest = fmaxf(fmaxf(of_x.max, -of_x.min), fmaxf(of_bias.max, -of_bias.min)) * (1 << 17);
  rn_quant_limits_t total = {-largest, largest};
  rn_tensor_t *y = NULL, levels = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  RN_RETURN_IF_ERROR(rn_quant_set_limits(ctx, 1, total));
  RN_RETURN_IF_ERROR(rn_temp(ctx, RN_UINT32, rn_tensor_shape(bias), &levels));
  int32_t table[256];
  fill_bytes(table, bias->dtype, of_bias, total);
  uint32_t zero = (uint32_t)rn_quant_level_inside(RN_QINT32, 0, total);
  for (int64_t i = 0; i < bias->count; ++i)
    RN_DATA(&levels, uint32_t)[i] = (uint32_t)table[RN_DATA(bias, uint8_t)[i]] + zero;
  fill_bytes(table, x->dtype, of_x, total);
  bias_job_t job = {table, levels.data, bias->count, x->data, y->data};
  rn_pool_for(rn_ctx_pool(ctx), x->count / bias->count, RN_GRAIN_CHEAP / bias->count + 1, bias_rows,
              &job);
  rn_tensor_clear(&levels);
  return RN_OK;
}

// Activations.

// Relu, Relu6 and ReluX: clamp to 0 and the type's maximum, 6, or an input.
static rn_status_t clamp(rn_kernel_ctx_t* ctx, int limits_at, bool has_top, float top) {
  static const char* const names[] = {"min_input", "max_input"};
  RN_RETURN_IF_ERROR(rn_quant_check_scalars(ctx, limits_at, names, 2));
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_quant_limits_t limits = rn_quant_limits_at(ctx, limits_at);
  int64_t least = rn_quant_level_inside(x->dtype, 0, limits);
  int64_t most = has_top ? rn_quant_level_inside(x->dtype, top, limits) : INT32_MAX;
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output_like(ctx, 0, 0, &y));
  if (x->dtype == RN_QUINT8) {
    uint8_t table[256];
    for (int i = 0; i < 256; ++i) {
      int64_t level = i < least ? least : i;
      table[i] = (uint8_t)(level > most ? most : level);
    }
    for (int64_t i = 0; i < y->count; ++i)
      RN_DATA(y, uint8_t)[i] = table[RN_DATA(x, const uint8_t)[i]];
  } else {
    for (int64_t i = 0; i < y->count; ++i) {
      int32_t level = RN_DATA(x, const int32_t)[i];
      level = level < least ? (int32_t)least : level;
      RN_DATA(y, int32_t)[i] = level > most ? (int32_t)most : level;
    }
  }
  return rn_quant_set_limits(ctx, 1, limits);
}

static rn_status_t relu_compute(rn_kernel_ctx_t* ctx) { return clamp(ctx, 1, false, 0); }
static rn_status_t relu6_compute(rn_kernel_ctx_t* ctx) { return clamp(ctx, 1, true, 6); }
static rn_status_t relux_compute(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"max_value"};
  RN_RETURN_IF_ERROR(rn_quant_check_scalars(ctx, 1, names, 1));
  return clamp(ctx, 2, true, *RN_DATA(rn_in(ctx, 1), const float));
}

// Normalisation.

typedef struct quantized_math_norm_t {
  float epsilon;
  bool scales;
} quantized_math_norm_t;

static rn_status_t norm_init(const rn_kernel_init_t* init, void* state) {
  *(quantized_math_norm_t*)state = (quantized_math_norm_t){
      rn_init_float(init, "variance_epsilon"), rn_init_bool(init, "scale_after_normalization")};
  return RN_OK;
}

static rn_status_t check_norm(const rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"input", "mean", "var", "beta", "gamma"};
  for (int i = 0; i < 5; ++i)
    for (int side = 0; side < 2; ++side)
      if (rn_in(ctx, 3 * i + 1 + side)->count != 1)
        return rn_invalid_argument("%s_%s must have 1 element", names[i], side ? "max" : "min");
  const rn_tensor_t *x = rn_in(ctx, 0), *mean = rn_in(ctx, 3);
  for (int i = 0; i < 5; ++i)
    if (rn_in(ctx, 3 * i)->rank != (i ? 1 : 4))
      return rn_invalid_argument("%s must be %d-dimensional%s", names[i], i ? 1 : 4,
                                 rn_text_of(rn_in(ctx, 3 * i)).text);
  if (mean->count != rn_tensor_dim(x, 3))
    return rn_invalid_argument(
        "Must provide as many means as the last dimension of the input tensor: %s vs. %s",
        rn_text_of(mean).text, rn_text_of(x).text);
  for (int i = 2; i < 5; ++i)
    if (rn_in(ctx, 3 * i)->count != mean->count)
      return rn_invalid_argument("Mean and %s tensors must have the same shape: %s vs. %s",
                                 i == 2 ? "variance" : names[i], rn_text_of(mean).text,
                                 rn_text_of(rn_in(ctx, 3 * i)).text);
  return RN_OK;
}

// Element |channel| of the vector at input |i|.
static float norm_value(const rn_kernel_ctx_t* ctx, int i, int64_t channel) {
  return rn_quant_value(RN_QUINT8, RN_DATA(rn_in(ctx, i), const uint8_t)[channel],
                        rn_quant_limits_at(ctx, i + 1));
}

// In fixed point: x * scale / one + offset, all with the same limits.
static rn_status_t norm_compute(rn_kernel_ctx_t* ctx) {
  static const rn_quant_limits_t limits = {-(1 << 20), 1 << 20};
  const quantized_math_norm_t* state = ctx->state;
  RN_RETURN_IF_ERROR(check_norm(ctx));
  const rn_tensor_t* x = rn_in(ctx, 0);
  rn_tensor_t* y = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &y));
  RN_RETURN_IF_ERROR(rn_quant_set_limits(ctx, 1, limits));
  int32_t table[256], one = (int32_t)rn_quant_level_inside(RN_QINT32, 1, limits);
  fill_each(table, rn_quant_limits_at(ctx, 1), limits);
  const int64_t depth = rn_tensor_dim(x, 3);
  for (int64_t channel = 0; channel < depth && x->count; ++channel) {
    float scale = 1.0f / sqrtf(norm_value(ctx, 6, channel) + state->epsilon);
    if (state->scales) scale *= norm_value(ctx, 12, channel);
    float offset = -norm_value(ctx, 3, channel) * scale + norm_value(ctx, 9, channel);
    uint32_t by = (uint32_t)rn_quant_level_inside(RN_QINT32, scale, limits);
    uint32_t plus = (uint32_t)rn_quant_level_inside(RN_QINT32, offset, limits);
    for (int64_t i = channel; i < x->count; i += depth) {
      int32_t product = (int32_t)((uint32_t)table[RN_DATA(x, const uint8_t)[i]] * by);
      RN_DATA(y, uint32_t)[i] = (uint32_t)(product / one) + plus;
    }
  }
  return RN_OK;
}

// Concat.

// The parts are inputs |first| on; the axis is before them, or behind them in the second version.
static rn_status_t check_parts(rn_kernel_ctx_t* ctx, int first, int count, int64_t* out_axis,
                               int64_t* out_size) {
  const rn_tensor_t *axis = rn_in(ctx, first ? 0 : count), *model = rn_in(ctx, first);
  if (axis->rank != 0)
    return rn_invalid_argument("Concat dim tensor should be a scalar integer, but got shape %s",
                               rn_text_of(axis).text);
  *out_axis = rn_int_at(axis, 0);
  if (!first && *out_axis < 0) *out_axis += model->rank;
  if (*out_axis < 0 || *out_axis >= model->rank)
    return rn_invalid_argument(
        "ConcatOp : Expected concatenating dimensions in the range [0, %d), but got %" PRId64,
        model->rank, *out_axis);
  for (int i = 0; i < 2 * count; ++i)
    if (rn_in(ctx, 1 + count + i)->count != 1)
      return rn_invalid_argument(
          "%s each tensor's num elements must be 1, given num elements %" PRId64 " in index %d",
          i < count ? "input_mins" : "input_maxes", rn_in(ctx, 1 + count + i)->count, i % count);
  *out_size = 0;
  for (int i = 0; i < count; ++i) {
    const rn_tensor_t* part = rn_in(ctx, first + i);
    if (part->rank != model->rank)
      return rn_invalid_argument(
          "ConcatOp : Ranks of all input tensors should match: shape[0] = %s vs. shape[%d] = %s",
          rn_text_of(model).text, i, rn_text_of(part).text);
    for (int d = 0; d < model->rank; ++d)
      if (d != *out_axis && rn_tensor_dim(part, d) != rn_tensor_dim(model, d))
        return rn_invalid_argument(
            "ConcatOp : Dimensions of inputs should match: shape[0] = %s vs. shape[%d] = %s",
            rn_text_of(model).text, i, rn_text_of(part).text);
    if (!rn_add_i64_ok(*out_size, rn_tensor_dim(part, (int)*out_axis), out_size))
      return rn_invalid_argument("ConcatOp : the dimensions add up to too much");
  }
  return RN_OK;
}

// The limits of part |i| of |count|.
static rn_quant_limits_t part_limits(const rn_kernel_ctx_t* ctx, int i, int count) {
  return (rn_quant_limits_t){*RN_DATA(rn_in(ctx, 1 + count + i), const float),
                             *RN_DATA(rn_in(ctx, 1 + 2 * count + i), const float)};
}

static void join_part(const rn_tensor_t* part, rn_quant_limits_t limits, rn_quant_limits_t to,
                      int64_t outer, int64_t step, char* out) {
  const size_t size = rn_dtype_size(part->dtype);
  const int64_t run = part->count / outer;
  rn_quant_out_t out_of = rn_quant_out(part->dtype, limits);
  rn_quant_in_t into = rn_quant_in(part->dtype, to);
  bool is_same = limits.min == to.min && limits.max == to.max;
  const char* from = part->data;
  for (int64_t o = 0; o < outer; ++o, from += (size_t)run * size, out += (size_t)step * size) {
    if (is_same)
      memcpy(out, from, (size_t)run * size);
    else
      rn_quant_again(&out_of, part->dtype, from, &into, part->dtype, out, run);
  }
}

static rn_status_t concat(rn_kernel_ctx_t* ctx, int first) {
  const int count = (ctx->kernel->input_count - 1) / 3;
  const rn_tensor_t* model = rn_in(ctx, first);
  int64_t axis = 0, size = 0, dims[RN_MAX_RANK];
  RN_RETURN_IF_ERROR(check_parts(ctx, first, count, &axis, &size));
  rn_quant_limits_t all = {0, -FLT_MAX};  // zero is a level; what is no number is passed over
  for (int i = 0; i < count; ++i) {
    rn_quant_limits_t own = part_limits(ctx, i, count);
    all.min = own.min < all.min ? own.min : all.min;
    all.max = own.max > all.max ? own.max : all.max;
  }
  memcpy(dims, rn_tensor_dims(model), model->rank * sizeof *dims);
  dims[axis] = size;
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){model->rank, dims}, &out));
  if (!first && out->dtype == RN_QUINT8) all.min = 0;
  if (out->dtype == RN_QINT32 || out->dtype == RN_QINT8) {
    float largest = fmaxf(fabsf(all.min), fabsf(all.max));
    all = (rn_quant_limits_t){-largest, largest};
  }
  RN_RETURN_IF_ERROR(rn_quant_set_limits(ctx, 1, all));
  if (out->count == 0) return RN_OK;
  int64_t outer = rn_dims_product(dims, 0, (int)axis), step = out->count / outer;
  char* to = out->data;
  for (int i = 0; i < count; ++i) {
    const rn_tensor_t* part = rn_in(ctx, first + i);
    if (part->count) join_part(part, part_limits(ctx, i, count), all, outer, step, to);
    to += (size_t)(part->count / outer) * rn_dtype_size(part->dtype);
  }
  return RN_OK;
}

static rn_status_t concat_compute(rn_kernel_ctx_t* ctx) { return concat(ctx, 1); }
static rn_status_t concat_v2_compute(rn_kernel_ctx_t* ctx) { return concat(ctx, 0); }

#define BYTES RN_T(QUINT8)
#define WIDE RN_T(QINT32)
#define TWO(name, compute_)                                                                  \
  {                                                                                          \
    .op = name, .device = "CPU", .types = {{"T1", BYTES}, {"T2", BYTES}, {"Toutput", WIDE}}, \
    .compute = compute_                                                                      \
  }
#define CLAMP(name, type, compute_)                                               \
  {                                                                               \
    .op = name, .device = "CPU", .types = {{"Tinput", type}, {"out_type", type}}, \
    .compute = compute_                                                           \
  }
#define BIAS(type)                                                                     \
  {                                                                                    \
    .op = "QuantizedBiasAdd", .device = "CPU",                                         \
    .types = {{"T1", type}, {"T2", type}, {"out_type", WIDE}}, .compute = bias_compute \
  }
static const rn_kernel_def_t rows[] = {
    TWO("QuantizedAdd", add_compute),
    TWO("QuantizedMul", multiply_compute),
    BIAS(BYTES),
    BIAS(RN_T(QINT8)),
    CLAMP("QuantizedRelu", BYTES, relu_compute),
    CLAMP("QuantizedRelu", WIDE, relu_compute),
    CLAMP("QuantizedRelu6", BYTES, relu6_compute),
    CLAMP("QuantizedRelu6", WIDE, relu6_compute),
    CLAMP("QuantizedReluX", BYTES, relux_compute),
    CLAMP("QuantizedReluX", WIDE, relux_compute),
    {.op = "QuantizedBatchNormWithGlobalNormalization",
     .device = "CPU",
     .types = {{"Tinput", BYTES}, {"out_type", WIDE}},
     .state_size = sizeof(quantized_math_norm_t),
     .init = norm_init,
     .compute = norm_compute},
    {.op = "QuantizedConcat",
     .device = "CPU",
     .types = {{"T", BYTES | WIDE}},
     .host_args = RN_HOST_ARGS("concat_dim"),
     .compute = concat_compute},
    {.op = "QuantizedConcatV2",
     .device = "CPU",
     .types = {{"T", BYTES | RN_T(QINT8)}},
     .host_args = RN_HOST_ARGS("axis"),
     .compute = concat_v2_compute},
};
RN_KERNEL_FAMILY(cpu_quantized_math, rows);
