// A map whose function runs for several elements at once.
//
// Elements occupy a ring of slots, one per concurrent call. A request fills the free slots from the
// input; tasks on the pool, and the requesting thread itself, take queued slots in order and call
// the function. A deterministic map waits for the oldest slot, otherwise for any. With a pool of
// one thread the requester does everything, one element at a time.

#include "base/pool_wait.h"
#include "kernels/cpu/dataset/map.h"
#include "kernels/cpu/dataset/waiter.h"

#define MAX_SLOTS 4096
#define AUTOTUNE_SLOTS 32

typedef struct parallel_t {
  rn_data_mapped_t mapped;
  int64_t slots;
  int64_t limit;  // slots in use: fewer if there are few threads
  bool is_ordered;
  bool judges;        // gives the input's elements, each with the function's result
  rn_dtype_t* types;  // Owned; the types of such elements
} parallel_t;

typedef enum parallel_map_state_t { FREE, QUEUED, RUNNING, DONE } parallel_map_state_t;

typedef struct parallel_map_slot_t {
  rn_data_call_t call;
  rn_tensor_t* row;
  rn_status_t status;  // of the input or the call
  parallel_map_state_t state;
} parallel_map_slot_t;

typedef struct runner_t {
  rn_job_t job;
  struct parallel_iterator_t* owner;
  bool is_active;
} runner_t;

typedef struct parallel_iterator_t {
  rn_data_iterator_t base;
  rn_data_run_t* inner;  // cancels calls and the input
  rn_data_source_t source;
  runner_t* runners;
  int32_t runner_count;
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t idle;
  bool is_started;
  parallel_map_slot_t* slots;  // a ring; [head, head + count) are in use
  int64_t head, count;
  int64_t running;          // number of running slots and runners
  bool is_filling;          // the requester waits for the input
  bool is_over;             // the input has ended
  bool is_ended;            // the function signalled the end
  rn_data_waiter_t waiter;  // the requester waits for a slot
} parallel_iterator_t;

static rn_status_t read_calls(rn_dataset_t* dataset) {
  parallel_t* own = (parallel_t*)dataset;
  int64_t calls = 0;
  RN_RETURN_IF_ERROR(rn_data_scalar(dataset, "num_parallel_calls", &calls));
  if (calls <= 0 && calls != RN_DATA_AUTOTUNE)
    return rn_invalid_argument("num_parallel_calls must be greater than zero.");
  int64_t threads = rn_pool_threads(dataset->host->pool);
  own->slots = calls == RN_DATA_AUTOTUNE ? AUTOTUNE_SLOTS : calls > MAX_SLOTS ? MAX_SLOTS : calls;
  int64_t useful = calls == RN_DATA_AUTOTUNE ? 2 * threads : calls;
  own->limit = threads == 1 ? 1 : useful < own->slots ? useful : own->slots;
  const rn_attr_value_t* deterministic = rn_data_attr(dataset, "deterministic");
  own->is_ordered = !rn_data_flag(dataset, "sloppy") &&
                    !(deterministic && deterministic->kind == RN_ATTR_STRING &&
                      rn_str_is(deterministic->s, "false"));
  return RN_OK;
}

static rn_status_t parallel_open(rn_dataset_t* dataset) {
  parallel_t* own = (parallel_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_open_mapped(dataset, "f"));
  RN_RETURN_IF_ERROR(
      rn_data_func_gives(&own->mapped.func, dataset->component_count, dataset->types));
  return read_calls(dataset);
}

// The elements of the input, with the result of the predicate.
static rn_status_t judged_open(rn_dataset_t* dataset) {
  parallel_t* own = (parallel_t*)dataset;
  RN_RETURN_IF_ERROR(rn_data_open_predicate(dataset));
  int32_t count = own->mapped.input->component_count;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(dataset->node->allocator, (size_t)count + 1, &own->types));
  memcpy(own->types, own->mapped.input->types, (size_t)count * sizeof *own->types);
  own->types[count] = own->mapped.func.instance->result_types[0];
  own->judges = true;
  dataset->component_count = count + 1;
  dataset->types = own->types;
  return read_calls(dataset);
}

