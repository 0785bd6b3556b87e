// See batcher.h and batcher_internal.h.
#include "base/container.h"
#include "serve/model/batch_split.h"
#include "serve/model/batcher_internal.h"

// Answering more requests than this takes so long that the next batch starts on another thread.
#define FEW_ANSWERS 8
// Requests without a deadline run as if they had this one, so that others do not starve them.
#define PATIENCE_NS INT64_C(1000000000)
// Batches are smaller for this many batches after requests of two priorities met.
#define MIXED_BATCHES 64

enum { PHASE_RUNS, PHASE_DONE, PHASE_RETURNED };

static int64_t now_ns(const rn_batcher_t* batcher) {
  return batcher->options.env->now_ns(batcher->options.env->self);
}

static void enter(rn_batcher_t* batcher) {
  atomic_fetch_add_explicit(&batcher->refs, 1, memory_order_relaxed);
}

static void leave(rn_batcher_t* batcher) {
  if (atomic_fetch_sub_explicit(&batcher->refs, 1, memory_order_acq_rel) > 1) return;
  rn_batch_queue_clear(&batcher->queue);
  rn_batch_size_destroy(batcher->size);
  rn_share_release(batcher->share);
  if (batcher->allowed)
    RN_FREE_ARRAY(batcher->options.allocator, batcher->allowed, batcher->options.allowed_count);
  rn_mutex_destroy(&batcher->mutex);
  RN_FREE(batcher->options.allocator, batcher);
}

static void find_series(const rn_batcher_options_t* options, rn_batch_series_t* out) {
  const struct {
    rn_metric_id_t id;
    rn_str_t label;
    rn_metric_series_t** series;
  } rows[] = {
      {RN_METRIC_INPUT_BATCH_SIZE, RN_STR(""), &out->rows},
      {RN_METRIC_PROCESSED_BATCH_SIZE, RN_STR(""), &out->run_rows},
      {RN_METRIC_PADDING_SIZE, RN_STR(""), &out->padding},
      {RN_METRIC_WRAPPED_RUN_COUNT, RN_STR(""), &out->batches},
      {RN_METRIC_REFUSED_COUNT, RN_STR("full"), &out->full},
      {RN_METRIC_REFUSED_COUNT, RN_STR("overload"), &out->overload},
      {RN_METRIC_REFUSED_COUNT, RN_STR("deadline"), &out->deadline},
  };
  for (size_t i = 0; options->metrics && i < sizeof rows / sizeof *rows; ++i)
    *rows[i].series =
        rn_metrics_series(options->metrics, rows[i].id, options->model, rows[i].label, RN_STR(""));
}

static void on_timer(rn_timer_t* timer);
static void on_watch(rn_timer_t* timer);
static void run_job(rn_job_t* job);
static void run_deferred(rn_job_t* job);
static void on_done(rn_backend_run_t* run, rn_status_t status);

rn_status_t rn_batcher_create(const rn_batcher_options_t* options, rn_backend_t* backend,
                              rn_batcher_t** out) {
  *out = NULL;
  rn_batcher_t* batcher = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &batcher));
  batcher->options = *options;
  batcher->options.allowed_count = 0;
  find_series(options, &batcher->series);
  batcher->backend = backend;
  batcher->has_pool = rn_pool_threads(options->pool) > 1;
  atomic_init(&batcher->refs, 1);
  rn_mutex_init(&batcher->mutex);
  batcher->timer = (rn_timer_t){.fn = on_timer};
  batcher->timer_ns = INT64_MAX;
  batcher->watch = (rn_timer_t){.fn = on_watch};
  batcher->watch_ns = INT64_MAX;
  batcher->is_joinable = true;
  rn_batch_queue_init(&batcher->queue, options->pads_variable, options->allocator);
  int64_t objective = options->size.objective_ns;
  rn_batch_wait_init(&batcher->wait, objective > 0 ? objective / 8 : INT64_MAX);
  rn_batch_size_options_t size = options->size;
  if (backend->max_rows > 0 && (size.max < 1 || backend->max_rows < size.max))
    size.max = backend->max_rows;
  batcher->max_rows = size.max;
  rn_status_t status = rn_batch_size_create(&size, options->allocator, &batcher->size);
  if (rn_ok(status) && options->shares && backend->blocks)
    status = rn_shares_get(options->shares, options->model, &batcher->share);
  if (rn_ok(status) && options->allowed_count) {
    status = RN_NEW_ARRAY(options->allocator, (size_t)options->allowed_count, &batcher->allowed);
    if (rn_ok(status)) {
      batcher->options.allowed_count = options->allowed_count;
      memcpy(batcher->allowed, options->allowed_sizes,
             (size_t)options->allowed_count * sizeof *batcher->allowed);
    }
  }
  if (!rn_ok(status)) {
    leave(batcher);
    return status;
  }
  *out = batcher;
  return RN_OK;
}

