// Small helpers over the TensorFlow C API: write a graph, open a session, run a step.
//
// Every helper ends the process by bench_fail when the library reports an error, so a case reads
// like its graph. Nothing here is thread-safe except step_run on different steps of one session.
#ifndef BENCH_GRAPH_UTIL_H_
#define BENCH_GRAPH_UTIL_H_

#include <stdbool.h>
#include <stdint.h>

#include "tensorflow/c/c_api.h"

enum { kMaxVariables = 32, kMaxStepIo = 8, kMaxRank = 4 };

// A trainable float variable: its resource and the one read of it that the model uses.
typedef struct {
  TF_Output handle;
  TF_Output value;
} variable_t;

// A graph under construction.
typedef struct {
  TF_Graph* graph;    // Owned.
  TF_Status* status;  // Owned.
  int next_id;        // Names nodes: n0, n1, ...
  variable_t variables[kMaxVariables];
  TF_Operation* inits[kMaxVariables];  // inits[i] initializes variables[i].
  int variable_count;
} net_t;

// A tensor's static shape.
typedef struct {
  int rank;
  int64_t dims[kMaxRank];
} shape_t;

#define SHAPE(...)                                                              \
  ((shape_t){.rank = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
             .dims = {__VA_ARGS__}})
#define SCALAR ((shape_t){.rank = 0})

void check_ok(const TF_Status* status, const char* doing);

// Opens and closes a net. net_close also deletes the graph: delete its sessions first.
void net_open(net_t* net);
void net_close(net_t* net);

// Starts a node of |op| under a fresh name; set inputs and attributes, then finish it.
TF_OperationDescription* net_begin(net_t* net, const char* op);
TF_Operation* net_finish(net_t* net, TF_OperationDescription* desc);
TF_Output net_output(net_t* net, TF_OperationDescription* desc);

// Adds a node whose attributes all follow from its inputs.
TF_Output net_unary(net_t* net, const char* op, TF_Output a);
TF_Output net_binary(net_t* net, const char* op, TF_Output a, TF_Output b);
TF_Output net_add_n(net_t* net, const TF_Output* inputs, int count);

TF_Output net_placeholder(net_t* net, TF_DataType dtype, shape_t shape);
// Takes |tensor|.
TF_Output net_const(net_t* net, TF_Tensor* tensor);
TF_Output net_const_float(net_t* net, float value);
TF_Output net_const_int(net_t* net, int32_t value);
TF_Output net_const_ints(net_t* net, const int32_t* values, int count);
// A NoOp that runs after |operations|.
TF_Operation* net_group(net_t* net, TF_Operation* const* operations, int count);

// The resource of a new float variable.
TF_Output net_variable_handle(net_t* net, shape_t shape);
// A float variable, initially normal with |stddev| (seeded), or zero if |stddev| is 0.
TF_Output net_variable(net_t* net, shape_t shape, float stddev);
// Adds gradients of |loss| with respect to every variable so far, and the node that applies them
// times |rate|.
TF_Operation* net_descend(net_t* net, TF_Output loss, float rate);

TF_Tensor* tensor_float(float value);
TF_Tensor* tensor_floats(shape_t shape);  // Uninitialised.
TF_Tensor* tensor_int(int32_t value);
// Uniform in [low, high), the same on every run for the same |seed|.
TF_Tensor* tensor_random(shape_t shape, float low, float high, uint32_t seed);
int64_t shape_size(shape_t shape);

// The next number of a small generator (xorshift); |state| must not be 0.
uint32_t next_random(uint32_t* state);

// Options of a session; a thread count of 0 leaves the choice to the library.
typedef struct {
  int intra_threads;
  int inter_threads;
  bool no_rewrites;  // Neither the meta optimizer nor the plain passes touch the graph.
} session_config_t;

TF_Session* session_open(net_t* net, session_config_t config);
void session_close(TF_Session* session);
// Runs the initialisers of all variables of |net|.
void session_init_variables(TF_Session* session, const net_t* net);

// One kind of step: its feeds and fetches. Borrows the session; owns the feeds.
typedef struct {
  TF_Session* session;
  TF_Status* status;
  TF_Output feeds[kMaxStepIo];
  TF_Tensor* feed_values[kMaxStepIo];
  int feed_count;
  TF_Output fetches[kMaxStepIo];
  int fetch_count;
  TF_Operation* target;  // May be NULL.
  double result;         // First element of the first fetch of the last step.
} step_t;

void step_open(step_t* step, TF_Session* session);
void step_close(step_t* step);
// Takes |value|.
void step_feed(step_t* step, TF_Output output, TF_Tensor* value);
void step_fetch(step_t* step, TF_Output output);
// Runs once, keeps the first number of the first fetch in |result|, deletes the fetched tensors.
// The argument is a step_t*, untyped so that bench_rate can call it.
void step_run(void* step);
// Runs once and returns the first fetch, which the caller deletes.
TF_Tensor* step_run_for_tensor(step_t* step);

#endif  // BENCH_GRAPH_UTIL_H_
