// The workload of a step, and what its costs teach.
#ifndef RUNNEL_PLACE_AUTO_FROM_STEP_H_
#define RUNNEL_PLACE_AUTO_FROM_STEP_H_

#include "place/auto/costs.h"
#include "place/auto/workload.h"
#include "place/place.h"

// How long a node took in a traced step; a node of a loop has several entries.
typedef struct rn_trace_entry_t {
  rn_str_t node;
  rn_str_t device;  // full name
  int64_t ns;
  int64_t bytes;  // of its first output; 0: unknown
  int32_t step;   // number of the traced step, from 0
} rn_trace_entry_t;

// Adds the costs of the nodes of |ir|: for each, the median over the steps that were traced. If the
// entries are of this step, nodes without an entry were made part of others, and took nothing.
RN_MUST_USE rn_status_t rn_costs_learn(rn_costs_t* costs, rn_ir_t* ir,
                                       const rn_trace_entry_t* entries, size_t count);

typedef struct rn_step_work_t {
  rn_workload_t work;
  int32_t* nodes;                     // by node of the workload: node of the IR; -1: the client
  int32_t* numbers;                   // by node of the IR: node of the workload; -1: none
  int32_t* start;                     // by group: where the placer puts it
  int32_t sources[RN_COST_SOURCES];   // nodes by how their cost is known, without those that run
                                      // nothing
  double source_ns[RN_COST_SOURCES];  // what they cost together
} rn_step_work_t;

// Makes the workload of |ir|, which is placed as the client or the rules of the placer want it,
// with the devices of |place|, which are those of |fleet|. Groups are those of the placer, and a
// loop is one group. Without |crosses|, feeds and fetches are on every device; with it, they are on
// the first, as in a cluster. Everything is in |arena|.
RN_MUST_USE rn_status_t rn_step_work_create(rn_ir_t* ir, const rn_place_options_t* place,
                                            const rn_fleet_t* fleet, rn_costs_t* costs,
                                            bool crosses, rn_arena_t* arena, rn_step_work_t* out);

#endif  // RUNNEL_PLACE_AUTO_FROM_STEP_H_
