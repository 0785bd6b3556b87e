// See snapshot_run.h.
#include "io/snapshot_run.h"

#include <inttypes.h>

#include "io/snapshot.h"

typedef struct run_file_t {
  rn_snapshot_file_writer_t* writer;  // NULL before its first element
  int64_t number;
  uint64_t bytes;  // that count for its size
} run_file_t;

struct rn_snapshot_run_writer_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  char* run;  // Owned
  rn_snapshot_run_options_t options;
  int64_t element_count;
  double ratio;      // of the bytes of elements to those in the file; 0 before a file was full
  rn_strbuf_t path;  // of the last file opened or measured
  run_file_t files[RN_SNAPSHOT_MAX_FILES];
};

void rn_snapshot_run_writer_drop(rn_snapshot_run_writer_t* writer) {
  if (!writer) return;
  for (int64_t i = 0; i < writer->options.files; ++i)
    rn_snapshot_file_writer_drop(writer->files[i].writer);
  if (writer->run) rn_free(writer->allocator, writer->run, strlen(writer->run) + 1);
  rn_strbuf_clear(&writer->path);
  RN_FREE(writer->allocator, writer);
}

rn_status_t rn_snapshot_run_writer_open(const rn_env_t* env, const char* run,
                                        const rn_snapshot_run_options_t* options,
                                        rn_snapshot_run_writer_t** out) {
  *out = NULL;
  rn_snapshot_run_writer_t* writer = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &writer));
  writer->env = env;
  writer->allocator = env->allocator;
  writer->options = *options;
  rn_strbuf_init(&writer->path, env->allocator);
  rn_status_t status = rn_str_dup(env->allocator, rn_str(run), &writer->run);
  if (rn_ok(status)) status = rn_fs_make_directories(env, run);
  if (rn_ok(status))
    *out = writer;
  else
    rn_snapshot_run_writer_drop(writer);
  return status;
}

int64_t rn_snapshot_run_writer_number(const rn_snapshot_run_writer_t* writer) {
  return writer->options.next_number;
}

static rn_status_t set_path(rn_snapshot_run_writer_t* writer, const run_file_t* file) {
  writer->path.size = 0;
  rn_strbuf_printf(&writer->path, "%s/%08" PRIu64 ".snapshot", writer->run, (uint64_t)file->number);
  return rn_strbuf_status(&writer->path);
}

static rn_status_t open_file(rn_snapshot_run_writer_t* writer, run_file_t* file) {
  file->number = writer->options.next_number++;
  file->bytes = 0;
  RN_RETURN_IF_ERROR(set_path(writer, file));
  return rn_snapshot_file_writer_open(writer->env, writer->path.data, writer->options.compression,
                                      &file->writer);
}

static rn_status_t close_file(run_file_t* file) {
  rn_snapshot_file_writer_t* writer = file->writer;
  file->writer = NULL;
  return rn_snapshot_file_writer_close(writer);
}

static rn_status_t open_files(rn_snapshot_run_writer_t* writer) {
  for (int64_t i = 0; i < writer->options.files; ++i)
    if (!writer->files[i].writer) RN_RETURN_IF_ERROR(open_file(writer, &writer->files[i]));
  return RN_OK;
}

// Whether |file| is full, by stock's rule: elements count with their size in memory. Where that
// first exceeds the limit, the size of the file says what of it they take there.
static rn_status_t is_full(rn_snapshot_run_writer_t* writer, const run_file_t* file, bool* out) {
  double limit = (double)writer->options.file_size, bytes = (double)file->bytes;
  int64_t size = 0;
  *out = writer->ratio > 0 && bytes > writer->ratio * limit;
  if (writer->ratio > 0 || bytes <= limit) return RN_OK;
  RN_RETURN_IF_ERROR(rn_snapshot_file_writer_flush(file->writer));
  RN_RETURN_IF_ERROR(set_path(writer, file));
  RN_RETURN_IF_ERROR(rn_fs_size(writer->env, writer->path.data, &size));
  if (size > 0) writer->ratio = bytes / (double)size;
  *out = size > 0 && size >= writer->options.file_size;
  return RN_OK;
}

rn_status_t rn_snapshot_run_writer_put(rn_snapshot_run_writer_t* writer, const rn_tensor_t* row,
                                       int32_t count) {
  RN_RETURN_IF_ERROR(open_files(writer));
  run_file_t* file = &writer->files[writer->element_count % writer->options.files];
  bool full = false;
  for (int32_t i = 0; i < count; ++i) file->bytes += rn_tensor_bytes(&row[i]);
  RN_RETURN_IF_ERROR(is_full(writer, file, &full));
  if (full) {
    RN_RETURN_IF_ERROR(close_file(file));
    RN_RETURN_IF_ERROR(open_file(writer, file));
  }
  writer->element_count++;
  return rn_snapshot_file_writer_put(file->writer, row, count);
}

