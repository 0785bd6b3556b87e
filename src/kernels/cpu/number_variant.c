// Numbers in variants, as constants may hold them: kept as the bytes of their message.
#include <string.h>

#include "base/alloc.h"
#include "tensor/variant.h"

typedef struct number_t {
  rn_object_t object;
  rn_allocator_t allocator;
  const rn_variant_kind_t* kind;
  size_t size;
  char bytes[8];
} number_t;

static void number_destroy(rn_object_t* object) {
  number_t* number = (number_t*)object;
  RN_FREE(number->allocator, number);
}

static bool is_kind(const rn_object_t* object, const rn_variant_kind_t* kind) {
  return object && object->destroy == number_destroy && ((const number_t*)object)->kind == kind;
}

static rn_status_t number_to_proto(const rn_object_t* object, rn_arena_t* arena,
                                   rn_pb_VariantTensorDataProto_t* out) {
  const number_t* number = (const number_t*)object;
  (void)arena;
  out->metadata = rn_str_n(number->bytes, number->size);
  return RN_OK;
}

static rn_status_t number_from_proto(const rn_variant_kind_t* kind, size_t size,
                                     const rn_pb_VariantTensorDataProto_t* proto,
                                     rn_allocator_t allocator, rn_object_t** out) {
  number_t* number = NULL;
  *out = NULL;
  if (proto->metadata.size != size || proto->tensors.count != 0)
    return rn_invalid_argument("A variant that holds a %s has %zu bytes, not %zu", kind->type_name,
                               size, proto->metadata.size);
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &number));
  number->object = (rn_object_t){.refs = 1, .destroy = number_destroy};
  number->allocator = allocator;
  number->kind = kind;
  number->size = size;
  memcpy(number->bytes, proto->metadata.data, size);
  *out = &number->object;
  return RN_OK;
}

#define NUMBER(id, type, text)                                                                    \
  extern const rn_variant_kind_t rn_variant_##id;                                                 \
  static bool holds_##id(const rn_object_t* object) { return is_kind(object, &rn_variant_##id); } \
  static rn_status_t read_##id(const rn_pb_VariantTensorDataProto_t* proto, size_t max_bytes,     \
                               rn_allocator_t allocator, rn_object_t** out) {                     \
    (void)max_bytes;                                                                              \
    return number_from_proto(&rn_variant_##id, sizeof(type), proto, allocator, out);              \
  }                                                                                               \
  const rn_variant_kind_t rn_variant_##id = {text, holds_##id, number_to_proto, read_##id};
NUMBER(int32, int32_t, "int")
NUMBER(float32, float, "float")
NUMBER(float64, double, "double")
NUMBER(truth, bool, "bool")
