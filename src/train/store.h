// The training library's data about a graph: its variables, its collections, and the variable
// scopes that were opened. Freed with the graph; one thread at a time.
#ifndef RUNNEL_TRAIN_STORE_H_
#define RUNNEL_TRAIN_STORE_H_

#include "graph/graph.h"
#include "runnel/variables.h"

typedef struct rn_collection_t {
  rn_str_t name;
  RN_VEC(rn_collected_t) items;
} rn_collection_t;

// A queue and the nodes that fill it.
typedef struct rn_runner_t {
  rn_node_t** enqueues;  // in the store's arena
  int count;
  rn_node_t *close, *cancel;
} rn_runner_t;

typedef struct rn_store_t {
  rn_allocator_t allocator;
  rn_arena_t arena;    // variables and names
  rn_map_t variables;  // name that the client asked for -> rn_var_t*
  RN_VEC(rn_collection_t) collections;
  RN_VEC(rn_str_t) opened;  // full names of variable scopes
  RN_VEC(rn_runner_t) runners;
} rn_store_t;

// The store of the scope's graph, created by the first call; NULL after an error.
rn_store_t* rn_store_of(rn_scope_t* scope);

// Assigns the variables of a cluster to devices (device_setter.c); in the store's arena.
typedef struct rn_setter_t rn_setter_t;

// The settings of a variable scope; no string is NULL.
typedef struct rn_variable_frame_t {
  char* prefix;  // Owned; "" or "a/b/"
  rn_variable_scope_options_t options;
  rn_setter_t* setter;  // NULL: variables are on the device of their scope
} rn_variable_frame_t;
// The settings of the nearest variable scope around |scope|, or the root's defaults.
const rn_variable_frame_t* rn_variable_frame_of(const rn_scope_t* scope);
// Sets the setter of |scope| and of scopes created from it.
RN_MUST_USE rn_status_t rn_variable_frame_set_setter(rn_scope_t* scope, rn_setter_t* setter);
// Before the variable |name| is created: sets the device of the |inner| scopes to the device that
// the setter of |scope|, if any, chooses for it. Keeps a device that the client has set, and
// ignores variables of RN_LOCAL_VARIABLES.
RN_MUST_USE rn_status_t rn_setter_place(rn_scope_t* scope, rn_str_t name, const rn_var_t* variable,
                                        bool is_local, rn_scope_t* const* inner, int count);

// Creates a variable whose node is called |name|, made unique if the name is taken. If
// |initial_value| is no edge, |options->initializer| builds the initial value.
const rn_var_t* rn_var_make(rn_scope_t* scope, rn_str_t name, const int64_t* dims, int rank,
                            rn_edge_t initial_value, const rn_variable_options_t* options);
// Creates a variable that belongs to |primary|: "name/suffix", or "name/suffix_1" …, of the same
// kind and on the same device; not trainable.
const rn_var_t* rn_var_slot(rn_scope_t* scope, const rn_var_t* primary, const char* suffix,
                            const int64_t* dims, int rank, int dtype, rn_edge_t initial_value,
                            rn_initializer_t initializer);

#endif  // RUNNEL_TRAIN_STORE_H_
