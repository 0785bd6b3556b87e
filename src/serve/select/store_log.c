// See store_log.h.
//
// The folder:
//   snapshot-N   every state as of some time; N counts from 1, in decimal. Written as
//                snapshot-N.part and renamed when it is complete and synced.
//   log-N        states that changed since snapshot-N was begun, in order; log-0 has no snapshot.
// Only the snapshot with the highest number counts, and the logs from its number on. Older files
// are removed when a snapshot is complete.
//
// Both are TFRecord files (doc/formats.md: length, checksum, record, checksum). A record is
//   u8   1, the version of this format
//   u8   0
//   u16  size of the key, little endian
//   ...  the key, then the value; an empty value removes the key
// A log whose last record is torn, or fails its checksum, ends before that record.
//
// Invariants: a value that was synced is never older in a later file; the log is cut back to the
// last synced record before anything is appended after a failure.
#include "serve/select/store_log.h"

#include <stdio.h>

#include "base/fs.h"
#include "base/log.h"
#include "io/record.h"
#include "serve/select/store_saver.h"

#define FORMAT 1
#define HEAD 4  // bytes of a record before its key

typedef struct rn_store_log_t {
  rn_state_store_t base;
  rn_store_log_options_t options;

  // Of the thread alone, once it runs.
  rn_strbuf_t path;         // the folder and a slash; a name is put behind it for a moment
  int64_t number;           // of the log that is written
  int64_t oldest;           // number of the oldest file that there may be
  rn_record_writer_t* log;  // Owned; NULL: must be opened, after it was cut to |log_size|
  uint64_t log_base;        // its size when |log| was opened
  uint64_t log_size;        // bytes that are synced
  uint64_t snapshot_size;
  rn_strbuf_t pending;  // what is to be written: for each record its size, u32, and its bytes
  bool needs_snapshot;  // a change is not in |pending| for want of memory
  rn_file_t* lock;      // Owned; open as long as the folder is in use

  rn_store_saver_t saver;
} rn_store_log_t;

static rn_store_log_t* of(rn_state_store_t* base) { return (rn_store_log_t*)base; }

static const char* path_of(rn_store_log_t* store, const char* name) {
  size_t size = store->path.size;
  rn_strbuf_append(&store->path, rn_str(name));
  store->path.size = size;
  return store->path.failed ? "" : store->path.data;
}

static const char* numbered(rn_store_log_t* store, const char* kind, int64_t number,
                            const char* suffix) {
  char name[64];
  snprintf(name, sizeof name, "%s-%lld%s", kind, (long long)number, suffix);
  return path_of(store, name);
}

// Reading.

static rn_status_t read_record(rn_store_log_t* store, const char* path, rn_str_t record) {
  size_t key_size =
      record.size >= HEAD ? (uint8_t)record.data[2] | (uint8_t)record.data[3] << 8 : 0;
  if (record.size < HEAD + key_size || !key_size || record.data[0] != FORMAT)
    return rn_data_loss("%s: a record of %zu bytes is no state of format %d", path, record.size,
                        FORMAT);
  return rn_state_map_put(store->base.map, rn_str_n(record.data + HEAD, key_size),
                          rn_str_n(record.data + HEAD + key_size, record.size - HEAD - key_size),
                          false);
}

// |*out_size| = the bytes of complete records. Without |may_be_torn| an incomplete one is an error.
static rn_status_t read_file(rn_store_log_t* store, const char* path, bool may_be_torn,
                             uint64_t* out_size) {
  rn_record_reader_t* reader = NULL;
  RN_RETURN_IF_ERROR(
      rn_record_reader_open(store->options.env, path, RN_COMPRESSION_NONE, 0, &reader));
  rn_status_t status = RN_OK;
  for (bool is_end = false; rn_ok(status) && !is_end;) {
    rn_str_t record;
    status = rn_record_reader_next(reader, &record, &is_end);
    if (rn_ok(status) && !is_end) {
      status = read_record(store, path, record);
    } else if (may_be_torn && rn_status_code(status) == RN_CODE_DATA_LOSS) {
      rn_log(store->options.env, RN_LOG_WARNING, "%s ends in an incomplete record: %s", path,
             rn_status_message(status));
      rn_status_free(status);
      status = RN_OK;
      is_end = true;
    }
  }
  *out_size = rn_record_reader_offset(reader);
  rn_record_reader_close(reader);
  return status;
}

