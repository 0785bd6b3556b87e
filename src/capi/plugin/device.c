// A session's device on a card of a plug-in: copies and waits. See platform.h.
//
// All work goes to the card's one stream. A copy reads and writes host memory while it runs, so
// that memory is held until the copy has ended: by the thread that calls |done|, or, if nobody
// asked to be told, until the next wait or sync.
#include <stdio.h>

#include "base/vec.h"
#include "capi/plugin/platform.h"

// Host tensors of copies, Retained.
typedef struct held_t {
  RN_VEC(rn_tensor_t) tensors;
} held_t;

// The end of work that a callback reports. A thread of the device takes them in
// order; it starts with the first. The plug-in's own threads are not used, because a callback
// continues the step and may wait for the device.
typedef struct plugged_end_t {
  struct plugged_end_t* next;
  SP_Event event;
  rn_device_done_t done;
  void* arg;
  bool is_sync;  // reports what went wrong before it, too
  held_t held;
} plugged_end_t;

typedef struct plugged_device_t {
  rn_device_t base;  // first
  rn_allocator_t allocator;
  rn_plugin_card_t* card;
  char description[160];
  rn_mutex_t mutex;  // guards all below
  rn_cond_t changed;
  plugged_end_t *first, *last;
  bool is_stopping, has_thread;
  pthread_t thread;
  held_t held;        // of copies without a callback
  rn_status_t error;  // the first since the last sync or wait
} plugged_device_t;

static const SP_StreamExecutor* executor_of(const plugged_device_t* own) {
  return &own->card->platform->executor;
}

static void held_clear(held_t* held, rn_allocator_t allocator) {
  for (size_t i = 0; i < held->tensors.count; ++i) rn_tensor_clear(&held->tensors.items[i]);
  rn_vec_free(&held->tensors, allocator);
  *held = (held_t){0};
}

static void note(plugged_device_t* own, rn_status_t status) {
  if (rn_ok(status)) return;
  rn_mutex_lock(&own->mutex);
  own->error = rn_status_join(own->error, status);
  rn_mutex_unlock(&own->mutex);
}

static rn_status_t take_error(plugged_device_t* own, rn_status_t status) {
  rn_mutex_lock(&own->mutex);
  status = rn_status_join(own->error, status);
  own->error = RN_OK;
  rn_mutex_unlock(&own->mutex);
  return status;
}

static held_t take_held(plugged_device_t* own) {
  rn_mutex_lock(&own->mutex);
  held_t held = own->held;
  own->held = (held_t){0};
  rn_mutex_unlock(&own->mutex);
  return held;
}

// --- Callbacks

static rn_status_t await(plugged_device_t* own, SP_Event event) {
  const SP_StreamExecutor* se = executor_of(own);
  const SP_Device* device = &own->card->device;
  rn_status_t status = RN_PLUGIN_CALL(se->block_host_for_event, device, event);
  if (rn_ok(status) && se->get_event_status(device, event) == SE_EVENT_ERROR)
    status = rn_internal("Unexpected Event status: %d", (int)SE_EVENT_ERROR);
  return status;
}

static void end_free(plugged_device_t* own, plugged_end_t* end) {
  if (end->event) executor_of(own)->destroy_event(&own->card->device, end->event);
  held_clear(&end->held, own->allocator);
  RN_FREE(own->allocator, end);
}

static void finish(plugged_device_t* own, plugged_end_t* end) {
  rn_status_t status = await(own, end->event);
  rn_device_done_t done = end->done;
  void* arg = end->arg;
  if (end->is_sync) status = take_error(own, status);
  end_free(own, end);
  done(arg, status);
}

static void* thread_main(void* arg) {
  plugged_device_t* own = arg;
  rn_mutex_lock(&own->mutex);
  for (;;) {
    while (!own->first && !own->is_stopping) rn_cond_wait(&own->changed, &own->mutex);
    plugged_end_t* end = own->first;
    if (!end) break;
    own->first = end->next;
    if (!own->first) own->last = NULL;
    rn_mutex_unlock(&own->mutex);
    finish(own, end);
    rn_mutex_lock(&own->mutex);
  }
  rn_mutex_unlock(&own->mutex);
  return NULL;
}

static rn_status_t append(plugged_device_t* own, plugged_end_t* end) {
  rn_mutex_lock(&own->mutex);
  if (!own->has_thread) own->has_thread = pthread_create(&own->thread, NULL, thread_main, own) == 0;
  bool ok = own->has_thread;
  if (ok) {
    if (own->last)
      own->last->next = end;
    else
      own->first = end;
    own->last = end;
    rn_cond_signal(&own->changed);
  }
  rn_mutex_unlock(&own->mutex);
  return ok ? RN_OK
            : rn_resource_exhausted("The thread of %.*s could not be started",
                                    RN_STR_ARGS(own->base.name));
}

