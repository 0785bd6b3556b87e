// Runs batches, and answers their requests: see batcher_internal.h.
#include "base/container.h"
#include "serve/model/batcher_internal.h"

// Answering more requests than this takes so long that the next batch starts on another thread.
#define FEW_ANSWERS 8

enum { PHASE_RUNS, PHASE_DONE, PHASE_RETURNED };

static void run_job(rn_job_t* job);
static void run_deferred(rn_job_t* job);
static void on_done(rn_backend_run_t* run, rn_status_t status);

// The size that a batch of |rows| is padded to.
static int64_t allowed_size(const rn_batcher_t* batcher, int64_t rows) {
  for (int i = 0; i < batcher->options.allowed_count; ++i)
    if (batcher->allowed[i] >= rows) return batcher->allowed[i];
  return rows;
}

// Answers a request that left the queue. Its cancellation must not find it afterwards.
static void answer(rn_predict_t* predict, rn_status_t status) {
  if (predict->entry.fn) rn_cancel_remove(predict->cancel, &predict->entry);
  rn_predict_finish(predict, status);
}

static rn_status_t is_overdue(void) {
  return rn_deadline_exceeded("The deadline passed while the model ran");
}

static void answer_ended(rn_batch_t* batch) {
  for (rn_predict_t* predict; (predict = batch->ended);) {
    batch->ended = predict->next;
    rn_predict_finish(
        predict, rn_batcher_is_cancelled(predict) ? rn_batcher_cancelled() : rn_batcher_late());
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
    bool is_unwanted = rn_batcher_is_cancelled(predict);
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
  batch->joined_ns = rn_batcher_now(batcher);
  drop_ended(batcher, batch, batch->joined_ns);
  if (!batch->count) {
    batch->begun_ns = batch->ended_ns = batch->joined_ns;
    return true;
  }
  bool is_alone = batch->count == 1 && batch->first->rows < 1;
  batch->status =
      rn_batch_join_inputs(batch, is_alone ? batch->rows : allowed_size(batcher, batch->rows),
                           batcher->options.pads_variable);
  batch->begun_ns = batch->ended_ns = rn_batcher_now(batcher);
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
  int64_t now = rn_batcher_now(batcher);
  rn_mutex_lock(&batcher->mutex);
  if (!is_joinable) batcher->is_joinable = false;
  for (rn_predict_t* predict; (predict = rn_batch_pop(batch));) {
    rn_status_t status = rn_batcher_enqueue_locked(batcher, predict, true);
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
  int64_t split_ns = rn_batcher_now(batcher) - batch->ended_ns;
  int64_t rows = batch->run_rows;
  for (rn_predict_t* predict; (predict = rn_batch_pop(batch));) {
    predict->times.queue_ns = batch->joined_ns - predict->come_ns;
    predict->times.batch_ns = batch->begun_ns - batch->joined_ns + split_ns;
    predict->times.join_ns = batch->begun_ns - batch->joined_ns;
    predict->times.run_ns = batch->ended_ns - batch->begun_ns;
    predict->times.batch_size = (int)(rows < INT32_MAX ? rows : INT32_MAX);
    rn_predict_finish(predict, rn_status_copy(status));
  }
  rn_status_free(status);
  rn_batch_destroy(batch);
}

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
  while ((predict = pop_request(&work->expired))) answer(predict, rn_batcher_late());
  while ((predict = pop_request(&work->late))) {
    predict->retry_ns = rn_batcher_stats(batcher).expected_ns;
    answer(predict, rn_batcher_overloaded(predict));
  }
  while ((predict = pop_request(&work->starved)))
    answer(predict, rn_batcher_is_cancelled(predict) ? rn_batcher_cancelled() : rn_out_of_memory());
}

static bool runs_here(const rn_batcher_t* batcher, const rn_batch_t* batch,
                      const rn_batch_work_t* work, rn_batch_place_t place) {
  if (!batcher->backend->blocks || !batcher->has_pool) return true;
  if (place == RN_BATCH_PLACE_DEFERRED) return true;
  if (place == RN_BATCH_PLACE_WORKER && batcher->share) return batch->turn.is_started;
  if (work->batches || place == RN_BATCH_PLACE_EVENT)
    return false;  // several lanes run at the same time
  return place == RN_BATCH_PLACE_WORKER || (batch->is_quick && !batcher->options.defer);
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

void rn_batcher_work_off(rn_batcher_t* batcher, rn_batch_work_t* work, rn_batch_place_t place) {
  for (rn_batch_t* batch;;) {
    answer_rest(batcher, work);
    batch = pop_batch(work);
    if (!batch) return;
    if (!runs_here(batcher, batch, work, place)) {
      start_elsewhere(batcher, batch);
      continue;
    }
    if (place != RN_BATCH_PLACE_WORKER)
      place = RN_BATCH_PLACE_EVENT;  // the thread has its own work to do
    if (!run_batch(batcher, batch)) continue;
    complete(batcher, batch, work);
    pass_turn(batcher, batch, work);
    deliver(batcher, batch, work);
  }
}

static void run_from(rn_job_t* job, rn_batch_place_t place) {
  rn_batch_t* batch = RN_CONTAINER_OF(job, rn_batch_t, turn.job);
  rn_batcher_t* batcher = batch->owner;
  rn_batcher_enter(batcher);
  batch->next_to_run = NULL;
  rn_batch_work_t work = {.batches = batch, .last = batch};
  rn_batcher_work_off(batcher, &work, place);
  rn_batcher_leave(batcher);
}

static void run_job(rn_job_t* job) { run_from(job, RN_BATCH_PLACE_WORKER); }
static void run_deferred(rn_job_t* job) { run_from(job, RN_BATCH_PLACE_DEFERRED); }

static void on_done(rn_backend_run_t* run, rn_status_t status) {
  rn_batch_t* batch = RN_CONTAINER_OF(run, rn_batch_t, run);
  rn_batcher_t* batcher = batch->owner;
  batch->status = status;
  batch->ended_ns = rn_batcher_now(batcher);
  rn_batcher_enter(batcher);
  if (atomic_exchange(&batch->phase, PHASE_DONE) == PHASE_RETURNED) {
    rn_batch_work_t work = {0};
    complete(batcher, batch, &work);
    deliver(batcher, batch, &work);
    rn_batcher_work_off(batcher, &work, RN_BATCH_PLACE_EVENT);
  }
  rn_batcher_leave(batcher);
}