rn_status_t rn_snapshot_run_writer_pause(rn_snapshot_run_writer_t* writer) {
  rn_status_t status = RN_OK;
  for (int64_t i = 0; i < writer->options.files; ++i)
    status = rn_status_join(status, close_file(&writer->files[i]));
  if (rn_ok(status)) status = writer->env->fs->sync_directory(writer->env->fs_self, writer->run);
  return status;
}

rn_status_t rn_snapshot_run_writer_finish(rn_snapshot_run_writer_t* writer) {
  if (!writer->element_count) RN_RETURN_IF_ERROR(open_files(writer));
  return rn_snapshot_run_writer_pause(writer);
}

// Reading.
struct rn_snapshot_run_reader_t {
  const rn_env_t* env;
  rn_allocator_t allocator;
  char* prefix;  // Owned
  rn_compression_t compression;
  int64_t version;
  rn_names_t names;
  size_t next_name;
  int64_t position;
  rn_snapshot_file_t* file;  // NULL between files
};

void rn_snapshot_run_reader_close(rn_snapshot_run_reader_t* reader) {
  if (!reader) return;
  rn_snapshot_file_close(reader->file);
  rn_names_clear(&reader->names);
  if (reader->prefix) rn_free(reader->allocator, reader->prefix, strlen(reader->prefix) + 1);
  RN_FREE(reader->allocator, reader);
}

static rn_status_t list_files(rn_snapshot_run_reader_t* reader, const char* run) {
  RN_RETURN_IF_ERROR(rn_snapshot_list(reader->env, run, "*", &reader->names));
  if (reader->names.list.count) return RN_OK;
  return rn_not_found("Could not find any files in dir: %s", run);
}

rn_status_t rn_snapshot_run_reader_open(const rn_env_t* env, const char* run, rn_str_t prefix,
                                        rn_compression_t compression, int64_t version,
                                        rn_snapshot_run_reader_t** out) {
  *out = NULL;
  rn_snapshot_run_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &reader));
  reader->env = env;
  reader->allocator = env->allocator;
  reader->compression = compression;
  reader->version = version;
  rn_names_init(&reader->names, env->allocator);
  rn_status_t status = rn_fs_check_name(prefix);
  if (rn_ok(status)) status = rn_str_dup(env->allocator, prefix, &reader->prefix);
  if (rn_ok(status)) status = list_files(reader, run);
  if (rn_ok(status))
    *out = reader;
  else
    rn_snapshot_run_reader_close(reader);
  return status;
}

rn_names_t* rn_snapshot_run_reader_names(rn_snapshot_run_reader_t* reader) {
  return &reader->names;
}

int64_t rn_snapshot_run_reader_position(const rn_snapshot_run_reader_t* reader) {
  return reader->position;
}

static rn_status_t next_file(rn_snapshot_run_reader_t* reader) {
  rn_strbuf_t path;
  rn_strbuf_init(&path, reader->allocator);
  if (*reader->prefix) rn_strbuf_printf(&path, "%s/", reader->prefix);
  rn_strbuf_append(&path, reader->names.list.items[reader->next_name]);
  rn_status_t status = rn_strbuf_status(&path);
  if (rn_ok(status))
    status = rn_snapshot_file_open(reader->env, path.data, reader->compression, reader->version,
                                   &reader->file);
  rn_strbuf_clear(&path);
  reader->next_name += rn_ok(status);
  return status;
}

// Reads the next element, or skips it if |row| is NULL.
static rn_status_t next_element(rn_snapshot_run_reader_t* reader, int32_t count,
                                const rn_dtype_t* types, rn_allocator_t memory, rn_tensor_t* row,
                                bool* out_end) {
  for (;;) {
    bool is_end = false;
    *out_end = !reader->file && reader->next_name == reader->names.list.count;
    if (*out_end) return RN_OK;
    if (!reader->file) RN_RETURN_IF_ERROR(next_file(reader));
    RN_RETURN_IF_ERROR(row ? rn_snapshot_file_next(reader->file, count, types, memory, row, &is_end)
                           : rn_snapshot_file_skip(reader->file, count, &is_end));
    if (!is_end) break;
    rn_snapshot_file_close(reader->file);
    reader->file = NULL;
  }
  reader->position++;
  return RN_OK;
}

rn_status_t rn_snapshot_run_reader_next(rn_snapshot_run_reader_t* reader, int32_t count,
                                        const rn_dtype_t* types, rn_allocator_t memory,
                                        rn_tensor_t* row, bool* out_end) {
  return next_element(reader, count, types, memory, row, out_end);
}

rn_status_t rn_snapshot_run_reader_skip(rn_snapshot_run_reader_t* reader, int32_t count,
                                        int64_t elements) {
  bool is_end = false;
  for (int64_t e = 0; e < elements && !is_end; ++e)
    RN_RETURN_IF_ERROR(next_element(reader, count, NULL, reader->allocator, NULL, &is_end));
  return RN_OK;
}
