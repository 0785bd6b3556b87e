// Tensor list ops on single elements or on the list itself.
#include "kernels/cpu/array.h"
#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/list/tensor_list.h"
#include "kernels/cpu/rows.h"
#include "kernels/kernel_rows.h"

// The element type of a list is an attribute.
static rn_status_t type_init(const rn_kernel_init_t* init, void* state) {
  *(rn_dtype_t*)state = rn_init_type(init, "element_dtype");
  return RN_OK;
}

static rn_status_t make_list(rn_kernel_ctx_t* ctx, int64_t limit, int64_t count) {
  rn_partial_shape_t element;
  RN_RETURN_IF_ERROR(rn_partial_shape_read(rn_in(ctx, 0), &element));
  rn_tensor_list_t* list = NULL;
  RN_RETURN_IF_ERROR(
      rn_tensor_list_make(ctx, *(rn_dtype_t*)ctx->state, element.shape, limit, count, &list));
  return rn_tensor_list_output(ctx, 0, list);
}

static rn_status_t empty_list(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* limit = rn_in(ctx, 1);
  if (limit->rank != 0)
    return rn_invalid_argument("max_num_elements expected to be a scalar but got shape: %s",
                               rn_text_of(limit).text);
  return make_list(ctx, rn_int_at(limit, 0), 0);
}

static rn_status_t reserve(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t* size = rn_in(ctx, 1);
  if (size->rank != 0)
    return rn_invalid_argument("The num_elements to reserve must be a tensor size 1, but got %s",
                               rn_text_of(size).text);
  int64_t count = rn_int_at(size, 0);
  if (count < 0)
    return rn_invalid_argument(
        "The num_elements to reserve must be a non negative number, but got %lld",
        (long long)count);
  return make_list(ctx, -1, count);
}

// Push and pop.
static rn_status_t check_push(const rn_tensor_list_t* list, rn_dtype_t dtype) {
  if (list->dtype != dtype)
    return rn_invalid_argument("Invalid data types; list elements %s but tried to append %s",
                               rn_dtype_name(list->dtype), rn_dtype_name(dtype));
  if (list->limit >= 0 && list->count >= list->limit)
    return rn_invalid_argument(
        "Tried to push item into a full list list size: %lld max_num_elements: %lld",
        (long long)list->count, (long long)list->limit);
  return RN_OK;
}

static rn_status_t push_back(rn_kernel_ctx_t* ctx) {
  rn_tensor_list_t* list = NULL;
  const rn_tensor_t* value = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_tensor_list_items_in(ctx, 0, &list));
  if (!rn_shape_compatible(list->element_shape, rn_tensor_shape(value)))
    return rn_invalid_argument(
        "Tried to append a tensor with incompatible shape to a list. Op element shape: %s list "
        "shape: %s",
        rn_text_of(value).text, rn_shape_text(list->element_shape).text);
  RN_RETURN_IF_ERROR(check_push(list, value->dtype));
  rn_tensor_t kept = {0};
  RN_RETURN_IF_ERROR(rn_ctx_keep(ctx, value, &kept));
  rn_status_t status = rn_tensor_list_to_change(ctx, 0, 0, &list);
  if (rn_ok(status)) status = rn_tensor_list_resize(list, list->count + 1);
  if (rn_ok(status)) rn_tensor_list_set(list, list->count - 1, &kept);
  rn_tensor_clear(&kept);
  return status;
}

// Pushes one row to each of several lists.
static rn_status_t push_row(rn_kernel_ctx_t* ctx, int64_t i, rn_object_t** out) {
  const rn_tensor_t *handles = rn_in(ctx, 0), *value = rn_in(ctx, 1);
  rn_tensor_list_t* list = rn_tensor_list_at(handles, i);
  if (!list) return rn_invalid_argument("Input handle at index %lld is not a list", (long long)i);
  RN_RETURN_IF_ERROR(rn_tensor_list_here(ctx, list, &list));
  rn_shape_t element = {value->rank - 1, rn_tensor_dims(value) + 1};
  if (!rn_shape_compatible(list->element_shape, element))
    return rn_invalid_argument(
        "Tried to append a tensor with incompatible shape to a list at index %lld. Op element "
        "shape: %s list shape: %s",
        (long long)i, rn_shape_text(element).text, rn_shape_text(list->element_shape).text);
  RN_RETURN_IF_ERROR(check_push(list, value->dtype));
  rn_tensor_list_t* copy = NULL;
  rn_tensor_t row = {0};
  RN_RETURN_IF_ERROR(rn_ctx_rows(ctx, value, i, 1, true, &row));
  rn_status_t status = rn_tensor_list_copy(list, &copy);
  if (rn_ok(status)) status = rn_tensor_list_resize(copy, copy->count + 1);
  if (rn_ok(status)) {
    rn_tensor_list_set(copy, copy->count - 1, &row);
    *out = &copy->object;
    return RN_OK;
  }
  rn_tensor_clear(&row);
  rn_tensor_list_release(copy);
  return status;
}

