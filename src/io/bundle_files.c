// The files of a bundle: writes the index, puts a checkpoint in place, and removes one.
//
// doc/invariants.md: invariant 42.
#include "io/bundle_internal.h"
#include "tensor/tensor_proto.h"
#include "wire/encode.h"
#include "wire/writer.h"

static rn_status_t forgive(rn_status_t status) {
  rn_status_free(status);
  return RN_OK;
}

// "a/b" of "a/b/c", NUL-terminated, appended.
static rn_status_t directory_of(const char* prefix, rn_strbuf_t* out) {
  rn_strbuf_append(out, rn_path_directory(rn_str(prefix)));
  return rn_strbuf_status(out);
}

rn_status_t rn_bundle_sync_directory(const rn_env_t* env, const char* prefix) {
  rn_strbuf_t name;
  rn_strbuf_init(&name, env->allocator);
  rn_status_t status = directory_of(prefix, &name);
  if (rn_ok(status)) status = env->fs->sync_directory(env->fs_self, name.data);
  rn_strbuf_clear(&name);
  return status;
}

// Makes missing directories from the top down and syncs the parent of each.
static rn_status_t make_directory_of(const rn_env_t* env, const char* path) {
  rn_strbuf_t name;
  rn_strbuf_init(&name, env->allocator);
  rn_status_t status = directory_of(path, &name);
  bool is_there = rn_ok(status) && rn_str_is(rn_str(path), name.data);  // it is the root
  if (rn_ok(status) && !is_there) status = rn_fs_find(env, name.data, &is_there);
  if (rn_ok(status) && !is_there) {
    status = make_directory_of(env, name.data);
    if (rn_ok(status)) status = env->fs->make_directory(env->fs_self, name.data);
    // Another process made it meanwhile.
    if (rn_status_code(status) == RN_CODE_ALREADY_EXISTS) status = forgive(status);
    if (rn_ok(status)) status = rn_bundle_sync_directory(env, name.data);
  }
  rn_strbuf_clear(&name);
  return status;
}

rn_status_t rn_bundle_make_directory(const rn_env_t* env, const char* prefix) {
  rn_status_t status = make_directory_of(env, prefix);
  return rn_ok(status) ? status : rn_status_annotate(status, "; the folder of %s", prefix);
}

rn_status_t rn_bundle_encode_entry(const rn_bundle_entry_t* entry, rn_strbuf_t* out) {
  rn_arena_t arena;
  rn_arena_init(&arena, out->allocator);
  rn_pb_TensorShapeProto_t shape;
  rn_pb_BundleEntryProto_t proto = {.dtype = entry->dtype,
                                    .shape = &shape,
                                    .shard_id = entry->shard,
                                    .offset = entry->offset,
                                    .size = entry->size,
                                    .crc32c = entry->checksum};
  rn_status_t status = rn_shape_to_proto(entry->shape, &arena, &shape);
  if (rn_ok(status) && entry->slice_count) {
    if (entry->slice_count > UINT32_MAX) status = rn_out_of_range("too many slices");
    if (rn_ok(status)) status = RN_ARENA_ARRAY(&arena, entry->slice_count, &proto.slices.items);
    for (size_t i = 0; rn_ok(status) && i < entry->slice_count; ++i)
      status = rn_slice_to_proto(entry->slices[i], &arena, &proto.slices.items[i]);
    proto.slices.count = (uint32_t)entry->slice_count;
  }
  if (rn_ok(status)) status = RN_PB_ENCODE(BundleEntryProto, &proto, NULL, out);
  rn_arena_clear(&arena);
  return status;
}

static rn_status_t put_header(rn_table_writer_t* table, int32_t shards, rn_strbuf_t* scratch) {
  rn_pb_VersionDef_t version = {.producer = RN_BUNDLE_VERSION};
  rn_pb_BundleHeaderProto_t header = {.num_shards = shards, .version = &version};
  RN_RETURN_IF_ERROR(RN_PB_ENCODE(BundleHeaderProto, &header, NULL, scratch));
  return rn_table_writer_add(table, RN_STR(""), rn_strbuf_view(scratch));
}

static rn_status_t put_entries(rn_table_writer_t* table, int32_t shards,
                               const rn_bundle_entry_t* const* entries, size_t count) {
  rn_strbuf_t scratch;
  rn_strbuf_init(&scratch, rn_allocator_default());
  rn_status_t status = put_header(table, shards, &scratch);
  for (size_t i = 0; rn_ok(status) && i < count; ++i) {
    scratch.size = 0;
    status = rn_bundle_encode_entry(entries[i], &scratch);
    if (rn_ok(status))
      status = rn_table_writer_add(table, entries[i]->name, rn_strbuf_view(&scratch));
  }
  rn_strbuf_clear(&scratch);
  return rn_ok(status) ? rn_table_writer_finish(table) : status;
}

