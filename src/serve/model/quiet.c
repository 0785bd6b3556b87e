// See quiet.h.
//
// A thread of low priority still delays others in two ways. Linux lets a thread finish its time
// slice, of up to three milliseconds, before one that wakes gets the processor, unless it is of the
// class SCHED_IDLE; and it wakes threads on idle processors first, which to it include those that
// run SCHED_IDLE. So that is the class for loading. Where no processor is ever idle, it gets next
// to nothing, though, and cannot be left again without privileges: there, a high niceness must do.
// The shortest slice bounds the delay of threads that the class does not protect: on such machines,
// and those of other groups.
#define _GNU_SOURCE
#include "serve/model/quiet.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

// The most there is. Such a thread gets a twentieth of a processor that models want, too, whose
// threads are nice themselves (rn_thread_be_patient), and 1 % beside others.
#define NICENESS 19
// How long the machine is watched, and the part of that time that its processors must be idle.
#define WATCH_NS 50000000
#define IDLE_PART 0.1

// On Linux all of it concerns one thread. Failures leave the priority as it is.
static void lower(int policy) {
  setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
  struct sched_param parameters = {0};
  sched_setscheduler(0, policy, &parameters);
  rn_thread_be_prompt();
}

void rn_quiet_thread(void) { lower(SCHED_BATCH); }

// The time that the machine's processors have spent, idle and in all, in ticks.
typedef struct quiet_times_t {
  unsigned long long idle, all;
} quiet_times_t;

static bool read_times(quiet_times_t* out) {
  char text[256];
  int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
  ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (size <= 0) return false;
  text[size] = '\0';
  unsigned long long t[8];
  if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2], &t[3], &t[4],
             &t[5], &t[6], &t[7]) != 8)
    return false;
  *out = (quiet_times_t){.idle = t[3] + t[4]};
  for (int i = 0; i < 8; ++i) out->all += t[i];
  return true;
}

static bool has_idle_time(void) {
  quiet_times_t before, after;
  const struct timespec pause = {.tv_nsec = WATCH_NS};
  if (!read_times(&before)) return false;
  nanosleep(&pause, NULL);
  return read_times(&after) && after.all > before.all && after.idle >= before.idle &&
         (double)(after.idle - before.idle) >= IDLE_PART * (double)(after.all - before.all);
}

typedef struct quiet_call_t {
  void (*fn)(void* arg);
  void* arg;
} quiet_call_t;

static void* quiet_main(void* arg) {
  const quiet_call_t* call = arg;
  lower(has_idle_time() ? SCHED_IDLE : SCHED_BATCH);
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
