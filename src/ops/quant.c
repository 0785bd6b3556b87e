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

// One pair of limits for each channel, the last axis.
rn_status_t rn_shape_fn_fake_quant_channels(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  RN_TRY(rn_shape_with_rank_at_least(ctx, ctx->inputs[0], 1, &in));
  int64_t channels = rn_shape_dim(in, -1);
  for (int i = 1; i < 3; i++) {
    rn_shape_t limits;
    RN_TRY(rn_shape_with_rank(ctx, ctx->inputs[i], 1, &limits));
    RN_TRY(rn_dim_merge(channels, limits.dims[0], &channels));
  }
  ctx->outputs[0] = in;
  return RN_OK;
}

rn_status_t rn_shape_fn_fake_quant_channels_grad(rn_shape_ctx_t* ctx) {
  rn_shape_t in;
  RN_TRY(rn_shape_with_rank_at_least(ctx, ctx->inputs[0], 1, &in));
  RN_TRY(rn_shape_with_rank_at_most(ctx, in, 4, &in));
  RN_TRY(rn_shape_merge(ctx, in, ctx->inputs[1], &in));
  rn_shape_t limits;
  RN_TRY(rn_shape_vector(ctx, rn_shape_dim(in, -1), &limits));
  RN_TRY(rn_shape_merge(ctx, ctx->inputs[2], limits, &limits));
  RN_TRY(rn_shape_merge(ctx, ctx->inputs[3], limits, &limits));
  ctx->outputs[0] = in;
  ctx->outputs[1] = ctx->outputs[2] = limits;
  return RN_OK;
}
