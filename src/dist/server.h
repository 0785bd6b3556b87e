// A task of a cluster in this process: its worker, a master, and the port both answer on.
#ifndef RUNNEL_DIST_SERVER_H_
#define RUNNEL_DIST_SERVER_H_

#include "dist/master.h"

typedef struct rn_server_t rn_server_t;

// One task: "ps", 0, "host:port".
typedef struct rn_server_task_t {
  rn_str_t job;
  int32_t index;
  rn_str_t address;
} rn_server_task_t;

typedef struct rn_server_options_t {
  const rn_env_t* env;  // outlives the server
  rn_allocator_t allocator;
  const rn_server_task_t* tasks;  // the cluster; copied
  size_t task_count;
  rn_str_t job;  // which of them this is
  int32_t index;
  rn_str_t address;  // where to listen; "": the port of its own address, on loopback if that is
                     // where it points, else on every interface
  int threads;       // that steps run on; 0: one for each processor, and two at least
  int cpu_devices, null_devices;
  int64_t lease_ns;  // silence after which a peer is dead; 0: 10 s
} rn_server_options_t;

// Listens from now on; answers from rn_server_start on.
RN_MUST_USE rn_status_t rn_server_create(const rn_server_options_t* options, rn_server_t** out);
RN_MUST_USE rn_status_t rn_server_start(rn_server_t* server);
// Takes no more calls and ends those under way.
RN_MUST_USE rn_status_t rn_server_stop(rn_server_t* server);
// Waits until it is stopped.
RN_MUST_USE rn_status_t rn_server_join(rn_server_t* server);
// Stops and frees. NULL is fine.
void rn_server_destroy(rn_server_t* server);

const char* rn_server_target(const rn_server_t* server);  // "grpc://host:port"

#endif  // RUNNEL_DIST_SERVER_H_
