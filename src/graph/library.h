// The functions of a graph, and their bodies. Private to graph/.
//
// A library belongs to one graph; bodies made from it use it too. Its lock is the innermost: it may
// be taken under a graph's, and nothing is built under it.
#ifndef RUNNEL_GRAPH_LIBRARY_H_
#define RUNNEL_GRAPH_LIBRARY_H_

#include "graph/function.h"
#include "proto/function.pb.h"

typedef struct rn_library_entry_t {
  rn_function_t* function;  // Retained
  rn_str_t gradient;        // name of its gradient function; empty: none
} rn_library_entry_t;

typedef struct rn_library_body_t {
  rn_str_t key;
  rn_function_body_t* body;  // Owned
} rn_library_body_t;

typedef struct rn_library_t {
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards all below
  rn_arena_t arena;  // names and keys
  RN_VEC(rn_library_entry_t) entries;
  rn_map_t numbers;                // name -> place in |entries| + 1, as a pointer
  RN_VEC(rn_function_t*) removed;  // Retained: nodes may still be of their ops
  RN_VEC(rn_library_body_t) bodies;
  rn_map_t bodies_by_key;  // key -> rn_function_body_t*; those of removed functions are not
} rn_library_t;

// What |def| does as a number: equal for equal functions, and TensorFlow's own. It has a signature,
// but neither a name nor control outputs yet. Scratch memory comes from |arena|.
RN_MUST_USE rn_status_t rn_function_hash(const rn_pb_FunctionDef_t* def, rn_arena_t* arena,
                                         uint64_t* out);

RN_MUST_USE rn_status_t rn_library_create(rn_allocator_t allocator, rn_library_t** out);
void rn_library_destroy(rn_library_t* library);

// The function |name|, or NULL; it lives as long as the library, though it be removed.
rn_function_t* rn_library_find(rn_library_t* library, rn_str_t name);
// Retains |function|, unless an equal one is there already: then |*out_is_new| is false.
RN_MUST_USE rn_status_t rn_library_add(rn_library_t* library, rn_function_t* function,
                                       bool* out_is_new);
// Says that |gradient| is the gradient function of |function|; nothing if that is not here.
RN_MUST_USE rn_status_t rn_library_set_gradient(rn_library_t* library, rn_str_t function,
                                                rn_str_t gradient, bool* out_is_new);
// Takes back what was new; no node may have used it.
void rn_library_undo_add(rn_library_t* library, rn_str_t name);
void rn_library_undo_gradient(rn_library_t* library, rn_str_t name);

// The function of a decoded message, which is not needed afterwards.
RN_MUST_USE rn_status_t rn_function_from_def(rn_allocator_t allocator,
                                             const rn_pb_FunctionDef_t* def, rn_function_t** out);

// A graph that uses |library|, which must outlive it.
RN_MUST_USE rn_status_t rn_graph_create_body(rn_allocator_t allocator, rn_library_t* library,
                                             rn_graph_t** out_graph);

#endif  // RUNNEL_GRAPH_LIBRARY_H_
