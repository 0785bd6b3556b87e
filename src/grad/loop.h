// Gradients through loops of Enter, Merge, Switch, NextIteration and Exit nodes, as TF_FinishWhile
// makes them.
//
// The gradient of a loop is a loop that runs as often, backwards. Values of the forward loop that
// its body needs are pushed on stacks as they are made, and popped.
#ifndef RUNNEL_GRAD_LOOP_H_
#define RUNNEL_GRAD_LOOP_H_

#include "base/arena.h"
#include "graph/graph.h"

// One variable of a loop.
typedef struct rn_loop_var_t {
  rn_node_t *enter, *merge, *switch_, *next, *exit;
} rn_loop_var_t;

typedef struct rn_loop_t {
  rn_str_t frame;
  rn_node_t* cond;  // LoopCond
  int count;
  rn_loop_var_t* vars;
} rn_loop_t;

// Finds the loop that |exit| leaves; its variables lie in |arena|. False if it is not of this form.
RN_MUST_USE rn_status_t rn_loop_find(rn_graph_t* graph, rn_arena_t* arena, const rn_node_t* exit,
                                     rn_loop_t* out, bool* out_found);

// Adds the backward loop. |is_active| marks the variables that matter, |dexits| holds what arrives
// at their exits, and |out_denters| becomes what goes to their initial values.
RN_MUST_USE rn_status_t rn_loop_gradients(rn_graph_t* graph, rn_scope_t* scope, rn_arena_t* arena,
                                          const rn_loop_t* loop, const bool* is_active,
                                          const rn_edge_t* dexits, rn_edge_t* out_denters);

// The walk over a loop's body (in grad.c): gradients of |ys| by |xs|, outputs of Switch nodes that
// |cond| steers; RN_NO_EDGE where there is none.
RN_MUST_USE rn_status_t rn_body_gradients(rn_graph_t* graph, rn_scope_t* scope,
                                          const rn_node_t* cond, const rn_edge_t* ys,
                                          const rn_edge_t* xs, const rn_edge_t* dys, int count,
                                          rn_edge_t* out_dxs);

#endif  // RUNNEL_GRAD_LOOP_H_
