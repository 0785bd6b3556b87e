// Files and directories, behind a table of the environment.
//
// Paths are NUL-terminated. Errors carry the path and the system's words: "NOT_FOUND: path; No such
// file or directory". Every function may be called from any thread; one open file belongs to one
// thread at a time, but for read_at, which any number may call at once.
#ifndef RUNNEL_BASE_FS_H_
#define RUNNEL_BASE_FS_H_

#include "base/arena.h"
#include "base/env.h"
#include "base/vec.h"

typedef enum rn_open_mode_t {
  RN_OPEN_READ,
  RN_OPEN_WRITE,      // made, or emptied
  RN_OPEN_APPEND,     // made if it is not there
  RN_OPEN_TEMPORARY,  // RN_OPEN_WRITE; as long as it is open, is_in_use tells everybody so
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
  // Up to |size| bytes, fewer only at the end; the first form goes on where it stopped, and takes
  // pipes.
  rn_status_t (*read)(rn_file_t* file, void* out, size_t size, size_t* out_size);
  rn_status_t (*read_at)(rn_file_t* file, uint64_t offset, void* out, size_t size,
                         size_t* out_size);
  // At the end, all of it; after a failure any part of it may be there.
  rn_status_t (*append)(rn_file_t* file, rn_str_t data);
  // Back when the bytes would survive a loss of power. The name survives by sync_directory.
  rn_status_t (*sync)(rn_file_t* file);
  rn_status_t (*truncate)(rn_file_t* file, int64_t size);
  rn_status_t (*stat)(rn_file_t* file, rn_file_stat_t* out);
  // Frees |file| in any case; the status is of writes that the system had put off.
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
  // Back when the names in it would survive a loss of power.
  rn_status_t (*sync_directory)(void* self, const char* path);
  rn_status_t (*list)(void* self, const char* path, rn_names_t* names);  // adds, in any order
  // Whether a process that lives has |path| open as RN_OPEN_TEMPORARY. NULL, or an error, where
  // that cannot be told.
  rn_status_t (*is_in_use)(void* self, const char* path, bool* out);
};

extern const rn_fs_t rn_fs_system;  // of the operating system

// What is made of the above.

bool rn_fs_exists(const rn_env_t* env, const char* path);  // false too where that cannot be told
// The same for whoever acts on the answer: fails where it cannot be told.
RN_MUST_USE rn_status_t rn_fs_find(const rn_env_t* env, const char* path, bool* out_exists);
RN_MUST_USE rn_status_t rn_fs_size(const rn_env_t* env, const char* path, int64_t* out);
RN_MUST_USE rn_status_t rn_fs_open(const rn_env_t* env, const char* path, rn_open_mode_t mode,
                                   rn_file_t** out_file);
// Appends the whole file to |out|; RESOURCE_EXHAUSTED if it has more than |limit| bytes.
RN_MUST_USE rn_status_t rn_fs_read(const rn_env_t* env, const char* path, size_t limit,
                                   rn_strbuf_t* out);
// Creates or overwrites.
RN_MUST_USE rn_status_t rn_fs_write(const rn_env_t* env, const char* path, rn_str_t data);
// Creates or replaces so that whoever looks, also after a crash, sees the old or the new file
// whole.
RN_MUST_USE rn_status_t rn_fs_replace(const rn_env_t* env, const char* path, rn_str_t data);
// With all directories on the way; what exists is fine. The names survive a loss of power.
RN_MUST_USE rn_status_t rn_fs_make_directories(const rn_env_t* env, const char* path);
// Removes |path| and all that is in it, as far as that can be done; the first error.
RN_MUST_USE rn_status_t rn_fs_remove_tree(const rn_env_t* env, const char* path,
                                          int64_t* out_left_files, int64_t* out_left_directories);
// Adds the paths that match |pattern| (*, ?, [...]; none of them matches a /), sorted. A pattern
// without any of them is the name of what exists, as it was written.
RN_MUST_USE rn_status_t rn_fs_glob(const rn_env_t* env, const char* pattern, rn_names_t* names);
// A name beside |path| that nobody has: "path.tempstate<number>". ALREADY_EXISTS if a hundred
// numbers in turn are taken.
RN_MUST_USE rn_status_t rn_fs_temporary(const rn_env_t* env, const char* path, rn_strbuf_t* out);
// Removes files that rn_fs_temporary named and their writers left behind when they died: is_in_use
// must deny them, and nobody may have written to them for two seconds, if they are for |path| or
// for |path| with ".something" behind it, or for an hour, if they are for others in its folder.
// Whatever cannot be told or removed stays; what goes is logged.
void rn_fs_sweep_temporaries(const rn_env_t* env, const char* path);
// The directory of |path|: "a/b" for "a/b/c", "/" for "/a", "." for "a".
rn_str_t rn_path_directory(rn_str_t path);
// Cuts |*inout_path| down to its directory: "a/b" to "a", "/a" to "/". False, with nothing changed,
// if no part of it is one: "/" and "a" have none. A walk to the top ends there.
bool rn_path_to_parent(rn_str_t* inout_path);

// The code that TensorFlow gives an error of the system; 0 is no error.
rn_code_t rn_code_of_errno(int error);
// "context; No such file or directory", with that code.
RN_MUST_USE rn_status_t rn_status_of_errno(const char* context, int error);

#endif  // RUNNEL_BASE_FS_H_
