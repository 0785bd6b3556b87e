// Files and directories, behind a vtable of the environment.
//
// Paths are NUL-terminated. Errors carry the path and the system's message: "NOT_FOUND: path; No
// such file or directory". Every function may be called from any thread; an open file must be used
// by one thread at a time, except read_at, which any number may call at once.
#ifndef RUNNEL_BASE_FS_H_
#define RUNNEL_BASE_FS_H_

#include "base/arena.h"
#include "base/env.h"
#include "base/vec.h"

typedef enum rn_open_mode_t {
  RN_OPEN_READ,
  RN_OPEN_WRITE,      // created, or truncated
  RN_OPEN_APPEND,     // created if it does not exist
  RN_OPEN_TEMPORARY,  // RN_OPEN_WRITE; while it is open, is_in_use is true
} rn_open_mode_t;

typedef struct rn_file_stat_t {
  int64_t size;
  int64_t modified_ns;  // since 1970
  bool is_directory;
} rn_file_stat_t;

// An open file. Implementations put this first in a struct of their own.
typedef struct rn_file_t {
  const struct rn_file_vtable_t* vtable;
} rn_file_t;

typedef struct rn_file_vtable_t {
  // Reads up to |size| bytes, fewer only at the end. |read| continues where it stopped, and works
  // on pipes.
  rn_status_t (*read)(rn_file_t* file, void* out, size_t size, size_t* out_size);
  rn_status_t (*read_at)(rn_file_t* file, uint64_t offset, void* out, size_t size,
                         size_t* out_size);
  // Appends all of it; after a failure any part of it may have been written.
  rn_status_t (*append)(rn_file_t* file, rn_str_t data);
  // Returns when the bytes would survive a power failure. sync_directory does the same for the
  // name.
  rn_status_t (*sync)(rn_file_t* file);
  rn_status_t (*truncate)(rn_file_t* file, int64_t size);
  rn_status_t (*stat)(rn_file_t* file, rn_file_stat_t* out);
  // Frees |file| in any case. The status reports delayed write errors.
  rn_status_t (*close)(rn_file_t* file);
} rn_file_vtable_t;

// Names of files, NUL-terminated.
typedef struct rn_names_t {
  rn_arena_t arena;
  RN_VEC(rn_str_t) list;
} rn_names_t;
void rn_names_init(rn_names_t* names, rn_allocator_t allocator);
void rn_names_clear(rn_names_t* names);
RN_MUST_USE rn_status_t rn_names_add(rn_names_t* names, rn_str_t name);
void rn_names_sort(rn_names_t* names);  // by bytes

struct rn_fs_t {
  rn_status_t (*open)(void* self, const char* path, rn_open_mode_t mode, rn_allocator_t allocator,
                      rn_file_t** out_file);
  rn_status_t (*stat)(void* self, const char* path, rn_file_stat_t* out);
  rn_status_t (*remove)(void* self, const char* path);
  rn_status_t (*rename)(void* self, const char* from, const char* to);  // replaces
  rn_status_t (*make_directory)(void* self, const char* path);
  rn_status_t (*remove_directory)(void* self, const char* path);  // must be empty
  // Returns when the names in it would survive a power failure.
  rn_status_t (*sync_directory)(void* self, const char* path);
  rn_status_t (*list)(void* self, const char* path, rn_names_t* names);  // adds, in any order
  // Whether a live process has |path| open as RN_OPEN_TEMPORARY. NULL, or an error, if that is
  // unknown.
  rn_status_t (*is_in_use)(void* self, const char* path, bool* out);
};

extern const rn_fs_t rn_fs_local;  // of the operating system
// The same, and for paths with a scheme ("ram://host/path") the file system that is registered for
// it: UNIMPLEMENTED if there is none. "file://" is the operating system's.
extern const rn_fs_t rn_fs_system;
// Registers |fs| for paths that begin with "|scheme|://", which it gets whole. |scheme|, |fs| and
// |self| must live as long as the process. ALREADY_EXISTS if the scheme is taken.
RN_MUST_USE rn_status_t rn_fs_register(const char* scheme, const rn_fs_t* fs, void* self);

