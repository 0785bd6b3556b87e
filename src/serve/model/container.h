// Backends that are processes of their own: containers. doc/containers.md has their protocol.
//
// The server starts a container, from container.pbtxt in the version's folder, or connects to one.
// A container that crashes, hangs or breaks the protocol costs its own batches (UNAVAILABLE) and is
// started again, with a growing delay. What it replies is checked, never trusted.
//
//   rn_containers_t             one per server: the loop that all containers share
//     rn_container_t            one per replica: a backend
//       rn_container_process_t  while it runs: start, output, end
//       rn_container_link_t     while it is connected: frames
//         lanes                 one per batch at a time, each with its shared memory
#ifndef RUNNEL_SERVE_MODEL_CONTAINER_H_
#define RUNNEL_SERVE_MODEL_CONTAINER_H_

#include "serve/model/backend.h"
#include "serve/model/container_config.h"

typedef struct rn_containers_t rn_containers_t;

// |env| outlives it.
RN_MUST_USE rn_status_t rn_containers_create(const rn_env_t* env, rn_allocator_t allocator,
                                             rn_containers_t** out);
// All backends must be destroyed before. NULL is fine.
void rn_containers_destroy(rn_containers_t* containers);

typedef struct rn_container_options_t {
  rn_containers_t* containers;  // outlives the backends
  rn_str_t model;
  int64_t number;
  const char* folder;    // of the version: rn_container_is_in, or any with |program|
  const char* program;   // this command, to isolate SavedModels (container_config.h); NULL: never
  int replicas;          // 0: as the file says
  int64_t memory_bytes;  // the limit of a process; 0: as the file says
} rn_container_options_t;

// Starts the replicas and waits until each has said what it serves. The caller owns |*out|, an
// array from the allocator of |containers|, and its backends. The error of a process that ended has
// its exit status and its last line of output.
RN_MUST_USE rn_status_t rn_container_load(const rn_container_options_t* options,
                                          rn_backend_t*** out, int* out_count);

// For status pages and tests; of a backend that rn_container_load made.
typedef struct rn_container_stats_t {
  int pid;                  // 0: it is not running, or not ours
  int64_t starts, batches;  // so far
  int64_t shared, inlined;  // bytes of inputs in shared memory and in frames
} rn_container_stats_t;
rn_container_stats_t rn_container_stats(rn_backend_t* backend);

#endif  // RUNNEL_SERVE_MODEL_CONTAINER_H_
