// The steps that a worker takes part in, each with its rendezvous.
//
// A step is known from the moment somebody names it: its part may be told to run, or another task
// may ask for one of its values, in either order. It is forgotten when it is cleaned up.
#ifndef RUNNEL_DIST_WORKER_STEPS_H_
#define RUNNEL_DIST_WORKER_STEPS_H_

#include "base/env.h"
#include "dist/iface.h"
#include "dist/worker/recv_log.h"
#include "framework/rendezvous.h"

typedef struct rn_steps_t rn_steps_t;

// How the other tasks are reached. |find| gives a worker for "/job:ps/replica:0/task:0", which
// lives as long as the steps do; NULL if there is no such task.
typedef struct rn_peers_t {
  void* self;
  rn_worker_t* (*find)(void* self, rn_str_t task);
  // Why |find| gave NULL; NULL: there is no such task.
  rn_status_t (*missing)(void* self, rn_str_t task);
} rn_peers_t;

// |task| is this worker's own; copied.
RN_MUST_USE rn_status_t rn_steps_create(const rn_env_t* env, rn_allocator_t allocator,
                                        rn_str_t task, rn_peers_t peers, rn_steps_t** out);
// Fails and forgets every step.
void rn_steps_clear(rn_steps_t* steps);
// Nothing of any step may be under way. NULL is fine.
void rn_steps_destroy(rn_steps_t* steps);

// The rendezvous of step |id|; the caller releases it.
RN_MUST_USE rn_status_t rn_steps_get(rn_steps_t* steps, int64_t id, rn_rendezvous_t** out);
// Forgets step |id| and fails whoever still waits in it. Takes |status|.
void rn_steps_drop(rn_steps_t* steps, int64_t id, rn_status_t status);
// The part of step |id| has ended well: it is forgotten as soon as nobody waits in it.
void rn_steps_end(rn_steps_t* steps, int64_t id);
// Somebody has taken a value of step |id|.
void rn_steps_taken(rn_steps_t* steps, int64_t id);
// The rendezvous of step |id| as one of |owner|'s (see below), where values of other tasks come
// from |peers|: nobody here may have asked for one yet. The caller releases it. INVALID_ARGUMENT if
// the step is somebody else's.
RN_MUST_USE rn_status_t rn_steps_adopt(rn_steps_t* steps, int64_t id, const void* owner,
                                       rn_peers_t peers, rn_rendezvous_t** out);
// Drops step |id| unless it is somebody else's. Takes |status|.
void rn_steps_drop_of(rn_steps_t* steps, int64_t id, const void* owner, rn_status_t status);
// Step |id| is one of |owner|'s, whose end is its end: see the next two.
void rn_steps_own(rn_steps_t* steps, int64_t id, const void* owner);
// Drops every step of |owner|. Takes |status|.
void rn_steps_drop_owned(rn_steps_t* steps, const void* owner, rn_status_t status);
// Drops step |id| if it is nobody's: somebody asked for its values, and it has not come. Takes
// |status|.
void rn_steps_drop_unowned(rn_steps_t* steps, int64_t id, rn_status_t status);
size_t rn_steps_count(rn_steps_t* steps);
// Where it is noted what was asked of other tasks. Lives as long as the steps do.
rn_recv_log_t* rn_steps_log(rn_steps_t* steps);

#endif  // RUNNEL_DIST_WORKER_STEPS_H_
