// What every device can do by its functions: see device.h.
#include "device/device.h"

#include "base/str.h"
#include "base/sync.h"

// From here on, it matters for the speed of a copy where the bytes are in host memory.
#define LARGE ((size_t)64 << 10)

typedef struct device_wait_t {
  rn_mutex_t mutex;
  rn_cond_t changed;
  bool is_done;
  rn_status_t status;
} device_wait_t;

static void on_synced(void* arg, rn_status_t status) {
  device_wait_t* wait = arg;
  rn_mutex_lock(&wait->mutex);
  wait->status = status;
  wait->is_done = true;
  rn_cond_signal(&wait->changed);
  rn_mutex_unlock(&wait->mutex);
}

rn_status_t rn_device_wait(rn_device_t* device) {
  if (device->is_host) return RN_OK;
  if (device->vtable->wait) return device->vtable->wait(device);
  device_wait_t wait = {.is_done = false};
  rn_mutex_init(&wait.mutex);
  rn_cond_init(&wait.changed);
  device->vtable->sync(device, on_synced, &wait);
  rn_mutex_lock(&wait.mutex);
  while (!wait.is_done) rn_cond_wait(&wait.changed, &wait.mutex);
  rn_mutex_unlock(&wait.mutex);
  rn_cond_destroy(&wait.changed);
  rn_mutex_destroy(&wait.mutex);
  return wait.status;
}

rn_status_t rn_device_copy(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target) {
  if (!device->is_host) return device->vtable->copy(device, source, target);
  if (target->data != source->data) memmove(target->data, source->data, rn_tensor_bytes(source));
  return RN_OK;
}

rn_status_t rn_device_duplicate(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* out) {
  if (device->is_host) return rn_tensor_copy(source, device->allocator, out);
  RN_RETURN_IF_ERROR(
      rn_tensor_create(device->kernel_memory, source->dtype, rn_tensor_shape(source), out));
  rn_status_t status = device->vtable->copy(device, source, out);
  if (!rn_ok(status)) rn_tensor_clear(out);
  return status;
}

rn_status_t rn_device_host_tensor(const rn_device_t* device, rn_allocator_t host, rn_dtype_t dtype,
                                  rn_shape_t shape, rn_tensor_t* out) {
  int64_t count;
  if (device->transfer_memory.fn && rn_dtype_is_plain(dtype) && rn_shape_count(shape, &count) &&
      count >= (int64_t)(LARGE / rn_dtype_size(dtype))) {
    rn_status_t status = rn_tensor_create(device->transfer_memory, dtype, shape, out);
    if (rn_ok(status)) return status;
    rn_status_free(status);
  }
  return rn_tensor_create(host, dtype, shape, out);
}

void rn_device_add_idle(rn_device_t* device, rn_idle_memory_t* idle) {
  rn_mutex_lock(&device->idle_mutex);
  idle->next = device->idle;
  device->idle = idle;
  rn_mutex_unlock(&device->idle_mutex);
}

void rn_device_remove_idle(rn_device_t* device, rn_idle_memory_t* idle) {
  rn_mutex_lock(&device->idle_mutex);
  rn_idle_memory_t** at = &device->idle;
  while (*at && *at != idle) at = &(*at)->next;
  if (*at) *at = idle->next;
  rn_mutex_unlock(&device->idle_mutex);
}

void rn_device_drop_idle(rn_device_t* device, bool is_urgent) {
  rn_mutex_lock(&device->idle_mutex);
  for (rn_idle_memory_t* idle = device->idle; idle; idle = idle->next) idle->drop(idle, is_urgent);
  rn_mutex_unlock(&device->idle_mutex);
}

rn_status_t rn_device_explain(rn_device_t* device, rn_status_t status) {
  if (rn_status_code(status) != RN_CODE_RESOURCE_EXHAUSTED || !device->vtable->explain_memory)
    return status;
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_system());
  device->vtable->explain_memory(device, &text);
  if (text.size && !text.failed)
    status = rn_status_annotate(status, "\nMemory of %.*s:\n%.*s", RN_STR_ARGS(device->name),
                                (int)text.size, text.data);
  rn_strbuf_clear(&text);
  return status;
}
