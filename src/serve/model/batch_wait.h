// How long a batch that is not full waits for more requests.
//
// Waiting pays if several callers ask again as soon as they are answered: the first one would run
// alone, and the others would wait for it. It never pays if requests come one by one. So the
// batcher tries: now and then it waits for some batches, by a part of what a batch costs at least,
// and keeps what made requests take less time from their arrival to their answer.
//
// Not thread-safe: the batcher calls it under its lock.
#ifndef RUNNEL_SERVE_MODEL_BATCH_WAIT_H_
#define RUNNEL_SERVE_MODEL_BATCH_WAIT_H_

#include <stdbool.h>
#include <stdint.h>

typedef struct rn_batch_wait_t {
  int64_t max_ns;       // the longest wait
  int kept, tried;      // windows; the same unless one is tried
  int next;             // the window to try next
  int batches;          // of this epoch, so far
  int wins;             // consecutive ones of |next|
  int patience;         // epochs until the next try
  int rest;             // epochs left of these
  double spent, count;  // of this epoch: nanoseconds of requests, requests
  double kept_mean;     // of the last epoch that tried nothing
  double peak;          // recent maximum of concurrent requests
} rn_batch_wait_t;

void rn_batch_wait_init(rn_batch_wait_t* wait, int64_t max_ns);
// |outstanding| requests wait or run, with the one that has just come.
void rn_batch_wait_arrive(rn_batch_wait_t* wait, int64_t outstanding);
// How long to wait, if a batch costs |fixed_ns| whatever its size.
int64_t rn_batch_wait_window(const rn_batch_wait_t* wait, int64_t fixed_ns);
// Whether no more than |queued| requests can be expected.
bool rn_batch_wait_is_enough(const rn_batch_wait_t* wait, int64_t queued);
// |count| requests were answered, |spent_ns| after their arrivals, together.
void rn_batch_wait_done(rn_batch_wait_t* wait, int64_t count, int64_t spent_ns);

#endif  // RUNNEL_SERVE_MODEL_BATCH_WAIT_H_
