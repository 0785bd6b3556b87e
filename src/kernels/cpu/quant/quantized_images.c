// QuantizedResizeBilinear: pixels between levels, which keep their limits.
#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/image/resize.h"
#include "kernels/cpu/quant/quantized.h"
#include "kernels/kernel_rows.h"

// The pixels around output |i|, and how far it is from the first to the second.
typedef struct quantized_images_tap_t {
  int64_t low, high;
  float weight;
} quantized_images_tap_t;

static quantized_images_tap_t tap(const rn_resize_attrs_t* attrs, int64_t i, int64_t in,
                                  int64_t out) {
  float scale = rn_resize_scale(attrs, in, out);
  float place = attrs->half_pixel_centers ? ((float)i + 0.5f) * scale - 0.5f : (float)i * scale;
  float below = floorf(place);
  int64_t low = below > 0 ? (int64_t)below : 0, high = (int64_t)ceilf(place);
  if (high > in - 1) high = in - 1;
  if (low > high) low = high;
  return (quantized_images_tap_t){low, high, place - below};
}

// The four pixels around a pixel of the output: indices into the input.
typedef struct quantized_images_corners_t {
  int64_t top_left, top_right, bottom_left, bottom_right;
} quantized_images_corners_t;

// Whole numbers are interpolated as stock does: pixels pass through floats, weights have |bits|
// bits, what the second direction adds loses them again before it is weighed, and every division
// rounds towards zero.
static int64_t between(int64_t from, int64_t to, int64_t weight, int bits) {
  return from * (INT64_C(1) << bits) + (to - from) * weight;
}

static int64_t whole(const int64_t corners[4], float across, float down, int bits) {
  int64_t one = INT64_C(1) << bits;
  int64_t x = (int64_t)(across * (float)one), y = (int64_t)(down * (float)one);
  int64_t top = between(corners[0], corners[1], x, bits);
  int64_t bottom = between(corners[2], corners[3], x, bits);
  return (top + (bottom - top) / one * y + one / 2) / one;
}

static float mixed(const float* x, const quantized_images_corners_t* at, float across, float down) {
  float top = x[at->top_left] + (x[at->top_right] - x[at->top_left]) * across;
  float bottom = x[at->bottom_left] + (x[at->bottom_right] - x[at->bottom_left]) * across;
  return top + (bottom - top) * down;
}

#define BITS_OF_BYTES 7
#define BITS_OF_INTS 30

#define CORNERS(x, at)                                                                  \
  {                                                                                     \
    (int64_t)(float)(x)[(at)->top_left], (int64_t)(float)(x)[(at)->top_right],          \
        (int64_t)(float)(x)[(at)->bottom_left], (int64_t)(float)(x)[(at)->bottom_right] \
  }

// Computes element |to| of the output.
static void resize_one(const rn_tensor_t* x, const quantized_images_corners_t* at, float across,
                       float down, rn_tensor_t* y, int64_t to) {
  if (x->dtype == RN_QUINT8) {
    int64_t corners[4] = CORNERS(RN_DATA(x, const uint8_t), at);
    RN_DATA(y, uint8_t)[to] = (uint8_t)whole(corners, across, down, BITS_OF_BYTES);
  } else if (x->dtype == RN_QINT32) {
    int64_t corners[4] = CORNERS(RN_DATA(x, const int32_t), at);
    // The float next to the largest level lies beyond it; stock wraps around.
    RN_DATA(y, int32_t)[to] = (int32_t)(uint32_t)whole(corners, across, down, BITS_OF_INTS);
  } else {
    RN_DATA(y, float)[to] = mixed(RN_DATA(x, const float), at, across, down);
  }
}

// One row of the output; |x_at| is the first element of its image.
static void resize_row(const rn_kernel_ctx_t* ctx, const rn_resize_t* sizes, int64_t x_at,
                       int64_t row, int64_t to) {
  quantized_images_tap_t down = tap(ctx->state, row, sizes->in[0], sizes->out[0]);
  int64_t line = sizes->in[1] * sizes->depth;
  int64_t top = x_at + down.low * line, bottom = x_at + down.high * line;
  for (int64_t column = 0; column < sizes->out[1]; ++column) {
    quantized_images_tap_t across = tap(ctx->state, column, sizes->in[1], sizes->out[1]);
    int64_t left = across.low * sizes->depth, right = across.high * sizes->depth;
    for (int64_t c = 0; c < sizes->depth; ++c, ++to) {
      quantized_images_corners_t at = {top + left + c, top + right + c, bottom + left + c,
                                       bottom + right + c};
      resize_one(rn_in(ctx, 0), &at, across.weight, down.weight, sizes->result, to);
    }
  }
}

static rn_status_t resize_compute(rn_kernel_ctx_t* ctx) {
  static const char* const names[] = {"min", "max"};
  for (int i = 0; i < 2; ++i)
    if (rn_in(ctx, 2 + i)->rank != 0) return rn_invalid_argument("%s must be a scalar", names[i]);
  rn_resize_t sizes;
  RN_RETURN_IF_ERROR(rn_resize_begin(ctx, &sizes));
  if (sizes.in[0] == sizes.out[0] && sizes.in[1] == sizes.out[1]) {
    if (sizes.result->count)
      memcpy(sizes.result->data, rn_in(ctx, 0)->data, rn_tensor_bytes(sizes.result));
    return rn_quant_set_limits(ctx, 1, rn_quant_limits_at(ctx, 2));
  }
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
