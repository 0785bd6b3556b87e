// See cache.h.
#include "kernels/cuda/jit/cache.h"

#include "base/crc32c.h"
#include "base/fs.h"

#define VERSION 1
#define MAX_CODE ((size_t)64 << 20)  // far more than a kernel has

typedef struct kernel_file_t {
  char magic[8];
  uint32_t version, architecture;
  uint64_t key[2];
  uint64_t size;
  uint32_t crc, zero;
} kernel_file_t;
_Static_assert(sizeof(kernel_file_t) == 48, "the header's size is part of the format");

static kernel_file_t make_header(rn_jit_key_t key, int architecture, rn_str_t code) {
  return (kernel_file_t){.magic = {'R', 'N', 'K', 'E', 'R', 'N', 'E', 'L'},
                         .version = VERSION,
                         .architecture = (uint32_t)architecture,
                         .key = {key.half[0], key.half[1]},
                         .size = code.size,
                         .crc = rn_crc32c_mask(rn_crc32c(0, code.data, code.size))};
}

void rn_jit_cache_folder(rn_strbuf_t* out) {
  const char *ours = getenv("RUNNEL_CACHE_DIR"), *caches = getenv("XDG_CACHE_HOME"),
             *home = getenv("HOME");
  if (ours && *ours)
    rn_strbuf_printf(out, "%s", ours);
  else if (caches && *caches)
    rn_strbuf_printf(out, "%s/runnel/kernels", caches);
  else if (home && *home)
    rn_strbuf_printf(out, "%s/.cache/runnel/kernels", home);
}

static void make_path(rn_strbuf_t* path, const char* folder, rn_jit_key_t key) {
  rn_strbuf_printf(path, "%s/%016llx%016llx.kernel", folder, (unsigned long long)key.half[0],
                   (unsigned long long)key.half[1]);
}

// Appends the file's code if all of it is as it should be.
static bool read_code(const rn_env_t* env, const char* path, rn_jit_key_t key, int architecture,
                      rn_strbuf_t* out) {
  rn_strbuf_t file;
  rn_strbuf_init(&file, env->allocator);
  rn_status_t status = rn_fs_read(env, path, MAX_CODE, &file);
  bool is_good = false;
  if (rn_ok(status) && file.size > sizeof(kernel_file_t)) {
    const rn_str_t code = {file.data + sizeof(kernel_file_t), file.size - sizeof(kernel_file_t)};
    const kernel_file_t expected = make_header(key, architecture, code);
    is_good = memcmp(file.data, &expected, sizeof expected) == 0;
    if (is_good) rn_strbuf_append(out, code);
  }
  rn_status_free(status);
  rn_strbuf_clear(&file);
  return is_good && !out->failed;
}

bool rn_jit_cache_find(const rn_env_t* env, const char* folder, rn_jit_key_t key, int architecture,
                       rn_strbuf_t* out) {
  if (!*folder) return false;
  rn_strbuf_t path;
  rn_strbuf_init(&path, env->allocator);
  make_path(&path, folder, key);
  bool found = false;
  if (!path.failed && rn_fs_exists(env, path.data)) {
    found = read_code(env, path.data, key, architecture, out);
    if (!found)
      rn_log(env, RN_LOG_WARNING, "%s is not what its name says; it is made again", path.data);
  }
  rn_strbuf_clear(&path);
  return found;
}

static rn_status_t write_code(const rn_env_t* env, const char* path, const char* temporary,
                              rn_str_t header, rn_str_t code) {
  rn_file_t* file = NULL;
  RN_RETURN_IF_ERROR(rn_fs_open(env, temporary, RN_OPEN_TEMPORARY, &file));
  rn_status_t status = file->vtable->append(file, header);
  if (rn_ok(status)) status = file->vtable->append(file, code);
  status = rn_status_join(status, file->vtable->close(file));
  if (rn_ok(status)) status = env->fs->rename(env->fs_self, temporary, path);
  if (!rn_ok(status)) rn_status_free(env->fs->remove(env->fs_self, temporary));
  return status;
}

void rn_jit_cache_store(const rn_env_t* env, const char* folder, rn_jit_key_t key, int architecture,
                        rn_str_t code) {
  if (!*folder) return;
  rn_strbuf_t path, temporary;
  rn_strbuf_init(&path, env->allocator);
  rn_strbuf_init(&temporary, env->allocator);
  make_path(&path, folder, key);
  rn_status_t status = rn_strbuf_status(&path);
  if (rn_ok(status)) status = rn_fs_make_directories(env, folder);
  if (rn_ok(status)) status = rn_fs_temporary(env, path.data, &temporary);
  if (rn_ok(status)) {
    const kernel_file_t header = make_header(key, architecture, code);
    // Not synced: a file that a power failure cuts short fails its checksum.
    status = write_code(env, path.data, temporary.data,
                        rn_str_n((const char*)&header, sizeof header), code);
  }
  rn_status_free(status);
  rn_strbuf_clear(&temporary);
  rn_strbuf_clear(&path);
}
