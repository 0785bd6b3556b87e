// Shape functions of images.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_resize(rn_shape_ctx_t* ctx) {
  rn_shape_t images;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &images));
  return rn_ops_resized(ctx, 1, images.dims[0], images.dims[3]);
}

rn_status_t rn_shape_fn_resize_nearest_grad(rn_shape_ctx_t* ctx) { return rn_shape_fn_resize(ctx); }

// Output 0 has |rank| dims, of which only the channels may be known.
static rn_status_t decoded(rn_shape_ctx_t* ctx, int rank) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  int64_t channels = rn_ops_int(ctx, "channels");
  if (channels < 0) {
    return rn_invalid_argument("channels must be non-negative, got %" PRId64, channels);
  }
  RN_TRY(rn_shape_of_rank(ctx, rank, rn_shape_out(ctx, 0)));
  return rn_shape_replace_dim(ctx, *rn_shape_out(ctx, 0), -1, channels ? channels : RN_UNKNOWN,
                              rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_decode_image(rn_shape_ctx_t* ctx) { return decoded(ctx, 3); }
rn_status_t rn_shape_fn_decode_frames(rn_shape_ctx_t* ctx) { return decoded(ctx, 4); }

rn_status_t rn_shape_fn_adjust_image(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 3, rn_shape_out(ctx, 0)));
  return rn_ops_check_rank(ctx, 1, 0);
}

rn_status_t rn_shape_fn_random_crop(rn_shape_ctx_t* ctx) {
  rn_shape_t image;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 3, &image));
  RN_TRY(rn_ops_check_vector(ctx, 1, 2));
  const rn_partial_t* values = rn_shape_in_partial(ctx, 1);
  int64_t dims[3] = {RN_UNKNOWN, RN_UNKNOWN, image.dims[2]};
  for (int i = 0; i < 2 && values->is_known && values->count == 2; i++) {
    if (values->values[i] >= 0) dims[i] = values->values[i];
  }
  return rn_shape_make(ctx, 3, dims, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_decode_and_crop(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_fn_decode_image(ctx));
  RN_TRY(rn_ops_check_vector(ctx, 1, 4));
  const rn_partial_t* values = rn_shape_in_partial(ctx, 1);
  int64_t dims[3] = {RN_UNKNOWN, RN_UNKNOWN, rn_shape_out(ctx, 0)->dims[2]};
  for (int i = 0; i < 2 && values->is_known && values->count == 4; i++) {
    if (values->values[i + 2] >= 0) dims[i] = values->values[i + 2];
  }
  return rn_shape_make(ctx, 3, dims, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_decode_gif(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  int64_t dims[4] = {RN_UNKNOWN, RN_UNKNOWN, RN_UNKNOWN, 3};
  return rn_shape_make(ctx, 4, dims, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_decode_any_image(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  // A GIF has one more dimension, for its frames; only the file tells whether it is one.
  if (rn_ops_bool(ctx, "expand_animations")) return RN_OK;
  return rn_shape_fn_decode_image(ctx);
}

rn_status_t rn_shape_fn_encode_jpeg(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 3));
  return rn_shape_fn_scalar(ctx);
}

rn_status_t rn_shape_fn_encode_png(rn_shape_ctx_t* ctx) {
  rn_shape_t images;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 3, &images));
  if (images.rank < 0) return RN_OK;
  return rn_shape_slice(ctx, images, 0, -3, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_jpeg_shape(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  return rn_shape_vector(ctx, 3, rn_shape_out(ctx, 0));
}
