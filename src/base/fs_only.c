// The view of some folders: see fs_only.h.
#include "base/fs_only.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/net.h"

typedef struct folder_t {
  rn_str_t path;  // resolved, without a '/' at its end; "" is the root
  bool may_write;
} folder_t;

struct rn_fs_only_t {
  rn_allocator_t allocator;
  rn_arena_t arena;
  const rn_fs_t* fs;  // what is behind it
  void* fs_self;
  const rn_net_t* net;
  void* net_self;
  RN_VEC(folder_t) folders;
  bool allows_all, allows_network;
  const char* allow;  // in the arena, for messages
};

// Follows the links of the longest part of |path| that exists; the rest must be plain names.
static rn_status_t resolve_system(const char* path, rn_strbuf_t* out) {
  char real[PATH_MAX];
  size_t size = strlen(path), end = size;
  char* part = NULL;
  RN_RETURN_IF_ERROR(rn_str_dup(out->allocator, rn_str(path), &part));
  bool found = false, bad = false;
  int error = 0;
  struct stat look;
  while (!found && !bad) {
    part[end] = 0;
    const char* name = end ? part : path[0] == '/' ? "/" : ".";
    found = realpath(name, real) != NULL;
    error = errno;
    // A link that cannot be resolved is dangling, or part of a cycle.
    bad = !found && (error != ENOENT || lstat(name, &look) == 0 || end == 0);
    if (found || bad) break;
    while (end > 0 && part[end - 1] == '/') --end;
    while (end > 0 && part[end - 1] != '/') --end;
    while (end > 0 && part[end - 1] == '/') --end;
  }
  rn_free(out->allocator, part, size + 1);
  if (bad) return rn_status_of_errno(path, error);
  rn_path_append_clean(out, rn_str(real));
  rn_str_t rest = rn_str_n(path + end, size - end);
  while (rest.size) {
    rn_str_t name = rn_str_split(&rest, '/');
    if (rn_str_is(name, "..")) return rn_status_of_errno(path, ENOENT);
    if (!name.size || rn_str_is(name, ".")) continue;
    rn_strbuf_append(out, RN_STR("/"));
    rn_strbuf_append(out, name);
  }
  return rn_strbuf_status(out);
}

static rn_status_t resolve(const rn_fs_only_t* only, const char* path, rn_strbuf_t* out) {
  if (only->fs == &rn_fs_system) return resolve_system(path, out);
  rn_path_append_clean(out, rn_str(path));
  return rn_strbuf_status(out);
}

static bool is_in(rn_str_t path, rn_str_t folder) {
  return rn_str_starts_with(path, folder) &&
         (path.size == folder.size || path.data[folder.size] == '/');
}

static rn_status_t check(const rn_fs_only_t* only, const char* path, bool writes) {
  rn_strbuf_t real;
  rn_strbuf_init(&real, only->allocator);
  // The folders that are allowed are the operating system's.
  size_t root = rn_path_root(rn_str(path));
  bool is_file = rn_str_is(rn_path_scheme(rn_str(path)), "file");
  rn_status_t status = root && !is_file ? RN_OK : resolve(only, path + (is_file ? 7 : 0), &real);
  bool allowed = false;
  size_t count = root && !is_file ? 0 : only->folders.count;
  for (size_t i = 0; rn_ok(status) && !allowed && i < count; ++i) {
    const folder_t* folder = &only->folders.items[i];
    allowed = (folder->may_write || !writes) && is_in(rn_strbuf_view(&real), folder->path);
  }
  rn_strbuf_clear(&real);
  if (!rn_ok(status) || allowed) return status;
  return rn_status_make(RN_CODE_PERMISSION_DENIED,
                        "%s; this session may not %s it: it is allowed '%s' only", path,
                        writes ? "write" : "read", only->allow);
}

static rn_status_t only_open(void* self, const char* path, rn_open_mode_t mode,
                             rn_allocator_t allocator, rn_file_t** out_file) {
  rn_fs_only_t* only = self;
  *out_file = NULL;
  RN_RETURN_IF_ERROR(check(only, path, mode != RN_OPEN_READ));
  return only->fs->open(only->fs_self, path, mode, allocator, out_file);
}

static rn_status_t only_stat(void* self, const char* path, rn_file_stat_t* out) {
  rn_fs_only_t* only = self;
  RN_RETURN_IF_ERROR(check(only, path, false));
  return only->fs->stat(only->fs_self, path, out);
}

static rn_status_t only_rename(void* self, const char* from, const char* to) {
  rn_fs_only_t* only = self;
  RN_RETURN_IF_ERROR(check(only, from, true));
  RN_RETURN_IF_ERROR(check(only, to, true));
  return only->fs->rename(only->fs_self, from, to);
}

#define WRITES(name)                                             \
  static rn_status_t only_##name(void* self, const char* path) { \
    rn_fs_only_t* only = self;                                   \
    RN_RETURN_IF_ERROR(check(only, path, true));                 \
    return only->fs->name(only->fs_self, path);                  \
  }
WRITES(remove)
WRITES(make_directory)
WRITES(remove_directory)
WRITES(sync_directory)
#undef WRITES

static rn_status_t only_list(void* self, const char* path, rn_names_t* names) {
  rn_fs_only_t* only = self;
  RN_RETURN_IF_ERROR(check(only, path, false));
  return only->fs->list(only->fs_self, path, names);
}

