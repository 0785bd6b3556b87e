// Clients that train on a simulated cluster, and checks that must hold whatever happens.
//
// Every worker task has a client, which opens a session there, reads the variables of the parameter
// servers, computes for a while and adds its gradient: to accumulators, from which the chief takes
// as many as an update needs and issues one token per worker for the next step, or directly to the
// variables. A gradient encodes its worker and its number, so that sums can be checked.
#ifndef RUNNEL_DIST_SIM_TRAINING_H_
#define RUNNEL_DIST_SIM_TRAINING_H_

#include "dist/sim/sim.h"

typedef struct rn_training_t rn_training_t;

typedef struct rn_training_options_t {
  rn_allocator_t allocator;
  uint64_t seed;
  int servers, workers;
  bool is_sync;
  int needed;        // gradients per synchronous update; the other workers are backups
  int64_t lease_ns;  // 0: RN_LEASE_NS
  int64_t wait_ns;   // how long a step waits for tokens or gradients; 0: 5 s
  bool trusts;       // nothing is checked: gradients are one number, not some per worker
  int64_t extra;     // floats of a variable besides those that are checked
  rn_sim_net_t net;
  bool is_loud;  // prints how every call ends
  // How long a worker computes.
  int64_t (*compute_ns)(void* self, rn_sim_t* sim, int worker);
  void* compute_self;
} rn_training_options_t;

// The floats of a server's variable, which are those of a gradient.
int64_t rn_training_length(const rn_training_options_t* options);

// Nodes: servers, then workers, then the workers' clients, then the chief's client, whose master is
// the first worker.
RN_MUST_USE rn_status_t rn_training_create(const rn_training_options_t* options,
                                           rn_training_t** out);
void rn_training_destroy(rn_training_t* training);  // NULL is fine
rn_sim_t* rn_training_sim(rn_training_t* training);

// Crashes a node: see rn_sim_crash. A client forgets its session.
void rn_training_crash(rn_training_t* training, int node, bool is_silent);
// The node was restarted: the values of its variables are lost.
void rn_training_restarted(rn_training_t* training, int node);
// Clients cancel their calls and close their sessions; checks that nothing of theirs is left, and
// the values of the variables. All nodes must be up.
void rn_training_end(rn_training_t* training);

typedef struct rn_training_stats_t {
  int64_t updates;          // of the chief, or of all clients if there is none
  int64_t last_update_ns;   // when the last of them was
  int64_t steps, failures;  // calls of clients
  int64_t repeated;         // repeated calls
  int64_t sessions;         // that were opened
  int64_t least;            // updates, or rounds, of the client that has the fewest
} rn_training_stats_t;
rn_training_stats_t rn_training_stats(const rn_training_t* training);
// When update |i| was.
int64_t rn_training_update_ns(const rn_training_t* training, int64_t i);
// The first failed check; "" if all hold.
const char* rn_training_fault(const rn_training_t* training);

#endif  // RUNNEL_DIST_SIM_TRAINING_H_
