// Snapshots of datasets. See snapshot.h.
//
//   FOLDER/snapshot.metadata                    SnapshotMetadataRecord
//   FOLDER/<run>/00000000.shard/00000000.snapshot   TFRecords: a TensorProto a component
//
// The message has these fields: graph_hash 1, run_id 2, creation_timestamp 3, version 4, dtype 5
// (packed), num_elements 6, finalized 1000.
#include "io/snapshot.h"

#include <inttypes.h>

#include "io/snapshot_file.h"
#include "proto/graph.pb.h"
#include "tensor/tensor_proto.h"
#include "wire/scan.h"
#include "wire/text.h"
#include "wire/writer.h"

#define META_LIMIT ((size_t)1 << 20)
#define MAX_SHARDS 4096

static rn_status_t meta_path(rn_strbuf_t* path, const char* folder) {
  rn_strbuf_printf(path, "%s/snapshot.metadata", folder);
  return rn_strbuf_status(path);
}

static bool meta_decode(rn_snapshot_meta_t* meta) {
  rn_pb_scan_t scan = rn_pb_scan(rn_strbuf_view(&meta->text));
  rn_pb_field_t field = {0};
  while (rn_pb_scan_next(&scan, &field)) {
    bool is_text = field.wire == RN_PB_WIRE_LENGTH, is_number = field.wire == RN_PB_WIRE_VARINT;
    if (field.number == 1 && is_text) meta->graph_hash = field.bytes;
    if (field.number == 2 && is_text) meta->run = field.bytes;
    if (field.number == 3 && is_number) meta->created_us = (int64_t)field.value;
    if (field.number == 4 && is_number) meta->version = (int64_t)field.value;
    if (field.number == 5 && is_text) meta->types = field.bytes;
    if (field.number == 6 && is_number) meta->element_count = (int64_t)field.value;
    if (field.number == 1000 && is_number) meta->is_final = field.value != 0;
  }
  return !scan.is_bad;
}

// A run must be a plain name, not a path that leaves the folder.
static bool is_name(rn_str_t run) {
  if (!run.size || rn_str_is(run, ".") || rn_str_is(run, "..")) return false;
  return !memchr(run.data, '/', run.size) && !memchr(run.data, 0, run.size);
}

rn_status_t rn_snapshot_meta_read(const rn_env_t* env, const char* folder,
                                  rn_snapshot_meta_t* out) {
  rn_strbuf_t path;
  rn_strbuf_init(&path, env->allocator);
  rn_status_t status = meta_path(&path, folder);
  if (rn_ok(status)) status = rn_fs_read(env, path.data, META_LIMIT, &out->text);
  if (rn_ok(status) && (!meta_decode(out) || !is_name(out->run)))
    status = rn_data_loss("not the metadata of a snapshot: %s", path.data);
  rn_strbuf_clear(&path);
  return status;
}

// The number of types, and the first that is not as in |types|.
static bool count_types(const rn_snapshot_meta_t* meta, int32_t count, const rn_dtype_t* types,
                        int32_t* out_count, int32_t* out_other, uint64_t* out_type) {
  rn_pb_scan_t scan = rn_pb_scan(meta->types);
  *out_count = 0;
  *out_other = -1;
  for (uint64_t type = 0; scan.next < scan.end; ++*out_count) {
    if (*out_count == INT32_MAX || !rn_pb_scan_varint(&scan, &type)) return false;
    if (*out_other >= 0 || *out_count >= count || type == (uint64_t)types[*out_count]) continue;
    *out_other = *out_count;
    *out_type = type;
  }
  return true;
}

rn_status_t rn_snapshot_meta_check_types(const rn_snapshot_meta_t* meta, int32_t count,
                                         const rn_dtype_t* types) {
  int32_t found = 0, other = -1;
  uint64_t type = 0;
  if (!count_types(meta, count, types, &found, &other, &type))
    return rn_data_loss("not the metadata of a snapshot");
  if (found != count)
    return rn_internal("Expected number of dtypes: %d but number in snapshot: %d", count, found);
  if (other < 0) return RN_OK;
  return rn_internal("Type: %d doesn't match. Snapshot: %llu; dataset: %d", other,
                     (unsigned long long)type, types[other]);
}

