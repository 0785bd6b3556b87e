// Automatic placement in a session: once, before its first step, a search places the step that the
// client names, or the whole graph; all steps then keep to it.
#ifndef RUNNEL_PLACE_AUTO_WISHES_H_
#define RUNNEL_PLACE_AUTO_WISHES_H_

#include "place/auto/fleet.h"
#include "place/auto/from_step.h"
#include "place/auto/search.h"

typedef struct rn_auto_place_t {
  rn_allocator_t allocator;
  rn_costs_t* costs;  // Owned
  rn_str_t step;      // names of nodes, separated by commas; "": the whole graph. Borrowed
  int32_t lanes;      // see rn_fleet_options_t
  bool is_apart;      // likewise
  double* speeds;     // by device, the last for all further ones; NULL: 1
  int32_t speed_count;
  double margin;                    // see rn_search_options_t
  rn_arena_t arena;                 // holds what follows
  RN_VEC(rn_trace_entry_t) traces;  // to learn from when the step is known
  bool is_made;
  rn_wishes_t wishes;
} rn_auto_place_t;

RN_MUST_USE rn_status_t rn_auto_place_create(rn_allocator_t allocator, rn_auto_place_t** out);
void rn_auto_place_destroy(rn_auto_place_t* automatic);

// For the placer, which holds the lock of |inout_place->homes|: makes the wishes if all nodes of
// the step exist, and gives them to |inout_place|. Stateful nodes stay where they are. A step that
// cannot be placed gets no wishes.
RN_MUST_USE rn_status_t rn_auto_place_wish(rn_auto_place_t* automatic,
                                           rn_place_options_t* inout_place);

// What a search found for a step: for tools, and for the above.
typedef struct rn_auto_result_t {
  rn_fleet_t fleet;
  rn_step_work_t step;
  rn_search_result_t search;
} rn_auto_result_t;
// Searches a placement of |ir|, which is not placed yet; leaves it placed by the placer's rules.
// |place| must have no homes to lock; |fleet| is in |out|. All results are in |arena|.
RN_MUST_USE rn_status_t rn_auto_search(rn_ir_t* ir, const rn_place_options_t* place,
                                       rn_costs_t* costs, const rn_fleet_options_t* fleet,
                                       bool crosses, const rn_search_options_t* options,
                                       rn_arena_t* arena, rn_auto_result_t* out);
// The device that the search gave to node |n| of the workload.
static inline int32_t rn_auto_device(const rn_auto_result_t* result, int32_t n) {
  return result->search.devices[result->step.work.group[n]];
}

#endif  // RUNNEL_PLACE_AUTO_WISHES_H_
