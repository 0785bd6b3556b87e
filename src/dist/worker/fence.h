// A worker as other tasks see it: parts of steps, and values, that are asked for again because the
// connection broke are not run, or taken, twice. See fence.h; who asks again is in repeat.h.
#ifndef RUNNEL_DIST_WORKER_FENCE_H_
#define RUNNEL_DIST_WORKER_FENCE_H_

#include "dist/fence.h"

typedef struct rn_worker_fence_t rn_worker_fence_t;

typedef struct rn_worker_fence_options_t {
  rn_allocator_t allocator;
  const rn_env_t* env;  // outlives it, as all that follows
  rn_worker_t* worker;
  rn_timers_t timers;
  int64_t lease_ns;  // other tasks wait no longer
} rn_worker_fence_options_t;

RN_MUST_USE rn_status_t rn_worker_fence_create(const rn_worker_fence_options_t* options,
                                               rn_worker_fence_t** out);
// Cancels what is under way; what loses its connection from now on is not waited for. NULL is fine.
void rn_worker_fence_stop(rn_worker_fence_t* fence);
// No call may be under way. NULL is fine.
void rn_worker_fence_destroy(rn_worker_fence_t* fence);
rn_worker_t* rn_worker_fence_face(rn_worker_fence_t* fence);

#endif  // RUNNEL_DIST_WORKER_FENCE_H_
