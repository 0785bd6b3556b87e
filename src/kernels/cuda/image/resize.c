// ResizeBilinear, ResizeNearestNeighbor and their gradients: resize.cu has the device code.
#include "kernels/cpu/image/resize.h"

#include "kernels/cuda/image/image.h"
#include "kernels/cuda/image/resize_args.h"

// |made| are the rows and columns of the tensor that the kernel makes.
static rn_cuda_resize_args args_of(const rn_kernel_ctx_t* ctx, const rn_resize_t* sizes,
                                   const int64_t made[2]) {
  const rn_resize_attrs_t* attrs = ctx->state;
  rn_cuda_resize_args args = {.from = rn_in(ctx, 0)->data,
                              .to = sizes->result->data,
                              .count = sizes->result->count,
                              .rows = rn_cuda_divisor(made[0]),
                              .columns = rn_cuda_divisor(made[1]),
                              .depth = rn_cuda_divisor(sizes->depth),
                              .align_corners = attrs->align_corners,
                              .half_pixel_centers = attrs->half_pixel_centers,
                              .is_same = true};
  for (int i = 0; i < 2; ++i) {
    args.in[i] = sizes->in[i];
    args.out[i] = sizes->out[i];
    args.scale[i] = rn_resize_scale(attrs, sizes->in[i], sizes->out[i]);
    args.is_same = args.is_same && sizes->in[i] == sizes->out[i];
  }
  return args;
}

static rn_status_t bilinear(rn_kernel_ctx_t* ctx) {
  rn_resize_t sizes;
  RN_RETURN_IF_ERROR(rn_resize_begin(ctx, &sizes));
  if (sizes.result->count == 0) return RN_OK;
  rn_cuda_resize_args args = args_of(ctx, &sizes, sizes.out);
  return rn_cuda_image_each(ctx, "resize/bilinear", rn_in(ctx, 0)->dtype, args.count, &args,
                            sizeof args);
}

static rn_status_t nearest(rn_kernel_ctx_t* ctx) {
  rn_resize_t sizes;
  RN_RETURN_IF_ERROR(rn_resize_begin(ctx, &sizes));
  if (sizes.result->count == 0) return RN_OK;
  rn_cuda_resize_args args = args_of(ctx, &sizes, sizes.out);
  const int64_t size = (int64_t)rn_dtype_size(sizes.result->dtype);
  const int64_t unit = rn_cuda_unit(sizes.depth * size, args.from, args.to);
  args.count = args.count * size / unit;
  args.depth = rn_cuda_divisor(sizes.depth * size / unit);
  return rn_cuda_produce(ctx, "image/resize/nearest", unit, args.count, &args, sizeof args);
}

static rn_status_t gradient(rn_kernel_ctx_t* ctx, const char* name, const rn_resize_t* sizes) {
  if (sizes->result->count == 0) return RN_OK;
  if (rn_in(ctx, 0)->count == 0) return rn_cuda_zero(ctx, sizes->result);
  rn_cuda_resize_args args = args_of(ctx, sizes, sizes->in);
  return rn_cuda_image_each(ctx, name, sizes->result->dtype, args.count, &args, sizeof args);
}

static rn_status_t bilinear_gradient(rn_kernel_ctx_t* ctx) {
  rn_resize_t sizes;
  RN_RETURN_IF_ERROR(rn_resize_gradient_begin(ctx, &sizes));
  return gradient(ctx, "resize/bilinear_gradient", &sizes);
}

static rn_status_t nearest_gradient(rn_kernel_ctx_t* ctx) {
  rn_resize_t sizes;
  RN_RETURN_IF_ERROR(rn_resize_nearest_gradient_begin(ctx, &sizes));
  return gradient(ctx, "resize/nearest_gradient", &sizes);
}

#define ROW(op_, compute_)                                                                     \
  {                                                                                            \
    .op = op_, .device = "GPU", .types = {{"T", RN_TYPES_FLOATS}}, .flags = RN_KERNEL_REPLAYS, \
    .host_args = RN_HOST_ARGS("size"), .state_size = sizeof(rn_resize_attrs_t),                \
    .init = rn_resize_init, .compute = compute_                                                \
  }
static const rn_kernel_def_t rows[] = {
    ROW("ResizeBilinear", bilinear),
    ROW("ResizeNearestNeighbor", nearest),
    ROW("ResizeBilinearGrad", bilinear_gradient),
    ROW("ResizeNearestNeighborGrad", nearest_gradient),
};
RN_KERNEL_FAMILY(cuda_resize, rows);
