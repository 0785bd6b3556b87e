// See prefetch.h.
//
// A task on the pool requests elements from the input until the buffer is full or the input makes
// it wait; it continues once the input replies. It is restarted when half of the buffer has been
// used. While no task is active and the buffer is empty, a request goes to the input directly. So a
// pool of one thread prefetches nothing, and no request waits for a task that has not started.
#include "kernels/cpu/dataset/prefetch.h"

#include "base/container.h"
#include "base/pool_wait.h"
#include "kernels/cpu/dataset/waiter.h"

#define DEFAULT_CAPACITY 8
#define MAX_CAPACITY ((int64_t)1 << 16)

typedef struct prefetch_t {
  rn_dataset_t base;
  rn_dataset_t* input;
  bool owns_input;
  int64_t capacity;
} prefetch_t;

typedef struct prefetch_slot_t {
  rn_status_t status;
  rn_tensor_t* row;
} prefetch_slot_t;

typedef struct prefetch_iterator_t {
  rn_data_iterator_t base;
  rn_data_run_t* inner;     // cancels the input
  rn_data_source_t source;  // used by the task, or by a request while there is none
  rn_job_t job;
  rn_tensor_t* arriving;  // the row that the source writes to
  rn_mutex_t mutex;       // guards what follows
  rn_cond_t idle;
  prefetch_slot_t* slots;  // a ring
  int64_t head, count;
  bool is_active;           // a task is active
  bool is_direct;           // a request uses the source directly
  bool is_over;             // the input has ended
  bool is_paused;           // the task should end as soon as it can
  rn_data_waiter_t waiter;  // |base.asked| waits for an element
} prefetch_iterator_t;

static rn_status_t prefetch_open(rn_dataset_t* dataset) {
  prefetch_t* prefetch = (prefetch_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_upstream(dataset, "input_dataset", &prefetch->input));
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "buffer_size", &prefetch->capacity));
  if (prefetch->capacity < 0 && prefetch->capacity != RN_DATA_AUTOTUNE)
    return rn_invalid_argument(
        "buffer_size must be >= 0 or set buffer_size to be %d for auto-tuning", RN_DATA_AUTOTUNE);
  if (prefetch->capacity == RN_DATA_AUTOTUNE) prefetch->capacity = DEFAULT_CAPACITY;
  if (prefetch->capacity > MAX_CAPACITY) prefetch->capacity = MAX_CAPACITY;
  return RN_OK;
}

static void prefetch_close(rn_dataset_t* dataset) {
  prefetch_t* prefetch = (prefetch_t*)dataset;
  if (prefetch->owns_input) rn_dataset_release(prefetch->input);
}

static int64_t prefetch_cardinality(const rn_dataset_t* dataset) {
  return rn_dataset_cardinality(((const prefetch_t*)dataset)->input);
}

static bool works_ahead(const rn_data_iterator_t* iterator) {
  return ((const prefetch_t*)iterator->dataset)->capacity > 0 &&
         rn_data_has_threads(iterator->dataset->host);
}

static void source_done(rn_data_request_t* request);
static void run_job(rn_job_t* job);
static void kick(prefetch_iterator_t* own);

static rn_status_t start_source(prefetch_iterator_t* own) {
  const prefetch_t* prefetch = (const prefetch_t*)own->base.dataset;
  own->source.run = own->inner;
  own->source.request.done = source_done;
  return rn_data_source_start(&own->source, &own->base, prefetch->input);
}

static rn_status_t prefetch_start(rn_data_iterator_t* iterator) {
  prefetch_iterator_t* own = (prefetch_iterator_t*)iterator;
  const prefetch_t* prefetch = (const prefetch_t*)iterator->dataset;
  rn_mutex_init(&own->mutex);
  rn_cond_init(&own->idle);
  own->waiter = (rn_data_waiter_t){.iterator = iterator, .mutex = &own->mutex};
  own->job.run = run_job;
  RN_RETURN_IF_ERROR(rn_data_run_create(iterator->dataset->host, iterator->run,
                                        iterator->run->step.call_depth, &own->inner));
  int32_t components = iterator->dataset->component_count;
  RN_RETURN_IF_ERROR(rn_data_row(iterator, components, &own->arriving));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(
      &iterator->arena, (size_t)(prefetch->capacity ? prefetch->capacity : 1), &own->slots));
  return start_source(own);
}

