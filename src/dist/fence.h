// The fence of a session: a step that is asked for again, because its answer was lost, is not run
// again.
//
// Clients number their calls and repeat one, under its number, when the connection broke. The step
// goes on meanwhile: only after a grace does a broken connection cancel it. A repeated call joins
// the step that is under way, or gets the answer that was kept.
#ifndef RUNNEL_DIST_FENCE_H_
#define RUNNEL_DIST_FENCE_H_

#include "base/env.h"
#include "dist/iface.h"
#include "dist/timers.h"

typedef struct rn_fence_t rn_fence_t;

typedef struct rn_fence_options_t {
  rn_allocator_t allocator;
  const rn_env_t* env;
  rn_timers_t timers;  // |set| may be NULL: a broken connection cancels its steps at once
  int64_t grace_ns;
  size_t numbers;       // calls that are remembered; 0: 4096
  size_t answer_bytes;  // of tensors kept for those who ask again; 0: 1 MiB
} rn_fence_options_t;

RN_MUST_USE rn_status_t rn_fence_create(const rn_fence_options_t* options, rn_fence_t** out);
// It goes when what is under way has ended. NULL is fine.
void rn_fence_release(rn_fence_t* fence);

// Has |run| run |call|, unless its number came before; |call| is answered either way. A call
// without a number is just run.
void rn_fence_run(rn_fence_t* fence, rn_run_step_t* call,
                  void (*run)(void* self, rn_run_step_t* call), void* self);

#endif  // RUNNEL_DIST_FENCE_H_
