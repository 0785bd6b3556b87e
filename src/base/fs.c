// Whole files, directory trees and patterns, built on the vtable of files. See fs.h.
#include "base/fs.h"

#include <fnmatch.h>
#include <stdlib.h>

void rn_names_init(rn_names_t* names, rn_allocator_t allocator) {
  *names = (rn_names_t){0};
  rn_arena_init(&names->arena, allocator);
}

void rn_names_clear(rn_names_t* names) {
  rn_vec_free(&names->list, names->arena.allocator);
  rn_arena_clear(&names->arena);
}

rn_status_t rn_names_add(rn_names_t* names, rn_str_t name) {
  rn_str_t copy;
  RN_RETURN_IF_ERROR(rn_arena_str(&names->arena, name, &copy));
  return rn_vec_push(&names->list, names->arena.allocator, copy);
}

static int compare_names(const void* a, const void* b) {
  return rn_str_compare(*(const rn_str_t*)a, *(const rn_str_t*)b);
}

static void sort_from(rn_names_t* names, size_t first) {
  if (names->list.count > first)
    qsort(names->list.items + first, names->list.count - first, sizeof *names->list.items,
          compare_names);
}

void rn_names_sort(rn_names_t* names) { sort_from(names, 0); }

rn_str_t rn_path_directory(rn_str_t path) {
  size_t end = path.size, root = rn_path_root(path);
  while (end > root && path.data[end - 1] != '/') --end;
  if (end == 0) return RN_STR(".");
  while (end > root + 1 && path.data[end - 1] == '/') --end;
  return rn_str_n(path.data, end);
}

bool rn_path_to_parent(rn_str_t* inout_path) {
  rn_str_t parent = rn_path_directory(*inout_path);
  // The directory of "/" is "/"; that of "a" is ".", which is no part of it.
  if (parent.size >= inout_path->size || parent.data != inout_path->data) return false;
  *inout_path = parent;
  return true;
}

void rn_path_append_clean(rn_strbuf_t* out, rn_str_t path) {
  while (path.size) {
    rn_str_t part = rn_str_split(&path, '/');
    if (!part.size || rn_str_is(part, ".")) continue;
    if (rn_str_is(part, "..")) {
      while (out->size && out->data[--out->size] != '/') continue;
      if (out->data) out->data[out->size] = 0;
      continue;
    }
    rn_strbuf_append(out, RN_STR("/"));
    rn_strbuf_append(out, part);
  }
}

rn_status_t rn_fs_find(const rn_env_t* env, const char* path, bool* out_exists) {
  rn_file_stat_t found;
  rn_status_t status = env->fs->stat(env->fs_self, path, &found);
  rn_code_t code = rn_status_code(status);
  *out_exists = rn_ok(status);
  // A path below something that is not a directory does not exist either.
  if (code != RN_CODE_NOT_FOUND && code != RN_CODE_FAILED_PRECONDITION) return status;
  rn_status_free(status);
  return RN_OK;
}

rn_status_t rn_fs_check_name(rn_str_t name) {
  if (!name.size || !memchr(name.data, '\0', name.size)) return RN_OK;
  return rn_invalid_argument("A file name must not contain a NUL");
}

bool rn_fs_exists(const rn_env_t* env, const char* path) {
  bool exists = false;
  rn_status_free(rn_fs_find(env, path, &exists));
  return exists;
}

rn_status_t rn_fs_size(const rn_env_t* env, const char* path, int64_t* out) {
  rn_file_stat_t found;
  RN_RETURN_IF_ERROR(env->fs->stat(env->fs_self, path, &found));
  *out = found.size;
  return RN_OK;
}

rn_status_t rn_fs_open(const rn_env_t* env, const char* path, rn_open_mode_t mode,
                       rn_file_t** out_file) {
  return env->fs->open(env->fs_self, path, mode, env->allocator, out_file);
}

// Reads in pieces, because the size that stat reports is 0 for /proc and unknown for pipes.
static rn_status_t read_pieces(rn_file_t* file, const char* path, size_t limit, rn_strbuf_t* out) {
  char piece[16384];
  size_t total = 0, got;
  do {
    RN_RETURN_IF_ERROR(file->vtable->read(file, piece, sizeof piece, &got));
    if (got > limit - total)
      return rn_resource_exhausted("%s; file is larger than %zu bytes", path, limit);
    total += got;
    rn_strbuf_append_n(out, piece, got);
    RN_RETURN_IF_ERROR(rn_strbuf_status(out));
  } while (got == sizeof piece);
  return RN_OK;
}

rn_status_t rn_fs_read(const rn_env_t* env, const char* path, size_t limit, rn_strbuf_t* out) {
  rn_file_t* file;
  RN_RETURN_IF_ERROR(rn_fs_open(env, path, RN_OPEN_READ, &file));
  rn_status_t status = read_pieces(file, path, limit, out);
  return rn_status_join(status, file->vtable->close(file));
}

