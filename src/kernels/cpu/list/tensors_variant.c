// See tensors_variant.h. The messages contain the tensors in order.
#include "kernels/cpu/list/tensors_variant.h"

#include "tensor/tensor_proto.h"
#include "tensor/variant.h"

#define MOST_TENSORS (1 << 20)

static void tensors_destroy(rn_object_t* object) {
  rn_tensors_variant_t* variant = (rn_tensors_variant_t*)object;
  for (int32_t i = 0; i < variant->count; ++i) rn_tensor_clear(&variant->values[i]);
  if (variant->metadata) rn_free(variant->allocator, variant->metadata, variant->metadata_size + 1);
  rn_free(variant->allocator, variant,
          sizeof *variant + (size_t)variant->count * sizeof variant->values[0]);
}

rn_status_t rn_tensors_variant_create(rn_allocator_t allocator, rn_tensors_kind_t kind,
                                      rn_str_t metadata, int32_t count,
                                      rn_tensors_variant_t** out) {
  rn_tensors_variant_t* variant = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(
      allocator, sizeof *variant + (size_t)count * sizeof variant->values[0], (void**)&variant));
  variant->object = (rn_object_t){.refs = 1, .destroy = tensors_destroy};
  variant->allocator = allocator;
  variant->kind = kind;
  variant->metadata_size = metadata.size;
  variant->count = count;
  rn_status_t status = rn_str_dup(allocator, metadata, &variant->metadata);
  if (rn_ok(status))
    *out = variant;
  else
    tensors_destroy(&variant->object);
  return status;
}

void rn_tensors_variant_release(rn_tensors_variant_t* variant) {
  if (variant) rn_object_release(&variant->object);
}

rn_tensors_variant_t* rn_tensors_variant_from(rn_object_t* object, rn_tensors_kind_t kind) {
  rn_tensors_variant_t* variant = (rn_tensors_variant_t*)object;
  return object && object->destroy == tensors_destroy && variant->kind == kind ? variant : NULL;
}

static rn_status_t tensors_to_proto(const rn_object_t* object, rn_arena_t* arena,
                                    rn_pb_VariantTensorDataProto_t* out) {
  const rn_tensors_variant_t* variant = (const rn_tensors_variant_t*)object;
  uint32_t count = (uint32_t)variant->count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->tensors.items));
  out->tensors.count = out->tensors.capacity = count;
  out->metadata = rn_str_n(variant->metadata, variant->metadata_size);
  for (uint32_t i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(
        rn_tensor_to_proto(&variant->values[i], RN_TENSOR_TYPED, arena, &out->tensors.items[i]));
  return RN_OK;
}

static rn_status_t from_proto(rn_tensors_kind_t kind, const rn_pb_VariantTensorDataProto_t* proto,
                              size_t max_bytes, rn_allocator_t allocator, rn_object_t** out) {
  rn_tensors_variant_t* variant = NULL;
  *out = NULL;
  if (proto->tensors.count > MOST_TENSORS ||
      (kind == RN_TENSORS_RAGGED && proto->tensors.count == 0))
    return rn_invalid_argument("A variant of several tensors contains %u tensors",
                               (unsigned)proto->tensors.count);
  RN_RETURN_IF_ERROR(rn_tensors_variant_create(allocator, kind, proto->metadata,
                                               (int32_t)proto->tensors.count, &variant));
  rn_status_t status = RN_OK;
  for (int32_t i = 0; rn_ok(status) && i < variant->count; ++i) {
    status =
        rn_tensor_from_proto(&proto->tensors.items[i], max_bytes, allocator, &variant->values[i]);
    if (rn_ok(status)) max_bytes -= rn_tensor_bytes(&variant->values[i]);
  }
  if (rn_ok(status))
    *out = &variant->object;
  else
    rn_tensors_variant_release(variant);
  return status;
}

static rn_status_t values_to_host(const rn_tensors_variant_t* from, int depth,
                                  rn_tensors_variant_t* to) {
  for (int32_t i = 0; i < from->count; ++i) {
    RN_RETURN_IF_ERROR(rn_tensor_share(&from->values[i], &to->values[i]));
    if (to->values[i].dtype == RN_VARIANT)
      RN_RETURN_IF_ERROR(rn_variants_to_host(&to->values[i], depth + 1));
  }
  return RN_OK;
}

// The tensors are in host memory, but variants among them may hold what is not.
static rn_status_t tensors_to_host(rn_object_t* object, int depth, rn_object_t** out) {
  const rn_tensors_variant_t* from = (const rn_tensors_variant_t*)object;
  rn_tensors_variant_t* to = NULL;
  RN_RETURN_IF_ERROR(rn_tensors_variant_create(from->allocator, from->kind,
                                               rn_str_n(from->metadata, from->metadata_size),
                                               from->count, &to));
  rn_status_t status = values_to_host(from, depth, to);
  if (rn_ok(status))
    *out = &to->object;
  else
    rn_tensors_variant_release(to);
  return status;
}

#define KIND(id, kind, text)                                                                  \
  static bool holds_##id(const rn_object_t* object) {                                         \
    return rn_tensors_variant_from((rn_object_t*)(uintptr_t)object, kind) != NULL;            \
  }                                                                                           \
  static rn_status_t read_##id(const rn_pb_VariantTensorDataProto_t* proto, size_t max_bytes, \
                               rn_allocator_t allocator, rn_object_t** out) {                 \
    return from_proto(kind, proto, max_bytes, allocator, out);                                \
  }                                                                                           \
  extern const rn_variant_kind_t rn_variant_##id;                                             \
  const rn_variant_kind_t rn_variant_##id = {text, holds_##id, tensors_to_proto, read_##id,   \
                                             tensors_to_host};
KIND(ragged, RN_TENSORS_RAGGED, "RaggedTensorVariant")
KIND(composite, RN_TENSORS_COMPOSITE, "CompositeTensorVariant")
