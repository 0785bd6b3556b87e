// Shape functions of rounding to few levels.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_fake_quant_vars(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_scalars(ctx, 1, 2));
  return rn_shape_fn_unchanged(ctx);
}

rn_status_t rn_shape_fn_fake_quant_vars_grad(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_merge(ctx, ctx->inputs[0], ctx->inputs[1], &ctx->outputs[0]));
  rn_shape_t limits;
  RN_TRY(rn_shape_with_rank(ctx, ctx->inputs[2], 0, &limits));
  RN_TRY(rn_shape_merge(ctx, limits, ctx->inputs[3], &limits));
  ctx->outputs[1] = ctx->outputs[2] = RN_SHAPE_SCALAR;
  return RN_OK;
}
