// Shape functions of the debugging ops.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_print_v2(rn_shape_ctx_t* ctx) {
  rn_shape_t input = rn_shape_in(ctx, 0);
  if (rn_shape_has_rank(input) && input.rank != 0)
    return rn_invalid_argument("input must be a scalar, but has rank: %d", input.rank);
  return RN_OK;
}
