// A GraphDef as nodes and edges, even if this library does not know all of its ops.
#ifndef RUNNEL_CLI_GRAPH_VIEW_H_
#define RUNNEL_CLI_GRAPH_VIEW_H_

#include "cli/load.h"
#include "tensor/tensor.h"

typedef struct rn_view_edge_t {
  int32_t node;    // -1 if the graph has no such node
  int32_t output;  // -1 for a control edge
} rn_view_edge_t;

typedef struct rn_view_node_t {
  const rn_pb_NodeDef_t* def;
  const rn_op_def_t* op;  // NULL if not in this library
  rn_node_t* built;       // NULL if the graph could not be imported
  bool is_function;       // |op| is NULL because the node calls a function of the graph
  int32_t input_count;
  rn_view_edge_t* inputs;
  int32_t consumers;  // data edges out of it
} rn_view_node_t;

typedef struct rn_view_t {
  rn_cli_file_t* file;  // Borrowed
  rn_arena_t arena;
  int32_t count;
  rn_view_node_t* nodes;
  rn_graph_t* graph;  // Owned; NULL if it could not be imported
  rn_status_t why;    // Owned; the reason
} rn_view_t;

// Fails only if memory runs out; clear |*out| either way.
RN_MUST_USE rn_status_t rn_view_create(const rn_cli_t* cli, rn_cli_file_t* file, rn_view_t* out);
void rn_view_clear(rn_view_t* view);

// "float [?,784]": what is known of output |output| of a node; empty if nothing is.
void rn_view_describe(const rn_view_node_t* node, int32_t output, rn_strbuf_t* out);

// The value of a constant; NULL if the node is not a constant or was not built.
const rn_tensor_t* rn_view_constant(const rn_view_node_t* node);

// The output formats, one file each; graph.c has the text.
RN_MUST_USE rn_status_t rn_view_stats(const rn_cli_t* cli, const rn_view_t* view);
// |depth| is the number of nested scopes that are drawn open; deeper ones are folded. See
// RN_FOLD_AUTOMATIC in graph_fold.h.
RN_MUST_USE rn_status_t rn_view_dot(const rn_cli_t* cli, const rn_view_t* view, int depth);

// The planner's passes over the graph, what each changed, and how long it took.
RN_MUST_USE rn_status_t rn_view_passes(const rn_cli_t* cli, const rn_view_t* view);

// Prints the names of the ops of the graph and of its functions, sorted.
RN_MUST_USE rn_status_t rn_cli_print_ops(const rn_cli_t* cli, const rn_cli_file_t* file);

#endif  // RUNNEL_CLI_GRAPH_VIEW_H_
