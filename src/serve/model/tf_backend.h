// A backend that runs a SavedModel in this process.
#ifndef RUNNEL_SERVE_MODEL_TF_BACKEND_H_
#define RUNNEL_SERVE_MODEL_TF_BACKEND_H_

#include "serve/model/backend.h"
#include "session/session.h"

typedef struct rn_tf_backend_options_t {
  const char* folder;    // of the version, with saved_model.pb
  const rn_str_t* tags;  // of the graph; |tag_count| 0: "serve", or the only graph
  int tag_count;
  // Threads, devices, what the model may read. |folder| and |is_limited| are set here: a model
  // reads its own folder, and beyond that what |allow| lists.
  rn_session_options_t session;
  const int64_t* sizes;  // numbers of rows for which steps are planned in advance; borrowed
  int size_count;
  // Bytes that the model may take, loaded and running; 0: no limit. Beyond it loading, or the run
  // that wants more, fails with RESOURCE_EXHAUSTED.
  size_t max_memory;
  bool is_quiet;        // other models have requests: loading takes memory as quiet_alloc.h says
  const rn_env_t* env;  // outlives the backend
  rn_allocator_t allocator;
} rn_tf_backend_options_t;

// Loads the model: reads the graph, restores variables, runs the initialization, and plans the
// steps of all signatures, so that the first request waits for nothing. All of it happens in the
// calling thread, whose priority it has. Fails if a file is missing or cut off: a folder that is
// still being copied does not become a backend.
RN_MUST_USE rn_status_t rn_tf_backend_create(const rn_tf_backend_options_t* options,
                                             rn_backend_t** out);

// The session of a backend that rn_tf_backend_create made; NULL for other backends.
rn_session_t* rn_tf_backend_session(rn_backend_t* backend);

// The GPUs that the session of such a backend has; 0 for other backends.
int rn_tf_backend_gpus(rn_backend_t* backend);

// Runs any part of the graph by the names of tensors and nodes.
typedef struct rn_tf_session_run_t {
  const rn_str_t* feed_names;  // "x:0"
  const rn_tensor_t* feeds;
  int feed_count;
  const rn_str_t* fetch_names;
  int fetch_count;
  const rn_str_t* target_names;  // nodes
  int target_count;
  // Names of feeds and fetches are those of the inputs and outputs of |signature|.
  bool has_aliases;
  rn_str_t signature;                // "": serving_default
  const rn_step_options_t* options;  // NULL: none
} rn_tf_session_run_t;
// On success the caller owns |fetches|. UNIMPLEMENTED for backends of other kinds, NOT_FOUND for a
// name that the graph does not have. FAILED_PRECONDITION if the step could change a variable or a
// table: a version is served, cached and replicated as it was loaded.
RN_MUST_USE rn_status_t rn_tf_backend_session_run(rn_backend_t* backend,
                                                  const rn_tf_session_run_t* run,
                                                  rn_tensor_t* fetches);

#endif  // RUNNEL_SERVE_MODEL_TF_BACKEND_H_
