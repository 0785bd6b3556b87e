// The processors of a process: its affinity is real, the files about them are made here.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "base/machine.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/status.h"

static char root[64];

static void make_root(void) {
  strcpy(root, "/tmp/machine_test.XXXXXX");
  cr_assert_not_null(mkdtemp(root));
}

static void drop_root(void) {
  char command[100];
  snprintf(command, sizeof command, "rm -r %s", root);
  cr_assert_eq(system(command), 0);
}

static void put(const char* path, const char* text) {
  char command[600], full[300];
  snprintf(full, sizeof full, "%s%s", root, path);
  *strrchr(full, '/') = '\0';
  snprintf(command, sizeof command, "mkdir -p %s", full);
  cr_assert_eq(system(command), 0);
  snprintf(full, sizeof full, "%s%s", root, path);
  FILE* file = fopen(full, "w");
  cr_assert_not_null(file);
  fputs(text, file);
  fclose(file);
}

static int allowed_count(void) {
  cpu_set_t set;
  cr_assert_eq(sched_getaffinity(0, sizeof set, &set), 0);
  return CPU_COUNT(&set);
}

TestSuite(machine, .init = make_root, .fini = drop_root);

Test(machine, affinity) {
  int count = allowed_count();
  cr_assert_eq(rn_machine_processors(root).all, count);  // no files: no limits
  cr_assert_eq(rn_machine_processors(root).cores, count);
  rn_machine_processors_t here = rn_machine_processors("");
  cr_assert(here.all >= 1 && here.all <= count);
  cr_assert(here.cores >= 1 && here.cores <= here.all);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
  cr_assert_eq(rn_machine_processors(root).all, 1);
  cr_assert_eq(rn_machine_processors("").all, 1);  // asked again: not the number from before
}

Test(machine, hyper_threads) {
  cpu_set_t set;
  int first = -1, count = allowed_count();
  sched_getaffinity(0, sizeof set, &set);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    if (first < 0) first = cpu;
    char path[100], list[40];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    snprintf(list, sizeof list, "%d,%d-%d\n", first, first, cpu);  // all of one core
    put(path, list);
  }
  cr_assert_eq(rn_machine_processors(root).all, count);
  cr_assert_eq(rn_machine_processors(root).cores, 1);
}

static const struct {
  const char *groups, *file, *text, *file2, *text2;
  int limit;  // 0: none
} rows[] = {
    {"0::/\n", "/sys/fs/cgroup/cpu.max", "max 100000\n", NULL, NULL, 0},
    {"0::/\n", "/sys/fs/cgroup/cpu.max", "100000 100000\n", NULL, NULL, 1},
    {"0::/\n", "/sys/fs/cgroup/cpu.max", "20000 100000\n", NULL, NULL, 1},
    {"0::/\n", "/sys/fs/cgroup/cpu.max", "110000 100000\n", NULL, NULL, 2},
    {"0::/a/b\n", "/sys/fs/cgroup/a/cpu.max", "100000 100000\n", "/sys/fs/cgroup/a/b/cpu.max",
     "max 100000\n", 1},
    {"0::/a/b\n", "/sys/fs/cgroup/cpu.max", "50000 100000\n", NULL, NULL, 1},
    {"0::/\n", "/sys/fs/cgroup/cpu.max", "", NULL, NULL, 0},
    {"0::/\n", "/sys/fs/cgroup/cpu.max", "100000 0\n", NULL, NULL, 0},
    {"nonsense\n0::/\n4:cpu,cpuacct:/a\n", "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n",
     "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n", 1},
    {"3:cpu:/a\n", "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n",
     "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n", 0},
    {"3:memory:/a\n", "/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "1000\n",
     "/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n", 0},
};

Test(machine, control_groups) {
  int count = allowed_count();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    put("/proc/self/cgroup", rows[i].groups);
    put(rows[i].file, rows[i].text);
    if (rows[i].file2) put(rows[i].file2, rows[i].text2);
    int expected = rows[i].limit && rows[i].limit < count ? rows[i].limit : count;
    cr_assert_eq(rn_machine_processors(root).all, expected, "row %zu", i);
    cr_assert_eq(rn_machine_processors(root).cores, expected, "row %zu", i);
    drop_root();
    make_root();
  }
}

Test(machine, memory_and_descriptors) {
  cr_assert_gt(rn_machine_memory(), 1 << 20);
  cr_assert_gt(rn_machine_descriptors(), 2);
}

// Sanitizers have an allocator of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static long faults_of_thread(void) {
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

// Allocates, writes and frees blocks of 512 KiB at the end of a heap of malloc's. Not on the main
// thread, whose heap has other rules. Returns how many pages the system had to give, in all.
static void* reuse_heap(void* arg) {
  long* out = arg;
  const size_t size = 512 << 10;
  for (int i = 0; i < 100; ++i) {
    if (i == 1) *out = -faults_of_thread();
    char* volatile block = malloc(size);
    cr_assert_not_null(block);
    memset(block, i, size);
    free(block);
  }
  *out += faults_of_thread();
  return NULL;
}

Test(machine, freed_blocks_keep_their_pages) {
  rn_machine_map_large_blocks();
  long faults = 0;
  pthread_t thread;
  cr_assert_eq(pthread_create(&thread, NULL, reuse_heap, &faults), 0);
  pthread_join(thread, NULL);
  cr_assert_lt(faults, 1000);  // 99 times 128 if each free gave the pages back
}
#endif
