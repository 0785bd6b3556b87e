// Building graphs in C: scopes, edges, and the generic node builder below the typed builders of
// runnel/ops.h.
//
//   rn_scope_t* s = rn_scope_create(graph);
//   rn_edge_t x = rn_Placeholder(s, TF_FLOAT);
//   rn_edge_t y = rn_Relu(s, rn_MatMul(s, x, w, .transpose_b = true));
//   if (!rn_scope_ok(s)) fprintf(stderr, "%s\n", rn_scope_message(s));
//
// A scope has a name prefix, a device, control inputs, and the first error that occurred in it or
// in a child. After an error every builder does nothing and returns RN_NO_EDGE, so that a chain of
// builders needs one check at its end. Only one thread at a time may use a scope; several threads
// may share the graph.
#ifndef RUNNEL_GRAPH_H_
#define RUNNEL_GRAPH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runnel/api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rn_graph_t rn_graph_t;  // the same object as a TF_Graph
typedef struct rn_node_t rn_node_t;    // the same object as a TF_Operation
typedef struct rn_scope_t rn_scope_t;

// Output number |index| of |node|. The same layout as a TF_Output.
typedef struct rn_edge_t {
  rn_node_t* node;
  int index;
} rn_edge_t;

// A struct literal: RN_LITERAL(rn_edge_t){node, 0}.
#ifdef __cplusplus
#define RN_LITERAL(type) type
#else
#define RN_LITERAL(type) (type)
#endif

#define RN_NO_EDGE (RN_LITERAL(rn_edge_t){NULL, 0})

// Outputs |first| … |first + count - 1| of |node|: the result of an op with a list output.
typedef struct rn_edges_t {
  rn_node_t* node;
  int first;
  int count;
} rn_edges_t;

// Output |i| of the list.
static inline rn_edge_t rn_edge_at(rn_edges_t edges, int i) {
  rn_edge_t edge = {edges.node, edges.first + i};
  return edge;
}

// A root scope over |graph|, which must outlive it. NULL if there is no memory.
RN_API rn_scope_t* rn_scope_create(rn_graph_t* graph);
// A root scope over a new graph, which lives as long as the scope and every session over it.
RN_API rn_scope_t* rn_scope_with_graph(void);
// A child of |parent|: names get the prefix "name/" (made unique). The child reports its errors to
// the parent and must be destroyed first.
RN_API rn_scope_t* rn_scope_child(rn_scope_t* parent, const char* name);
RN_API void rn_scope_destroy(rn_scope_t* scope);

// Sets the device of the nodes built from now on; "" or NULL: none.
RN_API void rn_scope_set_device(rn_scope_t* scope, const char* device);
// Nodes built from now on also get this control input; rn_scope_clear_controls removes all.
RN_API void rn_scope_add_control(rn_scope_t* scope, rn_node_t* node);
RN_API void rn_scope_clear_controls(rn_scope_t* scope);
// Sets the name of the next node (made unique if taken); the default comes from its op.
RN_API void rn_scope_name_next(rn_scope_t* scope, const char* name);

// The graph that the scope builds in.
RN_API rn_graph_t* rn_scope_graph(rn_scope_t* scope);
// False once building a node in this scope, or in a child of it, has failed.
RN_API bool rn_scope_ok(const rn_scope_t* scope);
// TF_Code of the first error; 0 if there is none.
RN_API int rn_scope_code(const rn_scope_t* scope);
// The message of the first error; "" if there is none. Lives as long as the scope.
RN_API const char* rn_scope_message(const rn_scope_t* scope);

// The generic builder. Call begin, then inputs in the order of the op's arguments, attributes in
// any order, then finish. You may leave out type and length attributes that follow from the inputs,
// and attributes with defaults.
RN_API void rn_op_begin(rn_scope_t* scope, const char* op);
RN_API void rn_op_input(rn_scope_t* scope, rn_edge_t input);
RN_API void rn_op_input_list(rn_scope_t* scope, const rn_edge_t* inputs, int count);
RN_API void rn_op_control(rn_scope_t* scope, rn_node_t* node);
RN_API void rn_op_attr_string(rn_scope_t* scope, const char* name, const char* value);
RN_API void rn_op_attr_int(rn_scope_t* scope, const char* name, int64_t value);
RN_API void rn_op_attr_float(rn_scope_t* scope, const char* name, float value);
RN_API void rn_op_attr_bool(rn_scope_t* scope, const char* name, bool value);
RN_API void rn_op_attr_type(rn_scope_t* scope, const char* name, int dtype);
// |rank| -1: unknown rank; dims of -1 are unknown.
RN_API void rn_op_attr_shape(rn_scope_t* scope, const char* name, const int64_t* dims, int rank);
// A tensor of |dtype|, not of strings or handles; the bytes are copied from |data|.
RN_API void rn_op_attr_tensor(rn_scope_t* scope, const char* name, int dtype, const int64_t* dims,
                              int rank, const void* data);
RN_API void rn_op_attr_func(rn_scope_t* scope, const char* name, const char* function);
RN_API void rn_op_attr_string_list(rn_scope_t* scope, const char* name, const char* const* values,
                                   int count);
RN_API void rn_op_attr_int_list(rn_scope_t* scope, const char* name, const int64_t* values,
                                int count);
RN_API void rn_op_attr_float_list(rn_scope_t* scope, const char* name, const float* values,
                                  int count);
RN_API void rn_op_attr_bool_list(rn_scope_t* scope, const char* name, const bool* values,
                                 int count);
RN_API void rn_op_attr_type_list(rn_scope_t* scope, const char* name, const int* values, int count);
RN_API void rn_op_attr_shape_list(rn_scope_t* scope, const char* name, const int64_t* const* dims,
                                  const int* ranks, int count);
RN_API void rn_op_attr_func_list(rn_scope_t* scope, const char* name, const char* const* functions,
                                 int count);
// The finished node, or NULL after an error.
RN_API rn_node_t* rn_op_finish(rn_scope_t* scope);

// Constants: |data| holds the elements in row-major order.
RN_API rn_edge_t rn_const(rn_scope_t* scope, int dtype, const int64_t* dims, int rank,
                          const void* data);
RN_API rn_edge_t rn_const_float(rn_scope_t* scope, float value);
RN_API rn_edge_t rn_const_int32(rn_scope_t* scope, int32_t value);
RN_API rn_edge_t rn_const_int32_list(rn_scope_t* scope, const int32_t* values, int count);
// A scalar of |dtype|, any number type.
RN_API rn_edge_t rn_const_scalar(rn_scope_t* scope, int dtype, double value);

// Properties of nodes.
RN_API int rn_node_output_count(const rn_node_t* node);
RN_API int rn_edge_dtype(rn_edge_t edge);  // TF_DataType; the base type for references

#ifdef __cplusplus
}
#endif

#endif  // RUNNEL_GRAPH_H_
