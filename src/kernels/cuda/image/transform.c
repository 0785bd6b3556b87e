// ImageProjectiveTransformV2 and V3: transform.cu has the device code.
#include "kernels/cpu/image/transform.h"

#include "kernels/cuda/image/image.h"
#include "kernels/cuda/image/transform_args.h"

static rn_status_t transform(rn_kernel_ctx_t* ctx) {
  const rn_image_transform_t* state = ctx->state;
  const rn_tensor_t *images = rn_in(ctx, 0), *matrices = rn_in(ctx, 1);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_image_transform_begin(ctx, &out));
  if (out->count == 0) return RN_OK;
  const int64_t *dims = rn_tensor_dims(images), *shape = rn_tensor_dims(out);
  rn_cuda_transform_args args = {.images = images->data,
                                 .matrices = matrices->data,
                                 .out = out->data,
                                 .count = out->count,
                                 .rows = rn_cuda_divisor(shape[1]),
                                 .columns = rn_cuda_divisor(shape[2]),
                                 .depth = rn_cuda_divisor(shape[3]),
                                 .height = dims[1],
                                 .width = dims[2],
                                 .matrix_step = rn_tensor_dim(matrices, 0) > 1 ? 8 : 0,
                                 .is_bilinear = state->is_bilinear,
                                 .border = (i32)state->border};
  if (ctx->kernel->input_count > 3) args.fill = *RN_DATA(rn_in(ctx, 3), const float);
  return rn_cuda_image_each(ctx, "transform/transform", out->dtype, args.count, &args, sizeof args);
}

#define TYPES (RN_TYPES_FLOATS | RN_T(UINT8) | RN_T(INT32) | RN_T(INT64))
#define ROW(op_, ...)                                                                    \
  {                                                                                      \
    .op = op_, .device = "GPU", .types = {{"dtype", TYPES}}, .flags = RN_KERNEL_REPLAYS, \
    .host_args = RN_HOST_ARGS(__VA_ARGS__), .state_size = sizeof(rn_image_transform_t),  \
    .init = rn_image_transform_init, .compute = transform                                \
  }
static const rn_kernel_def_t rows[] = {
    ROW("ImageProjectiveTransformV2", "output_shape"),
    ROW("ImageProjectiveTransformV3", "output_shape", "fill_value"),
};
RN_KERNEL_FAMILY(cuda_transform, rows);
