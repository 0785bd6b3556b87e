// From a step's signature to plans that can be run: prune, optimise, place, partition, compile.
#ifndef RUNNEL_SESSION_PLANNER_H_
#define RUNNEL_SESSION_PLANNER_H_

#include "exec/plan.h"
#include "place/place.h"
#include "session/session.h"

// The compiled form of one signature, shared by all steps of it.
typedef struct rn_program_t {
  rn_allocator_t allocator;
  int32_t plan_count;
  rn_plan_t** plans;  // Owned; one per device that takes part
  rn_arena_t arena;
  bool is_plain;   // a step runs straight through in the calling thread and never waits
  bool exchanges;  // it sends or receives, between plans or within one
} rn_program_t;

// Kinds of passes, as stock names its optimizers, which graph optimizers of plug-ins can turn off.
enum {
  RN_PASS_ARITHMETIC = 1 << 0,        // arithmetic_optimization
  RN_PASS_COMMON_SUBGRAPHS = 1 << 1,  // common_subgraph_elimination
  RN_PASS_CONSTANTS = 1 << 2,         // constant_folding
  RN_PASS_DEPENDENCIES = 1 << 3,      // dependency_optimization
  RN_PASS_LOOPS = 1 << 4,             // loop_optimization
  RN_PASS_REMAPPING = 1 << 5,         // remapping: nodes that compute what several did
  RN_PASS_PRECISION = 1 << 6,         // auto_mixed_precision
};

// How planning is watched and checked; see session/passes.h.
typedef struct rn_plan_debug_t {
  bool verifies;            // check the graph after every pass, and the finished plans
  const char* dump;         // passes before and after which the graph is written; NULL: none
  const char* dump_folder;  // where to; NULL: standard error
} rn_plan_debug_t;

typedef struct rn_planner_t {
  rn_allocator_t allocator;
  const rn_env_t* env;
  rn_place_options_t place;
  rn_kernel_cache_t* kernels;
  rn_functions_t* functions;  // runs functions for kernels; NULL: there are none
  rn_calls_options_t calls;
  int threads;
  bool optimize;
  bool is_alone;  // what plans compute takes no other thread
  rn_precision_t precision;
  uint32_t off;  // kinds of passes that are left out: RN_PASS_*
  rn_plan_debug_t debug;
  const struct rn_pass_watch_t* watch;  // told of every pass; NULL: none
} rn_planner_t;

// |feed_shapes| are the shapes that will be fed, whatever the graph declares; NULL if unknown.
RN_MUST_USE rn_status_t rn_program_create(const rn_planner_t* planner, rn_graph_t* graph,
                                          const rn_signature_t* signature,
                                          const rn_shape_t* feed_shapes,
                                          rn_program_t** out_program);
void rn_program_destroy(rn_program_t* program);

// The graph of a step with its nodes placed as a program would have them, to look at; the caller
// destroys it.
RN_MUST_USE rn_status_t rn_planner_place(const rn_planner_t* planner, rn_graph_t* graph,
                                         const rn_signature_t* signature, rn_ir_t** out);

#endif  // RUNNEL_SESSION_PLANNER_H_
