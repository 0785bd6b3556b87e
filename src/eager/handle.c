// Handles of tensors.
#include "base/assert.h"
#include "eager/internal.h"

#define CPU_NAME "/job:localhost/replica:0/task:0/device:CPU:0"

void rn_eager_sync_retain(rn_eager_sync_t* sync) {
  atomic_fetch_add_explicit(&sync->refs, 1, memory_order_relaxed);
}

void rn_eager_sync_release(rn_eager_sync_t* sync) {
  if (!sync || atomic_fetch_sub_explicit(&sync->refs, 1, memory_order_acq_rel) != 1) return;
  rn_cond_destroy(&sync->done);
  rn_mutex_destroy(&sync->mutex);
  RN_FREE(sync->allocator, sync);
}

rn_status_t rn_eager_handle_new(rn_eager_t* eager, rn_device_t* device, rn_dtype_t dtype,
                                rn_eager_sync_t* sync, rn_eager_handle_t** out) {
  rn_allocator_t allocator = rn_allocator_default();
  rn_eager_handle_t* handle = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_alloc(allocator, sizeof *handle, (void**)&handle));
  // A value on the first CPU need not retain its context while that CPU has its default name.
  bool is_usual = eager && device == eager->cpu && eager->old_names.count == 0;
  bool is_first_cpu = !eager || !device || is_usual;
  *handle = (rn_eager_handle_t){.refs = 1,
                                .state = sync ? RN_HANDLE_PENDING : RN_HANDLE_READY,
                                .dtype = dtype,
                                .allocator = allocator,
                                .device = is_first_cpu ? NULL : device,
                                .eager = is_first_cpu ? NULL : eager,
                                .sync = sync};
  if (!is_first_cpu) rn_eager_retain(eager);
  if (sync) rn_eager_sync_retain(sync);
  *out = handle;
  return RN_OK;
}

rn_status_t rn_eager_handle_create(const rn_tensor_t* tensor, rn_eager_handle_t** out) {
  RN_RETURN_IF_ERROR(rn_eager_handle_new(NULL, NULL, tensor->dtype, NULL, out));
  rn_status_t status = rn_tensor_keep(tensor, rn_allocator_default(), &(*out)->tensor);
  if (!rn_ok(status)) {
    (*out)->tensor = (rn_tensor_t){0};
    rn_eager_handle_release(*out);
    *out = NULL;
  }
  return status;
}

rn_status_t rn_eager_handle_over(const rn_tensor_t* tensor, rn_eager_t* eager, rn_device_t* device,
                                 rn_eager_handle_t** out) {
  RN_RETURN_IF_ERROR(rn_eager_handle_new(eager, device, tensor->dtype, NULL, out));
  if (!device->is_host) (*out)->memory = device;
  rn_status_t status = rn_tensor_share(tensor, &(*out)->tensor);
  if (!rn_ok(status)) {
    (*out)->tensor = (rn_tensor_t){0};
    rn_eager_handle_release(*out);
    *out = NULL;
  }
  return status;
}

void rn_eager_handle_retain(rn_eager_handle_t* handle) {
  atomic_fetch_add_explicit(&handle->refs, 1, memory_order_relaxed);
}

void rn_eager_handle_release(rn_eager_handle_t* handle) {
  if (!handle || atomic_fetch_sub_explicit(&handle->refs, 1, memory_order_acq_rel) != 1) return;
  rn_tensor_clear(&handle->tensor);
  if (handle->host) {
    rn_tensor_clear(handle->host);
    RN_FREE(handle->allocator, handle->host);
  }
  rn_status_free(handle->status);
  if (handle->sync) rn_eager_sync_release(handle->sync);
  if (handle->special) rn_eager_special_destroy(handle->special);
  if (handle->eager) rn_eager_release(handle->eager);
  RN_FREE(handle->allocator, handle);
}

rn_dtype_t rn_eager_handle_dtype(const rn_eager_handle_t* handle) { return handle->dtype; }

void rn_eager_handle_settle(rn_eager_handle_t* handle, rn_tensor_t* value, rn_status_t status) {
  rn_mutex_lock(&handle->sync->mutex);
  RN_ASSERT(handle->state == RN_HANDLE_PENDING);  // a handle is settled once
  if (rn_ok(status)) {
    handle->tensor = *value;
    *value = (rn_tensor_t){0};
  } else {
    handle->status = rn_status_copy(status);
  }
  atomic_store_explicit(&handle->state, rn_ok(status) ? RN_HANDLE_READY : RN_HANDLE_FAILED,
                        memory_order_release);
  rn_cond_broadcast(&handle->sync->done);
  rn_mutex_unlock(&handle->sync->mutex);
}

