// Layers of 8-bit levels with what follows them: convolutions and matmuls whose 32-bit sums get a
// bias, a summand and ReLU, and become 8-bit levels or floats.
//
// Zero is level 0, except for matmuls of mode MIN_FIRST. One unit of a sum is the product of one
// level of the input and one of the filter.
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/nn/window.h"
#include "kernels/cpu/quant/quantized.h"
#include "kernels/cpu/quant/quantized_gemm.h"
#include "kernels/kernel_rows.h"

// What a layer has, besides the product.
enum {
  BIAS = 1 << 0,
  SUM = 1 << 1,
  RELU = 1 << 2,
  REQUANTIZE = 1 << 3,
  DEQUANTIZE = 1 << 4,
  DEPTHWISE = 1 << 5,
  MATMUL = 1 << 6,
};
static const struct {
  const char* op;
  int parts;
} variants[] = {
    {"QuantizedConv2DPerChannel", 0},
    {"QuantizedConv2DAndRelu", RELU},
    {"QuantizedConv2DAndReluAndRequantize", RELU | REQUANTIZE},
    {"QuantizedConv2DAndRequantize", REQUANTIZE},
    {"QuantizedConv2DWithBias", BIAS},
    {"QuantizedConv2DWithBiasAndRelu", BIAS | RELU},
    {"QuantizedConv2DWithBiasAndReluAndRequantize", BIAS | RELU | REQUANTIZE},
    {"QuantizedConv2DWithBiasAndRequantize", BIAS | REQUANTIZE},
    {"QuantizedConv2DWithBiasSignedSumAndReluAndRequantize", BIAS | SUM | RELU | REQUANTIZE},
    {"QuantizedConv2DWithBiasSumAndRelu", BIAS | SUM | RELU},
    {"QuantizedConv2DWithBiasSumAndReluAndRequantize", BIAS | SUM | RELU | REQUANTIZE},
    {"QuantizedDepthwiseConv2D", DEPTHWISE},
    {"QuantizedDepthwiseConv2DWithBias", DEPTHWISE | BIAS},
    {"QuantizedDepthwiseConv2DWithBiasAndRelu", DEPTHWISE | BIAS | RELU},
    {"QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize", DEPTHWISE | BIAS | RELU | REQUANTIZE},
    {"QuantizedMatMulWithBias", MATMUL | BIAS},
    {"QuantizedMatMulWithBiasAndDequantize", MATMUL | BIAS | DEQUANTIZE},
    {"QuantizedMatMulWithBiasAndRelu", MATMUL | BIAS | RELU},
    {"QuantizedMatMulWithBiasAndReluAndRequantize", MATMUL | BIAS | RELU | REQUANTIZE},
    {"QuantizedMatMulWithBiasAndRequantize", MATMUL | BIAS | REQUANTIZE},
};

typedef struct layer_state_t {
  int parts;
  rn_window_attrs_t attrs;          // of convolutions
  bool transpose[2], is_min_first;  // of matmuls
} layer_state_t;

static rn_status_t layer_init(const rn_kernel_init_t* init, void* state) {
  layer_state_t* layer = state;
  size_t v = 0;
  while (strcmp(variants[v].op, init->op->name) != 0) ++v;
  layer->parts = variants[v].parts;
  if (layer->parts & MATMUL) {
    layer->transpose[0] = rn_init_bool(init, "transpose_a");
    layer->transpose[1] = rn_init_bool(init, "transpose_b");
    layer->is_min_first = rn_str_is(rn_init_string(init, "input_quant_mode"), "MIN_FIRST");
    return RN_OK;
  }
  if (rn_op_attr_index(init->op, RN_STR("padding_list")) >= 0 &&
      rn_init_attr(init, "padding_list")->count)
    return rn_unimplemented("%s with a padding_list", init->op->name);
  RN_RETURN_IF_ERROR(rn_window_init(init, "strides", &layer->attrs));
  if (layer->attrs.strides[0] != 1 || layer->attrs.strides[3] != 1)
    return rn_invalid_argument(
        "Current implementation does not yet support strides in the batch and depth dimensions.");
  if (layer->attrs.dilations[0] != 1 || layer->attrs.dilations[3] != 1)
    return rn_invalid_argument(
        "Current implementation does not yet support dilations in the batch and depth dimensions.");
  return RN_OK;
}

// One call: the inputs by role, and the sizes of the product.
typedef struct layer_call_t {
  const layer_state_t* state;
  const rn_tensor_t *x, *w, *bias, *summand;
  rn_quant_limits_t x_limits, frozen, summand_limits;
  const rn_tensor_t *w_min, *w_max;
  rn_window_axis_t rows, columns;
  int64_t batch, depth;     // images and channels of the input
  int64_t places, outputs;  // rows and columns of the result
  int64_t terms;            // of a sum
} layer_call_t;

