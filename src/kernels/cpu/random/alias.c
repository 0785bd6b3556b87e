#include "kernels/cpu/random/alias.h"

rn_status_t rn_alias_make(rn_allocator_t allocator, const float* weights, int64_t n,
                          double* out_total, rn_alias_t** out) {
  int64_t low = 0, high = n;
  double *left = NULL, total = 0;
  int32_t* order = NULL;  // too little from the front, enough from the back
  rn_alias_t* aliases = NULL;
  rn_status_t status = RN_NEW_ARRAY(allocator, (size_t)n, &left);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)n, &order);
  if (rn_ok(status)) status = RN_NEW_ARRAY(allocator, (size_t)n, &aliases);
  for (int64_t i = 0; rn_ok(status) && i < n; ++i) total += weights[i];
  *out_total = total;
  for (int64_t i = 0; rn_ok(status) && i < n; ++i) {
    aliases[i] = (rn_alias_t){1, (int32_t)i};
    left[i] = weights[i] * (double)n / total;
    order[left[i] < 1 ? low++ : --high] = (int32_t)i;
  }
  // Pairs classes that have less than their share with classes that have more.
  while (rn_ok(status) && low > 0 && high < n) {
    int32_t from = order[high++], to = order[--low];
    aliases[to] = (rn_alias_t){(float)left[to], from};
    left[from] -= 1.0 - left[to];
    order[left[from] < 1 ? low++ : --high] = from;
  }
  RN_FREE_ARRAY(allocator, left, n);
  RN_FREE_ARRAY(allocator, order, n);
  *out = aliases;
  return status;
}

int64_t rn_alias_draw(const rn_alias_t* aliases, int64_t n, rn_philox_single_t* words) {
  float r = rn_word_to_float(rn_philox_word(words));
  uint32_t at = rn_philox_below(words, (uint32_t)n);
  return r < aliases[at].probability ? (int64_t)at : aliases[at].other;
}
