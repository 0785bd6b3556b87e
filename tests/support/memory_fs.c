// Files and names, each in its current and in its synced state. See memory_fs.h.
#include "memory_fs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/sync.h"

// A file's bytes or a directory. Lives until the file system goes.
typedef struct inode_t {
  struct inode_t* next;
  bool is_directory;
  char* data;  // Owned, by malloc
  size_t size;
  char* durable;  // Owned, by malloc
  size_t durable_size;
} inode_t;

typedef struct name_t {
  char* path;  // Owned, by malloc; without a / at its end
  inode_t* now;
  inode_t* durable;
} name_t;

struct rn_memory_fs_t {
  rn_allocator_t allocator;
  rn_mutex_t mutex;
  inode_t* inodes;
  RN_VEC(name_t) names;
  int64_t calls, fail_first, fail_count, limit, epoch;
  int error;
};

typedef struct memory_file_t {
  rn_file_t file;  // first
  rn_memory_fs_t* fs;
  inode_t* inode;
  size_t at;
  int64_t epoch;
  rn_open_mode_t mode;
  char* path;  // Owned, by malloc
} memory_file_t;

static void* must(void* p) {
  if (!p) abort();
  return p;
}

static char* clean(const char* path) {
  char* copy = must(strdup(path));
  size_t size = strlen(copy);
  while (size > 1 && copy[size - 1] == '/') copy[--size] = 0;
  return copy;
}

static name_t* find_locked(rn_memory_fs_t* fs, const char* path) {
  char* wanted = clean(path);
  name_t* found = NULL;
  for (size_t i = 0; i < fs->names.count && !found; ++i)
    if (strcmp(fs->names.items[i].path, wanted) == 0) found = &fs->names.items[i];
  free(wanted);
  return found;
}

static name_t* name_locked(rn_memory_fs_t* fs, const char* path) {
  name_t* found = find_locked(fs, path);
  if (found) return found;
  rn_status_t status = rn_vec_push(&fs->names, fs->allocator, (name_t){.path = clean(path)});
  if (!rn_ok(status)) abort();
  return &fs->names.items[fs->names.count - 1];
}

static inode_t* inode_locked(rn_memory_fs_t* fs, bool is_directory) {
  inode_t* inode = must(calloc(1, sizeof *inode));
  inode->is_directory = is_directory;
  inode->next = fs->inodes;
  fs->inodes = inode;
  return inode;
}

static bool is_within(const char* path, const char* directory) {
  rn_str_t parent = rn_path_directory(rn_str(path));
  char* wanted = clean(directory);
  bool same = rn_str_is(parent, wanted) && strcmp(path, wanted) != 0;
  free(wanted);
  return same;
}

// Counts the call; the errno that it fails with, or 0.
static int count_locked(rn_memory_fs_t* fs) {
  int64_t call = ++fs->calls;
  return fs->fail_first && call >= fs->fail_first && call - fs->fail_first < fs->fail_count
             ? fs->error
             : 0;
}

static rn_status_t end_locked(rn_memory_fs_t* fs, const char* path, int error) {
  rn_mutex_unlock(&fs->mutex);
  return error ? rn_status_of_errno(path, error) : RN_OK;
}

// The errno of a directory that |path| should be in.
static int parent_error_locked(rn_memory_fs_t* fs, const char* path) {
  rn_str_t parent = rn_path_directory(rn_str(path));
  char* copy = must(strndup(parent.data, parent.size));
  name_t* found = find_locked(fs, copy);
  free(copy);
  if (!found || !found->now) return ENOENT;
  return found->now->is_directory ? 0 : ENOTDIR;
}

static int begin_file_locked(memory_file_t* file) {
  int error = count_locked(file->fs);
  return error ? error : file->epoch != file->fs->epoch ? EIO : 0;
}

static rn_status_t file_read_at(rn_file_t* base, uint64_t offset, void* out, size_t size,
                                size_t* out_size) {
  memory_file_t* file = (memory_file_t*)base;
  rn_mutex_lock(&file->fs->mutex);
  int error = begin_file_locked(file);
  if (!error && file->inode->is_directory) error = EISDIR;
  if (!error && file->mode != RN_OPEN_READ) error = EBADF;
  *out_size = 0;
  if (!error && offset < file->inode->size) {
    size_t left = file->inode->size - (size_t)offset;
    *out_size = size < left ? size : left;
    memcpy(out, file->inode->data + offset, *out_size);
  }
  return end_locked(file->fs, file->path, error);
}

