// One batch on its way through a backend: the requests in it, and their tensors.
//
// A batch of one request without padding copies nothing. Several requests are copied once, side by
// side; their answers share the tensors that the backend made.
#ifndef RUNNEL_SERVE_MODEL_BATCH_H_
#define RUNNEL_SERVE_MODEL_BATCH_H_

#include "serve/model/backend.h"
#include "serve/model/shares.h"
#include "serve/predict.h"

typedef struct rn_batch_t rn_batch_t;
struct rn_batch_t {
  rn_backend_run_t run;
  rn_share_turn_t turn;     // of a run that blocks a thread
  _Atomic int refs;         // see rn_batch_cancel
  rn_cancel_t cancel;       // of a run with a deadline
  rn_cancel_entry_t entry;  // in that of the only request; |fn| is NULL if it is not there
  int64_t deadline_ns;      // no request has a later one
  // For the batcher.
  void* owner;
  rn_batch_t *next, *next_to_run;  // of the batches that run, and of those that are about to
  rn_batch_t* next_overdue;
  bool is_overdue;  // the deadline has passed while it was under way; under the batcher's lock
  _Atomic int phase;
  int formed_count;                // requests, before some expired
  int64_t formed_ns, expected_ns;  // when it was formed, and how long it should take then

  bool is_quick;        // may run on the thread of a caller
  rn_predict_t* ended;  // requests that need not run any more, linked by |next|

  rn_status_t status;  // Owned
  const rn_serve_signature_t* signature;
  const rn_device_t* device;   // the backend's; NULL: processors
  int ports;                   // of the signature, which may be gone once the requests are answered
  rn_predict_t *first, *last;  // the requests, linked by |next|
  int count;
  int64_t rows;      // of the requests; a request that runs alone counts as one
  int64_t run_rows;  // with padding
  int64_t joined_ns, begun_ns, ended_ns;  // when joining and running began, and when the run ended
  rn_allocator_t allocator;
  size_t size;            // of this block
  bool* wanted;           // in this block
  rn_tensor_t tensors[];  // inputs, then outputs
};

// An empty batch for requests with |signature|.
RN_MUST_USE rn_status_t rn_batch_create(const rn_backend_t* backend, int signature,
                                        rn_allocator_t allocator, rn_batch_t** out);
void rn_batch_destroy(rn_batch_t* batch);  // not its requests
// Cancels the run. |batch| was retained, and is released: the run may end inside, and the batch be
// destroyed.
void rn_batch_retain(rn_batch_t* batch);
void rn_batch_cancel(rn_batch_t* batch);

void rn_batch_add(rn_batch_t* batch, rn_predict_t* predict);
rn_predict_t* rn_batch_pop(rn_batch_t* batch);  // the first request, or NULL

// Sets up the run: inputs of |run_rows| rows, what is wanted, the deadline. A batch of several
// requests leaves them their inputs, so that they can run again.
RN_MUST_USE rn_status_t rn_batch_join_inputs(rn_batch_t* batch, int64_t run_rows, bool pads);
// To be called when the run has ended: no request can cancel it any more.
void rn_batch_end(rn_batch_t* batch);
// Gives each request its outputs. FAILED_PRECONDITION, in TensorFlow Serving's words, if the
// outputs do not have |run_rows| rows.
RN_MUST_USE rn_status_t rn_batch_split_outputs(rn_batch_t* batch);

#endif  // RUNNEL_SERVE_MODEL_BATCH_H_
