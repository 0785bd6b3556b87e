// Lists whose items are in the memory of a device. A list goes to kernels of other devices as it
// is; the first of them that uses it makes a copy, which stays with the list.
#include <stdatomic.h>

#include "kernels/cpu/device_moves.h"
#include "kernels/cpu/list/tensor_list.h"
#include "tensor/variant.h"

static rn_device_t* home_of(const rn_kernel_ctx_t* ctx, rn_dtype_t dtype) {
  return rn_ctx_is_host(ctx, dtype) ? NULL : ctx->kernel->device;
}

rn_status_t rn_tensor_list_make(const rn_kernel_ctx_t* ctx, rn_dtype_t dtype,
                                rn_shape_t element_shape, int64_t limit, int64_t count,
                                rn_tensor_list_t** out) {
  RN_RETURN_IF_ERROR(
      rn_tensor_list_create(ctx->kernel->allocator, dtype, element_shape, limit, count, out));
  (*out)->device = home_of(ctx, dtype);
  return RN_OK;
}

void rn_tensor_list_forget_copies(rn_tensor_list_t* list) {
  rn_tensor_list_release(atomic_exchange(&list->elsewhere, NULL));
}

// One of the two is the host's memory.
static rn_status_t copy_item(const rn_tensor_t* item, const rn_tensor_list_t* from,
                             const rn_tensor_list_t* to, rn_tensor_t* out) {
  rn_allocator_t memory = to->device ? to->device->allocator : to->allocator;
  RN_RETURN_IF_ERROR(rn_tensor_create(memory, item->dtype, rn_tensor_shape(item), out));
  if (item->count == 0) return RN_OK;
  if (from->device)
    from->device->vtable->copy_to_host(from->device, item, out, NULL, NULL);
  else
    to->device->vtable->copy_from_host(to->device, item, out, NULL, NULL);
  return RN_OK;
}

static rn_status_t copy_items(const rn_tensor_list_t* list, rn_tensor_list_t* made) {
  for (int64_t i = list->set_begin; i < list->set_end; ++i) {
    if (!rn_tensor_list_has(list, i)) continue;
    rn_tensor_t item = {0};
    RN_RETURN_IF_ERROR(copy_item(&list->items[i], list, made, &item));
    rn_tensor_list_set(made, i, &item);
  }
  return RN_OK;
}

static rn_status_t copy_to(const rn_tensor_list_t* list, rn_device_t* device,
                           rn_tensor_list_t** out) {
  RN_RETURN_IF_ERROR(rn_tensor_list_create(list->allocator, list->dtype, list->element_shape,
                                           list->limit, list->count, out));
  (*out)->device = device;
  rn_status_t status = copy_items(list, *out);
  // The copies need both lists until they have ended.
  rn_status_t copied = rn_device_wait(list->device ? list->device : device);
  if (rn_ok(status))
    status = copied;
  else
    rn_status_free(copied);
  if (!rn_ok(status)) {
    rn_tensor_list_release(*out);
    *out = NULL;
  }
  return status;
}

// From one device to another through the host's memory.
rn_status_t rn_tensor_list_on(rn_tensor_list_t* list, rn_device_t* device, rn_tensor_list_t** out) {
  *out = list;
  if (list->device == device || !rn_dtype_is_plain(list->dtype)) return RN_OK;
  rn_tensor_list_t *there = atomic_load(&list->elsewhere), *none = NULL;
  if (!there) {
    RN_RETURN_IF_ERROR(copy_to(list, list->device ? NULL : device, &there));
    if (!atomic_compare_exchange_strong(&list->elsewhere, &none, there)) {
      rn_tensor_list_release(there);  // another thread was first
      there = none;
    }
  }
  return rn_tensor_list_on(there, device, out);
}

rn_status_t rn_tensor_list_here(const rn_kernel_ctx_t* ctx, rn_tensor_list_t* list,
                                rn_tensor_list_t** out) {
  return rn_tensor_list_on(list, home_of(ctx, list->dtype), out);
}

static rn_status_t items_to_host(rn_tensor_list_t* list, int depth) {
  for (int64_t i = list->set_begin; i < list->set_end; ++i)
    if (rn_tensor_list_has(list, i))
      RN_RETURN_IF_ERROR(rn_variants_to_host(&list->items[i], depth + 1));
  return RN_OK;
}

rn_status_t rn_tensor_list_to_host(rn_object_t* object, int depth, rn_object_t** out) {
  rn_tensor_list_t *list = (rn_tensor_list_t*)object, *there = NULL;
  if (list->dtype == RN_VARIANT) {
    RN_RETURN_IF_ERROR(rn_tensor_list_copy(list, &there));
    rn_status_t status = items_to_host(there, depth);
    if (!rn_ok(status)) rn_tensor_list_release(there);
    if (rn_ok(status)) *out = &there->object;
    return status;
  }
  RN_RETURN_IF_ERROR(rn_tensor_list_on(list, NULL, &there));
  if (there != list) *out = rn_object_retain(&there->object);
  return RN_OK;
}
