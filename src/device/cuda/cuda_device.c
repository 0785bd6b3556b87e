// GPUs: see cuda_device.h.
#include "device/cuda/cuda_device.h"

#include <stdio.h>

#include "base/log.h"
#include "device/cuda/copies.h"
#include "device/cuda/recording.h"
#include "device/cuda/trace.h"

// Ends of copies and syncs that callbacks report. A thread of the device takes them
// in order; it starts with the first.
typedef struct cuda_end_t {
  struct cuda_end_t* next;
  CUevent event;
  rn_device_done_t done;
  void* arg;
  rn_tensor_t held;  // Retained until the end
} cuda_end_t;

typedef struct cuda_device_t {
  rn_device_t base;  // first
  rn_allocator_t allocator;
  rn_cuda_card_t* card;  // Retained
  const rn_env_t* env;
  char description[192];
  rn_mutex_t mutex;  // guards all below
  rn_cond_t changed;
  cuda_end_t *first, *last;
  bool is_stopping, has_thread;
  pthread_t thread;
  rn_status_t error;  // the first since the last sync or wait
} cuda_device_t;

rn_cuda_card_t* rn_cuda_card_of(const rn_device_t* device) {
  return ((const cuda_device_t*)device)->card;
}

// Keeps an error for the next sync or wait.
static void note(cuda_device_t* gpu, rn_status_t status) {
  if (rn_ok(status)) return;
  rn_mutex_lock(&gpu->mutex);
  gpu->error = rn_status_join(gpu->error, status);
  rn_mutex_unlock(&gpu->mutex);
}

static rn_status_t take_error(cuda_device_t* gpu, rn_status_t status) {
  rn_mutex_lock(&gpu->mutex);
  status = rn_status_join(gpu->error, status);
  gpu->error = RN_OK;
  rn_mutex_unlock(&gpu->mutex);
  return status;
}

static void finish(cuda_device_t* gpu, cuda_end_t* end) {
  rn_status_t status = rn_cuda_enter(gpu->card);
  if (rn_ok(status)) status = rn_cuda_await(gpu->card, end->event);
  rn_cuda_unmark(gpu->card, end->event);
  rn_tensor_clear(&end->held);
  end->done(end->arg, status);
  RN_FREE(gpu->allocator, end);
}

static void* thread_main(void* arg) {
  cuda_device_t* gpu = arg;
  rn_mutex_lock(&gpu->mutex);
  for (;;) {
    while (!gpu->first && !gpu->is_stopping) rn_cond_wait(&gpu->changed, &gpu->mutex);
    cuda_end_t* end = gpu->first;
    if (!end) break;
    gpu->first = end->next;
    if (!gpu->first) gpu->last = NULL;
    rn_mutex_unlock(&gpu->mutex);
    finish(gpu, end);
    rn_mutex_lock(&gpu->mutex);
  }
  rn_mutex_unlock(&gpu->mutex);
  return NULL;
}

static rn_status_t append(cuda_device_t* gpu, cuda_end_t* end) {
  rn_mutex_lock(&gpu->mutex);
  if (!gpu->has_thread) gpu->has_thread = pthread_create(&gpu->thread, NULL, thread_main, gpu) == 0;
  bool ok = gpu->has_thread;
  if (ok) {
    if (gpu->last)
      gpu->last->next = end;
    else
      gpu->first = end;
    gpu->last = end;
    rn_cond_signal(&gpu->changed);
  }
  rn_mutex_unlock(&gpu->mutex);
  return ok ? RN_OK
            : rn_resource_exhausted("The thread of %.*s could not be started",
                                    RN_STR_ARGS(gpu->base.name));
}

