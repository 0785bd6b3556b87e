// Functions: named graphs with arguments and results, the library of a graph that holds them, and
// their bodies as graphs.
//
// A function is a FunctionDef, checked, with its signature as an op that nodes can be of. It is
// counted and never changes, so that graphs share one. Names in its signature may stand for
// attributes ("$T"), which a call gives; a body is a function with all attributes given, built as a
// graph whose nodes find functions in the library that the body was made from.
#ifndef RUNNEL_GRAPH_FUNCTION_H_
#define RUNNEL_GRAPH_FUNCTION_H_

#include "graph/graph.h"

typedef struct rn_function_t {
  _Atomic int32_t refs;
  rn_allocator_t allocator;
  rn_arena_t arena;  // everything below
  rn_str_t name;
  rn_str_t bytes;         // its FunctionDef; equal functions have equal bytes
  const rn_op_def_t* op;  // the signature, of role RN_ROLE_FUNCTION
  bool is_noinline;       // the attribute "_noinline"
} rn_function_t;

// From a serialised FunctionDef. INVALID_ARGUMENT if it is none, or if its signature is not sound;
// what its nodes say is checked when a body is built. The caller owns a reference.
RN_MUST_USE rn_status_t rn_function_parse(rn_allocator_t allocator, rn_str_t bytes,
                                          rn_function_t** out);
void rn_function_retain(rn_function_t* function);
void rn_function_release(rn_function_t* function);  // NULL is fine

// What a function is made of: part of a graph. Everything is borrowed for the call.
typedef struct rn_function_spec_t {
  rn_graph_t* graph;
  rn_str_t name;
  bool append_hash;         // to the name: of the body, so that equal bodies have equal names
  rn_node_t* const* nodes;  // the body
  int32_t node_count;       // -1: all nodes of the graph that are no inputs
  const rn_edge_t* inputs;
  int32_t input_count;
  const rn_edge_t* outputs;
  int32_t output_count;
  const rn_str_t* output_names;  // NULL: made from the nodes' names
  rn_node_t* const* controls;    // nodes of the body that a call must have run
  int32_t control_count;
  const rn_str_t* control_names;  // NULL: the nodes' names
  rn_str_t description;
} rn_function_spec_t;

// Makes a function of part of a graph, which stays as it is. The messages are those of
// TF_GraphToFunction. Nodes of a body that reads _Arg nodes (see rn_function_body_t) may be made a
// function again with the _Arg edges as inputs.
RN_MUST_USE rn_status_t rn_function_create(const rn_function_spec_t* spec, rn_function_t** out);

// Adds |function| to the library of |graph|, and |gradient| (NULL: none) as its gradient. Nothing
// happens if both are there already; INVALID_ARGUMENT if the name is another function's or an op's,
// or the gradient another: the library is then as before.
RN_MUST_USE rn_status_t rn_graph_add_function(rn_graph_t* graph, rn_function_t* function,
                                              rn_function_t* gradient);
// The function |name| of the graph's library, retained; NULL if there is none.
rn_function_t* rn_graph_get_function(rn_graph_t* graph, rn_str_t name);
// The name of the gradient function of |name|; empty if it has none. Lives with the graph.
rn_str_t rn_graph_function_gradient(rn_graph_t* graph, rn_str_t name);
// Takes a function out of the library; nodes that call it stay. INVALID_ARGUMENT if it is not
// there.
RN_MUST_USE rn_status_t rn_graph_remove_function(rn_graph_t* graph, rn_str_t name);
size_t rn_graph_function_count(rn_graph_t* graph);
// Function number |i| in the order in which they came, retained; NULL beyond the last.
rn_function_t* rn_graph_function_at(rn_graph_t* graph, size_t i);

// A function with all attributes given, as a graph.
//
// Its arguments are nodes of role RN_ROLE_ARG, one for each tensor that comes in; its results are
// edges, and its control results nodes: there are no _Retval nodes. Whoever runs it feeds the
// arguments, fetches the results, and runs |controls| and all stateful nodes.
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
// by the library, so it lives as long as |graph|. It is shared: nobody may change its graph.
// NOT_FOUND for no such function; INVALID_ARGUMENT, naming function and node, for a bad body. Any
// thread; the lock of |graph| may be held.
RN_MUST_USE rn_status_t rn_function_body(rn_graph_t* graph, const rn_func_attr_t* call,
                                         const rn_function_body_t** out);
// The same for the caller alone, who may add nodes to its graph: to take gradients in it, say. It
// must not outlive |graph|, whose library it uses: adding a function to one adds it to both.
RN_MUST_USE rn_status_t rn_function_instantiate(rn_graph_t* graph, const rn_func_attr_t* call,
                                                rn_function_body_t** out);
void rn_function_body_destroy(rn_function_body_t* body);  // NULL is fine; not for shared ones

// The function that computes the gradient of |function|: it takes the arguments and then the
// gradients that arrive at the results, and gives one gradient for each argument, zeros where none
// flows back. Taken from the library if it has one, else made and added; |*out_name| lives with the
// graph. Defined in grad/, above this room: the walk backwards builds on it.
RN_MUST_USE rn_status_t rn_graph_gradient_function(rn_graph_t* graph,
                                                   const rn_func_attr_t* function,
                                                   rn_str_t* out_name);

#endif  // RUNNEL_GRAPH_FUNCTION_H_
