// RGBToHSV, HSVToRGB, AdjustHue, AdjustSaturation and AdjustContrastv2: colour.cu has the device
// code.
#include "kernels/cpu/image/colour.h"

#include "kernels/cuda/image/colour_args.h"
#include "kernels/cuda/image/image.h"

static rn_status_t change(rn_kernel_ctx_t* ctx, const char* name, const rn_tensor_t* by,
                          rn_tensor_t* out) {
  rn_cuda_colour_args args = {.in = rn_in(ctx, 0)->data,
                              .out = out->data,
                              .by = by ? by->data : NULL,
                              .pixels = out->count / 3};
  return rn_cuda_each(ctx, rn_cuda_name(name, out->dtype).text, args.pixels, &args, sizeof args);
}

static rn_status_t convert(rn_kernel_ctx_t* ctx, const char* name) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_colour_begin(ctx, &out));
  return change(ctx, name, NULL, out);
}
static rn_status_t to_hsv(rn_kernel_ctx_t* ctx) { return convert(ctx, "image/colour/to_hsv"); }
static rn_status_t to_rgb(rn_kernel_ctx_t* ctx) { return convert(ctx, "image/colour/to_rgb"); }

static rn_status_t hue(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_adjust_begin(ctx, "delta", true, &out));
  return change(ctx, "image/colour/hue", rn_in(ctx, 1), out);
}
static rn_status_t saturation(rn_kernel_ctx_t* ctx) {
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_adjust_begin(ctx, "scale", true, &out));
  return change(ctx, "image/colour/saturation", rn_in(ctx, 1), out);
}

static rn_status_t issue_contrast(rn_kernel_ctx_t* ctx, rn_dtype_t dtype,
                                  rn_cuda_contrast_args* args) {
  const int64_t blocks = args->images * args->parts * args->channels;
  rn_cuda_grid_t grid = {.x = (unsigned)(blocks < INT32_MAX ? blocks : INT32_MAX),
                         .block_x = RN_CUDA_BLOCK,
                         .shared = RN_CUDA_BLOCK * sizeof(double)};
  RN_RETURN_IF_ERROR(rn_cuda_launch(ctx, rn_cuda_name("image/colour/contrast_sums", dtype).text,
                                    grid, args, sizeof *args));
  RN_RETURN_IF_ERROR(rn_cuda_each(ctx, "image/colour/contrast_means", args->images * args->channels,
                                  args, sizeof *args));
  return rn_cuda_image_each(ctx, "colour/contrast", dtype, args->count, args, sizeof *args);
}

// Parts of an image whose sums are made by a block each.
#define PART_PIXELS 8192
#define MOST_PARTS 256

static rn_status_t contrast(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* images = rn_in(ctx, 0);
  rn_tensor_t *out = NULL, sums = {0}, means = {0};
  RN_RETURN_IF_ERROR(rn_adjust_begin(ctx, "contrast_factor", false, &out));
  if (out->count == 0) return RN_OK;
  const int64_t* dims = rn_tensor_dims(images) + images->rank - 3;
  rn_cuda_contrast_args args = {.in = images->data,
                                .out = out->data,
                                .by = rn_in(ctx, 1)->data,
                                .pixels = dims[0] * dims[1],
                                .channels = dims[2],
                                .count = out->count};
  args.images = out->count / (args.pixels * args.channels);
  args.parts = (args.pixels + PART_PIXELS - 1) / PART_PIXELS;
  if (args.parts > MOST_PARTS) args.parts = MOST_PARTS;
  args.channel_div = rn_cuda_divisor(args.channels);
  args.size = rn_cuda_divisor(args.pixels * args.channels);
  const int64_t shape[3] = {args.images, args.channels, args.parts};
  rn_status_t status = rn_temp(ctx, RN_DOUBLE, (rn_shape_t){3, shape}, &sums);
  if (rn_ok(status)) status = rn_temp(ctx, RN_FLOAT, (rn_shape_t){2, shape}, &means);
  args.sums = sums.data;
  args.means = means.data;
  if (rn_ok(status)) status = issue_contrast(ctx, out->dtype, &args);
  rn_tensor_clear(&sums);
  rn_tensor_clear(&means);
  return status;
}

#define ROW(op_, types_, compute_)                                                    \
  {                                                                                   \
    .op = op_, .device = "GPU", .types = {{"T", types_}}, .flags = RN_KERNEL_REPLAYS, \
    .compute = compute_                                                               \
  }
static const rn_kernel_def_t rows[] = {
    ROW("RGBToHSV", RN_TYPES_FLOATS, to_hsv),
    ROW("HSVToRGB", RN_TYPES_FLOATS, to_rgb),
    ROW("AdjustHue", RN_T(HALF) | RN_T(FLOAT), hue),
    ROW("AdjustSaturation", RN_T(HALF) | RN_T(FLOAT), saturation),
    ROW("AdjustContrastv2", RN_T(HALF) | RN_T(FLOAT), contrast),
};
RN_KERNEL_FAMILY(cuda_colour, rows);
