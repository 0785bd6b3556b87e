// Inlines calls between ys and xs into the graph, so that the walk meets only plain nodes, Switch,
// Merge and loops.
//
// A conditional (If, Case) becomes Switch and Merge nodes, a loop (While) Enter … Exit nodes, a
// SymbolicGradient the gradients that it stands for. Readers of the call's outputs are redirected
// to the new nodes; the call itself stays, because clients may hold it. A plain call then passes on
// what the new nodes compute, so its side effects happen once. Calls of a function with
// its own gradient function are not inlined (rn_call_gradient).
#ifndef RUNNEL_GRAD_INLINE_H_
#define RUNNEL_GRAD_INLINE_H_

#include "grad/grad.h"
#include "graph/graph.h"

// Whether |node| calls functions.
bool rn_call_is(const rn_node_t* node);
// Whether the walk must inline |node|: it calls functions, and has no gradient function of its own.
bool rn_call_must_open(const rn_node_t* node);

// Inlines |node|. |has_frames|: the graph has loops or conditionals, so the new nodes need control
// edges from the call's inputs. |out| has room for one edge per output of the node and gets their
// replacements. INVALID_ARGUMENT, naming the nodes, if cond and body, or the branches, do not
// match.
RN_MUST_USE rn_status_t rn_call_open(rn_scope_t* scope, rn_node_t* node, bool has_frames,
                                     rn_edge_t* out);

// The gradient of a call whose function has a gradient function in the library.
RN_MUST_USE rn_status_t rn_call_gradient(rn_grad_t* grad);

#endif  // RUNNEL_GRAD_INLINE_H_
