// Shape functions of sparse tensors.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_sparse_to_dense(rn_shape_ctx_t* ctx) {
  return rn_shape_from_input(ctx, 1, &ctx->outputs[0]);
}
