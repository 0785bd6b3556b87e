// Tests of the memory of models that are loaded beside others.
#include "serve/model/quiet_alloc.h"

#include <stdio.h>
#include <string.h>

#include "../support/status.h"
#include "base/pages.h"

// What the system knows about large pages at |address|: "hg" wanted, "nh" unwanted, "" neither.
static const char* wish_at(const void* address) {
  FILE* file = fopen("/proc/self/smaps", "r");
  char line[512];
  const char* wish = "";
  bool is_in = false;
  cr_assert_not_null(file);
  while (fgets(line, sizeof line, file)) {
    unsigned long begin, end;
    if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
      is_in = begin <= (unsigned long)address && (unsigned long)address < end;
    if (!is_in || strncmp(line, "VmFlags:", 8) != 0) continue;
    if (strstr(line, " hg")) wish = "hg";
    if (strstr(line, " nh")) wish = "nh";
  }
  fclose(file);
  return wish;
}

static bool has_large_pages(void) {
  FILE* file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
  if (file) fclose(file);
  return file != NULL;
}

// Between the first and the last large page of a block.
static const void* middle(const void* start) { return (const char*)start + RN_PAGE_LARGE; }

Test(quiet_alloc, has_small_pages_while_loading) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_quiet_alloc_t* quiet = NULL;
  OK(rn_quiet_alloc_create(rn_allocator_counting(&counting), true, &quiet));
  rn_allocator_t allocator = rn_quiet_allocator(quiet);
  void *kept = NULL, *freed = NULL, *late = NULL, *small = NULL;
  OK(rn_alloc(allocator, 8 * RN_PAGE_LARGE, &kept));
  OK(rn_alloc(allocator, 40 * RN_PAGE_LARGE, &freed));
  OK(rn_alloc(allocator, 100, &small));
  if (has_large_pages()) cr_expect_str_eq(wish_at(middle(kept)), "nh");
  memset(kept, 1, 8 * RN_PAGE_LARGE);
  rn_free(allocator, freed, 40 * RN_PAGE_LARGE);
  rn_quiet_alloc_settle(quiet);
  OK(rn_alloc(allocator, 8 * RN_PAGE_LARGE, &late));
  if (has_large_pages()) {
    cr_expect_str_eq(wish_at(middle(kept)), "hg");
    cr_expect_str_eq(wish_at(middle(late)), "hg");
  }
  cr_assert_eq(((char*)kept)[8 * RN_PAGE_LARGE - 1], 1);
  rn_free(allocator, kept, 8 * RN_PAGE_LARGE);
  rn_free(allocator, late, 8 * RN_PAGE_LARGE);
  rn_quiet_alloc_release(quiet);
  rn_free(allocator, small, 100);  // outlives the owner
  cr_assert_eq(counting.live_blocks, 0);
}

Test(quiet_alloc, moves_blocks) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_quiet_alloc_t* quiet = NULL;
  OK(rn_quiet_alloc_create(rn_allocator_counting(&counting), true, &quiet));
  rn_allocator_t allocator = rn_quiet_allocator(quiet);
  void* block = NULL;
  OK(rn_alloc(allocator, 3 * RN_PAGE_LARGE, &block));
  memset(block, 7, 3 * RN_PAGE_LARGE);
  char* moved = allocator.fn(allocator.self, block, 3 * RN_PAGE_LARGE, 30 * RN_PAGE_LARGE);
  cr_assert_not_null(moved);
  cr_assert_eq(moved[3 * RN_PAGE_LARGE - 1], 7);
  moved = allocator.fn(allocator.self, moved, 30 * RN_PAGE_LARGE, 100);
  cr_assert_eq(moved[99], 7);
  rn_quiet_alloc_settle(quiet);
  rn_free(allocator, moved, 100);
  rn_quiet_alloc_release(quiet);
  cr_assert_eq(counting.live_blocks, 0);
}

// The base has no memory.
Test(quiet_alloc, passes_failures_on) {
  for (int fail_at = 1; fail_at <= 3; ++fail_at) {
    rn_counting_allocator_t counting = {
        .base = rn_allocator_system(), .fail_at = fail_at, .fail_all_after = true};
    rn_quiet_alloc_t* quiet = NULL;
    rn_status_t status = rn_quiet_alloc_create(rn_allocator_counting(&counting), true, &quiet);
    void* block = NULL;
    if (rn_ok(status)) status = rn_alloc(rn_quiet_allocator(quiet), 3 * RN_PAGE_LARGE, &block);
    if (fail_at == 3)  // a block that cannot be remembered is a block all the same
      OK(status);
    else
      FAILS(status, RESOURCE_EXHAUSTED);
    if (block) rn_free(rn_quiet_allocator(quiet), block, 3 * RN_PAGE_LARGE);
    rn_quiet_alloc_release(quiet);
    cr_assert_eq(counting.live_blocks, 0);
  }
}
