// A plug-in's file system behind the table of base/fs.h. Messages are stock's.
#include "capi/plugin/filesystem.h"

#include "capi/plugin/call.h"

static rn_status_t unsupported(const char* path, const char* what) {
  return rn_unimplemented("Filesystem for %s does not support %s()", path, what);
}

// The name that the plug-in knows |path| by: what its own function makes of it, else the part after
// scheme and host.
static rn_status_t translate(const rn_plugin_fs_t* fs, const char* path, rn_strbuf_t* out) {
  rn_strbuf_init(out, rn_capi_allocator());
  if (fs->ops.translate_name) {
    char* name = fs->ops.translate_name(&fs->filesystem, path);
    if (!name) return rn_internal("The file system has no name for %s", path);
    rn_strbuf_append(out, rn_str(name));
    fs->memory_free(name);
  } else {
    rn_path_append_clean(out, rn_str(path + rn_path_root(rn_str(path))));
    if (!out->size) rn_strbuf_append(out, RN_STR("/"));
  }
  return rn_strbuf_status(out);
}

typedef void (*fs_call_t)(const TF_Filesystem*, const char*, TF_Status*);

static rn_status_t call_on(rn_plugin_fs_t* fs, fs_call_t call, const char* path, const char* what) {
  if (!call) return unsupported(path, what);
  rn_strbuf_t name;
  rn_status_t status = translate(fs, path, &name);
  if (rn_ok(status)) status = RN_PLUGIN_CALL(call, &fs->filesystem, name.data);
  rn_strbuf_clear(&name);
  return status;
}

// --- Open files

typedef struct filesystem_file_t {
  rn_file_t file;  // first
  rn_allocator_t allocator;
  rn_plugin_fs_t* fs;
  bool is_writable;
  TF_RandomAccessFile reader;
  TF_WritableFile writer;
  uint64_t at;  // where |read| continues
  char* path;   // Owned
} filesystem_file_t;

static rn_status_t file_read_at(rn_file_t* base, uint64_t offset, void* out, size_t size,
                                size_t* out_size) {
  filesystem_file_t* file = (filesystem_file_t*)base;
  *out_size = 0;
  if (file->is_writable || !file->fs->read_ops.read) return unsupported(file->path, "Read");
  TF_Status status = {RN_OK};
  int64_t got = size ? file->fs->read_ops.read(&file->reader, offset, size, out, &status) : 0;
  if (got > 0) *out_size = (size_t)got <= size ? (size_t)got : size;
  // The end of the file.
  if (rn_status_code(status.rep) != RN_CODE_OUT_OF_RANGE) return status.rep;
  rn_status_free(status.rep);
  return RN_OK;
}

static rn_status_t file_read(rn_file_t* base, void* out, size_t size, size_t* out_size) {
  filesystem_file_t* file = (filesystem_file_t*)base;
  rn_status_t status = file_read_at(base, file->at, out, size, out_size);
  file->at += *out_size;
  return status;
}

static rn_status_t file_append(rn_file_t* base, rn_str_t data) {
  filesystem_file_t* file = (filesystem_file_t*)base;
  if (!file->is_writable || !file->fs->write_ops.append) return unsupported(file->path, "Append");
  return RN_PLUGIN_CALL(file->fs->write_ops.append, &file->writer, data.data ? data.data : "",
                        data.size);
}

static rn_status_t file_sync(rn_file_t* base) {
  filesystem_file_t* file = (filesystem_file_t*)base;
  const TF_WritableFileOps* ops = &file->fs->write_ops;
  void (*call)(const TF_WritableFile*, TF_Status*) = ops->sync ? ops->sync : ops->flush;
  return file->is_writable && call ? RN_PLUGIN_CALL(call, &file->writer) : RN_OK;
}

static rn_status_t file_truncate(rn_file_t* base, int64_t size) {
  (void)size;
  return unsupported(((filesystem_file_t*)base)->path, "Truncate");
}

