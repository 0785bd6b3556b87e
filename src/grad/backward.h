// State of a loop that is being walked, for the files that build its backward loop.
#ifndef RUNNEL_GRAD_BACKWARD_H_
#define RUNNEL_GRAD_BACKWARD_H_

#include "grad/walk.h"

typedef RN_VEC(rn_node_t*) rn_nodes_t;

// An iteration counter and the nodes tied to it.
typedef struct rn_counter_t {
  rn_edge_t merge, in, pivot, exit;
  rn_nodes_t waits;    // the nodes that must run before it advances
  rn_nodes_t guarded;  // the same for nodes that may be dead
} rn_counter_t;

struct rn_backward_t {
  rn_while_loop_t* loop;
  rn_str_t frame;
  rn_level_t level;  // of the body
  rn_scope_t *here, *there, *body;
  rn_scope_hook_t hook;
  rn_counter_t forward, backward;
  rn_edge_t cond;           // the backward LoopCond
  const rn_guard_t* guard;  // of the loop as a whole
};

// A loop variable of the backward loop.
typedef struct rn_carried_t {
  rn_edge_t merge, in, out;  // |out| is outside the loop
} rn_carried_t;

// Adds a loop variable whose initial value is |start|, from outside the loop.
rn_carried_t rn_backward_carry(rn_level_t* outer, rn_backward_t* b, rn_edge_t start);
// Makes |value| the value of |merge| in the next iteration.
RN_MUST_USE rn_status_t rn_backward_close(rn_level_t* level, rn_scope_t* inside, rn_edge_t merge,
                                          rn_edge_t value);
// Brings |value|, from outside the loop, into every iteration.
rn_edge_t rn_backward_hold(rn_level_t* outer, rn_backward_t* b, rn_edge_t value);

// Brings |from|, a value of the forward body, into the backward body of |level|, an rn_level_t.
rn_edge_t rn_backward_bring(void* level, rn_edge_t from);
// Brings |value|, from outside, into |frame| of the loop: every iteration has it if |is_constant|.
rn_edge_t rn_backward_enter(rn_scope_t* scope, rn_edge_t value, const rn_backward_t* b,
                            rn_str_t frame, bool is_constant);
// Records that |node| was added to the forward frame of |loop|.
void rn_backward_note_forward(rn_level_t* level, rn_node_t* node, rn_while_loop_t* loop);
// The variable whose Merge or Switch is |node|, if the body passes it on unchanged; NULL otherwise.
const rn_while_loop_var_t* rn_backward_unchanged(const rn_while_loop_t* loop,
                                                 const rn_node_t* node);
// Brings a handle from the outermost frame into the forward or backward frame of |level|.
rn_edge_t rn_backward_handle(rn_level_t* level, rn_edge_t handle, bool is_forward_side);
// An edge that is alive in the backward body exactly when |guard| holds.
rn_edge_t rn_backward_token(rn_level_t* level, const rn_guard_t* guard);
// Makes |counter| wait for |node|, which is alive when |guard| holds, before it advances.
RN_MUST_USE rn_status_t rn_backward_wait(rn_level_t* level, rn_counter_t* counter, rn_node_t* node,
                                         const rn_guard_t* guard);

// Sums over iterations that are cheaper as one matmul of all iterations' values (collect.c).
typedef struct rn_collected_sum_t {
  rn_edge_t value;   // in the body
  rn_edge_t handle;  // of the TensorArray that collects its iterations, outside the loop
  int64_t columns;
} rn_collected_sum_t;

typedef struct rn_collect_t {
  RN_VEC(rn_collected_sum_t) values;
  RN_VEC(rn_edge_t) terms;      // in the body: the terms of the sums
  RN_VEC(rn_gradient_t*) sums;  // where each sum goes
} rn_collect_t;

// If the sum of |term|, which has |shape|, over all iterations can be computed that way, registers
// it; rn_collect_finish will put it into |*out|.
RN_MUST_USE rn_status_t rn_collect_try(rn_level_t* outer, rn_backward_t* b, rn_collect_t* collect,
                                       rn_edge_t term, rn_shape_t shape, rn_gradient_t* out,
                                       bool* out_taken);
// Writes the values of each iteration at |index| and builds the sums.
RN_MUST_USE rn_status_t rn_collect_finish(rn_level_t* outer, rn_backward_t* b,
                                          rn_collect_t* collect, rn_edge_t index);
void rn_collect_clear(rn_collect_t* collect, rn_allocator_t allocator);

#endif  // RUNNEL_GRAD_BACKWARD_H_
