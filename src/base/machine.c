// Limits of this process: see machine.h.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // sched_getaffinity
#endif
#include "base/machine.h"

#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/hash.h"

#define MANY ((size_t)16 << 20)  // bytes that are worth a walk over malloc's heaps
#define LARGE (1 << 20)          // bytes of a block that gets a mapping of its own

// glibc allocates blocks of up to 32 MiB on its heaps once such blocks have been freed, and shrinks
// a heap only from its end.
void rn_machine_trim(void) {
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  if (mallinfo2().fordblks >= MANY) malloc_trim(0);
#endif
}

void rn_machine_map_large_blocks(void) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, LARGE);
  // Setting that one ends the automatic choice of this one, which would stay at 128 KiB: each free
  // of a larger block at the end of a heap would give its pages back.
  mallopt(M_TRIM_THRESHOLD, 4 * LARGE);
#endif
}

static FILE* open_in(const char* root, const char* path) {
  char full[PATH_MAX];
  int size = snprintf(full, sizeof full, "%s%s", root, path);
  return size < (int)sizeof full ? fopen(full, "re") : NULL;
}

// Reads up to |count| numbers from the file |name| of a control group; the rest stay as they are.
static void read_numbers(const char* root, const char* mount, const char* path, const char* name,
                         double* out, int count) {
  char file_name[PATH_MAX];
  int size = snprintf(file_name, sizeof file_name, "%s%s/%s", mount, path, name);
  FILE* file = size < (int)sizeof file_name ? open_in(root, file_name) : NULL;
  if (!file) return;
  char text[64] = "";
  size_t length = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[length] = '\0';
  for (char *at = text, *end; count > 0; --count, at = end) {
    unsigned long long number = strtoull(at, &end, 10);
    if (end == at || memchr(at, '-', (size_t)(end - at))) return;
    *out++ = (double)number;
  }
}

// The least limit of the control groups of this process, of those that |limit_of| knows.
// /proc/self/cgroup has a line per hierarchy, "0::/path" or "5:memory:/path".
static double limit_of_groups(const char* root,
                              double (*limit_of)(const char* root, const char* kind,
                                                 const char* path)) {
  double least = INFINITY;
  char line[PATH_MAX];
  FILE* file = open_in(root, "/proc/self/cgroup");
  if (!file) return least;
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    char *kind = strchr(line, ':'), *path = kind ? strchr(kind + 1, ':') : NULL;
    if (!path) continue;
    *path++ = '\0';
    // A group is limited by those above it, too.
    for (char* end = path + strlen(path); end; end = strrchr(path, '/')) {
      *end = '\0';
      double limit = limit_of(root, kind + 1, path);
      if (limit < least) least = limit;
    }
  }
  fclose(file);
  return least;
}

static double memory_of_group(const char* root, const char* kind, const char* path) {
  double limit = INFINITY;
  if (kind[0] == '\0')
    read_numbers(root, "/sys/fs/cgroup", path, "memory.max", &limit, 1);
  else if (strcmp(kind, "memory") == 0)
    read_numbers(root, "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", &limit, 1);
  return limit;
}

// Processors' worth of time. A quota that is no number ("max") or negative is no limit.
static double time_of_group(const char* root, const char* kind, const char* path) {
  double pair[2] = {-1, -1};
  if (kind[0] == '\0') {
    read_numbers(root, "/sys/fs/cgroup", path, "cpu.max", pair, 2);
  } else if (strcmp(kind, "cpu") == 0 || strcmp(kind, "cpu,cpuacct") == 0) {
    read_numbers(root, "/sys/fs/cgroup/cpu", path, "cpu.cfs_quota_us", &pair[0], 1);
    read_numbers(root, "/sys/fs/cgroup/cpu", path, "cpu.cfs_period_us", &pair[1], 1);
  }
  return pair[0] > 0 && pair[1] > 0 ? pair[0] / pair[1] : INFINITY;
}

size_t rn_machine_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  size_t memory = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
  double limit = limit_of_groups("", memory_of_group);
  if (memory && limit > (double)memory) return memory;
  return limit < (double)SIZE_MAX ? (size_t)limit : 0;
}

typedef struct allowed_t {
  cpu_set_t set[8];  // room for 8,192 processors
} allowed_t;

static bool is_allowed(const allowed_t* allowed, unsigned long cpu) {
  return cpu < 8 * sizeof *allowed && CPU_ISSET_S(cpu, sizeof *allowed, allowed->set);
}

// True if |cpu| is the first allowed hyper-thread of its core. The file is a list such as "0,8" or
// "0-1"; without it every processor is a core.
static bool is_first_of_core(const char* root, const allowed_t* allowed, unsigned long cpu) {
  char path[100], text[200] = "";
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%lu/topology/thread_siblings_list", cpu);
  FILE* file = open_in(root, path);
  if (!file) return true;
  if (!fgets(text, sizeof text, file)) text[0] = '\0';
  fclose(file);
  for (char *at = text, *end;; at = end + 1) {
    unsigned long first = strtoul(at, &end, 10), last = first;
    if (end == at) return true;
    if (*end == '-') last = strtoul(end + 1, &end, 10);
    for (; first <= last && first < cpu; ++first)
      if (is_allowed(allowed, first)) return false;
    if (*end != ',') return true;
  }
}

static rn_machine_processors_t read_processors(const char* root, const allowed_t* allowed) {
  rn_machine_processors_t found = {0};
  for (unsigned long cpu = 0; cpu < 8 * sizeof *allowed; ++cpu) {
    if (!is_allowed(allowed, cpu)) continue;
    ++found.all;
    found.cores += is_first_of_core(root, allowed, cpu);
  }
  double time = ceil(limit_of_groups(root, time_of_group));
  if (found.all > time) found.all = (int)time;
  if (found.cores > time) found.cores = (int)time;
  if (found.all < 1) found.all = 1;
  if (found.cores < 1) found.cores = 1;
  return found;
}

rn_machine_processors_t rn_machine_processors(const char* root) {
  // What was found last, for the same affinity: a hash of it (32 bits), all (16), cores (16).
  // Reading a dozen files for each session would take longer than the rest of making it.
  static _Atomic uint64_t known;
  allowed_t allowed;
  memset(&allowed, 0, sizeof allowed);
  if (sched_getaffinity(0, sizeof allowed, allowed.set) != 0) {
    long online = sysconf(_SC_NPROCESSORS_ONLN);  // more processors than the set has room for
    int count = online > 0 && online < INT_MAX ? (int)online : 1;
    return (rn_machine_processors_t){count, count};
  }
  uint64_t hash = rn_murmur_hash64(rn_str_n((char*)&allowed, sizeof allowed), 0) >> 32,
           last = atomic_load(&known);
  if (!root[0] && last && last >> 32 == hash)
    return (rn_machine_processors_t){(int)(last >> 16 & 0xffff), (int)(last & 0xffff)};
  rn_machine_processors_t found = read_processors(root, &allowed);
  if (!root[0])
    atomic_store(&known, hash << 32 | (uint64_t)found.all << 16 | (uint64_t)found.cores);
  return found;
}

size_t rn_machine_descriptors(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 1 << 20;
  return (size_t)limit.rlim_cur;
}
