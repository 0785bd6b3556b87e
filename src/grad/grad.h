// Reverse-mode gradients: adds the nodes that compute them to the graph.
#ifndef RUNNEL_GRAD_GRAD_H_
#define RUNNEL_GRAD_GRAD_H_

#include "base/status.h"
#include "base/str.h"
#include "runnel/graph.h"

// Adds the gradients of |ys|, summed, with respect to each of |xs|; |out_dxs[i]| becomes that of
// |xs[i]|, RN_NO_EDGE if nothing flows back to it. |dys| holds the gradient that arrives at
// each y, RN_NO_EDGE where none does; NULL: ones. All edges must be outputs of |graph|.
//
// New nodes are named "<prefix>/…"; the caller has seen to it that no node is called so yet. An
// empty prefix means "gradients", "gradients_1" … whatever is free. On failure the status is
// stock's and |out_dxs| is unset; nodes added before the failure may stay, unused.
RN_MUST_USE rn_status_t rn_add_gradients(rn_graph_t* graph, rn_str_t prefix, const rn_edge_t* ys,
                                         int y_count, const rn_edge_t* xs, int x_count,
                                         const rn_edge_t* dys, rn_edge_t* out_dxs);

#endif  // RUNNEL_GRAD_GRAD_H_
