// Shared by src/io/bundle_*.c; private to them.
#ifndef RUNNEL_IO_BUNDLE_INTERNAL_H_
#define RUNNEL_IO_BUNDLE_INTERNAL_H_

#include "base/sync.h"
#include "io/bundle.h"
#include "io/table.h"
#include "proto/tensor_bundle.pb.h"

#define RN_BUNDLE_VERSION 1

typedef struct rn_bundle_shard_t {
  int32_t number;
  rn_file_t* file;  // Owned
  int64_t size;
} rn_bundle_shard_t;

struct rn_bundle_reader_t {
  const rn_env_t* env;  // Borrowed
  rn_arena_t arena;
  const char* prefix;
  int32_t shards;
  RN_VEC(rn_bundle_entry_t) entries;       // sorted by name, including slices
  RN_VEC(const rn_bundle_entry_t*) named;  // without slices
  rn_mutex_t mutex;
  RN_VEC(rn_bundle_shard_t)
  open;  // guarded by the mutex; files stay open until the reader is closed
};

// The entry with |key|, which may be a slice; NULL if there is none.
const rn_bundle_entry_t* rn_bundle_find_any(const rn_bundle_reader_t* reader, rn_str_t key);
// The data file |number|, opened on first use.
RN_MUST_USE rn_status_t rn_bundle_shard(rn_bundle_reader_t* reader, int32_t number,
                                        rn_bundle_shard_t* out);
// The entry of slice |i| of |entry|; DATA_LOSS if none matches.
RN_MUST_USE rn_status_t rn_bundle_part(const rn_bundle_reader_t* reader,
                                       const rn_bundle_entry_t* entry, size_t i,
                                       const rn_bundle_entry_t** out);
// Adds the length of a string to a checksum, as a fixed-size number.
uint32_t rn_bundle_length_checksum(uint32_t checksum, uint64_t length);

// Appends an entry to |out|, encoded as in the index.
RN_MUST_USE rn_status_t rn_bundle_encode_entry(const rn_bundle_entry_t* entry, rn_strbuf_t* out);
// A data file and its name in the checkpoint.
typedef struct rn_bundle_move_t {
  const char *from, *to;
} rn_bundle_move_t;
// Writes the index of |entries|, which are sorted by name, to a temporary file and syncs it. Then
// renames the data files, which are already synced, syncs the directory, renames the index and
// syncs the directory again. On a failure before the index is renamed, renames the data files back.
RN_MUST_USE rn_status_t rn_bundle_commit(const rn_env_t* env, const char* prefix, int32_t shards,
                                         const rn_bundle_entry_t* const* entries, size_t count,
                                         const rn_bundle_move_t* moves, size_t move_count);

// The data files of the current checkpoint under a prefix, which must stay until the new one is
// complete.
typedef struct rn_bundle_kept_t {
  rn_names_t names;
  int32_t first;  // numbers of the new data files: first, first + 1, … of first + count
} rn_bundle_kept_t;
RN_MUST_USE rn_status_t rn_bundle_keep(const rn_env_t* env, const char* prefix, int32_t count,
                                       rn_bundle_kept_t* out);
// Removes the files of the old checkpoint after the new one is in place.
void rn_bundle_drop(const rn_env_t* env, const rn_bundle_kept_t* kept);
void rn_bundle_kept_clear(rn_bundle_kept_t* kept);

// Makes the directory of |prefix| and its parents if needed, and syncs the new directory entries.
RN_MUST_USE rn_status_t rn_bundle_make_directory(const rn_env_t* env, const char* prefix);
RN_MUST_USE rn_status_t rn_bundle_sync_directory(const rn_env_t* env, const char* prefix);

#endif  // RUNNEL_IO_BUNDLE_INTERNAL_H_
