// UniformQuantizedConvolution and its hybrid: convolutions of levels with scales and zero points.
#include <math.h>

#include "framework/uniform_conv.h"
#include "kernels/cpu/quant/uniform.h"
#include "kernels/cpu/with_arena.h"
#include "kernels/kernel_rows.h"

typedef struct uniform_conv_state_t {
  rn_uniform_state_t uniform;  // first
  rn_uniform_conv_t conv;
} uniform_conv_state_t;

static const rn_attr_value_t* attr_of(const void* from, const char* name) {
  return rn_init_attr(from, name);
}

// The dimension that may have scales of its own, if the orders are not given: the first of a
// filter, the second of the output.
static rn_status_t check_axis(int64_t axis, int64_t channels, const char* name, const char* what) {
  if (axis == -1 || axis == channels) return RN_OK;
  return rn_invalid_argument(
      "%s_quantization_axis Attr must be -1 (per-tensor) or dimension_numbers.%s_feature_dimension "
      "(per-channel).",
      name, what);
}

static rn_status_t conv_init(const rn_kernel_init_t* init, void* state) {
  uniform_conv_state_t* s = state;
  for (int i = 0; i < 3; ++i) s->uniform.operands[i].axis = -1;  // a hybrid has one of them
  RN_RETURN_IF_ERROR(rn_uniform_init(init, &s->uniform));
  RN_RETURN_IF_ERROR(rn_uniform_conv_read(init, attr_of, &s->conv));
  bool is_given = s->conv.has_orders;
  if (s->uniform.operands[0].axis != -1)
    return rn_invalid_argument("lhs_quantization_axis Attr must be -1 (per-tensor).");
  RN_RETURN_IF_ERROR(check_axis(s->uniform.operands[1].axis, is_given ? s->conv.rhs.first : 0,
                                "rhs", "kernel_output"));
  return check_axis(s->uniform.operands[2].axis, is_given ? s->conv.output.second : 1, "output",
                    "output");
}

static rn_status_t geometry_of(const rn_kernel_ctx_t* ctx, rn_uniform_geometry_t* out) {
  const uniform_conv_state_t* s = ctx->state;
  const rn_tensor_t *lhs = rn_in(ctx, 0), *rhs = rn_in(ctx, 1);
  if (lhs->rank != rhs->rank)
    return rn_invalid_argument("lhs and rhs must have same dims. Given lhs and rhs of shapes: %s%s",
                               rn_text_of(lhs).text, rn_text_of(rhs).text);
  return rn_uniform_conv_geometry(&s->conv, rn_tensor_shape(lhs), rn_tensor_shape(rhs), out);
}

// A convolution in progress.
typedef struct conv_t {
  rn_uniform_geometry_t geometry;
  int64_t groups[2];                   // of images, of features
  int64_t lhs_steps[RN_UNIFORM_RANK];  // elements from one index of a dimension to the next
  int64_t rhs_steps[RN_UNIFORM_RANK];
  int64_t batch, inputs, outputs;  // images of lhs; features of a filter; filters
  const float* lhs;                // levels, less that of zero
  const rn_tensor_t* rhs;
} conv_t;

static void count_steps(const rn_tensor_t* tensor, int64_t* steps) {
  int64_t step = 1;
  for (int d = tensor->rank - 1; d >= 0; --d) {
    steps[d] = step;
    step *= rn_tensor_dim(tensor, d);
  }
}

static void begin(const rn_kernel_ctx_t* ctx, const float* levels, conv_t* conv) {
  const uniform_conv_state_t* s = ctx->state;
  const rn_tensor_t *lhs = rn_in(ctx, 0), *rhs = rn_in(ctx, 1);
  const rn_uniform_geometry_t* g = &conv->geometry;
  conv->groups[0] = s->conv.batch_groups;
  conv->groups[1] = s->conv.feature_groups;
  count_steps(lhs, conv->lhs_steps);
  count_steps(rhs, conv->rhs_steps);
  conv->batch = rn_tensor_dim(lhs, (int)g->lhs.first);
  conv->inputs = rn_tensor_dim(rhs, (int)g->rhs.second);
  conv->outputs = rn_tensor_dim(rhs, (int)g->rhs.first);
  conv->lhs = levels;
  conv->rhs = rhs;
}

// The element of lhs under |tap| of the window at |place|, of one dimension; -1 if that is padding.
static int64_t under(const rn_uniform_window_t* window, int64_t place, int64_t tap) {
  int64_t at = place * window->stride + tap * window->kernel_dilation - window->before;
  if (at < 0 || at % window->in_dilation) return -1;
  at /= window->in_dilation;
  return at < window->in ? at : -1;
}