void rn_batcher_destroy(rn_batcher_t* batcher) {
  if (!batcher) return;
  if (batcher->options.timers.clear)
    batcher->options.timers.clear(batcher->options.timers.self, &batcher->timer);
  if (batcher->options.watch.clear)
    batcher->options.watch.clear(batcher->options.watch.self, &batcher->watch);
  leave(batcher);
}

// The size that a batch of |rows| is padded to.
static int64_t allowed_size(const rn_batcher_t* batcher, int64_t rows) {
  for (int i = 0; i < batcher->options.allowed_count; ++i)
    if (batcher->allowed[i] >= rows) return batcher->allowed[i];
  return rows;
}

static rn_status_t is_full(const rn_batcher_t* batcher, const rn_predict_t* predict) {
  return rn_unavailable(
      "The batch scheduling queue to which this task was submitted is full; task size is %lld but "
      "only %lld tasks may wait",
      (long long)predict->rows, (long long)batcher->options.max_queued);
}

static rn_status_t is_overloaded(const rn_predict_t* predict) {
  return rn_unavailable(
      "The model has more requests than it can answer in time; try again in %lld ms",
      (long long)(predict->retry_ns / 1000000 + 1));
}

// Answers a request that left the queue. Its cancellation must not find it afterwards.
static void answer(rn_predict_t* predict, rn_status_t status) {
  if (predict->entry.fn) rn_cancel_remove(predict->cancel, &predict->entry);
  rn_predict_finish(predict, status);
}

static bool is_cancelled(const rn_predict_t* predict) {
  return predict->cancel && rn_is_cancelled(predict->cancel);
}

static rn_status_t was_cancelled(void) { return rn_cancelled("The request was cancelled"); }

static rn_status_t is_late(void) {
  return rn_deadline_exceeded("Run() timeout exceeded while waiting in batching queue");
}

static rn_status_t is_overdue(void) {
  return rn_deadline_exceeded("The deadline passed while the model ran");
}

static void on_cancel(rn_cancel_entry_t* entry) {
  rn_predict_t* predict = RN_CONTAINER_OF(entry, rn_predict_t, entry);
  rn_batcher_t* batcher = predict->holder;
  enter(batcher);
  rn_mutex_lock(&batcher->mutex);
  bool was_queued = rn_batch_queue_has(predict);
  if (was_queued) {
    rn_batch_queue_remove(&batcher->queue, predict);
    ++batcher->cancelled;
  }
  rn_mutex_unlock(&batcher->mutex);
  // Otherwise its batch is about to start, and will look at the flag.
  if (was_queued) rn_predict_finish(predict, was_cancelled());
  leave(batcher);
}

// Puts a request into the queue. CANCELLED if it was cancelled.
static rn_status_t enqueue_locked(rn_batcher_t* batcher, rn_predict_t* predict, bool is_alone) {
  RN_RETURN_IF_ERROR(rn_batch_queue_add(&batcher->queue, predict, is_alone));
  if (!predict->cancel) return RN_OK;
  predict->entry = (rn_cancel_entry_t){.fn = on_cancel};
  if (rn_cancel_add(predict->cancel, &predict->entry)) return RN_OK;
  predict->entry.fn = NULL;
  rn_batch_queue_remove(&batcher->queue, predict);
  return was_cancelled();
}

