// Recordings: see recording.h.
#include "device/cuda/recording.h"

#include <time.h>

#include "device/cuda/copies.h"

// Larger ports are copied by the card's copy engines instead of a kernel.
#define SMALL_PORT ((size_t)16 << 10)
#define STAGING_BLOCK ((size_t)64 << 10)
// How long a thread looks at the flag before it sleeps.
#define SPIN_NS 100000
// A replay that takes longer is worth sleeping for most of its time.
#define LONG_NS 500000

// A feed or fetch of the recorded steps.
typedef struct recorded_port_t {
  const rn_tensor_t* tensor;  // in host memory; where its bytes are is read in each replay
  void* staged;               // their place in page-locked memory
  size_t size;
  bool is_fetch;
} recorded_port_t;

// Page-locked memory, handed out from its start.
typedef struct staging_block_t {
  char* start;
  size_t size, used;
} staging_block_t;

struct rn_recording_t {
  rn_cuda_card_t* card;  // Retained by the device, which outlives its recordings
  CUgraphExec graph;
  uint64_t generation;  // of the card's scratch memory
  bool is_new;          // not replayed yet
  // The card's memory and |recording_mutex| are held, until the work was issued for the first time.
  bool is_holding;
  RN_VEC(recorded_port_t) ports;
  RN_VEC(staging_block_t) staging;
  uint32_t* flag;  // in |staging|; 1: the last replay has ended
  // The last replay: when it was launched, an event behind it (NULL: none), and how long they take.
  int64_t launched_ns, usual_ns;
  CUevent event;
  // While it is being recorded: what of the scratch memory is in use, and ports that are to be
  // copied by one kernel, all in the same direction.
  RN_VEC(uint64_t) live;
  rn_cuda_port_t waiting[RN_CUDA_MOST_PORTS];
  int waiting_count;
  bool waiting_is_fetch;
  rn_status_t error;  // of the copies of ports
};

// The recording that the calling thread makes; NULL: none.
static _Thread_local rn_recording_t* current;

bool rn_cuda_is_recording(const rn_cuda_card_t* card) { return current && current->card == card; }

// Issues the copies that wait, and sets |flag| behind them unless it is NULL.
static void flush(rn_recording_t* recording, uint32_t* flag) {
  int count = recording->waiting_count;
  if ((!count && !flag) || !rn_ok(recording->error)) return;
  recording->waiting_count = 0;
  recording->error = rn_cuda_copy_ports(recording->card, recording->card->recording_stream,
                                        recording->waiting, count, flag);
}

CUstream rn_cuda_stream(const rn_cuda_card_t* card) {
  if (!rn_cuda_is_recording(card)) return card->stream;
  flush(current, NULL);  // what is issued next may need them
  return card->recording_stream;
}

// Memory.

// Scratch memory for the recording of the calling thread; 0 if there is none.
static uint64_t take_scratch(rn_recording_t* recording, size_t size) {
  rn_cuda_memory_t* scratch = recording->card->scratch;
  uint64_t address = rn_cuda_memory_alloc(scratch, size, "recorded steps");
  if (!address) return 0;
  rn_status_t status = rn_vec_push(&recording->live, rn_allocator_system(), address);
  if (rn_ok(status)) return address;
  rn_status_free(status);
  rn_cuda_memory_free_now(scratch, address);
  return 0;
}

// Takes |address| back if |recording| took it: only its own work uses it.
static bool give_scratch(rn_recording_t* recording, uint64_t address) {
  for (size_t i = recording->live.count; i > 0; --i) {
    if (recording->live.items[i - 1] != address) continue;
    recording->live.items[i - 1] = recording->live.items[--recording->live.count];
    return rn_cuda_memory_free_now(recording->card->scratch, address);
  }
  return false;
}