// The sum over all inputs for one tap of the filter; |from| and |by| are where these begin.
static double sum_inputs(const conv_t* c, int64_t from, int64_t by, double zero) {
  int64_t a = c->lhs_steps[c->geometry.lhs.second], b = c->rhs_steps[c->geometry.rhs.second];
  double sum = 0;
  for (int64_t i = 0; i < c->inputs; ++i)
    sum += (double)c->lhs[from + i * a] * ((double)rn_uniform_level(c->rhs, by + i * b) - zero);
  return sum;
}

// The output at |at|, its index per dimension.
static double convolve(const conv_t* c, const int64_t* at, int64_t image, double zero) {
  const rn_uniform_geometry_t* g = &c->geometry;
  int64_t filter = at[g->output.second];
  int64_t features = filter / (c->outputs / c->groups[1]) * c->inputs;
  int64_t from = image * c->lhs_steps[g->lhs.first] + features * c->lhs_steps[g->lhs.second];
  int64_t by = filter * c->rhs_steps[g->rhs.first];
  int64_t tap[RN_UNIFORM_SPACE] = {0};
  double sum = 0;
  for (int d = 0; d < g->space; ++d)
    if (g->windows[d].kernel == 0) return 0;
  for (int d = 0; d >= 0;) {
    int64_t x = from, y = by;
    for (d = 0; d < g->space && x >= 0; ++d) {
      int64_t place = under(&g->windows[d], at[g->output.space.values[d]], tap[d]);
      x = place < 0 ? -1 : x + place * c->lhs_steps[g->lhs.space.values[d]];
      y += tap[d] * c->rhs_steps[g->rhs.space.values[d]];
    }
    if (x >= 0) sum += sum_inputs(c, x, y, zero);
    for (d = g->space - 1; d >= 0 && ++tap[d] == g->windows[d].kernel; --d) tap[d] = 0;
  }
  return sum;
}

// The index of output |i| per dimension, and its image in lhs.
static int64_t place_of(const conv_t* c, int64_t i, int64_t* at) {
  const rn_uniform_geometry_t* g = &c->geometry;
  for (int d = g->space + 1; d >= 0; --d) {
    at[d] = i % g->dims[d];
    i /= g->dims[d];
  }
  int64_t group = at[g->output.second] / (c->outputs / c->groups[0]);
  return group * (c->batch / c->groups[0]) + at[g->output.first];
}

static rn_status_t check_lhs_scalars(const rn_kernel_ctx_t* ctx) {
  if (rn_in(ctx, 2)->rank == 0 && rn_in(ctx, 3)->rank == 0) return RN_OK;
  return rn_invalid_argument("lhs scales/zero_points must be all scalar tensors. Given: %s%s",
                             rn_text_of(rn_in(ctx, 2)).text, rn_text_of(rn_in(ctx, 3)).text);
}

typedef struct conv_scales_t {
  rn_uniform_scales_t lhs, rhs, out;
} conv_scales_t;

static rn_status_t scales_of(const rn_kernel_ctx_t* ctx, rn_shape_t output, conv_scales_t* out) {
  const rn_uniform_attrs_t* of = ((const uniform_conv_state_t*)ctx->state)->uniform.operands;
  RN_RETURN_IF_ERROR(check_lhs_scalars(ctx));
  RN_RETURN_IF_ERROR(rn_uniform_scales(ctx, &of[0], rn_tensor_shape(rn_in(ctx, 0)), 2, &out->lhs));
  RN_RETURN_IF_ERROR(rn_uniform_scales(ctx, &of[1], rn_tensor_shape(rn_in(ctx, 1)), 4, &out->rhs));
  RN_RETURN_IF_ERROR(rn_uniform_scales(ctx, &of[2], output, 6, &out->out));
  RN_RETURN_IF_ERROR(rn_uniform_check_positive(&out->lhs, "lhs"));
  RN_RETURN_IF_ERROR(rn_uniform_check_positive(&out->rhs, "rhs"));
  RN_RETURN_IF_ERROR(rn_uniform_check_positive(&out->out, "output"));
  if (rn_in(ctx, 4)->rank == 0 && rn_in(ctx, 6)->rank > 0)
    return rn_invalid_argument(
        "If rhs is per-tensor quantized, output must be also per-tensor "
        "quantized. Given output scales/zero_points of rank %d",
        rn_in(ctx, 6)->rank);
  return RN_OK;
}