// Writes the index to a temporary file and syncs it; the caller closes it.
static rn_status_t write_table(const rn_env_t* env, rn_file_t* file, int32_t shards,
                               const rn_bundle_entry_t* const* entries, size_t count) {
  rn_table_writer_t* table = NULL;
  rn_status_t status = rn_table_writer_create(env->allocator, file, &table);
  if (rn_ok(status)) status = put_entries(table, shards, entries, count);
  rn_table_writer_destroy(table);
  return rn_ok(status) ? file->vtable->sync(file) : status;
}

// Renames the data files, then the index.
static rn_status_t put_in_place(const rn_env_t* env, const char* prefix, const char* temporary,
                                const char* index, const rn_bundle_move_t* moves, size_t count) {
  rn_status_t status = RN_OK;
  size_t moved = 0;
  while (rn_ok(status) && moved < count) {
    status = env->fs->rename(env->fs_self, moves[moved].from, moves[moved].to);
    moved += rn_ok(status);
  }
  // The names of the data files must be on disk before an index that refers to them.
  if (rn_ok(status)) status = rn_bundle_sync_directory(env, prefix);
  if (rn_ok(status)) status = env->fs->rename(env->fs_self, temporary, index);
  if (rn_ok(status)) return rn_bundle_sync_directory(env, prefix);
  while (moved-- > 0)
    rn_status_free(env->fs->rename(env->fs_self, moves[moved].to, moves[moved].from));
  return status;
}

rn_status_t rn_bundle_commit(const rn_env_t* env, const char* prefix, int32_t shards,
                             const rn_bundle_entry_t* const* entries, size_t count,
                             const rn_bundle_move_t* moves, size_t move_count) {
  rn_strbuf_t name, temporary;
  rn_strbuf_init(&name, env->allocator);
  rn_strbuf_init(&temporary, env->allocator);
  rn_bundle_index_name(&name, prefix);
  rn_status_t status = rn_strbuf_status(&name);
  if (rn_ok(status)) status = rn_fs_temporary(env, name.data, &temporary);
  rn_file_t* file = NULL;
  if (rn_ok(status)) status = rn_fs_open(env, temporary.data, RN_OPEN_TEMPORARY, &file);
  if (file) {
    status = write_table(env, file, shards, entries, count);
    if (rn_ok(status))
      status = put_in_place(env, prefix, temporary.data, name.data, moves, move_count);
    status = rn_status_join(status, file->vtable->close(file));
    // Does nothing if the index has been renamed already; a rename that was not synced is not
    // undone.
    if (!rn_ok(status)) rn_status_free(env->fs->remove(env->fs_self, temporary.data));
  }
  rn_strbuf_clear(&name);
  rn_strbuf_clear(&temporary);
  return status;
}

// Old data files.

static rn_status_t add_data_name(rn_names_t* names, rn_strbuf_t* scratch, const char* prefix,
                                 int32_t shard, int32_t shards) {
  scratch->size = 0;
  rn_bundle_data_name(scratch, prefix, shard, shards);
  RN_RETURN_IF_ERROR(rn_strbuf_status(scratch));
  for (size_t i = 0; i < names->list.count; ++i)
    if (rn_str_eq(names->list.items[i], rn_strbuf_view(scratch))) return RN_OK;
  return rn_names_add(names, rn_strbuf_view(scratch));
}

// The data files that the entries of |reader| refer to, in the order of their first entry.
static rn_status_t list_data(const rn_bundle_reader_t* reader, rn_names_t* names) {
  rn_strbuf_t scratch;
  rn_strbuf_init(&scratch, reader->env->allocator);
  rn_status_t status = RN_OK;
  int32_t last = -1;
  for (size_t i = 0; rn_ok(status) && i < reader->entries.count; ++i) {
    const rn_bundle_entry_t* entry = &reader->entries.items[i];
    if (entry->slice_count || entry->shard == last) continue;
    last = entry->shard;
    status = add_data_name(names, &scratch, reader->prefix, entry->shard, reader->shards);
  }
  // A checkpoint without tensors has an empty data file.
  if (rn_ok(status) && reader->entries.count == 0)
    status = add_data_name(names, &scratch, reader->prefix, 0, reader->shards);
  rn_strbuf_clear(&scratch);
  return status;
}

static bool is_kept(const rn_bundle_kept_t* kept, rn_str_t name) {
  for (size_t i = 0; i < kept->names.list.count; ++i)
    if (rn_str_eq(kept->names.list.items[i], name)) return true;
  return false;
}

