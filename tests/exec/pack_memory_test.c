// Places in a block: nothing overlaps what lives at the same time, and no memory is wasted that a
// better order would save.
#include "exec/pack_memory.h"

#include "../support/status.h"

enum { MOST = 400 };

static size_t overlap(const rn_packed_t* a, const rn_packed_t* b) {
  bool meet = a->first <= b->last && b->first <= a->last;
  size_t from = a->offset > b->offset ? a->offset : b->offset;
  size_t a_end = a->offset + a->size, b_end = b->offset + b->size;
  size_t to = a_end < b_end ? a_end : b_end;
  return meet && to > from ? to - from : 0;
}

// Returns the most bytes that live at a time.
static size_t check(const rn_packed_t* values, int count, size_t end) {
  size_t most = 0, last = 0;
  for (int i = 0; i < count; ++i) {
    size_t live = 0;
    for (int k = 0; k < count; ++k) {
      if (k != i) cr_assert_eq(overlap(&values[i], &values[k]), 0, "%d and %d overlap", i, k);
      bool lives = values[k].first <= values[i].first && values[k].last >= values[i].first;
      live += lives ? values[k].size : 0;
    }
    if (live > most) most = live;
    if (values[i].offset + values[i].size > last) last = values[i].offset + values[i].size;
    cr_assert_eq(values[i].offset % RN_ALIGN, 0);
  }
  cr_assert_eq(last, end);
  return most;
}

Test(pack_memory, a_large_value_after_small_ones_lies_where_they_were) {
  // In order, the large value finds two free pieces of half its size, with a value between them.
  rn_packed_t values[] = {{.size = 256, .first = 0, .last = 2},
                          {.size = 64, .first = 1, .last = 9},
                          {.size = 256, .first = 2, .last = 2},
                          {.size = 512, .first = 3, .last = 9}};
  size_t end;
  OK(rn_pack_in_order(values, 4, rn_allocator_system(), &end));
  cr_assert_eq(check(values, 4, end), 576);
  cr_assert_eq(end, 1088);
  OK(rn_pack_tightly(values, 4, rn_allocator_system(), &end));
  check(values, 4, end);
  cr_assert_eq(end, 576);
}

Test(pack_memory, random_values_never_overlap) {
  static rn_packed_t values[MOST];
  uint64_t seed = 1;
  for (int turn = 0; turn < 60; ++turn) {
    int count = 1 + turn * 6, first = 0;
    for (int i = 0; i < count; ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      first += (int)(seed >> 60) % 3;
      size_t size = RN_ALIGN * (1 + (seed >> 40) % (turn % 2 ? 9 : 900));
      values[i] = (rn_packed_t){
          .size = size, .first = first, .last = first + (int)((seed >> 33) % (turn % 3 ? 8 : 80))};
    }
    size_t in_order, tight;
    OK(rn_pack_in_order(values, count, rn_allocator_system(), &in_order));
    check(values, count, in_order);
    OK(rn_pack_tightly(values, count, rn_allocator_system(), &tight));
    size_t most = check(values, count, tight);
    cr_assert_leq(tight, in_order);
    cr_assert_geq(tight, most);
    cr_assert_leq(tight, most + most / 3, "%zu bytes for %zu", tight, most);
  }
}

Test(pack_memory, nothing_and_too_much) {
  rn_packed_t values[] = {{.size = SIZE_MAX / RN_ALIGN * RN_ALIGN, .last = 1},
                          {.size = RN_ALIGN, .last = 1}};
  size_t end = 1;
  OK(rn_pack_tightly(values, 0, rn_allocator_system(), &end));
  cr_assert_eq(end, 0);
  rn_status_t status = rn_pack_tightly(values, 2, rn_allocator_system(), &end);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  rn_status_free(status);
}
