// A table of functions as its two halves see it: functions.c makes functions, function_calls.c runs
// them.
#ifndef RUNNEL_SESSION_FUNCTION_CALLS_H_
#define RUNNEL_SESSION_FUNCTION_CALLS_H_

#include <stdatomic.h>

#include "function/function.h"
#include "session/functions.h"

typedef struct rn_functions_table_t {
  rn_functions_t functions;  // first
  _Atomic int refs;
  rn_allocator_t allocator;
  rn_functions_options_t options;
  rn_arena_t arena;  // for what |options| points to
  rn_planner_t planner;
  rn_cancel_t never;                    // the cancellation of calls that cannot be stopped
  rn_mutex_t mutex;                     // guards all below
  rn_kept_functions_t derived;          // tables that were derived from this one
  rn_map_t by_key;                      // key -> rn_session_function_t*
  struct rn_session_function_t* first;  // all of them
  bool is_closed;  // programs are gone; functions stay until their last reference is released
} rn_functions_table_t;

typedef struct rn_session_function_t {
  rn_instance_t instance;  // first
  int32_t refs;            // guarded by the table's mutex, as are the links
  struct rn_session_function_t *next, *previous;
  rn_functions_table_t* table;
  rn_str_t key;
  const rn_function_body_t* body;
  rn_signature_t signature;  // over the body's graph
  rn_planner_t planner;
  rn_kernel_cache_t kernels;
  rn_arena_t arena;
  rn_result_place_t* results;  // NULL: all are in host memory
  rn_mutex_t mutex;            // guards planning
  rn_programs_t programs;
} rn_session_function_t;

// CANCELLED once the table is closed.
RN_MUST_USE rn_status_t rn_functions_check_open(rn_functions_table_t* table);

// Runs |instance| and ends |call|.
void rn_functions_run(rn_functions_t* functions, rn_instance_t* instance, rn_function_call_t* call);

#endif  // RUNNEL_SESSION_FUNCTION_CALLS_H_
