// See crop.h. The values of boxes and the numbers of their images are checked only where the host
// can read them.
#include "kernels/cpu/image/crop.h"

#include <math.h>

#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"

rn_status_t rn_crop_init(const rn_kernel_init_t* init, void* state) {
  rn_crop_attrs_t* crop = state;
  crop->is_nearest = rn_str_is(rn_init_string(init, "method"), "nearest");
  if (rn_op_attr_index(init->op, RN_STR("extrapolation_value")) >= 0)
    crop->outside = rn_init_float(init, "extrapolation_value");
  return RN_OK;
}

static rn_status_t check_boxes(const rn_kernel_ctx_t* ctx, const rn_tensor_t* boxes,
                               const rn_tensor_t* which) {
  if (boxes->count == 0 && which->count == 0) return RN_OK;
  if (boxes->rank != 2)
    return rn_invalid_argument("boxes must be 2-D, got: %s", rn_text_of(boxes).text);
  if (rn_tensor_dim(boxes, 1) != 4) return rn_invalid_argument("boxes must have 4 columns");
  for (int64_t i = 0; rn_ctx_is_host(ctx, RN_FLOAT) && i < boxes->count; ++i)
    if (!isfinite(RN_DATA(boxes, const float)[i]))
      return rn_invalid_argument("Boxes contains at least one element that is not finite");
  if (which->rank != 1)
    return rn_invalid_argument("box_index must be 1-D, got: %s", rn_text_of(which).text);
  if (which->count != rn_tensor_dim(boxes, 0))
    return rn_invalid_argument("box_index has incompatible shape");
  return RN_OK;
}

static rn_status_t check_which(const rn_kernel_ctx_t* ctx, const rn_tensor_t* which,
                               int64_t batch) {
  for (int64_t i = 0; rn_ctx_is_host(ctx, RN_FLOAT) && i < which->count; ++i) {
    int32_t b = RN_DATA(which, const int32_t)[i];
    if (b < 0 || b >= batch) return rn_out_of_range("box_index has values outside [0, batch_size)");
  }
  return RN_OK;
}

static rn_status_t check_grads(const rn_kernel_ctx_t* ctx, const rn_tensor_t* grads,
                               const rn_tensor_t* boxes, const rn_tensor_t* which) {
  if (grads->rank != 4)
    return rn_invalid_argument("grads image must be 4-D%s", rn_text_of(grads).text);
  if (rn_tensor_dim(grads, 1) <= 0 || rn_tensor_dim(grads, 2) <= 0)
    return rn_invalid_argument("grads dimensions must be positive");
  RN_RETURN_IF_ERROR(check_boxes(ctx, boxes, which));
  if (rn_tensor_dim(grads, 0) != which->count)
    return rn_invalid_argument("boxes and grads have incompatible shape");
  return RN_OK;
}

rn_status_t rn_crop_begin(rn_kernel_ctx_t* ctx, rn_crop_t* out) {
  const rn_tensor_t *image = rn_in(ctx, 0), *boxes = rn_in(ctx, 1), *which = rn_in(ctx, 2);
  const rn_tensor_t* size = rn_in(ctx, 3);
  if (image->rank != 4)
    return rn_invalid_argument("input image must be 4-D%s", rn_text_of(image).text);
  const int64_t* dims = rn_tensor_dims(image);
  if (dims[1] <= 0 || dims[2] <= 0) return rn_invalid_argument("image dimensions must be positive");
  RN_RETURN_IF_ERROR(check_boxes(ctx, boxes, which));
  if (size->rank != 1) return rn_invalid_argument("crop_size must be 1-D%s", rn_text_of(size).text);
  if (size->count != 2)
    return rn_invalid_argument("crop_size must have two elements%s", rn_text_of(size).text);
  const int32_t* wanted = size->data;
  if (wanted[0] <= 0 || wanted[1] <= 0)
    return rn_invalid_argument("crop dimensions must be positive");
  *out = (rn_crop_t){.batch = dims[0],
                     .height = dims[1],
                     .width = dims[2],
                     .depth = dims[3],
                     .boxes = which->count,
                     .crop_height = wanted[0],
                     .crop_width = wanted[1]};
  int64_t shape[4] = {which->count, wanted[0], wanted[1], dims[3]};
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){4, shape}, &out->out));
  return check_which(ctx, which, dims[0]);
}

rn_status_t rn_crop_image_gradient_begin(rn_kernel_ctx_t* ctx, rn_crop_t* out) {
  const rn_tensor_t *grads = rn_in(ctx, 0), *boxes = rn_in(ctx, 1), *which = rn_in(ctx, 2);
  const rn_tensor_t* size = rn_in(ctx, 3);
  RN_RETURN_IF_ERROR(check_grads(ctx, grads, boxes, which));
  if (size->rank != 1)
    return rn_invalid_argument("image_size must be 1-D%s", rn_text_of(size).text);
  if (size->count != 4)
    return rn_invalid_argument("image_size must have 4 elements%s", rn_text_of(size).text);
  int64_t dims[4];
  for (int i = 0; i < 4; ++i) dims[i] = RN_DATA(size, const int32_t)[i];
  if (dims[1] <= 0 || dims[2] <= 0) return rn_invalid_argument("image dimensions must be positive");
  if (dims[3] != rn_tensor_dim(grads, 3))
    return rn_invalid_argument("image_size and grads are incompatible");
  if (dims[0] < 0) return rn_invalid_argument("image dimensions must be positive");
  RN_RETURN_IF_ERROR(check_which(ctx, which, dims[0]));
  *out = (rn_crop_t){.batch = dims[0],
                     .height = dims[1],
                     .width = dims[2],
                     .depth = dims[3],
                     .boxes = which->count,
                     .crop_height = rn_tensor_dim(grads, 1),
                     .crop_width = rn_tensor_dim(grads, 2)};
  return rn_output(ctx, 0, (rn_shape_t){4, dims}, &out->out);
}

rn_status_t rn_crop_box_gradient_begin(rn_kernel_ctx_t* ctx, rn_crop_t* out) {
  const rn_tensor_t *grads = rn_in(ctx, 0), *image = rn_in(ctx, 1), *boxes = rn_in(ctx, 2);
  const rn_tensor_t* which = rn_in(ctx, 3);
  if (grads->rank != 4)
    return rn_invalid_argument("grads image must be 4-D%s", rn_text_of(grads).text);
  if (image->rank != 4)
    return rn_invalid_argument("input image must be 4-D%s", rn_text_of(image).text);
  const int64_t* dims = rn_tensor_dims(image);
  if (dims[1] <= 0 || dims[2] <= 0) return rn_invalid_argument("image dimensions must be positive");
  if (dims[3] != rn_tensor_dim(grads, 3)) return rn_invalid_argument("image, grads depth differ");
  RN_RETURN_IF_ERROR(check_grads(ctx, grads, boxes, which));
  RN_RETURN_IF_ERROR(check_which(ctx, which, dims[0]));
  *out = (rn_crop_t){.batch = dims[0],
                     .height = dims[1],
                     .width = dims[2],
                     .depth = dims[3],
                     .boxes = which->count,
                     .crop_height = rn_tensor_dim(grads, 1),
                     .crop_width = rn_tensor_dim(grads, 2)};
  int64_t shape[2] = {which->count, 4};
  return rn_output(ctx, 0, (rn_shape_t){2, shape}, &out->out);
}
