// Growable arrays.
#include "base/vec.h"

#include <criterion/criterion.h>

#include "../support/status.h"

Test(vec, grows_and_keeps) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_allocator_t allocator = rn_allocator_counting(&counting);
  RN_VEC(int) items = {0};
  for (int i = 0; i < 100000; i++) OK(rn_vec_push(&items, allocator, i * 3));
  for (int i = 0; i < 100000; i++) cr_assert_eq(items.items[i], i * 3);
  cr_assert_lt(counting.allocations, 20);
  cr_assert_eq(counting.live_bytes, (int64_t)(items.capacity * sizeof(int)));
  rn_vec_free(&items, allocator);
  cr_assert_eq(counting.live_bytes, 0);
  OK(rn_vec_reserve(&items, allocator, 1000));
  cr_assert_geq(items.capacity, 1000);
  rn_vec_free(&items, allocator);
  rn_vec_free(&items, allocator);
}

Test(vec, holds_structs) {
  typedef struct pair_t {
    int a;
    double b;
  } pair_t;
  RN_VEC(pair_t) items = {0};
  OK(rn_vec_push(&items, rn_allocator_system(), (pair_t){1, 2.5}));
  cr_assert_eq(items.items[0].b, 2.5);
  rn_vec_free(&items, rn_allocator_system());
}

Test(vec, short_of_memory_keeps_the_elements) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system(), .fail_at = 2};
  rn_allocator_t allocator = rn_allocator_counting(&counting);
  RN_VEC(int) items = {0};
  for (int i = 0; i < 8; i++) OK(rn_vec_push(&items, allocator, i));
  rn_status_t status = rn_vec_push(&items, allocator, 8);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  cr_assert_eq(items.count, 8);
  cr_assert_eq(items.items[7], 7);
  status = rn_vec_reserve(&items, allocator, SIZE_MAX / 2);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  rn_vec_free(&items, allocator);
  cr_assert_eq(counting.live_bytes, 0);
}
