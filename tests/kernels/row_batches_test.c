// Rows by index: every index is visited once, and those of one row in order, with any number of
// threads.
#include "kernels/cpu/row_batches.h"

#include <criterion/criterion.h>

#include "../support/status.h"

enum { kRows = 300, kCount = 20000 };

typedef struct seen_t {
  int64_t last[kRows];    // the place that the row was last named at
  double history[kRows];  // which depends on the order
  uint8_t times[kCount];
} seen_t;

static void see(void* arg, const int64_t* rows, const int64_t* places, int count) {
  seen_t* seen = arg;
  cr_assert(count > 0 && count <= RN_ROW_BATCH);
  for (int i = 0; i < count; ++i) {
    cr_assert(rows[i] >= 0 && rows[i] < kRows);
    cr_assert(places[i] > seen->last[rows[i]], "place %lld", (long long)places[i]);
    seen->last[rows[i]] = places[i];
    seen->history[rows[i]] = seen->history[rows[i]] * 0.75 + (double)places[i];
    seen->times[places[i]]++;
  }
}

// Some rows often, some never; some indices out of range on either side.
static int64_t index_of(int64_t i) {
  int64_t row = (i * i + 7 * i) % 331 - 10;
  return i % 5 == 0 ? 3 : row;
}

static void run(rn_pool_t* pool, rn_dtype_t dtype, int64_t count, double row_ns, seen_t* seen) {
  rn_tensor_t indices;
  cr_assert(
      rn_ok(rn_tensor_create(rn_allocator_system(), dtype, (rn_shape_t){1, &count}, &indices)));
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == RN_INT64)
      RN_DATA(&indices, int64_t)[i] = index_of(i);
    else if (dtype == RN_INT32)
      RN_DATA(&indices, int32_t)[i] = (int32_t)index_of(i);
    else
      RN_DATA(&indices, int16_t)[i] = (int16_t)index_of(i);
  }
  memset(seen, 0, sizeof *seen);
  for (int r = 0; r < kRows; ++r) seen->last[r] = -1;
  rn_row_batches(pool, &indices, kRows, row_ns, see, seen);
  for (int64_t i = 0; i < count; ++i)
    cr_assert_eq(seen->times[i], index_of(i) >= 0 && index_of(i) < kRows);
  rn_tensor_clear(&indices);
}

Test(row_batches, once_and_in_order, .timeout = 60) {
  static const rn_dtype_t types[] = {RN_INT16, RN_INT32, RN_INT64};
  static const int64_t counts[] = {0, 1, 63, 64, 65, 1000, kCount};
  static const double costs[] = {1, 20, 1000, 1e9};
  static seen_t wanted, got;
  rn_pool_t* pool = NULL;
  OK(rn_pool_create(rn_allocator_system(), 4, &pool));
  for (size_t c = 0; c < sizeof counts / sizeof *counts; ++c) {
    run(NULL, RN_INT64, counts[c], 0, &wanted);
    for (size_t t = 0; t < sizeof types / sizeof *types; ++t) {
      for (size_t k = 0; k < sizeof costs / sizeof *costs; ++k) {
        run(pool, types[t], counts[c], costs[k], &got);
        cr_assert(memcmp(got.history, wanted.history, sizeof got.history) == 0);
      }
    }
  }
  rn_pool_destroy(pool);
}
