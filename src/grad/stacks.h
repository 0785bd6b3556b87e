// Values that loops hand to each other over stacks.
//
// A loop that runs backwards pops what the forward one has pushed: to the walk that is an edge from
// the push to the pop, though the graph has none. So gradients of gradients go through: what
// arrives at a pop is pushed on a stack of its own, in the loop that undoes the backward one, and
// popped where the forward loop is undone. The order of both is just the right one.
#ifndef RUNNEL_GRAD_STACKS_H_
#define RUNNEL_GRAD_STACKS_H_

#include "grad/walk.h"

// A stack with the node that pushes and the one that pops. The loops that they are in, or those
// around these, lie beside each other in one frame.
struct rn_pair_t {
  rn_node_t *stack, *push, *pop;
  rn_while_loop_t *push_nest, *pop_nest;
  int pushes, pops;  // so many nodes do it; 1 and 1 where gradients can follow
  rn_edge_t handle;  // of the stack of gradients; node NULL: none came
};

// Finds the pairs among the walk's nodes.
RN_MUST_USE rn_status_t rn_stacks_find(rn_walk_t* walk);
// UNIMPLEMENTED if a pair on the way is none that gradients can follow.
RN_MUST_USE rn_status_t rn_stacks_check(const rn_walk_t* walk);

// How many loops must have been walked before |nest| is, counted once for every pair.
int rn_stacks_waiting(const rn_walk_t* walk, const rn_while_loop_t* nest);
// Whether gradients come to |nest| over stacks.
bool rn_stacks_bring(const rn_walk_t* walk, const rn_while_loop_t* nest);
// What arrived at the pop |node|, in the backward body of |level|, is pushed.
RN_MUST_USE rn_status_t rn_stacks_visit_pop(rn_level_t* level, rn_node_t* node);
// What was pushed so arrives at the pushes in the loop of |level|.
RN_MUST_USE rn_status_t rn_stacks_open(rn_level_t* level);

#endif  // RUNNEL_GRAD_STACKS_H_
