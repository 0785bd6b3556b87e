// Fake quantisation with fixed bounds: floats rounded to what a few bits can hold.
#include "kernels/kernel_rows.h"

// The bounds moved so that zero is one of the levels.
typedef struct fake_quant_t {
  float least, most, scale;
} fake_quant_t;

static rn_status_t fake_quant_init(const rn_kernel_init_t* init, void* state) {
  fake_quant_t* quant = state;
  float min = rn_init_float(init, "min"), max = rn_init_float(init, "max");
  int64_t bits = rn_init_int(init, "num_bits");
  if (min >= max)
    return rn_invalid_argument("min has to be smaller than max, was: %g >= %g", min, max);
  if (bits < 2 || bits > 16)
    return rn_invalid_argument("num_bits must be between 2 and 16, inclusive");
  float first = rn_init_bool(init, "narrow_range") ? 1 : 0, last = (float)((1 << bits) - 1);
  quant->scale = (max - min) / (last - first);
  float zero = first - min / quant->scale;
  float level = zero < first ? first : zero > last ? last : __builtin_roundf(zero);
  quant->least = (first - level) * quant->scale;
  quant->most = (last - level) * quant->scale;
  return RN_OK;
}

static rn_status_t fake_quant(rn_kernel_ctx_t* ctx) {
  const fake_quant_t* quant = ctx->state;
  const float* in = RN_DATA(rn_in(ctx, 0), float);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output_like(ctx, 0, 0, &out));
  float inverse = 1 / quant->scale;
  for (int64_t i = 0; i < out->count; ++i) {
    float x = in[i] < quant->least ? quant->least : in[i] > quant->most ? quant->most : in[i];
    RN_DATA(out, float)
    [i] = __builtin_floorf((x - quant->least) * inverse + 0.5f) * quant->scale + quant->least;
  }
  return RN_OK;
}

// The gradient passes where the input was within the bounds.
static rn_status_t fake_quant_gradient(rn_kernel_ctx_t* ctx) {
  const fake_quant_t* quant = ctx->state;
  const rn_tensor_t *gradient = rn_in(ctx, 0), *input = rn_in(ctx, 1);
  if (!rn_tensor_same_shape(gradient, input))
    return rn_invalid_argument("gradient and input must be the same size");
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output_like(ctx, 0, 0, &out));
  for (int64_t i = 0; i < out->count; ++i) {
    float x = RN_DATA(input, float)[i];
    RN_DATA(out, float)
    [i] = RN_DATA(gradient, float)[i] * (x >= quant->least && x <= quant->most ? 1.0f : 0.0f);
  }
  return RN_OK;
}

#define ROW(name, fn)                                                                             \
  {                                                                                               \
    .op = name, .device = "CPU", .flags = RN_KERNEL_IN_PLACE, .state_size = sizeof(fake_quant_t), \
    .init = fake_quant_init, .compute = fn                                                        \
  }
static const rn_kernel_def_t rows[] = {
    ROW("FakeQuantWithMinMaxArgs", fake_quant),
    ROW("FakeQuantWithMinMaxArgsGradient", fake_quant_gradient),
};
RN_KERNEL_FAMILY(cpu_fake_quant, rows);