static rn_status_t write_file(const rn_env_t* env, const char* path, rn_str_t data, bool syncs) {
  rn_file_t* file;
  RN_RETURN_IF_ERROR(rn_fs_open(env, path, RN_OPEN_WRITE, &file));
  rn_status_t status = file->vtable->append(file, data);
  if (rn_ok(status) && syncs) status = file->vtable->sync(file);
  return rn_status_join(status, file->vtable->close(file));
}

rn_status_t rn_fs_write(const rn_env_t* env, const char* path, rn_str_t data) {
  return write_file(env, path, data, false);
}

rn_status_t rn_fs_temporary(const rn_env_t* env, const char* path, rn_strbuf_t* out) {
  size_t start = out->size;
  for (int tries = 0; tries < 100; ++tries) {
    out->size = start;
    rn_strbuf_printf(out, "%s.tempstate%llu", path,
                     (unsigned long long)env->random(env->self) >> 1);
    RN_RETURN_IF_ERROR(rn_strbuf_status(out));
    if (!rn_fs_exists(env, out->data + start)) return RN_OK;
  }
  return rn_already_exists("%s; all temporary names that were tried are taken", out->data + start);
}

static rn_status_t sync_directory_of(const rn_env_t* env, const char* path) {
  rn_str_t directory = rn_path_directory(rn_str(path));
  char* name = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(env->allocator, directory, &name));
  rn_status_t status = env->fs->sync_directory(env->fs_self, name);
  rn_free(env->allocator, name, directory.size + 1);
  return status;
}

rn_status_t rn_fs_replace(const rn_env_t* env, const char* path, rn_str_t data) {
  rn_strbuf_t name;
  rn_strbuf_init(&name, env->allocator);
  rn_status_t status = rn_fs_temporary(env, path, &name);
  if (rn_ok(status)) {
    status = write_file(env, name.data, data, true);
    if (rn_ok(status)) status = env->fs->rename(env->fs_self, name.data, path);
    if (!rn_ok(status)) rn_status_free(env->fs->remove(env->fs_self, name.data));
  }
  if (rn_ok(status)) status = sync_directory_of(env, path);
  rn_strbuf_clear(&name);
  return status;
}

// Syncs the directory that contains |path|, which is modified meanwhile.
static rn_status_t sync_parent(const rn_env_t* env, char* path) {
  if (rn_path_root(rn_str(path))) return RN_OK;  // the operating system's names only
  char* slash = strrchr(path, '/');
  if (!slash) return env->fs->sync_directory(env->fs_self, ".");
  if (slash == path) return env->fs->sync_directory(env->fs_self, "/");
  *slash = 0;
  rn_status_t status = env->fs->sync_directory(env->fs_self, path);
  *slash = '/';
  return status;
}

static rn_status_t make_one(const rn_env_t* env, char* path) {
  rn_status_t status = env->fs->make_directory(env->fs_self, path);
  rn_file_stat_t found;
  if (rn_ok(status)) return sync_parent(env, path);
  if (rn_status_code(status) != RN_CODE_ALREADY_EXISTS) return status;
  rn_status_t look = env->fs->stat(env->fs_self, path, &found);
  bool is_there = rn_ok(look) && found.is_directory;
  rn_status_free(look);
  if (!is_there) return status;
  rn_status_free(status);
  return RN_OK;
}

rn_status_t rn_fs_make_directories(const rn_env_t* env, const char* path) {
  size_t size = strlen(path);
  char* part = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(env->allocator, rn_str(path), &part));
  rn_status_t status = RN_OK;
  for (size_t i = rn_path_root(rn_str(path)) + 1; rn_ok(status) && i <= size; ++i) {
    if ((path[i] != '/' && path[i] != 0) || path[i - 1] == '/') continue;
    part[i] = 0;
    status = make_one(env, part);
    part[i] = path[i];
  }
  rn_free(env->allocator, part, size + 1);
  return status;
}

typedef struct removal_t {
  const rn_env_t* env;
  rn_status_t first;
  int64_t left_files, left_directories;
} removal_t;

static void remove_within(removal_t* removal, const char* path);

// A symbolic link to a directory is removed itself; its target stays.
static void remove_one(removal_t* removal, const char* path) {
  const rn_fs_t* fs = removal->env->fs;
  rn_status_t status = fs->remove(removal->env->fs_self, path);
  if (rn_ok(status)) return;
  rn_file_stat_t found = {0};
  rn_status_free(fs->stat(removal->env->fs_self, path, &found));
  if (found.is_directory) {
    rn_status_free(status);
    remove_within(removal, path);
  } else {
    removal->left_files++;
    removal->first = rn_status_join(removal->first, status);
  }
}

