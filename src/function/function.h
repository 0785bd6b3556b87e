// Functions and graphs: a function made from part of a graph, and the body of a function as a
// graph.
//
// What a function is, and how a graph carries it, is in graph/library.h. A body is a function with
// all attributes given, built as a graph whose nodes find functions in the library that the body
// was made from.
#ifndef RUNNEL_FUNCTION_FUNCTION_H_
#define RUNNEL_FUNCTION_FUNCTION_H_

#include "graph/library.h"

// The part of a graph that becomes a function. Everything is borrowed for the call.
typedef struct rn_function_spec_t {
  rn_graph_t* graph;
  rn_str_t name;
  bool append_hash;         // append a hash of the body to the name: equal bodies, equal names
  rn_node_t* const* nodes;  // the body
  int32_t node_count;       // -1 for all nodes of the graph that are not inputs
  const rn_edge_t* inputs;
  int32_t input_count;
  const rn_edge_t* outputs;
  int32_t output_count;
  const rn_str_t* output_names;  // NULL to derive them from the nodes' names
  rn_node_t* const* controls;    // nodes of the body that every call must run
  int32_t control_count;
  const rn_str_t* control_names;  // NULL for the nodes' names
  rn_str_t description;
} rn_function_spec_t;

// Makes a function from part of a graph, which stays as it is. The messages are those of
// TF_GraphToFunction. Nodes of a body that reads _Arg nodes (see rn_function_body_t) may become a
// function again with the _Arg edges as inputs.
RN_MUST_USE rn_status_t rn_function_create(const rn_function_spec_t* spec, rn_function_t** out);

// A hash of what |def| does: equal for equal functions, and the number that TensorFlow computes.
// |def| has a signature, but neither a name nor control outputs yet. Scratch memory comes from
// |arena|.
RN_MUST_USE rn_status_t rn_function_hash(const rn_pb_FunctionDef_t* def, rn_arena_t* arena,
                                         uint64_t* out);

// A function with all attributes given, as a graph.
//
// Its arguments are nodes of role RN_ROLE_ARG, one per incoming tensor; its results are edges, and
// its control results nodes: there are no _Retval nodes. A caller feeds the arguments, fetches the
// results, and runs |controls| and all stateful nodes.
typedef struct rn_function_body_t {
  rn_graph_t* graph;
  rn_function_t* function;  // Retained
  int32_t arg_count;
  rn_node_t** args;
  int32_t result_count;
  rn_edge_t* results;
  int32_t control_count;
  rn_node_t** controls;
  rn_arena_t arena;  // the arrays
} rn_function_body_t;

// The body of function |name| of the library of |graph| with these attributes; built once and kept
// by the library, so it lives as long as |graph|. It is shared, and its graph must not be changed.
// NOT_FOUND if there is no such function; INVALID_ARGUMENT, naming function and node, for a bad
// body. Any thread; the lock of |graph| may be held.
RN_MUST_USE rn_status_t rn_function_body(rn_graph_t* graph, const rn_func_attr_t* call,
                                         const rn_function_body_t** out);
// Builds a private copy, to whose graph the caller may add nodes, for instance to compute gradients
// in it. It must not outlive |graph|, whose library it uses: adding a function to one adds it to
// both.
RN_MUST_USE rn_status_t rn_function_instantiate(rn_graph_t* graph, const rn_func_attr_t* call,
                                                rn_function_body_t** out);
void rn_function_body_destroy(rn_function_body_t* body);  // NULL is fine; not for shared ones

// The function that computes the gradient of |function|: it takes the arguments and then the
// gradients of the results, and returns one gradient per argument, zeros where none flows back.
// Taken from the library if it has one, otherwise made and added; |*out_name| lives with the graph.
// Defined in grad/, which is above this folder.
RN_MUST_USE rn_status_t rn_graph_gradient_function(rn_graph_t* graph,
                                                   const rn_func_attr_t* function,
                                                   rn_str_t* out_name);

#endif  // RUNNEL_FUNCTION_FUNCTION_H_
