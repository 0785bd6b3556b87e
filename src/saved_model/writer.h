// Writing SavedModels: see runnel/saved_model.h for what is written.
#ifndef RUNNEL_SAVED_MODEL_WRITER_H_
#define RUNNEL_SAVED_MODEL_WRITER_H_

#include "runnel/saved_model.h"
#include "saved_model/saved_model.h"

// The model that a session's graph was loaded from: what is written again as it came.
typedef struct rn_model_origin_t {
  const rn_saved_model_t* file;
  const rn_meta_graph_t* meta;
  size_t node_count;  // of its graph; the nodes behind are the client's
} rn_model_origin_t;

// The graph of |session| stays as it is: what saves and restores is added to the copy that is
// written. Variables are those of the graph, by the names of their resources, that have a value on
// a device whose memory is the host's; those that a signature depends on must have one. Pointers of
// |def| are borrowed for the call. |origin|, which may be NULL, must live as long as it.
RN_MUST_USE rn_status_t rn_saved_model_save(rn_session_t* session, const rn_model_origin_t* origin,
                                            const char* folder, const rn_saved_model_def_t* def,
                                            const rn_env_t* env, rn_allocator_t allocator);

// What the nodes that save and restore are called in a SaverDef.
typedef struct rn_saver_nodes_t {
  rn_str_t filename, save, restore;
  rn_str_t *reads, *assigns;  // of each variable: a tensor with its value, the node that sets it
} rn_saver_nodes_t;
// A variable of a graph.
typedef struct rn_model_variable_t {
  rn_str_t name;      // in the checkpoint
  rn_str_t resource;  // its name in the session
  rn_node_t* node;    // NULL: no variable, but a value that is saved along
  rn_tensor_t value;  // Owned
  bool is_trainable;
} rn_model_variable_t;
typedef RN_VEC(rn_model_variable_t) rn_model_variables_t;
// Adds nodes that save and restore |variables|, nodes of |graph|; those without one come last.
// Names are in |arena|.
RN_MUST_USE rn_status_t rn_saver_nodes_add(rn_graph_t* graph, const rn_model_variable_t* variables,
                                           size_t count, rn_arena_t* arena, rn_saver_nodes_t* out);

// What a model that was loaded saves, by the keys of its checkpoint: variables of |graph|, a copy
// of the session's, which have no values yet, and constants. |*out_fits| is false where it cannot
// be told, or where the graph has got variables since.
RN_MUST_USE rn_status_t rn_resave_variables(rn_graph_t* graph, const rn_model_origin_t* origin,
                                            rn_arena_t* arena, rn_allocator_t allocator,
                                            rn_model_variables_t* variables, bool* out_fits);

#endif  // RUNNEL_SAVED_MODEL_WRITER_H_
