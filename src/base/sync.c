// Conditions on the monotonic clock.
#include "base/sync.h"

#include <errno.h>
#include <time.h>

void rn_cond_init(rn_cond_t* cond) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&cond->native, &attributes);
  pthread_condattr_destroy(&attributes);
}

bool rn_cond_wait_until(rn_cond_t* cond, rn_mutex_t* mutex, int64_t deadline_ns) {
  if (deadline_ns < 0) deadline_ns = 0;
  struct timespec deadline = {.tv_sec = deadline_ns / 1000000000,
                              .tv_nsec = deadline_ns % 1000000000};
  return pthread_cond_timedwait(&cond->native, &mutex->native, &deadline) != ETIMEDOUT;
}
