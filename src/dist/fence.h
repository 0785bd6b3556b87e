// A fence: runs each numbered call once, even if the caller repeats it because the response was
// lost.
//
// Callers number their calls and repeat one under its number after the connection broke. The
// original keeps running meanwhile: a broken connection cancels it only after a grace period. A
// repeated call joins the running one, or gets the kept response.
#ifndef RUNNEL_DIST_FENCE_H_
#define RUNNEL_DIST_FENCE_H_

#include "base/env.h"
#include "dist/iface.h"
#include "net/timers.h"

typedef struct rn_fence_t rn_fence_t;

typedef struct rn_fence_options_t {
  rn_allocator_t allocator;
  const rn_env_t* env;
  rn_timers_t timers;  // |set| may be NULL: a broken connection cancels its calls at once
  int64_t grace_ns;
  size_t numbers;       // how many calls are remembered; 0: 4096
  size_t answer_bytes;  // of tensors kept for repeated calls; 0: 1 MiB
  size_t answer_max;    // of one response's tensors; 0: as |answer_bytes|
  rn_code_t lost;       // the status if no response was kept; 0: ABORTED
  // Called when a call has got the tensors of a kept response, to set its other fields; may be
  // NULL.
  void (*replayed)(rn_call_t* call);
} rn_fence_options_t;

// A call as the fence sees it.
typedef struct rn_fence_call_t {
  rn_call_t* call;
  int64_t number;        // 0: it has none
  rn_tensor_t* fetches;  // the response, in the call's record
  size_t fetch_count;
} rn_fence_call_t;

RN_MUST_USE rn_status_t rn_fence_create(const rn_fence_options_t* options, rn_fence_t** out);
// Cancels running calls, and from now on any call that loses its connection. NULL is fine.
void rn_fence_stop(rn_fence_t* fence);
// The fence is freed when all running calls have ended. NULL is fine.
void rn_fence_release(rn_fence_t* fence);

// Runs |call| with |run|, unless its number was used before; ends |call| in any case. Meanwhile its
// owner, callback and cancellation are the fence's. A call without a number is just run.
void rn_fence_run(rn_fence_t* fence, rn_fence_call_t call, void (*run)(void* self, rn_call_t* call),
                  void* self);

#endif  // RUNNEL_DIST_FENCE_H_
