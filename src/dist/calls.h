// For those who make calls: waiting for the answer, and a step in terms of names.
#ifndef RUNNEL_DIST_CALLS_H_
#define RUNNEL_DIST_CALLS_H_

#include "dist/iface.h"
#include "step/ir.h"

// Somebody who waits for the answer of a call.
typedef struct rn_waiter_t {
  rn_mutex_t mutex;
  rn_cond_t came;
  bool is_here;
  rn_status_t status;
} rn_waiter_t;

// What a call's record begins with whose answer |waiter| gets.
rn_call_t rn_waiter_call(rn_waiter_t* waiter, int64_t deadline_ns, rn_cancel_t* cancel);
// Whether the answer is there.
bool rn_waiter_is_over(rn_waiter_t* waiter);
// The answer's status. Once for each rn_waiter_call, after the call was made.
RN_MUST_USE rn_status_t rn_waiter_wait(rn_waiter_t* waiter);

// Puts the names of |signature|'s feeds, with |values| (lent), fetches and targets into |call|.
RN_MUST_USE rn_status_t rn_run_step_name(rn_run_step_t* call, rn_arena_t* arena,
                                         const rn_signature_t* signature,
                                         const rn_tensor_t* const* values);

#endif  // RUNNEL_DIST_CALLS_H_