static void answer_ended(rn_batch_t* batch) {
  for (rn_predict_t* predict; (predict = batch->ended);) {
    batch->ended = predict->next;
    rn_predict_finish(predict, is_cancelled(predict) ? was_cancelled() : is_late());
  }
}

// Takes out of |batch| the requests that were cancelled or whose deadline passed since it was
// formed, and answers them; if none is left, that must wait until the batch is off the books,
// because the last answer may end the backend.
static void drop_ended(rn_batcher_t* batcher, rn_batch_t* batch, int64_t now) {
  int64_t expired = 0, cancelled = 0, latest = 0;
  for (int i = batch->count; i > 0; --i) {
    rn_predict_t* predict = rn_batch_pop(batch);
    if (predict->entry.fn) rn_cancel_remove(predict->cancel, &predict->entry);
    predict->entry.fn = NULL;
    bool is_unwanted = is_cancelled(predict);
    if (!is_unwanted && predict->deadline_ns > now) {
      if (predict->deadline_ns > latest) latest = predict->deadline_ns;
      rn_batch_add(batch, predict);
      continue;
    }
    cancelled += is_unwanted;
    expired += !is_unwanted;
    predict->next = batch->ended;
    batch->ended = predict;
  }
  if (!batch->ended) return;
  rn_mutex_lock(&batcher->mutex);
  batcher->expired += expired;
  rn_series_add(batcher->series.deadline, (double)expired);
  batcher->cancelled += cancelled;
  if (batch->count) {  // those that are left may have less time than those that went
    batch->deadline_ns = latest;
    rn_batcher_watch_locked(batcher, latest);
  }
  rn_mutex_unlock(&batcher->mutex);
  if (batch->count) answer_ended(batch);
}

// Runs |batch|. True if it ended: then the caller completes it; otherwise on_done does.
static bool run_batch(rn_batcher_t* batcher, rn_batch_t* batch) {
  batch->joined_ns = now_ns(batcher);
  drop_ended(batcher, batch, batch->joined_ns);
  if (!batch->count) {
    batch->begun_ns = batch->ended_ns = batch->joined_ns;
    return true;
  }
  bool is_alone = batch->count == 1 && batch->first->rows < 1;
  batch->status =
      rn_batch_join_inputs(batch, is_alone ? batch->rows : allowed_size(batcher, batch->rows),
                           batcher->options.pads_variable);
  batch->begun_ns = batch->ended_ns = now_ns(batcher);
  if (!rn_ok(batch->status)) return true;
  batch->run.done = on_done;
  batcher->backend->vtable->run(batcher->backend, &batch->run);
  return atomic_exchange(&batch->phase, PHASE_RETURNED) == PHASE_DONE;
}

static void count_batch(const rn_batch_series_t* series, const rn_batch_t* batch) {
  rn_series_add(series->rows, (double)batch->rows);
  rn_series_add(series->run_rows, (double)batch->run_rows);
  rn_series_add(series->padding, (double)(batch->run_rows - batch->rows));
  rn_series_add(series->batches, 1);
}

// Learns what |batch| cost, of which the backend took |run_ns|.
static void observe_locked(rn_batcher_t* batcher, const rn_batch_t* batch, int64_t cost_ns,
                           int64_t run_ns) {
  rn_batch_size_observe(batcher->size, batch->run_rows, cost_ns);
  batcher->run_ns += ((double)run_ns - batcher->run_ns) / 8;
}