static rn_status_t read_limits(const rn_kernel_ctx_t* ctx, int at, rn_quant_limits_t* out) {
  for (int i = at; i < at + 2; ++i)
    if (rn_in(ctx, i)->count != 1)
      return rn_invalid_argument("Input %d must be a single limit, but has shape %s", i,
                                 rn_text_of(rn_in(ctx, i)).text);
  *out = rn_quant_limits_at(ctx, at);
  return RN_OK;
}

static rn_status_t read_call(const rn_kernel_ctx_t* ctx, layer_call_t* out) {
  const layer_state_t* state = ctx->state;
  int at = 2;
  *out = (layer_call_t){.state = state, .x = rn_in(ctx, 0), .w = rn_in(ctx, 1)};
  if (state->parts & BIAS) out->bias = rn_in(ctx, at++);
  RN_RETURN_IF_ERROR(read_limits(ctx, at, &out->x_limits));
  out->w_min = rn_in(ctx, at + 2), out->w_max = rn_in(ctx, at + 3);
  at += 4;
  if (state->parts & (REQUANTIZE | DEQUANTIZE)) {
    RN_RETURN_IF_ERROR(read_limits(ctx, at, &out->frozen));
    at += 2;
  }
  if (!(state->parts & SUM)) return RN_OK;
  out->summand = rn_in(ctx, at);
  return state->parts & REQUANTIZE ? read_limits(ctx, at + 1, &out->summand_limits) : RN_OK;
}

// Checks shapes against each other and works out sizes; |dims| become those of the result.
static rn_status_t measure_conv(layer_call_t* call, int64_t dims[4]) {
  if (call->x->rank != 4)
    return rn_invalid_argument("input must be 4-dimensional%s", rn_text_of(call->x).text);
  if (call->w->rank != 4)
    return rn_invalid_argument("filter must be 4-dimensional: %s", rn_text_of(call->w).text);
  const int64_t *x = rn_tensor_dims(call->x), *w = rn_tensor_dims(call->w);
  bool is_depthwise = call->state->parts & DEPTHWISE;
  if (x[3] != w[2])
    return rn_invalid_argument("input and filter must have the same depth: %" PRId64 " vs %" PRId64,
                               x[3], w[2]);
  if (call->w->count == 0) return rn_invalid_argument("filter must not have zero elements");
  RN_RETURN_IF_ERROR(rn_window_axis(&call->state->attrs, 1, x[1], w[0], &call->rows));
  RN_RETURN_IF_ERROR(rn_window_axis(&call->state->attrs, 2, x[2], w[1], &call->columns));
  call->batch = x[0], call->depth = x[3];
  call->outputs = is_depthwise ? x[3] * w[3] : w[3];
  call->terms = w[0] * w[1] * (is_depthwise ? 1 : w[2]);
  dims[0] = x[0], dims[1] = call->rows.out, dims[2] = call->columns.out, dims[3] = call->outputs;
  call->places = call->batch * call->rows.out * call->columns.out;
  return RN_OK;
}

static rn_status_t measure_matmul(layer_call_t* call, int64_t dims[4]) {
  const rn_tensor_t *a = call->x, *b = call->w;
  const bool ta = call->state->transpose[0], tb = call->state->transpose[1];
  for (int i = 0; i < 2; ++i)
    if ((i ? b : a)->rank != 2) return rn_invalid_argument("In[%d] is not a matrix", i);
  call->terms = rn_tensor_dim(a, !ta);
  if (call->terms != rn_tensor_dim(b, tb))
    return rn_invalid_argument("Matrix size-incompatible: In[0]: %s, In[1]: %s", rn_text_of(a).text,
                               rn_text_of(b).text);
  dims[0] = call->places = rn_tensor_dim(a, ta);
  dims[1] = call->outputs = rn_tensor_dim(b, !tb);
  return RN_OK;
}

static rn_status_t check_rest(const layer_call_t* call, rn_shape_t result) {
  if (call->bias && (call->bias->rank != 1 || call->bias->count != call->outputs))
    return rn_invalid_argument("bias must have one element per output, %" PRId64
                               ", but has shape %s",
                               call->outputs, rn_text_of(call->bias).text);
  int64_t limits = call->w_min->count;
  if (limits != call->w_max->count || (limits != 1 && limits != call->outputs))
    return rn_invalid_argument("The filter's limits have shapes %s and %s",
                               rn_text_of(call->w_min).text, rn_text_of(call->w_max).text);
  if (call->summand && !rn_shape_eq(rn_tensor_shape(call->summand), result))
    return rn_invalid_argument("summand has shape %s, should be %s", rn_text_of(call->summand).text,
                               rn_shape_text(result).text);
  return RN_OK;
}

