// Supervisors over rn_session_t; runnel/cluster.h is the API over it.
//
// supervisor.c acts between steps: prepare, run a step, then done after a success or judge after a
// failure; repeat. supervisor_steps.c runs the steps. The caller opens and closes the client's
// sessions; steps and threads use the engine's session below.
#ifndef RUNNEL_TRAIN_SUPERVISOR_H_
#define RUNNEL_TRAIN_SUPERVISOR_H_

#include <stdatomic.h>

#include "base/env.h"
#include "base/sync.h"
#include "runnel/cluster.h"
#include "runnel/coordinator.h"
#include "session/session.h"

// Opens and closes the client's sessions.
typedef struct rn_supervisor_host_t {
  void* self;
  rn_status_t (*open)(void* self, TF_Session** out, rn_session_t** out_session);
  void (*close)(void* self, TF_Session* session);
  // The client's own initialization of variables.
  rn_status_t (*init)(void* self, TF_Session* session);
} rn_supervisor_host_t;

struct rn_supervisor_t {
  rn_allocator_t allocator;
  const rn_env_t* env;
  rn_arena_t arena;                 // strings and lists
  rn_supervisor_options_t options;  // strings are in the arena
  rn_sync_replicas_t sync;
  rn_graph_t* graph;  // Retained
  rn_supervisor_host_t host;
  // Two nodes: one tells which of |variables| have a value, one initializes them all.
  rn_edge_t are_set, step_now;
  const rn_var_t* global_step;  // NULL if the graph has none
  const rn_var_t** variables;
  int variable_count;
  rn_node_t *init, *local_init;
  // The current session.
  TF_Session* handle;
  rn_session_t* session;
  rn_coordinator_t* coordinator;  // of its threads
  rn_mutex_t mutex;
  rn_status_t sync_error;  // Owned, guarded by |mutex|: the error that ended the chief's thread
  // History; times are of the monotonic clock.
  bool was_ready, has_failed;
  int64_t failing_since;
  int recoveries;
  int64_t step, saved_step, saved_ns;
  int64_t logged_step, logged_ns;
  const TF_Session* told;  // the session that hooks were told of; only compared, never used
  _Atomic bool should_stop;
};

RN_MUST_USE rn_status_t rn_supervisor_create(rn_scope_t* scope,
                                             const rn_supervisor_options_t* options,
                                             const rn_env_t* env, rn_supervisor_t** out);
void rn_supervisor_free(rn_supervisor_t* supervisor);  // NULL is fine

// Ensures that there is a session whose variables have values.
RN_MUST_USE rn_status_t rn_supervisor_prepare(rn_supervisor_t* supervisor);
// Call after a step that succeeded; the chief may save.
void rn_supervisor_done(rn_supervisor_t* supervisor, int64_t global_step);
// Call after a step that failed. OK if the session was closed and the step may be retried;
// otherwise the error for the client. Takes |status|.
RN_MUST_USE rn_status_t rn_supervisor_judge(rn_supervisor_t* supervisor, rn_status_t status);
RN_MUST_USE rn_status_t rn_supervisor_end(rn_supervisor_t* supervisor);
bool rn_supervisor_is_chief(const rn_supervisor_t* supervisor);

// Like prepare, and tells hooks of a new session.
RN_MUST_USE rn_status_t rn_supervisor_ready(rn_supervisor_t* supervisor);
// Runs one step. After a failure that a new session can recover from, retries in one. |feeds| are
// borrowed; |fetches| are set and owned by the caller on success.
RN_MUST_USE rn_status_t rn_supervisor_step_run(rn_supervisor_t* supervisor,
                                               const rn_signature_t* signature,
                                               const rn_tensor_t* const* feeds,
                                               rn_tensor_t* fetches);

#endif  // RUNNEL_TRAIN_SUPERVISOR_H_
