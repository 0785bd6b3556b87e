// Shares of the processors: whose batch gets a thread next.
//
// As many batches run at a time as there are processors. If more are ready, models take turns by
// weighted fair queueing: a batch that takes t moves its model back by t / weight, and the model
// that is least far goes first. A model that was idle has no credit for that time. Three rules keep
// this from costing latency:
// - A model that runs nothing, and is behind by all of its next batch, starts at once, on a thread
//   more than there are processors, and the system divides them. Little load never waits.
// - A batch that runs much longer than was expected no longer counts: a model that hangs takes a
//   thread, but no processor from others.
// - A thread goes on with the next batch of the same model, if that has its turn.
//
// Any thread may call these.
#ifndef RUNNEL_SERVE_MODEL_SHARES_H_
#define RUNNEL_SERVE_MODEL_SHARES_H_

#include "base/env.h"
#include "base/pool.h"
#include "net/timers.h"

typedef struct rn_shares_t rn_shares_t;
typedef struct rn_share_t rn_share_t;  // of one model, whatever its versions and replicas

typedef struct rn_shares_options_t {
  int processors;  // batches that run at a time; >= 1
  int threads;     // the most, with models that have waited longest; >= |processors|
  // Runs a job on a thread that may block, not before it returns.
  void (*start)(void* self, rn_job_t* job);
  void* self;
  rn_timers_t timers;  // to notice batches that do not end; of a thread that runs none
  rn_str_t weights;    // "a=3,b=0.5": of models; others have 1; borrowed
  const rn_env_t* env;
  rn_allocator_t allocator;
} rn_shares_options_t;

// INVALID_ARGUMENT if |weights| has another form.
RN_MUST_USE rn_status_t rn_shares_create(const rn_shares_options_t* options, rn_shares_t** out);
void rn_shares_destroy(rn_shares_t* shares);  // all shares were released; NULL is fine

// The share of |model|, retained.
RN_MUST_USE rn_status_t rn_shares_get(rn_shares_t* shares, rn_str_t model, rn_share_t** out);
void rn_share_release(rn_share_t* share);  // NULL is fine

// A batch that wants a thread, embedded in the caller's own struct; it stays put until
// rn_share_end. Set |job.run| and |expected_ns|, how long it will take (0: unknown).
typedef struct rn_share_turn_t {
  rn_job_t job;  // first
  int64_t expected_ns;
  bool is_started;  // has its turn
  // Of the scheduler.
  rn_share_t* share;
  int64_t begun_ns;
  double come;  // in virtual time
  bool is_overdue;
  struct rn_share_turn_t *next, *before;  // of those that wait or run
} rn_share_turn_t;

// Runs |turn->job| when it has its turn.
void rn_share_submit(rn_share_t* share, rn_share_turn_t* turn);
// |turn|, which ran, took |ns|. Submits |next| (NULL: none) of the same share. True if the caller
// is to run it now, which it must be ready to do if |goes_on|.
bool rn_share_end(rn_share_turn_t* turn, int64_t ns, rn_share_turn_t* next, bool goes_on);

#endif  // RUNNEL_SERVE_MODEL_SHARES_H_
