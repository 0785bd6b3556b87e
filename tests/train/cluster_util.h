// A cluster in this process, on loopback, and replicas that train on it.
#ifndef RUNNEL_TESTS_TRAIN_CLUSTER_UTIL_H_
#define RUNNEL_TESTS_TRAIN_CLUSTER_UTIL_H_

#include <pthread.h>
#include <stdatomic.h>

#include "util.h"

#define CLUSTER_TEST(group, name) Test(group, name, .timeout = 120)

// A variable of |size| zeros.
const rn_var_t* zero_vector(rn_scope_t* s, const char* name, int64_t size);

// Servers of a cluster with two parameter servers and some workers.
enum { MOST_WORKERS = 8 };
typedef struct cluster_t {
  rn_cluster_t* cluster;
  TF_Status* status;
  TF_Server *ps[2], *workers[MOST_WORKERS];
  char targets[MOST_WORKERS][64];
  int worker_count;
} cluster_t;

cluster_t cluster_open(int workers);
void cluster_close(cluster_t* c);
// Starts the server of one task.
TF_Server* serve(cluster_t* c, const char* job, int task);

// A replica that learns w by the gradient that is fed: w -= 0.125 x, so that every sum is exact.
typedef struct replica_t {
  trial_t t;
  int task;
  rn_edge_t x;
  const rn_var_t* w;
  rn_sync_replicas_t sync;
  rn_node_t* train;
  rn_saver_t* saver;
  rn_supervisor_t* supervisor;
} replica_t;

typedef struct plan_t {
  int replicas, total;  // 0: asynchronous
  const char* group;
  bool is_group_chief;
  const char* directory;
  double patience;
  int64_t save_steps;
} plan_t;

replica_t replica_open(const cluster_t* c, int task, plan_t plan);
void replica_close(replica_t* r);
bool replica_step(replica_t* r, float x);
// Fails the test, with the message of the replica's status, unless |good|.
void replica_must(replica_t* r, bool good);
// w and the global step, in one look.
void replica_look(replica_t* r, float w[2], int64_t* step);

// Steps of one replica in a thread of its own.
typedef struct runner_t {
  pthread_t thread;
  replica_t* replica;
  _Atomic int64_t last, seen;
  float x;
  int steps;
} runner_t;
void* run_replica(void* arg);
// Runs |count| replicas up to the global step |last|; the number of their steps.
int run_all(replica_t* replicas, int count, int64_t last, float x);

#endif  // RUNNEL_TESTS_TRAIN_CLUSTER_UTIL_H_
