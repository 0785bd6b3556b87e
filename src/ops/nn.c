// Shape functions of activations, biases, normalization, losses and top-k.
#include "ops/shapes.h"

// The axis of the channels in the data format: -1 (the last) or 1.
static int channel_axis(const rn_shape_ctx_t* ctx) {
  rn_str_t format = rn_shape_attr(ctx, "data_format")->s;
  return format.size > 1 && format.data[1] == 'C' ? 1 : -1;
}

// Biases.

// Merges |size| into the channel dim of |x|.
static rn_status_t merge_channels(rn_shape_ctx_t* ctx, rn_shape_t x, int axis, int64_t size,
                                  rn_shape_t* out) {
  RN_TRY(rn_dim_merge(rn_shape_dim(x, axis), size, &size));
  return rn_shape_replace_dim(ctx, x, axis, size, out);
}

static rn_status_t bias_add(rn_shape_ctx_t* ctx, int axis) {
  rn_shape_t x, bias;
  // In NC… formats, a batch axis and at least one spatial axis surround the channels.
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), axis == 1 ? 3 : 2, &x));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &bias));
  return merge_channels(ctx, x, axis, bias.dims[0], rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_bias_add(rn_shape_ctx_t* ctx) { return bias_add(ctx, channel_axis(ctx)); }
rn_status_t rn_shape_fn_bias_add_v1(rn_shape_ctx_t* ctx) { return bias_add(ctx, -1); }

rn_status_t rn_shape_fn_bias_add_grad(rn_shape_ctx_t* ctx) {
  rn_shape_t dy;
  int axis = channel_axis(ctx);
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), axis == 1 ? 3 : 2, &dy));
  return rn_shape_vector(ctx, rn_shape_dim(dy, axis), rn_shape_out(ctx, 0));
}

// Softmax and its losses.

rn_status_t rn_shape_fn_softmax(rn_shape_ctx_t* ctx) {
  return rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, rn_shape_out(ctx, 0));
}

// Whether features and labels are matrices of the same shape, which becomes |*out|.
static bool same_rows(rn_shape_ctx_t* ctx, rn_shape_t* out) {
  rn_status_t status = rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, out);
  if (rn_ok(status)) status = rn_shape_merge(ctx, *out, rn_shape_in(ctx, 1), out);
  bool same = rn_ok(status);
  rn_status_free(status);
  return same;
}

rn_status_t rn_shape_fn_softmax_xent(rn_shape_ctx_t* ctx) {
  rn_shape_t both;
  if (!same_rows(ctx, &both)) {
    RN_TRY(rn_shape_broadcast(ctx, rn_shape_in(ctx, 0), rn_shape_in(ctx, 1), true, &both));
    if (!rn_shape_has_rank(both)) {
      return rn_invalid_argument("Shape must be broadcasted with rank 2, but is rank is unknown.");
    }
    if (both.rank != 2) {
      return rn_invalid_argument("Shape must be broadcasted with rank 2, but is rank %d",
                                 both.rank);
    }
  }
  *rn_shape_out(ctx, 1) = both;
  return rn_shape_vector(ctx, both.dims[0], rn_shape_out(ctx, 0));
}

// A row of |out_features| and one label per element of the batch.
static rn_status_t check_labelled(rn_shape_ctx_t* ctx, rn_shape_t* out_features,
                                  int64_t* out_batch) {
  rn_shape_t labels;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 2, out_features));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &labels));
  return rn_dim_merge(out_features->dims[0], labels.dims[0], out_batch);
}

rn_status_t rn_shape_fn_sparse_softmax_xent(rn_shape_ctx_t* ctx) {
  rn_shape_t features;
  int64_t batch;
  RN_TRY(check_labelled(ctx, &features, &batch));
  RN_TRY(rn_shape_vector(ctx, batch, rn_shape_out(ctx, 0)));
  return rn_shape_matrix(ctx, batch, features.dims[1], rn_shape_out(ctx, 1));
}