// Built on the vtable.

bool rn_fs_exists(const rn_env_t* env, const char* path);  // false also if that is unknown
// The same, but fails if that is unknown.
RN_MUST_USE rn_status_t rn_fs_find(const rn_env_t* env, const char* path, bool* out_exists);
RN_MUST_USE rn_status_t rn_fs_size(const rn_env_t* env, const char* path, int64_t* out);
RN_MUST_USE rn_status_t rn_fs_open(const rn_env_t* env, const char* path, rn_open_mode_t mode,
                                   rn_file_t** out_file);
// Appends the whole file to |out|; RESOURCE_EXHAUSTED if it has more than |limit| bytes.
RN_MUST_USE rn_status_t rn_fs_read(const rn_env_t* env, const char* path, size_t limit,
                                   rn_strbuf_t* out);
// Creates or overwrites.
RN_MUST_USE rn_status_t rn_fs_write(const rn_env_t* env, const char* path, rn_str_t data);
// Replaces the file atomically: readers, also after a crash, see either the old or the new file.
RN_MUST_USE rn_status_t rn_fs_replace(const rn_env_t* env, const char* path, rn_str_t data);
// Creates the directory and its parents; existing ones are fine. The names survive a power failure.
RN_MUST_USE rn_status_t rn_fs_make_directories(const rn_env_t* env, const char* path);
// Removes |path| and everything in it, as far as possible; returns the first error.
RN_MUST_USE rn_status_t rn_fs_remove_tree(const rn_env_t* env, const char* path,
                                          int64_t* out_left_files, int64_t* out_left_directories);
// Adds the paths that match |pattern| (*, ?, [...]; none of them matches a /), sorted. A pattern
// without any of them matches the path itself, if it exists.
RN_MUST_USE rn_status_t rn_fs_glob(const rn_env_t* env, const char* pattern, rn_names_t* names);
// An unused name beside |path|: "path.tempstate<number>". ALREADY_EXISTS if a hundred numbers in
// turn are taken.
RN_MUST_USE rn_status_t rn_fs_temporary(const rn_env_t* env, const char* path, rn_strbuf_t* out);
// Removes files that rn_fs_temporary named and whose writers died. is_in_use must be false, and the
// last write must be two seconds old for files of |path| or "|path|.something", or an hour old for
// those of other paths in its folder. Files whose state is unknown stay; removals are logged.
void rn_fs_sweep_temporaries(const rn_env_t* env, const char* path);
// INVALID_ARGUMENT if |name| contains a NUL, which no file's name does.
RN_MUST_USE rn_status_t rn_fs_check_name(rn_str_t name);
// The scheme of |path|: "ram" for "ram://host/path", "" for a plain path.
rn_str_t rn_path_scheme(rn_str_t path);
// The size of the part of |path| that names no file or directory: "ram://host" of the above, 0 for
// a plain path.
size_t rn_path_root(rn_str_t path);
// The directory of |path|: "a/b" for "a/b/c", "/" for "/a", "." for "a", "ram://host/" for
// "ram://host/a".
rn_str_t rn_path_directory(rn_str_t path);
// Cuts |*inout_path| down to its directory: "a/b" to "a", "/a" to "/". False, with nothing changed,
// if it has none, as "/" and "a". A walk to the top ends there.
bool rn_path_to_parent(rn_str_t* inout_path);
// Appends the absolute |path| without "//", "." and "..", as its text says; "" for "/".
void rn_path_append_clean(rn_strbuf_t* out, rn_str_t path);

// The status code that TensorFlow gives to |error| of errno; 0 is no error.
rn_code_t rn_code_of_errno(int error);
// "context; No such file or directory", with that code.
RN_MUST_USE rn_status_t rn_status_of_errno(const char* context, int error);

#endif  // RUNNEL_BASE_FS_H_