static void* kernel_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  rn_cuda_card_t* card = self;
  bool is_recording = rn_cuda_is_recording(card);
  // An empty tensor is no scratch memory: it may be kept.
  if (!ptr && is_recording && new_size > 1)
    return (void*)(uintptr_t)take_scratch(current, new_size);
  if (!ptr)
    return (void*)(uintptr_t)rn_cuda_memory_alloc(card->memory, new_size, "tensors of kernels");
  if (new_size) return new_size <= old_size ? ptr : NULL;
  uint64_t address = (uintptr_t)ptr;
  if (is_recording && give_scratch(current, address)) return NULL;
  // In this order: the scratch memory's blocks are allocations of the card's.
  if (!rn_cuda_memory_free(card->scratch, address)) rn_cuda_memory_free(card->memory, address);
  return NULL;
}

rn_allocator_t rn_cuda_kernel_memory(rn_cuda_card_t* card) {
  return (rn_allocator_t){.fn = kernel_realloc, .self = card, .is_far = true};
}

// Work of other threads must not get memory that recorded work still reads: it would be issued
// before the recording is. Nor may another recording begin, because this one is not stale yet.
static void hold_memory(rn_recording_t* recording) {
  rn_cuda_memory_hold(recording->card->memory);
  rn_cuda_memory_hold(recording->card->scratch);
  recording->is_holding = true;
}

static void resume_memory(rn_recording_t* recording) {
  if (!recording->is_holding) return;
  rn_cuda_memory_resume(recording->card->memory);
  rn_cuda_memory_resume(recording->card->scratch);
  recording->is_holding = false;
  rn_mutex_unlock(&recording->card->recording_mutex);
}

static void* value_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  rn_cuda_card_t* card = self;
  rn_allocator_t memory = rn_cuda_memory_allocator(card->memory);
  void* block = memory.fn(memory.self, ptr, old_size, new_size);
  if (!ptr) rn_cuda_copies_note_memory(card->copies);
  return block;
}

rn_allocator_t rn_cuda_value_memory(rn_cuda_card_t* card) {
  return (rn_allocator_t){.fn = value_realloc, .self = card, .is_far = true};
}

// |size| bytes of page-locked memory that the recording keeps.
static rn_status_t stage(rn_recording_t* recording, size_t size, void** out) {
  const size_t rounded = (size + RN_ALIGN - 1) & ~(size_t)(RN_ALIGN - 1);
  staging_block_t* last =
      recording->staging.count ? &recording->staging.items[recording->staging.count - 1] : NULL;
  if (!last || last->size - last->used < rounded) {
    staging_block_t block = {.size = rounded > STAGING_BLOCK ? rounded : STAGING_BLOCK};
    RN_RETURN_IF_ERROR(
        rn_vec_reserve(&recording->staging, rn_allocator_system(), recording->staging.count + 1));
    RN_RETURN_IF_ERROR(rn_alloc(rn_cuda_pinned_allocator(recording->card->pinned), block.size,
                                (void**)&block.start));
    last = &recording->staging.items[recording->staging.count++];
    *last = block;
  }
  *out = last->start + last->used;
  last->used += rounded;
  return RN_OK;
}

// Issues the copy of a port between |staged| and |address|.
static rn_status_t issue_port(rn_recording_t* recording, const recorded_port_t* port,
                              CUdeviceptr address) {
  rn_cuda_card_t* card = recording->card;
  if (port->size > SMALL_PORT) {
    CUstream stream = rn_cuda_stream(card);
    return port->is_fetch
               ? RN_CARD(card, cuMemcpyDtoHAsync_v2, port->staged, address, port->size, stream)
               : RN_CARD(card, cuMemcpyHtoDAsync_v2, address, port->staged, port->size, stream);
  }
  if (recording->waiting_count == RN_CUDA_MOST_PORTS ||
      recording->waiting_is_fetch != port->is_fetch)
    flush(recording, NULL);
  recording->waiting_is_fetch = port->is_fetch;
  void* on_card = (void*)(uintptr_t)address;
  recording->waiting[recording->waiting_count++] =
      port->is_fetch ? (rn_cuda_port_t){on_card, port->staged, port->size}
                     : (rn_cuda_port_t){port->staged, on_card, port->size};
  return RN_OK;
}

