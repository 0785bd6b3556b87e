// Shape functions of SpaceToBatch, SpaceToDepth and their inverses.
#include "ops/shapes.h"

// Computes one spatial axis: padded and split into blocks, or joined and cropped.
static rn_status_t space_axis(bool to_batch, int64_t dim, int64_t block, const rn_tensor_t* margins,
                              int axis, int64_t* out) {
  if (block < 1 && block != RN_UNKNOWN) {
    return rn_invalid_argument("block_shape must be positive");
  }
  int64_t before = 0, after = 0, sum = RN_UNKNOWN;
  if (margins) {
    before = rn_tensor_int(margins, 2 * axis);
    after = rn_tensor_int(margins, 2 * axis + 1);
    if (before < 0 || after < 0) {
      return rn_invalid_argument("%s cannot be negative", to_batch ? "paddings" : "crops");
    }
    RN_TRY(rn_ops_add(before, after, &sum));
  }
  if (to_batch) {
    RN_TRY(rn_ops_add(dim, sum, &dim));
    return rn_ops_divide(dim, block, out);
  }
  RN_TRY(rn_ops_multiply(dim, block, &dim));
  if (dim == RN_UNKNOWN || sum == RN_UNKNOWN) {
    *out = RN_UNKNOWN;
    return RN_OK;
  }
  if (sum > dim) {
    bool at_once = before > dim;
    return rn_invalid_argument("Negative dimension size caused by subtracting %" PRId64
                               " from %" PRId64,
                               at_once ? before : after, at_once ? dim : dim - before);
  }
  *out = dim - sum;
  return RN_OK;
}

// |blocks| holds the sizes of |count| blocks; NULL if not known.
static rn_status_t space_batch(rn_shape_ctx_t* ctx, bool to_batch, rn_shape_t in, int count,
                               const int64_t* blocks, const rn_tensor_t* margins) {
  if (margins && margins->count != 2 * count) margins = NULL;
  RN_TRY(rn_shape_with_rank_at_least(ctx, in, count + 1, &in));
  if (!rn_shape_has_rank(in)) {  // blocks and margins are checked anyway
    for (int i = 0; i < count; i++) {
      int64_t block = blocks ? blocks[i] : RN_UNKNOWN, unused;
      RN_TRY(space_axis(to_batch, RN_UNKNOWN, block, margins, i, &unused));
    }
    return RN_OK;
  }
  int64_t dims[RN_MAX_RANK], batch = in.dims[0];
  memcpy(dims, in.dims, (size_t)in.rank * sizeof *dims);
  for (int i = 0; i < count; i++) {
    int64_t block = blocks ? blocks[i] : RN_UNKNOWN;
    RN_TRY(space_axis(to_batch, in.dims[i + 1], block, margins, i, &dims[i + 1]));
    if (to_batch) {
      RN_TRY(rn_ops_multiply(batch, block, &batch));
    } else {
      RN_TRY(rn_ops_divide(batch, block, &batch));
    }
  }
  dims[0] = batch;
  return rn_shape_make(ctx, in.rank, dims, rn_shape_out(ctx, 0));
}

static rn_status_t space_batch_nd(rn_shape_ctx_t* ctx, bool to_batch) {
  rn_shape_t block_shape, margins;
  int64_t count;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &block_shape));
  if (block_shape.dims[0] == RN_UNKNOWN) {
    return rn_invalid_argument("block_shape must have known size");
  }
  count = block_shape.dims[0];
  rn_shape_t pairs;
  RN_TRY(rn_shape_matrix(ctx, count, 2, &pairs));
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 2), pairs, &margins));
  if (count > RN_MAX_RANK - 1) count = RN_MAX_RANK;
  const rn_partial_t* blocks = rn_shape_in_partial(ctx, 1);
  rn_shape_input_value(ctx, 1);  // so that errors print the blocks
  int64_t sizes[RN_MAX_RANK];
  bool known = blocks->is_known && blocks->count == count;
  for (int i = 0; known && i < count; i++) {
    sizes[i] = blocks->values[i] == RN_UNKNOWN_VALUE ? RN_UNKNOWN : blocks->values[i];
    if (blocks->values[i] == -1) sizes[i] = 0;  // refused below
  }
  return space_batch(ctx, to_batch, rn_shape_in(ctx, 0), (int)count, known ? sizes : NULL,
                     rn_shape_input_value(ctx, 2));
}

static rn_status_t space_batch_2d(rn_shape_ctx_t* ctx, bool to_batch) {
  rn_shape_t in, margins;
  int64_t unused, block = rn_ops_int(ctx, "block_size");
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &in));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 2, &margins));
  RN_TRY(rn_dim_with_value(margins.dims[0], 2, &unused));
  RN_TRY(rn_dim_with_value(margins.dims[1], 2, &unused));
  return space_batch(ctx, to_batch, in, 2, (const int64_t[]){block, block},
                     rn_shape_input_value(ctx, 1));
}

rn_status_t rn_shape_fn_space_to_batch_nd(rn_shape_ctx_t* ctx) { return space_batch_nd(ctx, true); }
rn_status_t rn_shape_fn_batch_to_space_nd(rn_shape_ctx_t* ctx) {
  return space_batch_nd(ctx, false);
}
rn_status_t rn_shape_fn_space_to_batch(rn_shape_ctx_t* ctx) { return space_batch_2d(ctx, true); }
rn_status_t rn_shape_fn_batch_to_space(rn_shape_ctx_t* ctx) { return space_batch_2d(ctx, false); }

static rn_status_t space_depth(rn_shape_ctx_t* ctx, bool to_depth) {
  rn_str_t format = rn_shape_attr(ctx, "data_format")->s;
  int64_t block = rn_ops_int(ctx, "block_size"), square, dims[4];
  rn_shape_t in;
  if (rn_str_is(format, "NCHW_VECT_C")) {
    RN_TRY(rn_ops_check_rank(ctx, 0, 5));
    return rn_shape_of_rank(ctx, 5, rn_shape_out(ctx, 0));
  }
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 4, &in));
  bool last = rn_str_is(format, "NHWC");
  int height = last ? 1 : 2, depth = last ? 3 : 1;
  RN_TRY(rn_ops_multiply(block, block, &square));
  dims[0] = in.dims[0];
  for (int i = height; i < height + 2; i++) {
    RN_TRY(to_depth ? rn_ops_divide(in.dims[i], block, &dims[i])
                    : rn_ops_multiply(in.dims[i], block, &dims[i]));
  }
  RN_TRY(to_depth ? rn_ops_multiply(in.dims[depth], square, &dims[depth])
                  : rn_ops_divide(in.dims[depth], square, &dims[depth]));
  return rn_shape_make(ctx, 4, dims, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_space_to_depth(rn_shape_ctx_t* ctx) { return space_depth(ctx, true); }
rn_status_t rn_shape_fn_depth_to_space(rn_shape_ctx_t* ctx) { return space_depth(ctx, false); }
