// See composite.h.
#include "tensor/composite.h"

#include "proto/composite_tensor_variant.pb.h"
#include "wire/decode.h"

rn_status_t rn_composite_class(rn_allocator_t allocator, rn_str_t metadata, int32_t* out) {
  rn_pb_CompositeTensorVariantMetadata_t* message = NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, allocator);
  rn_status_t status =
      RN_PB_DECODE(CompositeTensorVariantMetadata, metadata, NULL, &arena, &message);
  if (rn_ok(status))
    *out = message->type_spec_proto ? (int32_t)message->type_spec_proto->type_spec_class : 0;
  rn_arena_clear(&arena);
  return status;
}

const char* rn_composite_class_name(int32_t number) {
  const char* name = rn_pb_enum_name(&rn_pb_TypeSpecProto_TypeSpecClass_desc, number);
  return name ? name : "";
}