static void judged_close(rn_dataset_t* dataset) {
  parallel_t* own = (parallel_t*)dataset;
  if (own->types)
    RN_FREE_ARRAY(dataset->node->allocator, own->types,
                  (size_t)own->mapped.input->component_count + 1);
  rn_data_close_mapped(dataset);
}

static void run_job(rn_job_t* job);
static void slot_called(rn_data_call_t* call);

static rn_status_t parallel_start(rn_data_iterator_t* iterator) {
  parallel_iterator_t* own = (parallel_iterator_t*)iterator;
  const parallel_t* dataset = (const parallel_t*)iterator->dataset;
  rn_mutex_init(&own->mutex);
  rn_cond_init(&own->idle);
  own->waiter = (rn_data_waiter_t){.iterator = iterator, .mutex = &own->mutex};
  own->is_started = true;
  RN_RETURN_IF_ERROR(rn_data_run_create(iterator->dataset->host, iterator->run,
                                        iterator->run->step.call_depth, &own->inner));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&iterator->arena, (size_t)dataset->slots, &own->slots));
  for (int64_t i = 0; i < dataset->slots; ++i) {
    parallel_map_slot_t* slot = &own->slots[i];
    RN_RETURN_IF_ERROR(rn_data_row(iterator, dataset->mapped.input->component_count, &slot->row));
    RN_RETURN_IF_ERROR(rn_data_call_init(&slot->call, iterator, &dataset->mapped.func));
    slot->call.resume = slot_called;
  }
  int threads = rn_pool_threads(iterator->dataset->host->pool);
  int64_t runners = dataset->limit - 1 < threads - 1 ? dataset->limit - 1 : threads - 1;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&iterator->arena, (size_t)runners, &own->runners));
  own->runner_count = (int32_t)runners;
  for (int32_t i = 0; i < own->runner_count; ++i)
    own->runners[i] = (runner_t){.job = {.run = run_job}, .owner = own};
  own->source.run = own->inner;
  return rn_data_source_start(&own->source, iterator, dataset->mapped.input);
}

static void clear_slot(parallel_iterator_t* own, parallel_map_slot_t* slot) {
  const parallel_t* dataset = (const parallel_t*)own->base.dataset;
  rn_data_row_clear(slot->row, dataset->mapped.input->component_count);
  rn_data_call_clear(&slot->call, &dataset->mapped.func);
  rn_status_free(slot->status);
  slot->status = RN_OK;
  slot->state = FREE;
}

static void parallel_stop(rn_data_iterator_t* iterator) {
  parallel_iterator_t* own = (parallel_iterator_t*)iterator;
  const parallel_t* dataset = (const parallel_t*)iterator->dataset;
  rn_data_source_stop(&own->source);
  for (int64_t i = 0; own->slots && i < dataset->slots; ++i) clear_slot(own, &own->slots[i]);
  if (own->inner) rn_object_release(&own->inner->object);
  if (!own->is_started) return;
  rn_cond_destroy(&own->idle);
  rn_mutex_destroy(&own->mutex);
}

static void parallel_abandon(rn_data_iterator_t* iterator) {
  parallel_iterator_t* own = (parallel_iterator_t*)iterator;
  if (own->inner) rn_cancel(&own->inner->cancel);
}

static parallel_map_slot_t* slot_at(const parallel_iterator_t* own, int64_t i) {
  return &own->slots[(own->head + i) % ((const parallel_t*)own->base.dataset)->slots];
}

// Background work holds the iterator and the host.
static bool begin_background_locked(parallel_iterator_t* own) {
  if (!rn_data_host_enter(own->base.dataset->host)) return false;
  rn_object_retain(&own->base.object);
  own->running++;
  return true;
}

static void end_background(parallel_iterator_t* own) {
  rn_data_host_t* host = own->base.dataset->host;
  rn_mutex_lock(&own->mutex);
  if (--own->running == 0) rn_cond_broadcast(&own->idle);
  rn_mutex_unlock(&own->mutex);
  rn_object_retain(&host->object);
  rn_object_release(&own->base.object);
  rn_data_host_leave(host);
  rn_object_release(&host->object);
}

