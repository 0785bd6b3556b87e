// Waiting for a pool, in threads that may have to run its jobs themselves:
//
//   while (is_busy)
//     if (!rn_pool_help_unlocked(pool, &mutex) && is_busy) rn_cond_wait_a_while(&idle, &mutex);
#ifndef RUNNEL_BASE_POOL_WAIT_H_
#define RUNNEL_BASE_POOL_WAIT_H_

#include <time.h>

#include "base/pool.h"
#include "base/sync.h"

// Runs one waiting job without holding |mutex|, which is held before and after.
static inline bool rn_pool_help_unlocked(rn_pool_t* pool, rn_mutex_t* mutex) {
  rn_mutex_unlock(mutex);
  bool helped = rn_pool_help(pool);
  rn_mutex_lock(mutex);
  return helped;
}

// Waits for |cond|, a millisecond at most: then another job may be waiting for a thread.
static inline void rn_cond_wait_a_while(rn_cond_t* cond, rn_mutex_t* mutex) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  rn_cond_wait_until(cond, mutex, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + 1000000);
}

#endif  // RUNNEL_BASE_POOL_WAIT_H_