// The number in a name such as "log-12", or -1.
static int64_t number_of(rn_str_t name, rn_str_t kind) {
  int64_t number;
  if (!rn_str_starts_with(name, kind)) return -1;
  name = rn_str_n(name.data + kind.size, name.size - kind.size);
  return rn_str_to_i64(name, &number) && number >= 0 ? number : -1;
}

static rn_status_t read_folder(rn_store_log_t* store) {
  const rn_env_t* env = store->options.env;
  rn_names_t names;
  rn_names_init(&names, store->base.allocator);
  rn_status_t status = env->fs->list(env->fs_self, store->options.folder, &names);
  int64_t snapshot = 0, last = 0;
  store->oldest = INT64_MAX;
  for (size_t i = 0; rn_ok(status) && i < names.list.count; ++i) {
    int64_t s = number_of(names.list.items[i], RN_STR("snapshot-"));
    int64_t l = number_of(names.list.items[i], RN_STR("log-"));
    if (s > snapshot) snapshot = s;
    if (l > last) last = l;
    if (s >= 0 && s < store->oldest) store->oldest = s;
    if (l >= 0 && l < store->oldest) store->oldest = l;
    if (rn_str_ends_with(names.list.items[i], RN_STR(".part")))  // of a process that died
      rn_status_free(env->fs->remove(env->fs_self, path_of(store, names.list.items[i].data)));
  }
  rn_names_clear(&names);
  if (rn_ok(status) && snapshot)
    status =
        read_file(store, numbered(store, "snapshot", snapshot, ""), false, &store->snapshot_size);
  store->number = snapshot > last ? snapshot : last;
  if (store->oldest > snapshot) store->oldest = snapshot;
  for (int64_t n = snapshot; rn_ok(status) && n <= store->number; ++n) {
    const char* path = numbered(store, "log", n, "");
    bool exists = false;
    status = rn_fs_find(env, path, &exists);
    store->log_size = 0;
    if (rn_ok(status) && exists) status = read_file(store, path, true, &store->log_size);
  }
  return status;
}

// Writing, on the thread.

static void pend(void* arg, rn_str_t key, rn_str_t value) {
  rn_store_log_t* store = arg;
  uint32_t size = (uint32_t)(HEAD + key.size + value.size);
  char head[4 + HEAD] = {[4] = FORMAT, [6] = (char)key.size, [7] = (char)(key.size >> 8)};
  memcpy(head, &size, 4);
  if (!rn_strbuf_reserve(&store->pending, 4 + size)) {
    store->pending.failed = false;
    store->needs_snapshot = true;
    return;
  }
  rn_strbuf_append_n(&store->pending, head, sizeof head);
  rn_strbuf_append(&store->pending, key);
  rn_strbuf_append(&store->pending, value);
}

static rn_status_t write_pending(rn_strbuf_t* pending, rn_record_writer_t* writer) {
  for (size_t at = 0; at < pending->size;) {
    uint32_t size;
    memcpy(&size, pending->data + at, 4);
    RN_RETURN_IF_ERROR(rn_record_writer_write(writer, rn_str_n(pending->data + at + 4, size)));
    at += 4 + size;
  }
  return RN_OK;
}

static rn_status_t open_log(rn_store_log_t* store) {
  const rn_env_t* env = store->options.env;
  const char* path = numbered(store, "log", store->number, "");
  rn_file_t* file = NULL;
  RN_RETURN_IF_ERROR(rn_fs_open(env, path, RN_OPEN_APPEND, &file));
  rn_status_t status = file->vtable->truncate(file, (int64_t)store->log_size);
  status = rn_status_join(status, file->vtable->close(file));
  if (rn_ok(status)) status = env->fs->sync_directory(env->fs_self, store->options.folder);
  RN_RETURN_IF_ERROR(status);
  rn_sink_options_t options = {.appends = true};
  RN_RETURN_IF_ERROR(rn_record_writer_open(env, path, &options, &store->log));
  store->log_base = store->log_size;
  return RN_OK;
}

