// Functions of a graph's library, run on a session's devices: what implements framework/function.h.
//
// Each function with its attributes gets programs like a session's steps do: planned when it first
// runs with arguments of some shapes, a few sets of shapes each with a program of its own, then one
// for all others. Kernels of stateful nodes belong to the function, as they belong to a session
// otherwise.
#ifndef RUNNEL_SESSION_FUNCTIONS_H_
#define RUNNEL_SESSION_FUNCTIONS_H_

#include "framework/function.h"
#include "session/programs.h"

// How deeply calls may nest that are made when they run.
#define RN_MAX_CALL_DEPTH 1000

typedef struct rn_functions_options_t {
  rn_graph_t* graph;            // whose library; retained
  const rn_planner_t* planner;  // copied; its kernels are not used
  const rn_env_t* env;          // outlives the kernels of the functions, as do devices and pools
  rn_pool_t* intra;             // threads within kernels; NULL: one
  rn_pool_t* inter;             // threads for kernels beside each other; NULL: one
  rn_str_t config;              // the session's ConfigProto, for kernels that ask; copied
} rn_functions_options_t;

// The caller owns a reference. The last one to go destroys all programs and kernels.
RN_MUST_USE rn_status_t rn_functions_create(const rn_functions_options_t* options,
                                            rn_allocator_t allocator, rn_functions_t** out);
// Destroys all programs and kernels now, for an owner whose devices go, and releases the owner's
// reference. No call may be under way. Others may go on holding the table and its instances; calls
// fail with CANCELLED. NULL is fine.
void rn_functions_close(rn_functions_t* functions);

// The tables of graphs that are gone, kept while others hold them. Whoever owns the devices closes
// what is left when these go. Thread-safe.
typedef struct rn_kept_functions_t {
  rn_mutex_t mutex;
  rn_allocator_t allocator;
  RN_VEC(rn_functions_t*) tables;  // Retained
} rn_kept_functions_t;

void rn_kept_functions_init(rn_kept_functions_t* kept, rn_allocator_t allocator);
// Takes over the owner's reference; NULL is fine. Lets go of every table that nobody else holds.
void rn_kept_functions_add(rn_kept_functions_t* kept, rn_functions_t* functions);
// Closes what others still hold. No call may be under way.
void rn_kept_functions_clear(rn_kept_functions_t* kept);

#endif  // RUNNEL_SESSION_FUNCTIONS_H_
