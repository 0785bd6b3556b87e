// Shape functions of queues, accumulators, tensor arrays, partition and stitch.
#include "ops/shapes.h"

// Queues. The handles of the first generation are vectors of two strings.

rn_status_t rn_shape_fn_queue_handle(rn_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->input_count; i++) RN_TRY(rn_ops_check_vector(ctx, i, 2));
  return rn_shape_fn_scalar(ctx);
}

rn_status_t rn_shape_fn_queue_info_v2(rn_shape_ctx_t* ctx) { return rn_shape_fn_scalar(ctx); }

rn_status_t rn_shape_fn_queue_dequeue(rn_shape_ctx_t* ctx) { return rn_shape_fn_unknown(ctx); }

rn_status_t rn_shape_fn_queue_dequeue_v2(rn_shape_ctx_t* ctx) {
  const rn_handle_data_t* handle = rn_shape_in_handle(ctx, 0);
  int64_t wanted;
  if (ctx->input_count == 2 && rn_shape_input_scalar(ctx, 1, &wanted) && wanted < 0) {
    return rn_invalid_argument("Input 'n' must be >= 0, but is %" PRId64, wanted);
  }
  if (!handle->is_set || ctx->output_count != 1) return RN_OK;
  if (ctx->input_count == 1) {
    *rn_shape_out(ctx, 0) = handle->shape;
    return RN_OK;
  }
  int64_t count = RN_UNKNOWN;
  rn_shape_t rows;
  // "UpTo" ops may return fewer elements than requested.
  if (!strstr(ctx->op->name, "UpTo")) RN_TRY(rn_ops_size_from_input(ctx, 1, &count));
  RN_TRY(rn_shape_vector(ctx, count, &rows));
  return rn_shape_concat(ctx, rows, handle->shape, rn_shape_out(ctx, 0));
}

// Accumulators.

rn_status_t rn_shape_fn_accumulator_apply(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  return rn_ops_check_rank(ctx, 1, 0);
}
rn_status_t rn_shape_fn_accumulator_apply_v2(rn_shape_ctx_t* ctx) {
  return rn_ops_check_rank(ctx, 1, 0);
}

rn_status_t rn_shape_fn_accumulator_count(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  return rn_shape_fn_scalar(ctx);
}

rn_status_t rn_shape_fn_accumulator_take(rn_shape_ctx_t* ctx) {
  return rn_ops_check_rank(ctx, 1, 0);
}

rn_status_t rn_shape_fn_accumulator_take_v2(rn_shape_ctx_t* ctx) {
  return rn_ops_check_rank(ctx, 1, 0);
}

rn_status_t rn_shape_fn_resource_accumulator(rn_shape_ctx_t* ctx) {
  return rn_shape_vector(ctx, 2, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_sparse_accumulator_take(rn_shape_ctx_t* ctx) {
  return rn_ops_check_rank(ctx, 1, 0);
}

// Tensor arrays: the handle data holds the shape of an element if all elements have the same.

rn_status_t rn_shape_fn_tensor_array(rn_shape_ctx_t* ctx) {
  rn_shape_t element;
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  RN_TRY(rn_ops_attr_shape(ctx, "element_shape", &element));
  if (!rn_ops_bool(ctx, "identical_element_shapes")) element = RN_SHAPE_UNKNOWN;
  *rn_shape_out_handle(ctx, 0) = (rn_handle_data_t){
      .is_set = true, .dtype = rn_shape_attr(ctx, "dtype")->type, .shape = element};
  *rn_shape_out(ctx, 1) = RN_SHAPE_SCALAR;
  return rn_shape_vector(ctx, 2, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_tensor_array_grad(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  *rn_shape_out_handle(ctx, 0) = *rn_shape_in_handle(ctx, 0);
  *rn_shape_out(ctx, 1) = RN_SHAPE_SCALAR;
  return rn_shape_vector(ctx, 2, rn_shape_out(ctx, 0));
}

// The static shape of the elements.
static rn_shape_t element_shape(rn_shape_ctx_t* ctx) {
  return rn_shape_in_handle(ctx, 0)->is_set ? rn_shape_in_handle(ctx, 0)->shape : RN_SHAPE_UNKNOWN;
}

rn_status_t rn_shape_fn_tensor_array_write(rn_shape_ctx_t* ctx) {
  rn_shape_t unused;
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  RN_TRY(rn_ops_check_rank(ctx, 3, 0));
  RN_TRY(rn_shape_merge(ctx, element_shape(ctx), rn_shape_in(ctx, 2), &unused));
  return rn_shape_fn_scalar(ctx);
}

rn_status_t rn_shape_fn_tensor_array_read(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  RN_TRY(rn_ops_check_scalars(ctx, 1, 2));
  *rn_shape_out(ctx, 0) = element_shape(ctx);
  return RN_OK;
}

rn_status_t rn_shape_fn_tensor_array_gather(rn_shape_ctx_t* ctx) {
  rn_shape_t indices, element, rows;
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &indices));
  RN_TRY(rn_ops_check_rank(ctx, 2, 0));
  RN_TRY(rn_ops_attr_shape(ctx, "element_shape", &element));
  if (rn_shape_has_rank(element_shape(ctx))) {
    RN_TRY(rn_shape_merge(ctx, element, element_shape(ctx), &element));
  }
  RN_TRY(rn_shape_vector(ctx, indices.dims[0], &rows));
  return rn_shape_concat(ctx, rows, element, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_tensor_array_scatter(rn_shape_ctx_t* ctx) {
  rn_shape_t indices, element, unused;
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &indices));
  RN_TRY(rn_ops_check_rank(ctx, 3, 0));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 2), 1, &element));
  int64_t rows;
  RN_TRY(rn_dim_merge(rn_shape_dim(element, 0), indices.dims[0], &rows));
  RN_TRY(rn_shape_slice(ctx, element, 1, INT_MAX, &element));
  RN_TRY(rn_shape_merge(ctx, element_shape(ctx), element, &unused));
  return rn_shape_fn_scalar(ctx);
}

