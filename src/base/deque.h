// A worker's own queue of jobs: the deque of Chase and Lev, of fixed size. For pool.c only.
//
// The owner puts and takes at the bottom, newest first; thieves take at the top, oldest first.
// Zeroed memory is an empty deque. Sequentially consistent accesses take the place of the paper's
// fences: they order the owner's take of the last job against a thief's, and a push against the
// search for sleepers after it.
#ifndef RUNNEL_BASE_DEQUE_H_
#define RUNNEL_BASE_DEQUE_H_

#include <stdatomic.h>

#include "base/pool.h"

#define RN_DEQUE_SIZE 1024  // jobs; a power of two

typedef struct rn_deque_t {
  _Alignas(RN_ALIGN) _Atomic int64_t top;
  _Alignas(RN_ALIGN) _Atomic int64_t bottom;
  _Alignas(RN_ALIGN) _Atomic(rn_job_t*) jobs[RN_DEQUE_SIZE];
} rn_deque_t;

// Owner only. False: full.
static inline bool rn_deque_push(rn_deque_t* deque, rn_job_t* job) {
  int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed);
  int64_t top = atomic_load_explicit(&deque->top, memory_order_acquire);
  if (bottom - top >= RN_DEQUE_SIZE) return false;
  atomic_store_explicit(&deque->jobs[bottom % RN_DEQUE_SIZE], job, memory_order_relaxed);
  atomic_store(&deque->bottom, bottom + 1);
  return true;
}

// Owner only: the newest job, or NULL.
static inline rn_job_t* rn_deque_pop(rn_deque_t* deque) {
  int64_t bottom = atomic_load_explicit(&deque->bottom, memory_order_relaxed) - 1;
  // Only the owner pushes, so what looks empty to it is empty.
  if (atomic_load_explicit(&deque->top, memory_order_relaxed) > bottom) return NULL;
  atomic_store(&deque->bottom, bottom);
  int64_t top = atomic_load(&deque->top);
  rn_job_t* job = NULL;
  if (top <= bottom) {
    job = atomic_load_explicit(&deque->jobs[bottom % RN_DEQUE_SIZE], memory_order_relaxed);
    if (top < bottom) return job;
    // The last job: a thief may want it too, and the exchange of |top| decides.
    if (!atomic_compare_exchange_strong(&deque->top, &top, top + 1)) job = NULL;
  }
  atomic_store(&deque->bottom, bottom + 1);
  return job;
}

// Any thread: the oldest job. NULL also when another thread got it first.
static inline rn_job_t* rn_deque_steal(rn_deque_t* deque) {
  int64_t top = atomic_load(&deque->top);
  if (top >= atomic_load(&deque->bottom)) return NULL;
  // The slot is not overwritten before |top| moves on, in which case the exchange fails.
  rn_job_t* job = atomic_load_explicit(&deque->jobs[top % RN_DEQUE_SIZE], memory_order_relaxed);
  return atomic_compare_exchange_strong(&deque->top, &top, top + 1) ? job : NULL;
}

// Any thread.
static inline bool rn_deque_has_jobs(rn_deque_t* deque) {
  return atomic_load(&deque->top) < atomic_load(&deque->bottom);
}

#endif  // RUNNEL_BASE_DEQUE_H_
