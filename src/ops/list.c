// Shape functions of TensorLists. A list is a scalar; its handle data holds what is known about its
// elements.
#include "ops/shapes.h"

// The shape in input |i|; a scalar -1 means an unknown shape.
static rn_status_t shape_or_any(rn_shape_ctx_t* ctx, int i, rn_shape_t* out) {
  *out = RN_SHAPE_UNKNOWN;
  rn_shape_t sizes;
  RN_TRY(rn_shape_with_rank_at_most(ctx, rn_shape_in(ctx, i), 1, &sizes));
  if (!rn_shape_has_rank(sizes)) return RN_OK;
  if (sizes.rank == 1) return rn_shape_from_input(ctx, i, out);
  const rn_tensor_t* value = rn_shape_input_value(ctx, i);
  if (!value || value->count != 1) {
    return rn_invalid_argument(
        "Received a shape scalar with unknown static value.  A static value of '-1' is required to "
        "represent an unknown shape.");
  }
  int64_t size = value->dtype == RN_INT32 ? *RN_DATA(value, int32_t) : *RN_DATA(value, int64_t);
  if (size == RN_UNKNOWN) return RN_OK;
  return rn_invalid_argument(
      "Received an invalid shape scalar with a static value that is not '-1': Tensor<type: %s "
      "shape: [] values: %" PRId64 ">",
      rn_dtype_name(value->dtype), size);
}

static rn_dtype_t element_dtype(rn_shape_ctx_t* ctx) {
  return rn_shape_attr(ctx, "element_dtype")->type;
}

// What is known about the elements of list input |i|.
static rn_shape_t list_shape(rn_shape_ctx_t* ctx, int i) {
  return rn_shape_in_handle(ctx, i)->is_set ? rn_shape_in_handle(ctx, i)->shape : RN_SHAPE_UNKNOWN;
}

static rn_status_t output_list(rn_shape_ctx_t* ctx, rn_dtype_t dtype, rn_shape_t element) {
  *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
  *rn_shape_out_handle(ctx, 0) =
      (rn_handle_data_t){.is_set = true, .dtype = dtype, .shape = element};
  return RN_OK;
}

// Checks the element type of the list in input 0. |format| selects the message, which differs per
// op.
static rn_status_t check_dtype(rn_shape_ctx_t* ctx, const char* format) {
  const rn_handle_data_t* list = rn_shape_in_handle(ctx, 0);
  if (!list->is_set || list->dtype == element_dtype(ctx)) return RN_OK;
  const char *has = rn_dtype_name(list->dtype), *wants = rn_dtype_name(element_dtype(ctx));
  bool is_read = format[0] == 'r', is_push = format[0] == 'p';
  if (is_push)
    return rn_invalid_argument(
        "Trying to %s list with wrong element dtype. List has type %s but trying to push element "
        "with type %s",
        format[1] ? "read from" : "push to", has, wants);
  if (is_read)
    return rn_invalid_argument(
        "Trying to read from list with wrong element dtype. List has type %s but expected type %s",
        has, wants);
  return rn_invalid_argument(
      "Expected list with element dtype %s but got list with element dtype %s", wants, has);
}

rn_status_t rn_shape_fn_list_make(rn_shape_ctx_t* ctx) {
  rn_shape_t element;
  RN_TRY(shape_or_any(ctx, 0, &element));
  return output_list(ctx, element_dtype(ctx), element);
}

rn_status_t rn_shape_fn_list_push_back(rn_shape_ctx_t* ctx) {
  RN_TRY(check_dtype(ctx, "p"));
  return output_list(ctx, element_dtype(ctx), list_shape(ctx, 0));
}

rn_status_t rn_shape_fn_list_push_back_batch(rn_shape_ctx_t* ctx) {
  RN_TRY(check_dtype(ctx, "p"));
  rn_shape_t tensor = rn_shape_in(ctx, 1);
  RN_TRY(rn_ops_merge_prefix(ctx, rn_shape_in(ctx, 0), &tensor));
  RN_TRY(output_list(ctx, element_dtype(ctx), list_shape(ctx, 0)));
  *rn_shape_out(ctx, 0) = rn_shape_in(ctx, 0);
  return RN_OK;
}

rn_status_t rn_shape_fn_list_pop_back(rn_shape_ctx_t* ctx) {
  rn_shape_t unused;
  RN_TRY(check_dtype(ctx, "pop"));
  RN_TRY(shape_or_any(ctx, 1, &unused));
  *rn_shape_out(ctx, 1) = list_shape(ctx, 0);
  return output_list(ctx, element_dtype(ctx), list_shape(ctx, 0));
}

