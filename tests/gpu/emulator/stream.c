// Streams of the emulated driver: queues, and the worker thread that runs them.
//
// Work runs in issue order, so that runs repeat. With RN_EMULATED_SHUFFLE the worker takes any
// stream whose next piece of work may run, so that a missing event wait shows.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver.h"

emu_item_t* emu_item_create(emu_kind_t kind) {
  emu_item_t* item = calloc(1, sizeof *item);
  if (item) item->kind = kind;
  return item;
}

void emu_item_destroy_locked(emu_item_t* item) {
  if (item->kind == EMU_KERNEL) free(item->kernel.args);
  if (item->kind == EMU_COPY) free(item->copy.staged);
  if (item->kind == EMU_RECORD || item->kind == EMU_WAIT) emu_stamp_release_locked(item->stamp);
  if (item->kind == EMU_GRAPH) emu_nodes_release_locked(item->graph);
  free(item);
}

uint64_t emu_random_locked(emu_device_t* device, uint64_t below) {
  device->random = device->random * 6364136223846793005u + 1442695040888963407u;
  return (device->random >> 33) % below;
}

static void stream_free_locked(CUstream stream) {
  CUstream* link = &stream->device->streams;
  while (*link != stream) link = &(*link)->next;
  *link = stream->next;
  free(stream->frontier.nodes);
  free(stream);
}

static CUstream stream_create_locked(emu_device_t* device, bool is_default, bool is_blocking) {
  CUstream stream = calloc(1, sizeof *stream);
  if (!stream) return NULL;
  stream->device = device;
  stream->is_default = is_default;
  stream->is_blocking = is_blocking;
  stream->tail = &stream->head;
  stream->next = device->streams;
  device->streams = stream;
  return stream;
}

// Whether the head of |stream| has to wait because of the default stream.
static bool is_held_up(const struct CUstream_st* stream) {
  if (!stream->is_default && !stream->is_blocking) return false;
  const struct CUstream_st* other = stream->device->streams;
  for (; other; other = other->next) {
    if (other == stream || !other->head || other->head->number > stream->head->number) continue;
    if (stream->is_default ? other->is_blocking : other->is_default) return true;
  }
  return false;
}

static bool is_ready(const struct CUstream_st* stream) {
  const emu_item_t* item = stream->head;
  if (!item || emu.is_paused) return false;
  if (item->kind == EMU_WAIT && item->stamp && !item->stamp->is_done) return false;
  return !is_held_up(stream);
}

// The stream whose head is to run next, or NULL.
static CUstream next_locked(emu_device_t* device) {
  CUstream best = NULL;
  uint64_t ready = 0;
  for (CUstream stream = device->streams; stream; stream = stream->next) {
    if (!is_ready(stream)) continue;
    ++ready;
    bool is_better = !best || (emu.shuffle ? emu_random_locked(device, ready) == 0
                                           : stream->head->number < best->head->number);
    if (is_better) best = stream;
  }
  return best;
}

static CUresult run_copy(const emu_item_t* item) {
  emu_lock();
  CUresult result = emu_enter_locked(EMU_CALL_copy);
  size_t size = item->kind == EMU_COPY ? item->copy.size : item->fill.width * item->fill.count;
  bool is_valid = item->kind == EMU_COPY
                      ? emu_is_device_locked(item->copy.to, size) == item->copy.is_to_device &&
                            emu_is_device_locked(item->copy.from, size) == item->copy.is_from_device
                      : emu_is_device_locked(item->fill.to, size);
  emu_unlock();
  if (result || !is_valid) return result ? result : EMU_ILLEGAL_ADDRESS;
  bool is_inside = item->kind == EMU_FILL || (item->copy.is_to_device && item->copy.is_from_device);
  if (emu.is_idle && is_inside) return CUDA_SUCCESS;
  if (item->kind == EMU_COPY) {
    memmove(item->copy.to, item->copy.from, size);
  } else if (item->fill.width == 1) {
    memset(item->fill.to, (int)item->fill.value, size);
  } else {
    uint32_t value = item->fill.value;
    for (size_t i = 0; i < item->fill.count; ++i) memcpy(item->fill.to + 4 * i, &value, 4);
  }
  return CUDA_SUCCESS;
}

static CUresult run_kernel(emu_runner_t* runner, const emu_item_t* item) {
  struct CUfunc_st* function = item->kernel.function;
  emu_lock();
  CUresult result = emu_enter_locked(EMU_CALL_kernel);
  emu_count_kernel_locked(function->name);
  emu_unlock();
  if (result || emu.is_idle) return result;
  return emu_runner_run(runner, &(emu_launch_t){.name = function->name,
                                                .kernel = function->kernel,
                                                .image = function->module->image,
                                                .args = item->kernel.args,
                                                .grid = item->kernel.grid,
                                                .block = item->kernel.block,
                                                .shared = item->kernel.shared});
}

CUresult emu_run_item(emu_device_t* device, emu_runner_t* runner, const emu_item_t* item) {
  switch (item->kind) {
    case EMU_KERNEL:
      return run_kernel(runner, item);
    case EMU_COPY:
    case EMU_FILL:
      return run_copy(item);
    case EMU_GRAPH:
      return emu_run_graph(device, runner, item->graph);
    default:
      return CUDA_SUCCESS;
  }
}

