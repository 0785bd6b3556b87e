// Helpers for making calls: waiting for the response, and the names of a step.
#ifndef RUNNEL_DIST_CALLS_H_
#define RUNNEL_DIST_CALLS_H_

#include "dist/iface.h"
#include "step/ir.h"

// Waits for the end of a call.
typedef struct rn_waiter_t {
  rn_mutex_t mutex;
  rn_cond_t came;
  bool is_here;
  rn_status_t status;
} rn_waiter_t;

// Initializes the call of a record so that |waiter| is told of its end.
rn_call_t rn_waiter_call(rn_waiter_t* waiter, int64_t deadline_ns, rn_cancel_t* cancel);
// Whether the call has ended.
bool rn_waiter_is_over(rn_waiter_t* waiter);
// Waits and returns the call's status. Once per rn_waiter_call, after the call was made.
RN_MUST_USE rn_status_t rn_waiter_wait(rn_waiter_t* waiter);

// Puts the names of |signature|'s feeds, with |values| (borrowed), fetches and targets into |call|.
RN_MUST_USE rn_status_t rn_run_step_name(rn_run_step_t* call, rn_arena_t* arena,
                                         const rn_signature_t* signature,
                                         const rn_tensor_t* const* values);

#endif  // RUNNEL_DIST_CALLS_H_