// Books the end of |batch|, and takes what can run now from the queue.
static void complete(rn_batcher_t* batcher, rn_batch_t* batch, rn_batch_work_t* work) {
  rn_batch_end(batch);
  int64_t spent = 0;
  for (const rn_predict_t* predict = batch->first; predict; predict = predict->next)
    spent += batch->ended_ns - predict->come_ns;
  bool has_run = batch->count && rn_ok(batch->status);
  // The lane was taken since the batch was formed: starting it and joining its inputs is part of
  // what it costs, and so are the answers of the batch before, if the same thread gave them.
  int64_t cost_ns = batch->ended_ns - batch->formed_ns, run_ns = batch->ended_ns - batch->begun_ns;
  if (has_run) count_batch(&batcher->series, batch);
  rn_mutex_lock(&batcher->mutex);
  rn_batch_t** link = &batcher->running;
  while (*link != batch) link = &(*link)->next;
  *link = batch->next;
  --batcher->lanes_used;
  batcher->running_count -= batch->formed_count;
  batcher->free_ns = batch->ended_ns;
  if (has_run) {
    ++batcher->batches;
    if (batcher->mixed > 0) --batcher->mixed;
    batcher->rows += batch->rows;
    batcher->usual_rows += ((double)batch->rows - batcher->usual_rows) / 8;
    batcher->padded += batch->run_rows - batch->rows;
    observe_locked(batcher, batch, cost_ns, run_ns);
    rn_batch_wait_done(&batcher->wait, batch->count, spent);
  }
  bool was_cancelled_late = batch->is_overdue && rn_status_code(batch->status) == RN_CODE_CANCELLED;
  // It would have taken longer, but how much is unknown. A model that has turned slower than its
  // deadlines must not be given batches in vain for ever; one that does not end for some requests
  // must not refuse the others, so each batch that is cut off at most doubles what the next one is
  // expected to cost.
  if (was_cancelled_late && cost_ns > batch->expected_ns) {
    int64_t longer_ns = cost_ns + cost_ns / 2, twice_ns = 2 * batch->expected_ns;
    bool is_known = batch->expected_ns > 0;
    observe_locked(batcher, batch, is_known && twice_ns < longer_ns ? twice_ns : longer_ns, run_ns);
  }
  rn_batcher_form_locked(batcher, batch->ended_ns, work);
  rn_mutex_unlock(&batcher->mutex);
  if (!was_cancelled_late) return;
  rn_status_free(batch->status);
  batch->status = is_overdue();
}

// Whether the requests of a failed batch may succeed alone.
static bool may_retry(const rn_batch_t* batch, rn_status_t status) {
  rn_code_t code = rn_status_code(status);
  return batch->count > 1 && code != RN_CODE_OK && code != RN_CODE_UNAVAILABLE &&
         code != RN_CODE_CANCELLED && code != RN_CODE_DEADLINE_EXCEEDED &&
         code != RN_CODE_RESOURCE_EXHAUSTED;
}

// Puts the requests of a failed batch back into the queue, each to run alone. Under one lock: once
// they are there, other threads may answer all of them, and the backend may end.
static void retry(rn_batcher_t* batcher, rn_batch_t* batch, bool is_joinable,
                  rn_batch_work_t* work) {
  for (rn_predict_t* predict = batch->first; predict; predict = predict->next)
    for (int i = 0; i < predict->output_count; ++i) rn_tensor_clear(&predict->outputs[i].value);
  int64_t now = now_ns(batcher);
  rn_mutex_lock(&batcher->mutex);
  if (!is_joinable) batcher->is_joinable = false;
  for (rn_predict_t* predict; (predict = rn_batch_pop(batch));) {
    rn_status_t status = enqueue_locked(batcher, predict, true);
    if (rn_ok(status)) continue;
    rn_status_free(status);
    predict->next = work->starved;
    work->starved = predict;
  }
  rn_batcher_form_locked(batcher, now, work);
  rn_mutex_unlock(&batcher->mutex);
}

