// Loads the replicas of a version from its folder: a SavedModel in this process, or containers if
// the folder has a container.pbtxt.
#ifndef RUNNEL_SERVE_MODEL_LOADER_H_
#define RUNNEL_SERVE_MODEL_LOADER_H_

#include "serve/model/container.h"
#include "serve/model/models.h"
#include "session/session.h"

typedef struct rn_loader_options_t {
  rn_str_t tags;  // of the graphs, separated by commas; "": serve, or the only graph; borrowed
  rn_session_options_t session;  // of every model
  int replicas;                  // of a SavedModel; < 1: 1
  rn_str_t gpus;                 // of models: see gpus.h; borrowed
  size_t max_memory;             // bytes per replica of a SavedModel; 0: no limit
  // Numbers of rows for which steps are planned in advance, unless the version's own batching
  // parameters list some; borrowed.
  const int64_t* sizes;
  int size_count;
  rn_containers_t* containers;  // Borrowed; NULL: folders of containers do not load
  const char* program;          // this command, to isolate SavedModels; NULL: it cannot
  bool isolates;                // every replica of a SavedModel runs in a process of its own
  // Warms up one replica, on the thread that loads it; NULL: no warm-up.
  rn_status_t (*warm_up)(void* self, rn_backend_t* backend, rn_str_t model, const char* folder);
  void* warm_up_self;
  const rn_env_t* env;       // its pool runs all models
  rn_allocator_t allocator;  // the same as that of |containers| and of the manager
} rn_loader_options_t;

typedef struct rn_loader_t rn_loader_t;

// Starts the threads of the environment's pool.
RN_MUST_USE rn_status_t rn_loader_create(const rn_loader_options_t* options, rn_loader_t** out);
void rn_loader_destroy(rn_loader_t* loader);  // NULL is fine

// From now on SavedModels are loaded by a thread of low priority, so that requests to other models
// are not slowed down. Before there are any, loading should be quick.
void rn_loader_be_quiet(rn_loader_t* loader);

// rn_models_options_t.load, with |self| a loader.
RN_MUST_USE rn_status_t rn_loader_load(void* self, const rn_pb_serving_ModelConfig_t* config,
                                       int64_t number, const char* folder, rn_backend_t*** out,
                                       int* out_count);

#endif  // RUNNEL_SERVE_MODEL_LOADER_H_
