// Warm-up: requests that a version answers before it is served.
//
// assets.extra/tf_serving_warmup_requests in the version's folder is a TFRecord file of
// PredictionLogs, 1,000 at most. They run on the backend itself, one after the other, on the
// calling thread, past queues and cache. Answers are dropped.
#ifndef RUNNEL_SERVE_FRONT_WARMUP_H_
#define RUNNEL_SERVE_FRONT_WARMUP_H_

#include "base/env.h"
#include "serve/model/backend.h"

#define RN_WARMUP_FILE "assets.extra/tf_serving_warmup_requests"
#define RN_WARMUP_MOST_RECORDS 1000

typedef struct rn_warmup_options_t {
  int iterations;  // how often each request runs; < 1: once
  const rn_env_t* env;
  rn_allocator_t allocator;
} rn_warmup_options_t;

// Runs the requests of |folder|, if there are any; |*out_count| (may be NULL) is how many there
// were. A record that cannot be read or that fails is an error that names it, and so is record
// 1,001.
RN_MUST_USE rn_status_t rn_warmup_run(const rn_warmup_options_t* options, rn_backend_t* backend,
                                      const char* folder, int* out_count);

#endif  // RUNNEL_SERVE_FRONT_WARMUP_H_
