// The kinds of variant values that can be sent in messages, and leave a session.
#ifndef RUNNEL_TENSOR_VARIANT_H_
#define RUNNEL_TENSOR_VARIANT_H_

#include "proto/tensor.pb.h"
#include "tensor/object.h"
#include "tensor/tensor.h"

typedef struct rn_variant_kind_t {
  const char* type_name;  // TensorFlow's name
  bool (*holds)(const rn_object_t* object);
  // |*out| may borrow from the object; the rest is in |arena|.
  rn_status_t (*to_proto)(const rn_object_t* object, rn_arena_t* arena,
                          rn_pb_VariantTensorDataProto_t* out);
  // Copies what it keeps. No more than |max_bytes| of elements are allocated.
  rn_status_t (*from_proto)(const rn_pb_VariantTensorDataProto_t* proto, size_t max_bytes,
                            rn_allocator_t allocator, rn_object_t** out);
  // Sets |*out| to the same value with its elements in host memory, or leaves it NULL if they are
  // there. NULL if they always are. |depth| is for rn_variants_to_host.
  rn_status_t (*to_host)(rn_object_t* object, int depth, rn_object_t** out);
} rn_variant_kind_t;

extern const rn_variant_kind_t* const rn_variant_kinds[];  // NULL-terminated; kernels/variants.c

// Moves what the variants of |tensor| hold to host memory, so that they may outlive the devices of
// their session. |depth| is how deeply the tensor is nested in others; at first 0.
RN_MUST_USE rn_status_t rn_variants_to_host(rn_tensor_t* tensor, int depth);

#endif  // RUNNEL_TENSOR_VARIANT_H_