// Calls |done| when the work issued so far has ended. Takes |end|.
static void call_after(plugged_device_t* own, plugged_end_t* end) {
  const SP_StreamExecutor* se = executor_of(own);
  rn_plugin_card_t* card = own->card;
  rn_status_t status = RN_PLUGIN_CALL(se->create_event, &card->device, &end->event);
  if (rn_ok(status))
    status = RN_PLUGIN_CALL(se->record_event, &card->device, card->stream, end->event);
  if (rn_ok(status)) status = append(own, end);
  if (rn_ok(status)) return;
  rn_device_done_t done = end->done;
  void* arg = end->arg;
  // Work that uses the held memory may be under way.
  status = rn_status_join(status, rn_plugin_card_wait(card));
  if (end->is_sync) status = take_error(own, status);
  end_free(own, end);
  done(arg, status);
}

// --- Copies

// Holds |tensor| until the copy of it ends: in |end|, or for the next wait. The host memory of a
// tensor without a buffer cannot be held; |tensor| must then not be given.
static rn_status_t hold(plugged_device_t* own, plugged_end_t* end, const rn_tensor_t* tensor) {
  rn_tensor_t shared = {0};
  RN_RETURN_IF_ERROR(rn_tensor_share(tensor, &shared));
  rn_status_t status;
  if (end) {
    status = rn_vec_push(&end->held.tensors, own->allocator, shared);
  } else {
    rn_mutex_lock(&own->mutex);
    status = rn_vec_push(&own->held.tensors, own->allocator, shared);
    rn_mutex_unlock(&own->mutex);
  }
  if (!rn_ok(status)) rn_tensor_clear(&shared);
  return status;
}

static rn_status_t issue_to_host(plugged_device_t* own, plugged_end_t* end,
                                 const rn_tensor_t* source, rn_tensor_t* target) {
  rn_plugin_card_t* card = own->card;
  size_t size = rn_tensor_bytes(source);
  if (!size) return RN_OK;
  if (target->buffer) RN_RETURN_IF_ERROR(hold(own, end, target));
  if (end) RN_RETURN_IF_ERROR(hold(own, end, source));
  SP_DeviceMemoryBase from = rn_plugin_memory(source->data, size);
  RN_RETURN_IF_ERROR(RN_PLUGIN_CALL(executor_of(own)->memcpy_dtoh, &card->device, card->stream,
                                    target->data, &from, size));
  return target->buffer ? RN_OK : rn_plugin_card_wait(card);
}

static rn_status_t issue_from_host(plugged_device_t* own, plugged_end_t* end,
                                   const rn_tensor_t* source, rn_tensor_t* target) {
  rn_plugin_card_t* card = own->card;
  size_t size = rn_tensor_bytes(source);
  if (!size) return RN_OK;
  if (source->buffer) RN_RETURN_IF_ERROR(hold(own, end, source));
  SP_DeviceMemoryBase to = rn_plugin_memory(target->data, size);
  RN_RETURN_IF_ERROR(RN_PLUGIN_CALL(executor_of(own)->memcpy_htod, &card->device, card->stream, &to,
                                    source->data, size));
  return source->buffer ? RN_OK : rn_plugin_card_wait(card);
}

typedef rn_status_t (*plugged_copy_t)(plugged_device_t* own, plugged_end_t* end,
                                      const rn_tensor_t* source, rn_tensor_t* target);

static void copy_then(rn_device_t* device, plugged_copy_t copy, const rn_tensor_t* source,
                      rn_tensor_t* target, rn_device_done_t done, void* arg) {
  plugged_device_t* own = (plugged_device_t*)device;
  if (!done) {
    note(own, copy(own, NULL, source, target));
    return;
  }
  plugged_end_t* end = NULL;
  rn_status_t status = RN_NEW(own->allocator, &end);
  if (rn_ok(status)) {
    *end = (plugged_end_t){.done = done, .arg = arg};
    status = copy(own, end, source, target);
    if (rn_ok(status)) {
      call_after(own, end);
      return;
    }
    end_free(own, end);
  }
  done(arg, status);
}

static void plugged_to_host(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target,
                            rn_device_done_t done, void* arg) {
  copy_then(device, issue_to_host, source, target, done, arg);
}

static void plugged_from_host(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target,
                              rn_device_done_t done, void* arg) {
  copy_then(device, issue_from_host, source, target, done, arg);
}

