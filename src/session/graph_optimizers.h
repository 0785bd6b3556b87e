// Graph optimizers of plug-ins: functions from a GraphDef to a GraphDef, one per device type. They
// are applied to the graph of each new signature that has nodes on such a device.
//
// They see the part of the client's graph that the step needs, with the devices that the placer
// would choose, before the planner's own passes: those work on a form of the graph that has no
// GraphDef. If one fails, the graph runs without it, as in stock, and the log says why.
//
// The registry is one per process, like that of the plug-ins' kernels.
#ifndef RUNNEL_SESSION_GRAPH_OPTIMIZERS_H_
#define RUNNEL_SESSION_GRAPH_OPTIMIZERS_H_

#include "session/planner.h"

// A graph and what a step does with it. Everything is borrowed.
typedef struct rn_graph_item_t {
  rn_str_t graph;           // a GraphDef
  const rn_str_t* fetches;  // "node:0", and names of targets
  int32_t fetch_count;
  const rn_str_t* kept;  // names of nodes that must stay: fetched, run and fed ones
  int32_t kept_count;
  const rn_str_t* fed;  // names of nodes
  int32_t fed_count;
} rn_graph_item_t;

typedef struct rn_graph_optimizer_t {
  const char* device_type;
  bool keeps_all;  // wants the whole graph, not only what the step needs
  uint32_t off;    // kinds of the planner's passes that it turns off: RN_PASS_*
  // Appends a GraphDef to |out|.
  rn_status_t (*optimize)(const struct rn_graph_optimizer_t* optimizer, const rn_graph_item_t* item,
                          rn_strbuf_t* out);
} rn_graph_optimizer_t;

// Adds an optimizer, which must never be freed. ALREADY_EXISTS if its device type has one.
RN_MUST_USE rn_status_t rn_graph_optimizer_register(const rn_graph_optimizer_t* optimizer);

typedef struct rn_optimized_t {
  rn_graph_t* graph;         // Owned; NULL if there is no optimizer, or if one failed
  rn_signature_t signature;  // the step's in |graph|
  uint32_t off;              // passes that the planner leaves out: RN_PASS_*
} rn_optimized_t;

// Applies the optimizers for the devices on which nodes of the step are placed. |out->signature| is
// in |arena|.
RN_MUST_USE rn_status_t rn_graph_optimize(const rn_planner_t* planner, rn_graph_t* graph,
                                          const rn_signature_t* signature, rn_arena_t* arena,
                                          rn_optimized_t* out);

#endif  // RUNNEL_SESSION_GRAPH_OPTIMIZERS_H_
