// Whether a task still runs steps: each check runs a trivial step on the pool of steps, at most
// once per second.
//
// A pool whose threads all block, or compute without end, never runs it.
#ifndef RUNNEL_DIST_HEALTH_H_
#define RUNNEL_DIST_HEALTH_H_

#include "dist/worker/worker.h"

typedef struct rn_health_t rn_health_t;

// |env| has the pool; |worker| must live until rn_health_stop.
RN_MUST_USE rn_status_t rn_health_create(const rn_env_t* env, rn_local_worker_t* worker,
                                         rn_allocator_t allocator, rn_health_t** out);
// Does not use the worker afterwards. NULL is fine.
void rn_health_stop(rn_health_t* health);
// To be called after the pool was destroyed. NULL is fine.
void rn_health_destroy(rn_health_t* health);

typedef enum rn_health_state_t {
  RN_HEALTH_GOOD,   // a step ran within the last second
  RN_HEALTH_WAITS,  // a step is running: check again soon
  RN_HEALTH_STUCK,  // a step has been running for two seconds, or has failed
} rn_health_state_t;
// Any thread may call it. Starts a step if the last one ended more than a second ago.
rn_health_state_t rn_health_ask(rn_health_t* health);

#endif  // RUNNEL_DIST_HEALTH_H_
