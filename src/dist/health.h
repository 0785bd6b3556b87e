// Whether a task still runs steps: a trivial one goes through the pool that steps run on, when
// somebody asks, once a second at most.
//
// A pool whose threads all wait for something, or compute without end, never gets to it.
#ifndef RUNNEL_DIST_HEALTH_H_
#define RUNNEL_DIST_HEALTH_H_

#include "dist/worker/worker.h"

typedef struct rn_health_t rn_health_t;

// |env| has the pool; |worker| lasts until rn_health_stop.
RN_MUST_USE rn_status_t rn_health_create(const rn_env_t* env, rn_local_worker_t* worker,
                                         rn_allocator_t allocator, rn_health_t** out);
// Uses the worker no more. NULL is fine.
void rn_health_stop(rn_health_t* health);
// After the pool is gone. NULL is fine.
void rn_health_destroy(rn_health_t* health);

typedef enum rn_health_state_t {
  RN_HEALTH_GOOD,   // a step has run within the last second
  RN_HEALTH_WAITS,  // one is under way: ask again in a moment
  RN_HEALTH_STUCK,  // one has been under way for two seconds, or has failed
} rn_health_state_t;
// From any thread. Starts a step if the last has ended more than a second ago.
rn_health_state_t rn_health_ask(rn_health_t* health);

#endif  // RUNNEL_DIST_HEALTH_H_