static rn_status_t only_is_in_use(void* self, const char* path, bool* out) {
  rn_fs_only_t* only = self;
  RN_RETURN_IF_ERROR(check(only, path, true));
  if (!only->fs->is_in_use)
    return rn_unimplemented("%s; it is unknown whether the file is in use", path);
  return only->fs->is_in_use(only->fs_self, path, out);
}

static const rn_fs_t table = {.open = only_open,
                              .stat = only_stat,
                              .remove = only_remove,
                              .rename = only_rename,
                              .make_directory = only_make_directory,
                              .remove_directory = only_remove_directory,
                              .sync_directory = only_sync_directory,
                              .list = only_list,
                              .is_in_use = only_is_in_use};

static rn_status_t refuse(const char* address) {
  return rn_status_make(RN_CODE_PERMISSION_DENIED,
                        "%s; this session may not use the network: allow 'network'", address);
}

static rn_status_t no_listen(void* self, const char* address, rn_allocator_t allocator,
                             rn_socket_t** out) {
  (void)self, (void)allocator;
  *out = NULL;
  return refuse(address);
}

static rn_status_t no_connect(void* self, const char* address, int64_t deadline_ns,
                              rn_allocator_t allocator, rn_socket_t** out) {
  (void)self, (void)allocator, (void)deadline_ns;
  *out = NULL;
  return refuse(address);
}

// A pair of sockets within the process is not the network.
static rn_status_t only_pair(void* self, rn_allocator_t allocator, rn_socket_t** a,
                             rn_socket_t** b) {
  rn_fs_only_t* only = self;
  return only->net->pair(only->net_self, allocator, a, b);
}

static rn_status_t only_poller(void* self, rn_allocator_t allocator, rn_poller_t** out) {
  rn_fs_only_t* only = self;
  return only->net->poller(only->net_self, allocator, out);
}

static const rn_net_t no_net = {
    .listen = no_listen, .connect = no_connect, .pair = only_pair, .poller = only_poller};

static rn_status_t allow_folder(rn_fs_only_t* only, rn_str_t path, bool may_write) {
  folder_t folder = {.may_write = may_write};
  rn_str_t name;
  RN_RETURN_IF_ERROR(rn_arena_str(&only->arena, path, &name));
  rn_strbuf_t real;
  rn_strbuf_init(&real, only->allocator);
  rn_status_t status = resolve(only, name.data, &real);
  if (rn_ok(status)) status = rn_arena_str(&only->arena, rn_strbuf_view(&real), &folder.path);
  if (rn_ok(status)) status = rn_vec_push(&only->folders, only->allocator, folder);
  rn_strbuf_clear(&real);
  return status;
}

static rn_status_t allow_word(rn_fs_only_t* only, rn_str_t word) {
  rn_str_t path = word, verb = rn_str_split(&path, ':');
  bool reads = rn_str_is(verb, "read"), writes = rn_str_is(verb, "write");
  if ((reads || writes) && path.size) return allow_folder(only, path, writes);
  if (rn_str_is(word, "network"))
    only->allows_network = true;
  else if (rn_str_is(word, "all"))
    only->allows_all = true;
  else if (word.size)
    return rn_invalid_argument(
        "'%.*s' is not a permission; write read:FOLDER, write:FOLDER, network "
        "or all, separated by ';'",
        RN_STR_ARGS(word));
  return RN_OK;
}

static rn_status_t fill(rn_fs_only_t* only, rn_str_t folder, rn_str_t allow) {
  rn_str_t text;
  RN_RETURN_IF_ERROR(rn_arena_printf(&only->arena, &text, "%s%.*s%s%.*s",
                                     folder.size ? "read:" : "", RN_STR_ARGS(folder),
                                     folder.size && allow.size ? ";" : "", RN_STR_ARGS(allow)));
  only->allow = text.data;
  if (folder.size) RN_RETURN_IF_ERROR(allow_folder(only, folder, false));
  while (allow.size) RN_RETURN_IF_ERROR(allow_word(only, rn_str_trim(rn_str_split(&allow, ';'))));
  return RN_OK;
}

rn_status_t rn_fs_only_create(const rn_env_t* env, rn_str_t folder, rn_str_t allow,
                              rn_allocator_t allocator, rn_fs_only_t** out) {
  *out = NULL;
  rn_fs_only_t* only = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &only));
  only->allocator = allocator;
  only->fs = env->fs;
  only->fs_self = env->fs_self;
  only->net = env->net;
  only->net_self = env->net_self;
  rn_arena_init(&only->arena, allocator);
  rn_status_t status = fill(only, folder, allow);
  if (!rn_ok(status)) {
    rn_fs_only_destroy(only);
    return status;
  }
  *out = only;
  return RN_OK;
}

void rn_fs_only_destroy(rn_fs_only_t* only) {
  if (!only) return;
  rn_vec_free(&only->folders, only->allocator);
  rn_arena_clear(&only->arena);
  RN_FREE(only->allocator, only);
}

bool rn_fs_only_has_network(const rn_fs_only_t* only) {
  return only->allows_all || only->allows_network;
}

bool rn_fs_only_is_view(const rn_env_t* env) { return env->fs == &table; }

void rn_fs_only_apply(rn_fs_only_t* only, rn_env_t* env) {
  if (only->allows_all) return;
  env->fs = &table;
  env->fs_self = only;
  if (rn_fs_only_has_network(only)) return;
  env->net = &no_net;
  env->net_self = only;
}