rn_status_t rn_cuda_record_port(const rn_tensor_t* tensor, CUdeviceptr address, bool is_fetch) {
  recorded_port_t port = {.tensor = tensor, .size = rn_tensor_bytes(tensor), .is_fetch = is_fetch};
  if (port.size == 0) return RN_OK;
  RN_RETURN_IF_ERROR(stage(current, port.size, &port.staged));
  RN_RETURN_IF_ERROR(rn_vec_push(&current->ports, rn_allocator_system(), port));
  return issue_port(current, &port, address);
}

rn_status_t rn_cuda_record_bytes(const void* bytes, size_t size, CUdeviceptr address) {
  recorded_port_t port = {.size = size};
  RN_RETURN_IF_ERROR(stage(current, size, &port.staged));
  memcpy(port.staged, bytes, size);
  return issue_port(current, &port, address);
}

// Life.

static void destroy(rn_recording_t* recording) {
  rn_cuda_card_t* card = recording->card;
  resume_memory(recording);
  if (recording->graph) card->driver.cuGraphExecDestroy(recording->graph);
  rn_cuda_unmark(card, recording->event);
  for (size_t i = 0; i < recording->staging.count; ++i)
    rn_free(rn_cuda_pinned_allocator(card->pinned), recording->staging.items[i].start,
            recording->staging.items[i].size);
  rn_vec_free(&recording->staging, rn_allocator_system());
  rn_vec_free(&recording->ports, rn_allocator_system());
  rn_vec_free(&recording->live, rn_allocator_system());
  rn_status_free(recording->error);
  RN_FREE(rn_allocator_system(), recording);
  // Recordings use the scratch memory as long as they live, also where it is free.
  rn_mutex_lock(&card->replay_mutex);
  if (--card->recordings == 0) rn_cuda_memory_trim(card->scratch);
  rn_mutex_unlock(&card->replay_mutex);
}

static rn_status_t create(rn_cuda_card_t* card, rn_recording_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), out));
  rn_recording_t* recording = *out;
  recording->card = card;
  recording->is_new = true;
  rn_mutex_lock(&card->replay_mutex);
  ++card->recordings;
  recording->generation = card->scratch_generation;
  rn_mutex_unlock(&card->replay_mutex);
  return stage(recording, sizeof *recording->flag, (void**)&recording->flag);
}

rn_status_t rn_cuda_record_begin(rn_device_t* device) {
  rn_cuda_card_t* card = rn_cuda_card_of(device);
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  rn_recording_t* recording = NULL;
  rn_mutex_lock(&card->recording_mutex);
  rn_status_t status = create(card, &recording);
  if (rn_ok(status))
    status = RN_CARD(card, cuStreamBeginCapture_v2, card->recording_stream,
                     CU_STREAM_CAPTURE_MODE_RELAXED);
  if (rn_ok(status)) {
    hold_memory(recording);
    current = recording;
    return RN_OK;
  }
  rn_mutex_unlock(&card->recording_mutex);
  if (recording) destroy(recording);
  return status;
}

rn_status_t rn_cuda_record_end(rn_device_t* device, rn_recording_t** out) {
  rn_cuda_card_t* card = rn_cuda_card_of(device);
  rn_recording_t* recording = current;
  *out = NULL;
  flush(recording, recording->flag);
  current = NULL;
  // Somebody keeps scratch memory, which replays of older recordings would overwrite.
  if (recording->live.count) {
    rn_mutex_lock(&card->replay_mutex);
    recording->generation = ++card->scratch_generation;
    rn_mutex_unlock(&card->replay_mutex);
  }
  CUgraph graph = NULL;
  rn_status_t status = RN_CARD(card, cuStreamEndCapture, card->recording_stream, &graph);
  status = rn_status_join(recording->error, status);
  recording->error = RN_OK;
  if (rn_ok(status))
    status = RN_CARD(card, cuGraphInstantiateWithFlags, &recording->graph, graph, 0);
  if (graph) card->driver.cuGraphDestroy(graph);
  if (rn_ok(status))
    *out = recording;
  else
    destroy(recording);
  return status;
}

