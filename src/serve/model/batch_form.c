// When a batch starts, what is in it, and which requests are refused: see batcher_internal.h.
#include <math.h>

#include "serve/model/batcher_internal.h"

// A blocking backend runs on the caller's thread if it takes no longer: waking another costs more.
#define QUICK_NS 50000
// Nor may a batch that is larger than usual, if its cost grows with its rows.
#define QUICK_MOST_NS 200000
// Requests without a deadline are refused if the queue takes longer than this, or four objectives.
#define BACKLOG_NS INT64_C(1000000000)
#define MIN_RETRY_NS INT64_C(1000000)
#define MAX_RETRY_NS INT64_C(60000000000)

int64_t rn_batcher_limit_locked(const rn_batcher_t* batcher) {
  const rn_batch_size_options_t* size = &batcher->options.size;
  if (!batcher->options.is_on) return 1;
  // Urgent requests that just missed a batch must fit into the next.
  if (batcher->mixed > 0 && size->policy == RN_BATCH_LEARN && size->objective_ns > 0)
    return rn_batch_size_within(batcher->size, size->objective_ns / 2);
  return rn_batch_size_limit(batcher->size);
}

// When the first lane will be free, from |now|.
static int64_t busy_locked(const rn_batcher_t* batcher, int64_t now) {
  if (batcher->lanes_used < batcher->backend->lanes) return 0;
  int64_t least = INT64_MAX;
  for (const rn_batch_t* batch = batcher->running; batch; batch = batch->next) {
    int64_t since = now - batch->formed_ns, left = batch->expected_ns - since;
    // It takes longer than expected: the longer it took, the longer it will take.
    if (left < since / 8) left = since / 8;
    if (left < least) least = left;
  }
  return least;
}

// The size of the batch that a request would be in, if |rest| rows would be in it with it now:
// others will come.
static int64_t last_batch_locked(const rn_batcher_t* batcher, int64_t rest) {
  int64_t limit = rn_batcher_limit_locked(batcher);
  if (batcher->options.is_on && rest < (int64_t)batcher->usual_rows)
    rest = (int64_t)batcher->usual_rows;
  return rest < limit ? rest : limit;
}

int64_t rn_batcher_expected_locked(const rn_batcher_t* batcher, int64_t rows, int priority,
                                   int64_t now) {
  int64_t limit = rn_batcher_limit_locked(batcher);
  int64_t ahead = rn_batch_queue_ahead(&batcher->queue, priority);
  int64_t batches = ahead / limit, rest = ahead % limit + rows;
  double ns = (double)busy_locked(batcher, now) +
              (double)batches / batcher->backend->lanes *
                  (double)rn_batch_size_expect(batcher->size, limit) +
              (double)rn_batch_size_expect(batcher->size, last_batch_locked(batcher, rest));
  return ns < 9e18 ? (int64_t)ns : INT64_MAX;
}

// How much longer than |expected| it may take. The deviations of several batches partly cancel out.
static int64_t slack_locked(const rn_batcher_t* batcher, const rn_predict_t* predict,
                            int64_t expected) {
  int64_t rows = last_batch_locked(batcher, predict->rows);
  double mean = (double)rn_batch_size_expect(batcher->size, rows);
  if (mean <= 0) return 0;
  double most = (double)rn_batch_size_expect_most(batcher->size, rows);
  return (int64_t)((most - mean) * sqrt((double)expected / mean));
}

// If the backend is idle, no request is refused: what is known about the cost may be wrong, and
// only a run can show it.
bool rn_batcher_refuses_locked(rn_batcher_t* batcher, rn_predict_t* predict, int64_t now) {
  const rn_batcher_options_t* options = &batcher->options;
  if (!batcher->queue.count && batcher->lanes_used < batcher->backend->lanes) return false;
  int64_t expected = rn_batcher_expected_locked(batcher, predict->rows > 1 ? predict->rows : 1,
                                                predict->priority, now);
  bool is_full = options->max_queued > 0 && batcher->queue.count >= options->max_queued;
  if (is_full) {
    predict->retry_ns = expected > MIN_RETRY_NS ? expected : MIN_RETRY_NS;
  } else if (predict->deadline_ns < INT64_MAX) {
    predict->retry_ns =
        expected + slack_locked(batcher, predict, expected) - (predict->deadline_ns - now);
  } else {
    int64_t backlog = BACKLOG_NS;
    if (options->max_queued > 0) return false;
    if (options->size.objective_ns > 0 && options->size.objective_ns < INT64_MAX / 4 &&
        backlog < 4 * options->size.objective_ns)
      backlog = 4 * options->size.objective_ns;
    predict->retry_ns = expected - backlog;
  }
  if (predict->retry_ns <= 0) {
    predict->retry_ns = 0;
    return false;
  }
  if (predict->retry_ns > MAX_RETRY_NS) predict->retry_ns = MAX_RETRY_NS;
  ++batcher->refused;
  rn_series_add(is_full ? batcher->series.full : batcher->series.overload, 1);
  return true;
}

