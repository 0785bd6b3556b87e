// Tensors in variants, and their messages, which contain the one tensor.
#include "kernels/cpu/list/tensor_variant.h"

#include "tensor/tensor_proto.h"
#include "tensor/variant.h"

typedef struct boxed_t {
  rn_object_t object;
  rn_allocator_t allocator;
  rn_tensor_t value;
} boxed_t;

static void boxed_destroy(rn_object_t* object) {
  boxed_t* boxed = (boxed_t*)object;
  rn_tensor_clear(&boxed->value);
  RN_FREE(boxed->allocator, boxed);
}

rn_status_t rn_tensor_variant_create(rn_allocator_t allocator, rn_tensor_t* tensor,
                                     rn_object_t** out) {
  boxed_t* boxed = NULL;
  *out = NULL;
  rn_status_t status = RN_NEW(allocator, &boxed);
  if (!rn_ok(status)) {
    rn_tensor_clear(tensor);
    return status;
  }
  boxed->object.refs = 1;
  boxed->object.destroy = boxed_destroy;
  boxed->allocator = allocator;
  boxed->value = *tensor;
  *tensor = (rn_tensor_t){0};
  *out = &boxed->object;
  return RN_OK;
}

const rn_tensor_t* rn_tensor_variant_get(const rn_object_t* object) {
  return object && object->destroy == boxed_destroy ? &((const boxed_t*)object)->value : NULL;
}

static bool holds(const rn_object_t* object) { return rn_tensor_variant_get(object) != NULL; }

static rn_status_t boxed_to_proto(const rn_object_t* object, rn_arena_t* arena,
                                  rn_pb_VariantTensorDataProto_t* out) {
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, 1, &out->tensors.items));
  RN_RETURN_IF_ERROR(rn_tensor_to_proto(rn_tensor_variant_get(object), RN_TENSOR_TYPED, arena,
                                        out->tensors.items));
  out->tensors.count = out->tensors.capacity = 1;
  return RN_OK;
}

static rn_status_t boxed_from_proto(const rn_pb_VariantTensorDataProto_t* proto, size_t max_bytes,
                                    rn_allocator_t allocator, rn_object_t** out) {
  rn_tensor_t value = {0};
  *out = NULL;
  if (proto->tensors.count != 1)
    return rn_invalid_argument("A variant of one tensor contains %u tensors",
                               (unsigned)proto->tensors.count);
  RN_RETURN_IF_ERROR(rn_tensor_from_proto(proto->tensors.items, max_bytes, allocator, &value));
  return rn_tensor_variant_create(allocator, &value, out);
}

extern const rn_variant_kind_t rn_variant_tensor;
const rn_variant_kind_t rn_variant_tensor = {"tensorflow::Tensor", holds, boxed_to_proto,
                                             boxed_from_proto, NULL};
