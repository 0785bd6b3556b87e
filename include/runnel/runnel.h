// Runnel for C programs: TensorFlow's C API for graphs, tensors and sessions, and what it never
// had: typed builders (runnel/ops.h), scopes (runnel/graph.h) and gradients as a call. Link with
// -ltensorflow.
#ifndef RUNNEL_RUNNEL_H_
#define RUNNEL_RUNNEL_H_

#include "runnel/cluster.h"
#include "runnel/control_flow.h"
#include "runnel/coordinator.h"
#include "runnel/gradients.h"
#include "runnel/graph.h"
#include "runnel/input.h"
#include "runnel/nn.h"
#include "runnel/ops.h"
#include "runnel/run.h"
#include "runnel/saved_model.h"
#include "runnel/saver.h"
#include "runnel/session.h"
#include "runnel/summary.h"
#include "runnel/tape.h"
#include "runnel/train.h"
#include "runnel/variables.h"
#include "runnel/version.h"
#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// Graphs, nodes and edges are the C API's under other names.
static inline rn_graph_t* rn_graph_of(TF_Graph* graph) { return (rn_graph_t*)graph; }
static inline TF_Graph* rn_tf_graph_of(rn_scope_t* scope) {
  return (TF_Graph*)rn_scope_graph(scope);
}
static inline TF_Operation* rn_operation_of(rn_node_t* node) { return (TF_Operation*)node; }
static inline TF_Output rn_output_of(rn_edge_t edge) {
  TF_Output output = {(TF_Operation*)edge.node, edge.index};
  return output;
}

// How gradients are checked; 0 everywhere: what suits the type.
typedef struct rn_check_options_t {
  double step;       // an element is moved by so much each way
  double tolerance;  // of the difference, relative to the largest gradient (or 1); 0: only measured
  int max_elements;  // of each x that are moved, at even distances; 0: 64
} rn_check_options_t;

// Compares the gradients of |ys| (weighted with fixed numbers and summed) by |xs| with central
// differences at |values|, which are fed to the xs: edges of float or double, most often
// placeholders. |*out_error| (may be NULL) becomes the largest difference, relative to the largest
// gradient or 1. False, and the scope's error, if it is above the tolerance, naming x and element,
// or if something else fails. Adds nodes to the graph and runs them in a session of its own.
bool rn_check_gradient(rn_scope_t* scope, const rn_edge_t* ys, int y_count, const rn_edge_t* xs,
                       TF_Tensor* const* values, int x_count, const rn_check_options_t* options,
                       double* out_error);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_RUNNEL_H_
