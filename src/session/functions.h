// Functions of a graph's library, run on a session's devices: what implements framework/function.h.
//
// Each function with its attributes gets programs like a session's steps do: planned when it first
// runs with arguments of some shapes, a few sets of shapes each with a program of its own, then one
// for all others. Kernels of stateful nodes belong to the function, as they belong to a session
// otherwise.
#ifndef RUNNEL_SESSION_FUNCTIONS_H_
#define RUNNEL_SESSION_FUNCTIONS_H_

#include "framework/function.h"
#include "session/planner.h"

// How deeply calls may nest that are made when they run.
#define RN_MAX_CALL_DEPTH 1000

typedef struct rn_functions_options_t {
  rn_graph_t* graph;            // whose library; outlives the functions, as does all of this
  const rn_planner_t* planner;  // copied; its kernels are not used
  rn_env_t* env;
  rn_pool_t* intra;  // threads within kernels; NULL: one
  rn_pool_t* inter;  // threads for kernels beside each other; NULL: one
  rn_str_t config;   // the session's ConfigProto, for kernels that ask
} rn_functions_options_t;

RN_MUST_USE rn_status_t rn_functions_create(const rn_functions_options_t* options,
                                            rn_allocator_t allocator, rn_functions_t** out);
// No call may be under way. Whoever still holds an instance must not use it. NULL is fine.
void rn_functions_destroy(rn_functions_t* functions);

#endif  // RUNNEL_SESSION_FUNCTIONS_H_