static prefetch_slot_t* slot_at(const prefetch_iterator_t* own, int64_t i) {
  const prefetch_t* prefetch = (const prefetch_t*)own->base.dataset;
  int64_t size = prefetch->capacity ? prefetch->capacity : 1;
  return &own->slots[(own->head + i) % size];
}

static void drop_slots(prefetch_iterator_t* own) {
  int32_t components = own->base.dataset->component_count;
  for (int64_t i = 0; own->slots && i < own->count; ++i) {
    rn_status_free(slot_at(own, i)->status);
    slot_at(own, i)->status = RN_OK;
    rn_data_row_clear(slot_at(own, i)->row, components);
  }
  own->head = own->count = 0;
}

static void prefetch_stop(rn_data_iterator_t* iterator) {
  prefetch_iterator_t* own = (prefetch_iterator_t*)iterator;
  drop_slots(own);
  rn_data_row_clear(own->arriving, iterator->dataset->component_count);
  rn_data_source_stop(&own->source);
  if (own->inner) rn_object_release(&own->inner->object);
  if (!own->job.run) return;
  rn_cond_destroy(&own->idle);
  rn_mutex_destroy(&own->mutex);
}

static void prefetch_abandon(rn_data_iterator_t* iterator) {
  prefetch_iterator_t* own = (prefetch_iterator_t*)iterator;
  if (own->inner) rn_cancel(&own->inner->cancel);
}

// Appends the element that has arrived to the buffer. A slot gets its row on first use, because
// buffers are often larger than their contents. The row comes from the iterator's arena, which only
// the task uses here.
static void push_locked(prefetch_iterator_t* own) {
  rn_data_request_t* request = &own->source.request;
  if (request->is_end) {
    own->is_over = true;
    return;
  }
  int32_t components = own->base.dataset->component_count;
  prefetch_slot_t* slot = slot_at(own, own->count);
  slot->status = request->status;
  if (rn_ok(slot->status) && !slot->row)
    slot->status = rn_data_row(&own->base, components, &slot->row);
  if (rn_ok(slot->status))
    rn_data_row_move(own->arriving, slot->row, components);
  else
    rn_data_row_clear(own->arriving, components);
  own->count++;
}

static bool pop_locked(prefetch_iterator_t* own) {
  rn_data_request_t* asked = own->base.asked;
  if (own->count == 0) {
    asked->is_end = own->is_over;
    return own->is_over;
  }
  prefetch_slot_t* slot = slot_at(own, 0);
  asked->status = slot->status;
  slot->status = RN_OK;
  if (rn_ok(asked->status))
    rn_data_row_move(slot->row, asked->out, own->base.dataset->component_count);
  own->head = (own->head + 1) % ((const prefetch_t*)own->base.dataset)->capacity;
  own->count--;
  return true;
}

static bool must_stop_locked(prefetch_iterator_t* own) {
  return own->is_over || own->is_paused || rn_is_cancelled(&own->inner->cancel) ||
         own->count == ((const prefetch_t*)own->base.dataset)->capacity;
}

// Returns the waiting request if the task stops for good, so that it does not wait forever.
static rn_data_request_t* give_up_locked(prefetch_iterator_t* own) {
  rn_data_request_t* request = own->is_paused ? NULL : rn_data_waiter_take_locked(&own->waiter);
  if (request) request->status = rn_cancelled("Iterator was cancelled");
  return request;
}

// The task ends; this may free the iterator.
static void end_task_locked(prefetch_iterator_t* own) {
  rn_data_host_t* host = own->base.dataset->host;
  rn_data_request_t* request = give_up_locked(own);
  own->is_active = false;
  rn_cond_broadcast(&own->idle);
  rn_mutex_unlock(&own->mutex);
  rn_data_waiter_answer(&own->waiter, request);
  rn_object_retain(&host->object);
  rn_object_release(&own->base.object);
  rn_data_host_leave(host);
  rn_object_release(&host->object);
}

