// Tests of advice about pages, and of reads that touch theirs.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // syscall, mincore
#endif
#include "base/pages.h"

#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/status.h"
#include "base/fs.h"

#define PAGE ((size_t)4096)

static char* map(size_t size) {
  char* start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  cr_assert_neq(start, MAP_FAILED);
  return start;
}

static size_t resident(char* start, size_t size) {
  static unsigned char there[4096];
  size_t count = 0;
  cr_assert_leq(size / PAGE, sizeof there);
  cr_assert_eq(mincore(start, size, there), 0);
  for (size_t i = 0; i < size / PAGE; ++i) count += there[i] & 1;
  return count;
}

Test(pages, touch_keeps_contents) {
  const size_t size = 64 * PAGE;
  char* start = map(size);
  start[5 * PAGE + 7] = 42;
  rn_pages_touch(start + 3 * PAGE + 1, 10 * PAGE);  // ends in the eleventh page after the first
  cr_assert_eq(resident(start, size), 11);
  cr_assert_eq(start[5 * PAGE + 7], 42);
  rn_pages_touch(start, 0);
  rn_pages_touch(start, size);
  cr_assert_eq(resident(start, size), 64);
  munmap(start, size);
}

Test(pages, drop_gives_whole_pages_back) {
  const size_t size = 5 * RN_PAGE_LARGE / 2;
  char* start = map(size);
  memset(start, 1, size);
  rn_pages_drop(start + 1, size - 2);
  cr_assert_eq(resident(start, size), 2);
  cr_assert_eq(start[0], 1);
  cr_assert_eq(start[size - 1], 1);
  cr_assert_eq(start[PAGE], 0);
  rn_pages_drop(start + 1, PAGE);  // no whole page
  cr_assert_eq(start[0], 1);
  rn_pages_drop(NULL, 0);
  munmap(start, size);
}

// Counts the page faults of this thread that its own instructions cause, not the system's; -1 where
// that is not allowed.
static int count_own_faults(void) {
  struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                 .size = sizeof attr,
                                 .config = PERF_COUNT_SW_PAGE_FAULTS,
                                 .exclude_kernel = 1};
  return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

// While the system handles a fault of its own in a read, no other thread can map memory.
Test(pages, reads_leave_no_page_to_the_system) {
  const size_t size = 300 * PAGE;
  const rn_env_t* env = rn_env_system();
  char path[] = "/tmp/rn_pages_test_XXXXXX";
  close(mkstemp(path));
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_system());
  for (size_t i = 0; i < size; ++i) rn_strbuf_append_n(&text, &"abcdefg"[i % 7], 1);
  OK(rn_fs_write(env, path, rn_strbuf_view(&text)));
  rn_file_t* file = NULL;
  OK(rn_fs_open(env, path, RN_OPEN_READ, &file));
  int faults = count_own_faults();
  for (int at_offset = 0; at_offset < 2; ++at_offset) {
    char* to = map(size);
    uint64_t before = 0, after = 0;
    size_t got = 0;
    bool counts = faults >= 0 && read(faults, &before, sizeof before) == sizeof before;
    OK(at_offset ? file->vtable->read_at(file, 0, to, size, &got)
                 : file->vtable->read(file, to, size, &got));
    if (counts && read(faults, &after, sizeof after) == sizeof after)
      cr_expect_geq(after - before, size / PAGE, "%d of %zu", (int)(after - before), size / PAGE);
    cr_assert_eq(got, size);
    cr_assert_arr_eq(to, text.data, size);
    munmap(to, size);
  }
  if (faults >= 0) close(faults);
  OK(file->vtable->close(file));
  OK(env->fs->remove(env->fs_self, path));
  rn_strbuf_clear(&text);
}