static rn_status_t push_back_batch(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *handles = rn_in(ctx, 0), *value = rn_in(ctx, 1);
  if (value->rank < 1)
    return rn_invalid_argument("Expected tensor to be at least a vector, but saw shape: %s",
                               rn_text_of(value).text);
  if (rn_tensor_dim(value, 0) != handles->count)
    return rn_invalid_argument(
        "Expected tensor.shape[0] == input_handles.size, but saw %lld vs. %lld",
        (long long)rn_tensor_dim(value, 0), (long long)handles->count);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(handles), &out));
  for (int64_t i = 0; i < handles->count; ++i)
    RN_RETURN_IF_ERROR(push_row(ctx, i, &RN_DATA(out, rn_object_t*)[i]));
  return RN_OK;
}

static rn_status_t output_zeros(rn_kernel_ctx_t* ctx, int o, rn_shape_t shape) {
  rn_tensor_t zeros = {0};
  rn_dtype_t dtype = rn_dtype_base(ctx->kernel->output_types[o]);
  RN_RETURN_IF_ERROR(rn_tensor_create(rn_ctx_memory(ctx, dtype), dtype, shape, &zeros));
  rn_status_t status = rn_ctx_zero(ctx, &zeros);
  if (rn_ok(status))
    rn_set_output(ctx, o, &zeros);
  else
    rn_tensor_clear(&zeros);
  return status;
}

static rn_status_t pop_back(rn_kernel_ctx_t* ctx) {
  rn_tensor_list_t* list = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_list_items_in(ctx, 0, &list));
  RN_RETURN_IF_ERROR(rn_tensor_list_check_read(ctx, list, 1));
  if (list->count == 0) return rn_invalid_argument("Trying to pop from an empty list.");
  int64_t last = list->count - 1;
  if (!rn_tensor_list_has(list, last)) {
    rn_partial_shape_t element;
    RN_RETURN_IF_ERROR(rn_tensor_list_shape_in(ctx, 1, list, &element));
    if (!rn_shape_is_full(element.shape))
      return rn_invalid_argument(
          "Trying to read an uninitialized tensor but element_shape is not fully defined.%s",
          rn_partial_text(element.shape).text);
    RN_RETURN_IF_ERROR(output_zeros(ctx, 1, element.shape));
  } else {
    rn_tensor_t item = {0};
    RN_RETURN_IF_ERROR(rn_tensor_share(&list->items[last], &item));
    rn_set_output(ctx, 1, &item);
  }
  RN_RETURN_IF_ERROR(rn_tensor_list_to_change(ctx, 0, 0, &list));
  return rn_tensor_list_resize(list, last);
}

// Elements by index.
static rn_status_t scalar_index(const rn_kernel_ctx_t* ctx, int i, int64_t* out) {
  const rn_tensor_t* index = rn_in(ctx, i);
  if (index->count != 1)
    return rn_invalid_argument("Expected argument %d to be a scalar, but it has shape %s", i,
                               rn_text_of(index).text);
  *out = rn_int_at(index, 0);
  return RN_OK;
}

static rn_status_t get_unset(rn_kernel_ctx_t* ctx, const rn_tensor_list_t* list) {
  rn_partial_shape_t element;
  RN_RETURN_IF_ERROR(rn_tensor_list_shape_in(ctx, 2, list, &element));
  for (int64_t i = list->set_begin; i < list->set_end && !rn_shape_is_full(element.shape); ++i)
    if (rn_tensor_list_has(list, i))
      RN_RETURN_IF_ERROR(rn_partial_shape_merge(&element, rn_tensor_shape(&list->items[i])));
  if (!rn_shape_is_full(element.shape))
    return rn_invalid_argument(
        "Trying to read an uninitialized tensor but element_shape is not fully defined: %s and no "
        "list element is set.",
        rn_partial_text(element.shape).text);
  return output_zeros(ctx, 0, element.shape);
}