static rn_status_t conv_run(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  const rn_uniform_attrs_t* to = &((const uniform_conv_state_t*)ctx->state)->uniform.operands[2];
  const rn_tensor_t* lhs = rn_in(ctx, 0);
  conv_t conv;
  conv_scales_t scales;
  rn_tensor_t* y = NULL;
  float* levels = NULL;
  int64_t at[RN_UNIFORM_RANK];
  RN_RETURN_IF_ERROR(geometry_of(ctx, &conv.geometry));
  rn_shape_t shape = {conv.geometry.space + 2, conv.geometry.dims};
  RN_RETURN_IF_ERROR(scales_of(ctx, shape, &scales));
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &y));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)lhs->count, &levels));
  for (int64_t i = 0; i < lhs->count; ++i)
    levels[i] = (float)(rn_uniform_level(lhs, i) - (int64_t)scales.lhs.zeros[0]);
  begin(ctx, levels, &conv);
  for (int64_t i = 0; i < y->count; ++i) {
    int64_t image = place_of(&conv, i, at), filter = at[conv.geometry.output.second];
    int64_t a = scales.rhs.count == 1 ? 0 : filter, b = scales.out.count == 1 ? 0 : filter;
    double sum = convolve(&conv, at, image, (double)scales.rhs.zeros[a]);
    double factor =
        (double)scales.lhs.scales[0] * (double)scales.rhs.scales[a] / (double)scales.out.scales[b];
    rn_uniform_put(y, i, rn_uniform_rescale((int64_t)sum, factor) + (double)scales.out.zeros[b],
                   to);
  }
  return RN_OK;
}

// Rounds the floats of lhs to levels, with one range per image.
static void round_images(const rn_tensor_t* lhs, const conv_t* conv, float* levels,
                         rn_uniform_range_t* ranges) {
  const float* x = lhs->data;
  int64_t step = conv->lhs_steps[conv->geometry.lhs.first];
  for (int64_t image = 0; lhs->count && image < conv->batch; ++image) {
    float min = 0, max = 0;
    for (int64_t i = 0; i < lhs->count; ++i) {
      if (i / step % conv->batch != image) continue;
      min = fminf(min, x[i]);
      max = fmaxf(max, x[i]);
    }
    ranges[image] = rn_uniform_range(min, max);
  }
  for (int64_t i = 0; i < lhs->count; ++i)
    levels[i] = rn_uniform_round(&ranges[i / step % conv->batch], x[i]);
}

static rn_status_t hybrid_run(rn_kernel_ctx_t* ctx, rn_arena_t* arena) {
  const rn_uniform_attrs_t* of = ((const uniform_conv_state_t*)ctx->state)->uniform.operands;
  const rn_tensor_t *lhs = rn_in(ctx, 0), *rhs = rn_in(ctx, 1);
  conv_t conv;
  rn_uniform_scales_t scales;
  rn_uniform_range_t* ranges = NULL;
  rn_tensor_t* y = NULL;
  float* levels = NULL;
  int64_t at[RN_UNIFORM_RANK];
  RN_RETURN_IF_ERROR(geometry_of(ctx, &conv.geometry));
  RN_RETURN_IF_ERROR(rn_uniform_scales(ctx, &of[1], rn_tensor_shape(rhs), 2, &scales));
  RN_RETURN_IF_ERROR(rn_uniform_check_positive(&scales, "rhs"));
  rn_shape_t shape = {conv.geometry.space + 2, conv.geometry.dims};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, shape, &y));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)lhs->count, &levels));
  begin(ctx, levels, &conv);
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)(lhs->count ? conv.batch : 0), &ranges));
  round_images(lhs, &conv, levels, ranges);
  for (int64_t i = 0; i < y->count; ++i) {
    int64_t image = place_of(&conv, i, at);
    int64_t a = scales.count == 1 ? 0 : at[conv.geometry.output.second];
    double scale = lhs->count ? (double)ranges[image].scale * (double)scales.scales[a] : 0;
    RN_DATA(y, float)[i] = (float)(convolve(&conv, at, image, (double)scales.zeros[a]) * scale);
  }
  return RN_OK;
}

static rn_status_t conv_compute(rn_kernel_ctx_t* ctx) { return rn_with_arena(ctx, conv_run); }
static rn_status_t hybrid_compute(rn_kernel_ctx_t* ctx) { return rn_with_arena(ctx, hybrid_run); }

#define ROW(op_, compute_, ...)                                                        \
  {                                                                                    \
    .op = op_, .device = "CPU", .types = {__VA_ARGS__}, .flags = RN_KERNEL_EXPENSIVE,  \
    .state_size = sizeof(uniform_conv_state_t), .init = conv_init, .compute = compute_ \
  }
static const rn_kernel_def_t rows[] = {
    ROW("UniformQuantizedConvolution", conv_compute, {"Tin", RN_T(QINT8)}, {"Tout", RN_T(QINT32)}),
    ROW("UniformQuantizedConvolutionHybrid", hybrid_compute, {"Tlhs", RN_T(FLOAT)},
        {"Trhs", RN_T(QINT8)}, {"Tout", RN_T(FLOAT)}),
};
RN_KERNEL_FAMILY(cpu_uniform_conv, rows);
