// Running plans: one call is one step.
#ifndef RUNNEL_EXEC_EXECUTOR_H_
#define RUNNEL_EXEC_EXECUTOR_H_

#include "exec/plan.h"
#include "exec/step_stats.h"

typedef struct rn_run_t {
  rn_plan_t* const* plans;  // the parts of the step, one per device that takes part
  int32_t plan_count;
  // |step->cancel| must be the step's own if a part can wait or has several tasks, because the
  // first error cancels it. A step that rn_execute_is_plain never cancels it, so it may be shared.
  rn_step_t* step;
  rn_pool_t* pool;                  // runs kernels in parallel; NULL: one thread
  const rn_tensor_t* const* feeds;  // borrowed for the step
  int32_t feed_count;
  rn_tensor_t* fetches;  // unset; the caller owns what is put here
  int32_t fetch_count;
  int64_t deadline_ns;     // of the environment's clock; 0: none
  rn_step_stats_t* stats;  // NULL: the step is not traced
} rn_run_t;

// Whether a step of these plans is one straight run of instructions in the calling thread.
bool rn_execute_is_plain(rn_plan_t* const* plans, int32_t plan_count);

// Runs the step, in the calling thread first and on the pool where that helps; returns when
// everything has ended. The first error wins, cancels the rest and names its node. On error
// |fetches| are left unset.
RN_MUST_USE rn_status_t rn_execute(const rn_run_t* run);

// Starts the step in the calling thread and returns when it has to wait; other threads then
// continue it. |done| is called once, with a status it owns, without locks held, perhaps before
// this returns. |run| is copied; what it points to is needed until |done|. Cancelling
// |run->step->cancel| from outside must fail the step's rendezvous too.
typedef void (*rn_done_fn_t)(void* arg, rn_status_t status);
void rn_execute_start(const rn_run_t* run, rn_done_fn_t done, void* arg);

#endif  // RUNNEL_EXEC_EXECUTOR_H_
