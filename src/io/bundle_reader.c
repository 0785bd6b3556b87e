// Reads the complete index of a bundle when a checkpoint is opened. See bundle.h.
#include "io/bundle_internal.h"
#include "tensor/tensor_proto.h"
#include "wire/decode.h"

void rn_bundle_index_name(rn_strbuf_t* buf, const char* prefix) {
  rn_strbuf_printf(buf, "%s.index", prefix);
}

void rn_bundle_data_name(rn_strbuf_t* buf, const char* prefix, int32_t shard, int32_t shards) {
  rn_strbuf_printf(buf, "%s.data-%05d-of-%05d", prefix, shard, shards);
}

rn_status_t rn_bundle_find_index(const rn_env_t* env, const char* prefix, bool* out_exists) {
  rn_strbuf_t name;
  rn_strbuf_init(&name, env->allocator);
  rn_bundle_index_name(&name, prefix);
  *out_exists = false;
  rn_status_t status = rn_strbuf_status(&name);
  if (rn_ok(status)) status = rn_fs_find(env, name.data, out_exists);
  rn_strbuf_clear(&name);
  return status;
}

static rn_status_t bad_header(const char* path, rn_status_t why, const char* what) {
  if (rn_status_code(why) == RN_CODE_RESOURCE_EXHAUSTED) return why;
  rn_status_t status = rn_data_loss(
      "Unable to read file (%s). Perhaps the file is corrupt or was produced by a newer version of "
      "TensorFlow with format changes (%s)%s%s",
      path, what, rn_ok(why) ? "" : ": ", rn_status_message(why));
  rn_status_free(why);
  return status;
}

static rn_status_t check_version(const char* path, const rn_pb_VersionDef_t* version) {
  if (!version) return RN_OK;
  bool is_refused = version->min_consumer > RN_BUNDLE_VERSION;
  for (uint32_t i = 0; i < version->bad_consumers.count; ++i)
    is_refused |= version->bad_consumers.items[i] == RN_BUNDLE_VERSION;
  if (!is_refused) return RN_OK;
  return rn_invalid_argument(
      "%s: the checkpoint does not allow readers of version %d; it requires at least %d", path,
      RN_BUNDLE_VERSION, version->min_consumer);
}

static rn_status_t read_header(rn_bundle_reader_t* reader, const char* path,
                               const rn_table_iter_t* iter, rn_arena_t* scratch) {
  if (!iter->is_valid || iter->key.size)
    return bad_header(path, RN_OK, "failed to seek to header entry");
  rn_pb_BundleHeaderProto_t* header = NULL;
  rn_status_t status = RN_PB_DECODE(BundleHeaderProto, iter->value, NULL, scratch, &header);
  if (!rn_ok(status)) return bad_header(path, status, "unable to parse header");
  if (header->endianness != rn_pb_BundleHeaderProto_LITTLE)
    return rn_unimplemented(
        "%s: the checkpoint is big-endian, which is not supported; write it on a little-endian "
        "machine",
        path);
  if (header->num_shards < 1) return bad_header(path, RN_OK, "no data files");
  reader->shards = header->num_shards;
  return check_version(path, header->version);
}

static rn_status_t bad_entry(const char* path, const rn_table_iter_t* iter, const char* what) {
  return rn_data_loss("%s: the entry %.*s in the block at offset %llu %s", path,
                      RN_STR_ARGS(iter->key), (unsigned long long)iter->block_offset, what);
}

static rn_status_t take_slices(rn_bundle_reader_t* reader, const rn_pb_BundleEntryProto_t* proto,
                               rn_bundle_entry_t* entry) {
  entry->slice_count = proto->slices.count;
  if (!entry->slice_count) return RN_OK;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&reader->arena, entry->slice_count, &entry->slices));
  for (size_t i = 0; i < entry->slice_count; ++i) {
    rn_shape_t unused;
    RN_RETURN_IF_ERROR(
        rn_slice_from_proto(&proto->slices.items[i], &reader->arena, &entry->slices[i]));
    RN_RETURN_IF_ERROR(rn_slice_shape(entry->slices[i], entry->shape, &reader->arena, &unused));
  }
  return RN_OK;
}

