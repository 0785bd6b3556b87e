// Statistics of a traced step: which node ran when, on which device, for how long, and how many
// bytes it produced.
#ifndef RUNNEL_EXEC_STEP_STATS_H_
#define RUNNEL_EXEC_STEP_STATS_H_

#include "base/sync.h"
#include "base/vec.h"
#include "framework/kernel.h"

// A result of a node.
typedef struct rn_output_stats_t {
  int32_t slot;
  rn_dtype_t dtype;
  rn_shape_t shape;  // in the statistics' arena
  int64_t bytes;
  const void* data;  // where it was
} rn_output_stats_t;

typedef struct rn_node_stats_t {
  rn_str_t node;  // Borrowed from the plan
  const char* op;
  rn_str_t label;  // for timelines; Borrowed likewise; empty: name and op alone
  rn_str_t device;
  int64_t start_ns, end_ns;  // of the environment's clock
  int64_t output_bytes;      // of all results; rn_step_stats_add counts those it is given
  int32_t thread;
  bool is_given;                      // its results were there before: no memory was taken for them
  size_t first_output, output_count;  // set by rn_step_stats_add
} rn_node_stats_t;

typedef struct rn_step_stats_t {
  rn_allocator_t allocator;
  rn_mutex_t mutex;
  RN_VEC(rn_node_stats_t) nodes;
  RN_VEC(rn_output_stats_t) outputs;
  rn_arena_t arena;
  int64_t wall_start_us;  // wall clock at |start_ns|
  int64_t start_ns;
} rn_step_stats_t;

void rn_step_stats_init(rn_step_stats_t* stats, rn_allocator_t allocator, const rn_env_t* env);
void rn_step_stats_clear(rn_step_stats_t* stats);
// Records a node that ran and its results, except those that are unset or references. Drops the
// entry without memory: statistics never fail a step.
void rn_step_stats_add(rn_step_stats_t* stats, rn_node_stats_t node, const rn_tensor_t* outputs,
                       int32_t output_count);

#endif  // RUNNEL_EXEC_STEP_STATS_H_
