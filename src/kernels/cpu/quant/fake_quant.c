// FakeQuant: rounds floats to what a few bits can represent, between bounds that are attributes,
// inputs, or per-channel inputs.
#include <inttypes.h>

#include "kernels/kernel_rows.h"

typedef struct fake_quant_state_t {
  float min, max;     // if they are attributes
  float first, last;  // levels
} fake_quant_state_t;

// The bounds shifted so that zero is a level. An empty range gives zeros.
typedef struct fake_quant_t {
  float least, most, scale, inverse;
  float zero;  // steps from |least| to zero
  bool is_zero, divides;
} fake_quant_t;

static fake_quant_t quant_of(const fake_quant_state_t* state, float min, float max) {
  fake_quant_t quant = {.is_zero = min == 0 && max == 0};
  quant.scale = (max - min) / (state->last - state->first);
  quant.inverse = (state->last - state->first) / (max - min);
  float zero = state->first - min / quant.scale;
  float level = zero < state->first  ? state->first
                : zero > state->last ? state->last
                                     : __builtin_roundf(zero);
  quant.least = (state->first - level) * quant.scale;
  quant.most = (state->last - level) * quant.scale;
  quant.zero = __builtin_floorf(-quant.least * quant.inverse + 0.5f);
  return quant;
}

static inline float round_to_level(const fake_quant_t* quant, float in) {
  if (quant->is_zero) return 0;
  float x = in > quant->most ? quant->most : in;  // if the bounds are reversed, the lower one wins
  if (x < quant->least) x = quant->least;
  // Count steps from zero, so that ties round up and zero stays exact.
  float above = x - quant->least;
  float steps = quant->divides ? above / quant->scale : above * quant->inverse;
  return __builtin_floorf(steps - quant->zero + 0.5f) * quant->scale;
}

static rn_status_t levels_init(const rn_kernel_init_t* init, void* state_) {
  fake_quant_state_t* state = state_;
  int64_t bits = rn_init_int(init, "num_bits");
  if (bits < 2 || bits > 16)
    return rn_invalid_argument("num_bits must be between 2 and 16, inclusive");
  state->first = rn_init_bool(init, "narrow_range") ? 1 : 0;
  state->last = (float)((1 << bits) - 1);
  return RN_OK;
}

static rn_status_t args_init(const rn_kernel_init_t* init, void* state_) {
  fake_quant_state_t* state = state_;
  state->min = rn_init_float(init, "min");
  state->max = rn_init_float(init, "max");
  if (state->min >= state->max)
    return rn_invalid_argument("min has to be smaller than max, was: %g >= %g", state->min,
                               state->max);
  return levels_init(init, state);
}

static rn_status_t round_all(rn_kernel_ctx_t* ctx, const fake_quant_t* quant) {
  const float* in = RN_DATA(rn_in(ctx, 0), float);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output_like(ctx, 0, 0, &out));
  float* to = out->data;
  for (int64_t i = 0; i < out->count; ++i) to[i] = round_to_level(quant, in[i]);
  return RN_OK;
}

static rn_status_t args_compute(rn_kernel_ctx_t* ctx) {
  const fake_quant_state_t* state = ctx->state;
  fake_quant_t quant = quant_of(state, state->min, state->max);
  return round_all(ctx, &quant);
}

static rn_status_t same_sizes(rn_kernel_ctx_t* ctx) {
  if (rn_tensor_same_shape(rn_in(ctx, 0), rn_in(ctx, 1))) return RN_OK;
  return rn_invalid_argument("gradient and input must be the same size");
}

// The gradient passes where the input was within the bounds.
static rn_status_t args_gradient(rn_kernel_ctx_t* ctx) {
  const fake_quant_state_t* state = ctx->state;
  fake_quant_t quant = quant_of(state, state->min, state->max);
  const float* x = RN_DATA(rn_in(ctx, 1), float);
  RN_RETURN_IF_ERROR(same_sizes(ctx));
  rn_tensor_t* out = NULL;
  const float* dy = RN_DATA(rn_in(ctx, 0), float);
  RN_RETURN_IF_ERROR(rn_output_like(ctx, 0, 0, &out));
  float* dx = out->data;
  for (int64_t i = 0; i < out->count; ++i)
    dx[i] = dy[i] * (x[i] >= quant.least && x[i] <= quant.most ? 1.0f : 0.0f);
  return RN_OK;
}

static rn_status_t one_bound(const rn_tensor_t* bound, const char* name) {
  if (bound->rank == 0) return RN_OK;
  return rn_invalid_argument("`%s` must be rank 0 but is rank %d", name, bound->rank);
}

static rn_status_t vars_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *min = rn_in(ctx, 1), *max = rn_in(ctx, 2);
  RN_RETURN_IF_ERROR(one_bound(min, "min"));
  RN_RETURN_IF_ERROR(one_bound(max, "max"));
  fake_quant_t quant = quant_of(ctx->state, *RN_DATA(min, float), *RN_DATA(max, float));
  quant.divides = true;  // as stock does only here: it decides ties
  return round_all(ctx, &quant);
}