// The slot with the next element to give, and its index in |*out_place|; NULL if none is ready.
static parallel_map_slot_t* ready_locked(const parallel_iterator_t* own, int64_t* out_place) {
  bool is_ordered = ((const parallel_t*)own->base.dataset)->is_ordered;
  for (int64_t i = 0; i < own->count; ++i) {
    parallel_map_slot_t* slot = slot_at(own, i);
    *out_place = i;
    if (slot->state == DONE) return slot;
    if (is_ordered && slot->state != FREE) return NULL;
  }
  return NULL;
}

static void drop_given_locked(parallel_iterator_t* own) {
  while (own->count > 0 && slot_at(own, 0)->state == FREE) {
    own->head = (own->head + 1) % ((const parallel_t*)own->base.dataset)->slots;
    own->count--;
  }
}

// Gives the next element if there is one. Drops the slots after an end that the function signalled.
static bool give_locked(parallel_iterator_t* own) {
  const parallel_t* dataset = (const parallel_t*)own->base.dataset;
  rn_data_request_t* asked = own->base.asked;
  int64_t place = 0;
  parallel_map_slot_t* slot = ready_locked(own, &place);
  if (own->is_ended || (own->count == 0 && own->is_over)) {
    asked->is_end = true;
    return true;
  }
  if (!slot) return false;
  bool is_end = false;
  asked->status =
      dataset->judges ? slot->status : rn_data_map_status(&dataset->mapped, slot->status, &is_end);
  slot->status = RN_OK;
  if (is_end) {
    own->is_ended = true;
    asked->is_end = true;
  } else if (rn_ok(asked->status)) {
    int32_t kept = dataset->judges ? own->base.dataset->component_count - 1 : 0;
    rn_data_row_move(slot->row, asked->out, kept);
    rn_data_row_move(slot->call.results, asked->out + kept,
                     own->base.dataset->component_count - kept);
  }
  clear_slot(own, slot);
  drop_given_locked(own);
  return true;
}

// A call has ended: marks its slot done and resumes the requester if it waits for it.
static void slot_done(parallel_iterator_t* own, parallel_map_slot_t* slot) {
  const parallel_t* dataset = (const parallel_t*)own->base.dataset;
  if (!dataset->judges) rn_data_row_clear(slot->row, dataset->mapped.input->component_count);
  rn_mutex_lock(&own->mutex);
  slot->status = slot->call.status;
  slot->state = DONE;
  bool serves = own->waiter.is_waiting && give_locked(own);
  rn_data_request_t* request = serves ? rn_data_waiter_take_locked(&own->waiter) : NULL;
  rn_mutex_unlock(&own->mutex);
  rn_data_waiter_answer(&own->waiter, request);
}

static void slot_called(rn_data_call_t* call) {
  parallel_iterator_t* own = (parallel_iterator_t*)call->owner;
  slot_done(own, (parallel_map_slot_t*)call);
  end_background(own);
}

// Takes the oldest queued slot, marks it running and counts it; NULL if there is none.
static parallel_map_slot_t* take_queued_locked(parallel_iterator_t* own) {
  for (int64_t i = 0; i < own->count; ++i) {
    parallel_map_slot_t* slot = slot_at(own, i);
    if (slot->state != QUEUED) continue;
    if (!begin_background_locked(own)) return NULL;
    slot->state = RUNNING;
    return slot;
  }
  return NULL;
}

// Calls the function for |slot|. If it does not complete at once, slot_called is called later.
static void run_slot(parallel_iterator_t* own, parallel_map_slot_t* slot) {
  const parallel_t* dataset = (const parallel_t*)own->base.dataset;
  if (!rn_data_call(&slot->call, &dataset->mapped.func, slot->row,
                    dataset->mapped.input->component_count, &own->inner->step))
    return;
  slot_done(own, slot);
  end_background(own);
}

