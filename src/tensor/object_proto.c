// Converts resource and variant tensors to and from messages. See object_proto.h.
#include "tensor/object_proto.h"

#include "tensor/variant.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/writer.h"

static rn_status_t read_handle(const rn_pb_ResourceHandleProto_t* proto, rn_allocator_t allocator,
                               rn_object_t** out) {
  rn_handle_t* handle = NULL;
  RN_RETURN_IF_ERROR(rn_handle_from_proto(proto, allocator, &handle));
  *out = &handle->object;
  return RN_OK;
}

// A variant without a type name is empty.
static rn_status_t read_variant(const rn_pb_VariantTensorDataProto_t* proto, size_t max_bytes,
                                rn_allocator_t allocator, rn_object_t** out) {
  *out = NULL;
  if (proto->type_name.size == 0) return RN_OK;
  for (const rn_variant_kind_t* const* kind = rn_variant_kinds; *kind; ++kind)
    if (rn_str_is(proto->type_name, (*kind)->type_name))
      return (*kind)->from_proto(proto, max_bytes, allocator, out);
  return rn_unimplemented("A variant of kind '%.*s' cannot be read from a TensorProto",
                          RN_STR_ARGS(proto->type_name));
}

static rn_status_t read_bytes(rn_dtype_t dtype, rn_str_t bytes, size_t max_bytes,
                              rn_allocator_t allocator, rn_object_t** out) {
  rn_arena_t arena;
  rn_arena_init(&arena, allocator);
  rn_status_t status;
  if (dtype == RN_RESOURCE) {
    rn_pb_ResourceHandleProto_t* proto = NULL;
    status = RN_PB_DECODE(ResourceHandleProto, bytes, NULL, &arena, &proto);
    if (rn_ok(status)) status = read_handle(proto, allocator, out);
  } else {
    rn_pb_VariantTensorDataProto_t* proto = NULL;
    status = RN_PB_DECODE(VariantTensorDataProto, bytes, NULL, &arena, &proto);
    if (rn_ok(status)) status = read_variant(proto, max_bytes, allocator, out);
  }
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t read_content(const rn_pb_TensorProto_t* proto, size_t max_bytes,
                                rn_allocator_t allocator, rn_tensor_t* tensor) {
  size_t count = (size_t)tensor->count;
  if (count > proto->tensor_content.size) return rn_tensor_proto_error(proto);
  rn_str_t* items = NULL;
  RN_RETURN_IF_ERROR(RN_NEW_ARRAY(allocator, count, &items));
  bool is_whole = rn_tensor_content_split(proto->tensor_content, count, items);
  rn_status_t status = is_whole ? RN_OK : rn_tensor_proto_error(proto);
  for (size_t i = 0; rn_ok(status) && i < count; ++i)
    status = read_bytes(tensor->dtype, items[i], max_bytes, allocator,
                        &RN_DATA(tensor, rn_object_t*)[i]);
  RN_FREE_ARRAY(allocator, items, count);
  return status;
}

// Reads one object per element; all further elements share the last one. If the list is empty, all
// elements are NULL.
static rn_status_t read_list(const rn_pb_TensorProto_t* proto, size_t max_bytes,
                             rn_allocator_t allocator, rn_tensor_t* tensor) {
  bool is_handle = tensor->dtype == RN_RESOURCE;
  rn_object_t** elements = tensor->data;
  size_t have = is_handle ? proto->resource_handle_val.count : proto->variant_val.count;
  for (size_t i = 0; i < (size_t)tensor->count && have; ++i) {
    if (i >= have)
      elements[i] = rn_object_retain(elements[i - 1]);
    else if (is_handle)
      RN_RETURN_IF_ERROR(
          read_handle(&proto->resource_handle_val.items[i], allocator, &elements[i]));
    else
      RN_RETURN_IF_ERROR(
          read_variant(&proto->variant_val.items[i], max_bytes, allocator, &elements[i]));
  }
  return RN_OK;
}

rn_status_t rn_objects_from_proto(const rn_pb_TensorProto_t* proto, size_t max_bytes,
                                  rn_allocator_t allocator, rn_tensor_t* tensor) {
  rn_tensor_t full = {0};
  RN_RETURN_IF_ERROR(rn_tensor_create(allocator, tensor->dtype, rn_tensor_shape(tensor), &full));
  rn_tensor_clear(tensor);
  *tensor = full;
  return proto->tensor_content.size ? read_content(proto, max_bytes, allocator, tensor)
                                    : read_list(proto, max_bytes, allocator, tensor);
}

static rn_status_t write_variant(const rn_object_t* object, size_t i, rn_arena_t* arena,
                                 rn_pb_VariantTensorDataProto_t* out) {
  if (!object) return RN_OK;
  for (const rn_variant_kind_t* const* kind = rn_variant_kinds; *kind; ++kind) {
    if (!(*kind)->holds(object)) continue;
    out->type_name = rn_str((*kind)->type_name);
    return (*kind)->to_proto(object, arena, out);
  }
  return rn_unimplemented("What element %zu of a variant tensor holds has no message", i);
}

static rn_status_t write_list(const rn_tensor_t* tensor, rn_arena_t* arena,
                              rn_pb_TensorProto_t* out) {
  size_t count = (size_t)tensor->count;
  if (tensor->dtype == RN_RESOURCE) {
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->resource_handle_val.items));
    out->resource_handle_val.count = out->resource_handle_val.capacity = (uint32_t)count;
    for (size_t i = 0; i < count; ++i) {
      const rn_handle_t* handle = RN_DATA(tensor, const rn_handle_t*)[i];
      if (handle)
        RN_RETURN_IF_ERROR(rn_handle_to_proto(handle, arena, &out->resource_handle_val.items[i]));
    }
    return RN_OK;
  }
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, count, &out->variant_val.items));
  out->variant_val.count = out->variant_val.capacity = (uint32_t)count;
  for (size_t i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(write_variant(RN_DATA(tensor, const rn_object_t*)[i], i, arena,
                                     &out->variant_val.items[i]));
  return RN_OK;
}