static rn_status_t get_item(rn_kernel_ctx_t* ctx) {
  rn_tensor_list_t* list = NULL;
  int64_t index;
  RN_RETURN_IF_ERROR(rn_tensor_list_items_in(ctx, 0, &list));
  RN_RETURN_IF_ERROR(rn_tensor_list_check_read(ctx, list, 0));
  RN_RETURN_IF_ERROR(scalar_index(ctx, 1, &index));
  if (index < 0 || index >= list->count)
    return rn_invalid_argument("Trying to access element %lld in a list with %lld elements.",
                               (long long)index, (long long)list->count);
  if (!rn_tensor_list_has(list, index)) return get_unset(ctx, list);
  rn_tensor_t item = {0};
  RN_RETURN_IF_ERROR(rn_tensor_share(&list->items[index], &item));
  rn_set_output(ctx, 0, &item);
  return RN_OK;
}

typedef struct setter_t {
  bool resizes;
} setter_t;

static rn_status_t setter_init(const rn_kernel_init_t* init, void* state) {
  ((setter_t*)state)->resizes = rn_init_bool(init, "resize_if_index_out_of_bounds");
  return RN_OK;
}

static rn_status_t set_item(rn_kernel_ctx_t* ctx) {
  const setter_t* setter = ctx->state;
  rn_tensor_list_t* list = NULL;
  const rn_tensor_t *at = rn_in(ctx, 1), *value = rn_in(ctx, 2);
  RN_RETURN_IF_ERROR(rn_tensor_list_items_in(ctx, 0, &list));
  if (list->dtype != value->dtype)
    return rn_invalid_argument("Invalid data types; op elements %s but list elements %s",
                               rn_dtype_name(value->dtype), rn_dtype_name(list->dtype));
  if (at->rank != 0)
    return rn_invalid_argument("Expected argument 1 to be a scalar, but it has shape %s",
                               rn_text_of(at).text);
  int64_t index = rn_int_at(at, 0);
  if (index < 0 || (!setter->resizes && index >= list->count))
    return rn_invalid_argument("Trying to modify element %lld in a list with %lld elements.",
                               (long long)index, (long long)list->count);
  if (!rn_shape_compatible(list->element_shape, rn_tensor_shape(value)))
    return rn_invalid_argument(
        "Tried to set a tensor with incompatible shape at a list index. Item element shape: %s "
        "list shape: %s",
        rn_text_of(value).text, rn_shape_text(list->element_shape).text);
  rn_tensor_t kept = {0};
  RN_RETURN_IF_ERROR(rn_ctx_keep(ctx, value, &kept));
  rn_status_t status = rn_tensor_list_to_change(ctx, 0, 0, &list);
  if (rn_ok(status) && index >= list->count) status = rn_tensor_list_resize(list, index + 1);
  if (rn_ok(status)) rn_tensor_list_set(list, index, &kept);
  rn_tensor_clear(&kept);
  return status;
}

// Ops on the list as a whole.
static rn_status_t length(rn_kernel_ctx_t* ctx) {
  rn_tensor_list_t* list = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_list_in(ctx, 0, &list));
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
  *RN_DATA(out, int32_t) = (int32_t)list->count;
  return RN_OK;
}

static rn_status_t element_shape(rn_kernel_ctx_t* ctx) {
  rn_tensor_list_t* list = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_list_in(ctx, 0, &list));
  rn_tensor_t* out = NULL;
  int64_t rank = list->element_shape.rank;
  if (rank < 0) {
    RN_RETURN_IF_ERROR(rn_output(ctx, 0, RN_SHAPE_SCALAR, &out));
    rn_int_set(out, 0, RN_UNKNOWN);
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, (rn_shape_t){1, &rank}, &out));
  for (int64_t d = 0; d < rank; ++d) rn_int_set(out, d, list->element_shape.dims[d]);
  return RN_OK;
}

static rn_status_t resize(rn_kernel_ctx_t* ctx) {
  rn_tensor_list_t* list = NULL;
  const rn_tensor_t* size = rn_in(ctx, 1);
  RN_RETURN_IF_ERROR(rn_tensor_list_in(ctx, 0, &list));
  if (size->rank != 0) return rn_invalid_argument("size must be a scalar");
  int64_t count = rn_int_at(size, 0);
  if (count < 0)
    return rn_invalid_argument("TensorListSlice expects size to be non-negative. Got: %lld",
                               (long long)count);
  RN_RETURN_IF_ERROR(rn_tensor_list_to_change(ctx, 0, 0, &list));
  return rn_tensor_list_resize(list, count);
}

