// A backend that runs a SavedModel in this process.
#ifndef RUNNEL_SERVE_MODEL_TF_BACKEND_H_
#define RUNNEL_SERVE_MODEL_TF_BACKEND_H_

#include "serve/model/backend.h"
#include "session/session.h"

typedef struct rn_tf_backend_options_t {
  const char* folder;    // of the version, with saved_model.pb
  const rn_str_t* tags;  // of the graph; |tag_count| 0: "serve", or the only graph
  int tag_count;
  rn_session_options_t session;  // threads, devices, what the model may read
  const rn_env_t* env;           // outlives the backend
  rn_allocator_t allocator;
} rn_tf_backend_options_t;

// Loads the model: reads the graph, restores variables, runs the initialization.
RN_MUST_USE rn_status_t rn_tf_backend_create(const rn_tf_backend_options_t* options,
                                             rn_backend_t** out);

// The session of a backend that rn_tf_backend_create made, for SessionRun and for warm-up; NULL for
// other backends.
rn_session_t* rn_tf_backend_session(rn_backend_t* backend);

#endif  // RUNNEL_SERVE_MODEL_TF_BACKEND_H_
