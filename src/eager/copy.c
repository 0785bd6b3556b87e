// Copies of values between the host and devices with their own memory.
#include "eager/internal.h"

// A copy that its device has yet to make. The caller and the device each hold a reference.
typedef struct copy_t {
  _Atomic int refs;
  _Atomic bool is_done;
  rn_tensor_t source, target;
  rn_status_t status;  // once done
} copy_t;

static void copy_release(copy_t* copy) {
  if (atomic_fetch_sub_explicit(&copy->refs, 1, memory_order_acq_rel) != 1) return;
  rn_tensor_clear(&copy->source);
  rn_tensor_clear(&copy->target);
  rn_status_free(copy->status);
  RN_FREE(rn_allocator_default(), copy);
}

static void on_copied(void* arg, rn_status_t status) {
  copy_t* copy = arg;
  copy->status = status;
  atomic_store_explicit(&copy->is_done, true, memory_order_release);
  copy_release(copy);
}

// Does not wait: later work of the device sees the bytes. An error that comes later is the
// device's, and the next wait for the device gets it.
static rn_status_t issue(copy_t* copy, rn_device_t* device) {
  copy->refs = 2;
  device->vtable->copy_from_host(device, &copy->source, &copy->target, on_copied, copy);
  bool is_done = atomic_load_explicit(&copy->is_done, memory_order_acquire);
  rn_status_t status = is_done ? rn_status_copy(copy->status) : RN_OK;
  copy_release(copy);
  return status;
}

rn_status_t rn_eager_upload(const rn_tensor_t* value, rn_device_t* device, rn_tensor_t* out) {
  copy_t* copy = NULL;
  RN_RETURN_IF_ERROR(
      rn_tensor_create(device->allocator, value->dtype, rn_tensor_shape(value), out));
  rn_status_t status = RN_NEW(rn_allocator_default(), &copy);
  if (rn_ok(status)) {
    copy->refs = 1;
    status = rn_tensor_keep(value, rn_allocator_default(), &copy->source);
    if (rn_ok(status)) status = rn_tensor_share(out, &copy->target);
    if (rn_ok(status))
      status = issue(copy, device);
    else
      copy_release(copy);
  }
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

static rn_status_t download(const rn_eager_handle_t* handle, rn_tensor_t* out) {
  const rn_tensor_t* tensor = &handle->tensor;
  rn_device_t* device = handle->memory;
  RN_RETURN_IF_ERROR(rn_device_host_tensor(device, rn_allocator_default(), tensor->dtype,
                                           rn_tensor_shape(tensor), out));
  device->vtable->copy_to_host(device, tensor, out, NULL, NULL);
  rn_status_t status = rn_device_wait(device);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

// The copy in host memory, which the handle keeps.
static rn_status_t host_copy(rn_eager_handle_t* handle, const rn_tensor_t** out) {
  rn_tensor_t *made = NULL, *found = atomic_load_explicit(&handle->host, memory_order_acquire);
  *out = found;
  if (found) return RN_OK;
  RN_RETURN_IF_ERROR(RN_NEW(handle->allocator, &made));
  rn_status_t status = download(handle, made);
  if (rn_ok(status) && atomic_compare_exchange_strong(&handle->host, &found, made)) {
    *out = made;
    return RN_OK;
  }
  // Another thread was faster, or the device failed.
  if (rn_ok(status)) rn_tensor_clear(made);
  RN_FREE(handle->allocator, made);
  *out = found;
  return status;
}

rn_status_t rn_eager_handle_value(rn_eager_handle_t* handle, const rn_tensor_t** out) {
  RN_RETURN_IF_ERROR(rn_eager_handle_tensor(handle, out));
  if (__builtin_expect(handle->special != NULL, 0))
    return rn_eager_handle_value(handle->special->parts[0], out);
  return handle->memory ? host_copy(handle, out) : RN_OK;
}

void rn_eager_copies_free(const rn_eager_kernel_t* kernel, rn_tensor_t* copies) {
  if (!copies) return;
  for (int32_t i = 0; i < kernel->input_count; ++i) rn_tensor_clear(&copies[i]);
  RN_FREE_ARRAY(kernel->allocator, copies, kernel->input_count);
}

rn_status_t rn_eager_move_inputs(const rn_eager_kernel_t* kernel, rn_eager_handle_t* const* handles,
                                 rn_tensor_t** out, rn_tensor_t** out_copies) {
  rn_tensor_t* copies = NULL;
  rn_status_t status = RN_OK;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(kernel->allocator, (size_t)kernel->input_count, &copies));
  for (int32_t i = 0; rn_ok(status) && i < kernel->input_count; ++i) {
    rn_device_t* wanted = kernel->inputs_far && kernel->inputs_far[i] ? kernel->device : NULL;
    // A function takes each value where it is.
    if (kernel->input_devices) wanted = kernel->input_devices[i];
    if (handles[i]->dtype == RN_RESOURCE) continue;
    const rn_tensor_t* value = out[i];
    if (handles[i]->memory == wanted) continue;
    status = rn_eager_handle_value(handles[i], &value);
    if (rn_ok(status) && wanted) {
      status = rn_eager_upload(value, wanted, &copies[i]);
      value = &copies[i];
    }
    out[i] = (rn_tensor_t*)(uintptr_t)value;  // kernels only read it
  }
  *out_copies = copies;
  if (rn_ok(status)) return RN_OK;
  rn_eager_copies_free(kernel, copies);
  *out_copies = NULL;
  return status;
}

rn_status_t rn_eager_move_outputs(const rn_eager_kernel_t* kernel, rn_tensor_t* outputs) {
  for (int32_t i = 0; i < kernel->output_count; ++i) {
    rn_tensor_t there = {0};
    if (!rn_eager_output_memory(kernel, i)) continue;
    RN_RETURN_IF_ERROR(rn_eager_upload(&outputs[i], kernel->device, &there));
    rn_tensor_clear(&outputs[i]);
    outputs[i] = there;
  }
  return RN_OK;
}