static rn_status_t take_entry(rn_bundle_reader_t* reader, const char* path,
                              const rn_table_iter_t* iter, rn_arena_t* scratch) {
  size_t count = reader->entries.count;
  if (count && rn_str_compare(reader->entries.items[count - 1].name, iter->key) >= 0)
    return bad_entry(path, iter, "is out of order");
  rn_pb_BundleEntryProto_t* proto = NULL;
  rn_status_t status = RN_PB_DECODE(BundleEntryProto, iter->value, NULL, scratch, &proto);
  if (rn_status_code(status) == RN_CODE_RESOURCE_EXHAUSTED) return status;
  if (!rn_ok(status)) {
    rn_status_free(status);
    return bad_entry(path, iter, "is not a checkpoint entry");
  }
  rn_bundle_entry_t entry = {.dtype = proto->dtype,
                             .shape = RN_SHAPE_SCALAR,
                             .shard = proto->shard_id,
                             .offset = proto->offset,
                             .size = proto->size,
                             .checksum = proto->crc32c};
  RN_RETURN_IF_ERROR(rn_arena_str(&reader->arena, iter->key, &entry.name));
  if (proto->shape) status = rn_shape_from_proto(proto->shape, &reader->arena, &entry.shape);
  if (rn_ok(status)) status = take_slices(reader, proto, &entry);
  int64_t elements = 0;
  bool is_good = rn_ok(status) && rn_dtype_is_valid(entry.dtype) && entry.dtype < RN_REF_OFFSET &&
                 rn_shape_is_full(entry.shape) && rn_shape_count(entry.shape, &elements) &&
                 entry.shard >= 0 && entry.shard < reader->shards && entry.offset >= 0 &&
                 entry.size >= 0;
  if (!is_good && rn_status_code(status) != RN_CODE_RESOURCE_EXHAUSTED) {
    rn_status_free(status);
    return bad_entry(path, iter, "has an invalid type, shape or offset");
  }
  RN_RETURN_IF_ERROR(status);
  return rn_vec_push(&reader->entries, reader->env->allocator, entry);
}

