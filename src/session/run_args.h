// The arguments of rn_run (runnel/run.h) made into one step: names looked up, C arrays copied into
// tensors, results copied back.
//
//   rn_args_step_t step;
//   rn_status_t status = rn_args_step_init(&step, graph, allocator, args, count);
//   if (rn_ok(status)) status = rn_session_run(session, &step.signature, step.feeds, step.fetches,
//   …); if (rn_ok(status)) status = rn_args_step_deliver(&step, tensors);
//   rn_args_step_clear(&step);
#ifndef RUNNEL_SESSION_RUN_ARGS_H_
#define RUNNEL_SESSION_RUN_ARGS_H_

#include "runnel/run.h"
#include "step/ir.h"

typedef struct rn_args_step_t {
  rn_allocator_t allocator;
  rn_arena_t arena;  // holds the arrays below
  rn_edge_t *feed_edges, *fetch_edges;
  rn_node_t** targets;
  rn_signature_t signature;  // of the three
  const rn_tensor_t** feeds;
  rn_tensor_t* fetches;  // Owned, each
  rn_tensor_t* copies;   // Owned, each; of the arrays that are fed
  int32_t copy_count;
  const rn_run_arg_t** fetched;  // by fetch; Borrowed
  int tensor_count;              // fetches whose result the caller gets as a tensor
} rn_args_step_t;

// |args| must outlive the step. NOT_FOUND for a name that |graph| does not have, INVALID_ARGUMENT
// for an argument that is incomplete and for an array of the wrong type. Clear |step| also after a
// failure.
RN_MUST_USE rn_status_t rn_args_step_init(rn_args_step_t* step, rn_graph_t* graph,
                                          rn_allocator_t allocator, const rn_run_arg_t* args,
                                          size_t count);
// Copies the results that go into arrays, and moves the others to |tensors|, which has
// |tensor_count| elements. INVALID_ARGUMENT, and nothing is copied or moved, if an array does not
// have the shape of its result.
RN_MUST_USE rn_status_t rn_args_step_deliver(rn_args_step_t* step, rn_tensor_t* tensors);
void rn_args_step_clear(rn_args_step_t* step);

#endif  // RUNNEL_SESSION_RUN_ARGS_H_
