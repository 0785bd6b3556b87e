// A worker as other tasks see it: repeated calls for parts of steps, and for values, run once. See
// dist/fence.h; dist/repeat.h is the caller's side.
#ifndef RUNNEL_DIST_WORKER_FENCE_H_
#define RUNNEL_DIST_WORKER_FENCE_H_

#include "dist/fence.h"

typedef struct rn_worker_fence_t rn_worker_fence_t;

typedef struct rn_worker_fence_options_t {
  rn_allocator_t allocator;
  const rn_env_t* env;  // outlives it, like all that follows
  rn_worker_t* worker;
  rn_timers_t timers;
  int64_t lease_ns;  // of the other tasks
} rn_worker_fence_options_t;

RN_MUST_USE rn_status_t rn_worker_fence_create(const rn_worker_fence_options_t* options,
                                               rn_worker_fence_t** out);
// Cancels running calls, and from now on calls that lose their connection. NULL is fine.
void rn_worker_fence_stop(rn_worker_fence_t* fence);
// No call may be under way. NULL is fine.
void rn_worker_fence_destroy(rn_worker_fence_t* fence);
rn_worker_t* rn_worker_fence_face(rn_worker_fence_t* fence);

#endif  // RUNNEL_DIST_WORKER_FENCE_H_
