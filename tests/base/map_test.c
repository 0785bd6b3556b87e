// The map against a model: an array indexed by the number in the key.
#include "base/map.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "../support/status.h"

enum { KEYS = 100000 };

static char names[KEYS][16];
static void* model[KEYS];
static char values[2][KEYS];

static rn_str_t key(int i) { return rn_str(names[i]); }

static uint32_t next_random(uint32_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 17;
  *state ^= *state << 5;
  return *state;
}

static void check(const rn_map_t* map) {
  size_t count = 0;
  for (int i = 0; i < KEYS; i++) {
    cr_assert_eq(rn_map_get(map, key(i)), model[i], "key %d", i);
    count += model[i] != NULL;
  }
  cr_assert_eq(map->count, count);
  size_t position = 0, seen = 0;
  for (const rn_map_entry_t* e; (e = rn_map_next(map, &position)); seen++) {
    cr_assert_eq(rn_map_get(map, e->key), e->value);
  }
  cr_assert_eq(seen, count);
}

Test(map, hundred_thousand_keys_and_removals_as_the_model_says) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_map_t map;
  rn_map_init(&map, rn_allocator_counting(&counting));
  for (int i = 0; i < KEYS; i++) snprintf(names[i], sizeof names[i], "node_%d", i);
  for (int i = 0; i < KEYS; i++) {
    model[i] = &values[0][i];
    OK(rn_map_put(&map, key(i), model[i]));
  }
  check(&map);
  uint32_t random = 1;
  for (int n = 0; n < 300000; n++) {
    int i = (int)(next_random(&random) % KEYS);
    if (next_random(&random) % 3) {
      cr_assert_eq(rn_map_remove(&map, key(i)), model[i]);
      model[i] = NULL;
    } else {
      model[i] = &values[1][i];
      OK(rn_map_put(&map, key(i), model[i]));
    }
  }
  check(&map);
  for (int i = 0; i < KEYS; i++) cr_assert_eq(rn_map_remove(&map, key(i)), model[i]);
  cr_assert_eq(map.count, 0);
  rn_map_clear(&map);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(map, small_table_with_wrap_around) {
  // Few slots, many turns: every removal closes a hole, also across the end of the table.
  for (int i = 0; i < 12; i++) snprintf(names[i], sizeof names[i], "k%d", i);
  rn_map_t map;
  rn_map_init(&map, rn_allocator_system());
  uint32_t random = 7;
  for (int n = 0; n < 200000; n++) {
    int i = (int)(next_random(&random) % 12);
    if (next_random(&random) % 2) {
      cr_assert_eq(rn_map_remove(&map, key(i)), model[i]);
      model[i] = NULL;
    } else {
      model[i] = &values[0][i];
      OK(rn_map_put(&map, key(i), model[i]));
    }
    for (int k = 0; k < 12; k++) cr_assert_eq(rn_map_get(&map, key(k)), model[k]);
  }
  cr_assert_eq(map.capacity, 16);
  rn_map_clear(&map);
}

Test(map, empty_and_edges) {
  rn_map_t map;
  rn_map_init(&map, rn_allocator_system());
  size_t position = 0;
  cr_assert_null(rn_map_get(&map, RN_STR("a")));
  cr_assert_null(rn_map_remove(&map, RN_STR("a")));
  cr_assert_null(rn_map_next(&map, &position));
  int value = 0, other = 0;
  OK(rn_map_put(&map, (rn_str_t){0}, &value));
  cr_assert_eq(rn_map_get(&map, RN_STR("")), &value);
  OK(rn_map_put(&map, rn_str_n("a\0b", 3), &other));
  cr_assert_null(rn_map_get(&map, RN_STR("a")));
  cr_assert_eq(rn_map_get(&map, rn_str_n("a\0b", 3)), &other);
  rn_status_t status = rn_map_put(&map, RN_STR("n"), NULL);
  cr_assert_eq(rn_status_code(status), RN_CODE_INTERNAL);
  rn_status_free(status);
  rn_map_clear(&map);
  rn_map_clear(&map);
}

Test(map, replacing_keeps_the_first_key) {
  rn_map_t map;
  rn_map_init(&map, rn_allocator_system());
  char first[] = "k", second[] = "k";
  int a, b;
  OK(rn_map_put(&map, rn_str(first), &a));
  OK(rn_map_put(&map, rn_str(second), &b));
  size_t position = 0;
  const rn_map_entry_t* entry = rn_map_next(&map, &position);
  cr_assert_eq(entry->key.data, first);
  cr_assert_eq(entry->value, &b);
  cr_assert_eq(map.count, 1);
  rn_map_clear(&map);
}

Test(map, short_of_memory_keeps_the_entries) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system(), .fail_at = 2};
  rn_map_t map;
  rn_map_init(&map, rn_allocator_counting(&counting));
  for (int i = 0; i < 20; i++) {
    snprintf(names[i], sizeof names[i], "k%d", i);
    rn_status_t status = rn_map_put(&map, key(i), names[i]);
    cr_assert_eq(rn_ok(status), i != 12);
    rn_status_free(status);
  }
  for (int i = 0; i < 20; i++) {
    cr_assert_eq(rn_map_get(&map, key(i)), i == 12 ? NULL : names[i]);
  }
  rn_map_clear(&map);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(map, reserve) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_map_t map;
  rn_map_init(&map, rn_allocator_counting(&counting));
  for (int i = 0; i < 10; i++) {
    snprintf(names[i], sizeof names[i], "k%d", i);
    OK(rn_map_put(&map, key(i), names[i]));
  }
  OK(rn_map_reserve(&map, 5000));
  int64_t allocations = counting.allocations;
  for (int i = 10; i < 5000; i++) {
    snprintf(names[i], sizeof names[i], "k%d", i);
    OK(rn_map_put(&map, key(i), names[i]));
  }
  cr_assert_eq(counting.allocations, allocations);
  for (int i = 0; i < 5000; i++) cr_assert_eq(rn_map_get(&map, key(i)), names[i]);
  rn_status_t status = rn_map_reserve(&map, SIZE_MAX / 4);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  rn_status_free(status);
  rn_map_clear(&map);
  cr_assert_eq(counting.live_blocks, 0);
}
