// A loop that is being walked, for the files that build its backward loop.
#ifndef RUNNEL_GRAD_BACKWARD_H_
#define RUNNEL_GRAD_BACKWARD_H_

#include "grad/walk.h"

typedef RN_VEC(rn_node_t*) rn_nodes_t;

// A counter, and what hangs on it.
typedef struct rn_counter_t {
  rn_edge_t merge, in, pivot, exit;
  rn_nodes_t waits;    // what it waits for before it goes on
  rn_nodes_t guarded;  // the same of nodes that may be dead
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

// A value that goes from iteration to iteration of the backward loop.
typedef struct rn_carried_t {
  rn_edge_t merge, in, out;  // |out| is outside
} rn_carried_t;

// Begins with |start|, a value around the loop.
rn_carried_t rn_backward_carry(rn_level_t* outer, rn_backward_t* b, rn_edge_t start);
// |value| is what |merge| is in the next iteration.
RN_MUST_USE rn_status_t rn_backward_close(rn_level_t* level, rn_scope_t* inside, rn_edge_t merge,
                                          rn_edge_t value);
// |value|, from around the loop, in every iteration.
rn_edge_t rn_backward_hold(rn_level_t* outer, rn_backward_t* b, rn_edge_t value);

// A handle of the step's frame in the forward or backward frame of |level|.
rn_edge_t rn_backward_handle(rn_level_t* level, rn_edge_t handle, bool is_forward_side);
// Alive in the backward body when |guard| holds.
rn_edge_t rn_backward_token(rn_level_t* level, const rn_guard_t* guard);
// |counter| goes on after |node| only, which is alive when |guard| holds.
RN_MUST_USE rn_status_t rn_backward_wait(rn_level_t* level, rn_counter_t* counter, rn_node_t* node,
                                         const rn_guard_t* guard);

// Sums over iterations that are cheaper as one product of everything (collect.c).
typedef struct rn_collected_sum_t {
  rn_edge_t value;   // in the body
  rn_edge_t handle;  // of the array that its iterations are written to, outside
  int64_t columns;
} rn_collected_sum_t;

typedef struct rn_collect_t {
  RN_VEC(rn_collected_sum_t) values;
  RN_VEC(rn_edge_t) terms;      // in the body: what is summed
  RN_VEC(rn_gradient_t*) sums;  // where each sum goes
} rn_collect_t;

// Whether the sum of |term|, which has |shape|, over all iterations can be had so; then it will be
// put into |*out|.
RN_MUST_USE rn_status_t rn_collect_try(rn_level_t* outer, rn_backward_t* b, rn_collect_t* collect,
                                       rn_edge_t term, rn_shape_t shape, rn_gradient_t* out,
                                       bool* out_taken);
// Writes the values of each iteration under |index| and builds the sums.
RN_MUST_USE rn_status_t rn_collect_finish(rn_level_t* outer, rn_backward_t* b,
                                          rn_collect_t* collect, rn_edge_t index);
void rn_collect_clear(rn_collect_t* collect, rn_allocator_t allocator);

#endif  // RUNNEL_GRAD_BACKWARD_H_