static void drop_log(rn_store_log_t* store) {
  rn_status_free(rn_record_writer_close(store->log));
  store->log = NULL;
}

static rn_status_t write_out(rn_store_log_t* store) {
  if (!store->pending.size) return RN_OK;
  if (!store->log) RN_RETURN_IF_ERROR(open_log(store));
  rn_status_t status = write_pending(&store->pending, store->log);
  if (rn_ok(status)) status = rn_record_writer_flush(store->log, true);
  if (!rn_ok(status)) {
    drop_log(store);  // the next round cuts what this one left behind
    return status;
  }
  store->log_size = store->log_base + rn_record_writer_offset(store->log);
  store->pending.size = 0;
  return RN_OK;
}

// Writes and syncs what has changed. What an earlier round could not write comes first: while
// writing fails, changes stay in the map, where each key has one.
static rn_status_t commit(rn_store_log_t* store) {
  RN_RETURN_IF_ERROR(write_out(store));
  rn_state_map_take(store->base.map, pend, store);
  return write_out(store);
}

static void remove_old(rn_store_log_t* store) {
  const rn_env_t* env = store->options.env;
  for (; store->oldest < store->number; ++store->oldest) {
    rn_status_free(env->fs->remove(env->fs_self, numbered(store, "snapshot", store->oldest, "")));
    rn_status_free(env->fs->remove(env->fs_self, numbered(store, "log", store->oldest, "")));
  }
}

static rn_status_t write_snapshot(rn_store_log_t* store, rn_record_writer_t* writer) {
  for (int i = 0; i < RN_STATE_SHARDS; ++i) {
    rn_state_map_each(store->base.map, i, pend, store);
    rn_status_t status = store->needs_snapshot ? rn_out_of_memory() : RN_OK;
    if (rn_ok(status)) status = write_pending(&store->pending, writer);
    store->pending.size = 0;
    RN_RETURN_IF_ERROR(status);
    RN_RETURN_IF_ERROR(commit(store));  // a large snapshot must not hold up changes
  }
  store->snapshot_size = rn_record_writer_offset(writer);
  return rn_record_writer_flush(writer, true);
}

// Begins a new log, then writes a snapshot of everything, so that the files before it can go.
static rn_status_t compact(rn_store_log_t* store) {
  const rn_env_t* env = store->options.env;
  if (store->log) drop_log(store);
  ++store->number;
  store->log_size = 0;
  store->needs_snapshot = false;
  rn_strbuf_t part;
  rn_strbuf_init(&part, store->base.allocator);
  rn_strbuf_append(&part, rn_str(numbered(store, "snapshot", store->number, ".part")));
  rn_record_writer_t* writer = NULL;
  rn_status_t status = rn_strbuf_status(&part);
  if (rn_ok(status)) status = rn_record_writer_open(env, part.data, NULL, &writer);
  if (rn_ok(status)) status = write_snapshot(store, writer);
  status = rn_status_join(status, rn_record_writer_close(writer));
  if (rn_ok(status))
    status =
        env->fs->rename(env->fs_self, part.data, numbered(store, "snapshot", store->number, ""));
  if (rn_ok(status)) status = env->fs->sync_directory(env->fs_self, store->options.folder);
  if (rn_ok(status)) {
    remove_old(store);
  } else {
    store->needs_snapshot = true;
    if (part.data) rn_status_free(env->fs->remove(env->fs_self, part.data));
  }
  rn_strbuf_clear(&part);
  return status;
}

static rn_status_t save(void* self) {
  rn_store_log_t* store = self;
  RN_RETURN_IF_ERROR(commit(store));
  uint64_t limit = store->options.compact_bytes;
  if (limit < 2 * store->snapshot_size) limit = 2 * store->snapshot_size;
  return store->log_size > limit || store->needs_snapshot ? compact(store) : RN_OK;
}

