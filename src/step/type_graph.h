// The types of a step's nodes as a graph of their own, for passes that change types.
//
// A vertex is one type of one node: a type attribute, an element of an attribute that is a list of
// types, or a type that the op's definition fixes. An edge leads from the type of an output to the
// type of the input that reads it. Everything is in the IR's arena. Valid until the IR changes.
#ifndef RUNNEL_STEP_TYPE_GRAPH_H_
#define RUNNEL_STEP_TYPE_GRAPH_H_

#include "step/ir.h"

typedef struct rn_type_vertex_t {
  int32_t node;
  int32_t attr;     // number of the attribute; -1 if the definition fixes the type
  int32_t element;  // of a list; -1 if the attribute is one type
  rn_dtype_t type;
} rn_type_vertex_t;

// Neighbours of the vertices: those of v are items[starts[v]] to items[starts[v + 1] - 1].
typedef struct rn_type_edges_t {
  int32_t* starts;
  int32_t* items;
} rn_type_edges_t;

typedef struct rn_type_graph_t {
  rn_ir_t* ir;
  int32_t count;
  rn_type_vertex_t* vertices;                   // those of a node are adjacent
  int32_t *first, *first_input, *first_output;  // by node, and one more: into the arrays
  int32_t *inputs, *outputs;                    // the vertices of inputs and outputs
  int32_t extra_count;
  int32_t* extras;           // pairs of vertices: edges that the pass adds
  rn_type_edges_t from, to;  // by vertex: where its values come from, and who reads them
} rn_type_graph_t;

RN_MUST_USE rn_status_t rn_type_graph_create(rn_ir_t* ir, rn_type_graph_t* out);
// Adds the |count| edges in |pairs|, which must live as long as the graph.
RN_MUST_USE rn_status_t rn_type_graph_add_edges(rn_type_graph_t* graph, int32_t* pairs,
                                                int32_t count);

static inline int32_t rn_type_of_input(const rn_type_graph_t* graph, int32_t node, int32_t i) {
  return graph->inputs[graph->first_input[node] + i];
}
static inline int32_t rn_type_of_output(const rn_type_graph_t* graph, int32_t node, int32_t o) {
  return graph->outputs[graph->first_output[node] + o];
}

typedef enum rn_type_direction_t {
  RN_TYPE_SOURCES = 1,
  RN_TYPE_READERS = 2,
  RN_TYPE_BOTH = 3
} rn_type_direction_t;

// Marks every vertex that can be reached from a marked one over vertices that |may_enter| accepts.
RN_MUST_USE rn_status_t rn_type_spread(const rn_type_graph_t* graph, rn_type_direction_t direction,
                                       bool (*may_enter)(void* self, int32_t vertex), void* self,
                                       bool* inout_is_marked);

#endif  // RUNNEL_STEP_TYPE_GRAPH_H_
