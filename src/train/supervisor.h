// The supervisor below the C API: what happens between steps. See runnel/cluster.h.
//
// supervisor.c is what happens between steps: prepare, run a step, then either done or judge;
// around again. supervisor_steps.c runs the steps. The caller opens and closes the client's
// sessions; steps and threads use the engine's session below.
#ifndef RUNNEL_TRAIN_SUPERVISOR_H_
#define RUNNEL_TRAIN_SUPERVISOR_H_

#include <stdatomic.h>

#include "base/env.h"
#include "base/sync.h"
#include "runnel/cluster.h"
#include "runnel/coordinator.h"
#include "session/session.h"

// How sessions come and go.
typedef struct rn_supervisor_host_t {
  void* self;
  rn_status_t (*open)(void* self, TF_Session** out, rn_session_t** out_session);
  void (*close)(void* self, TF_Session* session);
  // The client's part in giving variables their first values.
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
  // Nodes: whether each of |variables| has a value; giving them all their first values.
  rn_edge_t are_set, step_now;
  const rn_var_t* global_step;  // NULL: the graph has none
  const rn_var_t** variables;
  int variable_count;
  rn_node_t *init, *local_init;
  // The session of now.
  TF_Session* handle;
  rn_session_t* session;
  rn_coordinator_t* coordinator;  // of its threads
  rn_mutex_t mutex;
  rn_status_t sync_error;  // Owned, guarded by |mutex|: why the chief's thread ended
  // What has happened so far; times of the monotonic clock.
  bool was_ready, has_failed;
  int64_t failing_since;
  int recoveries;
  int64_t step, saved_step, saved_ns;
  int64_t logged_step, logged_ns;
  const TF_Session* told;  // the session that hooks know; only compared
  _Atomic bool should_stop;
};

RN_MUST_USE rn_status_t rn_supervisor_create(rn_scope_t* scope,
                                             const rn_supervisor_options_t* options,
                                             const rn_env_t* env, rn_supervisor_t** out);
void rn_supervisor_free(rn_supervisor_t* supervisor);  // NULL is fine

// Sees to it that there is a session whose variables have values.
RN_MUST_USE rn_status_t rn_supervisor_prepare(rn_supervisor_t* supervisor);
// A step has ended well; the chief may save.
void rn_supervisor_done(rn_supervisor_t* supervisor, int64_t global_step);
// A step has failed. OK: the session is gone, and the step may be tried again; else what to tell
// the client. Takes |status|.
RN_MUST_USE rn_status_t rn_supervisor_judge(rn_supervisor_t* supervisor, rn_status_t status);
RN_MUST_USE rn_status_t rn_supervisor_end(rn_supervisor_t* supervisor);
bool rn_supervisor_is_chief(const rn_supervisor_t* supervisor);

// The same as prepare; hooks hear of a session that is new.
RN_MUST_USE rn_status_t rn_supervisor_ready(rn_supervisor_t* supervisor);
// Runs one step, again in a new session when a failure can be recovered from. |feeds| are lent;
// |fetches| are set and owned by the caller on success.
RN_MUST_USE rn_status_t rn_supervisor_step_run(rn_supervisor_t* supervisor,
                                               const rn_signature_t* signature,
                                               const rn_tensor_t* const* feeds,
                                               rn_tensor_t* fetches);

#endif  // RUNNEL_TRAIN_SUPERVISOR_H_
