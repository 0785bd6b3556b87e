// A cluster in one thread, on a simulated clock and network: the masters, workers, rendezvous and
// leases of real clusters, with timing and network faults drawn from a seed. The same seed gives
// the same run.
//
// Nodes are numbered: the tasks first, then clients, which have no server. A call is copied when it
// is sent, as over a network, so caller and callee share no memory.
#ifndef RUNNEL_DIST_SIM_SIM_H_
#define RUNNEL_DIST_SIM_SIM_H_

#include "dist/lease.h"
#include "dist/master/master.h"

typedef struct rn_sim_t rn_sim_t;

// The network.
typedef struct rn_sim_net_t {
  int64_t latency_ns;    // of every message
  int64_t jitter_ns;     // the mean of an exponentially distributed addition
  double break_rate;     // the share of messages whose connection breaks, before or after delivery
  double bytes_per_ns;   // bandwidth of each node's port, each way; 0: unlimited
  double bytes_of_each;  // each byte of a float tensor counts as this many; 0: as one
} rn_sim_net_t;

typedef struct rn_sim_options_t {
  rn_allocator_t allocator;
  uint64_t seed;
  const char* const* tasks;  // "/job:ps/replica:0/task:0"; outlive the simulation
  int task_count, client_count;
  int64_t lease_ns;  // 0: RN_LEASE_NS
  rn_sim_net_t net;
} rn_sim_options_t;

// All tasks are up.
RN_MUST_USE rn_status_t rn_sim_create(const rn_sim_options_t* options, rn_sim_t** out);
// Ends every running call with CANCELLED first. NULL is fine.
void rn_sim_destroy(rn_sim_t* sim);

// The clock. Events happen only in rn_sim_run, which returns at |until_ns| or when no event is
// left.
int64_t rn_sim_now(const rn_sim_t* sim);
void rn_sim_run(rn_sim_t* sim, int64_t until_ns);
rn_timers_t rn_sim_timers(rn_sim_t* sim);  // independent of any node
// The timers of |node|: they stop while it is frozen.
rn_timers_t rn_sim_node_timers(rn_sim_t* sim, int node);
const rn_env_t* rn_sim_node_env(rn_sim_t* sim, int node);

// Random numbers: uniform bits; uniform in [0, 1); exponential with mean 1.
uint64_t rn_sim_random(rn_sim_t* sim);
double rn_sim_uniform(rn_sim_t* sim);
double rn_sim_exponential(rn_sim_t* sim);
double rn_sim_normal(rn_sim_t* sim);

// A hash of all events and their times: equal for equal runs.
uint64_t rn_sim_trace(const rn_sim_t* sim);
int64_t rn_sim_messages(const rn_sim_t* sim);

// Failures of nodes. Callers with running calls are told of a crash, unless it is silent, as when a
// machine loses power. Starting a task that is up does nothing.
void rn_sim_crash(rn_sim_t* sim, int node, bool is_silent);
RN_MUST_USE rn_status_t rn_sim_start(rn_sim_t* sim, int node);
bool rn_sim_is_up(const rn_sim_t* sim, int node);
void rn_sim_freeze(rn_sim_t* sim, int node, int64_t until_ns);
void rn_sim_slow(rn_sim_t* sim, int node,
                 double factor);  // its messages take |factor| times as long
void rn_sim_cut(rn_sim_t* sim, int from, int to, bool is_cut);  // one way

// The worker, or the master, of |to| as |from| calls it.
rn_worker_t* rn_sim_worker(rn_sim_t* sim, int from, int to);
rn_master_t* rn_sim_master(rn_sim_t* sim, int from, int to);
// NULL while the task is down.
rn_local_worker_t* rn_sim_local_worker(rn_sim_t* sim, int node);

#endif  // RUNNEL_DIST_SIM_SIM_H_