// Adds one element's contribution: to its input's gradient, or to that of the bound it exceeds.
static inline void spread(const fake_quant_t* quant, float x, float dy, float* dx, double* to_min,
                          double* to_max) {
  bool is_within = quant->is_zero || (x >= quant->least && x <= quant->most);
  *dx = dy * (is_within ? 1.0f : 0.0f);
  if (quant->is_zero) return;
  // NaN propagates to every sum, as in stock.
  *to_min += dy * (x < quant->least ? 1.0f : 0.0f);
  *to_max += dy * (x > quant->most ? 1.0f : 0.0f);
}

static rn_status_t vars_gradient(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *dy = rn_in(ctx, 0), *x = rn_in(ctx, 1), *min = rn_in(ctx, 2),
                    *max = rn_in(ctx, 3);
  RN_RETURN_IF_ERROR(same_sizes(ctx));
  RN_RETURN_IF_ERROR(one_bound(min, "min"));
  RN_RETURN_IF_ERROR(one_bound(max, "max"));
  fake_quant_t quant = quant_of(ctx->state, *RN_DATA(min, float), *RN_DATA(max, float));
  rn_tensor_t *dx = NULL, *dmin = NULL, *dmax = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &dx));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, RN_SHAPE_SCALAR, &dmin));
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, RN_SHAPE_SCALAR, &dmax));
  double to_min = 0, to_max = 0;
  for (int64_t i = 0; i < dx->count; ++i)
    spread(&quant, RN_DATA(x, float)[i], RN_DATA(dy, float)[i], &RN_DATA(dx, float)[i], &to_min,
           &to_max);
  *RN_DATA(dmin, float) = (float)to_min;
  *RN_DATA(dmax, float) = (float)to_max;
  return RN_OK;
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

static rn_status_t channels_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *x = rn_in(ctx, 0), *min = rn_in(ctx, 1), *max = rn_in(ctx, 2);
  int64_t channels = 0;
  RN_RETURN_IF_ERROR(channels_of(x, min, max, &channels));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &out));
  for (int64_t c = 0; c < channels; ++c) {
    fake_quant_t quant = quant_of(ctx->state, RN_DATA(min, float)[c], RN_DATA(max, float)[c]);
    for (int64_t i = c; i < x->count; i += channels)
      RN_DATA(out, float)[i] = round_to_level(&quant, RN_DATA(x, float)[i]);
  }
  return RN_OK;
}

static rn_status_t channels_gradient(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *dy = rn_in(ctx, 0), *x = rn_in(ctx, 1), *min = rn_in(ctx, 2),
                    *max = rn_in(ctx, 3);
  int64_t channels = 0;
  RN_RETURN_IF_ERROR(same_sizes(ctx));
  RN_RETURN_IF_ERROR(channels_of(x, min, max, &channels));
  rn_tensor_t *dx = NULL, *dmin = NULL, *dmax = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(x), &dx));
  RN_RETURN_IF_ERROR(rn_output(ctx, 1, rn_tensor_shape(min), &dmin));
  RN_RETURN_IF_ERROR(rn_output(ctx, 2, rn_tensor_shape(min), &dmax));
  for (int64_t c = 0; c < channels; ++c) {
    fake_quant_t quant = quant_of(ctx->state, RN_DATA(min, float)[c], RN_DATA(max, float)[c]);
    double to_min = 0, to_max = 0;
    for (int64_t i = c; i < x->count; i += channels)
      spread(&quant, RN_DATA(x, float)[i], RN_DATA(dy, float)[i], &RN_DATA(dx, float)[i], &to_min,
             &to_max);
    RN_DATA(dmin, float)[c] = (float)to_min;
    RN_DATA(dmax, float)[c] = (float)to_max;
  }
  return RN_OK;
}

#define ROW(name, init_, fn, flags_)                                                        \
  {                                                                                         \
    .op = name, .device = "CPU", .flags = flags_, .state_size = sizeof(fake_quant_state_t), \
    .init = init_, .compute = fn                                                            \
  }
static const rn_kernel_def_t rows[] = {
    ROW("FakeQuantWithMinMaxArgs", args_init, args_compute, RN_KERNEL_IN_PLACE),
    ROW("FakeQuantWithMinMaxArgsGradient", args_init, args_gradient, RN_KERNEL_IN_PLACE),
    ROW("FakeQuantWithMinMaxVars", levels_init, vars_compute, RN_KERNEL_IN_PLACE),
    ROW("FakeQuantWithMinMaxVarsGradient", levels_init, vars_gradient, 0),
    ROW("FakeQuantWithMinMaxVarsPerChannel", levels_init, channels_compute, 0),
    ROW("FakeQuantWithMinMaxVarsPerChannelGradient", levels_init, channels_gradient, 0),
};
RN_KERNEL_FAMILY(cpu_fake_quant, rows);
