// The queue in front of one backend: joins waiting requests into batches.
//
// The size of a batch follows from a latency objective (batch_size.h); how long the first request
// of a batch waits for others is chosen by what it brings (batch_wait.h). Requests of
// equal priority run earliest deadline first. A request whose deadline has passed, or that was
// cancelled, is answered at once and runs nothing. So is one that, by the measured cost of batches,
// could not be answered in time: UNAVAILABLE, with |retry_ns|. A request that has started is
// answered when its batch ends; one that runs past the last deadline in it is cancelled. If a batch
// of several requests fails, each of them runs once more, alone.
#ifndef RUNNEL_SERVE_MODEL_BATCHER_H_
#define RUNNEL_SERVE_MODEL_BATCHER_H_

#include "net/timers.h"
#include "serve/metrics.h"
#include "serve/model/backend.h"
#include "serve/model/batch_size.h"
#include "serve/model/shares.h"
#include "serve/predict.h"

typedef struct rn_batcher_t rn_batcher_t;

typedef struct rn_batcher_options_t {
  bool is_on;  // false: every request runs alone
  rn_batch_size_options_t size;
  int64_t max_wait_ns;  // a fixed delay for the first request of a batch; -1: automatic; 0: none
  int64_t
      max_queued;  // requests that may wait; beyond it they are refused. 0: by measured capacity
  // TensorFlow Serving's parameters.
  const int64_t* allowed_sizes;  // ascending; batches are padded up to one of them; copied
  int allowed_count;             // 0: any size
  bool pads_variable;            // pad inputs of different shapes to the largest
  bool splits_large;             // a request of more rows than a batch may have is split
  // Where blocking backends run.
  rn_pool_t* pool;      // Borrowed; NULL: on the caller's thread
  rn_shares_t* shares;  // Borrowed: |pool| runs batches when these say so; NULL: at once
  // Where blocking backends with a device run instead, at once: their threads wait for the device,
  // and take no processor from others. NULL: as others.
  rn_pool_t* device_pool;
  // Runs a job of some microseconds on the calling thread, soon, in a way that nothing else waits
  // for it if it takes longer. False if this thread cannot: then |pool| runs it. NULL: the caller
  // runs batches that should be quick, and waits if they are not.
  bool (*defer)(void* defer_self, rn_job_t* job);
  void* defer_self;
  rn_timers_t timers;     // for delays and deadlines; they outlive the batcher
  rn_timers_t watch;      // to cancel batches at their deadlines: of a thread that runs none
  rn_metrics_t* metrics;  // Borrowed; NULL: none
  rn_str_t model;         // the label of its series; needed by rn_batcher_create alone
  const rn_env_t* env;
  rn_allocator_t allocator;
} rn_batcher_options_t;

// Borrows |backend|.
RN_MUST_USE rn_status_t rn_batcher_create(const rn_batcher_options_t* options,
                                          rn_backend_t* backend, rn_batcher_t** out);
// Nothing may wait or run. NULL is fine.
void rn_batcher_destroy(rn_batcher_t* batcher);

// Takes a checked request: |signature_index| and |rows| are set, the inputs are in the signature's
// order. Calls |predict->done|.
void rn_batcher_add(rn_batcher_t* batcher, rn_predict_t* predict);

// For choosing a replica, for admission and for metrics. Any thread may call it.
typedef struct rn_batcher_stats_t {
  int64_t queued, running;  // requests
  int64_t queued_rows;
  int64_t batches, rows, padded;  // so far
  int64_t expired, cancelled, refused;
  int64_t limit;        // rows that the next batch may have
  int64_t wait_ns;      // how long the first request of a batch waits for others, now
  int64_t expected_ns;  // until a request that came now would be answered
} rn_batcher_stats_t;
rn_batcher_stats_t rn_batcher_stats(const rn_batcher_t* batcher);

#endif  // RUNNEL_SERVE_MODEL_BATCHER_H_