static void run_job(rn_job_t* job) {
  runner_t* runner = (runner_t*)job;
  parallel_iterator_t* own = runner->owner;
  for (;;) {
    rn_mutex_lock(&own->mutex);
    parallel_map_slot_t* slot =
        rn_is_cancelled(&own->inner->cancel) ? NULL : take_queued_locked(own);
    if (!slot) runner->is_active = false;
    rn_mutex_unlock(&own->mutex);
    if (!slot) break;
    run_slot(own, slot);
  }
  end_background(own);
}

// Starts one runner per queued slot.
static void start_runners(parallel_iterator_t* own) {
  for (int32_t i = 0; i < own->runner_count; ++i) {
    runner_t* runner = &own->runners[i];
    rn_mutex_lock(&own->mutex);
    int64_t queued = 0;
    for (int64_t s = 0; s < own->count; ++s) queued += slot_at(own, s)->state == QUEUED;
    bool starts = !runner->is_active && queued > i && begin_background_locked(own);
    if (starts) runner->is_active = true;
    rn_mutex_unlock(&own->mutex);
    if (starts) rn_pool_submit(own->base.dataset->host->pool, &runner->job);
  }
}

// Queues the element that has arrived in the next slot.
static void queue_arrived(parallel_iterator_t* own) {
  rn_data_request_t* request = &own->source.request;
  rn_mutex_lock(&own->mutex);
  if (request->is_end) {
    own->is_over = true;
  } else {
    parallel_map_slot_t* slot = slot_at(own, own->count);
    slot->status = request->status;
    slot->state = rn_ok(request->status) ? QUEUED : DONE;
    own->count++;
  }
  rn_mutex_unlock(&own->mutex);
}

// Fills free slots from the input. False if it has to wait for the input.
static bool fill(parallel_iterator_t* own) {
  const parallel_t* dataset = (const parallel_t*)own->base.dataset;
  for (;;) {
    rn_mutex_lock(&own->mutex);
    bool is_full = own->count >= dataset->limit || own->is_over || own->is_ended;
    parallel_map_slot_t* slot = is_full ? NULL : slot_at(own, own->count);
    rn_mutex_unlock(&own->mutex);
    if (is_full) return true;
    own->is_filling = true;
    if (!rn_data_ask(&own->source, slot->row)) return false;
    own->is_filling = false;
    queue_arrived(own);
  }
}

// True if the request is complete.
static bool wait_for_slot(parallel_iterator_t* own) {
  bool is_done = false;
  if (rn_data_waiter_enter(&own->waiter)) {
    rn_mutex_lock(&own->mutex);
    is_done = give_locked(own);
    bool waits = !is_done && rn_data_waiter_wait_locked(&own->waiter);
    rn_mutex_unlock(&own->mutex);
    if (waits) return false;
    rn_data_waiter_leave(&own->waiter);
  }
  if (!is_done) own->base.asked->status = rn_cancelled("Operation was cancelled");
  return true;
}

// Runs queued slots on the requester's thread while none is ready.
static bool work(parallel_iterator_t* own) {
  for (;;) {
    rn_mutex_lock(&own->mutex);
    bool is_done = give_locked(own);
    parallel_map_slot_t* slot = is_done ? NULL : take_queued_locked(own);
    rn_mutex_unlock(&own->mutex);
    if (is_done) return true;
    if (!slot) return wait_for_slot(own);
    run_slot(own, slot);
  }
}

static bool parallel_next(rn_data_iterator_t* iterator) {
  parallel_iterator_t* own = (parallel_iterator_t*)iterator;
  if (own->is_filling) {  // the input has replied
    own->is_filling = false;
    queue_arrived(own);
  }
  if (!fill(own)) return false;
  if (own->runner_count > 0) start_runners(own);
  return work(own);
}

static void quiesce(parallel_iterator_t* own) {
  rn_pool_t* pool = own->base.dataset->host->pool;
  rn_mutex_lock(&own->mutex);
  while (own->running > 0)
    if (!rn_pool_help_unlocked(pool, &own->mutex) && own->running > 0)
      rn_cond_wait_a_while(&own->idle, &own->mutex);
  rn_mutex_unlock(&own->mutex);
}

