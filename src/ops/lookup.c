// Shape functions of lookup tables. For mutable tables, the handle data holds the type and shape of
// values.
#include "ops/shapes.h"

// Checks the handle: a scalar, or for V1 a reference to two strings.
static rn_status_t check_handle(rn_shape_ctx_t* ctx) {
  if (rn_shape_in_type(ctx, 0) == RN_RESOURCE) return rn_ops_check_rank(ctx, 0, 0);
  return rn_ops_check_vector(ctx, 0, 2);
}

rn_status_t rn_shape_fn_table(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
  return RN_OK;
}

rn_status_t rn_shape_fn_table_changing(rn_shape_ctx_t* ctx) {
  *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
  *rn_shape_out_handle(ctx, 0) = (rn_handle_data_t){
      .is_set = true, .dtype = rn_shape_attr(ctx, "value_dtype")->type, .shape = RN_SHAPE_SCALAR};
  return RN_OK;
}

// A table whose values are tensors.
rn_status_t rn_shape_fn_table_of_tensors(rn_shape_ctx_t* ctx) {
  return rn_ops_output_handle(ctx, "value_dtype", "value_shape");
}

// If the rank of keys is not known, neither is the shape of values.
rn_status_t rn_shape_fn_table_dense(rn_shape_ctx_t* ctx) {
  rn_shape_t key;
  RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, 0), 1, &key));
  RN_TRY(rn_shape_fn_table_of_tensors(ctx));
  if (key.rank < 0) *rn_shape_out_handle(ctx, 0) = (rn_handle_data_t){0};
  rn_shape_out_handle(ctx, 0)->key_rank = key.rank;
  return RN_OK;
}

rn_status_t rn_shape_fn_table_find(rn_shape_ctx_t* ctx) {
  RN_TRY(check_handle(ctx));
  const rn_handle_data_t* table = rn_shape_in_handle(ctx, 0);
  if (!table->is_set) return RN_OK;
  rn_dtype_t dtype = rn_shape_attr(ctx, "Tout")->type;
  if (table->dtype != dtype)
    return rn_invalid_argument("Trying to read value with wrong dtype. Expected %s got %s",
                               rn_dtype_name(table->dtype), rn_dtype_name(dtype));
  rn_shape_t keys = rn_shape_in(ctx, 1);
  if (keys.rank >= 0 && keys.rank < table->key_rank)
    return rn_invalid_argument("Expected keys to have at least rank %d, got rank %d",
                               table->key_rank, keys.rank);
  if (keys.rank > 0) keys.rank -= table->key_rank;
  return rn_shape_concat(ctx, keys, table->shape, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_table_insert(rn_shape_ctx_t* ctx) { return check_handle(ctx); }
rn_status_t rn_shape_fn_table_remove(rn_shape_ctx_t* ctx) { return check_handle(ctx); }

rn_status_t rn_shape_fn_table_size(rn_shape_ctx_t* ctx) {
  RN_TRY(check_handle(ctx));
  *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
  return RN_OK;
}

rn_status_t rn_shape_fn_table_export(rn_shape_ctx_t* ctx) {
  RN_TRY(check_handle(ctx));
  if (rn_shape_in_type(ctx, 0) == RN_RESOURCE) return RN_OK;
  return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_table_initialize(rn_shape_ctx_t* ctx) {
  rn_shape_t keys, unused;
  RN_TRY(check_handle(ctx));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &keys));
  return rn_shape_merge(ctx, keys, rn_shape_in(ctx, 2), &unused);
}

rn_status_t rn_shape_fn_table_from_file(rn_shape_ctx_t* ctx) {
  RN_TRY(check_handle(ctx));
  return rn_ops_check_rank(ctx, 1, 0);
}