// Sums.

static int32_t level_at(const rn_tensor_t* levels, int64_t i) {
  return levels->dtype == RN_QINT8 ? RN_DATA(levels, const int8_t)[i]
                                   : RN_DATA(levels, const uint8_t)[i];
}

// Row |place| of the matrix of patches, outside zero; of A for a matmul.
static void layer_row(const void* arg, int64_t place, int16_t* out) {
  const layer_call_t* call = arg;
  if (call->state->parts & MATMUL) {
    bool ta = call->state->transpose[0];
    for (int64_t k = 0; k < call->terms; ++k)
      out[k] = (int16_t)level_at(call->x, ta ? k * call->places + place : place * call->terms + k);
    return;
  }
  const rn_window_axis_t *rows = &call->rows, *columns = &call->columns;
  int64_t column = place % columns->out, line = place / columns->out;
  int64_t top = line % rows->out * rows->stride - rows->before, image = line / rows->out;
  int64_t left = column * columns->stride - columns->before;
  for (int64_t i = 0; i < rows->filter; ++i)
    for (int64_t j = 0; j < columns->filter; ++j, out += call->depth) {
      int64_t y = top + i * rows->dilation, x = left + j * columns->dilation;
      bool is_inside = y >= 0 && y < rows->in && x >= 0 && x < columns->in;
      int64_t at = ((image * rows->in + y) * columns->in + x) * call->depth;
      for (int64_t d = 0; d < call->depth; ++d)
        out[d] = is_inside ? (int16_t)level_at(call->x, at + d) : 0;
    }
}

// One filter per channel: the patch of all channels times the filters.
static void depthwise_sums(const layer_call_t* call, int16_t* patch, int32_t* sums) {
  int64_t many = call->outputs / call->depth;
  for (int64_t place = 0; place < call->places; ++place) {
    layer_row(call, place, patch);
    for (int64_t o = 0; o < call->outputs; ++o) {
      int64_t channel = o / many;
      uint32_t sum = 0;
      for (int64_t k = 0; k < call->terms; ++k)
        sum +=
            (uint32_t)(patch[k * call->depth + channel] * level_at(call->w, k * call->outputs + o));
      sums[place * call->outputs + o] = (int32_t)sum;
    }
  }
}

static rn_status_t find_sums(rn_kernel_ctx_t* ctx, const layer_call_t* call, int32_t* sums) {
  if (call->state->parts & DEPTHWISE) {
    rn_tensor_t patch = {0};
    int64_t size = call->terms * call->depth;
    RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT16, (rn_shape_t){1, &size}, &patch));
    depthwise_sums(call, patch.data, sums);
    rn_tensor_clear(&patch);
    return RN_OK;
  }
  if (call->terms == 0) {
    memset(sums, 0, (size_t)(call->places * call->outputs) * sizeof *sums);
    return RN_OK;
  }
  bool tb = call->state->transpose[1];
  rn_quant_gemm_t gemm = {.m = call->places,
                          .n = call->outputs,
                          .k = call->terms,
                          .row = layer_row,
                          .arg = call,
                          .b = call->w->data,
                          .b_row = tb ? 1 : call->outputs,
                          .b_column = tb ? call->terms : 1,
                          .b_is_signed = call->w->dtype == RN_QINT8,
                          .c = sums};
  return rn_quant_gemm(ctx, &gemm);
}

// Units.

static float largest(rn_quant_limits_t limits) {
  return fmaxf(fabsf(limits.min), fabsf(limits.max));
}
static float highest(rn_dtype_t dtype) { return dtype == RN_QINT8 ? 127.0f : 255.0f; }
static rn_quant_limits_t filter_limits(const layer_call_t* call, int64_t output) {
  int64_t i = call->w_min->count == 1 ? 0 : output;
  return (rn_quant_limits_t){RN_DATA(call->w_min, const float)[i],
                             RN_DATA(call->w_max, const float)[i]};
}
// The value of one level, whose range is symmetric if it is signed.
static float level_size(rn_dtype_t dtype, rn_quant_limits_t limits) {
  return (limits.max - limits.min) / (dtype == RN_QINT8 ? 254.0f : 255.0f);
}
// The limits of sums for one output.
static rn_quant_limits_t sum_limits(const layer_call_t* call, int64_t output) {
  float unit = level_size(call->x->dtype, call->x_limits) *
               level_size(call->w->dtype, filter_limits(call, output));
  return (rn_quant_limits_t){unit * -2147483648.0f, unit * 2147483647.0f};
}

