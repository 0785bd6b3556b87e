// How large a batch may be, so that it takes no longer than the latency objective allows.
//
// Learns from the service times of batches, never from the time in the queue. Every policy learns
// the cost of a batch, which the batcher needs for more than the size. Not thread-safe: the batcher
// calls it under its lock.
#ifndef RUNNEL_SERVE_MODEL_BATCH_SIZE_H_
#define RUNNEL_SERVE_MODEL_BATCH_SIZE_H_

#include "base/alloc.h"

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

RN_MUST_USE rn_status_t rn_batch_size_create(const rn_batch_size_options_t* options,
                                             rn_allocator_t allocator, rn_batch_size_t** out);
void rn_batch_size_destroy(rn_batch_size_t* size);  // NULL is fine

// Rows that the next batch may have; >= 1.
int64_t rn_batch_size_limit(const rn_batch_size_t* size);
// The same, but so that nearly every batch takes no longer than |ns|; >= 1 all the same.
int64_t rn_batch_size_within(const rn_batch_size_t* size, int64_t ns);
// A batch of |rows| kept the model for |service_ns|.
void rn_batch_size_observe(rn_batch_size_t* size, int64_t rows, int64_t service_ns);

// How long a batch of |rows| will be in the model, on average; 0 before the first observation.
int64_t rn_batch_size_expect(const rn_batch_size_t* size, int64_t rows);
// The same, so that only one in several hundred takes longer.
int64_t rn_batch_size_expect_most(const rn_batch_size_t* size, int64_t rows);
// The part of the mean that does not depend on |rows|, and that joining requests saves.
int64_t rn_batch_size_fixed(const rn_batch_size_t* size);

#endif  // RUNNEL_SERVE_MODEL_BATCH_SIZE_H_
