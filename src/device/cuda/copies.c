// Streams and buffers of large copies: see copies.h.
#include "device/cuda/copies.h"

// Large enough that starting a copy and waking the pool's threads cost little, small enough that
// the first copy starts soon.
#define BUFFER ((size_t)4 << 20)
#define BUFFERS 3
// One thread copies about 10 GiB/s, so a buffer is shared by several.
#define PIECE ((int64_t)256 << 10)

typedef struct copy_buffer_t {
  char* bytes;    // page-locked; NULL: not allocated yet
  CUevent event;  // behind the last copy from or to it; NULL: none
} copy_buffer_t;

// One direction.
typedef struct copy_way_t {
  CUstream stream;
  rn_mutex_t mutex;  // guards the buffers, and the order of a copy's pieces
  copy_buffer_t buffers[BUFFERS];
} copy_way_t;

typedef struct held_source_t {
  uint64_t number;  // of the copy
  rn_tensor_t tensor;
} held_source_t;

struct rn_cuda_copies_t {
  rn_cuda_card_t* card;
  copy_way_t in, out;
  bool has_new_memory;     // atomic: memory was handed out since the last copy in
  rn_mutex_t mutex;        // guards what follows
  uint64_t issued, ended;  // free copies out, counted
  RN_VEC(held_source_t) held;
};

static rn_status_t way_open(rn_cuda_card_t* card, copy_way_t* way) {
  return RN_CARD(card, cuStreamCreate, &way->stream, CU_STREAM_NON_BLOCKING);
}

rn_status_t rn_cuda_copies_create(rn_cuda_card_t* card, rn_cuda_copies_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(rn_allocator_system(), out));
  rn_cuda_copies_t* copies = *out;
  copies->card = card;
  rn_mutex_init(&copies->mutex);
  rn_mutex_init(&copies->in.mutex);
  rn_mutex_init(&copies->out.mutex);
  RN_RETURN_IF_ERROR(way_open(card, &copies->in));
  return way_open(card, &copies->out);
}

static void trim_way(rn_cuda_card_t* card, copy_way_t* way) {
  rn_mutex_lock(&way->mutex);
  if (way->stream) card->driver.cuStreamSynchronize(way->stream);
  for (int i = 0; i < BUFFERS; ++i) {
    copy_buffer_t* buffer = &way->buffers[i];
    rn_cuda_unmark(card, buffer->event);
    if (buffer->bytes) rn_free(rn_cuda_pinned_allocator(card->pinned), buffer->bytes, BUFFER);
    *buffer = (copy_buffer_t){0};
  }
  rn_mutex_unlock(&way->mutex);
}

void rn_cuda_copies_trim(rn_cuda_copies_t* copies) {
  rn_status_free(rn_cuda_enter(copies->card));
  trim_way(copies->card, &copies->in);
  trim_way(copies->card, &copies->out);
}

static void release_held(rn_cuda_copies_t* copies, uint64_t number);

void rn_cuda_copies_destroy(rn_cuda_copies_t* copies) {
  if (!copies) return;
  rn_cuda_copies_trim(copies);
  release_held(copies, UINT64_MAX);
  rn_vec_free(&copies->held, rn_allocator_system());
  copy_way_t* const ways[] = {&copies->in, &copies->out};
  for (int i = 0; i < 2; ++i) {
    if (ways[i]->stream) copies->card->driver.cuStreamDestroy_v2(ways[i]->stream);
    rn_mutex_destroy(&ways[i]->mutex);
  }
  rn_mutex_destroy(&copies->mutex);
  RN_FREE(rn_allocator_system(), copies);
}

// Makes |later| wait for what was issued to |earlier| so far.
static rn_status_t order(rn_cuda_card_t* card, CUstream earlier, CUstream later) {
  CUevent event = NULL;
  RN_RETURN_IF_ERROR(rn_cuda_mark_stream(card, earlier, &event));
  rn_status_t status = RN_CARD(card, cuStreamWaitEvent, later, event, 0);
  rn_cuda_unmark(card, event);
  return status;
}

static bool is_pinned(rn_cuda_card_t* card, const void* bytes) {
  unsigned type = 0;
  CUresult result = card->driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                       (CUdeviceptr)(uintptr_t)bytes);
  return result == CUDA_SUCCESS && type == CU_MEMORYTYPE_HOST;
}

typedef struct host_copy_t {
  char* to;
  const char* from;
} host_copy_t;

