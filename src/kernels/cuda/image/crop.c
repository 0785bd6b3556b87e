// CropAndResize and its gradients: crop.cu has the device code.
#include "kernels/cpu/image/crop.h"

#include "kernels/cuda/image/crop_args.h"
#include "kernels/cuda/image/image.h"

// Boxes and the numbers of their images are inputs |first| and the one after.
static rn_cuda_crop_args args_of(const rn_kernel_ctx_t* ctx, const rn_crop_t* crop, int first) {
  const rn_crop_attrs_t* attrs = ctx->state;
  return (rn_cuda_crop_args){.boxes = rn_in(ctx, first)->data,
                             .which = rn_in(ctx, first + 1)->data,
                             .out = crop->out->data,
                             .count = crop->out->count,
                             .depth = rn_cuda_divisor(crop->depth),
                             .batch = crop->batch,
                             .height = crop->height,
                             .width = crop->width,
                             .box_count = crop->boxes,
                             .crop_height = crop->crop_height,
                             .crop_width = crop->crop_width,
                             .outside = attrs->outside,
                             .is_nearest = attrs->is_nearest};
}

static rn_status_t crop(rn_kernel_ctx_t* ctx) {
  rn_crop_t crop;
  RN_RETURN_IF_ERROR(rn_crop_begin(ctx, &crop));
  if (crop.out->count == 0) return RN_OK;
  rn_cuda_crop_args args = args_of(ctx, &crop, 1);
  args.image = rn_in(ctx, 0)->data;
  args.rows = rn_cuda_divisor(crop.crop_height);
  args.columns = rn_cuda_divisor(crop.crop_width);
  return rn_cuda_image_each(ctx, "crop/crop", rn_in(ctx, 0)->dtype, args.count, &args, sizeof args);
}

static rn_status_t image_gradient(rn_kernel_ctx_t* ctx) {
  rn_crop_t crop;
  RN_RETURN_IF_ERROR(rn_crop_image_gradient_begin(ctx, &crop));
  if (crop.out->count == 0) return RN_OK;
  rn_cuda_crop_args args = args_of(ctx, &crop, 1);
  args.grads = rn_in(ctx, 0)->data;
  args.rows = rn_cuda_divisor(crop.height);
  args.columns = rn_cuda_divisor(crop.width);
  return rn_cuda_image_each(ctx, "crop/image_gradient", crop.out->dtype, args.count, &args,
                            sizeof args);
}

static rn_status_t box_gradient(rn_kernel_ctx_t* ctx) {
  rn_crop_t crop;
  RN_RETURN_IF_ERROR(rn_crop_box_gradient_begin(ctx, &crop));
  if (crop.out->count == 0) return RN_OK;
  if (crop.depth == 0) return rn_cuda_zero(ctx, crop.out);
  rn_cuda_crop_args args = args_of(ctx, &crop, 2);
  args.grads = rn_in(ctx, 0)->data;
  args.image = rn_in(ctx, 1)->data;
  rn_cuda_grid_t grid = {.x = (unsigned)(crop.boxes < INT32_MAX ? crop.boxes : INT32_MAX),
                         .block_x = RN_CUDA_BLOCK,
                         .shared = 4 * RN_CUDA_BLOCK * sizeof(double)};
  return rn_cuda_launch(ctx, rn_cuda_name("image/crop/box_gradient", rn_in(ctx, 1)->dtype).text,
                        grid, &args, sizeof args);
}

#define ROW(op_, host_args_, compute_)                                                          \
  {                                                                                             \
    .op = op_, .device = "GPU", .types = {{"T", RN_T(HALF) | RN_T(FLOAT) | RN_T(DOUBLE)}},      \
    .flags = RN_KERNEL_REPLAYS, .host_args = host_args_, .state_size = sizeof(rn_crop_attrs_t), \
    .init = rn_crop_init, .compute = compute_                                                   \
  }
static const rn_kernel_def_t rows[] = {
    ROW("CropAndResize", RN_HOST_ARGS("crop_size"), crop),
    ROW("CropAndResizeGradImage", RN_HOST_ARGS("image_size"), image_gradient),
    ROW("CropAndResizeGradBoxes", NULL, box_gradient),
};
RN_KERNEL_FAMILY(cuda_crop, rows);
