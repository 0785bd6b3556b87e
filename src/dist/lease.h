// Leases: how long another task may be silent before it counts as lost.
//
// While calls to a task are under way, it must send something from time to time; if it does not, it
// is probed with GetStatus, which stock's tasks answer too. A task that is silent for its lease is
// lost: every call to it fails with UNAVAILABLE, and so do the steps that need it. Nothing is
// remembered: the next call tries again.
#ifndef RUNNEL_DIST_LEASE_H_
#define RUNNEL_DIST_LEASE_H_

#include "base/env.h"
#include "dist/iface.h"
#include "net/timers.h"

#define RN_LEASE_NS INT64_C(10000000000)

// The transport to another task. Functions are called on the timers' thread and must not block.
typedef struct rn_link_t {
  void* self;
  rn_worker_t* worker;
  bool (*is_busy)(void* self);      // calls are under way, except those that may wait for ever
  int64_t (*heard_ns)(void* self);  // when something last came from the task; 0: never
  // Ends every running call with |status|, which it takes.
  void (*drop)(void* self, rn_status_t status);
} rn_link_t;

// Whether a call ended with |status| because its task's lease was over.
bool rn_lease_is_over(rn_status_t status);

// The lease in a ConfigProto (experimental.coordination_config.heartbeat_timeout_in_ms); 0 if it
// has none.
RN_MUST_USE rn_status_t rn_lease_of_config(rn_str_t config, int64_t* out_ns);

// The default lease: the environment variable RUNNEL_LEASE, in seconds, or RN_LEASE_NS.
int64_t rn_lease_default(void);

typedef struct rn_leases_t rn_leases_t;

typedef struct rn_leases_options_t {
  const rn_env_t* env;  // outlives the leases
  rn_allocator_t allocator;
  rn_timers_t timers;
  int64_t lease_ns;  // 0: the default
  bool is_logged;    // logs when a task is lost, and when it is back
} rn_leases_options_t;

RN_MUST_USE rn_status_t rn_leases_create(const rn_leases_options_t* options, rn_leases_t** out);
// Watches |link| from now on. |task| is copied. Any thread may call it.
RN_MUST_USE rn_status_t rn_leases_add(rn_leases_t* leases, rn_str_t task, rn_link_t link);
// No link is used after this returns, though a GetStatus may still be under way in one.
void rn_leases_stop(rn_leases_t* leases);
// Stops the leases if needed. The links must be gone, so that no GetStatus is under way. NULL is
// fine.
void rn_leases_destroy(rn_leases_t* leases);

// For status pages.
typedef struct rn_lease_info_t {
  rn_str_t task;         // lives as long as the leases
  int64_t heard_ns;      // 0: never
  uint64_t incarnation;  // of its first device, from its last GetStatus; 0: unknown
  int64_t losses;
  bool is_busy;
  bool is_lost;  // as of the last check
} rn_lease_info_t;
// Fills in the first |room| of them; returns how many there are.
size_t rn_leases_list(rn_leases_t* leases, rn_lease_info_t* out, size_t room);

#endif  // RUNNEL_DIST_LEASE_H_
