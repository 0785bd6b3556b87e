// Optionals: the components of an element, or nothing, in a variant.
#ifndef RUNNEL_KERNELS_CPU_DATASET_OPTIONAL_H_
#define RUNNEL_KERNELS_CPU_DATASET_OPTIONAL_H_

#include "framework/kernel.h"

typedef struct rn_optional_t {
  rn_object_t object;
  rn_allocator_t allocator;
  int32_t count;  // < 0: nothing
  rn_tensor_t values[];
} rn_optional_t;

// An optional of |count| components, unset; count < 0: of nothing.
RN_MUST_USE rn_status_t rn_optional_create(int32_t count, rn_optional_t** out);
// |object| as an optional; NULL if it is something else.
rn_optional_t* rn_optional_from(rn_object_t* object);

#endif  // RUNNEL_KERNELS_CPU_DATASET_OPTIONAL_H_
