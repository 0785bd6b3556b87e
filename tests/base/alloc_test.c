// Allocators: the checked calls, and the counting allocator that fault sweeps use.
#include "base/alloc.h"

#include <criterion/criterion.h>

#include "../support/status.h"

Test(alloc, zero_bytes_are_a_pointer) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_allocator_t allocator = rn_allocator_counting(&counting);
  void* p = NULL;
  OK(rn_alloc(allocator, 0, &p));
  cr_assert_not_null(p);
  rn_free(allocator, p, 0);
  OK(rn_alloc_zeroed(allocator, 0, &p));
  rn_free(allocator, p, 0);
  OK(rn_alloc_array(allocator, 0, 8, &p));
  rn_free(allocator, p, 0);
  cr_assert_eq(counting.live_blocks, 0);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(alloc, zeroed_is_zero_whatever_the_allocator) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_allocator_t allocators[] = {rn_allocator_system(), rn_allocator_counting(&counting)};
  for (int a = 0; a < 2; a++) {
    for (int round = 0; round < 3; round++) {
      unsigned char* p = NULL;
      OK(rn_alloc_zeroed(allocators[a], 1000, (void**)&p));
      cr_assert_eq((uintptr_t)p % 16, 0);
      for (int i = 0; i < 1000; i++) cr_assert_eq(p[i], 0);
      memset(p, 0xff, 1000);
      rn_free(allocators[a], p, 1000);
    }
  }
}

Test(alloc, array_overflow_is_a_status) {
  void* p = &p;
  rn_status_t status = rn_alloc_array(rn_allocator_system(), SIZE_MAX / 4, 8, &p);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  cr_assert_null(p);
  rn_status_free(status);
}

Test(alloc, too_much_is_a_status) {
  void* p = &p;
  rn_status_t status = rn_alloc(rn_allocator_system(), PTRDIFF_MAX, &p);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  cr_assert_null(p);
}

Test(alloc, counting_counts) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_allocator_t allocator = rn_allocator_counting(&counting);
  void *a, *b;
  OK(rn_alloc(allocator, 100, &a));
  OK(rn_alloc(allocator, 50, &b));
  cr_assert_eq(counting.allocations, 2);
  cr_assert_eq(counting.live_blocks, 2);
  cr_assert_eq(counting.live_bytes, 150);
  rn_free(allocator, a, 100);
  b = allocator.fn(allocator.self, b, 50, 20);
  cr_assert_eq(counting.allocations, 3);
  cr_assert_eq(counting.live_blocks, 1);
  cr_assert_eq(counting.live_bytes, 20);
  cr_assert_eq(counting.peak_bytes, 150);
  rn_free(allocator, b, 20);
  rn_free(allocator, NULL, 20);
  cr_assert_eq(counting.live_blocks, 0);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(alloc, counting_fails_the_nth) {
  for (int all = 0; all < 2; all++) {
    rn_counting_allocator_t counting = {
        .base = rn_allocator_system(), .fail_at = 2, .fail_all_after = all};
    rn_allocator_t allocator = rn_allocator_counting(&counting);
    void* p[3];
    for (int i = 0; i < 3; i++) {
      rn_status_t status = rn_alloc(allocator, 8, &p[i]);
      bool fails = i == 1 || (i == 2 && all);
      cr_assert_eq(rn_ok(status), !fails);
      rn_status_free(status);
    }
    for (int i = 0; i < 3; i++) rn_free(allocator, p[i], 8);
    cr_assert_eq(counting.live_blocks, 0);
  }
}

Test(alloc, failed_growth_keeps_the_block) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system(), .fail_at = 2};
  rn_allocator_t allocator = rn_allocator_counting(&counting);
  char* p = NULL;
  OK(rn_alloc(allocator, 4, (void**)&p));
  memcpy(p, "abc", 4);
  cr_assert_null(allocator.fn(allocator.self, p, 4, 4000));
  cr_assert_str_eq(p, "abc");
  cr_assert_eq(counting.live_bytes, 4);
  rn_free(allocator, p, 4);
}

Test(alloc, default_can_be_replaced) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  cr_assert_eq(rn_allocator_default().fn, rn_allocator_system().fn);
  rn_allocator_set_default_for_testing(rn_allocator_counting(&counting));
  int* p = NULL;
  OK(RN_NEW(rn_allocator_default(), &p));
  cr_assert_eq(counting.live_bytes, 4);
  RN_FREE(rn_allocator_default(), p);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(alloc, checked_arithmetic) {
  size_t s;
  int64_t i;
  cr_assert(rn_mul_ok(SIZE_MAX / 2, 2, &s));
  cr_assert(!rn_mul_ok(SIZE_MAX / 2 + 1, 2, &s));
  cr_assert(!rn_add_ok(SIZE_MAX, 1, &s));
  cr_assert(!rn_mul_i64_ok(INT64_MIN, -1, &i));
  cr_assert(!rn_add_i64_ok(INT64_MAX, 1, &i));
}
