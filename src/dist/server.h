// A task of a cluster in this process: its worker, its master, and the port that serves both.
#ifndef RUNNEL_DIST_SERVER_H_
#define RUNNEL_DIST_SERVER_H_

#include "dist/gate.h"
#include "dist/master/master.h"
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
  rn_str_t job;  // this task
  int32_t index;
  rn_str_t address;  // where to listen; "": the port of its own address, on loopback if that is a
                     // loopback address, else on every interface
  int threads;       // that steps run on; 0: one per CPU, and at least two
  int cpu_devices, null_devices;
  rn_gpu_options_t gpu;   // |max_count| 0: no GPUs
  int64_t lease_ns;       // silence after which a peer is lost; 0: rn_lease_default
  int64_t session_gc_ns;  // how long an idle session outlives its client's connection; 0: an hour
  bool lends_nothing;     // tensors always go over the network, even between tasks of one machine
  // Limits per client, each 0 for the default: bytes of a message (2 GiB), open calls (65536),
  // sessions (1000), bytes of all messages in memory (half of the process's memory limit). All
  // clients together may use three quarters of that limit, or |max_client_memory| if that is more.
  size_t max_message, max_client_memory;
  int max_streams, max_sessions;
  int64_t stall_ns;  // how long a client may leave pending data unread; 0: 60 s
  int64_t half_ns;   // how long an incomplete request may make no progress; 0: 60 s
  int64_t idle_ns;   // how long a connection without calls and sessions stays open; 0: 10 min; -1:
                     // for ever
  int max_connections;  // 0: half of the process's descriptor limit
  rn_tokens_t* tokens;  // that calls must send; Retained; NULL: none. Roles: dist/gate.h
  rn_tls_t* tls;  // Retained; NULL: plain. With it, other tasks are known by their certificates
  // The task that knows the groups of collectives, "/job:worker/replica:0/task:0"; "": chief 0, or
  // else worker 0, or else the first task by name; copied.
  rn_str_t collective_leader;
  bool collective_nccl;  // collectives of GPUs go by NCCL if they can, whatever their hints say
  bool uses_mpi;  // collectives of all tasks run by MPI, of which each task is a rank (mpi.h)
  bool uses_ucx;  // large tensors between tasks of the cluster travel by UCX (rpc/wire.h), where
                  // that is possible; they are not encrypted then
  // If |is_limited|, graphs may use only the files and network that |allow| lists: see
  // base/fs_only.h. Clients may make the task connect to addresses of its own cluster, and to
  // others only if |allow| has "network" or "all", or |reaches_all| is set, or if |reaches_local|
  // is set and both are loopback addresses.
  bool is_limited;
  rn_str_t allow;  // borrowed for the call
  bool reaches_all, reaches_local;
  // The number of elements of a resource of kind "Queue", for status pages; must not block. NULL:
  // queues are not shown.
  int64_t (*queue_size)(rn_resource_t* queue);
  bool has_operators;  // only operators' certificates allow to stop the task and clear variables
  // Told of calls that open, close or clear something, and of refused ones, on any thread. NULL: no
  // one is.
  void (*audit)(void* self, const rn_audit_event_t* event);
  void* audit_self;
  // Called on the network's thread when an authorized HTTP request asks the task to quit. NULL: no
  // request may.
  void (*asked_to_end)(void);
} rn_server_options_t;

// Opens the port; connections wait there until rn_server_start.
RN_MUST_USE rn_status_t rn_server_create(const rn_server_options_t* options, rn_server_t** out);
RN_MUST_USE rn_status_t rn_server_start(rn_server_t* server);
// Refuses new calls, ends running ones and waits for them. Any thread may call it, any number of
// times.
RN_MUST_USE rn_status_t rn_server_stop(rn_server_t* server);
// Refuses new sessions and steps from now on; running ones continue. See dist/gate.h.
void rn_server_drain(rn_server_t* server);
// Whether steps are running, or other tasks have not yet fetched values of steps or collectives.
bool rn_server_is_busy(rn_server_t* server);
// Waits until it has been stopped.
RN_MUST_USE rn_status_t rn_server_join(rn_server_t* server);
// Stops and frees. NULL is fine.
void rn_server_destroy(rn_server_t* server);

// Borrowed; for an eager context of this process that takes the place of its devices.
rn_local_worker_t* rn_server_worker(rn_server_t* server);
struct rn_eager_service_t* rn_server_eager(rn_server_t* server);  // Borrowed
rn_str_t rn_server_address(const rn_server_t* server);            // in its cluster
const char* rn_server_target(const rn_server_t* server);          // "grpc://host:port"

#endif  // RUNNEL_DIST_SERVER_H_
