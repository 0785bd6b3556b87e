// Writes bundles: the data file as tensors are added, the index at the end. See bundle.h.
#include <stdlib.h>

#include "base/crc32c.h"
#include "base/map.h"
#include "io/bundle_internal.h"
#include "tensor/tensor_proto.h"
#include "tensor/tstring.h"
#include "wire/encode.h"
#include "wire/writer.h"

// Small tensors are buffered up to this size; large ones are checksummed and written in pieces of
// it.
#define GATHER ((size_t)1 << 20)
// From here on a second thread computes the checksum while the first writes.
#define SHARED_WORK ((size_t)4 << 20)

struct rn_bundle_writer_t {
  const rn_env_t* env;  // Borrowed
  rn_pool_t* pool;      // Borrowed; may be NULL
  rn_arena_t arena;
  const char* prefix;
  rn_strbuf_t temporary;  // name of the data file until it is complete
  rn_file_t* file;        // Owned; NULL once closed
  bool has_temporary;
  rn_strbuf_t pending;  // gathered bytes
  int64_t offset;       // in the data file, including pending bytes
  rn_map_t names;       // to the entries
  RN_VEC(rn_bundle_entry_t*) entries;
};

rn_status_t rn_bundle_writer_create(const rn_env_t* env, const char* prefix, rn_pool_t* pool,
                                    rn_bundle_writer_t** out) {
  *out = NULL;
  rn_bundle_writer_t* writer = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &writer));
  writer->env = env;
  writer->pool = pool;
  rn_arena_init(&writer->arena, env->allocator);
  rn_map_init(&writer->names, env->allocator);
  rn_strbuf_init(&writer->temporary, env->allocator);
  rn_strbuf_init(&writer->pending, env->allocator);
  rn_str_t copy = {0};
  rn_strbuf_t name;
  rn_strbuf_init(&name, env->allocator);
  rn_bundle_data_name(&name, prefix, 0, 1);
  rn_status_t status = rn_arena_str(&writer->arena, rn_str(prefix), &copy);
  writer->prefix = copy.data;
  if (rn_ok(status)) status = rn_bundle_make_directory(env, prefix);
  if (rn_ok(status)) status = rn_strbuf_status(&name);
  if (rn_ok(status)) rn_fs_sweep_temporaries(env, prefix);
  if (rn_ok(status)) status = rn_fs_temporary(env, name.data, &writer->temporary);
  if (rn_ok(status))
    status = rn_fs_open(env, writer->temporary.data, RN_OPEN_TEMPORARY, &writer->file);
  writer->has_temporary = rn_ok(status);
  rn_strbuf_clear(&name);
  if (!rn_ok(status)) {
    rn_bundle_writer_destroy(writer);
    return status;
  }
  *out = writer;
  return RN_OK;
}

void rn_bundle_writer_destroy(rn_bundle_writer_t* writer) {
  if (!writer) return;
  const rn_env_t* env = writer->env;
  if (writer->file) rn_status_free(writer->file->vtable->close(writer->file));
  if (writer->has_temporary) rn_status_free(env->fs->remove(env->fs_self, writer->temporary.data));
  rn_strbuf_clear(&writer->temporary);
  rn_strbuf_clear(&writer->pending);
  rn_map_clear(&writer->names);
  rn_vec_free(&writer->entries, env->allocator);
  rn_arena_clear(&writer->arena);
  RN_FREE(env->allocator, writer);
}

static rn_status_t flush(rn_bundle_writer_t* writer) {
  RN_RETURN_IF_ERROR(rn_strbuf_status(&writer->pending));
  if (!writer->pending.size) return RN_OK;
  RN_RETURN_IF_ERROR(writer->file->vtable->append(writer->file, rn_strbuf_view(&writer->pending)));
  writer->pending.size = 0;
  return RN_OK;
}