static void remove_within(removal_t* removal, const char* path) {
  const rn_env_t* env = removal->env;
  rn_names_t names;
  rn_names_init(&names, env->allocator);
  rn_status_t status = env->fs->list(env->fs_self, path, &names);
  for (size_t i = 0; rn_ok(status) && i < names.list.count; ++i) {
    rn_str_t child;
    status = rn_arena_printf(&names.arena, &child, "%s/%s", path, names.list.items[i].data);
    if (rn_ok(status)) remove_one(removal, child.data);
  }
  rn_names_clear(&names);
  // A directory that could not be read may still be empty.
  rn_status_t gone = env->fs->remove_directory(env->fs_self, path);
  if (!rn_ok(gone)) removal->left_directories++;
  removal->first = rn_status_join(removal->first, rn_status_join(status, gone));
}

rn_status_t rn_fs_remove_tree(const rn_env_t* env, const char* path, int64_t* out_left_files,
                              int64_t* out_left_directories) {
  removal_t removal = {.env = env};
  rn_file_stat_t found;
  rn_status_t status = env->fs->stat(env->fs_self, path, &found);
  if (rn_ok(status))
    remove_one(&removal, path);
  else
    removal.left_directories = 1;
  *out_left_files = removal.left_files;
  *out_left_directories = removal.left_directories;
  return rn_status_join(status, removal.first);
}

static bool is_pattern(rn_str_t part) {
  for (size_t i = 0; i < part.size; ++i)
    if (strchr("*?[\\", part.data[i])) return true;
  return false;
}

// Adds to |found| what |part| of a pattern matches in the directory |base| ("" or ending in '/').
static rn_status_t match_part(const rn_env_t* env, rn_str_t base, rn_str_t part,
                              rn_names_t* found) {
  rn_arena_t* arena = &found->arena;
  rn_str_t path, pattern;
  if (!is_pattern(part)) {
    RN_RETURN_IF_ERROR(
        rn_arena_printf(arena, &path, "%.*s%.*s", RN_STR_ARGS(base), RN_STR_ARGS(part)));
    return rn_fs_exists(env, path.data) ? rn_names_add(found, path) : RN_OK;
  }
  RN_RETURN_IF_ERROR(rn_arena_str(arena, part, &pattern));
  RN_RETURN_IF_ERROR(rn_arena_printf(arena, &path, "%.*s", RN_STR_ARGS(base)));
  rn_names_t names;
  rn_names_init(&names, env->allocator);
  rn_status_t status = env->fs->list(env->fs_self, base.size ? path.data : ".", &names);
  // Nothing matches below a file, or in a directory that we may not read.
  if (!rn_ok(status) && rn_status_code(status) != RN_CODE_RESOURCE_EXHAUSTED) {
    rn_status_free(status);
    status = RN_OK;
  }
  for (size_t i = 0; rn_ok(status) && i < names.list.count; ++i) {
    if (fnmatch(pattern.data, names.list.items[i].data, 0) != 0) continue;
    status = rn_arena_printf(arena, &path, "%.*s%s", RN_STR_ARGS(base), names.list.items[i].data);
    if (rn_ok(status)) status = rn_names_add(found, path);
  }
  rn_names_clear(&names);
  return status;
}

// Extends all paths that matched so far by one part of the pattern at a time.
static rn_status_t match_parts(const rn_env_t* env, rn_str_t rest, rn_names_t* at,
                               rn_names_t* next) {
  while (rest.size) {
    rn_str_t part = rn_str_split(&rest, '/');
    bool is_last = rest.size == 0;
    for (size_t i = 0; i < at->list.count; ++i) {
      rn_str_t base = at->list.items[i];
      if (part.size)
        RN_RETURN_IF_ERROR(match_part(env, base, part, next));
      else
        RN_RETURN_IF_ERROR(rn_names_add(next, base));
    }
    for (size_t i = 0; !is_last && i < next->list.count; ++i) {
      rn_str_t* item = &next->list.items[i];
      if (part.size)
        RN_RETURN_IF_ERROR(rn_arena_printf(&next->arena, item, "%.*s/", RN_STR_ARGS(*item)));
    }
    rn_names_t swapped = *at;
    *at = *next;
    *next = swapped;
    next->list.count = 0;
  }
  return RN_OK;
}

rn_status_t rn_fs_glob(const rn_env_t* env, const char* pattern, rn_names_t* names) {
  rn_names_t at, next;
  rn_names_init(&at, env->allocator);
  rn_names_init(&next, env->allocator);
  const rn_str_t whole = rn_str(pattern);
  // What no pattern can be part of: "/", "ram://host/", or nothing.
  size_t root = rn_path_root(whole);
  if (root < whole.size && whole.data[root] == '/') ++root;
  rn_str_t rest = rn_str_n(whole.data + root, whole.size - root);
  rn_status_t status = rn_names_add(&at, rn_str_n(whole.data, root));
  if (rn_ok(status)) status = match_parts(env, rest, &at, &next);
  size_t first = names->list.count;
  for (size_t i = 0; rn_ok(status) && i < at.list.count; ++i)
    if (at.list.items[i].size)
      status = rn_names_add(names, is_pattern(whole) ? at.list.items[i] : whole);
  sort_from(names, first);
  rn_names_clear(&at);
  rn_names_clear(&next);
  return status;
}
