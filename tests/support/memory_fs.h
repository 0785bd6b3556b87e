// A file system in memory that can fail, for tests of crash safety.
//
// A crash loses what was written but not synced, and names whose directory was not synced, as a
// disk may lose them. It is thread-safe.
#ifndef TESTS_BASE_MEMORY_FS_H_
#define TESTS_BASE_MEMORY_FS_H_

#include "base/fs.h"

typedef struct rn_memory_fs_t rn_memory_fs_t;

RN_MUST_USE rn_status_t rn_memory_fs_create(rn_allocator_t allocator, rn_memory_fs_t** out);
void rn_memory_fs_destroy(rn_memory_fs_t* fs);
// Makes |env| use |fs|.
void rn_memory_fs_install(rn_memory_fs_t* fs, rn_env_t* env);

// Calls so far, of any function but close.
int64_t rn_memory_fs_calls(const rn_memory_fs_t* fs);
// From the |first|-th call from now on (1: the next), |count| calls fail with |error| of errno; an
// append among them has written half of its bytes.
void rn_memory_fs_fail(rn_memory_fs_t* fs, int64_t first, int64_t count, int error);
// All files together hold at most |bytes| bytes: what fits of an append is written, then ENOSPC.
void rn_memory_fs_limit(rn_memory_fs_t* fs, int64_t bytes);
// Loses what a crash may lose. Of bytes appended since the last sync the first |torn| are kept in
// each file. Open files stay open on nothing: their calls fail with EIO.
void rn_memory_fs_crash(rn_memory_fs_t* fs, int64_t torn);

#endif  // TESTS_BASE_MEMORY_FS_H_