static rn_status_t file_read(rn_file_t* base, void* out, size_t size, size_t* out_size) {
  memory_file_t* file = (memory_file_t*)base;
  rn_status_t status = file_read_at(base, file->at, out, size, out_size);
  file->at += *out_size;
  return status;
}

static int64_t used_locked(const rn_memory_fs_t* fs) {
  int64_t total = 0;
  for (const inode_t* inode = fs->inodes; inode; inode = inode->next) {
    bool is_named = false;
    for (size_t i = 0; i < fs->names.count; ++i) is_named |= fs->names.items[i].now == inode;
    if (is_named) total += (int64_t)inode->size;
  }
  return total;
}

static rn_status_t file_append(rn_file_t* base, rn_str_t data) {
  memory_file_t* file = (memory_file_t*)base;
  rn_memory_fs_t* fs = file->fs;
  rn_mutex_lock(&fs->mutex);
  int error = begin_file_locked(file);
  if (file->mode == RN_OPEN_READ) error = EBADF;
  size_t taken = error == 0 ? data.size : file->epoch == fs->epoch ? data.size / 2 : 0;
  int64_t room = fs->limit - used_locked(fs);
  if (room < (int64_t)taken) {
    taken = room < 0 ? 0 : (size_t)room;
    if (!error) error = ENOSPC;
  }
  inode_t* inode = file->inode;
  if (taken && error != EBADF) {
    inode->data = must(realloc(inode->data, inode->size + taken));
    memcpy(inode->data + inode->size, data.data, taken);
    inode->size += taken;
  }
  return end_locked(fs, file->path, error);
}

static void make_durable(inode_t* inode, size_t size) {
  inode->durable = must(realloc(inode->durable, size + 1));
  if (size) memcpy(inode->durable, inode->data, size);
  inode->durable_size = size;
}

static rn_status_t file_sync(rn_file_t* base) {
  memory_file_t* file = (memory_file_t*)base;
  rn_mutex_lock(&file->fs->mutex);
  int error = begin_file_locked(file);
  if (!error) make_durable(file->inode, file->inode->size);
  return end_locked(file->fs, file->path, error);
}

static rn_status_t file_truncate(rn_file_t* base, int64_t size) {
  memory_file_t* file = (memory_file_t*)base;
  rn_mutex_lock(&file->fs->mutex);
  int error = begin_file_locked(file);
  inode_t* inode = file->inode;
  if (!error && (size < 0 || file->mode == RN_OPEN_READ)) error = EINVAL;
  if (!error) {
    inode->data = must(realloc(inode->data, (size_t)size + 1));
    if ((size_t)size > inode->size)
      memset(inode->data + inode->size, 0, (size_t)size - inode->size);
    inode->size = (size_t)size;
  }
  return end_locked(file->fs, file->path, error);
}

static rn_status_t file_stat(rn_file_t* base, rn_file_stat_t* out) {
  memory_file_t* file = (memory_file_t*)base;
  rn_mutex_lock(&file->fs->mutex);
  int error = begin_file_locked(file);
  *out = (rn_file_stat_t){(int64_t)file->inode->size, 0, file->inode->is_directory};
  return end_locked(file->fs, file->path, error);
}

static rn_status_t file_close(rn_file_t* base) {
  memory_file_t* file = (memory_file_t*)base;
  free(file->path);
  RN_FREE(file->fs->allocator, file);
  return RN_OK;
}

static const rn_file_vtable_t memory_file = {file_read,     file_read_at, file_append, file_sync,
                                             file_truncate, file_stat,    file_close};

