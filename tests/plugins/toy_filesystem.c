// A file-system plug-in: files in memory under "toyfs://", and "toybare://" with the same files and
// few functions. TOYFS_FAULT makes it a bad plug-in.
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Stock's header is C++.
#define constexpr static const
#include "tensorflow/c/c_api_macros.h"
#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"

static bool fault(const char* name) {
  const char* wanted = getenv("TOYFS_FAULT");
  return wanted && strcmp(wanted, name) == 0;
}

// --- What is stored

#define MAX_ENTRIES 256

typedef struct entry_t {
  char path[200];  // "/a/b"; "" if the entry is free
  bool is_directory;
  char* data;
  size_t size;
  int users;  // open files
} entry_t;

static struct {
  pthread_mutex_t mutex;
  entry_t items[MAX_ENTRIES];
} store = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool is_root(const char* path) { return strcmp(path, "/") == 0; }

static entry_t* find(const char* path) {
  for (int i = 0; i < MAX_ENTRIES; ++i)
    if (store.items[i].path[0] && strcmp(store.items[i].path, path) == 0) return &store.items[i];
  return NULL;
}

static entry_t* add(const char* path, bool is_directory) {
  for (int i = 0; i < MAX_ENTRIES; ++i) {
    entry_t* entry = &store.items[i];
    if (entry->path[0] || entry->users) continue;
    *entry = (entry_t){.is_directory = is_directory};
    snprintf(entry->path, sizeof entry->path, "%s", path);
    return entry;
  }
  return NULL;
}

static void drop(entry_t* entry) {
  free(entry->data);
  *entry = (entry_t){.users = entry->users};
}

static bool has_parent(const char* path) {
  char parent[200];
  snprintf(parent, sizeof parent, "%s", path);
  char* slash = strrchr(parent, '/');
  if (slash) *slash = 0;
  if (!parent[0]) return true;
  entry_t* entry = find(parent);
  return entry && entry->is_directory;
}

static void fail(TF_Status* status, TF_Code code, const char* path, const char* what) {
  char message[300];
  snprintf(message, sizeof message, "%s %s", path, what);
  TF_SetStatus(status, code, message);
}
static void ok(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

#define LOCK pthread_mutex_lock(&store.mutex)
#define UNLOCK pthread_mutex_unlock(&store.mutex)

// --- Open files: the plug-in's object is the entry

static void read_cleanup(TF_RandomAccessFile* file) {
  LOCK;
  ((entry_t*)file->plugin_file)->users--;
  UNLOCK;
}
static int64_t read_file(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                         TF_Status* status) {
  const entry_t* entry = file->plugin_file;
  LOCK;
  size_t left = offset < entry->size ? entry->size - offset : 0, size = n < left ? n : left;
  if (size) memcpy(buffer, entry->data + offset, size);
  if (size < n)
    TF_SetStatus(status, TF_OUT_OF_RANGE, "the end");
  else
    ok(status);
  UNLOCK;
  return (int64_t)size;
}
static void write_cleanup(TF_WritableFile* file) {
  LOCK;
  ((entry_t*)file->plugin_file)->users--;
  UNLOCK;
}
static void append(const TF_WritableFile* file, const char* buffer, size_t n, TF_Status* status) {
  entry_t* entry = file->plugin_file;
  LOCK;
  if (fault("full")) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "the toy disk is full");
  } else {
    entry->data = realloc(entry->data, entry->size + n + 1);
    memcpy(entry->data + entry->size, buffer, n);
    entry->size += n;
    ok(status);
  }
  UNLOCK;
}
static int64_t tell(const TF_WritableFile* file, TF_Status* status) {
  ok(status);
  return (int64_t)((entry_t*)file->plugin_file)->size;
}
static void succeed(const TF_WritableFile* file, TF_Status* status) {
  (void)file;
  ok(status);
}

// --- The file system

static void init(TF_Filesystem* fs, TF_Status* status) {
  fs->plugin_filesystem = NULL;
  if (fault("init"))
    TF_SetStatus(status, TF_UNAVAILABLE, "no disk");
  else
    ok(status);
}
static void cleanup(TF_Filesystem* fs) { (void)fs; }

