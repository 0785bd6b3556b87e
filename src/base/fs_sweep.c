// Removes the temporary files of dead writers: see rn_fs_sweep_temporaries in fs.h.
#include "base/fs.h"

// TensorFlow's own processes use the same names without locks, so files of other paths get an hour.
#define OLD_SECONDS 3600
// A new file is locked shortly after it was created, and clocks of file servers differ a little.
#define NEW_SECONDS 2

// Whether |name| ends as rn_fs_temporary ends names; |*out_of| is what it is temporary for.
static bool is_temporary(rn_str_t name, rn_str_t* out_of) {
  const rn_str_t mark = RN_STR(".tempstate");
  size_t digits = 0;
  while (digits < name.size && name.data[name.size - digits - 1] >= '0' &&
         name.data[name.size - digits - 1] <= '9')
    ++digits;
  rn_str_t rest = rn_str_n(name.data, name.size - digits);
  if (!digits || !rn_str_ends_with(rest, mark)) return false;
  *out_of = rn_str_n(rest.data, rest.size - mark.size);
  return true;
}

// Whether a file belongs to |base|: it is that, or "base.something".
static bool belongs_to(rn_str_t name, rn_str_t base) {
  return rn_str_starts_with(name, base) && (name.size == base.size || name.data[base.size] == '.');
}

static bool is_denied(const rn_env_t* env, const char* path) {
  bool is_used = true;
  if (!env->fs->is_in_use) return false;
  rn_status_t status = env->fs->is_in_use(env->fs_self, path, &is_used);
  bool is_known = rn_ok(status);
  rn_status_free(status);
  return is_known && !is_used;
}

static bool is_abandoned(const rn_env_t* env, const char* path, bool is_own) {
  rn_file_stat_t found = {0};
  rn_status_t status = env->fs->stat(env->fs_self, path, &found);
  bool is_file = rn_ok(status) && !found.is_directory;
  rn_status_free(status);
  if (!is_file) return false;
  int64_t age = env->wall_us(env->self) / 1000000 - found.modified_ns / 1000000000;
  return age >= (is_own ? NEW_SECONDS : OLD_SECONDS) && is_denied(env, path);
}

void rn_fs_sweep_temporaries(const rn_env_t* env, const char* path) {
  rn_str_t folder = rn_path_directory(rn_str(path));
  const char* slash = strrchr(path, '/');
  rn_str_t base = rn_str(slash ? slash + 1 : path), of, file;
  rn_names_t names;
  rn_names_init(&names, env->allocator);
  rn_status_t status = rn_arena_str(&names.arena, folder, &folder);
  if (rn_ok(status)) status = env->fs->list(env->fs_self, folder.data, &names);
  for (size_t i = 0; rn_ok(status) && i < names.list.count; ++i) {
    rn_str_t name = names.list.items[i];
    if (!is_temporary(name, &of)) continue;
    status = rn_arena_printf(&names.arena, &file, "%s/%.*s", folder.data, RN_STR_ARGS(name));
    bool is_own = base.size && belongs_to(of, base);
    if (!rn_ok(status) || !is_abandoned(env, file.data, is_own)) continue;
    rn_status_t removed = env->fs->remove(env->fs_self, file.data);
    if (rn_ok(removed))
      rn_log(env, RN_LOG_INFO, "removed %s, which a dead process left behind", file.data);
    rn_status_free(removed);
  }
  rn_status_free(status);
  rn_names_clear(&names);
}