static void meta_encode(const rn_snapshot_meta_t* meta, int32_t type_count, const rn_dtype_t* types,
                        rn_strbuf_t* out) {
  if (meta->graph_hash.size) rn_pb_put_str(out, 1, meta->graph_hash);
  rn_pb_put_str(out, 2, meta->run);
  rn_pb_put_uint(out, 3, (uint64_t)meta->created_us);
  rn_pb_put_uint(out, 4, (uint64_t)meta->version);
  size_t mark = rn_pb_begin(out, 5);
  for (int32_t i = 0; i < type_count; ++i) rn_pb_put_varint(out, types[i]);
  rn_pb_end(out, mark);
  if (meta->element_count) rn_pb_put_uint(out, 6, (uint64_t)meta->element_count);
  if (meta->is_final) rn_pb_put_uint(out, 1000, 1);
}

rn_status_t rn_snapshot_meta_write(const rn_env_t* env, const char* folder,
                                   const rn_snapshot_meta_t* meta, int32_t type_count,
                                   const rn_dtype_t* types) {
  rn_strbuf_t path, bytes;
  rn_strbuf_init(&path, env->allocator);
  rn_strbuf_init(&bytes, env->allocator);
  rn_status_t status = meta_path(&path, folder);
  meta_encode(meta, type_count, types, &bytes);
  if (rn_ok(status)) status = rn_strbuf_status(&bytes);
  if (rn_ok(status)) status = rn_fs_replace(env, path.data, rn_strbuf_view(&bytes));
  rn_strbuf_clear(&bytes);
  rn_strbuf_clear(&path);
  return status;
}

rn_status_t rn_snapshot_graph_write(const rn_env_t* env, const char* path, rn_str_t graph) {
  rn_pb_GraphDef_t* def = NULL;
  rn_strbuf_t text;
  rn_arena_t arena;
  rn_strbuf_init(&text, env->allocator);
  rn_arena_init(&arena, env->allocator);
  rn_status_t status = RN_PB_DECODE(GraphDef, graph, NULL, &arena, &def);
  if (rn_ok(status)) status = rn_pb_print(&rn_pb_GraphDef_desc, def, &text);
  if (rn_ok(status)) status = rn_fs_write(env, path, rn_strbuf_view(&text));
  rn_arena_clear(&arena);
  rn_strbuf_clear(&text);
  return status;
}

// Writing.
typedef struct snapshot_shard_t {
  int64_t number;
  rn_record_writer_t* records;
} snapshot_shard_t;

struct rn_snapshot_writer_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  char* run;  // Owned
  int64_t part;
  rn_compression_t compression;
  RN_VEC(snapshot_shard_t) shards;
  rn_strbuf_t path, bytes;
};

static void writer_free(rn_snapshot_writer_t* writer) {
  rn_allocator_t allocator = writer->allocator;
  rn_strbuf_clear(&writer->path);
  rn_strbuf_clear(&writer->bytes);
  rn_vec_free(&writer->shards, allocator);
  if (writer->run) rn_free(allocator, writer->run, strlen(writer->run) + 1);
  RN_FREE(allocator, writer);
}

rn_status_t rn_snapshot_writer_open(const rn_env_t* env, const char* run, int64_t part,
                                    rn_compression_t compression, rn_snapshot_writer_t** out) {
  *out = NULL;
  rn_snapshot_writer_t* writer = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &writer));
  writer->env = env;
  writer->allocator = env->allocator;
  writer->part = part;
  writer->compression = compression;
  rn_strbuf_init(&writer->path, env->allocator);
  rn_strbuf_init(&writer->bytes, env->allocator);
  rn_status_t status = rn_str_dup(env->allocator, rn_str(run), &writer->run);
  if (rn_ok(status)) status = rn_fs_make_directories(env, run);
  if (rn_ok(status))
    *out = writer;
  else
    writer_free(writer);
  return status;
}

// The path of a shard, or of the writer's file in it.
static rn_status_t shard_path(rn_snapshot_writer_t* writer, int64_t shard, bool is_file) {
  writer->path.size = 0;
  rn_strbuf_printf(&writer->path, "%s/%08" PRIu64 ".shard", writer->run, (uint64_t)shard);
  if (is_file) rn_strbuf_printf(&writer->path, "/%08" PRIu64 ".snapshot", (uint64_t)writer->part);
  return rn_strbuf_status(&writer->path);
}

