// Writes and reads event files: see event_file.h.
#include "io/event_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/sync.h"
#include "wire/scan.h"
#include "wire/writer.h"

enum {
  DEFAULT_QUEUE = 10,
  DEFAULT_FLUSH_MS = 2 * 60 * 1000,
  MAX_FILES = 10000,  // of one log, with one process and in one second
  SOURCE_WRITER = 1,
};

struct rn_event_writer_t {
  rn_env_t env;      // a copy, because a writer may outlive its opener
  rn_mutex_t mutex;  // guards all below
  char* folder;      // Owned
  size_t folder_size;
  size_t old_size;  // length of the part of the folder's path that existed before
  char* suffix;     // Owned
  size_t suffix_size;
  int64_t max_queue, flush_ns;
  uint64_t max_bytes;
  rn_record_writer_t* file;  // Owned; NULL if not made yet
  bool is_name_safe;         // the file's directory entry is on disk
  int64_t waiting;           // events since the last flush
  int64_t flushed_ns;
};

static void destroy(rn_event_writer_t* w) {
  rn_allocator_t allocator = w->env.allocator;
  rn_mutex_destroy(&w->mutex);
  rn_free(allocator, w->folder, w->folder_size + 1);
  rn_free(allocator, w->suffix, w->suffix_size + 1);
  RN_FREE(allocator, w);
}

// Makes the folder and records which part of its path is new.
static rn_status_t make_folder(rn_event_writer_t* w) {
  char* path = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(w->env.allocator, rn_str(w->folder), &path));
  rn_str_t old = rn_str(w->folder);
  while (path[old.size] = '\0', !rn_fs_exists(&w->env, path)) {
    if (rn_path_to_parent(&old)) continue;
    old.size = 0;  // not even the first part of the path exists
    break;
  }
  w->old_size = old.size;
  rn_free(w->env.allocator, path, w->folder_size + 1);
  return rn_fs_make_directories(&w->env, w->folder);
}

// Syncs the directory entries of the file and of new folders.
static rn_status_t sync_names(rn_event_writer_t* w) {
  if (!w->folder_size) return w->env.fs->sync_directory(w->env.fs_self, ".");
  if (rn_path_root(rn_str(w->folder))) return RN_OK;  // only the operating system's need it
  char* path = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(w->env.allocator, rn_str(w->folder), &path));
  rn_status_t status = RN_OK;
  for (rn_str_t at = rn_str(w->folder); rn_ok(status); at = rn_path_directory(at)) {
    // The directory of "a" is ".", which is no part of the path.
    bool is_part = at.size <= w->folder_size && memcmp(at.data, w->folder, at.size) == 0;
    if (is_part) path[at.size] = '\0';
    status = w->env.fs->sync_directory(w->env.fs_self, is_part ? path : ".");
    if (at.size <= w->old_size || !is_part || at.size <= 1) break;
  }
  rn_free(w->env.allocator, path, w->folder_size + 1);
  return status;
}

rn_status_t rn_event_writer_open(const rn_env_t* env, rn_str_t folder,
                                 const rn_event_options_t* options, rn_event_writer_t** out) {
  static const rn_event_options_t usual = {0};
  const rn_event_options_t* o = options ? options : &usual;
  rn_event_writer_t* w = NULL;
  *out = NULL;
  RN_RETURN_IF_ERROR(rn_fs_check_name(folder));
  RN_RETURN_IF_ERROR(RN_NEW(env->allocator, &w));
  w->env = *env;
  rn_mutex_init(&w->mutex);
  w->max_queue = o->max_queue > 0 ? o->max_queue : DEFAULT_QUEUE;
  int64_t flush_ms = o->flush_ms > 0 ? o->flush_ms : DEFAULT_FLUSH_MS;
  w->flush_ns = flush_ms < INT64_MAX / 1000000 ? flush_ms * 1000000 : INT64_MAX;
  w->max_bytes = o->max_bytes ? o->max_bytes : UINT64_MAX;
  w->flushed_ns = env->now_ns(env->self);
  w->folder_size = folder.size;
  w->suffix_size = o->suffix.size;
  rn_status_t status = rn_str_dup(env->allocator, folder, &w->folder);
  if (rn_ok(status)) status = rn_str_dup(env->allocator, o->suffix, &w->suffix);
  if (rn_ok(status) && folder.size) status = make_folder(w);
  if (!rn_ok(status)) {
    destroy(w);
    return status;
  }
  *out = w;
  return RN_OK;
}

