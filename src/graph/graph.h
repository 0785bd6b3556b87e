// The graph: nodes, the edges between them, and what is known of each edge's shape and value.
//
// A graph only grows: a node is added checked, with complete attributes and inferred shapes, and
// lives as long as the graph. The few changes to an existing node (UpdateEdge, a refined shape, a
// new consumer) happen under the graph's lock. Node pointers are stable: a TF_Operation* is one. A
// graph is reference-counted: sessions keep the graphs they run alive.
#ifndef RUNNEL_GRAPH_GRAPH_H_
#define RUNNEL_GRAPH_GRAPH_H_

#include "base/arena.h"
#include "base/map.h"
#include "base/sync.h"
#include "base/vec.h"
#include "framework/op_def.h"
#include "framework/shape_fn.h"
#include "runnel/graph.h"

// The GraphDef versions we write: those of TensorFlow 2.21.
#define RN_GRAPH_PRODUCER 2474
#define RN_GRAPH_MIN_CONSUMER 0
// The first consumer version that supports functions.
#define RN_FUNCTIONS_VERSION 12

typedef struct rn_consumer_t {
  rn_node_t* node;
  int32_t input;  // -1 for a control edge
} rn_consumer_t;

typedef struct rn_output_t {
  rn_dtype_t dtype;  // with the reference mark
  rn_shape_t shape;
  rn_handle_data_t handle;  // for resources
  RN_VEC(rn_consumer_t)
  consumers;  // in the arena, like all lists of a node: do not use rn_vec_push
} rn_output_t;

struct rn_node_t {
  rn_graph_t* graph;  // Borrowed
  int32_t id;         // index into graph->nodes
  const rn_op_def_t* op;
  rn_str_t name;           // NUL-terminated, as are all strings of a node
  rn_str_t device;         // as requested; may be any string
  rn_str_t full_type;      // a serialized FullTypeDef, passed through unchanged
  rn_attr_value_t* attrs;  // one per attribute of |op|, complete
  int32_t extra_count;     // attributes that the op does not define: "_class", "_output_shapes" …
  rn_attr_t* extras;
  int32_t input_count;
  rn_edge_t* inputs;  // in argument order, lists flattened
  int32_t output_count;
  rn_output_t* outputs;
  rn_partial_t partial;         // what is known of the value of output 0
  RN_VEC(rn_node_t*) controls;  // control inputs
  RN_VEC(rn_node_t*) control_consumers;
};

typedef struct rn_library_t rn_library_t;  // functions: see function.h

struct rn_graph_t {
  _Atomic int32_t refs;
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards all below; functions called *_locked want it held
  rn_arena_t arena;  // nodes and everything in them
  RN_VEC(rn_node_t*) nodes;
  rn_map_t by_name;  // name -> node
  rn_map_t
      name_counts;  // used name -> the last number that rn_graph_unique_name_locked appended to it
  rn_map_t prefixes;  // "a" and "a/b" of every node "a/b/c" up to |prefixed_count|, and of scopes
  size_t prefixed_count;
  rn_library_t* library;  // has its own lock
  bool owns_library;  // false for a function body, which uses the library of the graph it was made
                      // from
  bool allows_shapeless;  // nodes of ops that have no shape function may be added
  // If the shape function refuses a node's input shapes, or if there is none, keep the node and let
  // its kernel report the error if it runs. True for graphs of sessions and function bodies,
  // because a client may never run that node.
  bool keeps_misfits;
  int32_t producer, min_consumer;
  RN_VEC(int32_t) bad_consumers;
  // Data that a higher layer attaches to the graph; set once, freed with the graph.
  void* attachment;
  void (*free_attachment)(void* attachment);
};

// The caller owns a reference.
RN_MUST_USE rn_status_t rn_graph_create(rn_allocator_t allocator, rn_graph_t** out_graph);
void rn_graph_retain(rn_graph_t* graph);
void rn_graph_release(rn_graph_t* graph);  // NULL is fine