static rn_status_t open_shard(rn_snapshot_writer_t* writer, int64_t number,
                              snapshot_shard_t** out) {
  for (size_t i = 0; i < writer->shards.count; ++i) {
    *out = &writer->shards.items[i];
    if ((*out)->number == number) return RN_OK;
  }
  if (writer->shards.count == MAX_SHARDS)
    return rn_resource_exhausted("more than %d shards; %s", MAX_SHARDS, writer->run);
  RN_RETURN_IF_ERROR(rn_vec_reserve(&writer->shards, writer->allocator, writer->shards.count + 1));
  RN_RETURN_IF_ERROR(shard_path(writer, number, false));
  RN_RETURN_IF_ERROR(rn_fs_make_directories(writer->env, writer->path.data));
  RN_RETURN_IF_ERROR(shard_path(writer, number, true));
  rn_sink_options_t options = {.compression = writer->compression, .buffer_size = (size_t)64 << 10};
  rn_record_writer_t* records = NULL;
  RN_RETURN_IF_ERROR(rn_record_writer_open(writer->env, writer->path.data, &options, &records));
  *out = &writer->shards.items[writer->shards.count++];
  **out = (snapshot_shard_t){number, records};
  return RN_OK;
}

static rn_status_t put_tensor(rn_snapshot_writer_t* writer, rn_record_writer_t* records,
                              const rn_tensor_t* tensor) {
  writer->bytes.size = 0;
  RN_RETURN_IF_ERROR(rn_tensor_put_proto(tensor, RN_TENSOR_CONTENT, &writer->bytes));
  return rn_record_writer_write(records, rn_strbuf_view(&writer->bytes));
}

rn_status_t rn_snapshot_writer_put(rn_snapshot_writer_t* writer, int64_t shard,
                                   const rn_tensor_t* row, int32_t count) {
  snapshot_shard_t* found = NULL;
  RN_RETURN_IF_ERROR(open_shard(writer, shard, &found));
  for (int32_t i = 0; i < count; ++i)
    RN_RETURN_IF_ERROR(put_tensor(writer, found->records, &row[i]));
  return RN_OK;
}

static rn_status_t sync_folder(rn_snapshot_writer_t* writer, const char* path) {
  return writer->env->fs->sync_directory(writer->env->fs_self, path);
}

rn_status_t rn_snapshot_writer_close(rn_snapshot_writer_t* writer) {
  if (!writer) return RN_OK;
  rn_status_t status = RN_OK;
  for (size_t i = 0; i < writer->shards.count; ++i) {
    snapshot_shard_t* shard = &writer->shards.items[i];
    if (rn_ok(status)) status = rn_record_writer_flush(shard->records, true);
    status = rn_status_join(status, rn_record_writer_close(shard->records));
    if (rn_ok(status)) status = shard_path(writer, shard->number, false);
    if (rn_ok(status)) status = sync_folder(writer, writer->path.data);
  }
  if (rn_ok(status)) status = sync_folder(writer, writer->run);
  writer_free(writer);
  return status;
}

void rn_snapshot_writer_drop(rn_snapshot_writer_t* writer) {
  if (!writer) return;
  for (size_t i = 0; i < writer->shards.count; ++i)
    rn_status_free(rn_record_writer_close(writer->shards.items[i].records));
  writer_free(writer);
}

// The number at the start of the last component of |path|.
static int64_t number_of(rn_str_t path) {
  const char* slash = strrchr(path.data, '/');
  int64_t number = 0;
  for (const char* p = slash ? slash + 1 : path.data; *p >= '0' && *p <= '9'; ++p)
    if (!__builtin_mul_overflow(number, 10, &number)) number += *p - '0';
  return number;
}

rn_status_t rn_snapshot_cut_files(const rn_env_t* env, const char* pattern, int64_t part) {
  rn_names_t names;
  rn_names_init(&names, env->allocator);
  rn_status_t status = rn_fs_glob(env, pattern, &names);
  for (size_t i = 0; rn_ok(status) && i < names.list.count; ++i)
    if (number_of(names.list.items[i]) >= part)
      status = env->fs->remove(env->fs_self, names.list.items[i].data);
  rn_names_clear(&names);
  return status;
}

rn_status_t rn_snapshot_cut(const rn_env_t* env, const char* run, int64_t part) {
  rn_strbuf_t pattern;
  rn_strbuf_init(&pattern, env->allocator);
  rn_strbuf_printf(&pattern, "%s/*.shard/*.snapshot", run);
  rn_status_t status = rn_strbuf_status(&pattern);
  if (rn_ok(status)) status = rn_snapshot_cut_files(env, pattern.data, part);
  rn_strbuf_clear(&pattern);
  return status;
}