// Finds an unused name; an existing log is never overwritten.
static rn_status_t find_name(const rn_event_writer_t* w, int64_t seconds, rn_strbuf_t* name) {
  char host[256] = "localhost";
  if (gethostname(host, sizeof host - 1) != 0) snprintf(host, sizeof host, "localhost");
  for (int n = 0; n < MAX_FILES; ++n) {
    name->size = 0;
    if (w->folder_size) rn_strbuf_printf(name, "%s/", w->folder);
    rn_strbuf_printf(name, "events.out.tfevents.%010" PRId64 ".%s.%ld.%04d%s", seconds, host,
                     (long)getpid(), n, w->suffix);
    RN_RETURN_IF_ERROR(rn_strbuf_status(name));
    // Any error other than NOT_FOUND does not prove that the name is unused.
    rn_file_stat_t stat;
    rn_status_t status = w->env.fs->stat(w->env.fs_self, name->data, &stat);
    rn_code_t code = rn_status_code(status);
    if (code != RN_CODE_OK && code != RN_CODE_NOT_FOUND) return status;
    rn_status_free(status);
    if (code == RN_CODE_NOT_FOUND) return RN_OK;
  }
  return rn_already_exists("%s; all names up to this one are taken", name->data);
}

static void put_time(rn_strbuf_t* buf, double seconds, int64_t step) {
  rn_pb_put_double(buf, RN_EVENT_WALL_TIME, seconds);
  if (step) rn_pb_put_uint(buf, RN_EVENT_STEP, (uint64_t)step);
}

static rn_status_t write_version(rn_event_writer_t* w, int64_t seconds) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, w->env.allocator);
  put_time(&buf, (double)seconds, 0);
  rn_pb_put_str(&buf, RN_EVENT_FILE_VERSION, RN_STR("brain.Event:2"));
  size_t source = rn_pb_begin(&buf, RN_EVENT_SOURCE);
  rn_pb_put_str(&buf, SOURCE_WRITER, RN_STR("runnel.io.event_file"));
  rn_pb_end(&buf, source);
  rn_status_t status = rn_strbuf_status(&buf);
  if (rn_ok(status)) status = rn_record_writer_write(w->file, rn_strbuf_view(&buf));
  rn_strbuf_clear(&buf);
  return status;
}

static rn_status_t begin_file_locked(rn_event_writer_t* w) {
  rn_strbuf_t name;
  rn_strbuf_init(&name, w->env.allocator);
  int64_t seconds = w->env.wall_us(w->env.self) / 1000000;
  rn_status_t status = find_name(w, seconds, &name);
  if (rn_ok(status)) status = rn_record_writer_open(&w->env, name.data, NULL, &w->file);
  rn_strbuf_clear(&name);
  w->is_name_safe = false;
  if (rn_ok(status)) status = write_version(w, seconds);
  // Readers that follow the log see at once that it has begun.
  if (rn_ok(status)) status = rn_record_writer_flush(w->file, false);
  if (rn_ok(status) || !w->file) return status;
  rn_record_writer_t* file = w->file;
  w->file = NULL;
  return rn_status_join(status, rn_record_writer_close(file));
}

static rn_status_t flush_locked(rn_event_writer_t* w) {
  w->waiting = 0;
  w->flushed_ns = w->env.now_ns(w->env.self);
  if (!w->file) return RN_OK;
  RN_RETURN_IF_ERROR(rn_record_writer_flush(w->file, true));
  if (w->is_name_safe) return RN_OK;
  w->is_name_safe = true;
  return sync_names(w);
}

