// Writes checkpoints in the V1 format. See checkpoint_v1.h.
#include <stdlib.h>

#include "base/map.h"
#include "io/bundle_internal.h"
#include "io/checkpoint_v1.h"
#include "io/table.h"
#include "proto/saved_tensor_slice.pb.h"
#include "tensor/tensor_proto.h"
#include "wire/encode.h"

#define VERSION 1  // of the format's producer

typedef struct tensor_meta_t {
  rn_str_t name;
  rn_dtype_t dtype;
  rn_shape_t shape;
  RN_VEC(rn_slice_t) slices;
} tensor_meta_t;

typedef struct checkpoint_v1_writer_value_t {
  rn_str_t key;
  rn_strbuf_t bytes;
} checkpoint_v1_writer_value_t;

struct rn_v1_writer_t {
  const rn_env_t* env;  // Borrowed
  rn_arena_t arena;
  const char* path;
  rn_map_t names;  // to the metas
  RN_VEC(tensor_meta_t*) metas;
  RN_VEC(checkpoint_v1_writer_value_t) values;
};

rn_status_t rn_v1_writer_create(const rn_env_t* env, const char* path, rn_v1_writer_t** out) {
  *out = NULL;
  rn_v1_writer_t* writer = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &writer));
  writer->env = env;
  rn_arena_init(&writer->arena, env->allocator);
  rn_map_init(&writer->names, env->allocator);
  rn_str_t copy = {0};
  rn_status_t status = rn_arena_str(&writer->arena, rn_str(path), &copy);
  writer->path = copy.data;
  if (!rn_ok(status)) {
    rn_v1_writer_destroy(writer);
    return status;
  }
  *out = writer;
  return RN_OK;
}

void rn_v1_writer_destroy(rn_v1_writer_t* writer) {
  if (!writer) return;
  rn_allocator_t allocator = writer->env->allocator;
  for (size_t i = 0; i < writer->metas.count; ++i)
    rn_vec_free(&writer->metas.items[i]->slices, allocator);
  for (size_t i = 0; i < writer->values.count; ++i) rn_strbuf_clear(&writer->values.items[i].bytes);
  rn_vec_free(&writer->metas, allocator);
  rn_vec_free(&writer->values, allocator);
  rn_map_clear(&writer->names);
  rn_arena_clear(&writer->arena);
  RN_FREE(allocator, writer);
}

static rn_status_t check_type(rn_dtype_t dtype) {
  const rn_dtypes_t good =
      RN_TYPES1(RN_FLOAT) | RN_TYPES1(RN_DOUBLE) | RN_TYPES1(RN_INT32) | RN_TYPES1(RN_UINT8) |
      RN_TYPES1(RN_INT16) | RN_TYPES1(RN_INT8) | RN_TYPES1(RN_STRING) | RN_TYPES1(RN_COMPLEX64) |
      RN_TYPES1(RN_INT64) | RN_TYPES1(RN_BOOL) | RN_TYPES1(RN_QINT8) | RN_TYPES1(RN_QUINT8) |
      RN_TYPES1(RN_QINT32) | RN_TYPES1(RN_COMPLEX128) | RN_TYPES1(RN_HALF) | RN_TYPES1(RN_UINT16);
  if (rn_dtypes_has(good, dtype)) return RN_OK;
  if (dtype == RN_UINT32 || dtype == RN_UINT64)
    return rn_invalid_argument("Tensor slice serialization not implemented for dtype %d", dtype);
  return rn_unimplemented("Saving data type %s not yet supported", rn_dtype_name(dtype));
}

