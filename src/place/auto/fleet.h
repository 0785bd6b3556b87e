// The fleet of some devices: what was measured of their links, and what the client says of them.
#ifndef RUNNEL_PLACE_AUTO_FLEET_H_
#define RUNNEL_PLACE_AUTO_FLEET_H_

#include "device/device.h"
#include "place/auto/costs.h"
#include "place/auto/workload.h"

typedef struct rn_fleet_options_t {
  // Nodes that run at a time on the CPUs of each task; 0: 1. Kernels that use several threads
  // themselves leave none to others, so then this is 1, too.
  int32_t lanes;
  bool is_apart;  // each device has threads of its own, though it shares its task with others
  const double* speeds;                  // by device; NULL: 1
  const int64_t* memory;                 // by device; 0: no limit. NULL: no limits
  const rn_fleet_link_t* between_tasks;  // NULL: as measured, or a guess
} rn_fleet_options_t;

// Devices of one task share a pool of threads, except accelerators, which run one node at a time.
// Everything is in |arena|; names are the devices'.
RN_MUST_USE rn_status_t rn_fleet_create(rn_device_t* const* devices, int count,
                                        const rn_costs_t* costs, const rn_fleet_options_t* options,
                                        rn_arena_t* arena, rn_fleet_t* out);

// The task of a device: "/job:worker/replica:0/task:1" of its full name.
rn_str_t rn_fleet_task(rn_str_t device);

#endif  // RUNNEL_PLACE_AUTO_FLEET_H_
