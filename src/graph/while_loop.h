// Builds a while loop from two small graphs that a client fills: one for the condition, one for the
// body. Both are copied into the parent as one loop of Enter, Merge, Switch, NextIteration and Exit
// nodes.
#ifndef RUNNEL_GRAPH_WHILE_LOOP_H_
#define RUNNEL_GRAPH_WHILE_LOOP_H_

#include "graph/graph.h"

typedef struct rn_loop_graphs_t {
  rn_allocator_t allocator;
  rn_graph_t* parent;  // Retained
  rn_graph_t *cond, *body;
  size_t block_size;
  int count;  // of loop variables
  rn_edge_t
      edges[];  // cond inputs, body inputs, body outputs, inputs from the parent: |count| each
} rn_loop_graphs_t;

static inline rn_edge_t* rn_loop_cond_inputs(rn_loop_graphs_t* loop) { return loop->edges; }
static inline rn_edge_t* rn_loop_body_inputs(rn_loop_graphs_t* loop) {
  return loop->edges + loop->count;
}
// Set by the client; initially {NULL, -1}.
static inline rn_edge_t* rn_loop_body_outputs(rn_loop_graphs_t* loop) {
  return loop->edges + 2 * loop->count;
}
static inline rn_edge_t* rn_loop_parent_inputs(rn_loop_graphs_t* loop) {
  return loop->edges + 3 * loop->count;
}

// Makes two graphs with one placeholder per loop variable. |inputs| are outputs of |parent|, the
// initial values of the variables; |count| is at least 1. The caller owns |*out|.
RN_MUST_USE rn_status_t rn_loop_graphs_create(rn_graph_t* parent, const rn_edge_t* inputs,
                                              int count, rn_allocator_t allocator,
                                              rn_loop_graphs_t** out);
void rn_loop_graphs_destroy(rn_loop_graphs_t* loop);  // NULL is fine

// Adds the loop to the parent, or nothing on failure. |name| is the prefix of its nodes and the
// name of its frame; |cond_output| a scalar boolean of the condition's graph. |outputs| get the
// loop variables after the last iteration. INVALID_ARGUMENT for outputs that are not of their
// graph, and if the parent has a loop of that name.
RN_MUST_USE rn_status_t rn_loop_graphs_finish(rn_loop_graphs_t* loop, rn_str_t name,
                                              rn_edge_t cond_output, rn_edge_t* outputs);

#endif  // RUNNEL_GRAPH_WHILE_LOOP_H_