rn_status_t rn_snapshot_list(const rn_env_t* env, const char* folder, const char* pattern,
                             rn_names_t* names) {
  rn_strbuf_t path;
  rn_strbuf_init(&path, env->allocator);
  rn_strbuf_printf(&path, "%s/%s", folder, pattern);
  rn_status_t status = rn_strbuf_status(&path);
  if (rn_ok(status)) status = rn_fs_glob(env, path.data, names);
  rn_strbuf_clear(&path);
  return status;
}

rn_status_t rn_snapshot_shards(const rn_env_t* env, const char* run, rn_names_t* names) {
  return rn_snapshot_list(env, run, "*.shard", names);
}

// Reading.
struct rn_snapshot_reader_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  char* shard;  // Owned
  rn_compression_t compression;
  int64_t version;
  uint64_t part;             // number of the next file
  rn_snapshot_file_t* file;  // the current one; NULL if none
};

void rn_snapshot_reader_close(rn_snapshot_reader_t* reader) {
  if (!reader) return;
  rn_allocator_t allocator = reader->allocator;
  rn_snapshot_file_close(reader->file);
  if (reader->shard) rn_free(allocator, reader->shard, strlen(reader->shard) + 1);
  RN_FREE(allocator, reader);
}

// Opens the next file; if there is none, the shard has ended. The first file must exist.
static rn_status_t next_file(rn_snapshot_reader_t* reader, bool* out_end) {
  rn_strbuf_t path;
  bool is_there = true;
  rn_strbuf_init(&path, reader->allocator);
  rn_strbuf_printf(&path, "%s/%08" PRIu64 ".snapshot", reader->shard, reader->part);
  rn_status_t status = rn_strbuf_status(&path);
  if (rn_ok(status) && reader->part > 0) status = rn_fs_find(reader->env, path.data, &is_there);
  *out_end = !is_there;
  if (rn_ok(status) && is_there) {
    reader->part++;
    status = rn_snapshot_file_open(reader->env, path.data, reader->compression, reader->version,
                                   &reader->file);
  }
  rn_strbuf_clear(&path);
  return status;
}

rn_status_t rn_snapshot_reader_open(const rn_env_t* env, const char* shard,
                                    rn_compression_t compression, int64_t version,
                                    rn_snapshot_reader_t** out) {
  *out = NULL;
  rn_snapshot_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &reader));
  reader->env = env;
  reader->allocator = env->allocator;
  reader->compression = compression;
  reader->version = version;
  bool unused;
  rn_status_t status = rn_str_dup(env->allocator, rn_str(shard), &reader->shard);
  if (rn_ok(status)) status = next_file(reader, &unused);
  if (rn_ok(status))
    *out = reader;
  else
    rn_snapshot_reader_close(reader);
  return status;
}

// Reads the next element, or skips it if |row| is NULL.
static rn_status_t next_element(rn_snapshot_reader_t* reader, int32_t count,
                                const rn_dtype_t* types, rn_allocator_t memory, rn_tensor_t* row,
                                bool* out_end) {
  for (;;) {
    bool is_end = false;
    if (!reader->file) {
      RN_RETURN_IF_ERROR(next_file(reader, out_end));
      if (*out_end) return RN_OK;
    }
    RN_RETURN_IF_ERROR(row ? rn_snapshot_file_next(reader->file, count, types, memory, row, &is_end)
                           : rn_snapshot_file_skip(reader->file, count, &is_end));
    if (!is_end) return RN_OK;
    rn_snapshot_file_close(reader->file);
    reader->file = NULL;
  }
}

rn_status_t rn_snapshot_reader_next(rn_snapshot_reader_t* reader, int32_t count,
                                    const rn_dtype_t* types, rn_allocator_t memory,
                                    rn_tensor_t* row, bool* out_end) {
  *out_end = false;
  return next_element(reader, count, types, memory, row, out_end);
}

rn_status_t rn_snapshot_reader_skip(rn_snapshot_reader_t* reader, int32_t count, int64_t elements) {
  bool is_end = false;
  for (int64_t e = 0; e < elements && !is_end; ++e)
    RN_RETURN_IF_ERROR(next_element(reader, count, NULL, reader->allocator, NULL, &is_end));
  return RN_OK;
}
