// Writing SavedModels: see runnel/saved_model.h for what is written.
#ifndef RUNNEL_SAVED_MODEL_WRITER_H_
#define RUNNEL_SAVED_MODEL_WRITER_H_

#include "runnel/saved_model.h"
#include "saved_model/saved_model.h"

// The model that a session's graph was loaded from, for writing it again unchanged.
typedef struct rn_model_origin_t {
  const rn_saved_model_t* file;
  const rn_meta_graph_t* meta;
  size_t node_count;  // of its graph; the client added the later nodes
} rn_model_origin_t;

// Does not change the graph of |session|: the nodes that save and restore are added to the copy
// that is written. Writes the variables of the graph, found by resource name, that have a value on
// a device with host memory; variables that a signature depends on must have one. Pointers of |def|
// are borrowed for the call. |origin|, which may be NULL, is borrowed too.
RN_MUST_USE rn_status_t rn_saved_model_save(rn_session_t* session, const rn_model_origin_t* origin,
                                            const char* folder, const rn_saved_model_def_t* def,
                                            const rn_env_t* env, rn_allocator_t allocator);

// The names, for a SaverDef, of the nodes that save and restore.
typedef struct rn_saver_nodes_t {
  rn_str_t filename, save, restore;
  rn_str_t *reads, *assigns;  // per variable: a tensor with its value, and the node that sets it
} rn_saver_nodes_t;
// A variable of a graph.
typedef struct rn_model_variable_t {
  rn_str_t name;      // in the checkpoint
  rn_str_t resource;  // its name in the session
  rn_node_t* node;    // NULL for a value that is not a variable but saved too
  rn_tensor_t value;  // Owned
  bool is_trainable;
} rn_model_variable_t;
typedef RN_VEC(rn_model_variable_t) rn_model_variables_t;
// Adds nodes that save and restore |variables|, nodes of |graph|; those without one come last.
// Names are in |arena|.
RN_MUST_USE rn_status_t rn_saver_nodes_add(rn_graph_t* graph, const rn_model_variable_t* variables,
                                           size_t count, rn_arena_t* arena, rn_saver_nodes_t* out);

// Lists what a loaded model saves, by the keys of its checkpoint: variables of |graph|, a copy of
// the session's, without values yet, and constants. |*out_fits| is false if that cannot be
// determined, or if the client has added variables.
RN_MUST_USE rn_status_t rn_resave_variables(rn_graph_t* graph, const rn_model_origin_t* origin,
                                            rn_arena_t* arena, rn_allocator_t allocator,
                                            rn_model_variables_t* variables, bool* out_fits);

#endif  // RUNNEL_SAVED_MODEL_WRITER_H_
