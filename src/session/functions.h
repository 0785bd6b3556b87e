// Runs functions of a graph's library on a session's devices; implements framework/function.h.
//
// Each function with its attributes has programs like a session's step (programs.h): the first few
// sets of argument shapes get one each, all others share one. Kernels of stateful nodes belong to
// the function, where a step's belong to the session.
#ifndef RUNNEL_SESSION_FUNCTIONS_H_
#define RUNNEL_SESSION_FUNCTIONS_H_

#include "framework/function.h"
#include "session/programs.h"

// The maximum depth of calls at run time.
#define RN_MAX_CALL_DEPTH 1000

typedef struct rn_functions_options_t {
  rn_graph_t* graph;              // whose library; retained
  const rn_planner_t* planner;    // copied; its kernels are not used
  const rn_env_t* env;            // outlives the kernels of the functions, as do devices and pools
  rn_pool_t* intra;               // threads within kernels; NULL: one
  rn_pool_t* inter;               // threads that run kernels in parallel; NULL: one
  rn_str_t config;                // the session's ConfigProto, for kernels that read it; copied
  rn_collectives_t* collectives;  // of the steps that call; outlives them. May be NULL
} rn_functions_options_t;

// The caller owns a reference. The last one to go destroys all programs and kernels.
RN_MUST_USE rn_status_t rn_functions_create(const rn_functions_options_t* options,
                                            rn_allocator_t allocator, rn_functions_t** out);
// Where the arguments of a call are, by argument.
typedef struct rn_args_place_t {
  const rn_str_t* resources;   // the devices of resources; "" for other values
  rn_device_t* const* memory;  // the devices in whose memory values are; NULL for host memory
} rn_args_place_t;
// Where a result is: the device that computes it, and the one whose memory holds it, NULL for host
// memory.
typedef struct rn_result_place_t {
  rn_device_t *device, *memory;
} rn_result_place_t;

// Like rn_function_prepare, for calls with such arguments. Results stay in the memory of the
// devices that compute them; |*out_results| says where, by result, as long as the instance lives.
// Both may be NULL: then all values are in host memory.
RN_MUST_USE rn_status_t rn_functions_prepare(rn_functions_t* functions, const rn_func_attr_t* call,
                                             rn_str_t device, const rn_args_place_t* args,
                                             rn_instance_t** out,
                                             const rn_result_place_t** out_results);
// Destroys all programs and kernels before their devices go away, and releases the owner's
// reference. No call may be under way. The table and its instances may still be referenced; calls
// fail with CANCELLED. NULL is fine.
void rn_functions_close(rn_functions_t* functions);

// Whether there is more than one reference.
bool rn_functions_is_shared(const rn_functions_t* functions);

// Tables of destroyed graphs, or tables that were derived from another, that are still referenced.
// The owner of the devices closes the remaining ones before it destroys them. Thread-safe.
typedef struct rn_kept_functions_t {
  rn_mutex_t mutex;
  rn_allocator_t allocator;
  RN_VEC(rn_functions_t*) tables;  // Retained
} rn_kept_functions_t;

void rn_kept_functions_init(rn_kept_functions_t* kept, rn_allocator_t allocator);
// Takes over the owner's reference; NULL is fine. Releases every table with no other reference.
void rn_kept_functions_add(rn_kept_functions_t* kept, rn_functions_t* functions);
// Closes the tables that are still referenced. No call may be under way.
void rn_kept_functions_clear(rn_kept_functions_t* kept);

#endif  // RUNNEL_SESSION_FUNCTIONS_H_
