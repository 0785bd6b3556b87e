// Locks and condition variables: pthreads with the checks in one place.
#ifndef RUNNEL_BASE_SYNC_H_
#define RUNNEL_BASE_SYNC_H_

#include <pthread.h>
#include <stdint.h>

#include "base/status.h"

typedef struct rn_mutex_t {
  pthread_mutex_t native;
} rn_mutex_t;
#define RN_MUTEX_INIT \
  { PTHREAD_MUTEX_INITIALIZER }

// Cannot fail on Linux with default attributes.
static inline void rn_mutex_init(rn_mutex_t* mutex) { pthread_mutex_init(&mutex->native, NULL); }
static inline void rn_mutex_destroy(rn_mutex_t* mutex) { pthread_mutex_destroy(&mutex->native); }
static inline void rn_mutex_lock(rn_mutex_t* mutex) { pthread_mutex_lock(&mutex->native); }
static inline void rn_mutex_unlock(rn_mutex_t* mutex) { pthread_mutex_unlock(&mutex->native); }

// Times out by the monotonic clock.
typedef struct rn_cond_t {
  pthread_cond_t native;
} rn_cond_t;
void rn_cond_init(rn_cond_t* cond);
static inline void rn_cond_destroy(rn_cond_t* cond) { pthread_cond_destroy(&cond->native); }
static inline void rn_cond_signal(rn_cond_t* cond) { pthread_cond_signal(&cond->native); }
static inline void rn_cond_broadcast(rn_cond_t* cond) { pthread_cond_broadcast(&cond->native); }
static inline void rn_cond_wait(rn_cond_t* cond, rn_mutex_t* mutex) {
  pthread_cond_wait(&cond->native, &mutex->native);
}
// False when |deadline_ns| of the monotonic clock passed first.
bool rn_cond_wait_until(rn_cond_t* cond, rn_mutex_t* mutex, int64_t deadline_ns);

#endif  // RUNNEL_BASE_SYNC_H_
