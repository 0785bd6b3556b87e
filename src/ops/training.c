// The shape function of optimizer steps.
//
// One function serves all, because their definitions follow one pattern: the variable and its slots
// are references or handles and have the same shape; the gradient ("grad", "delta") has that shape,
// too, or, with "indices", consists of rows of it; all other inputs are scalars.
#include "ops/shapes.h"

static bool is_slot(const rn_arg_def_t* arg) { return arg->is_ref || arg->type == RN_RESOURCE; }
static bool is_gradient(const rn_arg_def_t* arg) {
  return rn_ops_is(arg->name, "grad") || rn_ops_is(arg->name, "delta");
}
static bool is_indices(const rn_arg_def_t* arg) { return rn_ops_is(arg->name, "indices"); }

static rn_shape_t slot_shape(rn_shape_ctx_t* ctx, int i) {
  if (ctx->op->inputs[i].is_ref) return rn_shape_in(ctx, i);
  return rn_shape_in_handle(ctx, i)->is_set ? rn_shape_in_handle(ctx, i)->shape : RN_SHAPE_UNKNOWN;
}

// On resources, most ops leave checking the gradient's shape to their kernel; two dense ones do
// not.
static rn_shape_t gradient_shape(rn_shape_ctx_t* ctx, int gradient) {
  const char* op = ctx->op->name;
  bool is_checked = ctx->op->inputs[0].is_ref || rn_ops_is(op, "ResourceApplyGradientDescent") ||
                    rn_ops_is(op, "ResourceApplyProximalAdagrad");
  return is_checked ? rn_shape_in(ctx, gradient) : RN_SHAPE_UNKNOWN;
}

static rn_status_t merge_sparse_gradient(rn_shape_ctx_t* ctx, int gradient, int indices,
                                         rn_shape_t* inout_variable) {
  rn_shape_t rows, grad = gradient_shape(ctx, gradient);
  int64_t unused;
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, indices), 1, &rows));
  RN_TRY(rn_shape_with_rank_at_least(ctx, grad, 1, &grad));
  RN_TRY(rn_dim_merge(rows.dims[0], rn_shape_dim(grad, 0), &unused));
  RN_TRY(rn_shape_replace_dim(ctx, grad, 0, RN_UNKNOWN, &grad));
  return rn_shape_merge(ctx, *inout_variable, grad, inout_variable);
}

rn_status_t rn_shape_fn_apply(rn_shape_ctx_t* ctx) {
  rn_shape_t variable = slot_shape(ctx, 0);
  int gradient = -1, indices = -1;
  for (int i = 1; i < ctx->input_count; i++) {
    const rn_arg_def_t* arg = &ctx->op->inputs[i];
    if (is_slot(arg)) RN_TRY(rn_shape_merge(ctx, variable, slot_shape(ctx, i), &variable));
    if (is_gradient(arg)) gradient = i;
    if (is_indices(arg)) indices = i;
  }
  for (int i = 1; i < ctx->input_count; i++) {
    const rn_arg_def_t* arg = &ctx->op->inputs[i];
    if (!is_slot(arg) && i != gradient && i != indices) RN_TRY(rn_ops_check_rank(ctx, i, 0));
  }
  if (indices >= 0) {
    RN_TRY(merge_sparse_gradient(ctx, gradient, indices, &variable));
  } else {
    RN_TRY(rn_shape_merge(ctx, variable, gradient_shape(ctx, gradient), &variable));
  }
  if (ctx->output_count) *rn_shape_out(ctx, 0) = variable;
  return RN_OK;
}
