// State of one import. Private to graph/import*.c.
#ifndef RUNNEL_GRAPH_IMPORT_STATE_H_
#define RUNNEL_GRAPH_IMPORT_STATE_H_

#include "graph/build.h"
#include "graph/import.h"
#include "proto/graph.pb.h"
#include "wire/scan.h"

// A node of the GraphDef; all strings are borrowed from its bytes.
typedef struct rn_import_def_t {
  rn_str_t name;
  rn_str_t op;
  rn_str_t device;
  rn_str_t full_type;
  rn_str_t attrs;  // fields of a NodeDef, the attributes among them
} rn_import_def_t;

typedef struct rn_import_attr_t {
  rn_str_t key;
  rn_str_t value;  // serialised AttrValue
} rn_import_attr_t;

// One input of a node of the GraphDef, resolved.
typedef struct rn_import_ref_t {
  int32_t
      source;  // number of a node of the GraphDef; if negative, entry ~source of the input mapping
  int32_t port;  // -1: a control input
} rn_import_ref_t;

// The nodes of a GraphDef by name. Lives in the import's scratch arena.
typedef struct rn_import_names_t {
  uint32_t* slots;  // number of a node + 1; 0 if free
  size_t mask;
  uint64_t* hashes;  // by number
} rn_import_names_t;

typedef struct rn_import_t {
  rn_graph_t* graph;
  const rn_import_options_t* options;
  rn_arena_t scratch;     // everything below
  rn_pb_GraphDef_t* def;  // without the nodes
  int32_t producer;
  int32_t node_count;
  rn_import_def_t* defs;
  rn_str_t* inputs;      // of all nodes
  uint32_t* first_ref;   // by node: where its inputs begin; one more entry marks the end
  size_t tensor_budget;  // bytes left for tensors in attributes

  rn_str_t prefix;  // "" or "scope/"
  rn_import_names_t names;
  rn_str_t* final_names;  // by number; if empty or NULL: prefix + own name
  rn_strbuf_t name_buffer;

  rn_import_ref_t* refs;  // |inputs| resolved
  // Node numbers, inputs before their readers; NULL if the GraphDef is in such an order.
  int32_t* order;
  bool* is_map_used;        // by entry of the input mapping
  rn_node_t** nodes;        // by number; NULL if not built yet
  rn_str_t* new_functions;  // names of the functions that this import added to the library
  size_t new_function_count;
  rn_str_t* new_gradients;
  size_t new_gradient_count;
} rn_import_t;

static inline const rn_import_def_t* rn_import_def(const rn_import_t* import, int32_t number) {
  return &import->defs[number];
}

// import_scan.c: finds the nodes in |bytes| and decodes the rest.
RN_MUST_USE rn_status_t rn_import_read(rn_import_t* import, rn_str_t bytes);
// Reads the next attribute from |scan|, a scan of a node's |attrs|; false at the end and for
// malformed bytes.
bool rn_import_next_attr(rn_pb_scan_t* scan, rn_import_attr_t* out);
// Reads a serialised AttrValue into the graph's arena.
RN_MUST_USE rn_status_t rn_import_read_value(rn_import_t* import, rn_str_t bytes,
                                             rn_attr_value_t* out);

// import_names.c: checks that names are valid and unique, and determines their final form in the
// graph.
RN_MUST_USE rn_status_t rn_import_settle_names(rn_import_t* import);
// The number of the GraphDef's node |name|, or -1.
int32_t rn_import_find(const rn_import_t* import, rn_str_t name);
// The name of node |number| in the graph; valid until the next call.
RN_MUST_USE rn_status_t rn_import_final_name(rn_import_t* import, int32_t number, rn_str_t* out);

// import_order.c: resolves inputs and finds a topological order.
RN_MUST_USE rn_status_t rn_import_resolve_inputs(rn_import_t* import);
RN_MUST_USE rn_status_t rn_import_find_order(rn_import_t* import);
// The entry of the input mapping for |id|, the last one if there are several; -1 if there is none.
int32_t rn_import_find_mapping(const rn_import_t* import, rn_tensor_id_t id);
// The graph's edge for |ref|; its node is NULL if not built yet.
rn_edge_t rn_import_edge(const rn_import_t* import, rn_import_ref_t ref);

// import_node.c: builds node |number| of the GraphDef; its inputs are built already.
RN_MUST_USE rn_status_t rn_import_build_node(rn_import_t* import, int32_t number);
// Links the loop back edges of Merge nodes.
RN_MUST_USE rn_status_t rn_import_link_back_edges(rn_import_t* import, int32_t number);

// import_functions.c: adds the GraphDef's functions to the graph's library, and removes them again.
RN_MUST_USE rn_status_t rn_import_functions(rn_import_t* import);
void rn_import_undo_functions(rn_import_t* import);

#endif  // RUNNEL_GRAPH_IMPORT_STATE_H_
