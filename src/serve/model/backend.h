// What computes the predictions of one model version: a SavedModel in this process (tf_backend.h),
// or a model in a process of its own (container.h).
//
// A backend is one replica: the batcher gives it one batch at a time, unless |lanes| says that it
// takes several. It knows nothing of requests, queues or deadlines.
#ifndef RUNNEL_SERVE_MODEL_BACKEND_H_
#define RUNNEL_SERVE_MODEL_BACKEND_H_

#include "base/env.h"
#include "device/device.h"
#include "framework/cancel.h"
#include "tensor/tensor.h"

// An input or output of a signature.
typedef struct rn_serve_port_t {
  rn_str_t name;    // the alias in the signature
  rn_str_t tensor;  // in the graph: "x:0"; "" for containers
  rn_dtype_t dtype;
  rn_shape_t shape;  // partial
  // Of an output: what the elements of a row stand for (labels.h). Those beyond have no label.
  const rn_str_t* labels;
  int64_t label_count;
} rn_serve_port_t;

typedef struct rn_serve_signature_t {
  rn_str_t name;
  rn_str_t method;                          // "tensorflow/serving/predict"
  const rn_serve_port_t *inputs, *outputs;  // by ascending name
  int input_count, output_count;
  // Whether rows of several requests may be joined: dimension 0 of every input and output is
  // unknown, and rows do not influence each other as far as the graph shows.
  bool is_batched;
  // Whether equal inputs give equal outputs: no stateful op is reached. Only these are cached.
  bool is_pure;
} rn_serve_signature_t;

typedef struct rn_backend_t rn_backend_t;

// One batch. The caller keeps it in place until |done|.
typedef struct rn_backend_run_t {
  int signature;              // index
  const rn_tensor_t* inputs;  // one per input of the signature, in its order; borrowed
  const bool* wanted;         // one per output; NULL: all
  rn_tensor_t* outputs;       // one per output; set on success where wanted, unset otherwise
  rn_cancel_t* cancel;        // Borrowed; NULL: none
  int64_t deadline_ns;        // after which the result is not needed; INT64_MAX: none
  bool is_quiet;  // must not disturb other models: takes no threads but the caller's, if it blocks
  // Owns |status|. Called once, from any thread, perhaps before |run| returns.
  void (*done)(struct rn_backend_run_t* run, rn_status_t status);
} rn_backend_run_t;

typedef struct rn_backend_vtable_t {
  const char* kind;  // "tensorflow", "container", for status pages
  void (*run)(rn_backend_t* backend, rn_backend_run_t* run);
  // No run may be under way.
  void (*destroy)(rn_backend_t* backend);
  // Whether a run would fail now because the process behind it is gone; NULL: never.
  bool (*is_down)(rn_backend_t* backend);
} rn_backend_vtable_t;

// Implementations put this first in a struct of their own.
struct rn_backend_t {
  const rn_backend_vtable_t* vtable;
  const rn_serve_signature_t* signatures;  // by ascending name; they live as long as the backend
  int signature_count;
  // Whether |run| returns only after |done|. If so, the batcher calls it on a thread that may be
  // kept busy; if not, on any thread.
  bool blocks;
  // Whether |run| takes inputs of other shapes than the signature's, and refuses those that it
  // cannot use. Such a request runs alone. TensorFlow's clients may send [n] for [?,1].
  bool takes_any_shape;
  int lanes;         // batches that it can run at the same time; >= 1
  int64_t max_rows;  // of one batch; 0: no limit
  // The GPU that its steps run on first of all; NULL: processors, or another process. Lives as long
  // as the backend.
  const rn_device_t* device;
  size_t memory;  // bytes that it took after loading; 0: unknown
  rn_str_t meta;  // a serialized SignatureDefMap, for metadata requests; "" if there is none
};

// The index of signature |name| ("": serving_default); -1 if there is none.
int rn_backend_signature(const rn_backend_t* backend, rn_str_t name);
// The index of the port |name| among |count| sorted ones; -1 if there is none.
int rn_serve_port(const rn_serve_port_t* ports, int count, rn_str_t name);

#endif  // RUNNEL_SERVE_MODEL_BACKEND_H_
