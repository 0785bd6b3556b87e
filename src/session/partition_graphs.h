// Writes RunMetadata.partition_graphs: the graph of each device's part of a step.
#ifndef RUNNEL_SESSION_PARTITION_GRAPHS_H_
#define RUNNEL_SESSION_PARTITION_GRAPHS_H_

#include "session/planner.h"

// Appends one GraphDef per device that takes part in steps of |signature|, as fields of a
// RunMetadata. The graphs are placed and partitioned but not optimized.
RN_MUST_USE rn_status_t rn_partition_graphs_write(const rn_planner_t* planner, rn_graph_t* graph,
                                                  const rn_signature_t* signature,
                                                  rn_strbuf_t* out);

#endif  // RUNNEL_SESSION_PARTITION_GRAPHS_H_
