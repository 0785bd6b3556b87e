// Clients that train on a simulated cluster, and what must hold of it whatever happens.
//
// Every worker task has a client, which opens a session there, reads the variables of the parameter
// servers, computes for a while and gives its gradient: to accumulators, of which the chief takes
// as many as an update needs and hands out a token each for the next step, or to the variables
// themselves. A gradient says whose it is and which, so that the sums can be read.
#ifndef RUNNEL_DIST_SIM_TRAINING_H_
#define RUNNEL_DIST_SIM_TRAINING_H_

#include "dist/sim/sim.h"

typedef struct rn_training_t rn_training_t;

typedef struct rn_training_options_t {
  rn_allocator_t allocator;
  uint64_t seed;
  int servers, workers;
  bool is_sync;
  int needed;        // gradients of an update, if it is; the other workers are backups
  int64_t lease_ns;  // 0: RN_LEASE_NS
  int64_t wait_ns;   // how long a step waits for tokens or gradients; 0: 5 s
  bool trusts;       // what an update takes is not fetched to be looked at
  int64_t extra;     // floats of a variable besides those that are looked at
  rn_sim_net_t net;
  bool is_loud;  // prints how every call ends
  // How long a worker computes.
  int64_t (*compute_ns)(void* self, rn_sim_t* sim, int worker);
  void* compute_self;
} rn_training_options_t;

// Nodes: servers, then workers, then the workers' clients, then the chief's, which the first worker
// is the master of.
RN_MUST_USE rn_status_t rn_training_create(const rn_training_options_t* options,
                                           rn_training_t** out);
void rn_training_destroy(rn_training_t* training);  // NULL is fine
rn_sim_t* rn_training_sim(rn_training_t* training);

// Crashes a node: see rn_sim_crash. A client forgets its session.
void rn_training_crash(rn_training_t* training, int node, bool is_silent);
// It has been started again: what its variables held is gone.
void rn_training_restarted(rn_training_t* training, int node);
// Clients give up what they wait for and close their sessions; then nothing of theirs may be left.
// Checks it, and what the variables hold. Everything has to be up.
void rn_training_end(rn_training_t* training);

typedef struct rn_training_stats_t {
  int64_t updates;          // of the chief, or of all clients if there is none
  int64_t last_update_ns;   // when the last of them was
  int64_t steps, failures;  // calls of clients
  int64_t repeated;         // calls that were made again under their number
  int64_t sessions;         // that were opened
  int64_t least;            // updates, or rounds, of the client that has the fewest
} rn_training_stats_t;
rn_training_stats_t rn_training_stats(const rn_training_t* training);
// When update |i| was.
int64_t rn_training_update_ns(const rn_training_t* training, int64_t i);
// The first thing that does not hold; "" if everything does.
const char* rn_training_fault(const rn_training_t* training);

#endif  // RUNNEL_DIST_SIM_TRAINING_H_
