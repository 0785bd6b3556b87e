// Tensor lists in messages.
//
// The set elements are the message's tensors. The metadata, with all numbers as varints: the number
// of unset elements, the index of each; the element type; the maximum number of elements, or -1;
// then, to the end, a TensorShapeProto with the element shape.
#include "kernels/cpu/list/tensor_list.h"
#include "tensor/tensor_proto.h"
#include "tensor/variant.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/writer.h"

static bool holds(const rn_object_t* object) {
  rn_tensor_t scalar = {.dtype = RN_VARIANT, .count = 1, .data = (void*)(uintptr_t)&object};
  return rn_tensor_list_at(&scalar, 0) != NULL;
}

static rn_status_t put_metadata(const rn_tensor_list_t* list, rn_arena_t* arena,
                                rn_strbuf_t* metadata) {
  uint64_t unset = 0;
  for (int64_t i = 0; i < list->count; ++i) unset += !rn_tensor_list_has(list, i);
  rn_pb_put_varint(metadata, unset);
  for (int64_t i = 0; i < list->count; ++i)
    if (!rn_tensor_list_has(list, i)) rn_pb_put_varint(metadata, (uint64_t)i);
  rn_pb_put_varint(metadata, (uint64_t)list->dtype);
  rn_pb_put_varint(metadata, (uint64_t)(list->limit < 0 ? -1 : list->limit));
  rn_pb_TensorShapeProto_t shape;
  RN_RETURN_IF_ERROR(rn_shape_to_proto(list->element_shape, arena, &shape));
  return RN_PB_ENCODE(TensorShapeProto, &shape, NULL, metadata);
}

static rn_status_t list_to_proto(const rn_object_t* object, rn_arena_t* arena,
                                 rn_pb_VariantTensorDataProto_t* out) {
  rn_tensor_list_t* list = (rn_tensor_list_t*)(uintptr_t)object;
  RN_RETURN_IF_ERROR(rn_tensor_list_on(list, NULL, &list));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, (size_t)list->count, &out->tensors.items));
  for (int64_t i = 0; i < list->count; ++i)
    if (rn_tensor_list_has(list, i))
      RN_RETURN_IF_ERROR(rn_tensor_to_proto(&list->items[i], RN_TENSOR_TYPED, arena,
                                            &out->tensors.items[out->tensors.count++]));
  out->tensors.capacity = out->tensors.count;
  rn_strbuf_t metadata;
  rn_strbuf_init(&metadata, arena->allocator);
  rn_status_t status = put_metadata(list, arena, &metadata);
  if (rn_ok(status)) status = rn_arena_str(arena, rn_strbuf_view(&metadata), &out->metadata);
  rn_strbuf_clear(&metadata);
  return status;
}

static rn_status_t malformed(void) {
  return rn_invalid_argument("A TensorProto contains a tensor list with malformed metadata");
}

static bool take_varint(rn_str_t* at, uint64_t* out) {
  *out = 0;
  for (unsigned shift = 0; at->size && shift < 64; shift += 7) {
    uint8_t byte = (uint8_t)*at->data;
    *at = rn_str_n(at->data + 1, at->size - 1);
    *out |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// The parsed metadata; |unset| has the indices of the unset elements, still encoded.
typedef struct metadata_t {
  uint64_t unset_count;
  rn_str_t unset;
  uint64_t dtype;
  int64_t limit;
  rn_shape_t shape;
} metadata_t;

static rn_status_t read_metadata(rn_str_t bytes, rn_arena_t* arena, metadata_t* out) {
  uint64_t place, previous = 0, limit;
  if (!take_varint(&bytes, &out->unset_count) || out->unset_count > bytes.size) return malformed();
  out->unset = bytes;
  for (uint64_t i = 0; i < out->unset_count; ++i, previous = place)
    if (!take_varint(&bytes, &place) || (i && place <= previous)) return malformed();
  if (!take_varint(&bytes, &out->dtype) || !take_varint(&bytes, &limit)) return malformed();
  if (out->dtype >= RN_DTYPE_COUNT || !rn_dtype_is_valid((rn_dtype_t)out->dtype))
    return malformed();
  out->limit = (int64_t)limit;
  rn_pb_TensorShapeProto_t* shape = NULL;
  RN_RETURN_IF_ERROR(RN_PB_DECODE(TensorShapeProto, bytes, NULL, arena, &shape));
  return rn_shape_from_proto(shape, arena, &out->shape);
}

static rn_status_t read_items(const rn_pb_VariantTensorDataProto_t* proto,
                              const metadata_t* metadata, size_t max_bytes,
                              rn_tensor_list_t* list) {
  rn_str_t unset = metadata->unset;
  uint64_t left = metadata->unset_count, next_unset = UINT64_MAX;
  if (left && !take_varint(&unset, &next_unset)) return malformed();
  uint32_t used = 0;
  for (uint64_t i = 0; i < (uint64_t)list->count; ++i) {
    if (i == next_unset) {
      next_unset = UINT64_MAX;
      if (--left && !take_varint(&unset, &next_unset)) return malformed();
      continue;
    }
    if (used == proto->tensors.count) return malformed();  // an index beyond the end
    rn_tensor_t item = {0};
    RN_RETURN_IF_ERROR(
        rn_tensor_from_proto(&proto->tensors.items[used++], max_bytes, list->allocator, &item));
    max_bytes -= rn_tensor_bytes(&item);
    bool fits = item.dtype == list->dtype;
    if (fits)
      rn_tensor_list_set(list, (int64_t)i, &item);
    else
      rn_tensor_clear(&item);
    if (!fits) return malformed();
  }
  return RN_OK;
}

static rn_status_t list_from_proto(const rn_pb_VariantTensorDataProto_t* proto, size_t max_bytes,
                                   rn_allocator_t allocator, rn_object_t** out) {
  *out = NULL;
  rn_arena_t arena;
  rn_arena_init(&arena, allocator);
  metadata_t metadata = {0};
  rn_tensor_list_t* list = NULL;
  rn_status_t status = read_metadata(proto->metadata, &arena, &metadata);
  // Limits the number of elements by the bytes received for them.
  if (rn_ok(status))
    status =
        rn_tensor_list_create(allocator, (rn_dtype_t)metadata.dtype, metadata.shape, metadata.limit,
                              (int64_t)(metadata.unset_count + proto->tensors.count), &list);
  if (rn_ok(status)) status = read_items(proto, &metadata, max_bytes, list);
  rn_arena_clear(&arena);
  if (!rn_ok(status)) {
    rn_tensor_list_release(list);
    return status;
  }
  *out = &list->object;
  return RN_OK;
}

extern const rn_variant_kind_t rn_variant_tensor_list;
const rn_variant_kind_t rn_variant_tensor_list = {"tensorflow::TensorList", holds, list_to_proto,
                                                  list_from_proto, rn_tensor_list_to_host};
