// Finds loops of Enter, Merge, Switch, NextIteration and Exit nodes by their structure, whichever
// client built them.
#ifndef RUNNEL_GRAD_LOOPS_H_
#define RUNNEL_GRAD_LOOPS_H_

#include "base/arena.h"
#include "graph/graph.h"

// One variable of a loop. |exit| may be NULL; several exits of one Switch belong to the same
// variable.
typedef struct rn_while_loop_var_t {
  rn_node_t *enter, *merge, *switch_, *next, *exit;
} rn_while_loop_var_t;

typedef struct rn_while_loop_t rn_while_loop_t;
struct rn_while_loop_t {
  rn_str_t frame;
  rn_while_loop_t* parent;  // NULL for an outermost loop
  rn_node_t* cond;          // LoopCond; NULL if none was found
  RN_VEC(rn_while_loop_var_t) vars;
  RN_VEC(rn_node_t*)
  invariants;  // Enter nodes with is_constant: their value exists in every iteration
  int64_t parallel_iterations;
  bool has_back_prop, swaps_memory;
  bool is_complete;      // rn_while_loop_complete was called
  bool is_refined;       // rn_refine_shapes was called for it or an enclosing loop
  bool is_counted;       // |waiting| has been computed
  int waiting;           // number of exits on the way not visited yet and of stacks not read yet
  rn_node_t* back_exit;  // the exit of its backward loop; NULL if not walked
};

// An edge between frames without an Enter or Exit, which is an error.
typedef struct rn_stray_t {
  const rn_node_t *node, *a, *b;  // |node| reads |a| and |b|, which are in different frames
} rn_stray_t;

typedef struct rn_while_loops_t {
  rn_allocator_t allocator;
  size_t node_count;
  // By node id: the loop that its outputs are in; NULL if the graph has no loops.
  rn_while_loop_t** of;
  RN_VEC(rn_while_loop_t*) all;
  RN_VEC(rn_node_t*) order;  // nodes in loops, in topological order
  RN_VEC(rn_stray_t) strays;
} rn_while_loops_t;

// Finds the loops of the first |node_count| nodes. Everything but the lists is in |arena|.
RN_MUST_USE rn_status_t rn_while_loops_find(const rn_graph_t* graph, size_t node_count,
                                            rn_arena_t* arena, rn_while_loops_t* out);
void rn_while_loops_clear(rn_while_loops_t* loops);

static inline rn_while_loop_t* rn_while_loop_of(const rn_while_loops_t* loops,
                                                const rn_node_t* node) {
  return loops->of && (size_t)node->id < loops->node_count ? loops->of[node->id] : NULL;
}
// Whether |node| is the Merge of a loop variable.
bool rn_while_loop_is_merge(const rn_node_t* node);
// Whether |node| is the Switch of a loop variable.
static inline bool rn_while_loop_is_switch(const rn_node_t* node) {
  return node->op->role == RN_ROLE_SWITCH && node->inputs[1].node->op->role == RN_ROLE_LOOP_COND;
}

// Finds the parts of every variable. INVALID_ARGUMENT, naming nodes, if the loop is malformed.
RN_MUST_USE rn_status_t rn_while_loop_complete(rn_while_loop_t* loop);
// Makes the error for a stray edge: "'a' of loop 'f'" ….
RN_MUST_USE rn_status_t rn_while_loops_stray(const rn_while_loops_t* loops,
                                             const rn_stray_t* stray);

#endif  // RUNNEL_GRAD_LOOPS_H_
