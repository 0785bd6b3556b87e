// Variants that hold values of a device: see variant.h.
#include "tensor/variant.h"

#define MOST_DEPTH 32  // nesting of variants in variants

static rn_status_t object_to_host(rn_object_t* object, int depth, rn_object_t** out) {
  *out = NULL;
  if (depth == MOST_DEPTH) return rn_invalid_argument("Variants are nested too deeply");
  for (const rn_variant_kind_t* const* kind = rn_variant_kinds; *kind; ++kind)
    if ((*kind)->to_host && (*kind)->holds(object)) return (*kind)->to_host(object, depth, out);
  return RN_OK;
}

// Replaces element |i|; the buffer becomes the tensor's own before the first time.
static rn_status_t replace(rn_tensor_t* tensor, int64_t i, rn_object_t* by) {
  if (!rn_tensor_is_exclusive(tensor)) {
    rn_tensor_t own = {0};
    rn_status_t status = rn_tensor_copy(tensor, rn_allocator_default(), &own);
    if (!rn_ok(status)) {
      rn_object_release(by);
      return status;
    }
    rn_tensor_clear(tensor);
    *tensor = own;
  }
  rn_object_t** element = &RN_DATA(tensor, rn_object_t*)[i];
  rn_object_release(*element);
  *element = by;
  return RN_OK;
}

rn_status_t rn_variants_to_host(rn_tensor_t* tensor, int depth) {
  for (int64_t i = 0; i < tensor->count; ++i) {
    rn_object_t *object = RN_DATA(tensor, rn_object_t*)[i], *there = NULL;
    if (!object) continue;
    RN_RETURN_IF_ERROR(object_to_host(object, depth, &there));
    if (there) RN_RETURN_IF_ERROR(replace(tensor, i, there));
  }
  return RN_OK;
}
