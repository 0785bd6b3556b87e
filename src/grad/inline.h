// Calls between ys and xs, opened: the nodes of a function take the place of the call, so that the
// walk meets nothing but plain nodes, Switch, Merge and loops, whatever was called.
//
// A conditional (If, Case) becomes Switch and Merge nodes, a loop (While) Enter … Exit nodes, a
// SymbolicGradient the gradients it stands for. Who read the call's outputs reads those of the new
// nodes from then on; the call itself stays, for clients that hold it. A function that has a
// gradient of its own is left alone (rn_call_gradient).
#ifndef RUNNEL_GRAD_INLINE_H_
#define RUNNEL_GRAD_INLINE_H_

#include "grad/grad.h"
#include "graph/graph.h"

// Whether |node| calls functions.
bool rn_call_is(const rn_node_t* node);
// Whether the walk must open |node|: it calls functions, and has no gradient function of its own.
bool rn_call_must_open(const rn_node_t* node);

// Opens |node|. |has_frames|: the graph has loops or conditionals, so that the new nodes must hang
// on what the call reads. |out| has room for the node's outputs: where they come from now.
// INVALID_ARGUMENT naming the nodes if cond and body, or branches, do not fit.
RN_MUST_USE rn_status_t rn_call_open(rn_scope_t* scope, rn_node_t* node, bool has_frames,
                                     rn_edge_t* out);

// The gradient of a call whose function has a gradient function in the library.
RN_MUST_USE rn_status_t rn_call_gradient(rn_grad_t* grad);

#endif  // RUNNEL_GRAD_INLINE_H_
