// A task of a cluster in this process: its worker, a master, and the port both answer on.
#ifndef RUNNEL_DIST_SERVER_H_
#define RUNNEL_DIST_SERVER_H_

#include "dist/master/master.h"
#include "dist/rpc/tls.h"
#include "framework/resource.h"

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
  int64_t lease_ns;       // silence after which a peer is dead; 0: rn_lease_default
  int64_t session_gc_ns;  // how long an idle session outlives its client's connection; 0: an hour
  bool lends_nothing;     // tensors go over the network, even from and to tasks of this machine
  // What one client may have, each 0 for the default: bytes of a message (2 GiB), open calls
  // (65536), sessions (1000), bytes of messages at a time (half of the memory that the process may
  // have). All clients together have three quarters of that memory, or |max_client_memory| if that
  // is more.
  size_t max_message, max_client_memory;
  int max_streams, max_sessions;
  int64_t stall_ns;  // how long a client may read nothing of what waits for it; 0: 60 s
  int64_t half_ns;   // how long a call that has begun may bring nothing more; 0: 60 s
  int64_t idle_ns;   // how long a connection without calls and sessions stays; 0: 10 min; -1: for
                     // ever
  int max_connections;  // 0: half of the descriptors that the process may have
  rn_str_t token;       // that every call must have, "": none; copied. See dist/token.h
  rn_tls_t* tls;  // Retained; NULL: plain. With it, other tasks are known by their certificates
  // Where |is_limited|, graphs see files and the network as |allow| says only: see base/fs_only.h.
  // Eager clients may have the task connect to addresses of its own cluster, and to others only if
  // |allow| has "network" or "all", or |reaches_all| is set.
  bool is_limited;
  rn_str_t allow;  // lent for the call
  bool reaches_all;
  // How many elements a resource of kind "Queue" has, for pages; must not wait. NULL: none are
  // shown.
  int64_t (*queue_size)(rn_resource_t* queue);
  // Somebody who may has asked over HTTP for the task's end; on the network's thread. NULL: nobody
  // may.
  void (*asked_to_end)(void* self);
  void* asked_self;
} rn_server_options_t;

// Listens from now on; answers from rn_server_start on.
RN_MUST_USE rn_status_t rn_server_create(const rn_server_options_t* options, rn_server_t** out);
RN_MUST_USE rn_status_t rn_server_start(rn_server_t* server);
// Takes no more calls, ends those under way and waits for their ends. From any thread, any number
// of times.
RN_MUST_USE rn_status_t rn_server_stop(rn_server_t* server);
// Takes no new sessions and steps from now on; what is under way goes on. See dist/gate.h.
void rn_server_drain(rn_server_t* server);
// Whether steps are under way, or values of steps that others have not fetched yet.
bool rn_server_is_busy(rn_server_t* server);
// Waits until it has been stopped.
RN_MUST_USE rn_status_t rn_server_join(rn_server_t* server);
// Stops and frees. NULL is fine.
void rn_server_destroy(rn_server_t* server);

const char* rn_server_target(const rn_server_t* server);  // "grpc://host:port"

#endif  // RUNNEL_DIST_SERVER_H_
