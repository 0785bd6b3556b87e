// Writing SavedModels: see runnel/saved_model.h for what is written.
#ifndef RUNNEL_SAVED_MODEL_WRITER_H_
#define RUNNEL_SAVED_MODEL_WRITER_H_

#include "runnel/saved_model.h"
#include "session/session.h"

// The graph of |session| stays as it is: what saves and restores is added to the copy that is
// written. Variables are those of the graph, by the names of their resources, that have a value on
// a device whose memory is the host's; those that a signature depends on must have one. Pointers of
// |def| are borrowed for the call.
RN_MUST_USE rn_status_t rn_saved_model_save(rn_session_t* session, const char* folder,
                                            const rn_saved_model_def_t* def, const rn_env_t* env,
                                            rn_allocator_t allocator);

// What the nodes that save and restore are called in a SaverDef.
typedef struct rn_saver_nodes_t {
  rn_str_t filename, save, restore;
  rn_str_t *reads, *assigns;  // of each variable: a tensor with its value, the node that sets it
} rn_saver_nodes_t;
// A variable of a graph.
typedef struct rn_model_variable_t {
  rn_str_t name;  // in the checkpoint
  rn_node_t* node;
  rn_tensor_t value;  // Owned
} rn_model_variable_t;
// Adds nodes that save and restore |variables|, nodes of |graph|. Names are in |arena|.
RN_MUST_USE rn_status_t rn_saver_nodes_add(rn_graph_t* graph, const rn_model_variable_t* variables,
                                           size_t count, rn_arena_t* arena, rn_saver_nodes_t* out);

#endif  // RUNNEL_SAVED_MODEL_WRITER_H_
