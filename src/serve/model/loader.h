// Loads the replicas of a version from its folder: a SavedModel in this process, or what a
// container.pbtxt in the folder describes.
#ifndef RUNNEL_SERVE_MODEL_LOADER_H_
#define RUNNEL_SERVE_MODEL_LOADER_H_

#include "serve/model/models.h"
#include "session/session.h"

// The file that makes a folder a container's.
#define RN_LOADER_CONTAINER_FILE "container.pbtxt"

// Makes the replicas of a version whose folder has RN_LOADER_CONTAINER_FILE; see
// rn_models_options_t.load.
typedef rn_status_t (*rn_loader_container_fn_t)(void* self,
                                                const rn_pb_serving_ModelConfig_t* config,
                                                int64_t number, const char* folder,
                                                rn_backend_t*** out, int* out_count);

typedef struct rn_loader_options_t {
  rn_str_t tags;  // of the graphs, separated by commas; "": serve, or the only graph; borrowed
  rn_session_options_t session;  // of every model
  int replicas;                  // of a SavedModel; < 1: 1
  // Numbers of rows for which steps are planned in advance, unless the version's own batching
  // parameters list some; borrowed.
  const int64_t* sizes;
  int size_count;
  rn_loader_container_fn_t container;  // NULL: such folders do not load
  void* container_self;
  const rn_env_t* env;  // its pool runs all models
  rn_allocator_t allocator;
} rn_loader_options_t;

typedef struct rn_loader_t rn_loader_t;

// Starts the threads of the environment's pool.
RN_MUST_USE rn_status_t rn_loader_create(const rn_loader_options_t* options, rn_loader_t** out);
void rn_loader_destroy(rn_loader_t* loader);  // NULL is fine

// rn_models_options_t.load, with |self| a loader. SavedModels are loaded by a thread of low
// priority, so that requests to other models do not feel it.
RN_MUST_USE rn_status_t rn_loader_load(void* self, const rn_pb_serving_ModelConfig_t* config,
                                       int64_t number, const char* folder, rn_backend_t*** out,
                                       int* out_count);

#endif  // RUNNEL_SERVE_MODEL_LOADER_H_