rn_status_t rn_shape_fn_tensor_array_concat(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 1));
}

rn_status_t rn_shape_fn_tensor_array_split(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  RN_TRY(rn_ops_check_rank(ctx, 2, 1));
  RN_TRY(rn_ops_check_rank(ctx, 3, 0));
  return rn_shape_fn_scalar(ctx);
}

rn_status_t rn_shape_fn_tensor_array_size(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  return rn_shape_fn_scalar(ctx);
}

rn_status_t rn_shape_fn_tensor_array_close(rn_shape_ctx_t* ctx) {
  return rn_ops_check_vector(ctx, 0, 2);
}

// The elements have as many more dimensions as input 2 has entries.
rn_status_t rn_shape_fn_tensor_array_grad_with_shape(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_shape_fn_tensor_array_grad(ctx));
  const rn_handle_data_t* array = rn_shape_in_handle(ctx, 0);
  if (!array->is_set) return RN_OK;
  int64_t more = rn_shape_dim(rn_shape_in(ctx, 2), 0);
  rn_shape_t element = RN_SHAPE_UNKNOWN, prefix;
  if (rn_shape_has_rank(array->shape) && more >= 0) {
    if (more > RN_MAX_RANK - array->shape.rank)
      return rn_invalid_argument("Too many dimensions: %" PRId64, more);
    RN_TRY(rn_shape_of_rank(ctx, (int)more, &prefix));
    RN_TRY(rn_shape_concat(ctx, prefix, array->shape, &element));
  }
  rn_shape_out_handle(ctx, 0)->shape = element;
  return RN_OK;
}

// V2: the handle is a pair of strings, and nothing is known about the elements.

rn_status_t rn_shape_fn_tensor_array_v2(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 0, 0));
  return rn_shape_vector(ctx, 2, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_tensor_array_grad_v2(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  return rn_shape_vector(ctx, 2, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_tensor_array_read_v2(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  return rn_ops_check_scalars(ctx, 1, 2);
}

rn_status_t rn_shape_fn_tensor_array_gather_v2(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  RN_TRY(rn_ops_check_rank(ctx, 1, 1));
  return rn_ops_check_rank(ctx, 2, 0);
}

// Barriers and session tensors.

rn_status_t rn_shape_fn_barrier_close(rn_shape_ctx_t* ctx) {
  return rn_ops_check_vector(ctx, 0, 2);
}

rn_status_t rn_shape_fn_barrier_insert_many(rn_shape_ctx_t* ctx) {
  rn_shape_t keys, values, rows, unused;
  RN_TRY(rn_ops_check_vector(ctx, 0, 2));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 1), 1, &keys));
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 2), 1, &values));
  RN_TRY(rn_shape_vector(ctx, rn_shape_dim(values, 0), &rows));
  return rn_shape_merge(ctx, keys, rows, &unused);
}

rn_status_t rn_shape_fn_session_tensor(rn_shape_ctx_t* ctx) { return rn_ops_check_rank(ctx, 0, 0); }

// Partition and stitch.

rn_status_t rn_shape_fn_dynamic_partition(rn_shape_ctx_t* ctx) {
  rn_shape_t data = rn_shape_in(ctx, 0), partitions = rn_shape_in(ctx, 1), rest, rows;
  if (!rn_shape_has_rank(partitions) || !rn_shape_has_rank(data)) return RN_OK;
  RN_TRY(rn_ops_merge_prefix(ctx, partitions, &data));
  RN_TRY(rn_shape_slice(ctx, data, partitions.rank, INT_MAX, &rest));
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, &rows));
  RN_TRY(rn_shape_concat(ctx, rows, rest, &rows));
  for (int i = 0; i < ctx->output_count; i++) *rn_shape_out(ctx, i) = rows;
  return RN_OK;
}

// Raises |*inout_largest| to the largest index; false if the indices are not constant.
static bool largest_index(const rn_tensor_t* indices, int64_t* inout_largest) {
  if (!indices || indices->dtype != RN_INT32) return false;
  for (int64_t i = 0; i < indices->count; i++) {
    int64_t index = RN_DATA(indices, int32_t)[i];
    if (index > *inout_largest) *inout_largest = index;
  }
  return true;
}

rn_status_t rn_shape_fn_dynamic_stitch(rn_shape_ctx_t* ctx) {
  int count = ctx->input_count / 2;
  rn_shape_t row = RN_SHAPE_UNKNOWN, rest, rows;
  int64_t largest = -1;
  bool constant = true;
  for (int i = 0; i < count; i++) {
    rn_shape_t indices = rn_shape_in(ctx, i), data = rn_shape_in(ctx, count + i);
    constant = constant && largest_index(rn_shape_input_value(ctx, i), &largest);
    if (!rn_shape_has_rank(indices) || !rn_shape_has_rank(data)) continue;
    RN_TRY(rn_ops_merge_prefix(ctx, indices, &data));
    RN_TRY(rn_shape_slice(ctx, data, indices.rank, INT_MAX, &rest));
    RN_TRY(rn_shape_merge(ctx, row, rest, &row));
  }
  RN_TRY(rn_shape_vector(ctx, constant ? largest + 1 : RN_UNKNOWN, &rows));
  return rn_shape_concat(ctx, rows, row, rn_shape_out(ctx, 0));
}
