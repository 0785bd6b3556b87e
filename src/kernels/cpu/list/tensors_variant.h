// Several tensors in one variant: the parts of a ragged tensor (row splits, then values), or the
// components of a composite tensor. Immutable once they are set.
#ifndef RUNNEL_KERNELS_CPU_LIST_TENSORS_VARIANT_H_
#define RUNNEL_KERNELS_CPU_LIST_TENSORS_VARIANT_H_

#include "base/str.h"
#include "tensor/object.h"
#include "tensor/tensor.h"

typedef enum rn_tensors_kind_t { RN_TENSORS_RAGGED, RN_TENSORS_COMPOSITE } rn_tensors_kind_t;

typedef struct rn_tensors_variant_t {
  rn_object_t object;
  rn_allocator_t allocator;
  rn_tensors_kind_t kind;
  char* metadata;  // of a composite: a CompositeTensorVariantMetadata; Owned
  size_t metadata_size;
  int32_t count;
  rn_tensor_t values[];  // Owned
} rn_tensors_variant_t;

// Makes a variant of |count| unset tensors; copies |metadata|.
RN_MUST_USE rn_status_t rn_tensors_variant_create(rn_allocator_t allocator, rn_tensors_kind_t kind,
                                                  rn_str_t metadata, int32_t count,
                                                  rn_tensors_variant_t** out);
void rn_tensors_variant_release(rn_tensors_variant_t* variant);  // NULL is fine
// |object| as a variant of |kind|; NULL if it is not one.
rn_tensors_variant_t* rn_tensors_variant_from(rn_object_t* object, rn_tensors_kind_t kind);

#endif  // RUNNEL_KERNELS_CPU_LIST_TENSORS_VARIANT_H_
