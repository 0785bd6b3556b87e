// Clusters that clients give with their sessions (ConfigProto.cluster_def; stock calls it
// ClusterSpec propagation). Their tasks are servers that may know each other by other names, or not
// at all: workers join and leave from session to session, and no server is started again.
#ifndef RUNNEL_DIST_GIVEN_H_
#define RUNNEL_DIST_GIVEN_H_

#include "dist/worker/steps.h"

// Reaches servers by their addresses. Workers that it finds live as long as it does.
typedef struct rn_address_book_t {
  void* self;
  // The worker at |address|, which the client calls |task|. NULL if it cannot be reached. Any
  // thread may call it.
  rn_worker_t* (*find)(void* self, rn_str_t address, rn_str_t task);
  // Why |find| gave NULL.
  rn_status_t (*missing)(void* self, rn_str_t address, rn_str_t task);
} rn_address_book_t;

typedef struct rn_given_cluster_t rn_given_cluster_t;

// Reads |cluster_def|, a ClusterDef. INVALID_ARGUMENT if a task stands there twice.
RN_MUST_USE rn_status_t rn_given_cluster_create(rn_str_t cluster_def, rn_address_book_t reach,
                                                rn_allocator_t allocator, rn_given_cluster_t** out);
void rn_given_cluster_destroy(rn_given_cluster_t* cluster);  // NULL is fine

// Sets the name of this server's own task. NOT_FOUND if the cluster has no such task.
RN_MUST_USE rn_status_t rn_given_cluster_set_own(rn_given_cluster_t* cluster, rn_str_t task);
// The same by the address under which a client reaches it: "host:port", perhaps with a scheme.
// INVALID_ARGUMENT, in stock's words, if no task or more than one has it.
RN_MUST_USE rn_status_t rn_given_cluster_find_own(rn_given_cluster_t* cluster, rn_str_t target);

int32_t rn_given_cluster_count(const rn_given_cluster_t* cluster);
// Task |i|: "/job:worker/replica:0/task:0", NUL-terminated; the own one is the first.
rn_str_t rn_given_cluster_task(const rn_given_cluster_t* cluster, int32_t i);
// The tasks, for the steps of a session. Valid as long as |cluster|.
rn_peers_t rn_given_cluster_peers(rn_given_cluster_t* cluster);

#endif  // RUNNEL_DIST_GIVEN_H_
