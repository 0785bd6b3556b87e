// Shape functions of function calls, arguments and results.
#include "ops/shapes.h"

rn_status_t rn_shape_fn_arg(rn_shape_ctx_t* ctx) { return rn_shape_fn_unknown(ctx); }

// Sets the outputs to the shapes in output_shapes; |*out_listed| is false if that is empty.
static rn_status_t listed_shapes(rn_shape_ctx_t* ctx, bool* out_listed) {
  const rn_attr_value_t* shapes = rn_shape_attr(ctx, "output_shapes");
  *out_listed = shapes->count > 0;
  if (!*out_listed) return RN_OK;
  if (shapes->count != ctx->output_count) {
    return rn_invalid_argument("`output_shapes` must be the same length as num outputs (%d vs. %d",
                               shapes->count, ctx->output_count);
  }
  for (int i = 0; i < ctx->output_count; i++) {
    rn_shape_t shape = shapes->list_shape[i];
    RN_TRY(rn_shape_with_rank_at_most(ctx, shape, RN_MAX_RANK, rn_shape_out(ctx, i)));
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_function_outputs(rn_shape_ctx_t* ctx) {
  bool listed;
  return listed_shapes(ctx, &listed);
}

rn_status_t rn_shape_fn_while(rn_shape_ctx_t* ctx) {
  bool listed;
  RN_TRY(listed_shapes(ctx, &listed));
  for (int i = 0; i < ctx->output_count && i < ctx->input_count; i++) {
    if (!listed) *rn_shape_out(ctx, i) = rn_shape_in(ctx, i);
    *rn_shape_out_handle(ctx, i) = *rn_shape_in_handle(ctx, i);
  }
  return RN_OK;
}

// One gradient per argument of the function; the arguments are the first inputs.
rn_status_t rn_shape_fn_symbolic_gradient(rn_shape_ctx_t* ctx) {
  if (ctx->input_count < ctx->output_count) {
    return rn_invalid_argument("len(inputs) < len(outputs)");
  }
  for (int i = 0; i < ctx->output_count; i++) {
    *rn_shape_out(ctx, i) = rn_shape_in(ctx, i);
    *rn_shape_out_handle(ctx, i) = *rn_shape_in_handle(ctx, i);
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_fake_param(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = rn_shape_attr(ctx, "shape")->shape;
  return RN_OK;
}