static rn_status_t end_file_locked(rn_event_writer_t* w) {
  rn_status_t status = flush_locked(w);
  rn_record_writer_t* file = w->file;
  w->file = NULL;
  return rn_status_join(status, rn_record_writer_close(file));
}

static rn_status_t add_locked(rn_event_writer_t* w, rn_str_t event) {
  if (w->file && rn_record_writer_offset(w->file) >= w->max_bytes)
    RN_RETURN_IF_ERROR(end_file_locked(w));
  if (!w->file) RN_RETURN_IF_ERROR(begin_file_locked(w));
  RN_RETURN_IF_ERROR(rn_record_writer_write(w->file, event));
  // Readers see events soon; only an explicit flush syncs to disk.
  if (++w->waiting < w->max_queue && w->env.now_ns(w->env.self) - w->flushed_ns < w->flush_ns)
    return RN_OK;
  w->waiting = 0;
  w->flushed_ns = w->env.now_ns(w->env.self);
  return rn_record_writer_flush(w->file, false);
}

rn_status_t rn_event_writer_begin(rn_event_writer_t* w) {
  rn_mutex_lock(&w->mutex);
  rn_status_t status = w->file ? RN_OK : begin_file_locked(w);
  rn_mutex_unlock(&w->mutex);
  return status;
}

rn_status_t rn_event_writer_add(rn_event_writer_t* w, rn_str_t event) {
  rn_mutex_lock(&w->mutex);
  rn_status_t status = add_locked(w, event);
  rn_mutex_unlock(&w->mutex);
  return status;
}

rn_status_t rn_event_writer_put(rn_event_writer_t* w, int64_t step, uint32_t number,
                                rn_str_t bytes) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, w->env.allocator);
  put_time(&buf, (double)w->env.wall_us(w->env.self) / 1e6, step);
  rn_pb_put_str(&buf, number, bytes);
  rn_status_t status = rn_strbuf_status(&buf);
  if (rn_ok(status)) status = rn_event_writer_add(w, rn_strbuf_view(&buf));
  rn_strbuf_clear(&buf);
  return status;
}

rn_status_t rn_event_writer_flush(rn_event_writer_t* w) {
  rn_mutex_lock(&w->mutex);
  rn_status_t status = flush_locked(w);
  rn_mutex_unlock(&w->mutex);
  return status;
}

rn_status_t rn_event_writer_close(rn_event_writer_t* w) {
  if (!w) return RN_OK;
  rn_status_t status = w->file ? end_file_locked(w) : RN_OK;
  destroy(w);
  return status;
}

void rn_event_writer_drop(rn_event_writer_t* w) {
  if (!w) return;
  rn_status_free(rn_record_writer_close(w->file));
  destroy(w);
}

static double double_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

rn_status_t rn_event_parse(rn_str_t bytes, rn_event_t* out) {
  *out = (rn_event_t){0};
  rn_pb_scan_t scan = rn_pb_scan(bytes);
  rn_pb_field_t field;
  while (rn_pb_scan_next(&scan, &field)) {
    bool is_text = field.wire == RN_PB_WIRE_LENGTH;
    if (field.number == RN_EVENT_WALL_TIME && field.wire == RN_PB_WIRE_64)
      out->wall_time = double_of(field.value);
    else if (field.number == RN_EVENT_STEP && field.wire == RN_PB_WIRE_VARINT)
      out->step = (int64_t)field.value;
    else if (is_text &&
             (field.number == RN_EVENT_FILE_VERSION || field.number == RN_EVENT_GRAPH ||
              field.number == RN_EVENT_SUMMARY || field.number == RN_EVENT_RUN_METADATA)) {
      out->kind = field.number;
      out->bytes = field.bytes;
    }
  }
  return scan.is_bad ? rn_data_loss("An event cannot be parsed") : RN_OK;
}
