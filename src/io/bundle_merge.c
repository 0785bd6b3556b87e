// Merges several bundles: moves the data files and joins the indexes. See bundle.h.
#include <stdlib.h>

#include "base/map.h"
#include "io/bundle_internal.h"

typedef struct merge_t {
  const rn_env_t* env;
  rn_arena_t arena;
  rn_names_t data;  // data files of the parts; the position is the new number
  rn_map_t names;   // to the entries
  RN_VEC(rn_bundle_entry_t*) entries;
  RN_VEC(rn_bundle_reader_t*) readers;  // Owned; they hold names, shapes and slices
} merge_t;

// The number that the data file of |entry| gets.
static rn_status_t number_of(merge_t* merge, const rn_bundle_reader_t* reader, int32_t shard,
                             rn_strbuf_t* scratch, int32_t* out) {
  scratch->size = 0;
  rn_bundle_data_name(scratch, reader->prefix, shard, reader->shards);
  RN_RETURN_IF_ERROR(rn_strbuf_status(scratch));
  rn_str_t name = rn_strbuf_view(scratch);
  // It is nearly always the last one.
  for (size_t i = merge->data.list.count; i-- > 0;) {
    *out = (int32_t)i;
    if (rn_str_eq(merge->data.list.items[i], name)) return RN_OK;
  }
  if (merge->data.list.count >= INT32_MAX / 2) return rn_out_of_range("too many data files");
  *out = (int32_t)merge->data.list.count;
  return rn_names_add(&merge->data, name);
}

static rn_status_t join_slices(merge_t* merge, rn_bundle_entry_t* into,
                               const rn_bundle_entry_t* from, const char* prefix) {
  if (!into->slice_count)
    return rn_invalid_argument(
        "Duplicate tensor keyed by %.*s encountered, when merging prefix: %s",
        RN_STR_ARGS(from->name), prefix);
  if (!from->slice_count)
    return rn_internal(
        "Duplicate tensor keyed by %.*s; attempting to merge in a non-slice bundle entry",
        RN_STR_ARGS(from->name));
  if (into->dtype != from->dtype || !rn_shape_eq(into->shape, from->shape))
    return rn_invalid_argument("Slices of %.*s differ in type or shape, when merging prefix: %s",
                               RN_STR_ARGS(from->name), prefix);
  rn_slice_t* all = NULL;
  size_t count = into->slice_count + from->slice_count;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&merge->arena, count, &all));
  memcpy(all, into->slices, into->slice_count * sizeof *all);
  memcpy(all + into->slice_count, from->slices, from->slice_count * sizeof *all);
  into->slices = all;
  into->slice_count = count;
  return RN_OK;
}

static rn_status_t add_bundle(merge_t* merge, const rn_bundle_reader_t* reader,
                              rn_strbuf_t* scratch) {
  for (size_t i = 0; i < reader->entries.count; ++i) {
    const rn_bundle_entry_t* from = &reader->entries.items[i];
    rn_bundle_entry_t* entry = rn_map_get(&merge->names, from->name);
    if (entry) {
      RN_RETURN_IF_ERROR(join_slices(merge, entry, from, reader->prefix));
      continue;
    }
    RN_RETURN_IF_ERROR(RN_ARENA_NEW(&merge->arena, &entry));
    *entry = *from;
    RN_RETURN_IF_ERROR(rn_vec_push(&merge->entries, merge->env->allocator, entry));
    RN_RETURN_IF_ERROR(rn_map_put(&merge->names, entry->name, entry));
    // Also for tensors stored as slices, whose number has no meaning, so that the index equals
    // TensorFlow's.
    RN_RETURN_IF_ERROR(number_of(merge, reader, from->shard, scratch, &entry->shard));
  }
  return RN_OK;
}

static rn_status_t open_part(merge_t* merge, const char* prefix, bool allow_missing) {
  bool is_there = false;
  RN_RETURN_IF_ERROR(rn_bundle_find_index(merge->env, prefix, &is_there));
  if (!is_there) {
    if (allow_missing) return RN_OK;
    return rn_invalid_argument(
        "allow_missing_files was set to false and %s did not exist.NOT_FOUND: %s not found", prefix,
        prefix);
  }
  rn_bundle_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(rn_bundle_reader_open(merge->env, prefix, &reader));
  rn_status_t status = rn_vec_push(&merge->readers, merge->env->allocator, reader);
  if (!rn_ok(status)) rn_bundle_reader_close(reader);
  return status;
}

static rn_status_t open_parts(merge_t* merge, const rn_str_t* prefixes, size_t count,
                              bool allow_missing) {
  for (size_t i = 0; i < count; ++i) {
    rn_str_t prefix;
    RN_RETURN_IF_ERROR(rn_arena_str(&merge->arena, prefixes[i], &prefix));
    RN_RETURN_IF_ERROR(open_part(merge, prefix.data, allow_missing));
  }
  if (merge->readers.count) return RN_OK;
  return rn_invalid_argument("At least one prefix checkpoint file must exist, but none existed.");
}

