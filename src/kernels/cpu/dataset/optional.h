// Optionals: a variant that holds the components of an element, or nothing.
#ifndef RUNNEL_KERNELS_CPU_DATASET_OPTIONAL_H_
#define RUNNEL_KERNELS_CPU_DATASET_OPTIONAL_H_

#include "framework/kernel.h"

typedef struct rn_optional_t {
  rn_object_t object;
  rn_allocator_t allocator;
  int32_t count;  // < 0 if empty
  rn_tensor_t values[];
} rn_optional_t;

// Creates an optional of |count| unset components; an empty one if count < 0.
RN_MUST_USE rn_status_t rn_optional_create(int32_t count, rn_optional_t** out);
// |object| as an optional; NULL if it is not one.
rn_optional_t* rn_optional_from(rn_object_t* object);

#endif  // RUNNEL_KERNELS_CPU_DATASET_OPTIONAL_H_