// "toyfs://disk/a/b" is "/a/b".
static char* translate(const TF_Filesystem* fs, const char* uri) {
  (void)fs;
  const char* rest = strstr(uri, "://");
  rest = rest ? strchr(rest + 3, '/') : uri;
  char* name = strdup(rest && *rest ? rest : "/");
  size_t size = strlen(name);
  while (size > 1 && name[size - 1] == '/') name[--size] = 0;
  return name;
}

static void new_reader(const TF_Filesystem* fs, const char* path, TF_RandomAccessFile* file,
                       TF_Status* status) {
  (void)fs;
  LOCK;
  entry_t* entry = find(path);
  if (!entry)
    fail(status, TF_NOT_FOUND, path, "is not in the toy box");
  else if (entry->is_directory)
    fail(status, TF_FAILED_PRECONDITION, path, "is a directory");
  else
    ok(status);
  if (entry && !entry->is_directory) {
    entry->users++;
    file->plugin_file = entry;
  }
  UNLOCK;
}

static void open_writer(const char* path, TF_WritableFile* file, bool keeps, TF_Status* status) {
  LOCK;
  entry_t* entry = find(path);
  if (!has_parent(path)) {
    fail(status, TF_NOT_FOUND, path, "has no directory");
  } else if (entry && entry->is_directory) {
    fail(status, TF_FAILED_PRECONDITION, path, "is a directory");
  } else {
    if (!entry) entry = add(path, false);
    if (!keeps) entry->size = 0;
    entry->users++;
    file->plugin_file = entry;
    ok(status);
  }
  UNLOCK;
}
static void new_writer(const TF_Filesystem* fs, const char* path, TF_WritableFile* file,
                       TF_Status* status) {
  (void)fs;
  open_writer(path, file, false, status);
}
static void new_appender(const TF_Filesystem* fs, const char* path, TF_WritableFile* file,
                         TF_Status* status) {
  (void)fs;
  open_writer(path, file, true, status);
}

static void create_dir(const TF_Filesystem* fs, const char* path, TF_Status* status) {
  (void)fs;
  LOCK;
  if (is_root(path) || find(path))
    fail(status, TF_ALREADY_EXISTS, path, "exists");
  else if (!has_parent(path))
    fail(status, TF_NOT_FOUND, path, "has no directory");
  else
    ok(status), add(path, true);
  UNLOCK;
}
static void delete_file(const TF_Filesystem* fs, const char* path, TF_Status* status) {
  (void)fs;
  LOCK;
  entry_t* entry = find(path);
  if (!entry)
    fail(status, TF_NOT_FOUND, path, "is not in the toy box");
  else if (entry->is_directory)
    fail(status, TF_FAILED_PRECONDITION, path, "is a directory");
  else
    ok(status), drop(entry);
  UNLOCK;
}
// The name in directory |path| of |entry|; NULL if it is not directly in there.
static const char* name_in(const entry_t* entry, const char* path) {
  size_t size = is_root(path) ? 0 : strlen(path);
  if (!entry->path[0] || strncmp(entry->path, path, size) != 0 || entry->path[size] != '/')
    return NULL;
  const char* name = entry->path + size + 1;
  return strchr(name, '/') ? NULL : name;
}
static void delete_dir(const TF_Filesystem* fs, const char* path, TF_Status* status) {
  (void)fs;
  LOCK;
  entry_t* entry = find(path);
  bool is_empty = true;
  for (int i = 0; i < MAX_ENTRIES; ++i) is_empty &= !name_in(&store.items[i], path);
  if (!entry || !entry->is_directory)
    fail(status, TF_NOT_FOUND, path, "is no directory");
  else if (!is_empty)
    fail(status, TF_FAILED_PRECONDITION, path, "is not empty");
  else
    ok(status), drop(entry);
  UNLOCK;
}
static void rename_file(const TF_Filesystem* fs, const char* from, const char* to,
                        TF_Status* status) {
  (void)fs;
  LOCK;
  entry_t *entry = find(from), *old = find(to);
  if (!entry) {
    fail(status, TF_NOT_FOUND, from, "is not in the toy box");
  } else {
    if (old) drop(old);
    snprintf(entry->path, sizeof entry->path, "%s", to);
    ok(status);
  }
  UNLOCK;
}
static void path_exists(const TF_Filesystem* fs, const char* path, TF_Status* status) {
  (void)fs;
  LOCK;
  if (is_root(path) || find(path))
    ok(status);
  else
    fail(status, TF_NOT_FOUND, path, "is not in the toy box");
  UNLOCK;
}
static void stat_path(const TF_Filesystem* fs, const char* path, TF_FileStatistics* out,
                      TF_Status* status) {
  (void)fs;
  LOCK;
  const entry_t* entry = find(path);
  if (entry || is_root(path)) {
    out->length = entry ? (int64_t)entry->size : 0;
    out->mtime_nsec = 1234567890;
    out->is_directory = !entry || entry->is_directory;
    ok(status);
  } else {
    fail(status, TF_NOT_FOUND, path, "is not in the toy box");
  }
  UNLOCK;
}
static bool is_directory(const TF_Filesystem* fs, const char* path, TF_Status* status) {
  TF_FileStatistics found = {0};
  stat_path(fs, path, &found, status);
  if (TF_GetCode(status) == TF_OK && !found.is_directory)
    fail(status, TF_FAILED_PRECONDITION, path, "is no directory");
  return found.is_directory;
}
static int64_t file_size(const TF_Filesystem* fs, const char* path, TF_Status* status) {
  TF_FileStatistics found = {0};
  stat_path(fs, path, &found, status);
  return found.length;
}
static int children(const TF_Filesystem* fs, const char* path, char*** out, TF_Status* status) {
  int count = 0;
  if (!is_directory(fs, path, status)) return -1;
  *out = malloc(MAX_ENTRIES * sizeof **out);
  LOCK;
  for (int i = 0; i < MAX_ENTRIES; ++i) {
    const char* name = name_in(&store.items[i], path);
    if (name) (*out)[count++] = strdup(name);
  }
  UNLOCK;
  ok(status);
  return count;
}

