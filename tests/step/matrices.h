// Helpers for tests of matmul passes: matrices to feed, slices of columns, comparison of bits.
#ifndef RUNNEL_TESTS_STEP_MATRICES_H_
#define RUNNEL_TESTS_STEP_MATRICES_H_

#include "util.h"

// Numbers between -1/8 and 1/8, by |seed|.
static RT_UNUSED rn_tensor_t numbers(int64_t rows, int64_t columns, uint64_t seed) {
  rn_tensor_t value;
  const int64_t dims[2] = {rows, columns};
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){2, dims}, &value));
  for (int64_t i = 0; i < value.count; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    RN_DATA(&value, float)[i] = (float)((double)(seed >> 11) / 9007199254740992.0 - 0.5) / 4;
  }
  return value;
}

static RT_UNUSED rn_edge_t columns(rn_scope_t* s, rn_edge_t x, int32_t first, int32_t count) {
  const int32_t begin[2] = {0, first}, size[2] = {-1, count};
  return rn_Slice(s, x, rn_const_int32_list(s, begin, 2), rn_const_int32_list(s, size, 2));
}

// |got| has the bits of |wanted|, and is cleared.
static RT_UNUSED void same_bits(rn_tensor_t* got, const rn_tensor_t* wanted, int64_t rows,
                                int threads) {
  cr_assert_eq(got->count, wanted->count);
  cr_assert(memcmp(got->data, wanted->data, rn_tensor_bytes(wanted)) == 0,
            "%lld rows on %d threads", (long long)rows, threads);
  rn_tensor_clear(got);
}

#endif  // RUNNEL_TESTS_STEP_MATRICES_H_
