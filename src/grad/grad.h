// Reverse-mode gradients: adds the nodes that compute them to the graph.
#ifndef RUNNEL_GRAD_GRAD_H_
#define RUNNEL_GRAD_GRAD_H_

#include "base/status.h"
#include "base/str.h"
#include "runnel/gradients.h"

// One question to the walk. All edges must be outputs of |graph|; everything is borrowed.
typedef struct rn_grad_request_t {
  rn_graph_t* graph;
  const rn_edge_t* ys;
  int y_count;
  const rn_edge_t* xs;
  int x_count;
  const rn_gradient_options_t* options;  // never NULL
  // Every x must lead to a y: else the status is INVALID_ARGUMENT, as that of TF_AddGradients.
  bool wants_all;
  // The message about an op without a rule has TensorFlow's words only; node and path are logged.
  bool is_terse;
} rn_grad_request_t;

// Adds the gradients of the sum of all y by each x; |out[i]| is none if nothing flows back to it.
//
// New nodes are named "<name>/…", where the name is that of the options, or "gradients",
// "gradients_1" … whatever is free. On failure |out| is unset, the status names op, node and path,
// and nodes added before the failure may stay, unused.
RN_MUST_USE rn_status_t rn_grad_run(const rn_grad_request_t* request, rn_gradient_t* out);

// The same, dense, with |dys| as in the options. A |prefix| that is not empty must
// be free.
RN_MUST_USE rn_status_t rn_add_gradients(rn_graph_t* graph, rn_str_t prefix, const rn_edge_t* ys,
                                         int y_count, const rn_edge_t* xs, int x_count,
                                         const rn_edge_t* dys, rn_edge_t* out_dxs);

// The same with the checks and messages of stock's TF_AddGradientsWithPrefix: the name in
// |options|, if it has one, must be free as a prefix, every x must lead to a y, and a y of an op
// that stock cannot differentiate is NOT_FOUND.
RN_MUST_USE rn_status_t rn_grad_run_like_stock(rn_graph_t* graph, const rn_edge_t* ys, int y_count,
                                               const rn_edge_t* xs, int x_count,
                                               const rn_gradient_options_t* options,
                                               rn_gradient_t* out);

#endif  // RUNNEL_GRAD_GRAD_H_
