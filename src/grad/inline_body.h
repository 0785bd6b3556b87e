// Copies the body of a function in place of a call.
#ifndef RUNNEL_GRAD_INLINE_BODY_H_
#define RUNNEL_GRAD_INLINE_BODY_H_

#include "function/function.h"
#include "graph/build.h"

// State while one call is inlined.
typedef struct rn_inline_t {
  rn_scope_t* scope;
  rn_graph_t* graph;
  rn_node_t* call;
  rn_arena_t arena;
  rn_node_t* anchor;  // nodes without inputs get a control edge from it; NULL for none
  bool is_plain;      // a call, whose body runs once, where the call would
  rn_node_t* done;    // of a plain call: is done when the side effects are; NULL if there are none
} rn_inline_t;

// What has gone wrong in its scope.
RN_MUST_USE rn_status_t rn_inline_status(const rn_inline_t* o);

// Copies the body of |func| with arguments |args|; |out| gets its results. Nodes that nothing tells
// when they are dead get a control edge from |anchor|; NULL: the graph has no dead values.
RN_MUST_USE rn_status_t rn_inline_body(rn_inline_t* o, const rn_func_attr_t* func,
                                       const rn_edge_t* args, int arg_count, rn_node_t* anchor,
                                       int result_count, rn_edge_t* out);

// Whether |edge| is alive in every iteration of its loop, even after the last one.
bool rn_inline_is_always_alive(rn_edge_t edge);

#endif  // RUNNEL_GRAD_INLINE_BODY_H_