static rn_status_t meta_of(rn_v1_writer_t* writer, rn_str_t name, rn_dtype_t dtype,
                           rn_shape_t shape, tensor_meta_t** out) {
  *out = rn_map_get(&writer->names, name);
  if (*out) {
    if ((*out)->dtype == dtype && rn_shape_eq((*out)->shape, shape)) return RN_OK;
    return rn_invalid_argument("Slices of %.*s differ in type or shape of the whole tensor",
                               RN_STR_ARGS(name));
  }
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&writer->arena, out));
  (*out)->dtype = dtype;
  RN_RETURN_IF_ERROR(rn_arena_str(&writer->arena, name, &(*out)->name));
  RN_RETURN_IF_ERROR(rn_shape_copy(&writer->arena, shape, &(*out)->shape));
  RN_RETURN_IF_ERROR(rn_vec_push(&writer->metas, writer->env->allocator, *out));
  return rn_map_put(&writer->names, (*out)->name, *out);
}

static rn_status_t encode_value(rn_str_t name, rn_slice_t slice, const rn_tensor_t* tensor,
                                rn_arena_t* arena, rn_strbuf_t* out) {
  rn_pb_TensorProto_t data;
  rn_pb_TensorSliceProto_t slice_proto;
  RN_RETURN_IF_ERROR(rn_tensor_to_proto(tensor, RN_TENSOR_TYPED, arena, &data));
  RN_RETURN_IF_ERROR(rn_slice_to_proto(slice, arena, &slice_proto));
  data.dtype = 0;
  data.tensor_shape = NULL;
  data.version_number = 0;
  rn_pb_SavedSlice_t saved = {.name = name, .slice = &slice_proto, .data = &data};
  rn_pb_SavedTensorSlices_t slices = {.data = &saved};
  RN_RETURN_IF_ERROR(RN_PB_ENCODE(SavedTensorSlices, &slices, NULL, out));
  if (out->size <= INT32_MAX) return RN_OK;
  return rn_invalid_argument(
      "Tensor slice is too large to serialize (conservative estimate: %zu "
      "bytes)",
      out->size);
}

rn_status_t rn_v1_writer_add(rn_v1_writer_t* writer, rn_str_t name, rn_shape_t shape,
                             rn_slice_t slice, const rn_tensor_t* tensor) {
  rn_allocator_t allocator = writer->env->allocator;
  rn_shape_t wanted;
  RN_RETURN_IF_ERROR(check_type(tensor->dtype));
  RN_RETURN_IF_ERROR(rn_slice_shape(slice, shape, &writer->arena, &wanted));
  if (!rn_shape_eq(wanted, rn_tensor_shape(tensor)))
    return rn_invalid_argument("A slice of %.*s does not have the shape of its tensor",
                               RN_STR_ARGS(name));
  tensor_meta_t* meta = NULL;
  RN_RETURN_IF_ERROR(meta_of(writer, name, tensor->dtype, shape, &meta));
  RN_RETURN_IF_ERROR(rn_slice_dup(&writer->arena, slice, &slice));
  RN_RETURN_IF_ERROR(rn_vec_push(&meta->slices, allocator, slice));
  checkpoint_v1_writer_value_t value = {0};
  rn_strbuf_init(&value.bytes, allocator);
  RN_RETURN_IF_ERROR(rn_vec_push(&writer->values, allocator, value));
  checkpoint_v1_writer_value_t* added = &writer->values.items[writer->values.count - 1];
  rn_strbuf_t key;
  rn_strbuf_init(&key, allocator);
  rn_slice_key(&key, meta->name, slice);
  rn_status_t status = rn_strbuf_status(&key);
  if (rn_ok(status)) status = rn_arena_str(&writer->arena, rn_strbuf_view(&key), &added->key);
  rn_strbuf_clear(&key);
  rn_arena_t scratch;
  rn_arena_init(&scratch, allocator);
  if (rn_ok(status)) status = encode_value(meta->name, slice, tensor, &scratch, &added->bytes);
  rn_arena_clear(&scratch);
  return status;
}

