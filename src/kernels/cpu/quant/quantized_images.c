// QuantizedResizeBilinear: pixels between levels, which keep their limits.
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/image/resize.h"
#include "kernels/cpu/quant/quantized.h"
#include "kernels/kernel_rows.h"

// The pixels around output |i|, and how far it is from the first to the second.
typedef struct quantized_images_tap_t {
  int64_t low, high;
  double weight;
} quantized_images_tap_t;

static quantized_images_tap_t tap(const rn_resize_attrs_t* attrs, int64_t i, int64_t in,
                                  int64_t out) {
  float scale = rn_resize_scale(attrs, in, out);
  float place = attrs->half_pixel_centers ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
  float below = floorf(place);
  int64_t low = below > 0 ? (int64_t)below : 0, high = (int64_t)ceilf(place);
  if (high > in - 1) high = in - 1;
  if (low > high) low = high;
  return (quantized_images_tap_t){low, high, (double)(place - below)};
}

// Bytes are interpolated in whole numbers, with weights of so many bits.
#define WEIGHT_BITS 7

static int32_t between(int32_t from, int32_t to, double weight) {
  return from * (1 << WEIGHT_BITS) + (to - from) * (int32_t)(weight * (1 << WEIGHT_BITS));
}

static double level(const rn_tensor_t* x, int64_t i) {
  return x->dtype == RN_QINT32 ? (double)RN_DATA(x, const int32_t)[i]
                               : (double)RN_DATA(x, const float)[i];
}

static void put(rn_tensor_t* y, int64_t i, double value) {
  if (y->dtype == RN_QINT32)
    RN_DATA(y, int32_t)[i] = (int32_t)floor(value + 0.5);
  else
    RN_DATA(y, float)[i] = (float)value;
}

// One row of the output; |x_at| is the first element of its image.
static void resize_row(const rn_kernel_ctx_t* ctx, const rn_resize_t* sizes, int64_t x_at,
                       int64_t row, int64_t to) {
  const rn_tensor_t* x = rn_in(ctx, 0);
  quantized_images_tap_t down = tap(ctx->state, row, sizes->in[0], sizes->out[0]);
  int64_t line = sizes->in[1] * sizes->depth;
  for (int64_t column = 0; column < sizes->out[1]; ++column) {
    quantized_images_tap_t across = tap(ctx->state, column, sizes->in[1], sizes->out[1]);
    for (int64_t c = 0; c < sizes->depth; ++c, ++to) {
      int64_t left = across.low * sizes->depth + c, right = across.high * sizes->depth + c;
      int64_t top = x_at + down.low * line, bottom = x_at + down.high * line;
      if (x->dtype == RN_QUINT8) {
        const uint8_t* from = x->data;
        int32_t above = between(from[top + left], from[top + right], across.weight);
        int32_t below = between(from[bottom + left], from[bottom + right], across.weight);
        int32_t half = 1 << (2 * WEIGHT_BITS - 1);
        int32_t sum = between(above, below, down.weight) + half;
        RN_DATA(sizes->result, uint8_t)[to] = (uint8_t)(sum >> (2 * WEIGHT_BITS));
        continue;
      }
      double upper = level(x, top + left), lower = level(x, bottom + left);
      upper += (level(x, top + right) - upper) * across.weight;
      lower += (level(x, bottom + right) - lower) * across.weight;
      put(sizes->result, to, upper + (lower - upper) * down.weight);
    }
  }
}

static rn_status_t resize_compute(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"min", "max"};
  for (int i = 0; i < 2; ++i)
    if (rn_in(ctx, 2 + i)->rank != 0) return rn_invalid_argument("%s must be a scalar", names[i]);
  rn_resize_t sizes;
  RN_RETURN_IF_ERROR(rn_resize_begin(ctx, &sizes));
  int64_t rows = sizes.result->count ? sizes.batch * sizes.out[0] : 0;
  for (int64_t r = 0; r < rows; ++r)
    resize_row(ctx, &sizes, r / sizes.out[0] * sizes.in[0] * sizes.in[1] * sizes.depth,
               r % sizes.out[0], r * sizes.out[1] * sizes.depth);
  return rn_quant_set_limits(ctx, 1, rn_quant_limits_at(ctx, 2));
}

// Unlike ResizeBilinear, stock takes both ways of placing pixels.
static rn_status_t resize_init(const rn_kernel_init_t* init, void* state) {
  rn_resize_attrs_t* attrs = state;
  attrs->align_corners = rn_init_bool(init, "align_corners");
  attrs->half_pixel_centers = rn_init_bool(init, "half_pixel_centers");
  return RN_OK;
}

static const rn_kernel_def_t rows[] = {
    {.op = "QuantizedResizeBilinear",
     .device = "CPU",
     .types = {{"T", RN_T(QUINT8) | RN_T(QINT32) | RN_T(FLOAT)}},
     .host_args = RN_HOST_ARGS("size"),
     .state_size = sizeof(rn_resize_attrs_t),
     .init = resize_init,
     .compute = resize_compute},
};
RN_KERNEL_FAMILY(cpu_quantized_images, rows);