static rn_status_t choose_first(const rn_env_t* env, const char* prefix, int32_t count,
                                bool is_damaged, rn_bundle_kept_t* kept) {
  rn_strbuf_t name;
  rn_strbuf_init(&name, env->allocator);
  rn_status_t status = RN_OK;
  bool is_free = false;
  for (kept->first = 0; !is_free && rn_ok(status); kept->first += !is_free) {
    is_free = true;
    for (int32_t i = 0; i < count && is_free && rn_ok(status); ++i) {
      bool is_used = false;
      name.size = 0;
      rn_bundle_data_name(&name, prefix, kept->first + i, kept->first + count);
      status = rn_strbuf_status(&name);
      if (rn_ok(status) && is_damaged) status = rn_fs_find(env, name.data, &is_used);
      is_free = !is_used && !is_kept(kept, rn_strbuf_view(&name));
    }
  }
  rn_strbuf_clear(&name);
  return status;
}

rn_status_t rn_bundle_keep(const rn_env_t* env, const char* prefix, int32_t count,
                           rn_bundle_kept_t* out) {
  *out = (rn_bundle_kept_t){0};
  rn_names_init(&out->names, env->allocator);
  bool is_damaged = false, is_there = false;
  RN_RETURN_IF_ERROR(rn_bundle_find_index(env, prefix, &is_there));
  if (is_there) {
    rn_bundle_reader_t* reader = NULL;
    rn_status_t status = rn_bundle_reader_open(env, prefix, &reader);
    // The old index is unreadable, so its data files are unknown; all existing names stay.
    is_damaged = !rn_ok(status);
    rn_status_free(status);
    if (reader) {
      status = list_data(reader, &out->names);
      rn_bundle_reader_close(reader);
      RN_RETURN_IF_ERROR(status);
    }
  }
  return choose_first(env, prefix, count, is_damaged, out);
}

void rn_bundle_drop(const rn_env_t* env, const rn_bundle_kept_t* kept) {
  for (size_t i = 0; i < kept->names.list.count; ++i)
    rn_status_free(env->fs->remove(env->fs_self, kept->names.list.items[i].data));
}

void rn_bundle_kept_clear(rn_bundle_kept_t* kept) { rn_names_clear(&kept->names); }

// Whether |name| is |base| followed by ".data-00000-of-00001", with any numbers.
static bool is_data_name(rn_str_t name, rn_str_t base) {
  static const char pattern[] = ".data-#####-of-#####";
  if (name.size != base.size + sizeof pattern - 1 || !rn_str_starts_with(name, base)) return false;
  for (size_t i = 0; i + 1 < sizeof pattern; ++i) {
    char c = name.data[base.size + i];
    if (pattern[i] == '#' ? c < '0' || c > '9' : c != pattern[i]) return false;
  }
  return true;
}

// Removes all data files of |prefix|, including unreferenced ones.
static rn_status_t remove_data(const rn_env_t* env, const char* prefix) {
  rn_str_t directory = rn_path_directory(rn_str(prefix));
  const char* slash = strrchr(prefix, '/');
  rn_str_t base = rn_str(slash ? slash + 1 : prefix);
  rn_names_t names;
  rn_names_init(&names, env->allocator);
  rn_str_t path;
  rn_status_t status = rn_arena_str(&names.arena, directory, &path);
  if (rn_ok(status)) status = env->fs->list(env->fs_self, path.data, &names);
  for (size_t i = 0; rn_ok(status) && i < names.list.count; ++i) {
    if (!is_data_name(names.list.items[i], base)) continue;
    status = rn_arena_printf(&names.arena, &path, "%s%.*s", prefix,
                             RN_STR_ARGS(rn_str_n(names.list.items[i].data + base.size,
                                                  names.list.items[i].size - base.size)));
    if (rn_ok(status)) status = env->fs->remove(env->fs_self, path.data);
  }
  rn_names_clear(&names);
  return status;
}

rn_status_t rn_bundle_remove(const rn_env_t* env, const char* prefix) {
  rn_strbuf_t name;
  rn_strbuf_init(&name, env->allocator);
  rn_bundle_index_name(&name, prefix);
  rn_status_t status = rn_strbuf_status(&name);
  if (rn_ok(status)) status = env->fs->remove(env->fs_self, name.data);
  if (rn_status_code(status) == RN_CODE_NOT_FOUND) status = forgive(status);
  if (rn_ok(status)) status = remove_data(env, prefix);
  if (rn_status_code(status) == RN_CODE_NOT_FOUND) status = forgive(status);
  rn_strbuf_clear(&name);
  return status;
}