// Whether the batch of |first| should start now; if not, |*inout_until| falls to when it should.
static bool is_ready_locked(rn_batcher_t* batcher, const rn_predict_t* first, int64_t now,
                            int64_t* inout_until) {
  const rn_batcher_options_t* options = &batcher->options;
  int64_t rows = rn_batch_group_rows(first->group), limit = rn_batcher_limit_locked(batcher);
  if (!options->is_on || rn_batch_group_is_alone(first->group) || rows >= limit) return true;
  int64_t until = first->come_ns;
  if (options->max_wait_ns >= 0) {
    until += options->max_wait_ns;
  } else {
    int64_t window = rn_batch_wait_window(&batcher->wait, rn_batch_size_fixed(batcher->size));
    if (!window || rn_batch_wait_is_enough(&batcher->wait, batcher->queue.count)) return true;
    if (until < batcher->free_ns) until = batcher->free_ns;
    until += window;
  }
  // In time for the first deadline, too.
  const rn_predict_t* earliest = rn_batch_queue_earliest(&batcher->queue);
  if (earliest) {
    int64_t latest = earliest->deadline_ns - 2 * rn_batch_size_expect(batcher->size, rows);
    if (latest < until) until = latest;
  }
  if (until <= now || !options->timers.set) return true;
  if (until < *inout_until) *inout_until = until;
  return false;
}

// Moves the requests of the next batch from the queue into |batch|, those that cannot be answered
// in time into |*inout_late|.
static void fill_locked(rn_batcher_t* batcher, rn_batch_t* batch, rn_batch_group_t* group,
                        int64_t now, rn_predict_t** inout_late) {
  int64_t limit = rn_batch_group_is_alone(group) ? 1 : rn_batcher_limit_locked(batcher);
  int64_t rows = rn_batch_group_rows(group);
  int64_t end = now + rn_batch_size_expect(batcher->size, rows < limit ? rows : limit);
  for (rn_predict_t* predict; (predict = rn_batch_group_first(group));) {
    if (batch->count && batch->rows + predict->rows > limit) break;
    bool is_last = rn_batch_group_rows(group) <= (predict->rows > 1 ? predict->rows : 1);
    rn_batch_queue_remove(&batcher->queue, predict);
    // It would be answered too late; others that can be in time get its place.
    if (predict->deadline_ns < end && !(is_last && !batch->count)) {
      predict->next = *inout_late;
      *inout_late = predict;
      ++batcher->refused;
      rn_series_add(batcher->series.overload, 1);
      continue;
    }
    rn_batch_add(batch, predict);
    if (rn_batch_group_is_alone(group)) break;
  }
}

static void set_timer_locked(rn_batcher_t* batcher, int64_t until) {
  const rn_timers_t* timers = &batcher->options.timers;
  const rn_predict_t* earliest = rn_batch_queue_earliest(&batcher->queue);
  if (earliest && earliest->deadline_ns < until) until = earliest->deadline_ns;
  // A timer that is too early costs little: it finds nothing to do, and is set again.
  if (!timers->set || until >= batcher->timer_ns) return;
  rn_status_t status = timers->set(timers->self, &batcher->timer, until);
  if (rn_ok(status)) batcher->timer_ns = until;
  rn_status_free(status);
}

// Batches have later and later deadlines, so that this seldom sets the timer.
void rn_batcher_watch_locked(rn_batcher_t* batcher, int64_t until) {
  const rn_timers_t* timers = &batcher->options.watch;
  if (until >= batcher->watch_ns || !timers->set) return;
  rn_status_t status = timers->set(timers->self, &batcher->watch, until);
  if (rn_ok(status)) batcher->watch_ns = until;
  rn_status_free(status);
}

