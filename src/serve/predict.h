// One prediction on its way through the server.
//
// A protocol fills in the request, takes a model version (model/models.h) and calls
// rn_version_predict. |done| is called exactly once, from any thread, perhaps before
// rn_version_predict returns. Between the two the record must stay in place, and only the layer
// that holds it may touch it.
//
//   protocol -> [select: policy, ensemble] -> version: validate -> cache -> batcher -> backend ->
//   done
#ifndef RUNNEL_SERVE_PREDICT_H_
#define RUNNEL_SERVE_PREDICT_H_

#include "framework/cancel.h"
#include "tensor/tensor.h"

typedef struct rn_version_t rn_version_t;
typedef struct rn_predict_t rn_predict_t;

typedef struct rn_predict_value_t {
  rn_str_t name;  // Borrowed: from the request's bytes or from the signature
  rn_tensor_t value;
} rn_predict_value_t;

// How a reply came about. Every protocol reports these marks; doc/serving.md lists how.
enum {
  RN_MARK_CACHED = 1,   // from the prediction cache
  RN_MARK_DEFAULT = 2,  // the application's default output: no model answered with confidence
  RN_MARK_PARTIAL = 4,  // an ensemble without some of its members
};

// Where the time of a request went, in nanoseconds; the parts add up to the whole, less what the
// protocol itself adds.
typedef struct rn_predict_times_t {
  int64_t begun_ns;   // when the request was complete, of the environment's clock
  int64_t queue_ns;   // waiting for a batch to start
  int64_t batch_ns;   // joining inputs and splitting outputs
  int64_t join_ns;    // the part of it before the model
  int64_t run_ns;     // in the model
  int batch_size;     // rows of the batch that it was part of; 0: it ran in none
  int64_t start_ns;   // when a version got the request, of the same clock; 0: none did
  int64_t queued_ns;  // when it got into a queue, if it ran
  int64_t end_ns;     // when the version had answered
} rn_predict_times_t;

struct rn_predict_t {
  // Set by the caller. Arrays and names are borrowed until |done|; the input tensors are moved:
  // they are unset when |done| is called.
  rn_str_t signature;          // "": serving_default
  rn_predict_value_t* inputs;  // in any order
  int input_count;
  const rn_str_t* filter;  // names of the outputs that are wanted
  int filter_count;        // 0: all
  int64_t deadline_ns;     // of the environment's clock; INT64_MAX: none
  int priority;            // higher runs first; 0 is the default
  bool skips_cache;
  // Borrowed; NULL: cannot be cancelled. |done| may be called inside rn_cancel, which must find the
  // cancellation still there when it returns.
  rn_cancel_t* cancel;
  // Owns |status|. On success |outputs| has the results; the callee of rn_version_predict allocated
  // the array, and rn_predict_clear frees it with its tensors.
  void (*done)(rn_predict_t* predict, rn_status_t status);
  // Results.
  rn_predict_value_t*
      outputs;  // Owned; names are the signature's, in the order of |filter| or by name
  int output_count;
  unsigned marks;
  rn_predict_times_t times;  // |begun_ns| is the caller's
  int64_t retry_ns;  // after UNAVAILABLE or RESOURCE_EXHAUSTED for lack of capacity: when to
                     // try again, from now; 0: unknown
  // For the layer that holds the request.
  rn_version_t* version;  // Retained by rn_version_predict until |done|
  rn_allocator_t allocator;
  rn_predict_t* next;
  size_t places[2];         // in the heaps of a queue, from 1; 0: in none
  int64_t due_ns;           // when it should be answered, which orders a queue
  int64_t come_ns;          // when its holder got it
  void* group;              // of requests that may be joined with it, in a queue
  int signature_index;      // of the version's signatures
  int64_t rows;             // dimension 0 of all inputs; -1: the request runs alone
  rn_cancel_entry_t entry;  // while it waits
  void* holder;
  void* flight;  // of the prediction cache; NULL: the cache does not want the answer
};

// Frees the outputs, and the inputs that are still set. The record can then be used again.
void rn_predict_clear(rn_predict_t* predict);

// For the layers below rn_version_predict: answers the request. Unsets the inputs, tells the cache,
// calls |done| with |status| (taken) and lets go of the version. The record may be gone afterwards.
void rn_predict_finish(rn_predict_t* predict, rn_status_t status);

#endif  // RUNNEL_SERVE_PREDICT_H_
