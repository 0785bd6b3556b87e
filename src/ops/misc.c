// Shape functions of batches of calls.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_batch(rn_shape_ctx_t* ctx) {
  const int64_t table[] = {RN_UNKNOWN, 3};
  int count = ctx->input_count;
  for (int i = 0; i < count; ++i)
    RN_TRY(rn_shape_replace_dim(ctx, rn_shape_in(ctx, i), 0, RN_UNKNOWN, rn_shape_out(ctx, i)));
  RN_TRY(rn_shape_make(ctx, 2, table, rn_shape_out(ctx, count)));
  *rn_shape_out(ctx, count + 1) = (rn_shape_t){0, NULL};
  return RN_OK;
}

rn_status_t rn_shape_fn_unbatch(rn_shape_ctx_t* ctx) {
  return rn_shape_replace_dim(ctx, rn_shape_in(ctx, 0), 0, RN_UNKNOWN, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_unbatch_grad(rn_shape_ctx_t* ctx) {
  return rn_shape_of_rank(ctx, rn_shape_in(ctx, 2).rank, rn_shape_out(ctx, 0));
}
