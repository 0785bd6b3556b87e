// Parses the text form of a cluster; runnel/cluster.h is the API over it. See runnel/cluster.h.
#ifndef RUNNEL_TRAIN_CLUSTER_SPEC_H_
#define RUNNEL_TRAIN_CLUSTER_SPEC_H_

#include "base/arena.h"
#include "base/vec.h"
#include "runnel/cluster.h"

typedef struct rn_cluster_task_t {
  rn_str_t job, address;  // NUL-terminated
  int32_t index;
} rn_cluster_task_t;

struct rn_cluster_t {
  rn_allocator_t allocator;
  rn_arena_t arena;  // holds all strings
  RN_VEC(rn_cluster_task_t) tasks;
  const char* job;  // the job of this process; NULL if the text does not say
  int task;
};

// |text| is the short form, JSON, or, if |is_config|, the contents of TF_CONFIG.
RN_MUST_USE rn_status_t rn_cluster_create(rn_allocator_t allocator, rn_str_t text, bool is_config,
                                          rn_cluster_t** out);

#endif  // RUNNEL_TRAIN_CLUSTER_SPEC_H_
