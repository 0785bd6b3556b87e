// Import and export of GraphDefs.
#ifndef RUNNEL_GRAPH_IMPORT_H_
#define RUNNEL_GRAPH_IMPORT_H_

#include "graph/graph.h"

// "name:index" of the imported GraphDef; index -1 with control edges.
typedef struct rn_tensor_id_t {
  rn_str_t name;
  int32_t index;
} rn_tensor_id_t;
// Splits "^node", "node:3" and "node". What follows a colon and is not a number is part of the
// name; a number larger than INT32_MAX counts as that.
rn_tensor_id_t rn_tensor_id_parse(rn_str_t text);

typedef struct rn_import_options_t {
  rn_str_t prefix;  // "": none
  bool uniquify_names;
  bool uniquify_prefix;
  bool validate_colocation;
  bool allows_any_names;  // skip the check of node names, for function bodies
  bool extends;           // a session extends its graph: "a/b" may come after "a/b/c"
  rn_str_t default_device;
  // Input mapping: |map_from[i]| of the GraphDef becomes |map_to[i]| of the graph.
  const rn_tensor_id_t* map_from;
  const rn_edge_t* map_to;
  int32_t map_count;
  rn_node_t* const* controls;  // every imported node without imported inputs runs after these
  int32_t control_count;
  const rn_tensor_id_t* return_outputs;
  int32_t return_output_count;
  const rn_str_t* return_nodes;
  int32_t return_node_count;
} rn_import_options_t;

// The outputs and nodes that the options asked for. Owns its arrays; rn_import_results_clear frees
// them.
typedef struct rn_import_results_t {
  rn_allocator_t allocator;
  rn_edge_t* return_outputs;
  rn_node_t** return_nodes;
  int32_t return_output_count, return_node_count;
  rn_tensor_id_t* missing_unused;  // mapping keys that the GraphDef neither has nor uses; strings
                                   // NUL-terminated, owned
  int32_t missing_unused_count;
} rn_import_results_t;
void rn_import_results_clear(rn_import_results_t* results);

// Adds the nodes and functions of the serialised GraphDef |bytes|. All or nothing: on failure the
// graph is as before. Unknown ops are listed all at once; missing attributes get their defaults;
// deprecation goes by the GraphDef's producer version.
RN_MUST_USE rn_status_t rn_graph_import(rn_graph_t* graph, rn_str_t bytes,
                                        const rn_import_options_t* options,
                                        rn_import_results_t* out_results);

// Appends the serialised GraphDef of the whole graph, functions and versions included.
RN_MUST_USE rn_status_t rn_graph_export(rn_graph_t* graph, rn_strbuf_t* out);
// The same without the first |first| nodes. |*out_count| (may be NULL) gets the graph's number of
// nodes.
RN_MUST_USE rn_status_t rn_graph_export_from(rn_graph_t* graph, size_t first, rn_strbuf_t* out,
                                             size_t* out_count);
// Appends one node as a serialised NodeDef.
RN_MUST_USE rn_status_t rn_node_export(const rn_node_t* node, rn_strbuf_t* out);

#endif  // RUNNEL_GRAPH_IMPORT_H_
