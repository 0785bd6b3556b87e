// Waits until the other threads of a test have come to wait, however busy the machine is.
#ifndef RUNNEL_TESTS_SUPPORT_SETTLE_H_
#define RUNNEL_TESTS_SUPPORT_SETTLE_H_

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// Whether every other thread of this process sleeps; |switches| is how often they have left a
// processor so far.
static inline bool others_sleep(int64_t* switches) {
  bool asleep = true;
  *switches = 0;
  DIR* tasks = opendir("/proc/self/task");
  for (struct dirent* entry; tasks && (entry = readdir(tasks));) {
    char path[64], line[512];
    if (entry->d_name[0] == '.' || atoi(entry->d_name) == (int)syscall(SYS_gettid)) continue;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/status", entry->d_name);
    FILE* file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
      const char* count = strstr(line, "_switches:");
      if (!strncmp(line, "State:", 6) && !strchr(line + 6, 'S')) asleep = false;
      if (count) *switches += atoll(strchr(count, ':') + 1);
    }
    if (file) fclose(file);
  }
  if (tasks) closedir(tasks);
  return asleep;
}

// Returns when all other threads sleep and none has run for two milliseconds: a thread that was
// started stands where it has to wait. Gives up after thirty seconds, so that the test fails at
// what it expects next.
static inline void settle(void) {
  int64_t before = -1, now;
  for (int i = 0; i < 15000; ++i) {
    if (!others_sleep(&now))
      now = -1;
    else if (now == before)
      return;
    before = now;
    usleep(2000);
  }
}

#endif  // RUNNEL_TESTS_SUPPORT_SETTLE_H_
