// Shape functions of text and messages turned into tensors.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_decode_csv(rn_shape_ctx_t* ctx) {
  for (int i = 1; i < ctx->input_count; i++) {
    rn_shape_t value;
    RN_TRY(rn_shape_with_rank_at_most(ctx, ctx->inputs[i], 1, &value));
    if (value.rank == 1 && value.dims[0] > 1) {
      return rn_invalid_argument(
          "Shape of a default must be a length-0 or length-1 vector, or a scalar.");
    }
  }
  for (int i = 0; i < ctx->output_count; i++) ctx->outputs[i] = ctx->inputs[0];
  return RN_OK;
}

rn_status_t rn_shape_fn_decode_raw(rn_shape_ctx_t* ctx) {
  rn_shape_t values;
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, &values));
  return rn_shape_concat(ctx, ctx->inputs[0], values, &ctx->outputs[0]);
}

// Outputs in order: indices, values and shapes of |sparse| sparse features, then the dense ones,
// each |rows| followed by its own shape.
static rn_status_t example_outputs(rn_shape_ctx_t* ctx, int sparse, rn_shape_t rows) {
  const rn_attr_value_t* dense = rn_shape_attr(ctx, "dense_shapes");
  int rank = rows.rank + 1;
  if (ctx->output_count != 3 * sparse + dense->count) {
    return rn_invalid_argument("len(dense_keys) != len(dense_shapes)");
  }
  for (int i = 0; i < sparse; i++) {
    RN_TRY(rn_shape_matrix(ctx, RN_UNKNOWN, rank, &ctx->outputs[i]));
    RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, &ctx->outputs[sparse + i]));
    RN_TRY(rn_shape_vector(ctx, rank, &ctx->outputs[2 * sparse + i]));
  }
  for (int i = 0; i < dense->count; i++) {
    rn_shape_t shape;
    RN_TRY(rn_shape_with_rank_at_most(ctx, dense->list_shape[i], RN_MAX_RANK, &shape));
    RN_TRY(rn_shape_concat(ctx, rows, shape, &ctx->outputs[3 * sparse + i]));
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_parse_example(rn_shape_ctx_t* ctx) {
  rn_shape_t rows;
  RN_TRY(rn_shape_with_rank(ctx, ctx->inputs[0], 1, &rows));
  RN_TRY(rn_ops_check_rank(ctx, 1, 1));
  return example_outputs(ctx, (int)rn_ops_int(ctx, "Nsparse"), rows);
}

rn_status_t rn_shape_fn_parse_single_example(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  return example_outputs(ctx, (int)rn_ops_int(ctx, "num_sparse"), RN_SHAPE_SCALAR);
}
