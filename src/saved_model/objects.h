// The object graph of a model to be written, from which Python's loaders build objects.
//
//   root                  an object without methods
//     layer/w             variables, by the parts of their names: root.layer.w
//     variables           lists of them, trainable_variables too
//     signatures          one function for each, the nodes it needs cut out of the graph
//     table               what is looked up in, with functions that make and fill it
//
// The checkpoint of such a model has the same tree (a TrackableObjectGraph); its keys are paths in
// it.
#ifndef RUNNEL_SAVED_MODEL_OBJECTS_H_
#define RUNNEL_SAVED_MODEL_OBJECTS_H_

#include "graph/graph.h"
#include "proto/meta_graph.pb.h"
#include "saved_model/writer.h"

// The key of the tree in a checkpoint.
#define RN_OBJECT_GRAPH_KEY "_CHECKPOINTABLE_OBJECT_GRAPH"

typedef enum rn_object_kind_t {
  RN_OBJECT_PLAIN,
  RN_OBJECT_LIST,
  RN_OBJECT_SIGNATURES,
  RN_OBJECT_VARIABLE,  // |item|: which
  RN_OBJECT_TABLE,
  RN_OBJECT_ASSET,      // |item|: which
  RN_OBJECT_SIGNATURE,  // |item|: which function
  RN_OBJECT_FUNCTION,   // |item|: which function
} rn_object_kind_t;

typedef struct rn_object_child_t {
  rn_str_t name;
  int32_t object;
  int32_t next;  // next child of the same parent; -1 for the last
} rn_object_child_t;

typedef struct rn_model_object_t {
  rn_object_kind_t kind;
  int32_t item;
  int32_t first_child, last_child;  // -1: none
} rn_model_object_t;

// A function of an object: its arguments, all named, and its results.
typedef struct rn_object_function_t {
  rn_str_t name;                          // in the library
  const rn_pb_SignatureDef_t* signature;  // NULL if it has no named arguments and results
  int32_t result_dtype;   // without a signature: the type of its one result, a scalar
  RN_VEC(int32_t) bound;  // the objects that it captures
} rn_object_function_t;

typedef struct rn_objects_t {
  rn_allocator_t allocator;
  rn_arena_t* arena;                 // Borrowed: names
  rn_graph_t* graph;                 // Borrowed: gets the functions
  const rn_pb_MetaGraphDef_t* meta;  // Borrowed: the signatures, sorted by their names
  const rn_saved_model_def_t* def;   // Borrowed
  rn_model_variable_t* variables;    // Borrowed
  size_t variable_count;
  int32_t* variable_objects;  // in |arena|
  RN_VEC(rn_model_object_t) objects;
  RN_VEC(rn_object_child_t) children;
  RN_VEC(rn_object_function_t) functions;
  RN_VEC(rn_edge_t) tables;  // their objects are in |table_objects|
  RN_VEC(int32_t) table_objects;
  const rn_node_t* made_table;  // the table node whose creator function is being built; or NULL
} rn_objects_t;

// Builds the tree, adds the functions to the graph's library, and names the variables by their
// paths. If objects cannot represent the model because it has reference variables, sets |*out_fits|
// to false and changes nothing but the library.
RN_MUST_USE rn_status_t rn_objects_build(rn_objects_t* objects, bool* out_fits);
void rn_objects_clear(rn_objects_t* objects);

// Writes the two messages: the SavedObjectGraph of a MetaGraphDef, and the TrackableObjectGraph of
// the checkpoint.
RN_MUST_USE rn_status_t rn_objects_encode(const rn_objects_t* objects, rn_strbuf_t* out);
RN_MUST_USE rn_status_t rn_objects_encode_tree(const rn_objects_t* objects, rn_strbuf_t* out);

#endif  // RUNNEL_SAVED_MODEL_OBJECTS_H_
