// Gradients of values that loops pass to each other through stacks.
//
// A backward loop pops what the forward loop pushed. The walk treats this as an edge from the push
// to the pop, although the graph has none; this makes higher-order gradients possible. The gradient
// that arrives at a pop is pushed on another stack, in the loop that is the gradient of the
// backward loop, and popped in the gradient of the forward loop. Both orders are reversed, so
// values match.
#ifndef RUNNEL_GRAD_STACKS_H_
#define RUNNEL_GRAD_STACKS_H_

#include "grad/walk.h"

// A stack with its push and its pop. The loops that contain them, or loops enclosing those, are
// siblings in one frame.
struct rn_pair_t {
  rn_node_t *stack, *push, *pop;
  rn_while_loop_t *push_nest, *pop_nest;
  int pushes, pops;  // number of such nodes; gradients can only follow if both are 1
  rn_edge_t handle;  // of the stack of gradients; its node is NULL if no gradient arrived
};

// Finds the pairs among the walk's nodes.
RN_MUST_USE rn_status_t rn_stacks_find(rn_walk_t* walk);
// UNIMPLEMENTED if gradients cannot follow a pair on the way.
RN_MUST_USE rn_status_t rn_stacks_check(const rn_walk_t* walk);

// Number of loops that must be walked before |nest|, counted once per pair.
int rn_stacks_waiting(const rn_walk_t* walk, const rn_while_loop_t* nest);
// Whether gradients arrive in |nest| through stacks.
bool rn_stacks_bring(const rn_walk_t* walk, const rn_while_loop_t* nest);
// In the backward body of |level|, pushes the gradient that arrived at the pop |node|.
RN_MUST_USE rn_status_t rn_stacks_visit_pop(rn_level_t* level, rn_node_t* node);
// Delivers gradients that were pushed that way to the pushes in the loop of |level|.
RN_MUST_USE rn_status_t rn_stacks_open(rn_level_t* level);

#endif  // RUNNEL_GRAD_STACKS_H_
