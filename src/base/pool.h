// A pool of threads that steal work from each other.
//
// A pool of n threads means n threads at work *with* the one that waits: it starts n - 1 of its
// own, the first time there is something for them, and none at all for n = 1, when everything runs
// in the caller. Idle workers sleep; one that has just run out of work looks around for some
// microseconds first (some hundred where that has paid), because the next piece usually follows at
// once and a wake-up costs 20 microseconds. Jobs may be submitted from any thread.
//
// doc/invariants.md: invariant 5.
#ifndef RUNNEL_BASE_POOL_H_
#define RUNNEL_BASE_POOL_H_

#include "base/alloc.h"

typedef struct rn_pool_t rn_pool_t;

// |threads| < 1 means one for each processor this process may use.
RN_MUST_USE rn_status_t rn_pool_create(rn_allocator_t allocator, int threads, rn_pool_t** out_pool);
// Runs the submitted jobs, then ends the workers. NULL is fine. Must not be called from a worker of
// the pool.
void rn_pool_destroy(rn_pool_t* pool);

// The number given at creation, resolved; >= 1. A NULL pool counts as one thread.
int rn_pool_threads(const rn_pool_t* pool);

// Starts all workers now. They have the priority of the thread that starts them, so a thread of low
// priority must not be the first to use a pool. NULL is fine.
void rn_pool_start(rn_pool_t* pool);

// A job, embedded in the caller's own struct, so that submitting allocates nothing. Must stay put
// until it ran.
typedef struct rn_job_t {
  void (*run)(struct rn_job_t* job);
  struct rn_job_t* next;  // the pool's
} rn_job_t;

// Runs |job| on a worker; in the caller, before returning, if the pool has one thread (or no worker
// could be started).
void rn_pool_submit(rn_pool_t* pool, rn_job_t* job);

// Runs one waiting job in the calling thread, if there is one. For threads that wait for the pool.
bool rn_pool_help(rn_pool_t* pool);

// Calls body(arg, begin, end) over [0, count) in pieces of |grain| (the last may be shorter), the
// caller working too; returns when all are done. The pieces are the same for any number of threads,
// so results are too. One piece runs in the caller at no cost.
void rn_pool_for(rn_pool_t* pool, int64_t count, int64_t grain,
                 void (*body)(void* arg, int64_t begin, int64_t end), void* arg);
// rn_pool_for with pieces of |grain|, where that makes several. A shorter loop has pieces of
// |small| and is shared only with workers that are looking for work already: waking one would cost
// more than the loop. The pieces are the same for any number of threads, here too.
void rn_pool_for_small(rn_pool_t* pool, int64_t count, int64_t grain, int64_t small,
                       void (*body)(void* arg, int64_t begin, int64_t end), void* arg);

#endif  // RUNNEL_BASE_POOL_H_
