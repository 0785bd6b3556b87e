// Shape functions of the debugging ops.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_print_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t input = rn_shape_in(ctx, 0);
  if (rn_shape_has_rank(input) && input.rank != 0)
    return rn_invalid_argument("input must be a scalar, but has rank: %d", input.rank);
  return RN_OK;
}

// Stock says that the result has the shape of the input, but gives no elements if it is gated.
rn_status_t rn_shape_fn_debug_identity(rn_shape_ctx_t* ctx) {
  if (rn_ops_bool(ctx, "gated_grpc")) return rn_shape_vector(ctx, 0, rn_shape_out(ctx, 0));
  return rn_shape_fn_unchanged(ctx);
}

// Stock says that it is a scalar, but gives a vector.
rn_status_t rn_shape_fn_nan_count(rn_shape_ctx_t* ctx) {
  return rn_shape_vector(ctx, rn_ops_bool(ctx, "gated_grpc") ? 0 : 1, rn_shape_out(ctx, 0));
}