// Writes all lengths, then the messages of the list.
static rn_status_t write_messages(const rn_tensor_t* tensor, const rn_pb_TensorProto_t* list,
                                  rn_strbuf_t* lengths, rn_strbuf_t* bytes) {
  for (size_t i = 0; i < (size_t)tensor->count; ++i) {
    size_t before = bytes->size;
    RN_RETURN_IF_ERROR(
        tensor->dtype == RN_RESOURCE
            ? RN_PB_ENCODE(ResourceHandleProto, &list->resource_handle_val.items[i], NULL, bytes)
            : RN_PB_ENCODE(VariantTensorDataProto, &list->variant_val.items[i], NULL, bytes));
    rn_pb_put_varint(lengths, bytes->size - before);
  }
  rn_strbuf_append(lengths, rn_strbuf_view(bytes));
  return rn_strbuf_status(lengths);
}

rn_status_t rn_objects_to_proto(const rn_tensor_t* tensor, bool is_content, rn_arena_t* arena,
                                rn_pb_TensorProto_t* out) {
  if (!is_content) return write_list(tensor, arena, out);
  rn_pb_TensorProto_t list = {0};
  RN_RETURN_IF_ERROR(write_list(tensor, arena, &list));
  rn_strbuf_t lengths, bytes;
  rn_strbuf_init(&lengths, arena->allocator);
  rn_strbuf_init(&bytes, arena->allocator);
  rn_status_t status = write_messages(tensor, &list, &lengths, &bytes);
  if (rn_ok(status)) status = rn_arena_str(arena, rn_strbuf_view(&lengths), &out->tensor_content);
  rn_strbuf_clear(&lengths);
  rn_strbuf_clear(&bytes);
  return status;
}
