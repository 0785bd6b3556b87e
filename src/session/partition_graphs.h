// What the parts of a step look like, for clients that ask: RunMetadata.partition_graphs.
#ifndef RUNNEL_SESSION_PARTITION_GRAPHS_H_
#define RUNNEL_SESSION_PARTITION_GRAPHS_H_

#include "session/planner.h"

// Appends a GraphDef for each device that takes part in steps of |signature|, as fields of a
// RunMetadata: placed and cut, but as the client built them, without what passes make of them.
RN_MUST_USE rn_status_t rn_partition_graphs_write(const rn_planner_t* planner, rn_graph_t* graph,
                                                  const rn_signature_t* signature,
                                                  rn_strbuf_t* out);

#endif  // RUNNEL_SESSION_PARTITION_GRAPHS_H_
