// Checks of the row splits of ragged tensors.
#ifndef RUNNEL_KERNELS_CPU_ARRAY_RAGGED_H_
#define RUNNEL_KERNELS_CPU_ARRAY_RAGGED_H_

#include "kernels/cpu/array.h"

// Fails, in stock's words, unless |splits| is a vector that begins with 0 and never descends. With
// |values| >= 0 it must end with that.
RN_MUST_USE rn_status_t rn_ragged_check_splits(const rn_tensor_t* splits, int64_t values);

#endif  // RUNNEL_KERNELS_CPU_ARRAY_RAGGED_H_