// Passes the reply of the source to the buffer or to the waiting request.
static void take_in(prefetch_iterator_t* own) {
  if (own->source.request.is_end) rn_data_source_stop(&own->source);
  rn_mutex_lock(&own->mutex);
  push_locked(own);
  bool serves = own->waiter.is_waiting && pop_locked(own);
  rn_data_request_t* request = serves ? rn_data_waiter_take_locked(&own->waiter) : NULL;
  rn_mutex_unlock(&own->mutex);
  rn_data_waiter_answer(&own->waiter, request);
}

static void task(prefetch_iterator_t* own) {
  for (;;) {
    rn_mutex_lock(&own->mutex);
    if (must_stop_locked(own)) {
      end_task_locked(own);
      return;
    }
    rn_mutex_unlock(&own->mutex);
    if (!rn_data_ask_for(&own->source, own->arriving, &own->inner->step))
      return;  // source_done continues
    take_in(own);
  }
}

static void run_job(rn_job_t* job) { task(RN_CONTAINER_OF(job, prefetch_iterator_t, job)); }

static void finish_direct(prefetch_iterator_t* own) {
  rn_data_request_t *asked = own->base.asked, *request = &own->source.request;
  asked->status = request->status;
  asked->is_end = request->is_end;
  if (request->is_end) rn_data_source_stop(&own->source);
  rn_mutex_lock(&own->mutex);
  own->is_direct = false;
  own->is_over |= asked->is_end;
  rn_mutex_unlock(&own->mutex);
}

static void source_done(rn_data_request_t* request) {
  prefetch_iterator_t* own = RN_CONTAINER_OF(request, prefetch_iterator_t, source.request);
  rn_mutex_lock(&own->mutex);
  bool is_direct = own->is_direct;
  rn_mutex_unlock(&own->mutex);
  if (is_direct) {
    finish_direct(own);
    kick(own);
    own->base.asked->done(own->base.asked);
    return;
  }
  take_in(own);
  task(own);
}

// Whether to start a task; if so, counts it.
static bool kick_locked(prefetch_iterator_t* own) {
  const prefetch_t* prefetch = (const prefetch_t*)own->base.dataset;
  if (own->is_active || own->is_direct || own->is_over || own->is_paused ||
      own->count > prefetch->capacity / 2 || !works_ahead(&own->base) ||
      !rn_data_host_enter(own->base.dataset->host))
    return false;
  own->is_active = true;
  rn_object_retain(&own->base.object);
  return true;
}

static void kick(prefetch_iterator_t* own) {
  rn_mutex_lock(&own->mutex);
  bool starts = kick_locked(own);
  rn_mutex_unlock(&own->mutex);
  if (starts) rn_pool_submit(own->base.dataset->host->pool, &own->job);
}

// The buffer is empty and a task is active. True if the request is complete.
static bool wait_for_task(prefetch_iterator_t* own) {
  bool is_done = false, is_active = true;
  if (rn_data_waiter_enter(&own->waiter)) {
    rn_mutex_lock(&own->mutex);
    is_done = pop_locked(own);
    is_active = own->is_active;
    bool waits = !is_done && is_active && rn_data_waiter_wait_locked(&own->waiter);
    rn_mutex_unlock(&own->mutex);
    if (waits) return false;
    rn_data_waiter_leave(&own->waiter);
  }
  if (is_done) return true;
  // A task that is no longer active has stopped for good.
  return rn_data_finish(
      &own->base, rn_cancelled(is_active ? "Operation was cancelled" : "Iterator was cancelled"));
}

static bool prefetch_next(rn_data_iterator_t* iterator) {
  prefetch_iterator_t* own = (prefetch_iterator_t*)iterator;
  rn_mutex_lock(&own->mutex);
  bool is_done = pop_locked(own), is_active = own->is_active;
  bool starts = is_done && kick_locked(own);
  if (!is_done && !is_active) own->is_direct = true;
  rn_mutex_unlock(&own->mutex);
  if (starts) rn_pool_submit(iterator->dataset->host->pool, &own->job);
  if (is_done) return true;
  if (is_active) return wait_for_task(own);
  if (!rn_data_ask_for(&own->source, iterator->asked->out, iterator->asked->step)) return false;
  finish_direct(own);
  kick(own);
  return true;
}

