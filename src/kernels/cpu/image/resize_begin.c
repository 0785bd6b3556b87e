// See resize.h.
#include "kernels/cpu/array.h"
#include "kernels/cpu/image/resize.h"

rn_status_t rn_resize_init(const rn_kernel_init_t* init, void* state_) {
  rn_resize_attrs_t* state = state_;
  state->align_corners = rn_init_bool(init, "align_corners");
  if (rn_op_attr_index(init->op, RN_STR("half_pixel_centers")) >= 0)
    state->half_pixel_centers = rn_init_bool(init, "half_pixel_centers");
  if (state->align_corners && state->half_pixel_centers)
    return rn_invalid_argument("If half_pixel_centers is True, align_corners must be False.");
  return RN_OK;
}

float rn_resize_scale(const rn_resize_attrs_t* attrs, int64_t in, int64_t out) {
  return attrs->align_corners && out > 1 ? (float)(in - 1) / (float)(out - 1)
                                         : (float)in / (float)out;
}

static rn_status_t check_images(const rn_tensor_t* images) {
  if (images->rank != 4)
    return rn_invalid_argument("input must be 4-dimensional%s", rn_text_of(images).text);
  if (rn_tensor_dim(images, 3) == 0)
    return rn_invalid_argument("image must have at least one channel");
  if (rn_tensor_dim(images, 1) == 0 || rn_tensor_dim(images, 2) == 0)
    return rn_invalid_argument("input image must be of non-zero size");
  for (int i = 1; i < 3; ++i)
    if (rn_tensor_dim(images, i) > INT32_MAX)
      return rn_invalid_argument("input sizes must be between 0 and max int32");
  return RN_OK;
}

static rn_status_t read_size(const rn_tensor_t* size, int64_t out[2]) {
  if (size->rank != 1)
    return rn_invalid_argument("shape_t must be 1-dimensional%s", rn_text_of(size).text);
  if (size->count != 2)
    return rn_invalid_argument("shape_t must have two elements%s", rn_text_of(size).text);
  for (int i = 0; i < 2; ++i) out[i] = RN_DATA(size, const int32_t)[i];
  if (out[0] <= 0 || out[1] <= 0) return rn_invalid_argument("output dimensions must be positive");
  return RN_OK;
}

rn_status_t rn_resize_begin(rn_kernel_ctx_t* ctx, rn_resize_t* out) {
  const rn_tensor_t* images = rn_in(ctx, 0);
  *out = (rn_resize_t){0};
  RN_RETURN_IF_ERROR(check_images(images));
  RN_RETURN_IF_ERROR(read_size(rn_in(ctx, 1), out->out));
  const int64_t* dims = rn_tensor_dims(images);
  out->batch = dims[0], out->in[0] = dims[1], out->in[1] = dims[2], out->depth = dims[3];
  int64_t out_dims[4] = {out->batch, out->out[0], out->out[1], out->depth};
  return rn_output(ctx, 0, (rn_shape_t){4, out_dims}, &out->result);
}

// Images and channels come from the gradient, rows and columns from the original.
rn_status_t rn_resize_gradient_begin(rn_kernel_ctx_t* ctx, rn_resize_t* out) {
  const rn_tensor_t *dy = rn_in(ctx, 0), *x = rn_in(ctx, 1);
  if (dy->rank != 4)
    return rn_invalid_argument("input_grad must be 4-dimensional%s", rn_text_of(dy).text);
  if (x->rank != 4)
    return rn_invalid_argument("original_image must be 4-dimensional%s", rn_text_of(x).text);
  const int64_t *small = rn_tensor_dims(x), *large = rn_tensor_dims(dy);
  *out = (rn_resize_t){.batch = large[0], .depth = large[3]};
  for (int i = 0; i < 2; ++i) out->in[i] = small[i + 1], out->out[i] = large[i + 1];
  if (out->out[0] == 0 || out->out[1] == 0)
    return rn_invalid_argument("resized dimensions must be positive");
  if (out->in[0] <= 0 || out->in[1] <= 0 || out->in[0] > INT32_MAX || out->in[1] > INT32_MAX)
    return rn_invalid_argument("original sizes must be between 0 and max int32");
  int64_t dims[4] = {out->batch, out->in[0], out->in[1], out->depth};
  return rn_output(ctx, 0, (rn_shape_t){4, dims}, &out->result);
}

rn_status_t rn_resize_nearest_gradient_begin(rn_kernel_ctx_t* ctx, rn_resize_t* out) {
  const rn_tensor_t *dy = rn_in(ctx, 0), *size = rn_in(ctx, 1);
  *out = (rn_resize_t){0};
  if (dy->rank != 4)
    return rn_invalid_argument("input must be 4-dimensional%s", rn_text_of(dy).text);
  if (size->rank != 1)
    return rn_invalid_argument("shape_t must be 1-dimensional%s", rn_text_of(size).text);
  if (size->count != 2)
    return rn_invalid_argument("shape_t must have two elements%s", rn_text_of(size).text);
  for (int i = 0; i < 2; ++i) {
    out->in[i] = RN_DATA(size, const int32_t)[i];
    out->out[i] = rn_tensor_dim(dy, i + 1);
    if (out->in[i] <= 0) return rn_invalid_argument("shape_t's elements must be positive");
  }
  out->batch = rn_tensor_dim(dy, 0), out->depth = rn_tensor_dim(dy, 3);
  int64_t dims[4] = {out->batch, out->in[0], out->in[1], out->depth};
  return rn_output(ctx, 0, (rn_shape_t){4, dims}, &out->result);
}