static rn_status_t join_pair(const rn_kernel_ctx_t* ctx, int64_t i, rn_object_t** out) {
  rn_dtype_t dtype = *(rn_dtype_t*)ctx->state;
  rn_tensor_list_t *a = rn_tensor_list_at(rn_in(ctx, 0), i),
                   *b = rn_tensor_list_at(rn_in(ctx, 1), i);
  if (!a) return rn_invalid_argument("input_a is not a TensorList at index %lld.", (long long)i);
  if (!b) return rn_invalid_argument("input_b is not a TensorList at index %lld.", (long long)i);
  if (a->dtype != dtype)
    return rn_invalid_argument("input_a[%lld].dtype != element_dtype.  Saw: %s vs. %s",
                               (long long)i, rn_dtype_name(a->dtype), rn_dtype_name(dtype));
  if (b->dtype != dtype)
    return rn_invalid_argument("input_b[%lld].dtype != element_dtype.  Saw: %s vs. %s",
                               (long long)i, rn_dtype_name(b->dtype), rn_dtype_name(dtype));
  if (!rn_shape_eq(a->element_shape, b->element_shape))
    return rn_invalid_argument(
        "input_a and input_b TensorList element shapes are not identical at index %lld.  Saw %s "
        "vs. %s",
        (long long)i, rn_partial_text(a->element_shape).text,
        rn_partial_text(b->element_shape).text);
  RN_RETURN_IF_ERROR(rn_tensor_list_here(ctx, a, &a));
  RN_RETURN_IF_ERROR(rn_tensor_list_here(ctx, b, &b));
  rn_tensor_list_t* list = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_list_copy(a, &list));
  rn_status_t status = rn_tensor_list_resize(list, a->count + b->count);
  for (int64_t k = b->set_begin; rn_ok(status) && k < b->set_end; ++k) {
    if (!rn_tensor_list_has(b, k)) continue;
    rn_tensor_t item = {0};
    status = rn_tensor_share(&b->items[k], &item);
    if (rn_ok(status)) rn_tensor_list_set(list, a->count + k, &item);
  }
  if (!rn_ok(status))
    rn_tensor_list_release(list);
  else
    *out = &list->object;
  return status;
}

static rn_status_t concat_lists(rn_kernel_ctx_t* ctx) {
  const rn_tensor_t *a = rn_in(ctx, 0), *b = rn_in(ctx, 1);
  if (!rn_tensor_same_shape(a, b))
    return rn_invalid_argument("Shape of input_a and input_b must match.  Saw: %s vs. %s",
                               rn_text_of(a).text, rn_text_of(b).text);
  rn_tensor_t* out = NULL;
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(a), &out));
  for (int64_t i = 0; i < a->count; ++i)
    RN_RETURN_IF_ERROR(join_pair(ctx, i, &RN_DATA(out, rn_object_t*)[i]));
  return RN_OK;
}

#define LIST(name, flags_, function) \
  { .op = name, .device = "CPU", .flags = flags_, .compute = function }
#define TYPED(name, flags_, function)                                               \
  {                                                                                 \
    .op = name, .device = "CPU", .flags = flags_, .state_size = sizeof(rn_dtype_t), \
    .init = type_init, .compute = function                                          \
  }

static const rn_kernel_def_t rows[] = {
    TYPED("EmptyTensorList", 0, empty_list),
    TYPED("TensorListReserve", 0, reserve),
    LIST("TensorListPushBack", RN_KERNEL_KEEPS_INPUTS, push_back),
    LIST("TensorListPushBackBatch", RN_KERNEL_KEEPS_INPUTS, push_back_batch),
    LIST("TensorListPopBack", RN_KERNEL_OWN_OUTPUTS, pop_back),
    LIST("TensorListGetItem", RN_KERNEL_OWN_OUTPUTS, get_item),
    {.op = "TensorListSetItem",
     .device = "CPU",
     .flags = RN_KERNEL_KEEPS_INPUTS,
     .state_size = sizeof(setter_t),
     .init = setter_init,
     .compute = set_item},
    LIST("TensorListLength", 0, length),
    LIST("TensorListElementShape", 0, element_shape),
    LIST("TensorListResize", 0, resize),
    TYPED("TensorListConcatLists", 0, concat_lists),
};
RN_KERNEL_FAMILY(cpu_tensor_list, rows);
