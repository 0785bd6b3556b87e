// FakeQuant: rounds floats to what a few bits can represent, between bounds that are attributes,
// inputs, or per-channel inputs.
#include "kernels/cpu/quant/fake_quant.h"

#include <inttypes.h>

#include "kernels/cpu/spans.h"
#include "kernels/kernel_rows.h"

// An empty range gives zeros.
typedef struct fake_quant_t {
  rn_fake_quant_range_t range;
  bool is_zero;
} fake_quant_t;

rn_fake_quant_range_t rn_fake_quant_range(float first, float last, float min, float max) {
  rn_fake_quant_range_t range = {.scale = (max - min) / (last - first),
                                 .inverse = (last - first) / (max - min)};
  float zero = first - min / range.scale;
  float level = zero < first ? first : zero > last ? last : __builtin_roundf(zero);
  range.least = (first - level) * range.scale;
  range.most = (last - level) * range.scale;
  range.zero = __builtin_floorf(-range.least * range.inverse + 0.5f);
  return range;
}

static fake_quant_t quant_of(const rn_fake_quant_t* state, float min, float max) {
  return (fake_quant_t){.range = rn_fake_quant_range(state->first, state->last, min, max),
                        .is_zero = min == 0 && max == 0};
}

// Counts steps from zero, so that ties round up and zero stays exact.
static inline float round_to_level(const fake_quant_t* quant, float in) {
  if (quant->is_zero) return 0;
  float x = in > quant->range.most ? quant->range.most
                                   : in;  // if the bounds are reversed, the lower one wins
  if (x < quant->range.least) x = quant->range.least;
  float steps = (x - quant->range.least) * quant->range.inverse;
  return __builtin_floorf(steps - quant->range.zero + 0.5f) * quant->range.scale;
}

// The same for all elements, if they share the bounds. Bounds that are inputs divide, as in stock:
// it decides ties.
static void round_all(const fake_quant_t* quant, bool divides, const float* in, float* out,
                      int64_t count) {
  const rn_span_levels_t levels = {.least = quant->range.least,
                                   .most = quant->range.most,
                                   .scale = quant->range.scale,
                                   .inverse = quant->range.inverse,
                                   .zero = quant->range.zero,
                                   .divides = divides};
  if (quant->is_zero)
    memset(out, 0, (size_t)count * sizeof *out);
  else
    rn_spans()->to_levels(&levels, in, out, count);
}

rn_status_t rn_fake_quant_init(const rn_kernel_init_t* init, void* state_) {
  rn_fake_quant_t* state = state_;
  rn_str_t name = rn_str(init->op->name);
  state->has_bounds = init->input_count > 2;
  state->has_channels = rn_str_starts_with(name, RN_STR("FakeQuantWithMinMaxVarsPerChannel"));
  if (!state->has_bounds) {
    state->min = rn_init_float(init, "min");
    state->max = rn_init_float(init, "max");
    if (state->min >= state->max)
      return rn_invalid_argument("min has to be smaller than max, was: %g >= %g", state->min,
                                 state->max);
  }
  int64_t bits = rn_init_int(init, "num_bits");
  if (bits < 2 || bits > 16)
    return rn_invalid_argument("num_bits must be between 2 and 16, inclusive");
  state->first = rn_init_bool(init, "narrow_range") ? 1 : 0;
  state->last = (float)((1 << bits) - 1);
  return RN_OK;
}

static rn_status_t one_bound(const rn_tensor_t* bound, const char* name) {
  if (bound->rank == 0) return RN_OK;
  return rn_invalid_argument("`%s` must be rank 0 but is rank %d", name, bound->rank);
}

// The number of channels: the last dimension of |x|, and the size of both bounds.
static rn_status_t channels_of(const rn_tensor_t* x, const rn_tensor_t* min, const rn_tensor_t* max,
                               int64_t* out) {
  if (x->rank == 0)
    return rn_invalid_argument("The input must have a channel dimension, but is a scalar");
  *out = rn_tensor_dim(x, x->rank - 1);
  if (min->rank != 1 || min->count != *out)
    return rn_invalid_argument("min has incorrect size, expected %" PRId64 " was %" PRId64, *out,
                               min->count);
  if (max->rank != 1 || max->count != *out)
    return rn_invalid_argument("max has incorrect size, expected %" PRId64 " was %" PRId64, *out,
                               max->count);
  return RN_OK;
}