// The value of one unit of the sums of an output, as stock takes it for biases and results: it
// relates the levels to the larger limits. The limits of 32-bit results say something else.
static float unit_of(const layer_call_t* call, int64_t output) {
  rn_quant_limits_t x = call->x_limits;
  float range = call->state->is_min_first ? x.max - x.min : largest(x);
  return range / highest(call->x->dtype) * (largest(filter_limits(call, output)) / 127.0f);
}

// What is added to the sums of one output, in their unit.
static float bias_of(const layer_call_t* call, int64_t output) {
  if (!call->bias) return 0;
  float bias = call->bias->dtype == RN_QINT32
                   ? (float)RN_DATA(call->bias, const int32_t)[output]
                   : RN_DATA(call->bias, const float)[output] / unit_of(call, output);
  if (!call->state->is_min_first) return bias;
  // Level 0 is not zero but the lower limit.
  bool tb = call->state->transpose[1];
  int64_t total = 0;
  for (int64_t k = 0; k < call->terms; ++k)
    total += level_at(call->w, tb ? output * call->terms + k : k * call->outputs + output);
  rn_quant_limits_t x = call->x_limits;
  return bias + (float)total * (255.0f * x.min / (x.max - x.min));
}

// 32-bit sums of all outputs are in the unit of the output with the largest one.
static float common_scale(const layer_call_t* call, int64_t output) {
  float most = unit_of(call, output);
  for (int64_t i = 0; i < call->w_min->count; ++i) most = fmaxf(most, unit_of(call, i));
  return call->w_min->count == 1 ? 1 : unit_of(call, output) / most;
}

static int32_t to_int32(float x) {
  if (!(x > -2147483648.0f)) return INT32_MIN;
  return x >= 2147483648.0f ? INT32_MAX : (int32_t)rintf(x);
}

// Finishes one output with 32-bit levels.
static void finish_wide(const layer_call_t* call, int64_t output, const int32_t* sums, int32_t* y) {
  float unit = unit_of(call, output), scale = common_scale(call, output);
  float bias = bias_of(call, output) * scale;
  for (int64_t p = 0; p < call->places; ++p) {
    int64_t at = p * call->outputs + output;
    int32_t sum = (int32_t)((uint32_t)sums[at] + (uint32_t)to_int32(bias));
    if (scale != 1) sum = to_int32((float)sums[at] * scale + bias);
    if (call->summand)
      sum = to_int32((float)sums[at] + bias + RN_DATA(call->summand, const float)[at] / unit);
    y[at] = call->state->parts & RELU && sum < 0 ? 0 : sum;
  }
}

// Finishes one output with floats or 8-bit levels.
static void finish_narrow(const layer_call_t* call, int64_t output, const int32_t* sums,
                          rn_tensor_t* y) {
  int parts = call->state->parts;
  int32_t bias = to_int32(bias_of(call, output));
  float low = y->dtype == RN_QINT8 ? -128.0f : 0, high = highest(y->dtype), scale, weight = 0;
  scale = unit_of(call, output);
  if (parts & REQUANTIZE) scale *= high / largest(call->frozen);
  if (call->summand)
    weight = largest(call->summand_limits) / highest(call->summand->dtype) * high /
             largest(call->frozen);
  for (int64_t p = 0; p < call->places; ++p) {
    int64_t at = p * call->outputs + output;
    float value = (float)(int32_t)((uint32_t)sums[at] + (uint32_t)bias) * scale;
    if (call->summand) value += weight * (float)level_at(call->summand, at);
    if (parts & RELU && value < 0) value = 0;
    if (parts & DEQUANTIZE) {
      RN_DATA(y, float)[at] = value;
      continue;
    }
    value = rintf(value < low ? low : value > high ? high : value);
    RN_DATA(y, uint8_t)[at] = (uint8_t)(int32_t)value;
  }
}

static rn_status_t put_limits(rn_kernel_ctx_t* ctx, const layer_call_t* call) {
  if (call->state->parts & DEQUANTIZE) return RN_OK;
  if (call->state->parts & REQUANTIZE) return rn_quant_set_limits(ctx, 1, call->frozen);
  rn_tensor_t *min = NULL, *max = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, rn_tensor_shape(call->w_min), &min));
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, rn_tensor_shape(call->w_min), &max));
  for (int64_t i = 0; i < min->count; ++i) {
    rn_quant_limits_t limits = sum_limits(call, i);
    RN_DATA(min, float)[i] = limits.min;
    RN_DATA(max, float)[i] = limits.max;
  }
  return RN_OK;
}

