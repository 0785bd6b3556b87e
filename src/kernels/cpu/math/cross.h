// The check of Cross, for kernels of any device.
#ifndef RUNNEL_KERNELS_CPU_MATH_CROSS_H_
#define RUNNEL_KERNELS_CPU_MATH_CROSS_H_

#include "kernels/cpu/array.h"

static inline rn_status_t rn_cross_check(const rn_tensor_t* a, const rn_tensor_t* b) {
  if (!rn_tensor_same_shape(a, b))
    return rn_invalid_argument("Both inputs must be of same shape: %s vs. %s", rn_text_of(a).text,
                               rn_text_of(b).text);
  if (a->rank < 1) return rn_invalid_argument("Input must be at least 1D");
  if (rn_tensor_dim(a, a->rank - 1) != 3)
    return rn_failed_precondition("Cross-products are only defined for 3-element vectors.");
  return RN_OK;
}

#endif  // RUNNEL_KERNELS_CPU_MATH_CROSS_H_
