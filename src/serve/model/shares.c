// See shares.h.
#include "serve/model/shares.h"

#include <math.h>
#include <stdlib.h>

#include "base/container.h"
#include "base/sync.h"
#include "base/vec.h"

// A batch no longer counts after this many times what was expected, and at least OVERDUE_NS.
#define OVERDUE_FACTOR 4
#define OVERDUE_NS INT64_C(50000000)
#define MIN_WEIGHT 1e-3
#define MAX_WEIGHT 1e3
#define MAX_NUMBER 32  // bytes of a weight as text

struct rn_share_t {
  rn_shares_t* shares;
  int refs;
  char* model;  // Owned
  size_t model_size;
  double weight;
  double finish;                  // virtual time up to which it had its share
  rn_share_turn_t *first, *last;  // that wait
  int running, overdue;           // batches, and those of them that do not count
};

struct rn_shares_t {
  rn_shares_options_t options;
  rn_mutex_t mutex;  // guards what follows, and all shares
  RN_VEC(rn_share_t*) all;
  rn_share_turn_t* running;  // linked by |next| and |before|
  int started, overdue;      // batches that run, and those of them that do not count
  double now;      // virtual time: what a model of weight 1 with a queue should have had so far
  int64_t now_ns;  // when that was
  rn_timer_t timer;
};

static int64_t now_ns(const rn_shares_t* shares) {
  return shares->options.env->now_ns(shares->options.env->self);
}

// Weights.

static rn_status_t malformed(rn_str_t weights) {
  return rn_invalid_argument(
      "Shares of the processor must be NAME=WEIGHT,... with weights between %g and %g: '%.*s'",
      MIN_WEIGHT, MAX_WEIGHT, RN_STR_ARGS(weights));
}

static bool parse_weight(rn_str_t text, double* out) {
  char copy[MAX_NUMBER], *end;
  if (!text.size || text.size >= sizeof copy) return false;
  memcpy(copy, text.data, text.size);
  copy[text.size] = '\0';
  *out = strtod(copy, &end);
  return !*end && *out >= MIN_WEIGHT && *out <= MAX_WEIGHT;
}

// The weight of |model|; 1 if it is not listed. Checks all of |weights|.
static rn_status_t find_weight(rn_str_t weights, rn_str_t model, double* out) {
  *out = 1;
  for (rn_str_t rest = weights; rest.size;) {
    rn_str_t value = rn_str_trim(rn_str_split(&rest, ','));
    rn_str_t name = rn_str_trim(rn_str_split(&value, '='));
    double weight = 1;
    if (!name.size || !parse_weight(rn_str_trim(value), &weight)) return malformed(weights);
    if (rn_str_eq(name, model)) *out = weight;
  }
  return RN_OK;
}

// Turns.

static double cost_of(const rn_share_t* share, int64_t ns) { return (double)ns / share->weight; }

// Where the first batch that waits begins, in virtual time: after those before it, and not before
// it came.
static double begin_of(const rn_share_t* share) { return fmax(share->finish, share->first->come); }

// Lets virtual time pass: the processors are divided among the models that have something to do.
static void advance_locked(rn_shares_t* shares) {
  int64_t now = now_ns(shares);
  double weights = 0;
  for (size_t i = 0; i < shares->all.count; ++i) {
    const rn_share_t* share = shares->all.items[i];
    if (share->first || share->running > share->overdue) weights += share->weight;
  }
  if (weights > 0 && now > shares->now_ns)
    shares->now += (double)(now - shares->now_ns) * shares->options.processors / weights;
  shares->now_ns = now;
}

static void push_waiting(rn_share_t* share, rn_share_turn_t* turn) {
  turn->share = share;
  turn->is_started = turn->is_overdue = false;
  turn->come = share->shares->now;
  turn->next = NULL;
  if (share->last)
    share->last->next = turn;
  else
    share->first = turn;
  share->last = turn;
}