// Appends bytes; buffers them if they are few.
static rn_status_t put_bytes(rn_bundle_writer_t* writer, rn_str_t bytes) {
  if (!rn_add_i64_ok(writer->offset, (int64_t)bytes.size, &writer->offset))
    return rn_out_of_range("The checkpoint %s is too large", writer->prefix);
  if (bytes.size < GATHER) {
    rn_strbuf_append(&writer->pending, bytes);
    return writer->pending.size < GATHER ? rn_strbuf_status(&writer->pending) : flush(writer);
  }
  RN_RETURN_IF_ERROR(flush(writer));
  return writer->file->vtable->append(writer->file, bytes);
}

typedef struct shared_work_t {
  rn_bundle_writer_t* writer;
  rn_str_t bytes;
  uint32_t checksum;
  rn_status_t status;
} shared_work_t;

static void do_shared(void* arg, int64_t begin, int64_t end) {
  shared_work_t* work = arg;
  if (begin == 0) work->status = put_bytes(work->writer, work->bytes);
  if (end == 2) work->checksum = rn_crc32c(0, work->bytes.data, work->bytes.size);
}

static rn_status_t put_plain(rn_bundle_writer_t* writer, rn_str_t bytes, uint32_t* out_checksum) {
  if (bytes.size >= SHARED_WORK && rn_pool_threads(writer->pool) > 1) {
    shared_work_t work = {.writer = writer, .bytes = bytes};
    rn_pool_for(writer->pool, 2, 1, do_shared, &work);
    *out_checksum = work.checksum;
    return work.status;
  }
  *out_checksum = 0;
  while (bytes.size) {  // a piece is still in the cache when it is written
    rn_str_t piece = rn_str_n(bytes.data, bytes.size < GATHER ? bytes.size : GATHER);
    *out_checksum = rn_crc32c(*out_checksum, piece.data, piece.size);
    RN_RETURN_IF_ERROR(put_bytes(writer, piece));
    bytes = rn_str_n(bytes.data + piece.size, bytes.size - piece.size);
  }
  return RN_OK;
}

static rn_status_t put_varint(rn_bundle_writer_t* writer, uint64_t value) {
  char bytes[RN_PB_MAX_VARINT];
  return put_bytes(writer, rn_str_n(bytes, (size_t)(rn_pb_varint_to(bytes, value) - bytes)));
}

// The masked checksum so far goes into the file, and into the checksum.
static rn_status_t put_checksum(rn_bundle_writer_t* writer, uint32_t* checksum) {
  uint32_t masked = rn_crc32c_mask(*checksum);
  *checksum = rn_crc32c(*checksum, &masked, sizeof masked);
  return put_bytes(writer, rn_str_n((const char*)&masked, sizeof masked));
}

static rn_status_t put_strings(rn_bundle_writer_t* writer, const rn_tensor_t* tensor,
                               uint32_t* out_checksum) {
  const rn_tstring_t* strings = RN_DATA(tensor, const rn_tstring_t);
  uint32_t checksum = 0;
  for (int64_t i = 0; i < tensor->count; ++i) {
    uint64_t length = rn_tstring_view(&strings[i]).size;
    RN_RETURN_IF_ERROR(put_varint(writer, length));
    checksum = rn_bundle_length_checksum(checksum, length);
  }
  RN_RETURN_IF_ERROR(put_checksum(writer, &checksum));
  for (int64_t i = 0; i < tensor->count; ++i) {
    rn_str_t text = rn_tstring_view(&strings[i]);
    if (!text.size) continue;
    checksum = rn_crc32c(checksum, text.data, text.size);
    RN_RETURN_IF_ERROR(put_bytes(writer, text));
  }
  *out_checksum = checksum;
  return RN_OK;
}

static rn_status_t put_variant(rn_bundle_writer_t* writer,
                               const rn_pb_VariantTensorDataProto_t* variant, rn_strbuf_t* scratch,
                               uint32_t* checksum) {
  scratch->size = 0;
  RN_RETURN_IF_ERROR(RN_PB_ENCODE(VariantTensorDataProto, variant, NULL, scratch));
  uint64_t length = scratch->size;
  RN_RETURN_IF_ERROR(put_varint(writer, length));
  *checksum = rn_crc32c(*checksum, &length, sizeof length);
  *checksum = rn_crc32c(*checksum, scratch->data, scratch->size);
  RN_RETURN_IF_ERROR(put_bytes(writer, rn_strbuf_view(scratch)));
  return put_checksum(writer, checksum);
}

