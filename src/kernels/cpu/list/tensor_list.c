// See tensor_list.h.
#include "kernels/cpu/list/tensor_list.h"

#include <stdatomic.h>

static void free_shape(rn_tensor_list_t* list) {
  if (list->element_shape.rank > 0)
    RN_FREE_ARRAY(list->allocator, (int64_t*)(uintptr_t)list->element_shape.dims,
                  list->element_shape.rank);
  list->element_shape = RN_SHAPE_UNKNOWN;
}

static void list_destroy(rn_object_t* object) {
  rn_tensor_list_t* list = (rn_tensor_list_t*)object;
  rn_tensor_list_forget_copies(list);
  for (int64_t i = list->set_begin; i < list->set_end; ++i) rn_tensor_clear(&list->items[i]);
  RN_FREE_ARRAY(list->allocator, list->items, list->capacity);
  free_shape(list);
  RN_FREE(list->allocator, list);
}

void rn_tensor_list_release(rn_tensor_list_t* list) {
  if (list) rn_object_release(&list->object);
}

static rn_status_t grow(rn_tensor_list_t* list, int64_t count) {
  if (count <= list->capacity) return RN_OK;
  int64_t larger = list->capacity * 2 > count ? list->capacity * 2 : count;
  if (list->count && larger < 8) larger = 8;
  rn_tensor_t* items = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(list->allocator, (size_t)larger, &items));
  if (list->count) memcpy(items, list->items, (size_t)list->count * sizeof *items);
  RN_FREE_ARRAY(list->allocator, list->items, list->capacity);
  list->items = items;
  list->capacity = larger;
  return RN_OK;
}

static rn_status_t set_shape(rn_tensor_list_t* list, rn_shape_t shape) {
  int64_t* dims = NULL;
  if (shape.rank > 0) {
    RN_RETURN_IF_ERROR(RN_NEW_ARRAY(list->allocator, (size_t)shape.rank, &dims));
    memcpy(dims, shape.dims, (size_t)shape.rank * sizeof *dims);
  }
  free_shape(list);
  list->element_shape = (rn_shape_t){shape.rank, dims};
  return RN_OK;
}

rn_status_t rn_tensor_list_refine(rn_tensor_list_t* list, rn_shape_t element_shape) {
  if (rn_shape_eq(list->element_shape, element_shape) || !rn_shape_has_rank(element_shape))
    return RN_OK;
  rn_partial_shape_t merged;
  rn_partial_shape_set(&merged, list->element_shape);
  RN_RETURN_IF_ERROR(rn_partial_shape_merge(&merged, element_shape));
  return set_shape(list, merged.shape);
}

rn_status_t rn_tensor_list_create(rn_allocator_t allocator, rn_dtype_t dtype,
                                  rn_shape_t element_shape, int64_t limit, int64_t count,
                                  rn_tensor_list_t** out) {
  *out = NULL;
  rn_tensor_list_t* list = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &list));
  list->object = (rn_object_t){.refs = 1, .destroy = list_destroy};
  list->allocator = allocator;
  list->dtype = dtype;
  list->limit = limit;
  rn_status_t status = set_shape(list, element_shape);
  if (rn_ok(status)) status = grow(list, count);
  if (!rn_ok(status)) {
    rn_tensor_list_release(list);
    return status;
  }
  list->count = count;
  *out = list;
  return RN_OK;
}

rn_status_t rn_tensor_list_copy(const rn_tensor_list_t* list, rn_tensor_list_t** out) {
  RN_RETURN_IF_ERROR(rn_tensor_list_create(list->allocator, list->dtype, list->element_shape,
                                           list->limit, list->count, out));
  (*out)->device = list->device;
  rn_status_t status = RN_OK;
  for (int64_t i = list->set_begin; rn_ok(status) && i < list->set_end; ++i) {
    if (!rn_tensor_list_has(list, i)) continue;
    rn_tensor_t item = {0};
    status = rn_tensor_share(&list->items[i], &item);
    if (rn_ok(status)) rn_tensor_list_set(*out, i, &item);
  }
  if (!rn_ok(status)) {
    rn_tensor_list_release(*out);
    *out = NULL;
  }
  return status;
}

rn_status_t rn_tensor_list_resize(rn_tensor_list_t* list, int64_t count) {
  RN_RETURN_IF_ERROR(grow(list, count));
  for (int64_t i = count > list->set_begin ? count : list->set_begin; i < list->set_end; ++i)
    rn_tensor_clear(&list->items[i]);
  if (list->set_end > count) list->set_end = count;
  if (list->set_begin > list->set_end) list->set_begin = list->set_end;
  list->count = count;
  return RN_OK;
}

void rn_tensor_list_set(rn_tensor_list_t* list, int64_t i, rn_tensor_t* value) {
  rn_tensor_clear(&list->items[i]);
  list->items[i] = *value;
  *value = (rn_tensor_t){0};
  if (list->set_begin == list->set_end) {
    list->set_begin = i;
    list->set_end = i + 1;
  }
  if (i < list->set_begin) list->set_begin = i;
  if (i >= list->set_end) list->set_end = i + 1;
}

rn_tensor_list_t* rn_tensor_list_at(const rn_tensor_t* handles, int64_t i) {
  rn_object_t* object = RN_DATA(handles, rn_object_t*)[i];
  return object && object->destroy == list_destroy ? (rn_tensor_list_t*)object : NULL;
}

rn_status_t rn_tensor_list_in(const rn_kernel_ctx_t* ctx, int i, rn_tensor_list_t** out) {
  const rn_tensor_t* handle = rn_in(ctx, i);
  if (handle->rank != 0)
    return rn_invalid_argument("Input list must be a scalar saw: %s", rn_text_of(handle).text);
  *out = rn_tensor_list_at(handle, 0);
  return *out ? RN_OK : rn_invalid_argument("Input handle is not a list.");
}