// Through host memory, for plug-ins that cannot copy within a device.
static rn_status_t copy_through_host(plugged_device_t* own, const rn_tensor_t* source,
                                     rn_tensor_t* target) {
  rn_tensor_t between = {0};
  RN_RETURN_IF_ERROR(
      rn_tensor_create(own->base.host_memory, source->dtype, rn_tensor_shape(source), &between));
  rn_status_t status = issue_to_host(own, NULL, source, &between);
  if (rn_ok(status)) status = issue_from_host(own, NULL, &between, target);
  rn_tensor_clear(&between);  // held meanwhile
  return status;
}

static rn_status_t plugged_copy(rn_device_t* device, const rn_tensor_t* source,
                                rn_tensor_t* target) {
  plugged_device_t* own = (plugged_device_t*)device;
  rn_plugin_card_t* card = own->card;
  size_t size = rn_tensor_bytes(source);
  if (!size || source->data == target->data) return RN_OK;
  if (!executor_of(own)->memcpy_dtod) return copy_through_host(own, source, target);
  SP_DeviceMemoryBase from = rn_plugin_memory(source->data, size);
  SP_DeviceMemoryBase to = rn_plugin_memory(target->data, size);
  return RN_PLUGIN_CALL(executor_of(own)->memcpy_dtod, &card->device, card->stream, &to, &from,
                        size);
}

// --- Filling

// Copies |count| elements like |value| from host memory.
static rn_status_t fill_from_host(plugged_device_t* own, const void* value, size_t size, void* to,
                                  int64_t count) {
  size_t bytes;
  if (!rn_mul_ok(size, (size_t)count, &bytes)) return rn_out_of_memory();
  const int64_t dims[] = {(int64_t)bytes};
  const rn_shape_t shape = {.rank = 1, .dims = dims};
  rn_tensor_t elements = {0};
  RN_RETURN_IF_ERROR(rn_tensor_create(own->base.host_memory, RN_UINT8, shape, &elements));
  for (int64_t i = 0; i < count; ++i) memcpy((char*)elements.data + (size_t)i * size, value, size);
  rn_tensor_t target = elements;
  target.data = to;
  rn_status_t status = issue_from_host(own, NULL, &elements, &target);
  rn_tensor_clear(&elements);  // held meanwhile
  return status;
}

static bool is_one_byte(const unsigned char* value, size_t size) {
  for (size_t i = 1; i < size; ++i)
    if (value[i] != value[0]) return false;
  return true;
}

static rn_status_t fill_with(plugged_device_t* own, const void* value, size_t size, void* to,
                             int64_t count) {
  const SP_StreamExecutor* se = executor_of(own);
  rn_plugin_card_t* card = own->card;
  const unsigned char first = *(const unsigned char*)value;
  size_t bytes;
  if (!rn_mul_ok(size, (size_t)count, &bytes)) return rn_out_of_memory();
  SP_DeviceMemoryBase memory = rn_plugin_memory(to, bytes);
  if (is_one_byte(value, size) && first == 0)
    return RN_PLUGIN_CALL(se->mem_zero, &card->device, card->stream, &memory, bytes);
  if (is_one_byte(value, size))
    return RN_PLUGIN_CALL(se->memset, &card->device, card->stream, &memory, first, bytes);
  if (size != sizeof(uint32_t)) return fill_from_host(own, value, size, to, count);
  uint32_t pattern;
  memcpy(&pattern, value, sizeof pattern);
  return RN_PLUGIN_CALL(se->memset32, &card->device, card->stream, &memory, pattern, bytes);
}

static rn_status_t plugged_fill(rn_device_t* device, const void* value, bool is_host_value,
                                size_t size, void* to, int64_t count) {
  plugged_device_t* own = (plugged_device_t*)device;
  char copy[64];
  if (count <= 0 || size == 0) return RN_OK;
  if (is_host_value) return fill_with(own, value, size, to, count);
  if (size > sizeof copy) return rn_unimplemented("A fill with elements of %zu bytes", size);
  rn_plugin_card_t* card = own->card;
  SP_DeviceMemoryBase from = rn_plugin_memory((void*)(uintptr_t)value, size);
  RN_RETURN_IF_ERROR(RN_PLUGIN_CALL(executor_of(own)->memcpy_dtoh, &card->device, card->stream,
                                    copy, &from, size));
  RN_RETURN_IF_ERROR(rn_plugin_card_wait(card));
  return fill_with(own, copy, size, to, count);
}

// --- Waiting

static void plugged_sync(rn_device_t* device, rn_device_done_t done, void* arg) {
  plugged_device_t* own = (plugged_device_t*)device;
  plugged_end_t* end = NULL;
  rn_status_t status = RN_NEW(own->allocator, &end);
  if (!rn_ok(status)) {
    done(arg, take_error(own, rn_status_join(status, rn_plugin_card_wait(own->card))));
    return;
  }
  *end = (plugged_end_t){.done = done, .arg = arg, .is_sync = true, .held = take_held(own)};
  call_after(own, end);
}

