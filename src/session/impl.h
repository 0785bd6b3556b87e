// What implementations of a session share: local.c runs steps in this process, dist/client.c asks a
// remote master to. For implementations only; all other code uses session.h.
#ifndef RUNNEL_SESSION_IMPL_H_
#define RUNNEL_SESSION_IMPL_H_

#include <stdatomic.h>

#include "session/session.h"

typedef struct rn_session_vtable_t {
  // As rn_session_run; |fetches| are unset, and the session is not closed.
  rn_status_t (*run)(rn_session_t* session, const rn_signature_t* signature,
                     const rn_tensor_t* const* feeds, rn_tensor_t* fetches,
                     const rn_step_options_t* options);
  // As rn_session_plan; NULL: the session does not plan its steps itself.
  rn_status_t (*plan)(rn_session_t* session, const rn_signature_t* signature,
                      const rn_tensor_t* const* feeds);
  rn_status_t (*devices)(rn_session_t* session, rn_device_t*** out, int* out_count);
  // Ends the steps that run, without waiting for them. Called once per rn_session_close, after
  // |closing| was cancelled.
  rn_status_t (*close)(rn_session_t* session);
  // Frees a closed session, half-built ones too. Ends with rn_session_clear.
  void (*destroy)(rn_session_t* session);
} rn_session_vtable_t;

// First member of every implementation.
struct rn_session_t {
  const rn_session_vtable_t* vtable;
  rn_allocator_t allocator;
  rn_graph_t* graph;      // Retained
  rn_step_t step;         // what every step starts as
  rn_device_t** devices;  // of this process; a remote session has none
  int device_count;
  rn_functions_t* functions;  // NULL for a remote session
  // Steps under way, and CLOSED. The one that takes the last step off a closed session sets
  // |is_idle|; one that leaves an open session does not touch it again.
  _Atomic uint64_t steps;
  rn_cancel_t closing;  // cancelled by close
  rn_mutex_t mutex;     // guards |is_idle|, and what the implementation says
  rn_cond_t idle;
  bool is_idle;  // closed, and the last step has ended
};

// Retains |graph|; |env| must outlive the session.
void rn_session_init(rn_session_t* session, const rn_session_vtable_t* vtable, rn_graph_t* graph,
                     const rn_env_t* env, rn_allocator_t allocator);
void rn_session_clear(rn_session_t* session);

#endif  // RUNNEL_SESSION_IMPL_H_
