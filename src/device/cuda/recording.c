// Recordings: see recording.h.
#include "device/cuda/recording.h"

#define BLOCK_SIZE ((size_t)4 << 20)  // of a recording's memory

struct rn_recording_t {
  rn_cuda_card_t* card;  // Retained by the device, which outlives its recordings
  CUgraphExec graph;
  rn_cuda_memory_t* memory;  // what kernels used
  bool is_holding;           // the card's memory, until the work was issued for the first time
};

// The recording that the calling thread makes; NULL: none.
static _Thread_local rn_recording_t* current;

CUstream rn_cuda_stream(const rn_cuda_card_t* card) {
  return current && current->card == card ? card->recording_stream : card->stream;
}

static uint64_t take_block(void* self, size_t size) {
  return rn_cuda_memory_alloc(self, size, "recorded steps");
}

static void give_block(void* self, uint64_t address, size_t size) {
  (void)size;
  rn_cuda_memory_free(self, address);
}

static void* kernel_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  rn_cuda_card_t* card = self;
  bool is_recording = current && current->card == card;
  if (!ptr) {
    rn_cuda_memory_t* memory = is_recording ? current->memory : card->memory;
    return (void*)(uintptr_t)rn_cuda_memory_alloc(memory, new_size, "tensors of kernels");
  }
  if (new_size) return new_size <= old_size ? ptr : NULL;
  uint64_t address = (uintptr_t)ptr;
  if (!is_recording || !rn_cuda_memory_free(current->memory, address))
    rn_cuda_memory_free(card->memory, address);
  return NULL;
}

rn_allocator_t rn_cuda_kernel_memory(rn_cuda_card_t* card) {
  return (rn_allocator_t){.fn = kernel_realloc, .self = card, .is_far = true};
}

// Work of other threads must not get memory that recorded work still reads: it would be issued
// before the recording is.
static void hold_memory(rn_recording_t* recording) {
  rn_cuda_memory_hold(recording->card->memory);
  recording->is_holding = true;
}

static void resume_memory(rn_recording_t* recording) {
  if (recording->is_holding) rn_cuda_memory_resume(recording->card->memory);
  recording->is_holding = false;
}

static void destroy(rn_recording_t* recording) {
  rn_cuda_card_t* card = recording->card;
  resume_memory(recording);
  if (recording->graph) card->driver.cuGraphExecDestroy(recording->graph);
  rn_cuda_memory_destroy(recording->memory);
  RN_FREE(rn_allocator_system(), recording);
}

static rn_status_t create(rn_cuda_card_t* card, rn_recording_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), out));
  (*out)->card = card;
  rn_cuda_memory_options_t options = {.source = {card->memory, take_block, give_block},
                                      .block_size = BLOCK_SIZE};
  return rn_cuda_memory_create(&options, rn_allocator_system(), &(*out)->memory);
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
  current = NULL;
  *out = NULL;
  CUgraph graph = NULL;
  rn_status_t status = RN_CARD(card, cuStreamEndCapture, card->recording_stream, &graph);
  if (rn_ok(status))
    status = RN_CARD(card, cuGraphInstantiateWithFlags, &recording->graph, graph, 0);
  if (graph) card->driver.cuGraphDestroy(graph);
  rn_mutex_unlock(&card->recording_mutex);
  if (rn_ok(status))
    *out = recording;
  else
    destroy(recording);
  return status;
}

rn_status_t rn_cuda_replay(rn_device_t* device, rn_recording_t* recording) {
  rn_cuda_card_t* card = rn_cuda_card_of(device);
  RN_RETURN_IF_ERROR(rn_cuda_enter(card));
  rn_status_t status = RN_CARD(card, cuGraphLaunch, recording->graph, card->stream);
  resume_memory(recording);
  return status;
}

void rn_cuda_recording_destroy(rn_device_t* device, rn_recording_t* recording) {
  rn_cuda_card_t* card = rn_cuda_card_of(device);
  rn_status_free(rn_cuda_enter(card));
  card->driver.cuStreamSynchronize(card->stream);  // the last replay may still run
  destroy(recording);
}