rn_status_t rn_shape_fn_in_top_k(rn_shape_ctx_t* ctx) {
  rn_shape_t predictions;
  int64_t batch;
  RN_TRY(check_labelled(ctx, &predictions, &batch));
  return rn_shape_vector(ctx, batch, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_top_k(rn_shape_ctx_t* ctx) {
  rn_shape_t in, before, last;
  int64_t k;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &in));
  if (ctx->input_count > 1) {
    RN_TRY(rn_ops_size_from_input(ctx, 1, &k));
  } else {
    k = rn_ops_int(ctx, "k");
    if (k < 0) return rn_invalid_argument("Need k >= 0, got %" PRId64, k);
  }
  int64_t size = rn_shape_dim(in, -1);
  if (size != RN_UNKNOWN && k > size) {
    return rn_invalid_argument("input must have last dimension >= k = %" PRId64 " but is %" PRId64,
                               k, size);
  }
  RN_TRY(rn_shape_slice(ctx, in, 0, -1, &before));
  RN_TRY(rn_shape_vector(ctx, k, &last));
  RN_TRY(rn_shape_concat(ctx, before, last, rn_shape_out(ctx, 0)));
  *rn_shape_out(ctx, 1) = *rn_shape_out(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_approx_top_k(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &in));
  // As in stock, the rank must be known.
  int rank = rn_shape_has_rank(in) ? in.rank : -1;
  int64_t k = rn_ops_int(ctx, "k"), axis = rn_ops_int(ctx, "reduction_dimension");
  float recall = rn_shape_attr(ctx, "recall_target")->f;
  if (axis < -rank || axis >= rank)
    return rn_invalid_argument("Invalid reduction dimension: %" PRId64
                               ". Must be within the range of [%d, %d]",
                               axis, -rank, rank - 1);
  if (axis < 0) axis += rank;
  if (!(recall > 0 && recall <= 1))
    return rn_invalid_argument("Invalid recall target: %g. Valid value range in : [0, 1.0].",
                               (double)recall);
  int64_t size = in.dims[axis];
  if (size != RN_UNKNOWN && size < k)
    return rn_invalid_argument("input must have last dimension >= k = %" PRId64 " but was %" PRId64,
                               k, size);
  // The kernel finds the k best, even if it may leave that to the caller.
  RN_TRY(rn_shape_replace_dim(ctx, in, (int)axis, k, rn_shape_out(ctx, 0)));
  *rn_shape_out(ctx, 1) = *rn_shape_out(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_isotonic_regression(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = *rn_shape_out(ctx, 1) = rn_shape_in(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_nth_element(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  int64_t n;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &in));
  RN_TRY(rn_ops_size_from_input(ctx, 1, &n));
  int64_t size = rn_shape_dim(in, -1);
  if (size != RN_UNKNOWN && n != RN_UNKNOWN && n >= size) {
    return rn_invalid_argument("Input must have last dimension > n = %" PRId64 " but is %" PRId64,
                               n, size);
  }
  return rn_shape_slice(ctx, in, 0, -1, rn_shape_out(ctx, 0));
}

// Normalization.

rn_status_t rn_shape_fn_lrn(rn_shape_ctx_t* ctx) {
  return rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_lrn_grad(rn_shape_ctx_t* ctx) {
  rn_shape_t shape;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &shape));
  RN_TRY(rn_shape_merge(ctx, shape, rn_shape_in(ctx, 1), &shape));
  return rn_shape_merge(ctx, shape, rn_shape_in(ctx, 2), rn_shape_out(ctx, 0));
}

// The rank is the length of the data format's name.
static int format_rank(const rn_shape_ctx_t* ctx) {
  return (int)rn_shape_attr(ctx, "data_format")->s.size;
}

// Merges the sizes of the vectors in inputs |first| … |last| into |*inout_size|.
static rn_status_t merge_vectors(rn_shape_ctx_t* ctx, int first, int last, int64_t* inout_size) {
  for (int i = first; i <= last; i++) {
    rn_shape_t vector;
    RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, i), 1, &vector));
    RN_TRY(rn_dim_merge(*inout_size, vector.dims[0], inout_size));
  }
  return RN_OK;
}

static rn_status_t fused_batch_norm(rn_shape_ctx_t* ctx) {
  rn_shape_t x;
  int axis = channel_axis(ctx);
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), format_rank(ctx), &x));
  int64_t channels = rn_shape_dim(x, axis);
  // In training, mean and variance come from the batch, and the inputs may be empty.
  RN_TRY(merge_vectors(ctx, 1, rn_ops_bool(ctx, "is_training") ? 2 : 4, &channels));
  RN_TRY(rn_shape_replace_dim(ctx, x, axis, channels, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_vector(ctx, channels, rn_shape_out(ctx, 1)));
  for (int i = 2; i < 5; i++) *rn_shape_out(ctx, i) = *rn_shape_out(ctx, 1);
  return RN_OK;
}

rn_status_t rn_shape_fn_fused_batch_norm(rn_shape_ctx_t* ctx) { return fused_batch_norm(ctx); }
rn_status_t rn_shape_fn_fused_batch_norm_v3(rn_shape_ctx_t* ctx) { return fused_batch_norm(ctx); }
rn_status_t rn_shape_fn_fused_batch_norm_ex(rn_shape_ctx_t* ctx) { return fused_batch_norm(ctx); }

rn_status_t rn_shape_fn_fused_batch_norm_grad(rn_shape_ctx_t* ctx) {
  rn_shape_t dy, x;
  int axis = channel_axis(ctx), rank = format_rank(ctx);
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), rank, &dy));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), rank, &x));
  int64_t channels = rn_shape_dim(dy, axis);
  RN_TRY(rn_dim_merge(channels, rn_shape_dim(x, axis), &channels));
  RN_TRY(merge_vectors(ctx, 2, 4, &channels));
  RN_TRY(rn_shape_replace_dim(ctx, dy, axis, channels, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_vector(ctx, channels, rn_shape_out(ctx, 1)));
  *rn_shape_out(ctx, 2) = *rn_shape_out(ctx, 1);
  RN_TRY(rn_shape_vector(ctx, 0, rn_shape_out(ctx, 3)));
  *rn_shape_out(ctx, 4) = *rn_shape_out(ctx, 3);
  return RN_OK;
}

rn_status_t rn_shape_fn_batch_norm_global(rn_shape_ctx_t* ctx) {
  rn_shape_t x;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &x));
  int64_t channels = x.dims[3];
  RN_TRY(merge_vectors(ctx, 1, 4, &channels));
  return rn_shape_replace_dim(ctx, x, 3, channels, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_batch_norm_global_grad(rn_shape_ctx_t* ctx) {
  rn_shape_t x, dy;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &x));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 4), 4, &dy));
  RN_TRY(rn_shape_merge(ctx, x, dy, &x));
  int64_t channels = x.dims[3];
  RN_TRY(merge_vectors(ctx, 1, 3, &channels));
  RN_TRY(rn_shape_replace_dim(ctx, x, 3, channels, rn_shape_out(ctx, 0)));
  RN_TRY(rn_shape_vector(ctx, channels, rn_shape_out(ctx, 1)));
  for (int i = 2; i < 5; i++) *rn_shape_out(ctx, i) = *rn_shape_out(ctx, 1);
  return RN_OK;
}