static void wait_locked(void* self) {
  rn_store_log_t* store = self;
  rn_store_saver_t* saver = &store->saver;
  int64_t pause = saver->failure ? store->options.retry_ns : store->options.commit_ns;
  int64_t until = rn_env_system()->now_ns(NULL) + pause;  // conditions use the real clock
  while (!rn_store_saver_is_due_locked(saver))
    if (!rn_cond_wait_until(&saver->wake, &saver->mutex, until)) break;
}

// The vtable.

static rn_status_t flush(rn_state_store_t* base) { return rn_store_saver_flush(&of(base)->saver); }

static void add_stats(rn_state_store_t* base, rn_state_store_stats_t* inout) {
  rn_store_saver_t* saver = &of(base)->saver;
  inout->unsaved = (int64_t)rn_state_map_stats(base->map).dirty;
  rn_mutex_lock(&saver->mutex);
  inout->saves = saver->saves;
  inout->failures = saver->failures;
  rn_mutex_unlock(&saver->mutex);
}

static void destroy(rn_state_store_t* base) {
  rn_store_log_t* store = of(base);
  rn_store_saver_stop(&store->saver);
  if (store->log) drop_log(store);
  if (store->lock) rn_status_free(store->lock->vtable->close(store->lock));
  rn_strbuf_clear(&store->path);
  rn_strbuf_clear(&store->pending);
  rn_store_saver_deinit(&store->saver);
  rn_state_store_deinit(base);
  RN_FREE(base->allocator, store);
}

static const rn_state_store_vtable_t log_vtable = {
    .kind = "log", .flush = flush, .add_stats = add_stats, .destroy = destroy};

// Two processes that wrote to one folder would lose each other's states.
static rn_status_t lock_folder(rn_store_log_t* store) {
  const rn_env_t* env = store->options.env;
  bool is_used = false;
  if (env->fs->is_in_use && rn_fs_exists(env, path_of(store, "lock"))) {
    rn_status_t status = env->fs->is_in_use(env->fs_self, path_of(store, "lock"), &is_used);
    rn_status_free(status);  // if unknown, assume that it is free
    if (is_used)
      return rn_failed_precondition("%s is in use by another process", store->options.folder);
  }
  return rn_fs_open(env, path_of(store, "lock"), RN_OPEN_TEMPORARY, &store->lock);
}

static rn_status_t open_folder(rn_store_log_t* store) {
  const rn_store_log_options_t* options = &store->options;
  RN_RETURN_IF_ERROR(rn_state_store_init(&store->base, options->env, options->max_bytes));
  rn_strbuf_printf(&store->path, "%s/", options->folder);
  // Paths are used before anything could report that there was no memory for them.
  rn_strbuf_reserve(&store->path, 64);
  RN_RETURN_IF_ERROR(rn_strbuf_status(&store->path));
  RN_RETURN_IF_ERROR(rn_fs_make_directories(options->env, options->folder));
  RN_RETURN_IF_ERROR(lock_folder(store));
  RN_RETURN_IF_ERROR(read_folder(store));
  return rn_store_saver_start(&store->saver);
}

rn_status_t rn_store_log_open(const rn_store_log_options_t* options, rn_state_store_t** out) {
  *out = NULL;
  rn_store_log_t* store = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(options->allocator, &store));
  store->base.vtable = &log_vtable;
  store->base.allocator = options->allocator;
  store->base.marks_dirty = true;
  store->options = *options;
  if (!store->options.commit_ns) store->options.commit_ns = 200 * INT64_C(1000000);
  if (!store->options.retry_ns) store->options.retry_ns = 1000 * INT64_C(1000000);
  if (!store->options.compact_bytes) store->options.compact_bytes = 16 << 20;
  rn_strbuf_init(&store->path, options->allocator);
  rn_strbuf_init(&store->pending, options->allocator);
  store->saver =
      (rn_store_saver_t){.env = options->env,
                         .what = "What applications learn cannot be saved",
                         .failure_count = rn_store_failure_count(options->metrics, "folder"),
                         .wait = wait_locked,
                         .save = save,
                         .self = store};
  rn_store_saver_init(&store->saver);
  rn_status_t status = open_folder(store);
  if (!rn_ok(status)) {
    rn_state_store_destroy(&store->base);
    return status;
  }
  *out = &store->base;
  return RN_OK;
}