rn_status_t rn_fake_quant_begin(rn_kernel_ctx_t* ctx, rn_fake_quant_view_t* out) {
  const rn_fake_quant_t* state = ctx->state;
  const int inputs = ctx->kernel->input_count, bounds = state->has_bounds ? 2 : 0;
  *out = (rn_fake_quant_view_t){.x = rn_in(ctx, inputs - bounds - 1), .channels = 1};
  if (inputs - bounds == 2) {
    out->dy = rn_in(ctx, 0);
    if (!rn_tensor_same_shape(out->dy, out->x))
      return rn_invalid_argument("gradient and input must be the same size");
  }
  if (bounds) {
    out->min = rn_in(ctx, inputs - 2);
    out->max = rn_in(ctx, inputs - 1);
  }
  if (state->has_channels) {
    RN_RETURN_IF_ERROR(channels_of(out->x, out->min, out->max, &out->channels));
  } else if (bounds) {
    RN_RETURN_IF_ERROR(one_bound(out->min, "min"));
    RN_RETURN_IF_ERROR(one_bound(out->max, "max"));
  }
  RN_RETURN_IF_ERROR(ctx->kernel->output_count > 1 || state->has_channels
                         ? rn_output(ctx, 0, rn_tensor_shape(out->x), &out->out)
                         : rn_output_like(ctx, 0, 0, &out->out));
  if (ctx->kernel->output_count == 1) return RN_OK;
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, rn_tensor_shape(out->min), &out->dmin));
  return rn_output(ctx, 2, rn_tensor_shape(out->min), &out->dmax);
}

static fake_quant_t quant_at(const rn_fake_quant_t* state, const rn_fake_quant_view_t* view,
                             int64_t channel) {
  return view->min ? quant_of(state, RN_DATA(view->min, float)[channel],
                              RN_DATA(view->max, float)[channel])
                   : quant_of(state, state->min, state->max);
}

static rn_status_t round_compute(rn_kernel_ctx_t* ctx) {
  const rn_fake_quant_t* state = ctx->state;
  rn_fake_quant_view_t view;
  RN_RETURN_IF_ERROR(rn_fake_quant_begin(ctx, &view));
  const float* in = RN_DATA(view.x, float);
  float* out = RN_DATA(view.out, float);
  const int64_t count = view.out->count;
  for (int64_t c = 0; c < view.channels; ++c) {
    fake_quant_t quant = quant_at(state, &view, c);
    if (!state->has_channels)
      round_all(&quant, state->has_bounds, in, out, count);
    else
      for (int64_t i = c; i < count; i += view.channels) out[i] = round_to_level(&quant, in[i]);
  }
  return RN_OK;
}

// Between bounds that are attributes, the gradient passes where the input was within them.
static void pass_within(const fake_quant_t* quant, const rn_fake_quant_view_t* view) {
  const float *x = RN_DATA(view->x, float), *dy = RN_DATA(view->dy, float);
  float* dx = RN_DATA(view->out, float);
  for (int64_t i = 0; i < view->out->count; ++i)
    dx[i] = dy[i] * (x[i] >= quant->range.least && x[i] <= quant->range.most ? 1.0f : 0.0f);
}

// Adds one element's contribution: to its input's gradient, or to that of the bound it exceeds.
static inline void spread(const fake_quant_t* quant, float x, float dy, float* dx, double* to_min,
                          double* to_max) {
  bool is_within = quant->is_zero || (x >= quant->range.least && x <= quant->range.most);
  *dx = dy * (is_within ? 1.0f : 0.0f);
  if (quant->is_zero) return;
  // NaN propagates to every sum, as in stock.
  *to_min += dy * (x < quant->range.least ? 1.0f : 0.0f);
  *to_max += dy * (x > quant->range.most ? 1.0f : 0.0f);
}

static rn_status_t gradient_compute(rn_kernel_ctx_t* ctx) {
  rn_fake_quant_view_t view;
  RN_RETURN_IF_ERROR(rn_fake_quant_begin(ctx, &view));
  for (int64_t c = 0; c < view.channels; ++c) {
    fake_quant_t quant = quant_at(ctx->state, &view, c);
    if (!view.dmin) {
      pass_within(&quant, &view);
      continue;
    }
    double to_min = 0, to_max = 0;
    for (int64_t i = c; i < view.x->count; i += view.channels)
      spread(&quant, RN_DATA(view.x, float)[i], RN_DATA(view.dy, float)[i],
             &RN_DATA(view.out, float)[i], &to_min, &to_max);
    RN_DATA(view.dmin, float)[c] = (float)to_min;
    RN_DATA(view.dmax, float)[c] = (float)to_max;
  }
  return RN_OK;
}

#define ROW(name, fn, flags_)                                                            \
  {                                                                                      \
    .op = name, .device = "CPU", .flags = flags_, .state_size = sizeof(rn_fake_quant_t), \
    .init = rn_fake_quant_init, .compute = fn                                            \
  }
static const rn_kernel_def_t rows[] = {
    ROW("FakeQuantWithMinMaxArgs", round_compute, RN_KERNEL_IN_PLACE),
    ROW("FakeQuantWithMinMaxArgsGradient", gradient_compute, RN_KERNEL_IN_PLACE),
    ROW("FakeQuantWithMinMaxVars", round_compute, RN_KERNEL_IN_PLACE),
    ROW("FakeQuantWithMinMaxVarsGradient", gradient_compute, 0),
    ROW("FakeQuantWithMinMaxVarsPerChannel", round_compute, 0),
    ROW("FakeQuantWithMinMaxVarsPerChannelGradient", gradient_compute, 0),
};
RN_KERNEL_FAMILY(cpu_fake_quant, rows);