// Number of a call's results that go into an element.
static int32_t made_count(const parallel_t* dataset) {
  return dataset->judges ? 1 : dataset->mapped.base.component_count;
}

// For finished slots saves the results, for queued ones the element.
static rn_status_t parallel_save(rn_data_iterator_t* iterator, rn_data_writer_t* writer) {
  parallel_iterator_t* own = (parallel_iterator_t*)iterator;
  const parallel_t* dataset = (const parallel_t*)iterator->dataset;
  quiesce(own);
  rn_data_put_int(writer, own->is_over);
  rn_data_put_int(writer, own->is_ended);
  int64_t used = 0;
  for (int64_t i = 0; i < own->count; ++i) used += slot_at(own, i)->state != FREE;
  rn_data_put_int(writer, used);
  for (int64_t i = 0; i < own->count; ++i) {
    parallel_map_slot_t* slot = slot_at(own, i);
    if (slot->state == FREE) continue;
    rn_data_put_int(writer, slot->state == DONE);
    rn_data_put_int(writer, rn_status_code(slot->status));
    rn_data_put_text(writer, rn_str(rn_status_message(slot->status)));
    bool is_good = slot->state == DONE && rn_ok(slot->status);
    if (slot->state == QUEUED || (is_good && dataset->judges))
      rn_data_put_row(writer, slot->row, dataset->mapped.input->component_count);
    if (is_good) rn_data_put_row(writer, slot->call.results, made_count(dataset));
  }
  return rn_data_put_iterator(writer, own->source.iterator);
}

static rn_status_t restore_slot(parallel_iterator_t* own, parallel_map_slot_t* slot,
                                rn_data_reader_t* reader) {
  const parallel_t* dataset = (const parallel_t*)own->base.dataset;
  int64_t is_done = 0, code = 0;
  rn_str_t message;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_done));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &code));
  RN_RETURN_IF_ERROR(rn_data_take_text(reader, &message));
  if (code < 0 || code > RN_CODE_UNAUTHENTICATED || (code && !is_done)) return rn_data_bad_state();
  slot->state = is_done ? DONE : QUEUED;
  if (code) slot->status = rn_status_make_n((rn_code_t)code, message.data, message.size);
  if (!is_done || (dataset->judges && !code))
    RN_RETURN_IF_ERROR(rn_data_take_row(reader, dataset->mapped.input->types,
                                        dataset->mapped.input->component_count, slot->row));
  if (!is_done || code) return RN_OK;
  return rn_data_take_row(reader, dataset->mapped.func.instance->result_types, made_count(dataset),
                          slot->call.results);
}

static rn_status_t parallel_restore(rn_data_iterator_t* iterator, rn_data_reader_t* reader) {
  parallel_iterator_t* own = (parallel_iterator_t*)iterator;
  const parallel_t* dataset = (const parallel_t*)iterator->dataset;
  int64_t is_over = 0, is_ended = 0, used = 0;
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_over));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &is_ended));
  RN_RETURN_IF_ERROR(rn_data_take_int(reader, &used));
  if (used < 0 || used > dataset->slots) return rn_data_bad_state();
  own->is_over = is_over != 0;
  own->is_ended = is_ended != 0;
  own->count = used;
  for (int64_t i = 0; i < used; ++i) RN_RETURN_IF_ERROR(restore_slot(own, slot_at(own, i), reader));
  return rn_data_restore_source(reader, &own->source, iterator, dataset->mapped.input);
}

#define PARALLEL                                                                    \
  .dataset_size = sizeof(parallel_t), .iterator_size = sizeof(parallel_iterator_t), \
  .start = parallel_start, .stop = parallel_stop, .abandon = parallel_abandon,      \
  .next = parallel_next, .save = parallel_save, .restore = parallel_restore

const rn_data_kind_t rn_data_kind_parallel_map = {
    PARALLEL, .open = parallel_open, .close = rn_data_close_mapped,
    .cardinality = rn_data_mapped_cardinality, .get = rn_data_mapped_get};
const rn_data_kind_t rn_data_kind_judged = {PARALLEL, .open = judged_open, .close = judged_close};
