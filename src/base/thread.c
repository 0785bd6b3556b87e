// See thread.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // syscall
#endif
#include "base/thread.h"

#include <errno.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000  // Linux's minimum
#define PATIENT 5        // steps of niceness, each a fifth less weight

// Linux's struct sched_attr, which C libraries have only lately.
typedef struct thread_attr_t {
  uint32_t size, policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime, deadline, period;
} thread_attr_t;

void rn_thread_be_prompt(void) {
  thread_attr_t attr = {.size = sizeof attr};
  if (syscall(SYS_sched_getattr, 0, &attr, sizeof attr, 0)) return;
  attr.size = sizeof attr;
  attr.runtime = SLICE_NS;
  syscall(SYS_sched_setattr, 0, &attr, 0);
}

void rn_thread_be_patient(void) {
  // On Linux all of it concerns one thread, unlike elsewhere. Beyond the most, the system cuts.
  id_t thread = (id_t)syscall(SYS_gettid);
  errno = 0;
  int niceness = getpriority(PRIO_PROCESS, thread);
  if (niceness != -1 || !errno) setpriority(PRIO_PROCESS, thread, niceness + PATIENT);
}