// Calls |done| when the work issued so far has ended; holds |held| (may be NULL) until then.
static rn_status_t call_after(cuda_device_t* gpu, const rn_tensor_t* held, rn_device_done_t done,
                              void* arg) {
  cuda_end_t* end = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(gpu->allocator, &end));
  *end = (cuda_end_t){.done = done, .arg = arg};
  rn_status_t status = held ? rn_tensor_share(held, &end->held) : RN_OK;
  if (rn_ok(status)) status = rn_cuda_mark(gpu->card, &end->event);
  if (rn_ok(status)) status = append(gpu, end);
  if (!rn_ok(status)) {
    rn_cuda_unmark(gpu->card, end->event);
    rn_tensor_clear(&end->held);
    RN_FREE(gpu->allocator, end);
  }
  return status;
}

// Ends a copy that was issued with |status|.
static void end_copy(cuda_device_t* gpu, const rn_tensor_t* held, rn_status_t status,
                     rn_device_done_t done, void* arg) {
  if (!done) {
    note(gpu, status);
    return;
  }
  if (rn_ok(status)) status = call_after(gpu, held, done, arg);
  if (!rn_ok(status)) done(arg, status);
}

static rn_status_t issue_out(cuda_device_t* gpu, const rn_tensor_t* source, rn_tensor_t* target,
                             bool is_free) {
  rn_cuda_card_t* card = gpu->card;
  size_t size = rn_tensor_bytes(source);
  CUdeviceptr from = (CUdeviceptr)(uintptr_t)source->data;
  if (size == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  if (rn_cuda_is_recording(card)) return rn_cuda_record_port(target, from, true);
  if (size >= RN_CUDA_LARGE_COPY)
    return rn_cuda_copy_out(card->copies, gpu->env->pool, target->data, from, size, source,
                            is_free);
  return RN_CARD(card, cuMemcpyDtoHAsync_v2, target->data, from, size, card->stream);
}

// The driver has read a few bytes, or those that are not page-locked, when the call returns. A feed
// goes into memory that is free, unless that was allocated just now: unfinished work may have used
// it.
static rn_status_t issue_in(cuda_device_t* gpu, const rn_tensor_t* source, rn_tensor_t* target,
                            bool is_feed) {
  rn_cuda_card_t* card = gpu->card;
  size_t size = rn_tensor_bytes(source);
  CUdeviceptr to = (CUdeviceptr)(uintptr_t)target->data;
  if (size == 0) return RN_OK;
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  if (rn_cuda_is_recording(card))
    return is_feed ? rn_cuda_record_port(source, to, false)
                   : rn_cuda_record_bytes(source->data, size, to);
  if (size >= RN_CUDA_LARGE_COPY)
    return rn_cuda_copy_in(card->copies, gpu->env->pool, to, source->data, size,
                           is_feed && !target->buffer);
  return RN_CARD(card, cuMemcpyHtoDAsync_v2, to, source->data, size, card->stream);
}

static void cuda_to_host(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target,
                         rn_device_done_t done, void* arg) {
  cuda_device_t* gpu = (cuda_device_t*)device;
  end_copy(gpu, source, issue_out(gpu, source, target, false), done, arg);
}

static void cuda_from_host(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target,
                           rn_device_done_t done, void* arg) {
  cuda_device_t* gpu = (cuda_device_t*)device;
  end_copy(gpu, target, issue_in(gpu, source, target, false), done, arg);
}

static void cuda_feed(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target) {
  cuda_device_t* gpu = (cuda_device_t*)device;
  note(gpu, issue_in(gpu, source, target, true));
}

static void cuda_fetch(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target) {
  cuda_device_t* gpu = (cuda_device_t*)device;
  note(gpu, issue_out(gpu, source, target, true));
}

static rn_status_t cuda_copy(rn_device_t* device, const rn_tensor_t* source, rn_tensor_t* target) {
  rn_cuda_card_t* card = rn_cuda_card_of(device);
  size_t size = rn_tensor_bytes(source);
  if (size == 0 || source->data == target->data) return RN_OK;
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  return RN_CARD(card, cuMemcpyDtoDAsync_v2, (CUdeviceptr)(uintptr_t)target->data,
                 (CUdeviceptr)(uintptr_t)source->data, size, rn_cuda_stream(card));
}

// A sync reports what went wrong before it, too.
typedef struct cuda_sync_t {
  cuda_device_t* gpu;
  rn_device_done_t done;
  void* arg;
} cuda_sync_t;

static void on_synced(void* arg, rn_status_t status) {
  cuda_sync_t sync = *(cuda_sync_t*)arg;
  status = rn_status_join(status, rn_cuda_copies_wait(sync.gpu->card->copies));
  RN_FREE(sync.gpu->allocator, (cuda_sync_t*)arg);
  sync.done(sync.arg, take_error(sync.gpu, status));
}

static void cuda_sync(rn_device_t* device, rn_device_done_t done, void* arg) {
  cuda_device_t* gpu = (cuda_device_t*)device;
  cuda_sync_t* sync = NULL;
  rn_status_t status = RN_NEW(gpu->allocator, &sync);
  if (rn_ok(status)) {
    *sync = (cuda_sync_t){gpu, done, arg};
    status = rn_cuda_copies_join(gpu->card->copies);
    if (rn_ok(status)) status = call_after(gpu, NULL, on_synced, sync);
    if (!rn_ok(status)) RN_FREE(gpu->allocator, sync);
  }
  if (!rn_ok(status)) done(arg, take_error(gpu, status));
}

static rn_status_t cuda_wait(rn_device_t* device) {
  cuda_device_t* gpu = (cuda_device_t*)device;
  CUevent event = NULL;
  rn_status_t status = rn_cuda_mark(gpu->card, &event);
  if (rn_ok(status)) status = rn_cuda_await(gpu->card, event);
  rn_cuda_unmark(gpu->card, event);
  status = rn_status_join(status, rn_cuda_copies_wait(gpu->card->copies));
  return take_error(gpu, status);
}

static rn_status_t cuda_await(rn_device_t* device, rn_recording_t* recording) {
  cuda_device_t* gpu = (cuda_device_t*)device;
  return take_error(gpu, rn_cuda_await_replay(recording));
}

static void cuda_trim(rn_device_t* device) { rn_cuda_card_trim(((cuda_device_t*)device)->card); }

static void cuda_memory_use(rn_device_t* device, rn_device_memory_t* out) {
  rn_cuda_memory_stats_t stats;
  rn_cuda_memory_stats(((cuda_device_t*)device)->card->memory, &stats);
  *out = (rn_device_memory_t){(int64_t)stats.bytes_in_use, (int64_t)stats.peak_bytes_in_use};
}

static void cuda_explain(rn_device_t* device, rn_strbuf_t* out) {
  rn_cuda_memory_t* memory = ((cuda_device_t*)device)->card->memory;
  if (rn_cuda_memory_was_short(memory)) rn_cuda_memory_describe(memory, out);
}

static void cuda_destroy(rn_device_t* device) {
  cuda_device_t* gpu = (cuda_device_t*)device;
  rn_mutex_lock(&gpu->mutex);
  gpu->is_stopping = true;
  rn_cond_signal(&gpu->changed);
  rn_mutex_unlock(&gpu->mutex);
  if (gpu->has_thread) pthread_join(gpu->thread, NULL);
  if (gpu->card) rn_status_free(cuda_wait(device));
  rn_status_free(gpu->error);
  rn_resources_destroy(gpu->base.resources);
  rn_cuda_card_release(gpu->card);
  if (gpu->base.name.data)
    rn_free(gpu->allocator, (char*)gpu->base.name.data, gpu->base.name.size + 1);
  rn_cond_destroy(&gpu->changed);
  rn_mutex_destroy(&gpu->mutex);
  RN_FREE(gpu->allocator, gpu);
}

static const rn_device_vtable_t cuda_vtable = {.destroy = cuda_destroy,
                                               .copy_to_host = cuda_to_host,
                                               .copy_from_host = cuda_from_host,
                                               .feed = cuda_feed,
                                               .fetch = cuda_fetch,
                                               .copy = cuda_copy,
                                               .move = rn_cuda_move,
                                               .fill = rn_cuda_fill,
                                               .add = rn_cuda_add,
                                               .sync = cuda_sync,
                                               .wait = cuda_wait,
                                               .record_begin = rn_cuda_record_begin,
                                               .record_end = rn_cuda_record_end,
                                               .replay = rn_cuda_replay,
                                               .await = cuda_await,
                                               .recording_destroy = rn_cuda_recording_destroy,
                                               .trim = cuda_trim,
                                               .memory_use = cuda_memory_use,
                                               .explain_memory = cuda_explain,
                                               .trace_begin = rn_cuda_trace_begin,
                                               .trace_node = rn_cuda_trace_node,
                                               .trace_end = rn_cuda_trace_end};

// As stock describes a GPU.
static void describe(cuda_device_t* gpu) {
  const rn_cuda_card_t* card = gpu->card;
  snprintf(gpu->description, sizeof gpu->description,
           "device: %d, name: %s, pci bus id: %s, compute capability: %d.%d", gpu->base.index,
           card->name, card->bus_id, card->major, card->minor);
  gpu->base.description = gpu->description;
}

static rn_status_t fill(cuda_device_t* gpu, const rn_part_init_t* init, int index,
                        const rn_cuda_choice_t* choice) {
  rn_cuda_memory_stats_t stats;
  RN_RETURN_IF_ERROR(rn_cuda_card_get(choice, &gpu->card));
  RN_RETURN_IF_ERROR(
      rn_device_name(init->allocator, init->name_prefix, "GPU", index, &gpu->base.name));
  RN_RETURN_IF_ERROR(rn_resources_create(init->allocator, &gpu->base.resources));
  gpu->base.allocator = rn_cuda_value_memory(gpu->card);
  gpu->base.transfer_memory = rn_cuda_pinned_allocator(gpu->card->pinned);
  gpu->base.kernel_memory = rn_cuda_kernel_memory(gpu->card);
  rn_cuda_memory_stats(gpu->card->memory, &stats);
  gpu->base.memory_limit =
      (int64_t)(stats.bytes_limit ? stats.bytes_limit : gpu->card->total_memory);
  describe(gpu);
  return RN_OK;
}

static rn_status_t create(const rn_part_init_t* init, int index, const rn_cuda_choice_t* choice,
                          rn_device_t** out) {
  cuda_device_t* gpu = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(init->allocator, &gpu));
  gpu->allocator = init->allocator;
  gpu->env = init->env;
  rn_mutex_init(&gpu->mutex);
  rn_cond_init(&gpu->changed);
  gpu->base = (rn_device_t){.vtable = &cuda_vtable,
                            .idle_mutex = RN_MUTEX_INIT,
                            .type = "GPU",
                            .index = index,
                            .is_preferred = true,
                            .incarnation = init->env->random(init->env->self) | 1};
  rn_status_t status = fill(gpu, init, index, choice);
  if (!rn_ok(status)) {
    cuda_destroy(&gpu->base);
    return status;
  }
  *out = &gpu->base;
  return RN_OK;
}

rn_status_t rn_cuda_create_devices(const rn_part_init_t* init, int room, rn_device_t** out,
                                   int* out_count) {
  *out_count = 0;
  int cards = 0, count = 0;
  rn_cuda_choice_t choices[RN_MAX_GPUS];
  RN_RETURN_IF_ERROR(rn_cuda_count(&cards));
  RN_RETURN_IF_ERROR(rn_cuda_choose(init->options, cards, choices, &count));
  for (int i = 0; i < count && i < room; ++i) {
    RN_RETURN_IF_ERROR(create(init, i, &choices[i], &out[i]));
    ++*out_count;
  }
  return RN_OK;
}