static void copy_piece(void* arg, int64_t begin, int64_t end) {
  const host_copy_t* copy = arg;
  memcpy(copy->to + begin, copy->from + begin, (size_t)(end - begin));
}

static void copy_on_host(rn_pool_t* pool, void* to, const void* from, size_t size) {
  host_copy_t copy = {to, from};
  rn_pool_for(pool, (int64_t)size, PIECE, copy_piece, &copy);
}

// Whether there is page-locked memory for the buffers.
static bool has_buffers(rn_cuda_card_t* card, copy_way_t* way) {
  rn_allocator_t memory = rn_cuda_pinned_allocator(card->pinned);
  bool ok = true;
  for (int i = 0; ok && i < BUFFERS; ++i) {
    if (way->buffers[i].bytes) continue;
    rn_status_t status = rn_alloc(memory, BUFFER, (void**)&way->buffers[i].bytes);
    ok = rn_ok(status);
    rn_status_free(status);
  }
  return ok;
}

// Waits until the last copy of the buffer has ended.
static rn_status_t take_buffer(rn_cuda_card_t* card, copy_buffer_t* buffer) {
  rn_status_t status = buffer->event ? rn_cuda_await(card, buffer->event) : RN_OK;
  rn_cuda_unmark(card, buffer->event);
  buffer->event = NULL;
  return status;
}

static size_t piece_at(size_t at, size_t size) { return size - at < BUFFER ? size - at : BUFFER; }

static rn_status_t stage_in(rn_cuda_card_t* card, copy_way_t* way, rn_pool_t* pool, CUdeviceptr to,
                            const char* from, size_t size) {
  int next = 0;
  for (size_t at = 0; at < size; at += BUFFER, next = (next + 1) % BUFFERS) {
    copy_buffer_t* buffer = &way->buffers[next];
    size_t piece = piece_at(at, size);
    RN_RETURN_IF_ERROR(take_buffer(card, buffer));
    copy_on_host(pool, buffer->bytes, from + at, piece);
    RN_RETURN_IF_ERROR(
        RN_CARD(card, cuMemcpyHtoDAsync_v2, to + at, buffer->bytes, piece, way->stream));
    RN_RETURN_IF_ERROR(rn_cuda_mark_stream(card, way->stream, &buffer->event));
  }
  return RN_OK;
}

// Pieces arrive in buffers and are taken out BUFFERS - 1 turns later.
static rn_status_t stage_out(rn_cuda_card_t* card, copy_way_t* way, rn_pool_t* pool, char* to,
                             CUdeviceptr from, size_t size) {
  const size_t count = (size + BUFFER - 1) / BUFFER;
  for (size_t turn = 0; turn < count + BUFFERS - 1; ++turn) {
    if (turn < count) {
      copy_buffer_t* buffer = &way->buffers[turn % BUFFERS];
      size_t at = turn * BUFFER;
      RN_RETURN_IF_ERROR(take_buffer(card, buffer));
      RN_RETURN_IF_ERROR(RN_CARD(card, cuMemcpyDtoHAsync_v2, buffer->bytes, from + at,
                                 piece_at(at, size), way->stream));
      RN_RETURN_IF_ERROR(rn_cuda_mark_stream(card, way->stream, &buffer->event));
    }
    if (turn + 1 < BUFFERS) continue;
    size_t at = (turn + 1 - BUFFERS) * BUFFER;
    copy_buffer_t* buffer = &way->buffers[(turn + 1 - BUFFERS) % BUFFERS];
    RN_RETURN_IF_ERROR(take_buffer(card, buffer));
    copy_on_host(pool, to + at, buffer->bytes, piece_at(at, size));
  }
  return RN_OK;
}

void rn_cuda_copies_note_memory(rn_cuda_copies_t* copies) {
  __atomic_store_n(&copies->has_new_memory, true, __ATOMIC_RELEASE);
}

static bool take_new_memory(rn_cuda_copies_t* copies) {
  return __atomic_exchange_n(&copies->has_new_memory, false, __ATOMIC_ACQ_REL);
}

static rn_status_t copy_in_locked(rn_cuda_copies_t* copies, rn_pool_t* pool, CUdeviceptr to,
                                  const void* from, size_t size, bool is_free) {
  rn_cuda_card_t* card = copies->card;
  copy_way_t* way = &copies->in;
  if (take_new_memory(copies) || !is_free)
    RN_RETURN_IF_ERROR(order(card, card->stream, way->stream));
  // Without buffers, the driver copies by its own, slowly.
  if (is_pinned(card, from) || !has_buffers(card, way))
    RN_RETURN_IF_ERROR(RN_CARD(card, cuMemcpyHtoDAsync_v2, to, from, size, way->stream));
  else
    RN_RETURN_IF_ERROR(stage_in(card, way, pool, to, from, size));
  return order(card, way->stream, card->stream);
}

