// Shape functions of variables.
#include "ops/shapes.h"

// Reference variables.

rn_status_t rn_shape_fn_variable(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_attr_shape(ctx, "shape", rn_shape_out(ctx, 0)));
  // In this op a scalar shape means "unknown"; VariableV2 supports scalars.
  if (rn_shape_out(ctx, 0)->rank == 0) *rn_shape_out(ctx, 0) = RN_SHAPE_UNKNOWN;
  return RN_OK;
}

rn_status_t rn_shape_fn_variable_v2(rn_shape_ctx_t* ctx) {
  return rn_ops_attr_shape(ctx, "shape", rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_temporary_variable(rn_shape_ctx_t* ctx) {
  return rn_ops_attr_shape(ctx, "shape", rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_assign(rn_shape_ctx_t* ctx) {
  if (rn_ops_bool(ctx, "validate_shape")) {
    return rn_shape_merge(ctx, rn_shape_in(ctx, 0), rn_shape_in(ctx, 1), rn_shape_out(ctx, 0));
  }
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 1);
  return RN_OK;
}

rn_status_t rn_shape_fn_assign_update(rn_shape_ctx_t* ctx) {
  return rn_shape_merge(ctx, rn_shape_in(ctx, 0), rn_shape_in(ctx, 1), rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_count_up_to(rn_shape_ctx_t* ctx) {
  return rn_shape_with_rank(ctx, rn_shape_in(ctx, 0), 0, rn_shape_out(ctx, 0));
}

// Checks that updates have the indices' shape followed by a row's, or are a scalar.
static rn_status_t check_rows(rn_shape_ctx_t* ctx, rn_shape_t variable) {
  rn_shape_t rest, expected, unused, updates = rn_shape_in(ctx, 2);
  if (updates.rank == 0 || !rn_shape_has_rank(updates)) return RN_OK;
  RN_TRY(rn_shape_slice(ctx, variable, 1, INT_MAX, &rest));
  RN_TRY(rn_shape_concat(ctx, rn_shape_in(ctx, 1), rest, &expected));
  return rn_shape_merge(ctx, updates, expected, &unused);
}

rn_status_t rn_shape_fn_scatter(rn_shape_ctx_t* ctx) {
  rn_shape_t variable;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &variable));
  RN_TRY(check_rows(ctx, variable));
  *rn_shape_out(ctx, 0) = variable;
  return RN_OK;
}

// Resource variables: the handle data holds what is known about the variable.

static rn_shape_t handle_shape_at(rn_shape_ctx_t* ctx, int i) {
  return rn_shape_in_handle(ctx, i)->is_set ? rn_shape_in_handle(ctx, i)->shape : RN_SHAPE_UNKNOWN;
}
static rn_shape_t handle_shape(rn_shape_ctx_t* ctx) { return handle_shape_at(ctx, 0); }

// Checks that the variable in input |i| has type |dtype|.
static rn_status_t check_handle_type_at(rn_shape_ctx_t* ctx, int i, rn_dtype_t dtype) {
  const rn_handle_data_t* handle = rn_shape_in_handle(ctx, i);
  if (!handle->is_set || handle->dtype == RN_INVALID || handle->dtype == dtype) return RN_OK;
  return rn_invalid_argument("Trying to read variable with wrong dtype. Expected %s got %s",
                             rn_dtype_name(handle->dtype), rn_dtype_name(dtype));
}

static rn_status_t check_handle_type(rn_shape_ctx_t* ctx, rn_dtype_t dtype) {
  return check_handle_type_at(ctx, 0, dtype);
}

rn_status_t rn_shape_fn_var_handles(rn_shape_ctx_t* ctx) {
  const rn_attr_value_t *types = rn_shape_attr(ctx, "dtypes"),
                        *shapes = rn_shape_attr(ctx, "shapes");
  if (types->count != ctx->output_count || shapes->count != ctx->output_count)
    return rn_invalid_argument("Mismatch in number of handles, dtypes and shapes: %d, %d and %d",
                               ctx->output_count, types->count, shapes->count);
  for (int i = 0; i < ctx->output_count; ++i) {
    *rn_shape_out(ctx, i) = RN_SHAPE_SCALAR;
    *rn_shape_out_handle(ctx, i) = (rn_handle_data_t){
        .is_set = true, .dtype = types->list_type[i], .shape = shapes->list_shape[i]};
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_read_variables(rn_shape_ctx_t* ctx) {
  const rn_attr_value_t* types = rn_shape_attr(ctx, "dtypes");
  if (types->count != ctx->input_count)
    return rn_invalid_argument("Mismatch in number of inputs (%d) and output dtypes (%d)",
                               ctx->input_count, types->count);
  for (int i = 0; i < ctx->input_count; ++i) {
    RN_TRY(check_handle_type_at(ctx, i, types->list_type[i]));
    *rn_shape_out(ctx, i) = handle_shape_at(ctx, i);
  }
  return RN_OK;
}

rn_status_t rn_shape_fn_var_handle(rn_shape_ctx_t* ctx) {
  return rn_ops_output_handle(ctx, "dtype", "shape");
}

rn_status_t rn_shape_fn_read_variable(rn_shape_ctx_t* ctx) {
  RN_TRY(check_handle_type(ctx, rn_shape_attr(ctx, "dtype")->type));
  *rn_shape_out(ctx, 0) = handle_shape(ctx);
  return RN_OK;
}

// The value must fit the handle even if validate_shape is false, which only the kernel honours.
rn_status_t rn_shape_fn_assign_variable(rn_shape_ctx_t* ctx) {
  rn_shape_t unused;
  RN_TRY(check_handle_type(ctx, rn_shape_attr(ctx, "dtype")->type));
  return rn_shape_merge(ctx, handle_shape(ctx), rn_shape_in(ctx, 1), &unused);
}

rn_status_t rn_shape_fn_update_variable(rn_shape_ctx_t* ctx) {
  rn_shape_t unused;
  RN_TRY(check_handle_type(ctx, rn_shape_attr(ctx, "dtype")->type));
  return rn_shape_merge(ctx, handle_shape(ctx), rn_shape_in(ctx, 1), &unused);
}

rn_status_t rn_shape_fn_variable_shape(rn_shape_ctx_t* ctx) {
  rn_shape_t shape = handle_shape(ctx);
  RN_TRY(rn_shape_vector(ctx, shape.rank, rn_shape_out(ctx, 0)));
  int64_t values[RN_MAX_RANK];
  for (int i = 0; i < shape.rank; i++) {
    values[i] = shape.dims[i] == RN_UNKNOWN ? RN_UNKNOWN_VALUE : shape.dims[i];
  }
  return rn_shape_has_rank(shape) ? rn_shape_set_partial(ctx, false, shape.rank, values) : RN_OK;
}

rn_status_t rn_shape_fn_resource_count_up_to(rn_shape_ctx_t* ctx) {
  return rn_shape_with_rank(ctx, handle_shape(ctx), 0, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_resource_gather(rn_shape_ctx_t* ctx) {
  rn_shape_t variable, rest, indices = rn_shape_in(ctx, 1);
  RN_TRY(check_handle_type(ctx, rn_shape_attr(ctx, "dtype")->type));
  RN_TRY(rn_shape_with_rank_at_least(ctx, handle_shape(ctx), 1, &variable));
  int64_t batch = rn_ops_int(ctx, "batch_dims");
  if (batch < 0) return rn_invalid_argument("batch_dims is negative (%" PRId64 ")", batch);
  if (!rn_shape_has_rank(variable) || !rn_shape_has_rank(indices)) return RN_OK;
  if (batch > indices.rank || batch >= variable.rank) {
    return rn_invalid_argument("Expected batch_dims in the range [%d, %d], but got %" PRId64,
                               -indices.rank, indices.rank, batch);
  }
  rn_shape_t before;
  RN_TRY(rn_shape_slice(ctx, variable, 0, batch, &before));
  RN_TRY(rn_shape_slice(ctx, variable, batch + 1, INT_MAX, &rest));
  RN_TRY(rn_shape_slice(ctx, indices, batch, INT_MAX, &indices));
  RN_TRY(rn_shape_concat(ctx, before, indices, &before));
  return rn_shape_concat(ctx, before, rest, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_resource_gather_nd(rn_shape_ctx_t* ctx) {
  rn_shape_t variable = handle_shape(ctx), indices, before, rest;
  RN_TRY(check_handle_type(ctx, rn_shape_attr(ctx, "dtype")->type));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 1), 1, &indices));
  int64_t depth = rn_shape_dim(indices, -1);
  if (!rn_shape_has_rank(variable) || depth == RN_UNKNOWN) return RN_OK;
  if (depth > variable.rank) {
    return rn_invalid_argument("indices.shape[-1] must be <= params.rank");
  }
  RN_TRY(rn_shape_slice(ctx, indices, 0, -1, &before));
  RN_TRY(rn_shape_slice(ctx, variable, depth, INT_MAX, &rest));
  return rn_shape_concat(ctx, before, rest, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_resource_scatter(rn_shape_ctx_t* ctx) {
  rn_shape_t variable;
  RN_TRY(check_handle_type(ctx, rn_shape_attr(ctx, "dtype")->type));
  RN_TRY(rn_shape_with_rank_at_least(ctx, handle_shape(ctx), 1, &variable));
  return check_rows(ctx, variable);
}
