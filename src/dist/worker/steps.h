// The steps that a worker takes part in, each with its rendezvous.
//
// A step exists from the first call that names it: RunGraph for its part, or RecvTensor for one of
// its values, in either order. It is forgotten when it is cleaned up.
#ifndef RUNNEL_DIST_WORKER_STEPS_H_
#define RUNNEL_DIST_WORKER_STEPS_H_

#include "base/env.h"
#include "dist/iface.h"
#include "dist/worker/recv_log.h"
#include "framework/rendezvous.h"

typedef struct rn_steps_t rn_steps_t;

// Finds other tasks. |find| gives a worker for "/job:ps/replica:0/task:0", which lives as long as
// the steps do; NULL if there is no such task.
typedef struct rn_peers_t {
  void* self;
  rn_worker_t* (*find)(void* self, rn_str_t task);
  // Why |find| gave NULL; NULL: there is no such task.
  rn_status_t (*missing)(void* self, rn_str_t task);
  rn_str_t own;  // the name of the worker's own task among them; "": that of its steps
} rn_peers_t;

// |task| is this worker's own; copied.
RN_MUST_USE rn_status_t rn_steps_create(const rn_env_t* env, rn_allocator_t allocator,
                                        rn_str_t task, rn_peers_t peers, rn_steps_t** out);
// Fails and drops every step.
void rn_steps_clear(rn_steps_t* steps);
// No step may be running. NULL is fine.
void rn_steps_destroy(rn_steps_t* steps);

// The rendezvous of step |id|; the caller releases it.
RN_MUST_USE rn_status_t rn_steps_get(rn_steps_t* steps, int64_t id, rn_rendezvous_t** out);
// Drops step |id| and fails what still waits in it. Takes |status|.
void rn_steps_drop(rn_steps_t* steps, int64_t id, rn_status_t status);
// The part of step |id| has succeeded: the step is dropped as soon as nothing waits in it.
void rn_steps_end(rn_steps_t* steps, int64_t id);
// A value of step |id| was fetched.
void rn_steps_taken(rn_steps_t* steps, int64_t id);
// The rendezvous of step |id|, owned by |owner| (see below), whose values of other tasks come from
// |peers|; none may have been fetched yet. The caller releases it. INVALID_ARGUMENT if the step has
// another owner.
RN_MUST_USE rn_status_t rn_steps_adopt(rn_steps_t* steps, int64_t id, const void* owner,
                                       rn_peers_t peers, rn_rendezvous_t** out);
// Drops step |id| unless it has another owner. Takes |status|.
void rn_steps_drop_of(rn_steps_t* steps, int64_t id, const void* owner, rn_status_t status);
// Makes |owner| the owner of step |id|, for the next two.
void rn_steps_own(rn_steps_t* steps, int64_t id, const void* owner);
// Drops every step of |owner|. Takes |status|.
void rn_steps_drop_owned(rn_steps_t* steps, const void* owner, rn_status_t status);
// Drops step |id| if it has no owner: its values were requested, but it was never started. Takes
// |status|.
void rn_steps_drop_unowned(rn_steps_t* steps, int64_t id, rn_status_t status);
size_t rn_steps_count(rn_steps_t* steps);
// The log of received values. Lives as long as the steps do.
rn_recv_log_t* rn_steps_log(rn_steps_t* steps);

#endif  // RUNNEL_DIST_WORKER_STEPS_H_
