// Shape functions of boxes, crops, glimpses and transforms of images.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_color_space(rn_shape_ctx_t* ctx) {
  rn_shape_t images;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &images));
  if (images.rank < 0) return RN_OK;
  int64_t channels;
  RN_TRY(rn_dim_with_value(images.dims[images.rank - 1], 3, &channels));
  return rn_shape_replace_dim(ctx, images, -1, channels, rn_shape_out(ctx, 0));
}

rn_status_t rn_ops_resized(rn_shape_ctx_t* ctx, int i, int64_t count, int64_t depth) {
  RN_TRY(rn_ops_check_vector(ctx, i, 2));
  const rn_partial_t* values = rn_shape_in_partial(ctx, i);
  int64_t dims[4] = {count, RN_UNKNOWN, RN_UNKNOWN, depth};
  for (int j = 0; j < 2 && values->is_known && values->count == 2; j++) {
    if (values->values[j] >= 0) dims[j + 1] = values->values[j];
  }
  return rn_shape_make(ctx, 4, dims, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_crop_and_resize(rn_shape_ctx_t* ctx) {
  rn_shape_t images, boxes, which;
  int64_t count, unused;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &images));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 2, &boxes));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 1, &which));
  RN_TRY(rn_dim_merge(boxes.dims[0], which.dims[0], &count));
  RN_TRY(rn_dim_with_value(boxes.dims[1], 4, &unused));
  return rn_ops_resized(ctx, 3, count, images.dims[3]);
}

rn_status_t rn_shape_fn_crop_and_resize_grad_image(rn_shape_ctx_t* ctx) {
  rn_shape_t shape;
  RN_TRY(rn_shape_from_input(ctx, 3, &shape));
  return rn_shape_with_rank(ctx, shape, 4, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_crop_and_resize_grad_boxes(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 2);
  return RN_OK;
}

rn_status_t rn_shape_fn_draw_boxes(rn_shape_ctx_t* ctx) {
  rn_shape_t images, boxes;
  int64_t unused;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &images));
  int64_t depth = images.dims[3];
  if (depth >= 0 && depth != 1 && depth != 3 && depth != 4) {
    return rn_invalid_argument("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA)");
  }
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 3, &boxes));
  RN_TRY(rn_dim_with_value(boxes.dims[2], 4, &unused));
  *rn_shape_out(ctx, 0) = images;
  return RN_OK;
}

// Boxes of input 0 with their scores, and scalars behind them.
static rn_status_t check_scored(rn_shape_ctx_t* ctx, rn_shape_t* out_boxes) {
  rn_shape_t scores;
  int64_t unused;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, out_boxes));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &scores));
  RN_TRY(rn_ops_check_scalars(ctx, 2, ctx->input_count - 1));
  return rn_dim_merge(out_boxes->dims[0], scores.dims[0], &unused);
}

static rn_status_t check_boxes(rn_shape_ctx_t* ctx) {
  rn_shape_t boxes;
  int64_t unused;
  RN_TRY(check_scored(ctx, &boxes));
  return rn_dim_with_value(boxes.dims[1], 4, &unused);
}

