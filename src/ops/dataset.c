// Shape functions of datasets and iterators.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_iterator_get_next(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  const rn_attr_value_t* shapes = rn_shape_attr(ctx, "output_shapes");
  if (shapes->count != ctx->output_count) {
    return rn_invalid_argument(
        "`output_shapes` must be the same length as `output_types` (%d vs. %d)", shapes->count,
        ctx->output_count);
  }
  for (int i = 0; i < ctx->output_count; i++) {
    rn_shape_t shape = shapes->list_shape[i];
    RN_TRY(rn_shape_with_rank_at_most(ctx, shape, RN_MAX_RANK, &ctx->outputs[i]));
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_tensor_dataset(rn_shape_ctx_t* ctx) { return rn_shape_fn_scalar(ctx); }