static rn_status_t join_indexes(merge_t* merge) {
  rn_strbuf_t scratch;
  rn_strbuf_init(&scratch, merge->env->allocator);
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < merge->readers.count; ++i)
    status = add_bundle(merge, merge->readers.items[i], &scratch);
  rn_strbuf_clear(&scratch);
  return status;
}

static int compare_entries(const void* a, const void* b) {
  const rn_bundle_entry_t* const* x = a;
  const rn_bundle_entry_t* const* y = b;
  return rn_str_compare((*x)->name, (*y)->name);
}

static rn_status_t commit(merge_t* merge, const char* destination, const rn_bundle_kept_t* kept) {
  size_t files = merge->data.list.count, count = merge->entries.count;
  int32_t shards = kept->first + (files ? (int32_t)files : 1);
  rn_bundle_move_t* moves = NULL;
  RN_RETURN_IF_ERROR(RN_ARENA_ARRAY(&merge->arena, files, &moves));
  rn_strbuf_t name;
  rn_strbuf_init(&name, merge->env->allocator);
  rn_status_t status = RN_OK;
  for (size_t i = 0; rn_ok(status) && i < files; ++i) {
    rn_str_t copy = {0};
    name.size = 0;
    rn_bundle_data_name(&name, destination, kept->first + (int32_t)i, shards);
    status = rn_strbuf_status(&name);
    if (rn_ok(status)) status = rn_arena_str(&merge->arena, rn_strbuf_view(&name), &copy);
    moves[i] = (rn_bundle_move_t){merge->data.list.items[i].data, copy.data};
  }
  rn_strbuf_clear(&name);
  for (size_t i = 0; i < count; ++i) merge->entries.items[i]->shard += kept->first;
  if (count) qsort(merge->entries.items, count, sizeof *merge->entries.items, compare_entries);
  if (rn_ok(status))
    status = rn_bundle_commit(merge->env, destination, shards,
                              (const rn_bundle_entry_t* const*)merge->entries.items, count, moves,
                              files);
  return status;
}

// Removes the indexes of the parts, which refer to nothing any more; ignores failures.
static void remove_parts(const merge_t* merge, const char* destination) {
  rn_strbuf_t name;
  rn_strbuf_init(&name, merge->env->allocator);
  for (size_t i = 0; i < merge->readers.count && !name.failed; ++i) {
    const rn_bundle_reader_t* reader = merge->readers.items[i];
    const char* prefix = reader->prefix;
    if (strcmp(prefix, destination) == 0) continue;
    if (reader->entries.count == 0) {  // its data file is empty and was not moved
      name.size = 0;
      rn_bundle_data_name(&name, prefix, 0, reader->shards);
      if (!name.failed) rn_status_free(merge->env->fs->remove(merge->env->fs_self, name.data));
    }
    name.size = 0;
    rn_bundle_index_name(&name, prefix);
    if (!name.failed) rn_status_free(merge->env->fs->remove(merge->env->fs_self, name.data));
  }
  rn_strbuf_clear(&name);
}

static void merge_clear(merge_t* merge) {
  for (size_t i = 0; i < merge->readers.count; ++i) rn_bundle_reader_close(merge->readers.items[i]);
  rn_vec_free(&merge->readers, merge->env->allocator);
  rn_vec_free(&merge->entries, merge->env->allocator);
  rn_map_clear(&merge->names);
  rn_names_clear(&merge->data);
  rn_arena_clear(&merge->arena);
}

rn_status_t rn_bundle_merge(const rn_env_t* env, const rn_str_t* prefixes, size_t count,
                            bool allow_missing, const char* destination) {
  merge_t merge = {.env = env};
  rn_arena_init(&merge.arena, env->allocator);
  rn_names_init(&merge.data, env->allocator);
  rn_map_init(&merge.names, env->allocator);
  rn_status_t status = open_parts(&merge, prefixes, count, allow_missing);
  if (rn_ok(status)) status = join_indexes(&merge);
  if (rn_ok(status)) status = rn_bundle_make_directory(env, destination);
  if (rn_ok(status)) {
    rn_bundle_kept_t kept;
    int32_t files = merge.data.list.count ? (int32_t)merge.data.list.count : 1;
    status = rn_bundle_keep(env, destination, files, &kept);
    if (rn_ok(status)) status = commit(&merge, destination, &kept);
    if (rn_ok(status)) {
      rn_bundle_drop(env, &kept);
      remove_parts(&merge, destination);
    }
    rn_bundle_kept_clear(&kept);
  }
  merge_clear(&merge);
  return status;
}
