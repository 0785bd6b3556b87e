// Reads ahead. See read_ahead.h.
//
// The task and the caller claim pieces in order and read them without the lock:
//
//   taken ... [ ready | being read | ready | being read ) claimed ... count
#include "io/read_ahead.h"

#include "base/container.h"
#include "base/pool_wait.h"

#define DEPTH 4  // pieces being read or waiting for the caller

typedef struct read_ahead_slot_t {
  rn_buffer_t* block;
  size_t size;
  rn_status_t status;
  bool is_ready;
} read_ahead_slot_t;

struct rn_read_ahead_t {
  rn_allocator_t allocator;
  rn_read_ahead_options_t options;
  uint64_t count;  // of pieces
  rn_job_t job;
  rn_mutex_t mutex;  // guards what follows, except slots that are being read
  rn_cond_t changed;
  uint64_t taken, claimed;
  bool is_active;   // |job| is queued or running
  bool is_stopped;  // no more pieces may be claimed
  read_ahead_slot_t slots[DEPTH];
};

void rn_read_ahead_destroy(rn_read_ahead_t* ahead) {
  if (!ahead) return;
  rn_mutex_lock(&ahead->mutex);
  ahead->is_stopped = true;
  while (ahead->is_active)
    if (!rn_pool_help_unlocked(ahead->options.pool, &ahead->mutex) && ahead->is_active)
      rn_cond_wait_a_while(&ahead->changed, &ahead->mutex);
  rn_mutex_unlock(&ahead->mutex);
  for (int i = 0; i < DEPTH; ++i) {
    rn_buffer_release(ahead->slots[i].block);
    rn_status_free(ahead->slots[i].status);
  }
  rn_cond_destroy(&ahead->changed);
  rn_mutex_destroy(&ahead->mutex);
  RN_FREE(ahead->allocator, ahead);
}

static rn_status_t read_piece(const rn_read_ahead_options_t* options, uint64_t piece,
                              read_ahead_slot_t* slot) {
  uint64_t offset = options->begin + piece * options->piece, left = options->end - offset;
  size_t size = left < options->piece ? (size_t)left : options->piece, capacity = 0;
  if (!rn_add_ok(options->room, options->piece, &capacity)) return rn_out_of_memory();
  RN_RETURN_IF_ERROR(rn_buffer_create(options->memory, RN_UINT8, capacity, &slot->block));
  return options->file->vtable->read_at(
      options->file, offset, (char*)slot->block->data + options->room, size, &slot->size);
}

// Claims and reads the next piece; false if there is none to claim.
static bool read_next_locked(rn_read_ahead_t* ahead) {
  if (ahead->is_stopped || ahead->claimed == ahead->count || ahead->claimed - ahead->taken == DEPTH)
    return false;
  uint64_t piece = ahead->claimed++;
  read_ahead_slot_t* slot = &ahead->slots[piece % DEPTH];
  rn_mutex_unlock(&ahead->mutex);
  slot->status = read_piece(&ahead->options, piece, slot);
  rn_mutex_lock(&ahead->mutex);
  slot->is_ready = true;
  rn_cond_signal(&ahead->changed);
  return true;
}

static void run(rn_job_t* job) {
  rn_read_ahead_t* ahead = RN_CONTAINER_OF(job, rn_read_ahead_t, job);
  rn_mutex_lock(&ahead->mutex);
  while (read_next_locked(ahead)) continue;
  ahead->is_active = false;
  rn_cond_signal(&ahead->changed);
  rn_mutex_unlock(&ahead->mutex);
}

rn_status_t rn_read_ahead_create(const rn_read_ahead_options_t* options, rn_allocator_t allocator,
                                 rn_read_ahead_t** out) {
  *out = NULL;
  rn_read_ahead_t* ahead = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &ahead));
  ahead->allocator = allocator;
  ahead->options = *options;
  ahead->count = (options->end - options->begin + options->piece - 1) / options->piece;
  ahead->job.run = run;
  rn_mutex_init(&ahead->mutex);
  rn_cond_init(&ahead->changed);
  *out = ahead;
  return RN_OK;
}

// Starts a task when enough slots are free.
static void start_task(rn_read_ahead_t* ahead) {
  rn_mutex_lock(&ahead->mutex);
  bool starts = !ahead->is_active && ahead->claimed < ahead->count &&
                ahead->claimed - ahead->taken <= DEPTH / 2;
  if (starts) ahead->is_active = true;
  rn_mutex_unlock(&ahead->mutex);
  if (starts) rn_pool_submit(ahead->options.pool, &ahead->job);
}

rn_status_t rn_read_ahead_next(rn_read_ahead_t* ahead, rn_buffer_t** out_block, size_t* out_size) {
  *out_block = NULL;
  *out_size = 0;
  start_task(ahead);
  rn_mutex_lock(&ahead->mutex);
  read_ahead_slot_t* slot = &ahead->slots[ahead->taken % DEPTH];
  bool is_last = ahead->taken == ahead->count;
  // A piece that is not ready is being read by the task or not claimed yet.
  while (!is_last && !slot->is_ready)
    if (!read_next_locked(ahead) && !slot->is_ready) rn_cond_wait(&ahead->changed, &ahead->mutex);
  read_ahead_slot_t found = *slot;
  *slot = (read_ahead_slot_t){0};
  if (!is_last) ahead->taken++;
  rn_mutex_unlock(&ahead->mutex);
  if (!rn_ok(found.status)) {
    rn_buffer_release(found.block);
    return found.status;
  }
  *out_block = found.block;
  *out_size = found.size;
  return RN_OK;
}