// Answers the requests of a batch that was completed.
static void deliver(rn_batcher_t* batcher, rn_batch_t* batch, rn_batch_work_t* work) {
  answer_ended(batch);
  bool has_run = rn_ok(batch->status);
  rn_status_t status = has_run && batch->count ? rn_batch_split_outputs(batch) : batch->status;
  batch->status = RN_OK;
  if (may_retry(batch, status)) {
    rn_status_free(status);
    retry(batcher, batch, !has_run, work);
    rn_batch_destroy(batch);
    return;
  }
  int64_t split_ns = now_ns(batcher) - batch->ended_ns;
  int64_t rows = batch->run_rows;
  for (rn_predict_t* predict; (predict = rn_batch_pop(batch));) {
    predict->times.queue_ns = batch->joined_ns - predict->come_ns;
    predict->times.batch_ns = batch->begun_ns - batch->joined_ns + split_ns;
    predict->times.run_ns = batch->ended_ns - batch->begun_ns;
    predict->times.batch_size = (int)(rows < INT32_MAX ? rows : INT32_MAX);
    rn_predict_finish(predict, rn_status_copy(status));
  }
  rn_status_free(status);
  rn_batch_destroy(batch);
}

// Where a thread comes from, and what it may do.
typedef enum batch_place_t {
  PLACE_CALLER,    // may run one batch, if it is quick and cannot be deferred
  PLACE_DEFERRED,  // runs the batch that was deferred
  PLACE_WORKER,    // may run batches
  PLACE_EVENT,     // must not block
} batch_place_t;

static rn_batch_t* pop_batch(rn_batch_work_t* work) {
  rn_batch_t* batch = work->batches;
  if (!batch) return NULL;
  work->batches = batch->next_to_run;
  if (!work->batches) work->last = NULL;
  return batch;
}

static void push_batch(rn_batch_work_t* work, rn_batch_t* batch) {
  batch->next_to_run = work->batches;
  if (!work->batches) work->last = batch;
  work->batches = batch;
}

static rn_predict_t* pop_request(rn_predict_t** list) {
  rn_predict_t* predict = *list;
  if (predict) *list = predict->next;
  return predict;
}

static void answer_rest(rn_batcher_t* batcher, rn_batch_work_t* work) {
  rn_predict_t* predict;
  while ((predict = pop_request(&work->expired))) answer(predict, is_late());
  while ((predict = pop_request(&work->late))) {
    predict->retry_ns = rn_batcher_stats(batcher).expected_ns;
    answer(predict, is_overloaded(predict));
  }
  while ((predict = pop_request(&work->starved)))
    answer(predict, is_cancelled(predict) ? was_cancelled() : rn_out_of_memory());
}

static bool runs_here(const rn_batcher_t* batcher, const rn_batch_t* batch,
                      const rn_batch_work_t* work, batch_place_t place) {
  if (!batcher->backend->blocks || !batcher->has_pool) return true;
  if (place == PLACE_DEFERRED) return true;
  if (place == PLACE_WORKER && batcher->share) return batch->turn.is_started;
  if (work->batches || place == PLACE_EVENT) return false;  // several lanes run at the same time
  return place == PLACE_WORKER || (batch->is_quick && !batcher->options.defer);
}

static rn_share_turn_t* set_turn(rn_batch_t* batch) {
  batch->turn.job.run = run_job;
  batch->turn.expected_ns = batch->expected_ns;
  return &batch->turn;
}

static void submit(rn_batcher_t* batcher, rn_batch_t* batch) {
  rn_share_turn_t* turn = set_turn(batch);
  if (batcher->share)
    rn_share_submit(batcher->share, turn);
  else
    rn_pool_submit(batcher->options.pool, &turn->job);
}

// |batch| has run on a worker. The next one starts meanwhile if many requests must be answered
// first; otherwise this thread goes on with it, if that has its turn.
static void pass_turn(rn_batcher_t* batcher, rn_batch_t* batch, rn_batch_work_t* work) {
  bool has_many = batch->count > FEW_ANSWERS;
  if (batch->turn.is_started) {
    rn_batch_t* next = pop_batch(work);
    bool goes_on = rn_share_end(&batch->turn, batch->ended_ns - batch->begun_ns,
                                next ? set_turn(next) : NULL, !has_many);
    if (goes_on) push_batch(work, next);
  }
  while (has_many && batcher->has_pool && batcher->backend->blocks && work->batches)
    submit(batcher, pop_batch(work));
}

