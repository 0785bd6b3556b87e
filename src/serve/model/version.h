// One loaded version of a model: its replicas with their batch queues, its cache, its counts.
//
// Reference-counted. The manager holds one reference as long as the version is served, and every
// prediction one until it is done; the last one unloads the model, on the manager's thread.
#ifndef RUNNEL_SERVE_MODEL_VERSION_H_
#define RUNNEL_SERVE_MODEL_VERSION_H_

#include "serve/model/backend.h"
#include "serve/model/batcher.h"
#include "serve/model/cache.h"
#include "serve/predict.h"

typedef struct rn_version_options_t {
  rn_str_t model;  // copied
  int64_t number;
  rn_backend_t* const*
      replicas;  // |replica_count| >= 1 backends with equal signatures; taken, also on failure
  int replica_count;
  rn_batcher_options_t batching;  // the same for every replica
  rn_predict_cache_t* cache;      // Borrowed, shared by all versions; NULL: none
  rn_metrics_t* metrics;          // Borrowed; NULL: none
  const rn_env_t* env;
  rn_allocator_t allocator;
  // Called when the last reference is gone, on the thread that released it: hands |version| to a
  // thread that may call rn_version_destroy, which waits for nothing but may take long.
  void (*idle)(void* self, rn_version_t* version);
  void* self;
} rn_version_options_t;

RN_MUST_USE rn_status_t rn_version_create(const rn_version_options_t* options, rn_version_t** out);
void rn_version_retain(rn_version_t* version);
void rn_version_release(rn_version_t* version);  // NULL is fine
void rn_version_destroy(rn_version_t* version);  // see |idle|

rn_str_t rn_version_model(const rn_version_t* version);
int64_t rn_version_number(const rn_version_t* version);
// When its last request ended, of the environment's clock; 0: there was none.
int64_t rn_version_answered_ns(const rn_version_t* version);
const rn_backend_t* rn_version_backend(const rn_version_t* version);  // of its first replica
const rn_device_t* rn_version_device(const rn_version_t* version, int replica);  // NULL: processors
int rn_version_replica_count(const rn_version_t* version);
// Whether the process behind one of its replicas is gone.
bool rn_version_is_down(rn_version_t* version);
const rn_batcher_t* rn_version_batcher(const rn_version_t* version, int replica);

// Checks the request against its signature, then answers from the cache or queues it at the replica
// with the least work. The caller holds a reference; the request holds its own until |done|.
// INVALID_ARGUMENT, in TensorFlow Serving's words, for inputs that do not fit.
void rn_version_predict(rn_version_t* version, rn_predict_t* predict);
// For the cache: queues a request that rn_version_predict has checked.
void rn_version_run(rn_version_t* version, rn_predict_t* predict);

#endif  // RUNNEL_SERVE_MODEL_VERSION_H_
