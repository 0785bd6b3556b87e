// A cluster as people write it down, below the C API. See runnel/cluster.h.
#ifndef RUNNEL_TRAIN_CLUSTER_SPEC_H_
#define RUNNEL_TRAIN_CLUSTER_SPEC_H_

#include "base/arena.h"
#include "base/vec.h"
#include "runnel/cluster.h"

typedef struct rn_cluster_task_t {
  rn_str_t job, address;  // both end in a 0
  int32_t index;
} rn_cluster_task_t;

struct rn_cluster_t {
  rn_allocator_t allocator;
  rn_arena_t arena;  // all text
  RN_VEC(rn_cluster_task_t) tasks;
  const char* job;  // which one this process is; NULL: not said
  int task;
};

// |text| is the short form or JSON, or, if |is_config|, what TF_CONFIG holds.
RN_MUST_USE rn_status_t rn_cluster_create(rn_allocator_t allocator, rn_str_t text, bool is_config,
                                          rn_cluster_t** out);

#endif  // RUNNEL_TRAIN_CLUSTER_SPEC_H_
