// See quiet.h.
#define _GNU_SOURCE
#include "serve/model/quiet.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

// A thread of this niceness gets about 3 % of a processor that others want, too.
#define NICENESS 15

void rn_quiet_thread(void) {
  // On Linux both concern one thread. Failures leave the priority as it is.
  setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
  struct sched_param parameters = {0};
  sched_setscheduler(0, SCHED_BATCH, &parameters);
}

typedef struct quiet_call_t {
  void (*fn)(void* arg);
  void* arg;
} quiet_call_t;

static void* quiet_main(void* arg) {
  const quiet_call_t* call = arg;
  rn_quiet_thread();
  call->fn(call->arg);
  return NULL;
}

void rn_quiet_call(void (*fn)(void* arg), void* arg) {
  quiet_call_t call = {fn, arg};
  pthread_t thread;
  if (pthread_create(&thread, NULL, quiet_main, &call) == 0)
    pthread_join(thread, NULL);
  else
    fn(arg);
}