// Has |batch| run elsewhere, or later: a quick one on this thread, if that can be, because waking
// another takes longer.
static void start_elsewhere(rn_batcher_t* batcher, rn_batch_t* batch) {
  const rn_batcher_options_t* options = &batcher->options;
  rn_job_t* job = &batch->turn.job;
  job->run = run_deferred;
  if (!batch->is_quick || !options->defer || !options->defer(options->defer_self, job))
    submit(batcher, batch);
}

// Handles what was taken from the queue, and what can be taken meanwhile.
static void work_off(rn_batcher_t* batcher, rn_batch_work_t* work, batch_place_t place) {
  for (rn_batch_t* batch;;) {
    answer_rest(batcher, work);
    batch = pop_batch(work);
    if (!batch) return;
    if (!runs_here(batcher, batch, work, place)) {
      start_elsewhere(batcher, batch);
      continue;
    }
    if (place != PLACE_WORKER) place = PLACE_EVENT;  // the thread has its own work to do
    if (!run_batch(batcher, batch)) continue;
    complete(batcher, batch, work);
    pass_turn(batcher, batch, work);
    deliver(batcher, batch, work);
  }
}

static void run_from(rn_job_t* job, batch_place_t place) {
  rn_batch_t* batch = RN_CONTAINER_OF(job, rn_batch_t, turn.job);
  rn_batcher_t* batcher = batch->owner;
  enter(batcher);
  batch->next_to_run = NULL;
  rn_batch_work_t work = {.batches = batch, .last = batch};
  work_off(batcher, &work, place);
  leave(batcher);
}

static void run_job(rn_job_t* job) { run_from(job, PLACE_WORKER); }
static void run_deferred(rn_job_t* job) { run_from(job, PLACE_DEFERRED); }

static void on_done(rn_backend_run_t* run, rn_status_t status) {
  rn_batch_t* batch = RN_CONTAINER_OF(run, rn_batch_t, run);
  rn_batcher_t* batcher = batch->owner;
  batch->status = status;
  batch->ended_ns = now_ns(batcher);
  enter(batcher);
  if (atomic_exchange(&batch->phase, PHASE_DONE) == PHASE_RETURNED) {
    rn_batch_work_t work = {0};
    complete(batcher, batch, &work);
    deliver(batcher, batch, &work);
    work_off(batcher, &work, PLACE_EVENT);
  }
  leave(batcher);
}

static void on_timer(rn_timer_t* timer) {
  rn_batcher_t* batcher = RN_CONTAINER_OF(timer, rn_batcher_t, timer);
  enter(batcher);
  rn_batch_work_t work = {0};
  rn_mutex_lock(&batcher->mutex);
  int64_t now = now_ns(batcher);
  batcher->timer_ns = INT64_MAX;
  for (rn_predict_t* predict;
       (predict = rn_batch_queue_earliest(&batcher->queue)) && predict->deadline_ns <= now;) {
    rn_batch_queue_remove(&batcher->queue, predict);
    ++batcher->expired;
    rn_series_add(batcher->series.deadline, 1);
    predict->next = work.expired;
    work.expired = predict;
  }
  rn_batcher_form_locked(batcher, now, &work);
  rn_mutex_unlock(&batcher->mutex);
  work_off(batcher, &work, PLACE_EVENT);
  leave(batcher);
}

static void on_watch(rn_timer_t* timer) {
  rn_batcher_t* batcher = RN_CONTAINER_OF(timer, rn_batcher_t, watch);
  enter(batcher);
  rn_mutex_lock(&batcher->mutex);
  rn_batch_t* overdue = rn_batcher_overdue_locked(batcher, now_ns(batcher));
  rn_mutex_unlock(&batcher->mutex);
  for (rn_batch_t* batch; (batch = overdue);) {
    overdue = batch->next_overdue;
    rn_batch_cancel(batch);
  }
  leave(batcher);
}