// --- Registration

static void* new_table(size_t size) { return calloc(1, size); }

static void fill_common(TF_FilesystemPluginOps* ops, const char* scheme) {
  TF_SetFilesystemVersionMetadata(ops);
  ops->scheme = fault("scheme") ? NULL : strdup(scheme);
  if (fault("abi")) ops->filesystem_ops_abi = 7;
  if (fault("writable_abi")) ops->writable_file_ops_abi = 3;
  ops->filesystem_ops = fault("ops") ? NULL : new_table(TF_FILESYSTEM_OPS_SIZE);
  if (!fault("no_reader")) {
    ops->random_access_file_ops = new_table(TF_RANDOM_ACCESS_FILE_OPS_SIZE);
    ops->random_access_file_ops->cleanup = fault("read_cleanup") ? NULL : read_cleanup;
    ops->random_access_file_ops->read = read_file;
  }
  ops->writable_file_ops = new_table(TF_WRITABLE_FILE_OPS_SIZE);
  *ops->writable_file_ops = (TF_WritableFileOps){
      fault("write_cleanup") ? NULL : write_cleanup, append, tell, succeed, succeed, succeed};
  if (!ops->filesystem_ops) return;
  ops->filesystem_ops->init = fault("no_init") ? NULL : init;
  ops->filesystem_ops->cleanup = fault("no_cleanup") ? NULL : cleanup;
  ops->filesystem_ops->new_random_access_file = new_reader;
  ops->filesystem_ops->new_writable_file = new_writer;
  ops->filesystem_ops->path_exists = path_exists;
  ops->filesystem_ops->get_file_size = file_size;
}

static void fill_full(TF_FilesystemPluginOps* ops) {
  fill_common(ops, "toyfs");
  TF_FilesystemOps* fs = ops->filesystem_ops;
  if (!fs) return;
  fs->new_appendable_file = new_appender;
  fs->create_dir = create_dir;
  fs->delete_file = delete_file;
  fs->delete_dir = delete_dir;
  fs->rename_file = rename_file;
  fs->stat = stat_path;
  fs->is_directory = is_directory;
  fs->translate_name = translate;
  fs->get_children = children;
}

void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = fault("memory_allocate") ? NULL : new_table;
  info->plugin_memory_free = fault("memory_free") ? NULL : free;
  info->num_schemes = 2;
  info->ops = new_table(2 * sizeof *info->ops);
  fill_full(&info->ops[0]);
  fill_common(&info->ops[1], "toybare");
}
