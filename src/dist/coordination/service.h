// The coordination service of a task, for all tasks of its cluster if it is their leader.
//
// A task that registers must send heartbeats. If it is silent for too long, or reports an error,
// all others learn that from the answers to their own heartbeats, and barriers that wait for it
// fail.
#ifndef RUNNEL_DIST_COORDINATION_SERVICE_H_
#define RUNNEL_DIST_COORDINATION_SERVICE_H_

#include "base/env.h"
#include "net/rpc_server.h"
#include "net/timers.h"

typedef struct rn_coordination_t rn_coordination_t;

typedef struct rn_coordination_options_t {
  const rn_env_t* env;  // outlives the service
  rn_allocator_t allocator;
  rn_timers_t timers;
  const rn_str_t* tasks;  // all of the cluster: "/job:worker/replica:0/task:0"; outlive it
  size_t task_count;
  int64_t silence_ns;  // after which a task is given up
} rn_coordination_options_t;

RN_MUST_USE rn_status_t rn_coordination_create(const rn_coordination_options_t* options,
                                               rn_coordination_t** out);
// Ends all calls that wait, and refuses further ones. NULL is fine.
void rn_coordination_stop(rn_coordination_t* coordination);
void rn_coordination_destroy(rn_coordination_t* coordination);  // NULL is fine

// Whether |path| is a call to the service.
bool rn_coordination_has(rn_str_t path);
// Any thread; does not block.
void rn_coordination_handle(rn_coordination_t* coordination, rn_rpc_in_t* call);

#define RN_COORDINATION_PATH "/tensorflow.CoordinationService/"

#endif  // RUNNEL_DIST_COORDINATION_SERVICE_H_
