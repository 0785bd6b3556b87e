// Cases that are measured on a GPU: whole networks, and what a card can do.
//
// A case builds a graph and says what a step is. Input and labels are variables on the device, as
// in the PyTorch programs of torch_nets.py; a step is one call that returns when the device has
// finished.
#ifndef RUNNEL_BENCH_GPU_GPU_BENCH_H_
#define RUNNEL_BENCH_GPU_GPU_BENCH_H_

#include "networks.h"

typedef struct bench_t {
  rn_scope_t* s;
  TF_DataType dtype;  // of products and convolutions
  bool is_tiny;       // a graph of the same nodes that a CPU runs in a moment
  int64_t batch;      // instead of the case's; 0: the case's
  // Set by the case:
  rn_edge_t loss;     // a number that must be the same on each device, if any
  bool is_trained;    // steps make the loss smaller
  rn_node_t* step;    // what a step runs, if anything
  rn_edge_t fed;      // what a step feeds, if anything: floats
  rn_edge_t fetched;  // what a step fetches, if anything
  int64_t fed_dims[2];
  int fed_rank;
  double work;           // per step, in the case's unit; 0: the figure is milliseconds
  bool has_two_clients;  // two threads run steps at the same time
} bench_t;

typedef struct bench_case_t {
  const char* name;
  void (*build)(bench_t* b);
  const char* unit;  // of the figure; "ms": less is better, else more
  bool has_bfloat16;
} bench_case_t;

// Tables of cases; each ends with a row without a name.
extern const bench_case_t bench_images[], bench_inference[], bench_text[], bench_machine[];

// |large|, or |tiny| if the case is to be tiny.
static inline int64_t bench_size(const bench_t* b, int64_t large, int64_t tiny) {
  return b->is_tiny ? tiny : large;
}
// How many examples a step takes: |large|, or |tiny|, or what the command line says.
static inline int64_t bench_batch(const bench_t* b, int64_t large, int64_t tiny) {
  return b->batch ? b->batch : bench_size(b, large, tiny);
}
// A network of the bench's type in its scope.
network_t bench_network(const bench_t* b);
// A network for |image| with |batch| pictures of |channels| as its |x| and 1,000 classes; narrow
// and short if the case is to be tiny.
network_t bench_pictures(bench_t* b, const network_image_t* image, int64_t channels, int64_t batch);
// Normal numbers, in a variable that is not trained.
rn_edge_t bench_numbers(bench_t* b, const char* name, const int64_t* dims, int rank);
// Integers from 0 … below - 1, likewise.
rn_edge_t bench_ids(bench_t* b, const char* name, const int64_t* dims, int rank, int64_t below);
// A step is then to minimize |loss|, and to update the moving averages.
void bench_train(bench_t* b, rn_optimizer_t optimizer, rn_edge_t loss);
// The same with dense gradients of tables, as PyTorch's are.
void bench_train_dense(bench_t* b, rn_optimizer_t optimizer, rn_edge_t loss);
// A step is then to compute |y|, which stays on the device.
void bench_infer(bench_t* b, rn_edge_t y);

typedef struct bench_options_t {
  const char* device;  // "gpu" or "cpu"
  double seconds;
  const char* trace;  // file for the RunMetadata of a step; NULL: none
  TF_DataType dtype;
  int64_t batch;  // instead of the case's; 0: the case's
  bool is_tiny, log_placement;
  const char* mixed_precision;  // of the session: "float16" or "bfloat16"; NULL: none
} bench_options_t;

enum { BENCH_CHECKED = 4 };
typedef struct bench_result_t {
  double figure, best_ms, setup_ms, first_ms;
  int steps;
  int64_t peak_bytes;           // of the GPU's memory; 0: not counted
  float losses[BENCH_CHECKED];  // of the first steps, if the case is tiny
  float last_loss;
  bool is_trained;
} bench_result_t;

// Builds the case and measures it. False after an error, which is printed.
bool bench_run(const bench_case_t* c, const bench_options_t* options, bench_result_t* out);

// Builds the case and writes its GraphDef to |file|, with a node "init" that makes the variables, a
// node "step" and, if the case has one, a node "loss". False after an error, which is printed.
bool bench_export(const bench_case_t* c, const bench_options_t* options, const char* file);

#endif  // RUNNEL_BENCH_GPU_GPU_BENCH_H_