static rn_status_t memory_open(void* self, const char* path, rn_open_mode_t mode,
                               rn_allocator_t allocator, rn_file_t** out_file) {
  (void)allocator;
  rn_memory_fs_t* fs = self;
  *out_file = NULL;
  memory_file_t* file = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(fs->allocator, &file));
  rn_mutex_lock(&fs->mutex);
  int error = count_locked(fs);
  if (!error) error = parent_error_locked(fs, path);
  name_t* name = find_locked(fs, path);
  inode_t* inode = name ? name->now : NULL;
  if (!error && !inode && mode == RN_OPEN_READ) error = ENOENT;
  if (!error && inode && inode->is_directory && mode != RN_OPEN_READ) error = EISDIR;
  if (!error && !inode) inode = name_locked(fs, path)->now = inode_locked(fs, false);
  if (!error && (mode == RN_OPEN_WRITE || mode == RN_OPEN_TEMPORARY)) inode->size = 0;
  if (error) {
    RN_FREE(fs->allocator, file);
  } else {
    *file = (memory_file_t){{&memory_file}, fs, inode, 0, fs->epoch, mode, must(strdup(path))};
    *out_file = &file->file;
  }
  return end_locked(fs, path, error);
}

static rn_status_t memory_stat(void* self, const char* path, rn_file_stat_t* out) {
  rn_memory_fs_t* fs = self;
  rn_mutex_lock(&fs->mutex);
  int error = count_locked(fs);
  name_t* name = find_locked(fs, path);
  if (!error && (!name || !name->now)) error = ENOENT;
  if (!error) *out = (rn_file_stat_t){(int64_t)name->now->size, 0, name->now->is_directory};
  return end_locked(fs, path, error);
}

static rn_status_t memory_remove(void* self, const char* path) {
  rn_memory_fs_t* fs = self;
  rn_mutex_lock(&fs->mutex);
  int error = count_locked(fs);
  name_t* name = find_locked(fs, path);
  if (!error && (!name || !name->now)) error = ENOENT;
  if (!error && name->now->is_directory) error = EISDIR;
  if (!error) name->now = NULL;
  return end_locked(fs, path, error);
}

static rn_status_t memory_rename(void* self, const char* from, const char* to) {
  rn_memory_fs_t* fs = self;
  rn_mutex_lock(&fs->mutex);
  int error = count_locked(fs);
  if (!error) error = parent_error_locked(fs, to);
  name_t* target = error ? NULL : name_locked(fs, to);
  name_t* source = find_locked(fs, from);
  if (!error && (!source || !source->now)) error = ENOENT;
  // Directories are not moved by anything that is tested with this.
  if (!error && source->now->is_directory) error = ENOTSUP;
  if (!error && target->now && target->now->is_directory) error = EISDIR;
  if (!error && source != target) {
    target->now = source->now;
    source->now = NULL;
  }
  return end_locked(fs, from, error);
}

static rn_status_t memory_make_directory(void* self, const char* path) {
  rn_memory_fs_t* fs = self;
  rn_mutex_lock(&fs->mutex);
  int error = count_locked(fs);
  if (!error) error = parent_error_locked(fs, path);
  name_t* name = error ? NULL : name_locked(fs, path);
  if (!error && name->now) error = EEXIST;
  if (!error) name->now = inode_locked(fs, true);
  return end_locked(fs, path, error);
}

static bool is_empty_locked(const rn_memory_fs_t* fs, const char* path) {
  for (size_t i = 0; i < fs->names.count; ++i)
    if (fs->names.items[i].now && is_within(fs->names.items[i].path, path)) return false;
  return true;
}

static rn_status_t memory_remove_directory(void* self, const char* path) {
  rn_memory_fs_t* fs = self;
  rn_mutex_lock(&fs->mutex);
  int error = count_locked(fs);
  name_t* name = find_locked(fs, path);
  if (!error && (!name || !name->now)) error = ENOENT;
  if (!error && !name->now->is_directory) error = ENOTDIR;
  if (!error && !is_empty_locked(fs, path)) error = ENOTEMPTY;
  if (!error) name->now = NULL;
  return end_locked(fs, path, error);
}

static rn_status_t memory_sync_directory(void* self, const char* path) {
  rn_memory_fs_t* fs = self;
  rn_mutex_lock(&fs->mutex);
  int error = count_locked(fs);
  name_t* name = find_locked(fs, path);
  if (!error && (!name || !name->now)) error = ENOENT;
  for (size_t i = 0; !error && i < fs->names.count; ++i)
    if (is_within(fs->names.items[i].path, path))
      fs->names.items[i].durable = fs->names.items[i].now;
  return end_locked(fs, path, error);
}

