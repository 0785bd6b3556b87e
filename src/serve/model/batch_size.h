// How large a batch may be, so that it takes no longer than the latency objective allows.
//
// Learns from the service times of batches, never from the time in the queue. Not thread-safe: the
// batcher calls it under its lock.
#ifndef RUNNEL_SERVE_MODEL_BATCH_SIZE_H_
#define RUNNEL_SERVE_MODEL_BATCH_SIZE_H_

#include <stdint.h>

#include "base/status.h"

typedef enum rn_batch_policy_t {
  RN_BATCH_LEARN = 0,  // a model of cost by size, refitted after every batch; the default
  RN_BATCH_AIMD,       // Clipper's: +2 below 0.9 of the objective, * 0.9 above the objective
  RN_BATCH_FIXED,      // always |max|: TensorFlow Serving's
} rn_batch_policy_t;

typedef struct rn_batch_size_options_t {
  rn_batch_policy_t policy;
  int64_t objective_ns;  // of one request, from its arrival to its answer
  int64_t max;           // rows; 0: 65,536
} rn_batch_size_options_t;

typedef struct rn_batch_size_t rn_batch_size_t;

#endif  // RUNNEL_SERVE_MODEL_BATCH_SIZE_H_
