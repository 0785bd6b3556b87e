// A step as its client sees it: placed and cut by device, with the nodes that feed and fetch, but
// without what passes make of it. Traces, partition graphs and cost models are written from it,
// after the step and only for clients that ask.
#ifndef RUNNEL_SESSION_STEP_PARTS_H_
#define RUNNEL_SESSION_STEP_PARTS_H_

#include "session/planner.h"

// Feeds are nodes "_arg_NODE_OUTPUT_NUMBER" with |feed| set, fetches "_retval_NODE_OUTPUT_NUMBER".
// The caller destroys |*out|.
RN_MUST_USE rn_status_t rn_step_parts_create(const rn_planner_t* planner, rn_graph_t* graph,
                                             const rn_signature_t* signature, rn_ir_t** out);

// Appends one GraphDef for each device that takes part, as fields |number| of a message.
RN_MUST_USE rn_status_t rn_step_parts_write_graphs(rn_ir_t* parts, const rn_planner_t* planner,
                                                   uint32_t number, rn_strbuf_t* out);

// Adds an entry of no length for each node that TensorFlow runs and a plan does not: constants,
// feeds (|feeds| may be NULL), fetches, identities, and what a default in place of a feed settles
// ahead of the step. Drops entries when memory is short.
void rn_step_parts_add_stats(const rn_ir_t* parts, const rn_tensor_t* const* feeds,
                             rn_step_stats_t* stats);

// Appends the fields of a CostGraphDef: what |stats| say of each node, and what the graph says of
// the shapes of nodes that have no entry.
RN_MUST_USE rn_status_t rn_step_parts_write_costs(rn_ir_t* parts, const rn_planner_t* planner,
                                                  const rn_step_stats_t* stats, rn_strbuf_t* out);

#endif  // RUNNEL_SESSION_STEP_PARTS_H_
