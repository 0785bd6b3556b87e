// The parts of the manager of models. models.c is its interface, models_configure.c accepts
// lists of models, models_turn.c decides what is loaded and unloaded, models_jobs.c does it. For
// these files only.
//
//   START -> LOADING -> AVAILABLE -> UNLOADING -> END
//               |  ^                               |
//               |  +-- another try                 +-> START, if it is wanted again
//               +----- failed for good ----------> END
//
// One thread, the manager's, looks at the base paths and takes all decisions. Load threads load; a
// thread of low priority unloads. Requests see nothing of it but the table (model_table.h).
//
// doc/invariants.md: invariants 55, 56 and 57.
#ifndef RUNNEL_SERVE_MODEL_MODELS_INTERNAL_H_
#define RUNNEL_SERVE_MODEL_MODELS_INTERNAL_H_

#include "base/sync.h"
#include "serve/model/model_table.h"
#include "serve/model/source.h"

// A model's part of a configuration. Shared by the model and by loads that run; the count is
// guarded by the manager's lock.
typedef struct rn_managed_config_t {
  int refs;
  rn_arena_t arena;
  const rn_pb_serving_ModelConfig_t* config;
  rn_str_t platform;
  struct rn_managed_config_t* listed;  // Retained; the list's, of which a load made this variant
} rn_managed_config_t;

typedef struct rn_managed_model_t rn_managed_model_t;

typedef enum rn_managed_job_t { RN_JOB_NONE, RN_JOB_LOAD, RN_JOB_DESTROY } rn_managed_job_t;

// A version that is or was wanted.
typedef struct rn_managed_version_t {
  struct rn_managed_version_t* next;  // of the model, by descending number
  struct rn_managed_version_t* next_job;
  rn_managed_model_t* model;  // Borrowed
  int64_t number;
  char* folder;  // Owned; not changed while a job runs
  rn_model_state_t state;
  rn_status_t health;    // Owned; the last error of loading it
  rn_status_t outcome;   // Owned; why |version|, which is not served, is being destroyed
  bool is_aspired;       // the policy wants it, and it was on disk at the last look
  bool is_loaded;        // waits to be shown to requests
  bool is_leaving;       // waits to be hidden from requests
  bool is_failed;        // for good
  rn_managed_job_t job;  // that waits or runs
  // Set from loading to destruction. The manager's reference, unless the state is UNLOADING or
  // |outcome| is set: then it was given back.
  rn_version_t* version;
  int tries;             // that failed, in turn
  int64_t retry_ns;      // when the next one may begin
  uint64_t fingerprint;  // of the folder when it was last tried
} rn_managed_version_t;

struct rn_managed_model_t {
  char* name;  // Owned
  size_t name_size;
  rn_managed_config_t* config;  // Retained; the last one if it is not configured any more
  bool is_configured;
  bool is_off;          // by rn_models_unload
  bool is_looked;       // its base path was looked at since it was configured
  rn_status_t trouble;  // Owned; why the last look found no versions
  rn_managed_version_t* versions;
};

typedef struct rn_job_queue_t {
  rn_managed_version_t *first, *last;
  rn_cond_t filled;
} rn_job_queue_t;

struct rn_models_t {
  rn_models_options_t options;
  rn_allocator_t allocator;
  const rn_env_t* env;
  rn_model_view_t view;
  rn_mutex_t mutex;    // guards all below
  rn_cond_t changed;   // something for those that wait for models
  rn_cond_t wanted;    // something for the manager's thread
  bool needs_turn;     // a decision is due
  bool is_closing;     // everything is to be unloaded
  bool is_ending;      // threads are to end
  bool is_configured;  // a list was accepted
  int64_t looks_asked, looks_done;
  int64_t next_look_ns;
  RN_VEC(rn_managed_model_t*) models;
  rn_job_queue_t loads, destroys;
  pthread_t manager, destroyer, *loaders;
  bool has_manager, has_destroyer;
  int loader_count;
};

static inline rn_str_t rn_managed_name(const rn_managed_model_t* model) {
  return rn_str_n(model->name, model->name_size);
}

// models.c

// Lets the manager's thread decide again.
void rn_models_wake_locked(rn_models_t* models);
// The model |name|, configured or not; NULL if there never was one.
rn_managed_model_t* rn_models_model_locked(rn_models_t* models, rn_str_t name);
void rn_managed_model_free(rn_models_t* models, rn_managed_model_t* model);

// models_configure.c

// A copy of |config| by way of its bytes; half-made on failure.
RN_MUST_USE rn_status_t rn_managed_config_copy(rn_models_t* models,
                                               const rn_pb_serving_ModelConfig_t* config,
                                               rn_managed_config_t** out);

// models_turn.c

// Whether |version| should be loaded. A version that a label points to stays until the label goes.
bool rn_managed_is_wanted(const rn_models_t* models, const rn_managed_version_t* version);
// Shows the available versions and the labels to requests. On failure requests see what they saw.
RN_MUST_USE rn_status_t rn_models_publish_locked(rn_models_t* models);
// Records that a load failed; takes |status|. Plans another try, or gives up.
void rn_managed_fail_locked(rn_models_t* models, rn_managed_version_t* version, rn_status_t status);
// Lets a version that failed or waits be tried at once.
void rn_managed_retry_locked(rn_managed_version_t* version);
// The manager's thread.
void* rn_models_manage(void* models);

// models_jobs.c

// Load threads, and the thread that destroys versions.
void* rn_models_load_jobs(void* models);
void* rn_models_destroy_jobs(void* models);
void rn_job_queue_push(rn_job_queue_t* queue, rn_managed_version_t* version, rn_managed_job_t job);

void rn_managed_config_release_locked(rn_managed_config_t* config);  // NULL is fine

#endif  // RUNNEL_SERVE_MODEL_MODELS_INTERNAL_H_
