// SplitMix64: random bits from a 64-bit state, for draws that need not be secret. A seed gives the
// same sequence everywhere.
#ifndef RUNNEL_BASE_RANDOM_H_
#define RUNNEL_BASE_RANDOM_H_

#include <stdint.h>

#define RN_RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

// The output function: every bit of |z| affects every bit of the result.
static inline uint64_t rn_random_mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static inline uint64_t rn_random_next(uint64_t* state) {
  return rn_random_mix(*state += RN_RANDOM_STEP);
}

// 0 <= result < 1, from the upper 53 of |bits|.
static inline double rn_random_to_unit(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

static inline double rn_random_unit(uint64_t* state) {
  return rn_random_to_unit(rn_random_next(state));
}

#endif  // RUNNEL_BASE_RANDOM_H_
