// See batcher.h and batcher_internal.h.
#include "base/container.h"
#include "serve/model/batch_split.h"
#include "serve/model/batcher_internal.h"

// Requests without a deadline run as if they had this one, so that others do not starve them.
#define PATIENCE_NS INT64_C(1000000000)
// Batches are smaller for this many batches after requests of two priorities met.
#define MIXED_BATCHES 64

int64_t rn_batcher_now(const rn_batcher_t* batcher) {
  return batcher->options.env->now_ns(batcher->options.env->self);
}

void rn_batcher_enter(rn_batcher_t* batcher) {
  atomic_fetch_add_explicit(&batcher->refs, 1, memory_order_relaxed);
}

void rn_batcher_leave(rn_batcher_t* batcher) {
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

rn_status_t rn_batcher_create(const rn_batcher_options_t* options, rn_backend_t* backend,
                              rn_batcher_t** out) {
  *out = NULL;
  rn_batcher_t* batcher = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &batcher));
  batcher->options = *options;
  batcher->options.allowed_count = 0;
  find_series(options, &batcher->series);
  batcher->backend = backend;
  if (backend->device && options->device_pool) {
    batcher->options.pool = options->device_pool;
    batcher->options.shares = NULL;
  }
  batcher->has_pool = rn_pool_threads(batcher->options.pool) > 1;
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
  if (rn_ok(status) && batcher->options.shares && backend->blocks)
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
    rn_batcher_leave(batcher);
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
  rn_batcher_leave(batcher);
}

static rn_status_t is_full(const rn_batcher_t* batcher, const rn_predict_t* predict) {
  return rn_unavailable(
      "The batch scheduling queue to which this task was submitted is full; task size is %lld but "
      "only %lld tasks may wait",
      (long long)predict->rows, (long long)batcher->options.max_queued);
}

rn_status_t rn_batcher_overloaded(const rn_predict_t* predict) {
  return rn_unavailable(
      "The model has more requests than it can answer in time; try again in %lld ms",
      (long long)(predict->retry_ns / 1000000 + 1));
}

bool rn_batcher_is_cancelled(const rn_predict_t* predict) {
  return predict->cancel && rn_is_cancelled(predict->cancel);
}

rn_status_t rn_batcher_cancelled(void) { return rn_cancelled("The request was cancelled"); }

rn_status_t rn_batcher_late(void) {
  return rn_deadline_exceeded("Run() timeout exceeded while waiting in batching queue");
}

static void on_cancel(rn_cancel_entry_t* entry) {
  rn_predict_t* predict = RN_CONTAINER_OF(entry, rn_predict_t, entry);
  rn_batcher_t* batcher = predict->holder;
  rn_batcher_enter(batcher);
  rn_mutex_lock(&batcher->mutex);
  bool was_queued = rn_batch_queue_has(predict);
  if (was_queued) {
    rn_batch_queue_remove(&batcher->queue, predict);
    ++batcher->cancelled;
  }
  rn_mutex_unlock(&batcher->mutex);
  // Otherwise its batch is about to start, and will look at the flag.
  if (was_queued) rn_predict_finish(predict, rn_batcher_cancelled());
  rn_batcher_leave(batcher);
}

rn_status_t rn_batcher_enqueue_locked(rn_batcher_t* batcher, rn_predict_t* predict, bool is_alone) {
  RN_RETURN_IF_ERROR(rn_batch_queue_add(&batcher->queue, predict, is_alone));
  if (!predict->cancel) return RN_OK;
  predict->entry = (rn_cancel_entry_t){.fn = on_cancel};
  if (rn_cancel_add(predict->cancel, &predict->entry)) return RN_OK;
  predict->entry.fn = NULL;
  rn_batch_queue_remove(&batcher->queue, predict);
  return rn_batcher_cancelled();
}

static void on_timer(rn_timer_t* timer) {
  rn_batcher_t* batcher = RN_CONTAINER_OF(timer, rn_batcher_t, timer);
  rn_batcher_enter(batcher);
  rn_batch_work_t work = {0};
  rn_mutex_lock(&batcher->mutex);
  int64_t now = rn_batcher_now(batcher);
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
  rn_batcher_work_off(batcher, &work, RN_BATCH_PLACE_EVENT);
  rn_batcher_leave(batcher);
}

static void on_watch(rn_timer_t* timer) {
  rn_batcher_t* batcher = RN_CONTAINER_OF(timer, rn_batcher_t, watch);
  rn_batcher_enter(batcher);
  rn_mutex_lock(&batcher->mutex);
  rn_batch_t* overdue = rn_batcher_overdue_locked(batcher, rn_batcher_now(batcher));
  rn_mutex_unlock(&batcher->mutex);
  for (rn_batch_t* batch; (batch = overdue);) {
    overdue = batch->next_overdue;
    rn_batch_cancel(batch);
  }
  rn_batcher_leave(batcher);
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
                                                        : rn_batcher_overloaded(predict);
  rn_batch_wait_arrive(&batcher->wait, batcher->queue.count + batcher->running_count + 1);
  if (rn_batcher_form_one_locked(batcher, predict, is_alone, now, work)) return RN_OK;
  RN_RETURN_IF_ERROR(rn_batcher_enqueue_locked(batcher, predict, is_alone));
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
  int64_t now = rn_batcher_now(batcher);
  predict->holder = batcher;
  predict->come_ns = now;
  predict->due_ns = predict->deadline_ns < INT64_MAX ? predict->deadline_ns : now + PATIENCE_NS;
  predict->entry.fn = NULL;
  predict->places[0] = predict->places[1] = 0;
  rn_status_t status = RN_OK;
  if (predict->deadline_ns <= now) {
    rn_series_add(batcher->series.deadline, 1);
    status = rn_batcher_late();
  }
  if (rn_batcher_is_cancelled(predict)) status = rn_status_join(status, rn_batcher_cancelled());
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
  rn_batcher_enter(batcher);
  rn_batch_work_t work = {0};
  rn_mutex_lock(&batcher->mutex);
  status = admit_locked(batcher, predict, now, &work);
  rn_mutex_unlock(&batcher->mutex);
  if (!rn_ok(status)) rn_predict_finish(predict, status);
  rn_batcher_work_off(batcher, &work, RN_BATCH_PLACE_CALLER);
  rn_batcher_leave(batcher);
}

rn_batcher_stats_t rn_batcher_stats(const rn_batcher_t* batcher) {
  rn_mutex_t* mutex = (rn_mutex_t*)&batcher->mutex;
  int64_t now = rn_batcher_now(batcher);
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