// Waits until no task is active, and lets none start.
static void hold_task(prefetch_iterator_t* own) {
  rn_pool_t* pool = own->base.dataset->host->pool;
  rn_mutex_lock(&own->mutex);
  own->is_paused = true;
  while (own->is_active)
    if (!rn_pool_help_unlocked(pool, &own->mutex) && own->is_active)
      rn_cond_wait_a_while(&own->idle, &own->mutex);
  rn_mutex_unlock(&own->mutex);
}

static void go_on(prefetch_iterator_t* own) {
  rn_mutex_lock(&own->mutex);
  own->is_paused = false;
  rn_mutex_unlock(&own->mutex);
}

static rn_status_t save_paused(prefetch_iterator_t* own, rn_data_writer_t* writer) {
  rn_data_put_int(writer, own->is_over);
  int64_t good = 0;
  while (good < own->count && rn_ok(slot_at(own, good)->status)) ++good;
  if (good < own->count)
    return rn_failed_precondition("A pending element failed: %s",
                                  rn_status_message(slot_at(own, good)->status));
  rn_data_put_int(writer, own->count);
  for (int64_t i = 0; i < own->count; ++i)
    rn_data_put_row(writer, slot_at(own, i)->row, own->base.dataset->component_count);
  return rn_data_put_iterator(writer, own->source.iterator);
}

static rn_status_t prefetch_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  prefetch_iterator_t* own = (prefetch_iterator_t*)iterator;
  hold_task(own);
  rn_status_t status = save_paused(own, writer);
  go_on(own);
  return status;
}

static rn_status_t prefetch_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  prefetch_iterator_t* own = (prefetch_iterator_t*)iterator;
  const prefetch_t* prefetch = (const prefetch_t*)iterator->dataset;
  int64_t is_over = 0, count = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_over));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &count));
  if (count < 0 || count > prefetch->capacity) return rn_data_bad_state();
  own->is_over = is_over != 0;
  for (int64_t i = 0; i < count; ++i) {
    prefetch_slot_t* slot = slot_at(own, i);
    if (!slot->row)
      RN_RETURN_IF_ERROR(rn_data_row(iterator, iterator->dataset->component_count, &slot->row));
    own->count++;
    RN_RETURN_IF_ERROR(rn_data_take_row(reader, iterator->dataset->types,
                                        iterator->dataset->component_count, slot->row));
  }
  return rn_data_restore_source(reader, &own->source, iterator, prefetch->input);
}

static rn_status_t prefetch_get(rn_dataset_t* dataset, int64_t index, rn_step_t* step,
                                rn_tensor_t* out) {
  return rn_dataset_get(((const prefetch_t*)dataset)->input, index, step, out);
}

const rn_data_kind_t rn_data_kind_prefetch = {.dataset_size = sizeof(prefetch_t),
                                              .iterator_size = sizeof(prefetch_iterator_t),
                                              .open = prefetch_open,
                                              .close = prefetch_close,
                                              .cardinality = prefetch_cardinality,
                                              .start = prefetch_start,
                                              .stop = prefetch_stop,
                                              .abandon = prefetch_abandon,
                                              .next = prefetch_next,
                                              .save = prefetch_save,
                                              .restore = prefetch_restore,
                                              .get = prefetch_get};

rn_status_t rn_data_prefetch_over(rn_dataset_t* input, int64_t capacity, rn_dataset_t** out) {
  *out = NULL;
  rn_data_node_t* node = NULL;
  RN_RETURN_IF_ERROR(rn_data_inner_node(input->node, &rn_data_kind_prefetch, input->component_count,
                                        input->types, input->shapes, &node));
  rn_dataset_t* dataset = NULL;
  rn_status_t status = rn_dataset_create_inner(node, input->host, &dataset);
  rn_object_release(&node->object);
  RN_RETURN_IF_ERROR(status);
  prefetch_t* prefetch = (prefetch_t*)dataset;
  prefetch->input = input;
  prefetch->owns_input = true;
  rn_object_retain(&input->object);
  prefetch->capacity = capacity > MAX_CAPACITY ? MAX_CAPACITY : capacity;
  *out = dataset;
  return RN_OK;
}

void rn_data_prefetch_begin(rn_data_iterator_t* iterator) { kick((prefetch_iterator_t*)iterator); }