const rn_bundle_entry_t* rn_bundle_find_any(const rn_bundle_reader_t* reader, rn_str_t key) {
  size_t low = 0, high = reader->entries.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = rn_str_compare(reader->entries.items[middle].name, key);
    if (order == 0) return &reader->entries.items[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

// Marks the entries that are slices of others, and lists the rest.
static rn_status_t list_names(rn_bundle_reader_t* reader) {
  rn_strbuf_t key;
  rn_strbuf_init(&key, reader->env->allocator);
  for (size_t i = 0; i < reader->entries.count; ++i) {
    const rn_bundle_entry_t* entry = &reader->entries.items[i];
    for (size_t k = 0; k < entry->slice_count && !key.failed; ++k) {
      key.size = 0;
      rn_slice_key(&key, entry->name, entry->slices[k]);
      rn_bundle_entry_t* part =
          (rn_bundle_entry_t*)rn_bundle_find_any(reader, rn_strbuf_view(&key));
      if (part) part->is_part = true;
    }
  }
  rn_status_t status = rn_strbuf_status(&key);
  rn_strbuf_clear(&key);
  for (size_t i = 0; rn_ok(status) && i < reader->entries.count; ++i)
    if (!reader->entries.items[i].is_part)
      status = rn_vec_push(&reader->named, reader->env->allocator, &reader->entries.items[i]);
  return status;
}

static rn_status_t read_entries(rn_bundle_reader_t* reader, const char* path,
                                const rn_table_t* table) {
  rn_table_iter_t iter;
  rn_table_iter_init(&iter, table);
  rn_arena_t scratch;
  rn_arena_init(&scratch, reader->env->allocator);
  rn_status_t status = rn_table_iter_seek(&iter, RN_STR(""));
  if (!rn_ok(status)) status = bad_header(path, status, "failed to seek to header entry");
  if (rn_ok(status)) status = read_header(reader, path, &iter, &scratch);
  if (rn_ok(status)) status = rn_table_iter_next(&iter);
  while (rn_ok(status) && iter.is_valid) {
    rn_arena_clear(&scratch);
    status = take_entry(reader, path, &iter, &scratch);
    if (rn_ok(status)) status = rn_table_iter_next(&iter);
  }
  rn_arena_clear(&scratch);
  rn_table_iter_clear(&iter);
  return rn_ok(status) ? list_names(reader) : status;
}

static rn_status_t read_index(rn_bundle_reader_t* reader) {
  rn_strbuf_t path;
  rn_strbuf_init(&path, reader->env->allocator);
  rn_bundle_index_name(&path, reader->prefix);
  rn_table_t* table = NULL;
  rn_status_t status = rn_strbuf_status(&path);
  if (rn_ok(status)) status = rn_table_open(reader->env, path.data, &table);
  if (rn_ok(status)) {
    uint64_t size = rn_table_file_size(table);
    reader->arena.limit = size < SIZE_MAX / 64 - (1 << 20) ? size * 64 + (1 << 20) : SIZE_MAX;
    status = read_entries(reader, path.data, table);
  }
  rn_table_close(table);
  rn_strbuf_clear(&path);
  return status;
}

rn_status_t rn_bundle_reader_open(const rn_env_t* env, const char* prefix,
                                  rn_bundle_reader_t** out) {
  *out = NULL;
  rn_bundle_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &reader));
  reader->env = env;
  rn_mutex_init(&reader->mutex);
  rn_arena_init(&reader->arena, env->allocator);
  rn_str_t copy = {0};
  rn_status_t status = rn_arena_str(&reader->arena, rn_str(prefix), &copy);
  reader->prefix = copy.data;
  if (rn_ok(status)) status = read_index(reader);
  if (!rn_ok(status)) {
    rn_bundle_reader_close(reader);
    return status;
  }
  *out = reader;
  return RN_OK;
}

void rn_bundle_reader_close(rn_bundle_reader_t* reader) {
  if (!reader) return;
  rn_allocator_t allocator = reader->env->allocator;
  for (size_t i = 0; i < reader->open.count; ++i) {
    rn_file_t* file = reader->open.items[i].file;
    rn_status_free(file->vtable->close(file));
  }
  rn_vec_free(&reader->open, allocator);
  rn_vec_free(&reader->entries, allocator);
  rn_vec_free(&reader->named, allocator);
  rn_arena_clear(&reader->arena);
  rn_mutex_destroy(&reader->mutex);
  RN_FREE(allocator, reader);
}

const char* rn_bundle_reader_prefix(const rn_bundle_reader_t* reader) { return reader->prefix; }
size_t rn_bundle_count(const rn_bundle_reader_t* reader) { return reader->named.count; }
const rn_bundle_entry_t* rn_bundle_entry(const rn_bundle_reader_t* reader, size_t i) {
  return reader->named.items[i];
}

const rn_bundle_entry_t* rn_bundle_find(const rn_bundle_reader_t* reader, rn_str_t name) {
  const rn_bundle_entry_t* entry = rn_bundle_find_any(reader, name);
  return entry && !entry->is_part ? entry : NULL;
}

rn_status_t rn_bundle_lookup(const rn_bundle_reader_t* reader, rn_str_t name,
                             const rn_bundle_entry_t** out) {
  *out = rn_bundle_find(reader, name);
  if (*out) return RN_OK;
  return rn_not_found("Key %.*s not found in checkpoint %s", RN_STR_ARGS(name), reader->prefix);
}
