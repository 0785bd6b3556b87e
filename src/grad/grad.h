// Reverse-mode gradients: adds the nodes that compute them to the graph.
#ifndef RUNNEL_GRAD_GRAD_H_
#define RUNNEL_GRAD_GRAD_H_

#include "base/status.h"
#include "base/str.h"
#include "runnel/gradients.h"

// A request for gradients. All edges must be outputs of |graph|; everything is borrowed.
typedef struct rn_grad_request_t {
  rn_graph_t* graph;
  const rn_edge_t* ys;
  int y_count;
  const rn_edge_t* xs;
  int x_count;
  const rn_gradient_options_t* options;  // never NULL
  // If true, some y must depend on every x; otherwise fails with INVALID_ARGUMENT, like
  // TF_AddGradients.
  bool wants_all;
  // If true, the error about an op without a rule has only TensorFlow's words; node and path are
  // logged.
  bool is_terse;
} rn_grad_request_t;

// Adds the gradients of the sum of all ys with respect to each x; |out[i]| is none if no gradient
// reaches x i.
//
// New nodes are named "<name>/…", where the name is that of the options, or the first unused of
// "gradients", "gradients_1" …. On failure |out| is unset, the status names op, node and path, and
// nodes added before the failure may stay, unused.
RN_MUST_USE rn_status_t rn_grad_run(const rn_grad_request_t* request, rn_gradient_t* out);

// The same, dense, with |dys| as in the options. A |prefix| that is not empty must
// be free.
RN_MUST_USE rn_status_t rn_add_gradients(rn_graph_t* graph, rn_str_t prefix, const rn_edge_t* ys,
                                         int y_count, const rn_edge_t* xs, int x_count,
                                         const rn_edge_t* dys, rn_edge_t* out_dxs);

// The same with the checks and messages of TensorFlow's TF_AddGradientsWithPrefix: the name in
// |options|, if any, must be unused as a prefix; some y must depend on every x; a y of an op that
// TensorFlow cannot differentiate is NOT_FOUND.
RN_MUST_USE rn_status_t rn_grad_run_like_stock(rn_graph_t* graph, const rn_edge_t* ys, int y_count,
                                               const rn_edge_t* xs, int x_count,
                                               const rn_gradient_options_t* options,
                                               rn_gradient_t* out);

#endif  // RUNNEL_GRAD_GRAD_H_