static rn_status_t put_variants(rn_bundle_writer_t* writer, const rn_tensor_t* tensor,
                                uint32_t* out_checksum) {
  rn_arena_t arena;
  rn_arena_init(&arena, writer->env->allocator);
  rn_strbuf_t scratch;
  rn_strbuf_init(&scratch, writer->env->allocator);
  rn_pb_TensorProto_t proto = {0};
  *out_checksum = 0;
  rn_status_t status = rn_tensor_to_proto(tensor, RN_TENSOR_TYPED, &arena, &proto);
  for (uint32_t i = 0; rn_ok(status) && i < proto.variant_val.count; ++i)
    status = put_variant(writer, &proto.variant_val.items[i], &scratch, out_checksum);
  rn_strbuf_clear(&scratch);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t new_entry(rn_bundle_writer_t* writer, rn_str_t name, rn_dtype_t dtype,
                             rn_shape_t shape, rn_bundle_entry_t** out) {
  if (!name.size)
    return rn_invalid_argument("A tensor in a checkpoint must have a name: %s", writer->prefix);
  RN_RETURN_IF_ERROR(RN_ARENA_NEW(&writer->arena, out));
  rn_bundle_entry_t* entry = *out;
  entry->dtype = dtype;
  RN_RETURN_IF_ERROR(rn_shape_copy(&writer->arena, shape, &entry->shape));
  RN_RETURN_IF_ERROR(rn_arena_str(&writer->arena, name, &entry->name));
  RN_RETURN_IF_ERROR(rn_vec_push(&writer->entries, writer->env->allocator, entry));
  return rn_map_put(&writer->names, entry->name, entry);
}

rn_status_t rn_bundle_writer_add(rn_bundle_writer_t* writer, rn_str_t name,
                                 const rn_tensor_t* tensor) {
  if (rn_map_get(&writer->names, name))
    return rn_invalid_argument("Adding duplicate key: %.*s", RN_STR_ARGS(name));
  if (tensor->is_ref || tensor->dtype == RN_RESOURCE)
    return rn_unimplemented("Tensors of type %s cannot be saved: %.*s",
                            rn_dtype_name(tensor->dtype), RN_STR_ARGS(name));
  rn_bundle_entry_t* entry = NULL;
  RN_RETURN_IF_ERROR(new_entry(writer, name, tensor->dtype, rn_tensor_shape(tensor), &entry));
  entry->offset = writer->offset;
  uint32_t checksum = 0;
  rn_status_t status = RN_OK;
  if (tensor->dtype == RN_STRING) {
    status = put_strings(writer, tensor, &checksum);
  } else if (tensor->dtype == RN_VARIANT) {
    status = put_variants(writer, tensor, &checksum);
  } else {
    status = put_plain(writer, rn_str_n(tensor->data, rn_tensor_bytes(tensor)), &checksum);
  }
  entry->size = writer->offset - entry->offset;
  entry->checksum = rn_crc32c_mask(checksum);
  return status;
}

static rn_status_t add_to_whole(rn_bundle_writer_t* writer, rn_str_t name, rn_dtype_t dtype,
                                rn_shape_t shape, rn_slice_t slice) {
  rn_bundle_entry_t* entry = rn_map_get(&writer->names, name);
  if (!entry) RN_RETURN_IF_ERROR(new_entry(writer, name, dtype, shape, &entry));
  bool is_whole = entry->size || (entry->slices == NULL && entry->checksum);
  if (is_whole) return rn_invalid_argument("Adding duplicate key: %.*s", RN_STR_ARGS(name));
  if (entry->dtype != dtype || !rn_shape_eq(entry->shape, shape))
    return rn_invalid_argument("Slices of %.*s differ in type or shape of the whole tensor",
                               RN_STR_ARGS(name));
  size_t count = entry->slice_count;
  if ((count & (count - 1)) == 0) {  // the array is full at each power of two, and when empty
    rn_slice_t* grown = NULL;
    RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&writer->arena, count ? count * 2 : 1, &grown));
    if (count) memcpy(grown, entry->slices, count * sizeof *grown);
    entry->slices = grown;
  }
  RN_RETURN_IF_ERROR(rn_slice_dup(&writer->arena, slice, &entry->slices[entry->slice_count]));
  entry->slice_count++;
  return RN_OK;
}