rn_batch_t* rn_batcher_overdue_locked(rn_batcher_t* batcher, int64_t now) {
  rn_batch_t* overdue = NULL;
  int64_t until = INT64_MAX;
  batcher->watch_ns = INT64_MAX;
  for (rn_batch_t* batch = batcher->running; batch; batch = batch->next) {
    if (batch->is_overdue) continue;
    if (batch->deadline_ns > now) {
      if (batch->deadline_ns < until) until = batch->deadline_ns;
      continue;
    }
    batch->is_overdue = true;
    rn_batch_retain(batch);
    batch->next_overdue = overdue;
    overdue = batch;
  }
  rn_batcher_watch_locked(batcher, until);
  return overdue;
}

static bool is_quick_locked(const rn_batcher_t* batcher, const rn_batch_t* batch) {
  if (!batcher->batches || batcher->run_ns >= QUICK_NS) return false;
  return batcher->run_ns * (double)batch->rows < QUICK_MOST_NS * fmax(batcher->usual_rows, 1);
}

static void start_locked(rn_batcher_t* batcher, rn_batch_t* batch, int64_t now,
                         rn_batch_work_t* work) {
  batch->owner = batcher;
  batch->formed_ns = now;
  batch->formed_count = batch->count;
  batch->expected_ns = rn_batch_size_expect(batcher->size, batch->rows);
  batch->is_quick = is_quick_locked(batcher, batch);
  batch->next = batcher->running;
  batcher->running = batch;
  ++batcher->lanes_used;
  batcher->running_count += batch->count;
  rn_batcher_watch_locked(batcher, batch->deadline_ns);
  if (work->last)
    work->last->next_to_run = batch;
  else
    work->batches = batch;
  work->last = batch;
}

// The first request of the next batch; NULL if none should start now.
static rn_predict_t* next_locked(rn_batcher_t* batcher, int64_t now, int64_t* inout_until) {
  rn_predict_t* best = NULL;
  for (size_t i = 0; i < batcher->queue.groups.count; ++i) {
    rn_predict_t* first = rn_batch_group_first(batcher->queue.groups.items[i]);
    if (first && (!best || rn_batch_queue_is_before(first, best)) &&
        is_ready_locked(batcher, first, now, inout_until))
      best = first;
  }
  return best;
}

void rn_batcher_form_locked(rn_batcher_t* batcher, int64_t now, rn_batch_work_t* work) {
  int64_t until = INT64_MAX;
  rn_predict_t* first;
  while (batcher->lanes_used < batcher->backend->lanes &&
         (first = next_locked(batcher, now, &until))) {
    rn_batch_t* batch = NULL;
    rn_status_t status = rn_batch_create(batcher->backend, first->signature_index,
                                         batcher->options.allocator, &batch);
    if (rn_ok(status)) {
      fill_locked(batcher, batch, first->group, now, &work->late);
      start_locked(batcher, batch, now, work);
    } else {
      rn_status_free(status);
      rn_batch_queue_remove(&batcher->queue, first);
      first->next = work->starved;
      work->starved = first;
    }
  }
  set_timer_locked(batcher, until);
}

bool rn_batcher_form_one_locked(rn_batcher_t* batcher, rn_predict_t* predict, bool is_alone,
                                int64_t now, rn_batch_work_t* work) {
  if (batcher->queue.count || batcher->lanes_used >= batcher->backend->lanes) return false;
  if (!is_alone && predict->rows < rn_batcher_limit_locked(batcher)) {
    bool waits = batcher->options.max_wait_ns > 0;
    if (batcher->options.max_wait_ns < 0)
      waits = rn_batch_wait_window(&batcher->wait, rn_batch_size_fixed(batcher->size)) &&
              !rn_batch_wait_is_enough(&batcher->wait, 1);
    if (waits) return false;
  }
  rn_batch_t* batch = NULL;
  rn_status_t status = rn_batch_create(batcher->backend, predict->signature_index,
                                       batcher->options.allocator, &batch);
  if (!rn_ok(status)) {
    rn_status_free(status);
    return false;
  }
  rn_batch_add(batch, predict);
  start_locked(batcher, batch, now, work);
  return true;
}
