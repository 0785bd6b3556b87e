// Placements to begin a search with, and clusters to move. For search.c and tests.
#ifndef RUNNEL_PLACE_AUTO_STARTS_H_
#define RUNNEL_PLACE_AUTO_STARTS_H_

#include "place/auto/workload.h"

// Everything on |device|, except what may not be there, which stays as in |otherwise|. True if
// nothing did.
bool rn_start_single(const rn_workload_t* workload, int32_t device, const int32_t* otherwise,
                     int32_t* out);

// Groups in the order of their first nodes, cut into one piece of equal time per device.
RN_MUST_USE rn_status_t rn_start_even(const rn_workload_t* workload, const rn_fleet_t* fleet,
                                      rn_arena_t* scratch, int32_t* out);

// List scheduling: nodes in the order of the longest path from them to the end (upward rank), each
// on the device where it ends first. A group goes where the first of its nodes went; a group of
// values that cost nothing goes with their first reader.
RN_MUST_USE rn_status_t rn_start_ranked(const rn_workload_t* workload, const rn_fleet_t* fleet,
                                        rn_arena_t* scratch, int32_t* out);

// Merges groups along the edges that would be slowest to cut, until about |wanted| clusters are
// left or none may grow. |out| is the number of its cluster, by group; |*out_count| the number of
// clusters.
RN_MUST_USE rn_status_t rn_find_clusters(const rn_workload_t* workload, const rn_fleet_t* fleet,
                                         int32_t wanted, rn_arena_t* scratch, int32_t* out,
                                         int32_t* out_count);

#endif  // RUNNEL_PLACE_AUTO_STARTS_H_