static rn_status_t layer_compute(rn_kernel_ctx_t* ctx) {
  layer_call_t call;
  int64_t dims[4];
  RN_RETURN_IF_ERROR(read_call(ctx, &call));
  bool is_matmul = call.state->parts & MATMUL;
  RN_RETURN_IF_ERROR(is_matmul ? measure_matmul(&call, dims) : measure_conv(&call, dims));
  rn_shape_t shape = {is_matmul ? 2 : 4, dims};
  RN_RETURN_IF_ERROR(check_rest(&call, shape));
  rn_tensor_t *y = NULL, temp = {0};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &y));
  RN_RETURN_IF_ERROR(put_limits(ctx, &call));
  if (y->count == 0) return RN_OK;
  bool is_wide = y->dtype == RN_QINT32;
  if (!is_wide) RN_RETURN_IF_ERROR(rn_temp(ctx, RN_INT32, shape, &temp));
  int32_t* sums = is_wide ? y->data : temp.data;
  rn_status_t status = find_sums(ctx, &call, sums);
  for (int64_t o = 0; rn_ok(status) && o < call.outputs; ++o) {
    if (is_wide)
      finish_wide(&call, o, sums, y->data);
    else
      finish_narrow(&call, o, sums, y);
  }
  rn_tensor_clear(&temp);
  return status;
}

#define EIGHT (RN_T(QUINT8) | RN_T(QINT8))
#define COMMON                                                                        \
  .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .state_size = sizeof(layer_state_t), \
  .init = layer_init, .compute = layer_compute
#define CONV(op_, in, out)                                                                      \
  {                                                                                             \
    .op = op_, COMMON, .types = { {"Tinput", in}, {"Tfilter", RN_T(QINT8)}, {"out_type", out} } \
  }
#define PRODUCT(op_, out)                                                                       \
  {                                                                                             \
    .op = op_, COMMON, .types = { {"T1", RN_T(QUINT8)}, {"T2", RN_T(QINT8)}, {"Toutput", out} } \
  }
static const rn_kernel_def_t rows[] = {
    CONV("QuantizedConv2DPerChannel", RN_T(QUINT8), RN_T(QINT32)),
    CONV("QuantizedConv2DAndRelu", RN_T(QUINT8), RN_T(QINT32)),
    CONV("QuantizedConv2DAndReluAndRequantize", RN_T(QUINT8), RN_T(QUINT8)),
    CONV("QuantizedConv2DAndRequantize", RN_T(QUINT8), RN_T(QINT8)),
    CONV("QuantizedConv2DWithBias", EIGHT, RN_T(QINT32)),
    CONV("QuantizedConv2DWithBiasAndRelu", EIGHT, RN_T(QINT32)),
    CONV("QuantizedConv2DWithBiasAndReluAndRequantize", EIGHT, RN_T(QUINT8)),
    CONV("QuantizedConv2DWithBiasAndRequantize", EIGHT, RN_T(QINT8)),
    CONV("QuantizedConv2DWithBiasSignedSumAndReluAndRequantize", RN_T(QUINT8), RN_T(QUINT8)),
    CONV("QuantizedConv2DWithBiasSumAndRelu", RN_T(QUINT8), RN_T(QINT32)),
    CONV("QuantizedConv2DWithBiasSumAndReluAndRequantize", RN_T(QUINT8), RN_T(QUINT8)),
    CONV("QuantizedDepthwiseConv2D", RN_T(QUINT8), RN_T(QINT32)),
    CONV("QuantizedDepthwiseConv2DWithBias", RN_T(QUINT8), RN_T(QINT32)),
    CONV("QuantizedDepthwiseConv2DWithBiasAndRelu", RN_T(QUINT8), RN_T(QINT32)),
    CONV("QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize", RN_T(QUINT8), RN_T(QUINT8)),
    PRODUCT("QuantizedMatMulWithBias", RN_T(QINT32)),
    PRODUCT("QuantizedMatMulWithBiasAndDequantize", RN_T(FLOAT)),
    PRODUCT("QuantizedMatMulWithBiasAndRelu", RN_T(QINT32)),
    PRODUCT("QuantizedMatMulWithBiasAndReluAndRequantize", RN_T(QUINT8)),
    PRODUCT("QuantizedMatMulWithBiasAndRequantize", RN_T(QUINT8)),
};
RN_KERNEL_FAMILY(cpu_quantized_layers, rows);