// Queues or starts a request. An error says why it is not answered otherwise.
static rn_status_t admit_locked(rn_batcher_t* batcher, rn_predict_t* predict, int64_t now,
                                rn_batch_work_t* work) {
  bool is_alone = !batcher->options.is_on || predict->rows < 1 || !batcher->is_joinable;
  if (rn_batch_queue_ahead(&batcher->queue, predict->priority) < batcher->queue.rows)
    batcher->mixed = MIXED_BATCHES;
  int64_t room = batcher->options.max_queued - batcher->queue.count;
  if (rn_batcher_refuses_locked(batcher, predict, now))
    return batcher->options.max_queued > 0 && room <= 0 ? is_full(batcher, predict)
                                                        : is_overloaded(predict);
  rn_batch_wait_arrive(&batcher->wait, batcher->queue.count + batcher->running_count + 1);
  if (rn_batcher_form_one_locked(batcher, predict, is_alone, now, work)) return RN_OK;
  RN_RETURN_IF_ERROR(enqueue_locked(batcher, predict, is_alone));
  rn_batcher_form_locked(batcher, now, work);
  return RN_OK;
}

static rn_status_t check_size(const rn_batcher_t* batcher, const rn_predict_t* predict) {
  bool is_limited = batcher->options.size.policy == RN_BATCH_FIXED && batcher->options.is_on;
  if (!is_limited && !batcher->backend->max_rows) return RN_OK;
  return rn_invalid_argument("Task size %lld is larger than maximum input batch size %lld",
                             (long long)predict->rows, (long long)batcher->max_rows);
}

void rn_batcher_add(rn_batcher_t* batcher, rn_predict_t* predict) {
  int64_t now = now_ns(batcher);
  predict->holder = batcher;
  predict->come_ns = now;
  predict->due_ns = predict->deadline_ns < INT64_MAX ? predict->deadline_ns : now + PATIENCE_NS;
  predict->entry.fn = NULL;
  predict->places[0] = predict->places[1] = 0;
  rn_status_t status = RN_OK;
  if (predict->deadline_ns <= now) {
    rn_series_add(batcher->series.deadline, 1);
    status = is_late();
  }
  if (is_cancelled(predict)) status = rn_status_join(status, was_cancelled());
  if (rn_ok(status) && batcher->max_rows && predict->rows > batcher->max_rows) {
    if (batcher->options.splits_large) {
      rn_batch_split(batcher, predict, batcher->max_rows);
      return;
    }
    status = check_size(batcher, predict);
  }
  if (!rn_ok(status)) {
    rn_predict_finish(predict, status);
    return;
  }
  enter(batcher);
  rn_batch_work_t work = {0};
  rn_mutex_lock(&batcher->mutex);
  status = admit_locked(batcher, predict, now, &work);
  rn_mutex_unlock(&batcher->mutex);
  if (!rn_ok(status)) rn_predict_finish(predict, status);
  work_off(batcher, &work, PLACE_CALLER);
  leave(batcher);
}

rn_batcher_stats_t rn_batcher_stats(const rn_batcher_t* batcher) {
  rn_mutex_t* mutex = (rn_mutex_t*)&batcher->mutex;
  int64_t now = now_ns(batcher);
  rn_mutex_lock(mutex);
  rn_batcher_stats_t stats = {
      .queued = batcher->queue.count,
      .running = batcher->running_count,
      .queued_rows = batcher->queue.rows,
      .batches = batcher->batches,
      .rows = batcher->rows,
      .padded = batcher->padded,
      .expired = batcher->expired,
      .cancelled = batcher->cancelled,
      .refused = batcher->refused,
      .limit = rn_batcher_limit_locked(batcher),
      .wait_ns = batcher->options.max_wait_ns >= 0
                     ? batcher->options.max_wait_ns
                     : rn_batch_wait_window(&batcher->wait, rn_batch_size_fixed(batcher->size)),
      .expected_ns = rn_batcher_expected_locked(batcher, 1, 0, now),
  };
  rn_mutex_unlock(mutex);
  return stats;
}