rn_status_t rn_shape_fn_nms(rn_shape_ctx_t* ctx) {
  RN_TRY(check_boxes(ctx));
  return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_nms_padded(rn_shape_ctx_t* ctx) {
  RN_TRY(check_boxes(ctx));
  int64_t size = RN_UNKNOWN;
  if (rn_ops_bool(ctx, "pad_to_max_output_size")) RN_TRY(rn_ops_size_from_input(ctx, 2, &size));
  for (int i = 0; i + 1 < ctx->output_count; i++) {
    RN_TRY(rn_shape_vector(ctx, size, rn_shape_out(ctx, i)));
  }
  *rn_shape_out(ctx, ctx->output_count - 1) = RN_SHAPE_SCALAR;
  return RN_OK;
}

rn_status_t rn_shape_fn_nms_overlaps(rn_shape_ctx_t* ctx) {
  rn_shape_t overlaps;
  int64_t unused;
  RN_TRY(check_scored(ctx, &overlaps));
  RN_TRY(rn_dim_merge(overlaps.dims[0], overlaps.dims[1], &unused));
  return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_nms_combined(rn_shape_ctx_t* ctx) {
  rn_shape_t boxes, scores;
  int64_t unused, size;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &boxes));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 3, &scores));
  RN_TRY(rn_ops_check_scalars(ctx, 2, 5));
  RN_TRY(rn_dim_with_value(boxes.dims[3], 4, &unused));
  RN_TRY(rn_dim_merge(boxes.dims[0], scores.dims[0], &unused));
  RN_TRY(rn_dim_merge(boxes.dims[1], scores.dims[1], &unused));
  if (boxes.dims[2] >= 0 && scores.dims[2] >= 0 && boxes.dims[2] != 1 &&
      boxes.dims[2] != scores.dims[2]) {
    return rn_invalid_argument(
        "third dimension of boxes must be either 1 or equal to the third dimension of scores");
  }
  RN_TRY(rn_ops_size_from_input(ctx, 3, &size));
  int64_t each = RN_UNKNOWN, all = 0;
  if (rn_ops_bool(ctx, "pad_per_class")) {
    RN_TRY(rn_ops_size_from_input(ctx, 2, &each));
    if (size < 0 || each < 0 || scores.dims[2] < 0) {
      size = RN_UNKNOWN;
    } else if (rn_mul_i64_ok(each, scores.dims[2], &all) && all < size) {
      size = all;
    }
  }
  int64_t dims[3] = {boxes.dims[0], size, 4};
  RN_TRY(rn_shape_make(ctx, 3, dims, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_make(ctx, 2, dims, rn_shape_out(ctx, 1)));
  RN_TRY(rn_shape_make(ctx, 2, dims, rn_shape_out(ctx, 2)));
  return rn_shape_make(ctx, 1, dims, rn_shape_out(ctx, 3));
}

rn_status_t rn_shape_fn_sample_box(rn_shape_ctx_t* ctx) {
  rn_shape_t size, boxes;
  int64_t unused;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 1, &size));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 3, &boxes));
  if (ctx->input_count > 2) RN_TRY(rn_ops_check_rank(ctx, 2, 0));
  RN_TRY(rn_dim_with_value(size.dims[0], 3, &unused));
  RN_TRY(rn_dim_with_value(boxes.dims[2], 4, &unused));
  if (ctx->input_count > 3) RN_TRY(rn_ops_check_vector(ctx, 3, 2));
  int64_t dims[3] = {1, 1, 4};
  RN_TRY(rn_shape_vector(ctx, 3, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_vector(ctx, 3, rn_shape_out(ctx, 1)));
  return rn_shape_make(ctx, 3, dims, rn_shape_out(ctx, 2));
}

rn_status_t rn_shape_fn_scale_and_translate(rn_shape_ctx_t* ctx) {
  rn_shape_t images;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &images));
  return rn_ops_resized(ctx, 1, images.dims[0], images.dims[3]);
}

rn_status_t rn_shape_fn_glimpse(rn_shape_ctx_t* ctx) {
  rn_shape_t images, offsets;
  int64_t batch, unused;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &images));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 2, &offsets));
  RN_TRY(rn_dim_merge(images.dims[0], offsets.dims[0], &batch));
  RN_TRY(rn_dim_with_value(offsets.dims[1], 2, &unused));
  rn_str_t noise = rn_shape_attr(ctx, "noise")->s;
  if (rn_ops_bool(ctx, "uniform_noise") && !rn_str_is(noise, "uniform")) {
    return rn_invalid_argument("The uniform_noise should not be True when noise is not uniform");
  }
  return rn_ops_resized(ctx, 1, batch, images.dims[3]);
}

rn_status_t rn_shape_fn_projective_transform(rn_shape_ctx_t* ctx) {
  rn_shape_t images;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &images));
  return rn_ops_resized(ctx, 2, images.dims[0], images.dims[3]);
}

rn_status_t rn_shape_fn_box_proposals(rn_shape_ctx_t* ctx) {
  static const int ranks[4] = {4, 4, 2, 3};
  rn_shape_t in[4];
  int64_t unused;
  for (int i = 0; i < 4; i++)
    RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, i), ranks[i], &in[i]));
  RN_TRY(rn_dim_with_value(in[2].dims[1], 5, &unused));
  RN_TRY(rn_ops_check_scalars(ctx, 4, 6));
  int64_t dims[3] = {in[0].dims[0], rn_ops_int(ctx, "post_nms_topn"), 4};
  RN_TRY(rn_shape_make(ctx, 3, dims, rn_shape_out(ctx, 0)));
  return rn_shape_make(ctx, 2, dims, rn_shape_out(ctx, 1));
}
