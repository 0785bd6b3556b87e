// Tests of the allocator with a limit.
#include "base/cap_alloc.h"

#include "../support/status.h"

Test(cap_alloc, counts_and_limits) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_cap_alloc_t* cap = NULL;
  OK(rn_cap_alloc_create(rn_allocator_counting(&counting), 1000, &cap));
  rn_allocator_t allocator = rn_cap_allocator(cap);
  void *a = NULL, *b = NULL, *c = NULL;
  OK(rn_alloc(allocator, 600, &a));
  cr_assert_eq(rn_cap_alloc_bytes(cap), 600);
  FAILS(rn_alloc(allocator, 401, &c), RESOURCE_EXHAUSTED);
  FAILS(rn_alloc(allocator, SIZE_MAX - 10, &c), RESOURCE_EXHAUSTED);
  cr_assert_eq(rn_cap_alloc_bytes(cap), 600);
  OK(rn_alloc(allocator, 400, &b));
  FAILS(rn_alloc(allocator, 1, &c), RESOURCE_EXHAUSTED);
  cr_assert_null(allocator.fn(allocator.self, a, 600, 601));
  a = allocator.fn(allocator.self, a, 600, 100);
  cr_assert_eq(rn_cap_alloc_bytes(cap), 500);
  a = allocator.fn(allocator.self, a, 100, 600);
  cr_assert(a);
  rn_free(allocator, a, 600);
  cr_assert_eq(rn_cap_alloc_bytes(cap), 400);
  rn_free(allocator, b, 400);
  cr_assert_eq(rn_cap_alloc_bytes(cap), 0);
  rn_cap_alloc_release(cap);
  cr_assert_eq(counting.live_blocks, 0);
}

Test(cap_alloc, lives_as_long_as_its_blocks) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_cap_alloc_t* cap = NULL;
  OK(rn_cap_alloc_create(rn_allocator_counting(&counting), SIZE_MAX, &cap));
  rn_allocator_t allocator = rn_cap_allocator(cap);
  void *a = NULL, *b = NULL;
  OK(rn_alloc(allocator, 10, &a));
  OK(rn_alloc(allocator, 20, &b));
  rn_cap_alloc_release(cap);
  rn_free(allocator, a, 10);
  cr_assert_eq(counting.live_blocks, 2);
  rn_free(allocator, b, 20);
  cr_assert_eq(counting.live_blocks, 0);
}

// The base has no memory.
Test(cap_alloc, passes_failures_on) {
  rn_counting_allocator_t counting = {
      .base = rn_allocator_system(), .fail_at = 2, .fail_all_after = true};
  rn_cap_alloc_t* cap = NULL;
  OK(rn_cap_alloc_create(rn_allocator_counting(&counting), 1000, &cap));
  void* a = NULL;
  FAILS(rn_alloc(rn_cap_allocator(cap), 10, &a), RESOURCE_EXHAUSTED);
  cr_assert_eq(rn_cap_alloc_bytes(cap), 0);
  rn_cap_alloc_release(cap);
  cr_assert_eq(counting.live_blocks, 0);
}
