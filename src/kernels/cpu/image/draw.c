// DrawBoundingBoxes.
#include <inttypes.h>

#include "kernels/cpu/array.h"
#include "kernels/kernel_rows.h"
#include "tensor/float16.h"

// The default colours, used in turn: yellow, blue, red, lime, purple, olive, maroon, navy, aqua,
// fuchsia.
static const float usual[10][4] = {
    {1, 1, 0, 1},       {0, 0, 1, 1},    {1, 0, 0, 1},    {0, 1, 0, 1}, {0.5f, 0, 0.5f, 1},
    {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1}, {0, 1, 1, 1}, {1, 0, 1, 1}};

typedef struct canvas_t {
  rn_tensor_t* out;
  int64_t height, width, depth;
  int64_t base;  // index of the image's first pixel
} canvas_t;

static void put(const canvas_t* c, int64_t y, int64_t x, const float* colour) {
  int64_t at = (c->base + y * c->width + x) * c->depth;
  for (int64_t d = 0; d < c->depth; ++d) {
    if (c->out->dtype == RN_HALF)
      RN_DATA(c->out, uint16_t)[at + d] = rn_float_to_half(colour[d]);
    else
      RN_DATA(c->out, float)[at + d] = colour[d];
  }
}

// Converts a coordinate to a pixel. NaN and values far out on either side are far to the left.
static int64_t pixel_of(float at, int64_t size) {
  float x = at * (float)(size - 1);
  return x > -1e9f && x < 1e9f ? (int64_t)x : INT32_MIN;
}

static void draw(const canvas_t* c, const float* box, const float* colour) {
  int64_t top = pixel_of(box[0], c->height), bottom = pixel_of(box[2], c->height);
  int64_t left = pixel_of(box[1], c->width), right = pixel_of(box[3], c->width);
  if (top > bottom || left > right) return;
  if (top >= c->height || bottom < 0 || left >= c->width || right < 0) return;
  int64_t y0 = top < 0 ? 0 : top, y1 = bottom >= c->height ? c->height - 1 : bottom;
  int64_t x0 = left < 0 ? 0 : left, x1 = right >= c->width ? c->width - 1 : right;
  for (int64_t x = x0; x <= x1; ++x) {
    if (top >= 0) put(c, top, x, colour);
    if (bottom < c->height) put(c, bottom, x, colour);
  }
  for (int64_t y = y0; y <= y1; ++y) {
    if (left >= 0) put(c, y, left, colour);
    if (right < c->width) put(c, y, right, colour);
  }
}

static rn_status_t check(const rn_tensor_t* images, const rn_tensor_t* boxes) {
  if (images->rank != 4) return rn_invalid_argument("The rank of the images should be 4");
  if (boxes->rank != 3) return rn_invalid_argument("The rank of the boxes tensor should be 3");
  if (rn_tensor_dim(images, 0) != rn_tensor_dim(boxes, 0))
    return rn_invalid_argument("The batch sizes should be the same");
  int64_t depth = rn_tensor_dim(images, 3);
  if (depth != 1 && depth != 3 && depth != 4)
    return rn_invalid_argument("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)");
  if (rn_tensor_dim(boxes, 2) != 4)
    return rn_invalid_argument(
        "The size of the third dimension of the box must be 4. Received: "
        "%" PRId64,
        rn_tensor_dim(boxes, 2));
  return RN_OK;
}

static rn_status_t draw_compute(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *images = rn_in(ctx, 0), *boxes = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(check(images, boxes));
  const int64_t* dims = rn_tensor_dims(images);
  const float* colours = usual[0];
  int64_t count = 10, stride = 4, each = rn_tensor_dim(boxes, 1);
  static const float white[4] = {1, 1, 1, 1};
  if (dims[3] == 1) {
    colours = white;
    count = 1;
  }
  if (ctx->kernel->input_count > 2) {
    const rn_tensor_t* given = rn_in(ctx, 2);
    if (given->rank != 2)
      return rn_invalid_argument("colors must be a 2-D matrix: %s", rn_text_of(given).text);
    if (rn_tensor_dim(given, 1) < dims[3])
      return rn_invalid_argument(
          "colors must have equal or more channels than the image provided: %s",
          rn_text_of(given).text);
    if (rn_tensor_dim(given, 0) > 0) {
      colours = given->data;
      count = rn_tensor_dim(given, 0);
      stride = rn_tensor_dim(given, 1);
    }
  }
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(images), &out));
  if (images->count == 0) return RN_OK;
  memcpy(out->data, images->data, rn_tensor_bytes(images));
  canvas_t canvas = {out, dims[1], dims[2], dims[3], 0};
  for (int64_t i = 0; i < dims[0] * each; ++i) {
    canvas.base = i / each * dims[1] * dims[2];
    draw(&canvas, RN_DATA(boxes, const float) + 4 * i, colours + i % each % count * stride);
  }
  return RN_OK;
}

#define TYPES                         \
  {                                   \
    { "T", RN_T(FLOAT) | RN_T(HALF) } \
  }
static const rn_kernel_def_t rows[] = {
    {.op = "DrawBoundingBoxes", .device = "CPU", .types = TYPES, .compute = draw_compute},
    {.op = "DrawBoundingBoxesV2", .device = "CPU", .types = TYPES, .compute = draw_compute},
};
RN_KERNEL_FAMILY(cpu_image_draw, rows);
