// Functions in C: a graph that is built once and called from others.
//
//   rn_graph_t* body = (rn_graph_t*)TF_NewGraph();
//   rn_scope_t* b = rn_scope_create(body);
//   rn_edge_t x = rn_Placeholder(b, TF_FLOAT);
//   rn_edge_t y = rn_Mul(b, x, x);
//   rn_define_function(s, "square", b, &x, 1, &y, 1);
//   rn_edge_t four = rn_edge_at(rn_call(s, "square", &two, 1), 0);
//
// A function belongs to the library of a graph, is exported with it, and may call other functions
// of that library, and itself. Sessions inline calls where they can.
#ifndef RUNNEL_FUNCTION_H_
#define RUNNEL_FUNCTION_H_

#include "runnel/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

// Turns the whole graph of |body| into a function and adds it to the library of |scope|'s graph.
// |inputs| are placeholders of that graph, or other edges with a node of their own; all other nodes
// belong to the function. The graph of |body| is not changed and not needed afterwards. Returns
// false, with the error in |scope|, if the name is taken, an input is missing, or |body| has an
// error.
RN_API bool rn_define_function(rn_scope_t* scope, const char* name, rn_scope_t* body,
                               const rn_edge_t* inputs, int input_count, const rn_edge_t* outputs,
                               int output_count);

// Calls a function of the graph's library, which must have no open attributes. Returns its results,
// in order.
RN_API rn_edges_t rn_call(rn_scope_t* scope, const char* function, const rn_edge_t* args,
                          int arg_count);

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_FUNCTION_H_
