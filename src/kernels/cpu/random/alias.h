// Draws from a fixed distribution in constant time, with Walker's alias method.
#ifndef RUNNEL_KERNELS_CPU_RANDOM_ALIAS_H_
#define RUNNEL_KERNELS_CPU_RANDOM_ALIAS_H_

#include "framework/kernel.h"
#include "kernels/cpu/random/philox.h"

// A class of the distribution: itself with |probability|, else |other|.
typedef struct rn_alias_t {
  float probability;
  int32_t other;
} rn_alias_t;

// Makes the |n| classes of a distribution with these weights, and returns the sum of the weights.
// The caller frees |*out|, which is NULL after a failure.
RN_MUST_USE rn_status_t rn_alias_make(rn_allocator_t allocator, const float* weights, int64_t n,
                                      double* out_total, rn_alias_t** out);
// Draws a class, with the words that TensorFlow uses for it. |n| > 0.
int64_t rn_alias_draw(const rn_alias_t* aliases, int64_t n, rn_philox_single_t* words);

#endif  // RUNNEL_KERNELS_CPU_RANDOM_ALIAS_H_