static rn_status_t fs_stat(void* self, const char* path, rn_file_stat_t* out);

static rn_status_t file_stat(rn_file_t* base, rn_file_stat_t* out) {
  filesystem_file_t* file = (filesystem_file_t*)base;
  return fs_stat(file->fs, file->path, out);
}

static void file_free(filesystem_file_t* file) {
  if (file->path) rn_free(file->allocator, file->path, strlen(file->path) + 1);
  RN_FREE(file->allocator, file);
}

static rn_status_t file_close(rn_file_t* base) {
  filesystem_file_t* file = (filesystem_file_t*)base;
  rn_plugin_fs_t* fs = file->fs;
  rn_status_t status = RN_OK;
  if (file->is_writable && fs->write_ops.close)
    status = RN_PLUGIN_CALL(fs->write_ops.close, &file->writer);
  if (file->is_writable)
    fs->write_ops.cleanup(&file->writer);
  else
    fs->read_ops.cleanup(&file->reader);
  file_free(file);
  return status;
}

static const rn_file_vtable_t file_vtable = {.read = file_read,
                                             .read_at = file_read_at,
                                             .append = file_append,
                                             .sync = file_sync,
                                             .truncate = file_truncate,
                                             .stat = file_stat,
                                             .close = file_close};

static rn_status_t open_file(filesystem_file_t* file, const char* path, rn_open_mode_t mode) {
  rn_plugin_fs_t* fs = file->fs;
  const TF_FilesystemOps* ops = &fs->ops;
  file->is_writable = mode != RN_OPEN_READ;
  if (mode == RN_OPEN_READ && !ops->new_random_access_file)
    return unsupported(path, "NewRandomAccessFile");
  if (mode == RN_OPEN_APPEND && !ops->new_appendable_file)
    return unsupported(path, "NewAppendableFile");
  if (mode != RN_OPEN_READ && mode != RN_OPEN_APPEND && !ops->new_writable_file)
    return unsupported(path, "NewWritableFile");
  rn_strbuf_t name;
  rn_status_t status = translate(fs, path, &name);
  if (rn_ok(status) && mode == RN_OPEN_READ)
    status = RN_PLUGIN_CALL(ops->new_random_access_file, &fs->filesystem, name.data, &file->reader);
  else if (rn_ok(status))
    status =
        RN_PLUGIN_CALL(mode == RN_OPEN_APPEND ? ops->new_appendable_file : ops->new_writable_file,
                       &fs->filesystem, name.data, &file->writer);
  rn_strbuf_clear(&name);
  return status;
}

static rn_status_t fs_open(void* self, const char* path, rn_open_mode_t mode,
                           rn_allocator_t allocator, rn_file_t** out_file) {
  filesystem_file_t* file = NULL;
  *out_file = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &file));
  file->file.vtable = &file_vtable;
  file->allocator = allocator;
  file->fs = self;
  rn_status_t status = rn_str_dup(allocator, rn_str(path), &file->path);
  if (rn_ok(status)) status = open_file(file, path, mode);
  if (!rn_ok(status)) {
    file_free(file);
    return status;
  }
  *out_file = &file->file;
  return RN_OK;
}

// --- Names

// For plug-ins without |stat|.
static rn_status_t stat_in_parts(rn_plugin_fs_t* fs, const char* name, rn_file_stat_t* out) {
  const TF_FilesystemOps* ops = &fs->ops;
  RN_RETURN_IF_ERROR(RN_PLUGIN_CALL(ops->path_exists, &fs->filesystem, name));
  TF_Status status = {RN_OK};
  if (ops->is_directory) out->is_directory = ops->is_directory(&fs->filesystem, name, &status);
  rn_status_free(status.rep);  // says that it is no directory
  status.rep = RN_OK;
  if (!out->is_directory && ops->get_file_size)
    out->size = ops->get_file_size(&fs->filesystem, name, &status);
  return status.rep;
}

