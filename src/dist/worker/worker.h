// The worker of this process: its devices, the sessions that masters opened on it, the graphs they
// registered, and the running steps.
#ifndef RUNNEL_DIST_WORKER_WORKER_H_
#define RUNNEL_DIST_WORKER_WORKER_H_

#include "device/part.h"
#include "dist/collective/cluster.h"
#include "dist/given.h"
#include "framework/collective.h"
#include "session/session.h"

typedef struct rn_local_worker_t rn_local_worker_t;

typedef struct rn_local_worker_options_t {
  const rn_env_t* env;  // with the pool that steps run on; outlives the worker
  rn_allocator_t allocator;
  const char* task;  // "/job:worker/replica:0/task:0"
  int cpu_devices, null_devices;
  rn_gpu_options_t gpu;  // |max_count| 0: no GPUs
  rn_peers_t peers;
  rn_address_book_t reach;     // of tasks in clusters that clients give; |find| NULL: none can be
  rn_str_t collective_leader;  // the task that knows the groups of collectives; "": this one
  bool collective_nccl;        // collectives go by the cards' library if they can
  rn_exchanger_t exchanger;    // outlives the worker; |self| NULL: none
} rn_local_worker_options_t;

RN_MUST_USE rn_status_t rn_local_worker_create(const rn_local_worker_options_t* options,
                                               rn_local_worker_t** out);
// Cancels running steps and waits for them; no more are run. Must come before the peers are
// destroyed. NULL is fine.
void rn_local_worker_stop(rn_local_worker_t* worker);
// Stops it if needed. No call may come any more. NULL is fine.
void rn_local_worker_destroy(rn_local_worker_t* worker);

// The worker's interface. Calls may block for as long as planning or computing takes.
rn_worker_t* rn_local_worker_face(rn_local_worker_t* worker);
rn_device_t* rn_local_worker_device(const rn_local_worker_t* worker, int i);
// |device| as other tasks see it; borrows its strings.
rn_device_info_t rn_device_info(const rn_device_t* device);
int rn_local_worker_device_count(const rn_local_worker_t* worker);
// Gives the devices of |session| the incarnations of the worker's devices of the same names, by
// which other tasks know them.
void rn_local_worker_identify(const rn_local_worker_t* worker, rn_session_t* session);
// Its steps, for other services whose values other tasks fetch from it. Borrowed.
rn_steps_t* rn_local_worker_steps(rn_local_worker_t* worker);

// The collectives of its steps, for other services that run steps on its devices.
rn_collectives_t* rn_local_worker_collectives(rn_local_worker_t* worker);
struct rn_cluster_collectives_t* rn_local_worker_cluster(rn_local_worker_t* worker);

// Whether collectives have left values that other tasks have not fetched yet.
bool rn_local_worker_has_mail(rn_local_worker_t* worker);

// Masters of other tasks that have sessions here, one entry per session.
typedef struct rn_worker_master_t {
  rn_str_t task;
  uint64_t incarnation;
  int64_t used_ns;      // when it last used its session
  rn_worker_t* worker;  // of a master that a client named; NULL: a peer
} rn_worker_master_t;
RN_MUST_USE rn_status_t rn_local_worker_masters(rn_local_worker_t* worker, rn_arena_t* arena,
                                                rn_worker_master_t** out, size_t* out_count);
// Closes the sessions of a dead master.
void rn_local_worker_forget_master(rn_local_worker_t* worker, rn_str_t master,
                                   uint64_t incarnation);

// For status pages.
typedef struct rn_worker_stats_t {
  size_t sessions, graphs, steps;
  int64_t steps_run;
} rn_worker_stats_t;
rn_worker_stats_t rn_local_worker_stats(rn_local_worker_t* worker);

#endif  // RUNNEL_DIST_WORKER_WORKER_H_
