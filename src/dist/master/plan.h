// Cuts a signature into one GraphDef per task that takes part.
#ifndef RUNNEL_DIST_MASTER_PLAN_H_
#define RUNNEL_DIST_MASTER_PLAN_H_

#include "place/place.h"

// A task of the session's cluster.
typedef struct rn_plan_part_t {
  int task;
  rn_strbuf_t graph_def;
} rn_plan_part_t;

typedef struct rn_master_plan_t {
  rn_allocator_t allocator;
  RN_VEC(rn_plan_part_t) parts;
  bool is_straight;  // no conditionals or loops: after a successful step, everything that was sent
                     // was received
  bool sends;        // the master's own part sends to other tasks
  // The same number for all graphs with these collectives, also those of other masters, whose steps
  // must be numbered alike (dist/collective/sequences.h); 0: there are none.
  int64_t collective_key;
} rn_master_plan_t;
void rn_master_plan_clear(rn_master_plan_t* plan);

typedef struct rn_master_plan_options_t {
  rn_allocator_t allocator;
  rn_place_options_t place;  // devices[0] is the master's CPU; those of other tasks are stand-ins
  const int* tasks;          // by device
  int task_count;
  rn_calls_options_t calls;
  bool optimize;
  const rn_str_t *feed_names, *fetch_names;  // the client's names, in the signature's order
} rn_master_plan_options_t;

RN_MUST_USE rn_status_t rn_master_plan(const rn_master_plan_options_t* options, rn_graph_t* graph,
                                       const rn_signature_t* signature, rn_master_plan_t* out);
// Whether every node of |graph| has a device that can run it; checked when a client extends its
// graph.
RN_MUST_USE rn_status_t rn_master_check(const rn_master_plan_options_t* options, rn_graph_t* graph);

#endif  // RUNNEL_DIST_MASTER_PLAN_H_
