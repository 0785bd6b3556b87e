// Functions as a graph carries them: FunctionDefs by name, each with its signature as an op.
//
// A function is immutable and reference-counted, so graphs share it. Names in its signature may
// stand for attributes ("$T"), which a call supplies. A library belongs to one graph; function
// bodies built from it use it too. Its lock is the innermost one: it may be taken under a graph's,
// and nothing is built under it. function/ makes functions from graphs and graphs from functions.
//
// doc/invariants.md: invariant 18a.
#ifndef RUNNEL_GRAPH_LIBRARY_H_
#define RUNNEL_GRAPH_LIBRARY_H_

#include "graph/graph.h"
#include "proto/function.pb.h"

typedef struct rn_function_t {
  _Atomic int32_t refs;
  rn_allocator_t allocator;
  rn_arena_t arena;  // everything below
  rn_str_t name;
  rn_str_t bytes;         // its FunctionDef; equal functions have equal bytes
  const rn_op_def_t* op;  // the signature, of role RN_ROLE_FUNCTION
  bool is_noinline;       // the attribute "_noinline"
} rn_function_t;

// Parses a serialized FunctionDef. INVALID_ARGUMENT if the bytes are not one, or if its signature
// is unsound; its nodes are checked when a body is built. The caller owns a reference.
RN_MUST_USE rn_status_t rn_function_parse(rn_allocator_t allocator, rn_str_t bytes,
                                          rn_function_t** out);
// The same from a decoded message, which is not needed afterwards.
RN_MUST_USE rn_status_t rn_function_from_def(rn_allocator_t allocator,
                                             const rn_pb_FunctionDef_t* def, rn_function_t** out);
void rn_function_retain(rn_function_t* function);
void rn_function_release(rn_function_t* function);  // NULL is fine

// Adds |function| to the library of |graph|, and |gradient| (or NULL) as its gradient. Does nothing
// if both are there already; INVALID_ARGUMENT if the name belongs to another function or to an op,
// or if the function has another gradient: the library is then unchanged.
RN_MUST_USE rn_status_t rn_graph_add_function(rn_graph_t* graph, rn_function_t* function,
                                              rn_function_t* gradient);
// The function |name| of the graph's library, retained; NULL if there is none.
rn_function_t* rn_graph_get_function(rn_graph_t* graph, rn_str_t name);
// The name of the gradient function of |name|; empty if it has none. Lives with the graph.
rn_str_t rn_graph_function_gradient(rn_graph_t* graph, rn_str_t name);
// Removes a function from the library; nodes that call it stay. INVALID_ARGUMENT if there is none.
RN_MUST_USE rn_status_t rn_graph_remove_function(rn_graph_t* graph, rn_str_t name);
size_t rn_graph_function_count(rn_graph_t* graph);
// Function number |i| in order of addition, retained; NULL beyond the last.
rn_function_t* rn_graph_function_at(rn_graph_t* graph, size_t i);

// The library itself, for graph/ and function/.

typedef struct rn_library_entry_t {
  rn_function_t* function;  // Retained
  rn_str_t gradient;        // name of its gradient function; empty: none
} rn_library_entry_t;

// Something built from a function and kept with the library: see function/body.c.
typedef struct rn_library_body_t {
  rn_str_t key;
  const rn_function_t* function;  // what it was built from
  void* body;                     // Owned
  void (*destroy)(void* body);
} rn_library_body_t;

typedef struct rn_library_t {
  rn_allocator_t allocator;
  rn_mutex_t mutex;  // guards all below
  rn_arena_t arena;  // names and keys
  RN_VEC(rn_library_entry_t) entries;
  rn_map_t numbers;                // name -> index into |entries| + 1, as a pointer
  RN_VEC(rn_function_t*) removed;  // Retained: nodes may still use their ops
  RN_VEC(rn_library_body_t) bodies;
  rn_map_t bodies_by_key;  // key -> body, without the bodies of removed functions
} rn_library_t;

RN_MUST_USE rn_status_t rn_library_create(rn_allocator_t allocator, rn_library_t** out);
void rn_library_destroy(rn_library_t* library);

// The function |name|, or NULL; it lives as long as the library, even after it was removed.
rn_function_t* rn_library_find(rn_library_t* library, rn_str_t name);
// Retains |function|, unless the library has an equal one: then |*out_is_new| is false.
RN_MUST_USE rn_status_t rn_library_add(rn_library_t* library, rn_function_t* function,
                                       bool* out_is_new);
// Makes |gradient| the gradient function of |function|; does nothing if the latter is not here.
RN_MUST_USE rn_status_t rn_library_set_gradient(rn_library_t* library, rn_str_t function,
                                                rn_str_t gradient, bool* out_is_new);
// Take back what was new; no node may have used it.
void rn_library_undo_add(rn_library_t* library, rn_str_t name);
void rn_library_undo_gradient(rn_library_t* library, rn_str_t name);

// The body kept under |key|; NULL if there is none.
void* rn_library_get_body(rn_library_t* library, rn_str_t key);
// Keeps |body| for good. If another thread has kept one under this key first, destroys |body| and
// returns the other one; |*out_kept| is the one to use.
RN_MUST_USE rn_status_t rn_library_keep_body(rn_library_t* library, const rn_library_body_t* body,
                                             void** out_kept);

// A graph that uses |library|, which must outlive it.
RN_MUST_USE rn_status_t rn_graph_create_body(rn_allocator_t allocator, rn_library_t* library,
                                             rn_graph_t** out_graph);

#endif  // RUNNEL_GRAPH_LIBRARY_H_
