#include "io/sqlite.h"

#include <dlfcn.h>
#include <pthread.h>

#include "base/fs.h"
#include "base/fs_only.h"

#define LIBRARY "libsqlite3.so.0"

enum { OPEN_READONLY = 1, OPEN_READWRITE = 2, OPEN_CREATE = 4, OPEN_URI = 0x40 };
enum { LIMIT_ATTACHED = 7 };

// Filled in once, then read-only; process-wide, like the library that it points into.
static struct {
  pthread_once_t once;
  rn_sqlite_api_t api;
  const char* missing;  // NULL if everything was found
} sql = {.once = PTHREAD_ONCE_INIT};

static void load(void) {
  void* library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    sql.missing = LIBRARY;
    return;
  }
#define FIND(type, name, arguments)                          \
  *(void**)&sql.api.name = dlsym(library, "sqlite3_" #name); \
  if (!sql.api.name) sql.missing = "sqlite3_" #name;
  RN_SQLITE_FUNCTIONS(FIND)
#undef FIND
}

rn_status_t rn_sqlite_need(const char* op, const rn_sqlite_api_t** out) {
  pthread_once(&sql.once, load);
  *out = &sql.api;
  if (!sql.missing) return RN_OK;
  return rn_unimplemented("%s needs SQLite: %s is missing (Debian: libsqlite3-0)", op, sql.missing);
}

// Whether a view of some folders shows |path|. SQLite opens files by itself.
static rn_status_t check_path(const rn_env_t* env, const char* path, bool writes) {
  rn_file_t* file = NULL;
  rn_status_t status = rn_fs_open(env, path, writes ? RN_OPEN_APPEND : RN_OPEN_READ, &file);
  return rn_ok(status) ? file->vtable->close(file) : status;
}

rn_status_t rn_sqlite_open(const rn_env_t* env, const char* path, bool writes, sqlite3** out,
                           int* out_code) {
  bool is_view = rn_fs_only_is_view(env);
  int flags = writes ? OPEN_READWRITE | OPEN_CREATE : OPEN_READONLY;
  *out = NULL;
  *out_code = RN_SQLITE_OK;
  if (is_view) RN_RETURN_IF_ERROR(check_path(env, path, writes));
  *out_code = sql.api.open_v2(path, out, is_view || !writes ? flags : flags | OPEN_URI, NULL);
  // ATTACH, and VACUUM INTO, which attaches, would open other files.
  if (is_view && *out) sql.api.limit(*out, LIMIT_ATTACHED, 0);
  return RN_OK;
}

rn_code_t rn_sqlite_status_code(int code) {
  static const uint8_t codes[] = {
      [2] = RN_CODE_INTERNAL,
      [3] = RN_CODE_PERMISSION_DENIED,
      [4] = RN_CODE_ABORTED,
      [5] = RN_CODE_UNAVAILABLE,
      [6] = RN_CODE_UNAVAILABLE,
      [7] = RN_CODE_UNAVAILABLE,
      [8] = RN_CODE_FAILED_PRECONDITION,
      [9] = RN_CODE_CANCELLED,
      [11] = RN_CODE_DATA_LOSS,
      [12] = RN_CODE_INVALID_ARGUMENT,
      [13] = RN_CODE_RESOURCE_EXHAUSTED,
      [14] = RN_CODE_INVALID_ARGUMENT,
      [15] = RN_CODE_UNAVAILABLE,
      [18] = RN_CODE_RESOURCE_EXHAUSTED,
      [19] = RN_CODE_INVALID_ARGUMENT,
      [20] = RN_CODE_FAILED_PRECONDITION,
      [21] = RN_CODE_INTERNAL,
      [22] = RN_CODE_RESOURCE_EXHAUSTED,
      [23] = RN_CODE_PERMISSION_DENIED,
      [25] = RN_CODE_OUT_OF_RANGE,
      [26] = RN_CODE_INVALID_ARGUMENT,
  };
  size_t primary = (size_t)code & 0xff;
  bool is_known = primary < sizeof codes / sizeof *codes && codes[primary];
  return is_known ? (rn_code_t)codes[primary] : RN_CODE_UNKNOWN;
}
