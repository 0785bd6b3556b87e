// A graph that a master registered with a worker: the worker's part of a program, planned once per
// set of fed shapes (session/programs.h), run any number of times.
//
// All of it runs; nothing is pruned. A client's feed is a Recv with client_terminated, a fetch a
// Send with it.
#ifndef RUNNEL_DIST_WORKER_GRAPH_H_
#define RUNNEL_DIST_WORKER_GRAPH_H_

#include "dist/iface.h"
#include "session/functions.h"
#include "session/planner.h"

typedef struct rn_worker_graph_t rn_worker_graph_t;

typedef struct rn_worker_graph_options_t {
  const rn_env_t*
      env;  // with the pool that steps run on; outlives kernels, which the session keeps
  rn_allocator_t allocator;
  rn_device_t* const* devices;  // of this task; the first is the CPU
  int device_count;
  rn_kernel_cache_t* kernels;     // of the session; holds the functions that its kernels call
  rn_kept_functions_t* kept;      // of the devices' owner: gets the graph's functions at the end
  rn_str_t config;                // a ConfigProto
  rn_collectives_t* collectives;  // of its steps; outlives them
} rn_worker_graph_options_t;

RN_MUST_USE rn_status_t rn_worker_graph_create(const rn_worker_graph_options_t* options,
                                               rn_str_t graph_def, rn_worker_graph_t** out);
void rn_worker_graph_retain(rn_worker_graph_t* graph);
void rn_worker_graph_release(rn_worker_graph_t* graph);  // NULL is fine

// Whether it is known to be quick enough for the network's thread.
bool rn_worker_graph_is_quick(const rn_worker_graph_t* graph);
// Runs a step and ends |call|. Retains the rendezvous meanwhile. Starts in the calling thread and
// continues in others if it has to wait, or if a quick graph must be planned for other shapes.
void rn_worker_graph_run(rn_worker_graph_t* graph, rn_run_graph_t* call,
                         rn_rendezvous_t* rendezvous);

#endif  // RUNNEL_DIST_WORKER_GRAPH_H_
