// Which file system a path belongs to: that of the operating system, or one that was registered for
// the scheme of the path. See fs.h.
#include "base/fs.h"

#include <stdatomic.h>

#include "base/sync.h"

#define MAX_SCHEMES 32

typedef struct scheme_t {
  const char* name;
  const rn_fs_t* fs;
  void* self;
} scheme_t;

// One per process, like the plug-ins that fill it. Readers take no lock: an entry is written before
// |count| grows, and stays.
static struct {
  rn_mutex_t mutex;
  scheme_t items[MAX_SCHEMES];
  _Atomic int count;
} schemes = {.mutex = RN_MUTEX_INIT};

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

rn_str_t rn_path_scheme(rn_str_t path) {
  size_t i = 0;
  while (i < path.size &&
         (is_letter(path.data[i]) ||
          (i && ((path.data[i] >= '0' && path.data[i] <= '9') || path.data[i] == '.'))))
    ++i;
  bool is_scheme = i && path.size - i >= 3 && memcmp(path.data + i, "://", 3) == 0;
  return rn_str_n(path.data, is_scheme ? i : 0);
}

size_t rn_path_root(rn_str_t path) {
  size_t scheme = rn_path_scheme(path).size;
  size_t end = scheme ? scheme + 3 : 0;
  while (scheme && end < path.size && path.data[end] != '/') ++end;
  return end;
}

static const scheme_t* find_scheme(rn_str_t name) {
  int count = atomic_load_explicit(&schemes.count, memory_order_acquire);
  for (int i = 0; i < count; ++i)
    if (rn_str_is(name, schemes.items[i].name)) return &schemes.items[i];
  return NULL;
}

rn_status_t rn_fs_register(const char* scheme, const rn_fs_t* fs, void* self) {
  rn_mutex_lock(&schemes.mutex);
  rn_status_t status = RN_OK;
  int count = atomic_load_explicit(&schemes.count, memory_order_relaxed);
  if (!*scheme || strcmp(scheme, "file") == 0 || find_scheme(rn_str(scheme)))
    status = rn_already_exists("File system for %s already registered", scheme);
  else if (count == MAX_SCHEMES)
    status = rn_resource_exhausted("There are %d file systems already", MAX_SCHEMES);
  if (rn_ok(status)) {
    schemes.items[count] = (scheme_t){scheme, fs, self};
    atomic_store_explicit(&schemes.count, count + 1, memory_order_release);
  }
  rn_mutex_unlock(&schemes.mutex);
  return status;
}

// A path on its file system.
typedef struct place_t {
  const rn_fs_t* fs;
  void* self;
  const char* path;
} place_t;

static rn_status_t find_place(const char* path, place_t* out) {
  *out = (place_t){.fs = &rn_fs_local, .path = path};
  rn_str_t scheme = rn_path_scheme(rn_str(path));
  if (!scheme.size) return RN_OK;
  if (rn_str_is(scheme, "file")) {
    out->path = path + scheme.size + 3;
    return RN_OK;
  }
  const scheme_t* found = find_scheme(scheme);
  if (!found)
    return rn_unimplemented("File system scheme '%.*s' not implemented (file: '%s')",
                            RN_STR_ARGS(scheme), path);
  *out = (place_t){found->fs, found->self, path};
  return RN_OK;
}

static rn_status_t any_open(void* self, const char* path, rn_open_mode_t mode,
                            rn_allocator_t allocator, rn_file_t** out_file) {
  (void)self;
  *out_file = NULL;
  place_t at;
  RN_RETURN_IF_ERROR(find_place(path, &at));
  return at.fs->open(at.self, at.path, mode, allocator, out_file);
}

static rn_status_t any_stat(void* self, const char* path, rn_file_stat_t* out) {
  (void)self;
  place_t at;
  RN_RETURN_IF_ERROR(find_place(path, &at));
  return at.fs->stat(at.self, at.path, out);
}

static rn_status_t any_rename(void* self, const char* from, const char* to) {
  (void)self;
  place_t a, b;
  RN_RETURN_IF_ERROR(find_place(from, &a));
  RN_RETURN_IF_ERROR(find_place(to, &b));
  if (a.fs != b.fs || a.self != b.self)
    return rn_unimplemented("Renaming %s to %s not implemented", from, to);
  return a.fs->rename(a.self, a.path, b.path);
}

static rn_status_t any_list(void* self, const char* path, rn_names_t* names) {
  (void)self;
  place_t at;
  RN_RETURN_IF_ERROR(find_place(path, &at));
  return at.fs->list(at.self, at.path, names);
}

static rn_status_t any_is_in_use(void* self, const char* path, bool* out) {
  (void)self;
  place_t at;
  RN_RETURN_IF_ERROR(find_place(path, &at));
  if (!at.fs->is_in_use) return rn_unimplemented("%s; it is unknown who uses it", path);
  return at.fs->is_in_use(at.self, at.path, out);
}

#define ON_PATH(name)                                           \
  static rn_status_t any_##name(void* self, const char* path) { \
    (void)self;                                                 \
    place_t at;                                                 \
    RN_RETURN_IF_ERROR(find_place(path, &at));                  \
    return at.fs->name(at.self, at.path);                       \
  }
ON_PATH(remove)
ON_PATH(make_directory)
ON_PATH(remove_directory)
ON_PATH(sync_directory)
#undef ON_PATH

const rn_fs_t rn_fs_system = {
    .open = any_open,
    .stat = any_stat,
    .remove = any_remove,
    .rename = any_rename,
    .make_directory = any_make_directory,
    .remove_directory = any_remove_directory,
    .sync_directory = any_sync_directory,
    .list = any_list,
    .is_in_use = any_is_in_use,
};