rn_node_t* rn_graph_find(rn_graph_t* graph, rn_str_t name);
rn_node_t* rn_graph_find_locked(rn_graph_t* graph, rn_str_t name);
// The output called "name" or "name:1". NOT_FOUND if the graph has no such node; whether the node
// has such an output is not checked.
RN_MUST_USE rn_status_t rn_edge_by_name(rn_graph_t* graph, rn_str_t name, rn_edge_t* out);
// |name| itself if free, else "name_1", "name_2" …; |*out| is |name| or lives in the graph.
RN_MUST_USE rn_status_t rn_graph_unique_name_locked(rn_graph_t* graph, rn_str_t name,
                                                    rn_str_t* out);

#define RN_ARG_SINGLE (-1)

// Describes a node to add. Pointers are borrowed for the call; everything is copied into the graph.
typedef struct rn_node_spec_t {
  rn_str_t op;
  rn_str_t name;
  rn_str_t device;
  const rn_edge_t* inputs;  // flattened
  int32_t input_count;
  rn_node_t* const* controls;
  int32_t control_count;
  const rn_attr_t* attrs;  // in any order; may omit those that follow from inputs or defaults
  int32_t attr_count;
  // Lengths of the input arguments: RN_ARG_SINGLE for one tensor (TF_AddInput), else the list's
  // length (TF_AddInputList). NULL to take them from the attributes.
  const int32_t* arg_lengths;
  int32_t arg_count;
} rn_node_spec_t;

// Adds a node: finds the op, infers attributes from inputs, fills in defaults, checks attributes
// and types, infers shapes, links the node. On failure the graph is unchanged and the message is
// TensorFlow's. The name must be unused; like TensorFlow, this does not check its characters.
RN_MUST_USE rn_status_t rn_graph_add(rn_graph_t* graph, const rn_node_spec_t* spec,
                                     rn_node_t** out_node);
RN_MUST_USE rn_status_t rn_graph_add_locked(rn_graph_t* graph, const rn_node_spec_t* spec,
                                            rn_node_t** out_node);
// The same, but appends a number to the name if it is used.
RN_MUST_USE rn_status_t rn_graph_add_unique(rn_graph_t* graph, const rn_node_spec_t* spec,
                                            rn_node_t** out_node);

// Replaces input |input| of |node| and infers again what depends on it. OUT_OF_RANGE for bad
// indices, INVALID_ARGUMENT for bad types and shapes and for cycles, other than through the Merge
// of a loop; the graph is then as before.
RN_MUST_USE rn_status_t rn_graph_update_edge(rn_graph_t* graph, rn_edge_t source, rn_node_t* node,
                                             int input);
// Adds |source| to the inputs of |node|, whose one list of inputs is also its list of outputs, and
// which gets an output more with it: how loops that call functions grow. INVALID_ARGUMENT for other
// nodes and for cycles; the graph is then as before.
RN_MUST_USE rn_status_t rn_graph_append_input(rn_graph_t* graph, rn_edge_t source, rn_node_t* node);
// Makes |node| pass on |values|, one per output and of its type: it becomes an IdentityN, or a NoOp
// if it has no outputs. Its name, outputs and control edges stay. No value may depend on |node|.
RN_MUST_USE rn_status_t rn_graph_pass_on(rn_graph_t* graph, rn_node_t* node,
                                         const rn_edge_t* values);
// Merges |shape| into what is known of |edge|.
RN_MUST_USE rn_status_t rn_graph_set_shape(rn_graph_t* graph, rn_edge_t edge, rn_shape_t shape);

// The value of attribute |name| of |node|, defined or extra; NULL if there is none.
const rn_attr_value_t* rn_node_attr(const rn_node_t* node, rn_str_t name);
// The value of a constant; NULL if |node| is none. Also NULL if the value has another type than the
// node declares, which is possible in a GraphDef and which the kernel reports when it runs.
const rn_tensor_t* rn_node_constant(const rn_node_t* node);
// INVALID_ARGUMENT if an attribute of |node|'s op is left open (a placeholder): such a node can be
// kept and exported, but neither run nor differentiated.
RN_MUST_USE rn_status_t rn_node_check_attrs(const rn_node_t* node);

// "{{node a/b}} = MatMul[T=DT_FLOAT, …](x, y)": how stock describes a node in messages.
void rn_node_summary(rn_strbuf_t* buf, const rn_node_t* node);

// Shape inference of one node from its inputs' current knowledge (graph/infer.c); used by add and
// update.
RN_MUST_USE rn_status_t rn_node_infer_locked(rn_node_t* node);

#endif  // RUNNEL_GRAPH_GRAPH_H_
