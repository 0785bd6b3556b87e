// Shape functions of the control-flow ops: Switch, Merge, Enter, Exit and the like.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_switch(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  for (int i = 0; i < ctx->output_count; i++) {
    *rn_shape_out(ctx, i) = rn_shape_in(ctx, 0);
    *rn_shape_out_handle(ctx, i) = *rn_shape_in_handle(ctx, 0);
  }
  return RN_OK;
}

// The most specific shape that covers all inputs, since the value may come from any of them.
static rn_status_t common_shape(rn_shape_ctx_t* ctx, int first, int last, rn_shape_t* out) {
  rn_shape_t common = rn_shape_in(ctx, first);
  *out = RN_SHAPE_UNKNOWN;
  for (int i = first + 1; i <= last; i++) {
    rn_shape_t other = rn_shape_in(ctx, i);
    if (!rn_shape_has_rank(common) || other.rank != common.rank) return RN_OK;
    for (int axis = 0; axis < common.rank; axis++) {
      if (common.dims[axis] != other.dims[axis]) {
        RN_TRY(rn_shape_replace_dim(ctx, common, axis, RN_UNKNOWN, &common));
      }
    }
  }
  *out = common;
  return RN_OK;
}

// The handle data if all inputs have the same; the value may come from any of them.
static rn_handle_data_t common_handle(rn_shape_ctx_t* ctx) {
  rn_handle_data_t common = *rn_shape_in_handle(ctx, 0);
  for (int i = 1; i < ctx->input_count; i++) {
    const rn_handle_data_t* other = rn_shape_in_handle(ctx, i);
    if (!common.is_set || !other->is_set || other->dtype != common.dtype ||
        other->key_rank != common.key_rank)
      return (rn_handle_data_t){0};
    if (!rn_shape_eq(common.shape, other->shape)) common.shape = RN_SHAPE_UNKNOWN;
  }
  return common;
}

rn_status_t rn_shape_fn_merge(rn_shape_ctx_t* ctx) {
  RN_TRY(common_shape(ctx, 0, ctx->input_count - 1, rn_shape_out(ctx, 0)));
  *rn_shape_out_handle(ctx, 0) = common_handle(ctx);
  *rn_shape_out(ctx, 1) = RN_SHAPE_SCALAR;
  return RN_OK;
}

rn_status_t rn_shape_fn_ref_merge(rn_shape_ctx_t* ctx) { return rn_shape_fn_merge(ctx); }

rn_status_t rn_shape_fn_ref_select(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  rn_shape_t common;
  RN_TRY(common_shape(ctx, 1, ctx->input_count - 1, &common));
  if (rn_shape_is_full(common)) *rn_shape_out(ctx, 0) = common;
  return RN_OK;
}

rn_status_t rn_shape_fn_enter(rn_shape_ctx_t* ctx) {
  *rn_shape_out_handle(ctx, 0) = *rn_shape_in_handle(ctx, 0);
  // A loop's variable may change its shape from one iteration to the next.
  if (!rn_ops_bool(ctx, "is_constant")) return RN_OK;
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  ctx->output_partial = *rn_shape_in_partial(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_loop_cond(rn_shape_ctx_t* ctx) {
  return rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 0, rn_shape_out(ctx, 0));
}
