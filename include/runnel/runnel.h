// Runnel for C programs: TensorFlow's C API for graphs, tensors and sessions, and what it never
// had: typed builders (runnel/ops.h), scopes (runnel/graph.h) and gradients as a call. Link with
// -ltensorflow.
#ifndef RUNNEL_RUNNEL_H_
#define RUNNEL_RUNNEL_H_

#include "runnel/graph.h"
#include "runnel/ops.h"
#include "runnel/version.h"
#include "tensorflow/c/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// Graphs, nodes and edges are the C API's under other names.
static inline rn_graph_t* rn_graph_of(TF_Graph* graph) { return (rn_graph_t*)graph; }
static inline TF_Operation* rn_operation_of(rn_node_t* node) { return (TF_Operation*)node; }
static inline TF_Output rn_output_of(rn_edge_t edge) {
  TF_Output output = {(TF_Operation*)edge.node, edge.index};
  return output;
}

// Adds the gradients of |y| with respect to |xs| and puts them into |out_dxs|; false (and the
// scope's error) if that cannot be done.
bool rn_gradients(rn_scope_t* scope, rn_edge_t y, const rn_edge_t* xs, int count,
                  rn_edge_t* out_dxs);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_RUNNEL_H_
