// Closes the sessions of dead masters on a worker.
//
// A master closes its sessions itself, unless it dies. So the masters of open sessions are probed
// from time to time. The sessions of a master that is a new process, or that neither answers nor
// runs steps for long, are closed.
#ifndef RUNNEL_DIST_WORKER_GC_H_
#define RUNNEL_DIST_WORKER_GC_H_

#include "dist/worker/worker.h"
#include "net/timers.h"

typedef struct rn_worker_gc_t rn_worker_gc_t;

#define RN_WORKER_GC_NS INT64_C(600000000000)

typedef struct rn_worker_gc_options_t {
  const rn_env_t* env;  // outlives it, like all that follows
  rn_allocator_t allocator;
  rn_local_worker_t* worker;
  rn_peers_t peers;
  rn_timers_t timers;
  int64_t patience_ns;  // how long a master may be silent; 0: RN_WORKER_GC_NS
} rn_worker_gc_options_t;

RN_MUST_USE rn_status_t rn_worker_gc_create(const rn_worker_gc_options_t* options,
                                            rn_worker_gc_t** out);
// Stops probing; a response may still be outstanding. NULL is fine.
void rn_worker_gc_stop(rn_worker_gc_t* gc);
// The peers must be gone, so that no response is outstanding. NULL is fine.
void rn_worker_gc_destroy(rn_worker_gc_t* gc);

#endif  // RUNNEL_DIST_WORKER_GC_H_
