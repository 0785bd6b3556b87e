// Limits of this process: see machine.h.
#include "base/machine.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// The number in a file; SIZE_MAX if there is none, or the word "max".
static size_t number_in(const char* path) {
  char text[32] = "";
  FILE* file = fopen(path, "re");
  if (!file) return (size_t)-1;
  size_t size = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[size] = '\0';
  char* end;
  unsigned long long number = strtoull(text, &end, 10);
  return end == text || number >= (size_t)-1 ? (size_t)-1 : (size_t)number;
}

// The least limit of control group |path| and those above it.
static size_t limit_of_group(const char* root, char* path, const char* name) {
  size_t least = (size_t)-1;
  for (;;) {
    char file[PATH_MAX];
    int size = snprintf(file, sizeof file, "%s%s/%s", root, path, name);
    size_t limit = size < (int)sizeof file ? number_in(file) : (size_t)-1;
    if (limit < least) least = limit;
    char* slash = strrchr(path, '/');
    if (!slash) return least;
    *slash = '\0';
  }
}

// /proc/self/cgroup has a line per hierarchy, "0::/path" or "5:memory:/path".
static size_t limit_of_groups(void) {
  size_t least = (size_t)-1;
  char line[PATH_MAX];
  FILE* file = fopen("/proc/self/cgroup", "re");
  if (!file) return least;
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    char *kind = strchr(line, ':'), *path = kind ? strchr(kind + 1, ':') : NULL;
    if (!path) continue;
    *path++ = '\0';
    size_t limit = kind[1] == '\0' ? limit_of_group("/sys/fs/cgroup", path, "memory.max")
                   : strcmp(kind + 1, "memory") == 0
                       ? limit_of_group("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes")
                       : (size_t)-1;
    if (limit < least) least = limit;
  }
  fclose(file);
  return least;
}

size_t rn_machine_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  size_t memory = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
  size_t limit = limit_of_groups();
  return memory && limit > memory ? memory : limit == (size_t)-1 ? 0 : limit;
}

size_t rn_machine_descriptors(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 1 << 20;
  return (size_t)limit.rlim_cur;
}