// Takes the head, which has run, off its queue.
static void complete_locked(CUstream stream) {
  emu_item_t* item = stream->head;
  stream->head = item->next;
  if (!stream->head) stream->tail = &stream->head;
  stream->is_running = false;
  --stream->device->pending;
  if (item->kind == EMU_RECORD) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    item->stamp->ended = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
    item->stamp->is_done = true;
  }
  emu_item_destroy_locked(item);
  if (stream->is_destroyed && !stream->head) stream_free_locked(stream);
}

static void* work(void* arg) {
  emu_device_t* device = arg;
  emu_runner_t* runner = emu_runner_create(emu.shuffle & 1);
  emu_lock();
  if (!runner) emu_lose_locked(device, EMU_OUT_OF_MEMORY);
  while (!device->is_stopping || device->pending) {
    CUstream stream = next_locked(device);
    if (!stream) {
      pthread_cond_wait(&emu.changed, &emu.mutex);
      continue;
    }
    stream->is_running = true;
    emu_open_locked(device);
    // What a lost device was told to do is passed over.
    bool is_lost = device->lost != CUDA_SUCCESS;
    emu_unlock();
    CUresult result = is_lost ? CUDA_SUCCESS : emu_run_item(device, runner, stream->head);
    emu_lock();
    if (result) emu_lose_locked(device, result);
    complete_locked(stream);
    // Whoever waited for this finds the memory closed again.
    if (!next_locked(device)) emu_close_locked(device);
    pthread_cond_broadcast(&emu.changed);
  }
  emu_unlock();
  emu_runner_destroy(runner);
  return NULL;
}

CUresult emu_start_worker(emu_device_t* device) {
  device->is_stopping = false;
  device->random = emu.shuffle;
  CUstream stream = stream_create_locked(device, true, false);
  if (!stream) return EMU_OUT_OF_MEMORY;
  if (pthread_create(&device->worker, NULL, work, device) == 0) return CUDA_SUCCESS;
  stream_free_locked(stream);
  return EMU_OUT_OF_MEMORY;
}

void emu_stop_worker(emu_device_t* device) {
  emu_lock();
  device->is_stopping = true;
  pthread_cond_broadcast(&emu.changed);
  emu_unlock();
  pthread_join(device->worker, NULL);
  emu_lock();
  emu_close_locked(device);
  CUstream stream = device->streams;
  while (stream && !stream->is_default) stream = stream->next;
  if (stream) stream_free_locked(stream);
  emu_unlock();
}

void emu_wait_idle_locked(emu_device_t* device) {
  while (device->pending) pthread_cond_wait(&emu.changed, &emu.mutex);
}

CUresult emu_stream_of(CUstream stream, CUstream* out_stream) {
  emu_device_t* device;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  emu_lock();
  if (!stream) {
    stream = device->streams;
    while (stream && !stream->is_default) stream = stream->next;
  }
  CUresult result = stream ? stream->device->lost : EMU_INVALID_CONTEXT;
  emu_unlock();
  *out_stream = stream;
  return result;
}

CUresult emu_issue(CUstream stream, emu_item_t* item) {
  CUresult result = CUDA_SUCCESS;
  emu_lock();
  if (stream->capture) {
    result = emu_capture_append_locked(stream, item);
  } else {
    item->number = ++emu.issued;
    *stream->tail = item;
    stream->tail = &item->next;
    ++stream->device->pending;
    pthread_cond_broadcast(&emu.changed);
  }
  emu_unlock();
  return result;
}

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  EMU_CALL(cuStreamCreate);
  emu_device_t* device;
  EMU_RETURN_IF_ERROR(emu_current(&device));
  EMU_RETURN_IF(flags & ~(unsigned)CU_STREAM_NON_BLOCKING, EMU_INVALID_VALUE);
  emu_lock();
  *stream = stream_create_locked(device, false, !(flags & CU_STREAM_NON_BLOCKING));
  if (*stream) ++emu.streams;
  emu_unlock();
  return *stream ? CUDA_SUCCESS : EMU_OUT_OF_MEMORY;
}

// Returns at once; the stream goes when its work is done.
CUresult cuStreamDestroy_v2(CUstream stream) {
  EMU_CALL(cuStreamDestroy_v2);
  EMU_RETURN_IF(!stream, EMU_INVALID_HANDLE);
  emu_lock();
  CUresult result = stream->device->lost;
  --emu.streams;
  emu_capture_leave_locked(stream);
  stream->is_destroyed = true;
  if (!stream->head) stream_free_locked(stream);
  emu_unlock();
  return result;
}

CUresult emu_synchronize(CUstream stream) {
  EMU_RETURN_IF_ERROR(emu_stream_of(stream, &stream));
  emu_lock();
  CUresult result = emu_not_captured_locked(stream);
  if (!result) {
    uint64_t last = emu.issued;
    while (stream->head && stream->head->number <= last)
      pthread_cond_wait(&emu.changed, &emu.mutex);
    result = stream->device->lost;
  }
  emu_unlock();
  return result;
}

CUresult cuStreamSynchronize(CUstream stream) {
  EMU_CALL(cuStreamSynchronize);
  return emu_synchronize(stream);
}

CUresult cuStreamQuery(CUstream stream) {
  EMU_CALL(cuStreamQuery);
  EMU_RETURN_IF_ERROR(emu_stream_of(stream, &stream));
  emu_lock();
  CUresult result = emu_not_captured_locked(stream);
  if (!result && stream->head) result = EMU_NOT_READY;
  emu_unlock();
  return result;
}
