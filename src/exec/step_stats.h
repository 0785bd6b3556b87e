// What happened in a step, when somebody asks: which node ran when, on which device, for how long,
// and how many bytes it made.
#ifndef RUNNEL_EXEC_STEP_STATS_H_
#define RUNNEL_EXEC_STEP_STATS_H_

#include "base/sync.h"
#include "base/vec.h"
#include "framework/kernel.h"

typedef struct rn_node_stats_t {
  rn_str_t node;  // Borrowed from the plan
  const char* op;
  rn_str_t device;
  int64_t start_ns, end_ns;  // of the environment's clock
  int64_t output_bytes;
  int32_t thread;
} rn_node_stats_t;

typedef struct rn_step_stats_t {
  rn_allocator_t allocator;
  rn_mutex_t mutex;
  RN_VEC(rn_node_stats_t) nodes;
  int64_t wall_start_us;  // wall clock at |start_ns|
  int64_t start_ns;
} rn_step_stats_t;

void rn_step_stats_init(rn_step_stats_t* stats, rn_allocator_t allocator, const rn_env_t* env);
void rn_step_stats_clear(rn_step_stats_t* stats);
// Drops the entry when memory is short: statistics never fail a step.
void rn_step_stats_add(rn_step_stats_t* stats, const rn_node_stats_t* node);

#endif  // RUNNEL_EXEC_STEP_STATS_H_