static void start_locked(rn_share_t* share) {
  rn_shares_t* shares = share->shares;
  rn_share_turn_t* turn = share->first;
  share->finish = begin_of(share) + cost_of(share, turn->expected_ns);
  share->first = turn->next;
  if (!share->first) share->last = NULL;
  share->running++;
  shares->started++;
  turn->is_started = true;
  turn->begun_ns = shares->now_ns;
  turn->before = NULL;
  turn->next = shares->running;
  if (turn->next) turn->next->before = turn;
  shares->running = turn;
}

static void remove_running(rn_shares_t* shares, rn_share_turn_t* turn) {
  if (turn->next) turn->next->before = turn->before;
  if (turn->before)
    turn->before->next = turn->next;
  else
    shares->running = turn->next;
  shares->started--;
  shares->overdue -= turn->is_overdue;
  turn->share->running--;
  turn->share->overdue -= turn->is_overdue;
}

static int64_t overdue_ns(const rn_share_turn_t* turn) {
  int64_t most = INT64_MAX / 4 / OVERDUE_FACTOR;
  int64_t expected = turn->expected_ns < most ? OVERDUE_FACTOR * turn->expected_ns : most;
  return turn->begun_ns + (expected > OVERDUE_NS ? expected : OVERDUE_NS);
}

// Counts batches out that run for too long. When the next one would be; INT64_MAX if none can.
static int64_t find_overdue_locked(rn_shares_t* shares) {
  int64_t next = INT64_MAX, now = shares->now_ns;
  for (rn_share_turn_t* turn = shares->running; turn; turn = turn->next) {
    if (turn->is_overdue) continue;
    int64_t at = overdue_ns(turn);
    if (at < next && at > now) next = at;
    if (at > now) continue;
    turn->is_overdue = true;
    turn->share->overdue++;
    shares->overdue++;
  }
  return next;
}

// Whether a model is so far behind that all of its next batch is due.
static bool is_behind(const rn_share_t* share) {
  return share->running == share->overdue &&
         share->finish + cost_of(share, share->first->expected_ns) <= share->shares->now;
}

// The share whose turn it is; NULL if none may start.
static rn_share_t* next_locked(rn_shares_t* shares) {
  bool is_full = shares->started - shares->overdue >= shares->options.processors;
  rn_share_t* best = NULL;
  if (shares->started >= shares->options.threads) return NULL;
  for (size_t i = 0; i < shares->all.count; ++i) {
    rn_share_t* share = shares->all.items[i];
    if (!share->first || (best && begin_of(best) <= begin_of(share))) continue;
    if (!is_full || is_behind(share)) best = share;
  }
  return best;
}

static bool has_waiting(const rn_shares_t* shares) {
  for (size_t i = 0; i < shares->all.count; ++i)
    if (shares->all.items[i]->first) return true;
  return false;
}

// Gives turns to those that wait, and lists their jobs in |*out|, except that of |here|: true if
// that has its turn, and this thread runs it.
static bool dispatch_locked(rn_shares_t* shares, const rn_share_turn_t* here, rn_job_t** out) {
  int64_t until = INT64_MAX;
  bool runs_here = false;
  if (shares->started >= shares->options.processors) until = find_overdue_locked(shares);
  for (rn_share_t* share; (share = next_locked(shares));) {
    rn_share_turn_t* turn = share->first;
    start_locked(share);
    runs_here |= turn == here;
    if (turn == here) continue;
    *out = &turn->job;
    out = &turn->job.next;
  }
  *out = NULL;
  const rn_timers_t* timers = &shares->options.timers;
  if (until < INT64_MAX && timers->set && has_waiting(shares))
    rn_status_free(timers->set(timers->self, &shares->timer, until));
  return runs_here;
}

// Without the lock.
static void start_all(const rn_shares_t* shares, rn_job_t* jobs) {
  for (rn_job_t* job; (job = jobs);) {
    jobs = job->next;
    shares->options.start(shares->options.self, job);
  }
}

static void on_timer(rn_timer_t* timer) {
  rn_shares_t* shares = RN_CONTAINER_OF(timer, rn_shares_t, timer);
  rn_job_t* jobs;
  rn_mutex_lock(&shares->mutex);
  advance_locked(shares);
  dispatch_locked(shares, NULL, &jobs);
  rn_mutex_unlock(&shares->mutex);
  start_all(shares, jobs);
}

