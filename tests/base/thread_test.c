// Tests of the properties of threads, as far as the system has them.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // syscall
#endif
#include "base/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/status.h"
#include "base/pool.h"

static int niceness(void) { return getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid)); }

typedef struct seen_t {
  rn_job_t job;
  _Atomic bool is_done;
  int niceness;
} seen_t;

static void look(rn_job_t* job) {
  seen_t* seen = (seen_t*)job;
  seen->niceness = niceness();
  seen->is_done = true;
}

static int niceness_in(rn_pool_t* pool) {
  seen_t seen = {.job.run = look};
  rn_pool_submit(pool, &seen.job);
  while (!seen.is_done) usleep(100);
  return seen.niceness;
}

Test(thread, workers_of_a_patient_pool_are_nice) {
  int before = niceness(), wanted = before + 5 < 19 ? before + 5 : 19;
  rn_pool_t *patient = NULL, *usual = NULL;
  OK(rn_pool_create_on(rn_allocator_system(), 3, 3, &patient));
  OK(rn_pool_create_on(rn_allocator_system(), 3, 3, &usual));
  rn_pool_start_patient(patient);
  rn_pool_start(patient);  // changes nothing
  rn_pool_start(usual);
  cr_expect_eq(niceness_in(patient), wanted, "%d", niceness_in(patient));
  cr_expect_eq(niceness_in(usual), before);
  cr_expect_eq(niceness(), before);
  rn_pool_destroy(patient);
  rn_pool_destroy(usual);
  rn_pool_start_patient(NULL);
}

static void* be_patient_often(void* arg) {
  for (int i = 0; i < 5; ++i) rn_thread_be_patient();
  *(int*)arg = niceness();
  return NULL;
}

Test(thread, patience_has_an_end) {
  pthread_t thread;
  int after = 0;
  cr_assert_eq(pthread_create(&thread, NULL, be_patient_often, &after), 0);
  pthread_join(thread, NULL);
  cr_expect_eq(after, 19);
}
