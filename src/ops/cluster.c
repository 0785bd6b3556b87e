// Shape functions of clustering ops.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_kmc2_chain(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
  return RN_OK;
}

rn_status_t rn_shape_fn_sdca_fprint(rn_shape_ctx_t* ctx) {
  rn_shape_t input;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 1, &input));
  return rn_shape_matrix(ctx, input.dims[0], 2, rn_shape_out(ctx, 0));
}

// The weights are the inputs before the last one, the state of the examples.
rn_status_t rn_shape_fn_sdca_optimizer(rn_shape_ctx_t* ctx) {
  int state = ctx->input_count - 1, groups = ctx->output_count - 1;
  for (int g = 0; g < groups; ++g) *rn_shape_out(ctx, 1 + g) = rn_shape_in(ctx, state - groups + g);
  return rn_shape_matrix(ctx, -1, 4, rn_shape_out(ctx, 0));
}