static rn_status_t plugged_wait(rn_device_t* device) {
  plugged_device_t* own = (plugged_device_t*)device;
  held_t held = take_held(own);
  rn_status_t status = rn_plugin_card_wait(own->card);
  held_clear(&held, own->allocator);
  return take_error(own, status);
}

// --- Memory

static void plugged_trim(rn_device_t* device) {
  rn_plugin_card_t* card = ((plugged_device_t*)device)->card;
  if (card->memory) rn_cuda_memory_trim(card->memory);
  rn_cuda_memory_trim(card->host);
}

static void plugged_memory_use(rn_device_t* device, rn_device_memory_t* out) {
  plugged_device_t* own = (plugged_device_t*)device;
  *out = (rn_device_memory_t){0};
  if (own->card->memory) {
    rn_cuda_memory_stats_t stats;
    rn_cuda_memory_stats(own->card->memory, &stats);
    *out = (rn_device_memory_t){(int64_t)stats.bytes_in_use, (int64_t)stats.peak_bytes_in_use};
    return;
  }
  SP_AllocatorStats stats = {.struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE};
  if (executor_of(own)->get_allocator_stats(&own->card->device, &stats))
    *out = (rn_device_memory_t){stats.bytes_in_use, stats.peak_bytes_in_use};
}

static void plugged_explain(rn_device_t* device, rn_strbuf_t* out) {
  rn_cuda_memory_t* memory = ((plugged_device_t*)device)->card->memory;
  if (memory && rn_cuda_memory_was_short(memory)) rn_cuda_memory_describe(memory, out);
}

// --- Making

static void plugged_destroy(rn_device_t* device) {
  plugged_device_t* own = (plugged_device_t*)device;
  rn_mutex_lock(&own->mutex);
  own->is_stopping = true;
  rn_cond_signal(&own->changed);
  rn_mutex_unlock(&own->mutex);
  if (own->has_thread) pthread_join(own->thread, NULL);
  rn_status_free(plugged_wait(device));
  rn_resources_destroy(own->base.resources);
  if (own->base.name.data)
    rn_free(own->allocator, (char*)own->base.name.data, own->base.name.size + 1);
  rn_cond_destroy(&own->changed);
  rn_mutex_destroy(&own->mutex);
  RN_FREE(own->allocator, own);
}

static const rn_device_vtable_t plugged_vtable = {.destroy = plugged_destroy,
                                                  .copy_to_host = plugged_to_host,
                                                  .copy_from_host = plugged_from_host,
                                                  .copy = plugged_copy,
                                                  .fill = plugged_fill,
                                                  .sync = plugged_sync,
                                                  .wait = plugged_wait,
                                                  .trim = plugged_trim,
                                                  .memory_use = plugged_memory_use,
                                                  .explain_memory = plugged_explain};

rn_plugin_card_t* rn_plugin_card_of(const rn_device_t* device) {
  return device->vtable == &plugged_vtable ? ((const plugged_device_t*)device)->card : NULL;
}

rn_status_t rn_plugin_device_create(rn_plugin_card_t* card, const rn_part_init_t* init, int index,
                                    rn_device_t** out) {
  plugged_device_t* own = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(init->allocator, &own));
  const rn_plugin_platform_t* platform = card->platform;
  own->allocator = init->allocator;
  own->card = card;
  rn_mutex_init(&own->mutex);
  rn_cond_init(&own->changed);
  own->base = (rn_device_t){.vtable = &plugged_vtable,
                            .idle_mutex = RN_MUTEX_INIT,
                            .type = platform->type,
                            .index = index,
                            .is_preferred = true,
                            .memory_limit = card->memory ? card->memory_limit : 0,
                            .incarnation = init->env->random(init->env->self) | 1,
                            .description = own->description,
                            .allocator = rn_plugin_card_allocator(card),
                            .kernel_memory = rn_plugin_card_allocator(card),
                            .host_memory = rn_cuda_memory_allocator(card->host),
                            .has_handles = !card->memory};
  own->base.host_memory.is_far = false;
  snprintf(own->description, sizeof own->description,
           "device: %d, name: %s, pci bus id: <undefined>", card->ordinal, platform->name);
  rn_status_t status =
      rn_device_name(init->allocator, init->name_prefix, platform->type, index, &own->base.name);
  if (rn_ok(status)) status = rn_resources_create(init->allocator, &own->base.resources);
  if (!rn_ok(status)) {
    plugged_destroy(&own->base);
    return status;
  }
  *out = &own->base;
  return RN_OK;
}
