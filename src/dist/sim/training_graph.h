// The graph that simulated clients share. For the files of this folder only.
#ifndef RUNNEL_DIST_SIM_TRAINING_GRAPH_H_
#define RUNNEL_DIST_SIM_TRAINING_GRAPH_H_

#include "base/str.h"

// Appends a GraphDef. On every parameter server N: a variable with the nodes init_N, ready_N
// (whether it has a value), read_N and add_N, which adds the feed "gradient"; an accumulator with
// push_N (of "gradient" at step "stamp"), take_N, apply_N (adds what was taken to the variable) and
// step_N (sets its step to "stamp"). On the first: a queue with put (of "tokens"), get and size.
RN_MUST_USE rn_status_t rn_training_graph(int servers, int64_t length, int needed,
                                          rn_strbuf_t* out);

#endif  // RUNNEL_DIST_SIM_TRAINING_GRAPH_H_
