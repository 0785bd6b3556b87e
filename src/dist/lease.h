// Leases: how long another task may be silent before it is given up.
//
// While calls to a task are under way, something must come from it now and then; where nothing
// does, it is asked how it is, as a master asks (stock's tasks answer that, too). A task that is
// silent for its lease is lost: every call to it ends with UNAVAILABLE, and so do the steps that
// need it. Nothing is remembered: the next call tries again.
#ifndef RUNNEL_DIST_LEASE_H_
#define RUNNEL_DIST_LEASE_H_

#include "base/env.h"
#include "dist/iface.h"
#include "dist/timers.h"

#define RN_LEASE_NS INT64_C(10000000000)

// The way to another task, as the one who carries its calls sees it. Functions are called on the
// clock's thread and must not wait.
typedef struct rn_link_t {
  void* self;
  rn_worker_t* worker;
  bool (*is_busy)(void* self);      // calls are under way that should not be for ever
  int64_t (*heard_ns)(void* self);  // when something came from there last; 0: never
  // Ends every call under way with |status|, which is taken.
  void (*drop)(void* self, rn_status_t status);
} rn_link_t;

// Whether a call ended with |status| because its task's lease was over.
bool rn_lease_is_over(rn_status_t status);

// What a ConfigProto says of leases, as the time after which a task that sends no heartbeats is
// given up (experimental.coordination_config.heartbeat_timeout_in_ms); 0: nothing.
RN_MUST_USE rn_status_t rn_lease_of_config(rn_str_t config, int64_t* out_ns);

// The lease where nobody says another: that of the environment's RUNNEL_LEASE, in seconds, or
// RN_LEASE_NS.
int64_t rn_lease_default(void);

typedef struct rn_leases_t rn_leases_t;

typedef struct rn_leases_options_t {
  const rn_env_t* env;  // outlives the leases
  rn_allocator_t allocator;
  rn_timers_t timers;
  int64_t lease_ns;  // 0: the default
  bool is_logged;    // the log hears of a task that is lost, and that it is back
} rn_leases_options_t;

RN_MUST_USE rn_status_t rn_leases_create(const rn_leases_options_t* options, rn_leases_t** out);
// Watches |link| from now on. |task| is copied. From any thread.
RN_MUST_USE rn_status_t rn_leases_add(rn_leases_t* leases, rn_str_t task, rn_link_t link);
// No link is used once this has returned, though a question may still be under way in one.
void rn_leases_stop(rn_leases_t* leases);
// Stops, if that was not done. All questions have ended: the links have gone. NULL is fine.
void rn_leases_destroy(rn_leases_t* leases);

// For pages that show how the cluster is.
typedef struct rn_lease_info_t {
  rn_str_t task;         // lives as long as the leases
  int64_t heard_ns;      // 0: never
  uint64_t incarnation;  // of its first device, when it last said so; 0: it has not
  int64_t losses;
  bool is_busy;
  bool is_lost;  // the last that is known of it
} rn_lease_info_t;
// The first |room| of them; how many there are.
size_t rn_leases_list(rn_leases_t* leases, rn_lease_info_t* out, size_t room);

#endif  // RUNNEL_DIST_LEASE_H_
