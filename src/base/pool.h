// A pool of threads that steal work from each other.
//
// A pool of n threads means n threads at work *with* the one that waits: it starts n - 1 of its
// own, the first time there is something for them, and none at all for n = 1, when everything runs
// in the caller. Idle workers sleep; one that has just run out of work looks around for some
// microseconds first (a hundred where that has paid), because the next piece usually follows at
// once and a wake-up costs 20 microseconds. Jobs may be submitted from any thread. Loops use no
// more threads than there are processors, jobs use all.
//
// doc/invariants.md: invariant 5.
#ifndef RUNNEL_BASE_POOL_H_
#define RUNNEL_BASE_POOL_H_

#include "base/alloc.h"

typedef struct rn_pool_t rn_pool_t;

// |threads| < 1 means one for each core that this process may use (rn_machine_processors).
RN_MUST_USE rn_status_t rn_pool_create(rn_allocator_t allocator, int threads, rn_pool_t** out_pool);
// The same as on a machine with |processors| processors (>= 1): for tests.
RN_MUST_USE rn_status_t rn_pool_create_on(rn_allocator_t allocator, int threads, int processors,
                                          rn_pool_t** out_pool);
// Runs the submitted jobs, then ends the workers. NULL is fine. Must not be called from a worker of
// the pool.
void rn_pool_destroy(rn_pool_t* pool);

// The number given at creation, resolved; >= 1. A NULL pool counts as one thread.
int rn_pool_threads(const rn_pool_t* pool);
// The most threads that work on one loop: no more than there are processors.
int rn_pool_loop_threads(const rn_pool_t* pool);

// Starts all workers now. They have the priority of the thread that starts them, so a thread of low
// priority must not be the first to use a pool. NULL is fine.
void rn_pool_start(rn_pool_t* pool);
// The same, but with the priority of rn_thread_be_patient, if none was started yet.
void rn_pool_start_patient(rn_pool_t* pool);

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

// Lends a block of |size| bytes for the length of a call, such as operands in another order. The
// pool keeps one block between calls, so that the system need not clear its pages each time. NULL
// is fine: the block is then allocated and freed.
RN_MUST_USE rn_status_t rn_pool_borrow(rn_pool_t* pool, size_t size, void** out_block);
// |size| as it was asked for.
void rn_pool_give_back(rn_pool_t* pool, void* block, size_t size);

// Computes items [begin, end) of a loop.
typedef void (*rn_pool_body_t)(void* arg, int64_t begin, int64_t end);

// Calls body(arg, begin, end) over [0, count) in pieces of |grain| (the last may be shorter), the
// caller working too; returns when all are done. The pieces are the same for any number of threads,
// so results are too. One piece runs in the caller at no cost. How many threads work is learnt from
// how long such loops took (pool_cost.h).
void rn_pool_for(rn_pool_t* pool, int64_t count, int64_t grain, rn_pool_body_t body, void* arg);
// rn_pool_for with pieces of |grain|, or shorter ones down to |small| where that makes few: threads
// claim several of them at once if they take no time. A loop of no more than |grain| is shared with
// workers that are looking for work already: waking one would cost more than a single such loop.
// The pieces are the same for any number of threads, here too.
void rn_pool_for_small(rn_pool_t* pool, int64_t count, int64_t grain, int64_t small,
                       rn_pool_body_t body, void* arg);

// A loop with all that can be said of it; the rest of the fields may be 0.
typedef struct rn_pool_work_t {
  int64_t count, grain;
  rn_pool_body_t body;
  void* arg;
  // Tells loops apart that have the same body, count and grain and take different times.
  uint64_t kind;
  // Each thread takes its pieces in descending order: a loop over the same data as the one before
  // then starts with what is still in the threads' caches.
  bool is_backwards;
  bool is_small;  // known to be shorter than a wake-up
} rn_pool_work_t;
void rn_pool_run(rn_pool_t* pool, const rn_pool_work_t* work);

#endif  // RUNNEL_BASE_POOL_H_
