// A tensor as the element of a variant tensor.
#ifndef RUNNEL_KERNELS_CPU_LIST_TENSOR_VARIANT_H_
#define RUNNEL_KERNELS_CPU_LIST_TENSOR_VARIANT_H_

#include "tensor/object.h"
#include "tensor/tensor.h"

// Creates an object that holds |*tensor|, which must own its bytes and is moved even on failure.
// The caller gets the only reference.
RN_MUST_USE rn_status_t rn_tensor_variant_create(rn_allocator_t allocator, rn_tensor_t* tensor,
                                                 rn_object_t** out);
// The tensor in |object|, borrowed; NULL if |object| is NULL or holds something else.
const rn_tensor_t* rn_tensor_variant_get(const rn_object_t* object);

#endif  // RUNNEL_KERNELS_CPU_LIST_TENSOR_VARIANT_H_