rn_status_t rn_bundle_writer_add_slice(rn_bundle_writer_t* writer, rn_str_t name, rn_shape_t shape,
                                       rn_slice_t slice, const rn_tensor_t* tensor) {
  rn_shape_t wanted;
  RN_RETURN_IF_ERROR(rn_slice_shape(slice, shape, &writer->arena, &wanted));
  if (!rn_shape_eq(wanted, rn_tensor_shape(tensor)))
    return rn_invalid_argument("A slice of %.*s does not have the shape of its tensor",
                               RN_STR_ARGS(name));
  if (rn_slice_is_whole(slice, shape)) return rn_bundle_writer_add(writer, name, tensor);
  RN_RETURN_IF_ERROR(add_to_whole(writer, name, tensor->dtype, shape, slice));
  rn_strbuf_t key;
  rn_strbuf_init(&key, writer->env->allocator);
  rn_slice_key(&key, name, slice);
  rn_status_t status = rn_strbuf_status(&key);
  if (rn_ok(status)) status = rn_bundle_writer_add(writer, rn_strbuf_view(&key), tensor);
  rn_strbuf_clear(&key);
  return status;
}

static int compare_entries(const void* a, const void* b) {
  const rn_bundle_entry_t* const* x = a;
  const rn_bundle_entry_t* const* y = b;
  return rn_str_compare((*x)->name, (*y)->name);
}

static rn_status_t close_data(rn_bundle_writer_t* writer) {
  rn_file_t* file = writer->file;
  writer->file = NULL;
  return file->vtable->close(file);
}

static rn_status_t place(rn_bundle_writer_t* writer, const rn_bundle_kept_t* kept) {
  const rn_env_t* env = writer->env;
  int32_t shards = kept->first + 1;
  rn_strbuf_t name;
  rn_strbuf_init(&name, env->allocator);
  rn_bundle_data_name(&name, writer->prefix, kept->first, shards);
  rn_status_t status = rn_strbuf_status(&name);
  if (rn_ok(status)) {
    size_t count = writer->entries.count;
    for (size_t i = 0; i < count; ++i)
      if (!writer->entries.items[i]->slice_count) writer->entries.items[i]->shard = kept->first;
    if (count) qsort(writer->entries.items, count, sizeof *writer->entries.items, compare_entries);
    rn_bundle_move_t move = {writer->temporary.data, name.data};
    status =
        rn_bundle_commit(env, writer->prefix, shards,
                         (const rn_bundle_entry_t* const*)writer->entries.items, count, &move, 1);
  }
  rn_strbuf_clear(&name);
  return status;
}

rn_status_t rn_bundle_writer_finish(rn_bundle_writer_t* writer, int64_t* out_bytes) {
  RN_RETURN_IF_ERROR(flush(writer));
  RN_RETURN_IF_ERROR(writer->file->vtable->sync(writer->file));
  rn_bundle_kept_t kept;
  rn_status_t status = rn_bundle_keep(writer->env, writer->prefix, 1, &kept);
  if (rn_ok(status)) status = place(writer, &kept);
  // Kept open until it is renamed, so that no cleanup takes it for abandoned.
  status = rn_status_join(status, close_data(writer));
  if (rn_ok(status)) {
    writer->has_temporary = false;
    rn_bundle_drop(writer->env, &kept);
  }
  rn_bundle_kept_clear(&kept);
  if (out_bytes) *out_bytes = writer->offset;
  return status;
}