static rn_status_t memory_list(void* self, const char* path, rn_names_t* names) {
  rn_memory_fs_t* fs = self;
  rn_mutex_lock(&fs->mutex);
  int error = count_locked(fs);
  name_t* name = find_locked(fs, path);
  if (!error && (!name || !name->now)) error = ENOENT;
  if (!error && !name->now->is_directory) error = ENOTDIR;
  rn_status_t status = RN_OK;
  for (size_t i = 0; !error && rn_ok(status) && i < fs->names.count; ++i) {
    const char* at = fs->names.items[i].path;
    if (!fs->names.items[i].now || !is_within(at, path)) continue;
    const char* slash = strrchr(at, '/');
    status = rn_names_add(names, rn_str(slash ? slash + 1 : at));
  }
  return rn_status_join(end_locked(fs, path, error), status);
}

static const rn_fs_t memory_fs = {
    .open = memory_open,
    .stat = memory_stat,
    .remove = memory_remove,
    .rename = memory_rename,
    .make_directory = memory_make_directory,
    .remove_directory = memory_remove_directory,
    .sync_directory = memory_sync_directory,
    .list = memory_list,
};

rn_status_t rn_memory_fs_create(rn_allocator_t allocator, rn_memory_fs_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(allocator, out));
  rn_memory_fs_t* fs = *out;
  fs->allocator = allocator;
  fs->limit = INT64_MAX;
  rn_mutex_init(&fs->mutex);
  static const char* const roots[] = {"/", "."};
  for (int i = 0; i < 2; ++i) {
    name_t* root = name_locked(fs, roots[i]);
    root->now = root->durable = inode_locked(fs, true);
  }
  return RN_OK;
}

void rn_memory_fs_destroy(rn_memory_fs_t* fs) {
  if (!fs) return;
  while (fs->inodes) {
    inode_t* inode = fs->inodes;
    fs->inodes = inode->next;
    free(inode->data);
    free(inode->durable);
    free(inode);
  }
  for (size_t i = 0; i < fs->names.count; ++i) free(fs->names.items[i].path);
  rn_vec_free(&fs->names, fs->allocator);
  rn_mutex_destroy(&fs->mutex);
  RN_FREE(fs->allocator, fs);
}

void rn_memory_fs_install(rn_memory_fs_t* fs, rn_env_t* env) {
  env->fs = &memory_fs;
  env->fs_self = fs;
}

int64_t rn_memory_fs_calls(const rn_memory_fs_t* fs) {
  rn_memory_fs_t* all = (rn_memory_fs_t*)fs;
  rn_mutex_lock(&all->mutex);
  int64_t calls = fs->calls;
  rn_mutex_unlock(&all->mutex);
  return calls;
}

void rn_memory_fs_fail(rn_memory_fs_t* fs, int64_t first, int64_t count, int error) {
  rn_mutex_lock(&fs->mutex);
  fs->fail_first = first ? fs->calls + first : 0;
  fs->fail_count = count;
  fs->error = error;
  rn_mutex_unlock(&fs->mutex);
}

void rn_memory_fs_limit(rn_memory_fs_t* fs, int64_t bytes) {
  rn_mutex_lock(&fs->mutex);
  fs->limit = bytes;
  rn_mutex_unlock(&fs->mutex);
}

static void crash_locked(rn_memory_fs_t* fs, int64_t torn) {
  fs->epoch++;
  fs->fail_first = 0;
  for (inode_t* inode = fs->inodes; inode; inode = inode->next) {
    size_t keep = inode->durable_size;
    bool is_longer = inode->size > keep && torn > 0 &&
                     (keep == 0 || memcmp(inode->data, inode->durable, keep) == 0);
    if (is_longer) {
      size_t extra = inode->size - keep;
      keep += extra < (size_t)torn ? extra : (size_t)torn;
      make_durable(inode, keep);
    }
    inode->data = must(realloc(inode->data, keep + 1));
    if (keep) memcpy(inode->data, inode->durable, keep);
    inode->size = keep;
  }
  for (size_t i = 0; i < fs->names.count; ++i) fs->names.items[i].now = fs->names.items[i].durable;
}

void rn_memory_fs_crash(rn_memory_fs_t* fs, int64_t torn) {
  rn_mutex_lock(&fs->mutex);
  crash_locked(fs, torn);
  rn_mutex_unlock(&fs->mutex);
}
