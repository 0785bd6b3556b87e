// Where the stateful nodes of a session's graph are.
//
// Steps are placed one at a time, each without the nodes that it does not need. A variable that one
// step may put on a GPU can have a user in another step that only the CPU runs, so a step alone
// cannot say where the variable belongs. As stock does, the whole graph is therefore placed first,
// and again when it has grown; what is stateful keeps the device it got.
//
// doc/invariants.md: invariant 20b.
#ifndef RUNNEL_PLACE_HOMES_H_
#define RUNNEL_PLACE_HOMES_H_

#include "base/sync.h"
#include "place/place.h"

typedef struct rn_homes_t {
  rn_mutex_t mutex;  // guards what follows; held while a step of |graph| is placed
  rn_graph_t* graph;
  rn_calls_options_t calls;  // how steps are inlined
  size_t seen;               // nodes of |graph| when it was placed last
  rn_map_t devices;          // name of a stateful node -> rn_device_t*
  rn_arena_t arena;          // the names
} rn_homes_t;

// |graph| is borrowed and must outlive the homes, as must the devices of all placements.
void rn_homes_init(rn_homes_t* homes, rn_allocator_t allocator, rn_graph_t* graph,
                   const rn_calls_options_t* calls);
void rn_homes_clear(rn_homes_t* homes);

// Records every stateful node of |ir|, which is placed, that has no home yet. For the placer.
RN_MUST_USE rn_status_t rn_homes_record(rn_homes_t* homes, const rn_ir_t* ir);

#endif  // RUNNEL_PLACE_HOMES_H_
