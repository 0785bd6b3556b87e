// A fence: a call that is made again, because its answer was lost, does nothing again.
//
// Callers number their calls and repeat one, under its number, when the connection broke. What it
// started goes on meanwhile: only after a grace does a broken connection cancel it. A repeated call
// joins the one that is under way, or gets the answer that was kept.
#ifndef RUNNEL_DIST_FENCE_H_
#define RUNNEL_DIST_FENCE_H_

#include "base/env.h"
#include "dist/iface.h"
#include "dist/timers.h"

typedef struct rn_fence_t rn_fence_t;

typedef struct rn_fence_options_t {
  rn_allocator_t allocator;
  const rn_env_t* env;
  rn_timers_t timers;  // |set| may be NULL: a broken connection cancels its calls at once
  int64_t grace_ns;
  size_t numbers;       // calls that are remembered; 0: 4096
  size_t answer_bytes;  // of tensors kept for those who ask again; 0: 1 MiB
  size_t answer_max;    // of those of one answer; 0: as many
  rn_code_t lost;       // the answer where none was kept; 0: ABORTED
  // A call has got the tensors of another's answer; NULL: they are all of it.
  void (*replayed)(rn_call_t* call);
} rn_fence_options_t;

// What a fence knows of a call.
typedef struct rn_fence_call_t {
  rn_call_t* call;
  int64_t number;        // 0: it has none
  rn_tensor_t* fetches;  // the answer, in the call's record
  size_t fetch_count;
} rn_fence_call_t;

RN_MUST_USE rn_status_t rn_fence_create(const rn_fence_options_t* options, rn_fence_t** out);
// Cancels what is under way, and from now on what loses its connection. NULL is fine.
void rn_fence_stop(rn_fence_t* fence);
// It goes when what is under way has ended. NULL is fine.
void rn_fence_release(rn_fence_t* fence);

// Has |run| run |call|, with its owner, end and cancellation changed meanwhile, unless its number
// came before; |call| is answered either way. A call without a number is just run.
void rn_fence_run(rn_fence_t* fence, rn_fence_call_t call, void (*run)(void* self, rn_call_t* call),
                  void* self);

#endif  // RUNNEL_DIST_FENCE_H_
