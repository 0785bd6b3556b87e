// Condition variables on the monotonic clock.
#include "base/sync.h"

#include <criterion/criterion.h>
#include <time.h>

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

Test(sync, wait_times_out, .timeout = 20) {
  rn_mutex_t mutex = RN_MUTEX_INIT;
  rn_cond_t cond;
  rn_cond_init(&cond);
  rn_mutex_lock(&mutex);
  int64_t deadline = now_ns() + 20000000;
  while (rn_cond_wait_until(&cond, &mutex, deadline)) {
  }
  cr_assert_geq(now_ns(), deadline);
  cr_assert(!rn_cond_wait_until(&cond, &mutex, -1));
  rn_mutex_unlock(&mutex);
  rn_cond_destroy(&cond);
}

typedef struct shared_t {
  rn_mutex_t mutex;
  rn_cond_t cond;
  int turn;
} shared_t;

static void* other_side(void* arg) {
  shared_t* shared = arg;
  for (int i = 0; i < 1000; i++) {
    rn_mutex_lock(&shared->mutex);
    while (shared->turn != 1) rn_cond_wait(&shared->cond, &shared->mutex);
    shared->turn = 0;
    rn_cond_signal(&shared->cond);
    rn_mutex_unlock(&shared->mutex);
  }
  return NULL;
}

Test(sync, signals_arrive_before_the_deadline, .timeout = 60) {
  shared_t shared = {.turn = 0};
  rn_mutex_init(&shared.mutex);
  rn_cond_init(&shared.cond);
  pthread_t thread;
  cr_assert_eq(pthread_create(&thread, NULL, other_side, &shared), 0);
  for (int i = 0; i < 1000; i++) {
    rn_mutex_lock(&shared.mutex);
    while (shared.turn != 0) {
      cr_assert(rn_cond_wait_until(&shared.cond, &shared.mutex, now_ns() + 30000000000));
    }
    shared.turn = 1;
    rn_cond_broadcast(&shared.cond);
    rn_mutex_unlock(&shared.mutex);
  }
  pthread_join(thread, NULL);
  rn_cond_destroy(&shared.cond);
  rn_mutex_destroy(&shared.mutex);
}
