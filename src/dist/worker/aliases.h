// A worker's devices under other names, with the same state: for sessions whose clients give the
// cluster and share the state of its tasks.
//
// Resources may hold kernels of the devices, so aliases live as long as the worker.
#ifndef RUNNEL_DIST_WORKER_ALIASES_H_
#define RUNNEL_DIST_WORKER_ALIASES_H_

#include "device/device.h"

typedef struct rn_worker_aliases_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  rn_device_t* const* devices;  // of the worker; outlive the aliases
  int device_count;
  struct worker_alias_t* first;  // Owned
} rn_worker_aliases_t;

// The devices of |task|, "/job:ps/replica:0/task:0": as many as the worker has, in their order. The
// caller holds a lock. UNIMPLEMENTED if the worker has devices that are no CPUs, RESOURCE_EXHAUSTED
// if clients have made up too many names.
RN_MUST_USE rn_status_t rn_worker_aliases_get(rn_worker_aliases_t* aliases, rn_str_t task,
                                              rn_device_t*** out);
// The resources of the worker's devices must have been cleared.
void rn_worker_aliases_clear(rn_worker_aliases_t* aliases);

#endif  // RUNNEL_DIST_WORKER_ALIASES_H_
