// Handles: one block each. See handle.h.
#include "tensor/handle.h"

#include "tensor/tensor_proto.h"

typedef struct handle_block_t {
  rn_handle_t handle;  // first
  rn_allocator_t allocator;
  size_t size;
} handle_block_t;

static void handle_destroy(rn_object_t* object) {
  handle_block_t* block = (handle_block_t*)object;
  rn_object_release((rn_object_t*)block->handle.resource);
  rn_free(block->allocator, block, block->size);
}

static rn_str_t place(char** at, rn_str_t text) {
  rn_str_t placed = rn_str_n(*at, text.size);
  if (text.size) memcpy(*at, text.data, text.size);
  (*at)[text.size] = '\0';
  *at += text.size + 1;
  return placed;
}

rn_status_t rn_handle_make(rn_allocator_t allocator, const rn_handle_t* from, rn_handle_t** out) {
  *out = NULL;
  size_t rank = from->shape.rank > 0 ? (size_t)from->shape.rank : 0;
  size_t size = sizeof(handle_block_t) + rank * sizeof(int64_t) + from->device.size +
                from->container.size + from->name.size + from->type_name.size + 4;
  handle_block_t* block = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(allocator, size, (void**)&block));
  block->allocator = allocator;
  block->size = size;
  int64_t* dims = (int64_t*)(block + 1);
  if (rank) memcpy(dims, from->shape.dims, rank * sizeof *dims);
  char* text = (char*)(dims + rank);
  block->handle = (rn_handle_t){.object = {.refs = 1, .destroy = handle_destroy},
                                .device = place(&text, from->device),
                                .container = place(&text, from->container),
                                .name = place(&text, from->name),
                                .type_name = place(&text, from->type_name),
                                .dtype = from->dtype,
                                .shape = {from->shape.rank, rank ? dims : NULL},
                                .resource = from->resource};
  rn_object_retain((rn_object_t*)from->resource);
  *out = &block->handle;
  return RN_OK;
}

rn_status_t rn_handle_to_proto(const rn_handle_t* handle, rn_arena_t* arena,
                               rn_pb_ResourceHandleProto_t* out) {
  *out = (rn_pb_ResourceHandleProto_t){.device = handle->device,
                                       .container = handle->container,
                                       .name = handle->name,
                                       .maybe_type_name = handle->type_name};
  if (handle->dtype == RN_INVALID) return RN_OK;
  rn_pb_ResourceHandleProto_DtypeAndShape_t* value = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &value));
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &value->shape));
  value->dtype = handle->dtype;
  out->dtypes_and_shapes.items = value;
  out->dtypes_and_shapes.count = out->dtypes_and_shapes.capacity = 1;
  return rn_shape_to_proto(handle->shape, arena, value->shape);
}

rn_status_t rn_handle_from_proto(const rn_pb_ResourceHandleProto_t* proto, rn_allocator_t allocator,
                                 rn_handle_t** out) {
  *out = NULL;
  rn_handle_t from = {.device = proto->device,
                      .container = proto->container,
                      .name = proto->name,
                      .type_name = proto->maybe_type_name,
                      .dtype = RN_INVALID,
                      .shape = RN_SHAPE_UNKNOWN};
  rn_arena_t arena;
  rn_arena_init(&arena, allocator);
  rn_status_t status = RN_OK;
  if (proto->dtypes_and_shapes.count) {
    const rn_pb_ResourceHandleProto_DtypeAndShape_t* value = &proto->dtypes_and_shapes.items[0];
    from.dtype = value->dtype;
    if (!rn_dtype_is_valid(value->dtype))
      status = rn_invalid_argument("A resource handle names data type %d, which is none",
                                   (int)value->dtype);
    else if (value->shape)
      status = rn_shape_from_proto(value->shape, &arena, &from.shape);
  }
  if (rn_ok(status)) status = rn_handle_make(allocator, &from, out);
  rn_arena_clear(&arena);
  return status;
}
