// The search for a placement of a workload on a fleet.
//
// It begins with the client's placement, with every device alone, with an even cut along the step,
// and with list scheduling by critical path (starts.h). From the best of them it moves and swaps
// clusters of groups, first few large ones, then smaller ones, as long as a forecast gets better
// and the budget lasts. The result is never worse than the client's placement, by the forecast.
#ifndef RUNNEL_PLACE_AUTO_SEARCH_H_
#define RUNNEL_PLACE_AUTO_SEARCH_H_

#include "place/auto/forecast.h"

typedef struct rn_search_options_t {
  const int32_t* start;  // by group: the client's placement
  // Nodes that forecasts may visit, in all; 0: RN_SEARCH_BUDGET. With one budget, the result is
  // always the same.
  int64_t budget;
  // Fraction of the step by which another placement must be faster to be taken over the client's;
  // it covers errors of the forecast. It does not matter if the client's does not fit into memory.
  double margin;
} rn_search_options_t;

// About one and a half seconds.
#define RN_SEARCH_BUDGET 6000000

typedef struct rn_search_result_t {
  int32_t* devices;  // by group; in the arena
  rn_forecast_t start, found;
  rn_forecast_t best_single;  // the best of the forecasts with everything on one device
  int32_t single;             // that device; -1: no device may run everything
  const char* method;         // what the result was found by
  int32_t tried;              // forecasts
} rn_search_result_t;

RN_MUST_USE rn_status_t rn_search(const rn_workload_t* workload, const rn_fleet_t* fleet,
                                  const rn_search_options_t* options, rn_arena_t* arena,
                                  rn_search_result_t* out);

#endif  // RUNNEL_PLACE_AUTO_SEARCH_H_
