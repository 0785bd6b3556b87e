// Runnel for C programs: TensorFlow's C API for graphs, tensors and sessions, and what it never
// had: typed builders (runnel/ops.h), scopes (runnel/graph.h) and gradients as a call. Link with
// -ltensorflow.
#ifndef RUNNEL_RUNNEL_H_
#define RUNNEL_RUNNEL_H_

#include "runnel/cluster.h"
#include "runnel/control_flow.h"
#include "runnel/coordinator.h"
#include "runnel/data_service.h"
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

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_RUNNEL_H_