rn_status_t rn_cuda_copy_in(rn_cuda_copies_t* copies, rn_pool_t* pool, CUdeviceptr to,
                            const void* from, size_t size, bool is_free) {
  RN_RETURN_IF_ERROR(rn_cuda_enter(copies->card));
  rn_mutex_lock(&copies->in.mutex);
  rn_status_t status = copy_in_locked(copies, pool, to, from, size, is_free);
  rn_mutex_unlock(&copies->in.mutex);
  return status;
}

// Counts a free copy that was issued and holds its source.
static rn_status_t hold(rn_cuda_copies_t* copies, const rn_tensor_t* tensor) {
  held_source_t held = {0};
  RN_RETURN_IF_ERROR(rn_tensor_share(tensor, &held.tensor));
  rn_mutex_lock(&copies->mutex);
  held.number = ++copies->issued;
  rn_status_t status = RN_OK;
  if (held.tensor.buffer) status = rn_vec_push(&copies->held, rn_allocator_system(), held);
  rn_mutex_unlock(&copies->mutex);
  if (!held.tensor.buffer || !rn_ok(status)) rn_tensor_clear(&held.tensor);
  return status;
}

static rn_status_t copy_out_locked(rn_cuda_copies_t* copies, rn_pool_t* pool, void* to,
                                   CUdeviceptr from, size_t size, const rn_tensor_t* held,
                                   bool is_free) {
  rn_cuda_card_t* card = copies->card;
  copy_way_t* way = &copies->out;
  RN_RETURN_IF_ERROR(order(card, card->stream, way->stream));
  if (!is_pinned(card, to) && has_buffers(card, way))
    return stage_out(card, way, pool, to, from, size);
  RN_RETURN_IF_ERROR(RN_CARD(card, cuMemcpyDtoHAsync_v2, to, from, size, way->stream));
  return is_free ? hold(copies, held) : order(card, way->stream, card->stream);
}

rn_status_t rn_cuda_copy_out(rn_cuda_copies_t* copies, rn_pool_t* pool, void* to, CUdeviceptr from,
                             size_t size, const rn_tensor_t* held, bool is_free) {
  RN_RETURN_IF_ERROR(rn_cuda_enter(copies->card));
  rn_mutex_lock(&copies->out.mutex);
  rn_status_t status = copy_out_locked(copies, pool, to, from, size, held, is_free);
  rn_mutex_unlock(&copies->out.mutex);
  return status;
}

// Releases the sources of the copies up to |number|. Freeing memory takes other locks, so that
// happens outside of this one.
static void release_held(rn_cuda_copies_t* copies, uint64_t number) {
  for (bool found = true; found;) {
    rn_tensor_t tensor = {0};
    found = false;
    rn_mutex_lock(&copies->mutex);
    if (number > copies->ended && number <= copies->issued) copies->ended = number;
    for (size_t i = 0; !found && i < copies->held.count; ++i) {
      if (copies->held.items[i].number > number) continue;
      tensor = copies->held.items[i].tensor;
      copies->held.items[i] = copies->held.items[--copies->held.count];
      found = true;
    }
    rn_mutex_unlock(&copies->mutex);
    rn_tensor_clear(&tensor);
  }
}

// The number of the last free copy; 0 if all have ended.
static uint64_t last_number(rn_cuda_copies_t* copies) {
  rn_mutex_lock(&copies->mutex);
  uint64_t last = copies->issued > copies->ended ? copies->issued : 0;
  rn_mutex_unlock(&copies->mutex);
  return last;
}

rn_status_t rn_cuda_copies_wait(rn_cuda_copies_t* copies) {
  uint64_t last = last_number(copies);
  if (!last) return RN_OK;
  CUevent event = NULL;
  rn_status_t status = rn_cuda_mark_stream(copies->card, copies->out.stream, &event);
  if (rn_ok(status)) status = rn_cuda_await(copies->card, event);
  rn_cuda_unmark(copies->card, event);
  release_held(copies, last);  // a lost card reads nothing any more
  return status;
}

rn_status_t rn_cuda_copies_join(rn_cuda_copies_t* copies) {
  if (!last_number(copies)) return RN_OK;
  return order(copies->card, copies->out.stream, copies->card->stream);
}
