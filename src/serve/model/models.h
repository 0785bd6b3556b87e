// The models of a server: which versions there should be, which are loaded, and which name means
// which.
//
// A configuration (config.h) lists models with a base path, a version policy and labels. A thread
// polls the base paths for versions (source.h); another loads and unloads, so that a request never
// waits for either. A version is served only after it was loaded and warmed up.
#ifndef RUNNEL_SERVE_MODEL_MODELS_H_
#define RUNNEL_SERVE_MODEL_MODELS_H_

#include "proto/model_server_config.pb.h"
#include "serve/model/version.h"

typedef struct rn_models_t rn_models_t;

// TensorFlow Serving's states of a version, by its numbers.
typedef enum rn_model_state_t {
  RN_MODEL_UNKNOWN = 0,
  RN_MODEL_START = 10,
  RN_MODEL_LOADING = 20,
  RN_MODEL_AVAILABLE = 30,
  RN_MODEL_UNLOADING = 40,
  RN_MODEL_END = 50,
} rn_model_state_t;
const char* rn_model_state_name(rn_model_state_t state);

typedef struct rn_models_options_t {
  // Makes the replicas of a version, and runs their warm-up requests: a SavedModel's by default, a
  // container's if |folder| has container.pbtxt. Runs on a loading thread. The caller owns |*out|,
  // |*out_count| backends.
  rn_status_t (*load)(void* self, const rn_pb_serving_ModelConfig_t* config, int64_t number,
                      const char* folder, rn_backend_t*** out, int* out_count);
  void* self;
  // Says that models or their versions may have changed; called with the manager's lock, so that it
  // must not call it. May be NULL.
  void (*changed)(void* self);
  void* changed_self;
  rn_batcher_options_t batching;  // of models that bring no parameters of their own
  rn_predict_cache_t* cache;      // Borrowed; NULL: none
  rn_metrics_t* metrics;          // Borrowed; NULL: none
  int64_t poll_ns;                // between looks at the base paths; 0: once; < 0: never
  int max_load_retries;           // after the first try
  int64_t retry_ns;               // between tries
  int load_threads;               // >= 1
  bool unloads_first;             // resource-preserving instead of availability-preserving
  bool labels_unavailable;        // new labels may point to versions that are not loaded yet
  bool keeps_emptied;             // a base path without versions unloads nothing
  const rn_env_t* env;
  rn_allocator_t allocator;
} rn_models_options_t;

RN_MUST_USE rn_status_t rn_models_create(const rn_models_options_t* options, rn_models_t** out);
// Unloads everything, after the predictions that run. NULL is fine.
void rn_models_destroy(rn_models_t* models);

// Replaces the configuration: models that it lacks are unloaded. Returns when the new list is in
// force; loading goes on. On failure the old configuration stays. |config| is copied.
RN_MUST_USE rn_status_t rn_models_configure(rn_models_t* models,
                                            const rn_pb_serving_ModelServerConfig_t* config);
// Waits until every wanted version is available or failed for good. UNKNOWN, in TensorFlow
// Serving's words, lists the models without an available version and why. A model whose base path
// is missing or empty is waited for: DEADLINE_EXCEEDED at |deadline_ns|, with the same list.
RN_MUST_USE rn_status_t rn_models_wait(rn_models_t* models, int64_t deadline_ns);
// Looks at the base paths now, and waits until what was found is loaded or failed.
RN_MUST_USE rn_status_t rn_models_poll(rn_models_t* models);

// The repository calls of the Open Inference Protocol, for a configured model; NOT_FOUND for
// another one. Both block: not on a loop's thread.
//
// Looks at the base path of |name| now and loads what is wanted of it, also after rn_models_unload.
// |policy| takes the place of the configured one until the next load or configuration; NULL: the
// configured one. Waits until a version is available; the error of the last try if there is none.
// DEADLINE_EXCEEDED at |deadline_ns|, while loading goes on.
typedef rn_pb_serving_FileSystemStoragePathSourceConfig_ServableVersionPolicy_t rn_version_policy_t;
RN_MUST_USE rn_status_t rn_models_load(rn_models_t* models, rn_str_t name,
                                       const rn_version_policy_t* policy, int64_t deadline_ns);
// Ends every version of |name|, which stays configured, but is not loaded before rn_models_load or
// a new configuration asks for it. Waits until no version is served.
RN_MUST_USE rn_status_t rn_models_unload(rn_models_t* models, rn_str_t name);

// Which version of which model a request means.
typedef struct rn_model_spec_t {
  rn_str_t name;
  int64_t version;  // -1: by label, or the latest
  rn_str_t label;   // "": none
} rn_model_spec_t;

// A reference to the version that |spec| means; the caller releases it. Takes no lock. NOT_FOUND,
// in TensorFlow Serving's words, if it is not available.
RN_MUST_USE rn_status_t rn_models_find(rn_models_t* models, const rn_model_spec_t* spec,
                                       rn_version_t** out);

typedef struct rn_version_info_t {
  int64_t number;
  rn_model_state_t state;
  rn_code_t code;
  const char* message;    // of the state; "" if the code is OK
  rn_version_t* version;  // Retained; NULL unless it is available
} rn_version_info_t;
typedef struct rn_model_info_t {
  rn_str_t name, base_path, platform;
  rn_version_info_t* versions;  // by descending number; those that ended are listed, too
  int version_count;
  struct {
    rn_str_t label;
    int64_t version;
  } * labels;
  int label_count;
} rn_model_info_t;
// A picture of all models, or of |name| alone unless it is "" (NOT_FOUND if there is no such
// model). Everything is in |arena|; rn_models_info_clear releases the versions.
RN_MUST_USE rn_status_t rn_models_info(rn_models_t* models, rn_str_t name, rn_arena_t* arena,
                                       rn_model_info_t** out, int* out_count);
void rn_models_info_clear(rn_model_info_t* infos, int count);

#endif  // RUNNEL_SERVE_MODEL_MODELS_H_
