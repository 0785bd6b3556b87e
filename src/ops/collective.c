// Shape functions of collectives.
#include "ops/shapes.h"

// The first dim of input 0 times |factor|, which may be RN_UNKNOWN.
static rn_status_t scale_rows(rn_shape_ctx_t* ctx, int64_t factor) {
  rn_shape_t in;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &in));
  if (!rn_shape_has_rank(in)) return RN_OK;
  int64_t rows;
  RN_TRY(rn_ops_multiply(rn_shape_dim(in, 0), factor, &rows));
  return rn_shape_replace_dim(ctx, in, 0, rows, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_collective_gather(rn_shape_ctx_t* ctx) {
  return scale_rows(ctx, rn_ops_int(ctx, "group_size"));
}

rn_status_t rn_shape_fn_collective_rows(rn_shape_ctx_t* ctx) { return scale_rows(ctx, RN_UNKNOWN); }

rn_status_t rn_shape_fn_collective_shape(rn_shape_ctx_t* ctx) {
  return rn_ops_attr_shape(ctx, "shape", rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_collective_recv(rn_shape_ctx_t* ctx) {
  return rn_shape_from_input(ctx, 3, rn_shape_out(ctx, 0));
}