rn_status_t rn_shape_fn_list_stack(rn_shape_ctx_t* ctx) {
  rn_shape_t element, rows;
  RN_TRY(check_dtype(ctx, "r"));
  RN_TRY(shape_or_any(ctx, 1, &element));
  RN_TRY(rn_shape_merge(ctx, list_shape(ctx, 0), element, &element));
  RN_TRY(rn_shape_vector(ctx, rn_ops_int(ctx, "num_elements"), &rows));
  return rn_shape_concat(ctx, rows, element, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_list_concat(rn_shape_ctx_t* ctx) {
  rn_shape_t element;
  RN_TRY(check_dtype(ctx, "r"));
  if (ctx->input_count > 1)
    RN_TRY(shape_or_any(ctx, 1, &element));
  else
    RN_TRY(rn_ops_attr_shape(ctx, "element_shape", &element));
  RN_TRY(rn_shape_merge(ctx, element, list_shape(ctx, 0), &element));
  RN_TRY(rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 1)));
  if (!rn_shape_has_rank(element)) return RN_OK;
  if (element.rank == 0) return rn_shape_vector(ctx, RN_UNKNOWN, rn_shape_out(ctx, 0));
  return rn_shape_replace_dim(ctx, element, 0, RN_UNKNOWN, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_list_split(rn_shape_ctx_t* ctx) {
  rn_shape_t tensor, element, rows;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 0), 1, &tensor));
  RN_TRY(rn_ops_check_rank(ctx, 2, 1));
  RN_TRY(shape_or_any(ctx, 1, &element));
  if (rn_shape_has_rank(tensor)) {
    RN_TRY(rn_shape_replace_dim(ctx, tensor, 0, RN_UNKNOWN, &tensor));
    rows = element;
    if (rn_shape_has_rank(element) && element.rank > 0)
      RN_TRY(rn_shape_replace_dim(ctx, element, 0, RN_UNKNOWN, &rows));
    RN_TRY(rn_shape_merge(ctx, tensor, rows, &rows));
  }
  return output_list(ctx, element_dtype(ctx), element);
}

rn_status_t rn_shape_fn_list_from_tensor(rn_shape_ctx_t* ctx) {
  rn_shape_t tensor = rn_shape_in(ctx, 0), element, unused;
  if (tensor.rank != 0) RN_TRY(rn_shape_slice(ctx, tensor, 1, INT_MAX, &tensor));
  RN_TRY(shape_or_any(ctx, 1, &element));
  RN_TRY(rn_shape_merge(ctx, tensor, element, &unused));
  return output_list(ctx, element_dtype(ctx), element);
}

rn_status_t rn_shape_fn_list_element_shape(rn_shape_ctx_t* ctx) {
  rn_shape_t element = list_shape(ctx, 0);
  if (!rn_shape_has_rank(element)) return RN_OK;
  return rn_shape_vector(ctx, element.rank, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_list_get_item(rn_shape_ctx_t* ctx) {
  rn_shape_t element;
  RN_TRY(check_dtype(ctx, "e"));
  RN_TRY(shape_or_any(ctx, 2, &element));
  return rn_shape_merge(ctx, list_shape(ctx, 0), element, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_list_set_item(rn_shape_ctx_t* ctx) {
  rn_shape_t unused;
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 2), list_shape(ctx, 0), &unused));
  return output_list(ctx, element_dtype(ctx), list_shape(ctx, 0));
}

rn_status_t rn_shape_fn_list_resize(rn_shape_ctx_t* ctx) {
  RN_TRY(rn_ops_check_rank(ctx, 1, 0));
  *rn_shape_out(ctx, 0) = RN_SHAPE_SCALAR;
  *rn_shape_out_handle(ctx, 0) = *rn_shape_in_handle(ctx, 0);
  return RN_OK;
}

// Indices of a rank other than 1 are flattened.
rn_status_t rn_shape_fn_list_gather(rn_shape_ctx_t* ctx) {
  rn_shape_t element;
  RN_TRY(check_dtype(ctx, "e"));
  RN_TRY(shape_or_any(ctx, 2, &element));
  RN_TRY(rn_shape_merge(ctx, list_shape(ctx, 0), element, &element));
  rn_shape_t rows = rn_shape_in(ctx, 1);
  if (rn_shape_has_rank(rows) && rows.rank != 1) {
    int64_t count;
    if (!rn_shape_count(rows, &count)) count = RN_UNKNOWN;
    RN_TRY(rn_shape_vector(ctx, count, &rows));
  }
  return rn_shape_concat(ctx, rows, element, rn_shape_out(ctx, 0));
}

rn_status_t rn_shape_fn_list_scatter(rn_shape_ctx_t* ctx) {
  rn_shape_t element;
  RN_TRY(shape_or_any(ctx, 2, &element));
  return output_list(ctx, element_dtype(ctx), element);
}

rn_status_t rn_shape_fn_list_scatter_into(rn_shape_ctx_t* ctx) {
  rn_shape_t unused;
  RN_TRY(rn_shape_with_rank_at_least(ctx, rn_shape_in(ctx, 1), 1, &unused));
  RN_TRY(rn_shape_with_rank(ctx, rn_shape_in(ctx, 2), 1, &unused));
  RN_TRY(check_dtype(ctx, "e"));
  return output_list(ctx, element_dtype(ctx), list_shape(ctx, 0));
}

rn_status_t rn_shape_fn_list_concat_lists(rn_shape_ctx_t* ctx) {
  rn_shape_t element = RN_SHAPE_UNKNOWN;
  RN_TRY(rn_shape_merge(ctx, rn_shape_in(ctx, 0), rn_shape_in(ctx, 1), rn_shape_out(ctx, 0)));
  rn_shape_t shape = *rn_shape_out(ctx, 0);
  for (int i = 0; i < 2; i++) {
    const rn_handle_data_t* list = rn_shape_in_handle(ctx, i);
    if (list->is_set && list->dtype != element_dtype(ctx)) {
      return rn_invalid_argument("input_%c.type != element_dtype: %s vs. %s", "ab"[i],
                                 rn_dtype_name(list->dtype), rn_dtype_name(element_dtype(ctx)));
    }
    RN_TRY(rn_shape_merge(ctx, element, list_shape(ctx, i), &element));
  }
  RN_TRY(output_list(ctx, element_dtype(ctx), element));
  *rn_shape_out(ctx, 0) = shape;
  return RN_OK;
}