void rn_cuda_recording_destroy(rn_device_t* device, rn_recording_t* recording) {
  rn_cuda_card_t* card = rn_cuda_card_of(device);
  rn_status_free(rn_cuda_enter(card));
  card->driver.cuStreamSynchronize(card->stream);  // the last replay may still run
  destroy(recording);
}

// Replays.

static int64_t now_ns(void) {
  const rn_env_t* env = rn_env_system();
  return env->now_ns(env->self);
}

static rn_status_t launch_locked(rn_cuda_card_t* card, rn_recording_t* recording) {
  if (recording->generation != card->scratch_generation && !recording->is_new)
    return rn_aborted("The scratch memory of a recording is in use");
  recording->is_new = false;
  __atomic_store_n(recording->flag, 0, __ATOMIC_RELEASE);
  return RN_CARD(card, cuGraphLaunch, recording->graph, card->stream);
}

rn_status_t rn_cuda_replay(rn_device_t* device, rn_recording_t* recording) {
  rn_cuda_card_t* card = rn_cuda_card_of(device);
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  for (size_t i = 0; i < recording->ports.count; ++i) {
    const recorded_port_t* port = &recording->ports.items[i];
    if (!port->is_fetch) memcpy(port->staged, port->tensor->data, port->size);
  }
  rn_mutex_lock(&card->replay_mutex);
  rn_status_t status = launch_locked(card, recording);
  rn_mutex_unlock(&card->replay_mutex);
  resume_memory(recording);
  RN_RETURN_IF_ERROR(status);
  recording->launched_ns = now_ns();
  // Later, the event might come behind the work of other steps.
  return recording->usual_ns > SPIN_NS ? rn_cuda_mark(card, &recording->event) : RN_OK;
}

static bool has_ended(const rn_recording_t* recording) {
  return __atomic_load_n(recording->flag, __ATOMIC_ACQUIRE) == 1;
}

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Looks at the flag until |deadline_ns|.
static bool watch(const rn_recording_t* recording, int64_t deadline_ns) {
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (has_ended(recording)) return true;
      relax();
    }
    if (now_ns() > deadline_ns) return has_ended(recording);
  }
}

// Sleeps while a long replay cannot have ended, so that no core is busy with looking.
static void doze(const rn_recording_t* recording) {
  if (recording->usual_ns < LONG_NS || has_ended(recording)) return;
  int64_t left =
      recording->launched_ns + recording->usual_ns - recording->usual_ns / 16 - SPIN_NS - now_ns();
  if (left <= 0) return;
  struct timespec time = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
  nanosleep(&time, NULL);
}

static rn_status_t await_end(rn_recording_t* recording) {
  rn_cuda_card_t* card = recording->card;
  doze(recording);
  if (watch(recording, now_ns() + SPIN_NS + recording->usual_ns / 8)) return RN_OK;
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  if (!recording->event) RN_RETURN_IF_ERROR(rn_cuda_mark(card, &recording->event));
  return rn_cuda_await(card, recording->event);
}

rn_status_t rn_cuda_await_replay(rn_recording_t* recording) {
  rn_status_t status = await_end(recording);
  rn_cuda_unmark(recording->card, recording->event);
  recording->event = NULL;
  RN_RETURN_IF_ERROR(status);
  int64_t took = now_ns() - recording->launched_ns;
  recording->usual_ns = took < recording->usual_ns ? took : (3 * recording->usual_ns + took) / 4;
  for (size_t i = 0; i < recording->ports.count; ++i) {
    const recorded_port_t* port = &recording->ports.items[i];
    if (port->is_fetch) memcpy(port->tensor->data, port->staged, port->size);
  }
  return RN_OK;
}
