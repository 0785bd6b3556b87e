// See number_variant.h. A number is stored as the bytes of its message.
#include "kernels/cpu/list/number_variant.h"

#include <string.h>

#include "base/alloc.h"

struct rn_number_variant_t {
  rn_object_t object;
  rn_allocator_t allocator;
  const rn_variant_kind_t* kind;
  size_t size;
  char bytes[8];
};

extern const rn_variant_kind_t rn_variant_int32;
extern const rn_variant_kind_t rn_variant_float32;
extern const rn_variant_kind_t rn_variant_float64;
extern const rn_variant_kind_t rn_variant_truth;

static void number_destroy(rn_object_t* object) {
  rn_number_variant_t* number = (rn_number_variant_t*)object;
  RN_FREE(number->allocator, number);
}

rn_number_variant_t* rn_number_variant_from(rn_object_t* object) {
  return object && object->destroy == number_destroy ? (rn_number_variant_t*)object : NULL;
}

static bool is_kind(const rn_object_t* object, const rn_variant_kind_t* kind) {
  const rn_number_variant_t* number = rn_number_variant_from((rn_object_t*)object);
  return number && number->kind == kind;
}

static rn_status_t make(const rn_variant_kind_t* kind, const void* bytes, size_t size,
                        rn_allocator_t allocator, rn_object_t** out) {
  rn_number_variant_t* number = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &number));
  number->object = (rn_object_t){.refs = 1, .destroy = number_destroy};
  number->allocator = allocator;
  number->kind = kind;
  number->size = size;
  memcpy(number->bytes, bytes, size);
  *out = &number->object;
  return RN_OK;
}

rn_status_t rn_number_variant_zero(const rn_number_variant_t* like, rn_object_t** out) {
  static const char zero[sizeof like->bytes] = {0};
  return make(like->kind, zero, like->size, like->allocator, out);
}

rn_status_t rn_number_variant_add(const rn_number_variant_t* a, const rn_number_variant_t* b,
                                  rn_object_t** out) {
  char sum[sizeof a->bytes];
  *out = NULL;
  if (a->kind != b->kind)
    return rn_internal(
        "BinaryOpVariants: Variants a and b have different type ids.  Type names: '%s' vs. '%s'",
        a->kind->type_name, b->kind->type_name);
#define ADD(id, type, plus)          \
  if (a->kind == &rn_variant_##id) { \
    type x, y;                       \
    memcpy(&x, a->bytes, sizeof x);  \
    memcpy(&y, b->bytes, sizeof y);  \
    x = x plus y;                    \
    memcpy(sum, &x, sizeof x);       \
  }
  ADD(int32, uint32_t, +)  // wraps around, as in stock
  ADD(float32, float, +)
  ADD(float64, double, +)
  ADD(truth, bool, ||)
#undef ADD
  return make(a->kind, sum, a->size, a->allocator, out);
}

void rn_number_variant_print(const rn_number_variant_t* number, rn_strbuf_t* buf) {
#define PRINT(id, type, format, as)              \
  if (number->kind == &rn_variant_##id) {        \
    type value;                                  \
    memcpy(&value, number->bytes, sizeof value); \
    rn_strbuf_printf(buf, format, (as)value);    \
  }
  PRINT(int32, int32_t, "%d", int)
  PRINT(float32, float, "%g", double)
  PRINT(float64, double, "%g", double)
  PRINT(truth, bool, "%d", int)
#undef PRINT
}

static rn_status_t number_to_proto(const rn_object_t* object, rn_arena_t* arena,
                                   rn_pb_VariantTensorDataProto_t* out) {
  const rn_number_variant_t* number = (const rn_number_variant_t*)object;
  (void)arena;
  out->metadata = rn_str_n(number->bytes, number->size);
  return RN_OK;
}

static rn_status_t number_from_proto(const rn_variant_kind_t* kind, size_t size,
                                     const rn_pb_VariantTensorDataProto_t* proto,
                                     rn_allocator_t allocator, rn_object_t** out) {
  *out = NULL;
  if (proto->metadata.size != size || proto->tensors.count != 0)
    return rn_invalid_argument("A variant of type %s has %zu bytes instead of %zu", kind->type_name,
                               size, proto->metadata.size);
  return make(kind, proto->metadata.data, size, allocator, out);
}

#define NUMBER(id, type, text)                                                                    \
  static bool holds_##id(const rn_object_t* object) { return is_kind(object, &rn_variant_##id); } \
  static rn_status_t read_##id(const rn_pb_VariantTensorDataProto_t* proto, size_t max_bytes,     \
                               rn_allocator_t allocator, rn_object_t** out) {                     \
    (void)max_bytes;                                                                              \
    return number_from_proto(&rn_variant_##id, sizeof(type), proto, allocator, out);              \
  }                                                                                               \
  const rn_variant_kind_t rn_variant_##id = {text, holds_##id, number_to_proto, read_##id, NULL};
NUMBER(int32, int32_t, "int")
NUMBER(float32, float, "float")
NUMBER(float64, double, "double")
NUMBER(truth, bool, "bool")
