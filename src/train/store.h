// What a graph keeps for the training library: its variables, its collections, and which variable
// scopes were opened. Freed with the graph; one thread at a time.
#ifndef RUNNEL_TRAIN_STORE_H_
#define RUNNEL_TRAIN_STORE_H_

#include "graph/graph.h"
#include "runnel/variables.h"

typedef struct rn_collection_t {
  rn_str_t name;
  RN_VEC(rn_collected_t) items;
} rn_collection_t;

// A queue, and who fills it.
typedef struct rn_runner_t {
  rn_node_t** enqueues;  // in the store's arena
  int count;
  rn_node_t *close, *cancel;
} rn_runner_t;

typedef struct rn_store_t {
  rn_allocator_t allocator;
  rn_arena_t arena;    // variables and names
  rn_map_t variables;  // asked name -> rn_var_t*
  RN_VEC(rn_collection_t) collections;
  RN_VEC(rn_str_t) opened;  // whole names of variable scopes
  RN_VEC(rn_runner_t) runners;
} rn_store_t;

// The store of the scope's graph, made at the first call; NULL after an error.
rn_store_t* rn_store_of(rn_scope_t* scope);

// Where variables of a cluster go (device_setter.c); in the store's arena.
typedef struct rn_setter_t rn_setter_t;

// What a variable scope says; none of the strings is NULL.
typedef struct rn_variable_frame_t {
  char* prefix;  // Owned; "" or "a/b/"
  rn_variable_scope_options_t options;
  rn_setter_t* setter;  // NULL: variables go where their scope says
} rn_variable_frame_t;
// That of the nearest variable scope around |scope|, else the defaults of the root.
const rn_variable_frame_t* rn_variable_frame_of(const rn_scope_t* scope);
// Makes |setter| that of |scope| and of what is made from it.
RN_MUST_USE rn_status_t rn_variable_frame_set_setter(rn_scope_t* scope, rn_setter_t* setter);
// Sets the device of |inner| scopes to where the setter of |scope|, if there is one, puts the
// variable |name| that is about to be made. A device that the client has set is left alone, and so
// are variables of RN_LOCAL_VARIABLES.
RN_MUST_USE rn_status_t rn_setter_place(rn_scope_t* scope, rn_str_t name, const rn_var_t* variable,
                                        bool is_local, rn_scope_t* const* inner, int count);

// Makes a variable whose node is called |name|, made unique where it is taken. |initial_value| is
// an edge, or none: then |options->initializer| builds it.
const rn_var_t* rn_var_make(rn_scope_t* scope, rn_str_t name, const int64_t* dims, int rank,
                            rn_edge_t initial_value, const rn_variable_options_t* options);
// A variable beside another: "name/suffix", or "name/suffix_1" …, of the kind and the device of
// |primary|; not trained.
const rn_var_t* rn_var_slot(rn_scope_t* scope, const rn_var_t* primary, const char* suffix,
                            const int64_t* dims, int rank, int dtype, rn_edge_t initial_value,
                            rn_initializer_t initializer);

#endif  // RUNNEL_TRAIN_STORE_H_