static rn_status_t fs_stat(void* self, const char* path, rn_file_stat_t* out) {
  rn_plugin_fs_t* fs = self;
  *out = (rn_file_stat_t){0};
  if (!fs->ops.stat && !fs->ops.path_exists) return unsupported(path, "Stat");
  rn_strbuf_t name;
  TF_FileStatistics found = {0};
  rn_status_t status = translate(fs, path, &name);
  if (rn_ok(status) && !fs->ops.stat) {
    status = stat_in_parts(fs, name.data, out);
  } else if (rn_ok(status)) {
    status = RN_PLUGIN_CALL(fs->ops.stat, &fs->filesystem, name.data, &found);
    *out = (rn_file_stat_t){found.length, found.mtime_nsec, found.is_directory};
  }
  rn_strbuf_clear(&name);
  return status;
}

static rn_status_t fs_remove(void* self, const char* path) {
  rn_plugin_fs_t* fs = self;
  return call_on(fs, fs->ops.delete_file, path, "DeleteFile");
}

static rn_status_t fs_make_directory(void* self, const char* path) {
  rn_plugin_fs_t* fs = self;
  fs_call_t call = fs->ops.create_dir ? fs->ops.create_dir : fs->ops.recursively_create_dir;
  return call_on(fs, call, path, "CreateDir");
}

static rn_status_t fs_remove_directory(void* self, const char* path) {
  rn_plugin_fs_t* fs = self;
  return call_on(fs, fs->ops.delete_dir, path, "DeleteDir");
}

// Plug-ins have no such function: their names are safe when they return.
static rn_status_t fs_sync_directory(void* self, const char* path) {
  (void)self, (void)path;
  return RN_OK;
}

static rn_status_t fs_rename(void* self, const char* from, const char* to) {
  rn_plugin_fs_t* fs = self;
  if (!fs->ops.rename_file) return unsupported(from, "RenameFile");
  rn_strbuf_t a, b;
  rn_status_t status = translate(fs, from, &a);
  status = rn_status_join(status, translate(fs, to, &b));
  if (rn_ok(status)) status = RN_PLUGIN_CALL(fs->ops.rename_file, &fs->filesystem, a.data, b.data);
  rn_strbuf_clear(&a);
  rn_strbuf_clear(&b);
  return status;
}

// Adds the |count| names of the plug-in's array, and frees it.
static rn_status_t take_names(rn_plugin_fs_t* fs, char** entries, int count, rn_names_t* names) {
  rn_status_t status = RN_OK;
  for (int i = 0; i < count; ++i) {
    rn_str_t name = rn_str(entries[i]);
    // Some plug-ins mark directories.
    if (name.size > 1 && name.data[name.size - 1] == '/') --name.size;
    if (rn_ok(status) && name.size) status = rn_names_add(names, name);
    fs->memory_free(entries[i]);
  }
  if (entries) fs->memory_free(entries);
  return status;
}

static rn_status_t fs_list(void* self, const char* path, rn_names_t* names) {
  rn_plugin_fs_t* fs = self;
  if (!fs->ops.get_children) return unsupported(path, "GetChildren");
  rn_strbuf_t name;
  rn_status_t outcome = translate(fs, path, &name);
  if (rn_ok(outcome)) {
    TF_Status status = {RN_OK};
    char** entries = NULL;
    int count = fs->ops.get_children(&fs->filesystem, name.data, &entries, &status);
    outcome = status.rep;
    if (count > 0 && entries)
      outcome = rn_status_join(outcome, take_names(fs, entries, count, names));
  }
  rn_strbuf_clear(&name);
  return outcome;
}

const rn_fs_t rn_plugin_fs_functions = {.open = fs_open,
                                        .stat = fs_stat,
                                        .remove = fs_remove,
                                        .rename = fs_rename,
                                        .make_directory = fs_make_directory,
                                        .remove_directory = fs_remove_directory,
                                        .sync_directory = fs_sync_directory,
                                        .list = fs_list};