void rn_share_submit(rn_share_t* share, rn_share_turn_t* turn) {
  rn_shares_t* shares = share->shares;
  rn_mutex_lock(&shares->mutex);
  rn_job_t* jobs;
  advance_locked(shares);
  push_waiting(share, turn);
  dispatch_locked(shares, NULL, &jobs);
  rn_mutex_unlock(&shares->mutex);
  start_all(shares, jobs);
}

bool rn_share_end(rn_share_turn_t* turn, int64_t ns, rn_share_turn_t* next, bool goes_on) {
  rn_share_t* share = turn->share;
  rn_shares_t* shares = share->shares;
  rn_mutex_lock(&shares->mutex);
  advance_locked(shares);
  remove_running(shares, turn);
  share->finish += cost_of(share, ns) - cost_of(share, turn->expected_ns);
  turn->is_started = false;
  if (next) push_waiting(share, next);
  rn_job_t* jobs;
  bool runs_here = dispatch_locked(shares, goes_on ? next : NULL, &jobs);
  rn_mutex_unlock(&shares->mutex);
  start_all(shares, jobs);
  return runs_here;
}

// Shares and their scheduler.

static void free_share(rn_share_t* share) {
  rn_allocator_t allocator = share->shares->options.allocator;
  if (share->model) rn_free(allocator, share->model, share->model_size + 1);
  RN_FREE(allocator, share);
}

static rn_status_t make_locked(rn_shares_t* shares, rn_str_t model, rn_share_t** out) {
  rn_allocator_t allocator = shares->options.allocator;
  rn_share_t* share = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &share));
  share->shares = shares;
  share->model_size = model.size;
  rn_status_t status = find_weight(shares->options.weights, model, &share->weight);
  if (rn_ok(status)) status = rn_str_dup(allocator, model, &share->model);
  if (rn_ok(status)) status = rn_vec_push(&shares->all, allocator, share);
  if (!rn_ok(status)) {
    free_share(share);
    return status;
  }
  *out = share;
  return RN_OK;
}

rn_status_t rn_shares_get(rn_shares_t* shares, rn_str_t model, rn_share_t** out) {
  rn_status_t status = RN_OK;
  *out = NULL;
  rn_mutex_lock(&shares->mutex);
  for (size_t i = 0; i < shares->all.count && !*out; ++i) {
    rn_share_t* share = shares->all.items[i];
    if (rn_str_eq(rn_str_n(share->model, share->model_size), model)) *out = share;
  }
  if (!*out) status = make_locked(shares, model, out);
  if (*out) (*out)->refs++;
  rn_mutex_unlock(&shares->mutex);
  return status;
}

void rn_share_release(rn_share_t* share) {
  if (!share) return;
  rn_shares_t* shares = share->shares;
  rn_mutex_lock(&shares->mutex);
  bool is_last = --share->refs == 0;
  for (size_t i = 0; is_last && i < shares->all.count; ++i)
    if (shares->all.items[i] == share)
      shares->all.items[i] = shares->all.items[--shares->all.count];
  rn_mutex_unlock(&shares->mutex);
  if (is_last) free_share(share);
}

rn_status_t rn_shares_create(const rn_shares_options_t* options, rn_shares_t** out) {
  *out = NULL;
  double weight;
  RN_RETURN_IF_ERROR(find_weight(options->weights, RN_STR(""), &weight));
  rn_shares_t* shares = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &shares));
  shares->options = *options;
  shares->timer.fn = on_timer;
  rn_mutex_init(&shares->mutex);
  *out = shares;
  return RN_OK;
}

void rn_shares_destroy(rn_shares_t* shares) {
  if (!shares) return;
  const rn_timers_t* timers = &shares->options.timers;
  if (timers->clear) timers->clear(timers->self, &shares->timer);
  rn_vec_free(&shares->all, shares->options.allocator);
  rn_mutex_destroy(&shares->mutex);
  RN_FREE(shares->options.allocator, shares);
}