rn_status_t rn_tensor_list_items_in(const rn_kernel_ctx_t* ctx, int i, rn_tensor_list_t** out) {
  RN_RETURN_IF_ERROR(rn_tensor_list_in(ctx, i, out));
  return rn_tensor_list_here(ctx, *out, out);
}

// Whether it can be changed in place: the output is the input's buffer, and nothing else refers to
// the list, which is no copy in another memory.
static bool is_own(const rn_kernel_ctx_t* ctx, int i, int o, const rn_tensor_list_t* list) {
  return ctx->out[o].data == rn_in(ctx, i)->data && rn_tensor_list_at(&ctx->out[o], 0) == list &&
         atomic_load_explicit(&list->object.refs, memory_order_acquire) == 1;
}

rn_status_t rn_tensor_list_to_change(rn_kernel_ctx_t* ctx, int i, int o, rn_tensor_list_t** list) {
  rn_tensor_t* tensor = NULL;
  RN_RETURN_IF_ERROR(rn_output_in_place(ctx, o, UINT64_C(1) << i, RN_SHAPE_SCALAR, &tensor));
  if (is_own(ctx, i, o, *list)) {
    rn_tensor_list_forget_copies(*list);
    return RN_OK;
  }
  rn_tensor_list_t* copy = NULL;
  RN_RETURN_IF_ERROR(rn_tensor_list_copy(*list, &copy));
  rn_object_t** element = RN_DATA(tensor, rn_object_t*);
  rn_object_release(*element);
  *element = &copy->object;
  *list = copy;
  return RN_OK;
}

rn_status_t rn_tensor_list_output(rn_kernel_ctx_t* ctx, int o, rn_tensor_list_t* list) {
  rn_tensor_t* tensor = NULL;
  rn_status_t status = rn_output(ctx, o, RN_SHAPE_SCALAR, &tensor);
  if (rn_ok(status))
    *RN_DATA(tensor, rn_object_t*) = &list->object;
  else
    rn_tensor_list_release(list);
  return status;
}

void rn_partial_shape_set(rn_partial_shape_t* partial, rn_shape_t shape) {
  partial->shape = (rn_shape_t){shape.rank, partial->dims};
  for (int32_t d = 0; d < shape.rank; ++d) partial->dims[d] = shape.dims[d];
}

rn_shape_text_t rn_partial_text(rn_shape_t shape) {
  rn_shape_text_t text = rn_shape_text(shape);
  if (!rn_shape_has_rank(shape)) memcpy(text.text, "<unknown>", sizeof "<unknown>");
  return text;
}

rn_status_t rn_partial_shape_merge(rn_partial_shape_t* partial, rn_shape_t shape) {
  if (!rn_shape_has_rank(shape)) return RN_OK;
  if (!rn_shape_has_rank(partial->shape)) {
    rn_partial_shape_set(partial, shape);
    return RN_OK;
  }
  if (partial->shape.rank != shape.rank)
    return rn_invalid_argument("PartialTensorShape: Incompatible ranks during merge: %d vs. %d",
                               partial->shape.rank, shape.rank);
  if (!rn_shape_compatible(partial->shape, shape))
    return rn_invalid_argument("PartialTensorShape: Incompatible shapes during merge: %s vs. %s",
                               rn_partial_text(partial->shape).text, rn_partial_text(shape).text);
  for (int32_t d = 0; d < shape.rank; ++d)
    if (partial->dims[d] == RN_UNKNOWN) partial->dims[d] = shape.dims[d];
  return RN_OK;
}

rn_status_t rn_partial_shape_read(const rn_tensor_t* sizes, rn_partial_shape_t* out) {
  rn_partial_shape_set(out, RN_SHAPE_UNKNOWN);
  if (sizes->rank == 0)
    return rn_int_at(sizes, 0) == RN_UNKNOWN
               ? RN_OK
               : rn_invalid_argument(
                     "The only valid scalar shape tensor is the fully unknown shape specified as "
                     "-1.");
  if (sizes->rank > 1)
    return rn_invalid_argument("Shape must be at most rank 1 but is rank %d", sizes->rank);
  if (sizes->count > RN_MAX_RANK)
    return rn_invalid_argument("The rank of a list's elements is too large: %lld",
                               (long long)sizes->count);
  for (int64_t d = 0; d < sizes->count; ++d) {
    out->dims[d] = rn_int_at(sizes, d);
    if (out->dims[d] < RN_UNKNOWN)
      return rn_invalid_argument("Dimension %lld must be >= -1", (long long)out->dims[d]);
  }
  out->shape = (rn_shape_t){(int32_t)sizes->count, out->dims};
  return RN_OK;
}

rn_status_t rn_tensor_list_shape_in(const rn_kernel_ctx_t* ctx, int i, const rn_tensor_list_t* list,
                                    rn_partial_shape_t* out) {
  RN_RETURN_IF_ERROR(rn_partial_shape_read(rn_in(ctx, i), out));
  return rn_partial_shape_merge(out, list->element_shape);
}

rn_status_t rn_tensor_list_check_read(const rn_kernel_ctx_t* ctx, const rn_tensor_list_t* list,
                                      int o) {
  rn_dtype_t dtype = rn_dtype_base(ctx->kernel->output_types[o]);
  if (list->dtype == dtype) return RN_OK;
  return rn_invalid_argument("Invalid data types; op elements %s but list elements %s",
                             rn_dtype_name(dtype), rn_dtype_name(list->dtype));
}