static uint8_t wait_for(rn_eager_handle_t* handle) {
  uint8_t state = atomic_load_explicit(&handle->state, memory_order_acquire);
  if (__builtin_expect(state == RN_HANDLE_PENDING, 0)) {
    rn_mutex_lock(&handle->sync->mutex);
    while (handle->state == RN_HANDLE_PENDING)
      rn_cond_wait(&handle->sync->done, &handle->sync->mutex);
    state = handle->state;
    rn_mutex_unlock(&handle->sync->mutex);
  }
  return state;
}

rn_status_t rn_eager_handle_wait(rn_eager_handle_t* handle) {
  uint8_t state = wait_for(handle);
  return state == RN_HANDLE_READY ? RN_OK : rn_status_copy(handle->status);
}

rn_status_t rn_eager_handle_tensor(rn_eager_handle_t* handle, const rn_tensor_t** out) {
  uint8_t state = wait_for(handle);
  *out = &handle->tensor;
  if (__builtin_expect(handle->special != NULL, 0)) {
    if (state != RN_HANDLE_READY) return rn_status_copy(handle->status);
    if (handle->special->part_count) return rn_eager_handle_tensor(handle->special->parts[0], out);
    return rn_unimplemented("A value of the custom device %s is not the host's to read",
                            handle->special->device->name);
  }
  return state == RN_HANDLE_READY ? RN_OK : rn_status_copy(handle->status);
}

rn_status_t rn_eager_handle_status(rn_eager_handle_t* handle) {
  bool failed = atomic_load_explicit(&handle->state, memory_order_acquire) == RN_HANDLE_FAILED;
  return failed ? rn_status_copy(handle->status) : RN_OK;
}

// The device name of packed handles.
#define PACKED_NAME "/job:localhost/replica:0/task:0/device:COMPOSITE:0"

// Settling a value of a custom device may change its device.
static void wait_for_device(const rn_eager_handle_t* handle) {
  if (handle->special) wait_for((rn_eager_handle_t*)(uintptr_t)handle);
}

const char* rn_eager_handle_device(const rn_eager_handle_t* handle) {
  wait_for_device(handle);
  if (handle->special) return handle->special->device ? handle->special->device->name : PACKED_NAME;
  return handle->device ? handle->device->name.data : CPU_NAME;
}

const rn_device_t* rn_eager_handle_own_device(const rn_eager_handle_t* handle,
                                              const rn_eager_t* eager) {
  return handle->device ? handle->device : eager->cpu;
}

const char* rn_eager_handle_device_type(const rn_eager_handle_t* handle) {
  wait_for_device(handle);
  if (handle->special) return handle->special->device ? handle->special->device->type : "COMPOSITE";
  return handle->device ? handle->device->type : "CPU";
}

const char* rn_eager_handle_backing_device(const rn_eager_handle_t* handle) {
  if (handle->special) return rn_eager_handle_device(handle);
  if (handle->memory) return handle->memory->name.data;
  return handle->device && handle->device->is_host ? handle->device->name.data : CPU_NAME;
}

rn_status_t rn_eager_handle_copy_to(rn_eager_handle_t* handle, rn_eager_t* eager,
                                    rn_device_t* device, rn_eager_handle_t** out) {
  *out = NULL;
  if ((handle->device ? handle->device : eager->cpu) == device) {
    rn_eager_handle_retain(handle);
    *out = handle;
    return RN_OK;
  }
  const rn_tensor_t* value = NULL;
  RN_RETURN_IF_ERROR(rn_eager_handle_value(handle, &value));
  RN_RETURN_IF_ERROR(rn_eager_handle_new(eager, device, handle->dtype, NULL, out));
  bool is_far = !device->is_host && rn_dtype_is_plain(handle->dtype);
  if (is_far) (*out)->memory = device;
  rn_status_t status = is_far ? rn_eager_upload(value, device, &(*out)->tensor)
                              : rn_tensor_share(value, &(*out)->tensor);
  if (!rn_ok(status)) {
    (*out)->tensor = (rn_tensor_t){0};
    rn_eager_handle_release(*out);
    *out = NULL;
  }
  return status;
}
