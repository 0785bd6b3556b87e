// The parts of a task's server, for server.c and server_pages.c.
#ifndef RUNNEL_DIST_SERVER_INTERNAL_H_
#define RUNNEL_DIST_SERVER_INTERNAL_H_

#include "base/fs_only.h"
#include "dist/collective/mpi.h"
#include "dist/coordination/service.h"
#include "dist/eager/service.h"
#include "dist/health.h"
#include "dist/rpc/service.h"
#include "dist/server.h"
#include "dist/server_peers.h"
#include "dist/worker/fence.h"
#include "dist/worker/gc.h"
#include "net/channel.h"

struct rn_server_t {
  rn_allocator_t allocator;
  rn_arena_t arena;
  rn_env_t env;    // the caller's with our pool
  rn_env_t inner;  // the same, restricted for graphs
  rn_fs_only_t* only;
  rn_server_options_t options;
  rn_pool_t* pool;
  rn_loop_t* loop;
  rn_leases_t* leases;
  rn_worker_gc_t* gc;
  rn_rpc_server_t* rpc;
  rn_local_worker_t* worker;
  rn_mpi_t* mpi;             // NULL: not used
  rn_worker_fence_t* fence;  // in front of the worker, for other tasks
  rn_local_master_t* master;
  rn_service_t service;
  rn_eager_service_t* eager;
  rn_coordination_t* coordination;
  rn_health_t* health;
  rn_call_gate_t gate;
  int64_t started_ns;
  rn_str_t own_address;  // of the cluster
  rn_str_t* names;       // of the tasks, this one first
  rn_server_peers_t* peers;
  char target[300];
  rn_mutex_t mutex;  // guards what follows
  rn_cond_t changed;
  bool is_starting, is_started, is_stopped;
  bool is_down;  // no call from outside is under way any more
};

// Answers a request for a page.
void rn_server_page(void* self, const rn_http1_request_t* request, rn_socket_t* from,
                    rn_http1_answer_t* out);

#endif  // RUNNEL_DIST_SERVER_INTERNAL_H_