static rn_status_t fill_meta(const tensor_meta_t* from, rn_arena_t* arena,
                             rn_pb_SavedSliceMeta_t* out) {
  *out = (rn_pb_SavedSliceMeta_t){.name = from->name, .type = from->dtype};
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(arena, &out->shape));
  RN_RETURN_IF_ERROR(rn_shape_to_proto(from->shape, arena, out->shape));
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(arena, from->slices.count, &out->slice.items));
  out->slice.count = (uint32_t)from->slices.count;
  for (size_t i = 0; i < from->slices.count; ++i)
    RN_RETURN_IF_ERROR(rn_slice_to_proto(from->slices.items[i], arena, &out->slice.items[i]));
  return RN_OK;
}

static int compare_metas(const void* a, const void* b) {
  tensor_meta_t* const* x = a;
  tensor_meta_t* const* y = b;
  return rn_str_compare((*x)->name, (*y)->name);
}

static int compare_values(const void* a, const void* b) {
  return rn_str_compare(((const checkpoint_v1_writer_value_t*)a)->key,
                        ((const checkpoint_v1_writer_value_t*)b)->key);
}

static rn_status_t put_meta(rn_v1_writer_t* writer, rn_table_writer_t* table) {
  size_t count = writer->metas.count;
  if (count) qsort(writer->metas.items, count, sizeof *writer->metas.items, compare_metas);
  rn_pb_VersionDef_t version = {.producer = VERSION};
  rn_pb_SavedTensorSliceMeta_t meta = {.versions = &version};
  rn_pb_SavedTensorSlices_t slices = {.meta = &meta};
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&writer->arena, count, &meta.tensor.items));
  meta.tensor.count = (uint32_t)count;
  for (size_t i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(fill_meta(writer->metas.items[i], &writer->arena, &meta.tensor.items[i]));
  rn_strbuf_t bytes;
  rn_strbuf_init(&bytes, writer->env->allocator);
  rn_status_t status = RN_PB_ENCODE(SavedTensorSlices, &slices, NULL, &bytes);
  if (rn_ok(status)) status = rn_table_writer_add(table, RN_STR(""), rn_strbuf_view(&bytes));
  rn_strbuf_clear(&bytes);
  return status;
}

static rn_status_t put_table(rn_v1_writer_t* writer, rn_file_t* file) {
  rn_table_writer_t* table = NULL;
  RN_RETURN_IF_ERROR(rn_table_writer_create(writer->env->allocator, file, &table));
  size_t count = writer->values.count;
  if (count) qsort(writer->values.items, count, sizeof *writer->values.items, compare_values);
  rn_status_t status = put_meta(writer, table);
  for (size_t i = 0; rn_ok(status) && i < count; ++i)
    status = rn_table_writer_add(table, writer->values.items[i].key,
                                 rn_strbuf_view(&writer->values.items[i].bytes));
  if (rn_ok(status)) status = rn_table_writer_finish(table);
  rn_table_writer_destroy(table);
  return status;
}

rn_status_t rn_v1_writer_finish(rn_v1_writer_t* writer) {
  const rn_env_t* env = writer->env;
  rn_strbuf_t temporary;
  rn_strbuf_init(&temporary, env->allocator);
  rn_file_t* file = NULL;
  rn_status_t status = rn_bundle_make_directory(env, writer->path);
  if (rn_ok(status)) rn_fs_sweep_temporaries(env, writer->path);
  if (rn_ok(status)) status = rn_fs_temporary(env, writer->path, &temporary);
  if (rn_ok(status)) status = rn_fs_open(env, temporary.data, RN_OPEN_TEMPORARY, &file);
  if (rn_ok(status)) {
    status = put_table(writer, file);
    if (rn_ok(status)) status = file->vtable->sync(file);
    if (rn_ok(status)) status = env->fs->rename(env->fs_self, temporary.data, writer->path);
    status = rn_status_join(status, file->vtable->close(file));
    if (!rn_ok(status)) rn_status_free(env->fs->remove(env->fs_self, temporary.data));
  }
  if (rn_ok(status)) status = rn_bundle_sync_directory(env, writer->path);
  rn_strbuf_clear(&temporary);
  return status;
}
