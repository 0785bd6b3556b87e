// What the files of the bundle share. For src/io/bundle_*.c only.
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
  RN_VEC(rn_bundle_entry_t) entries;       // slices too, by name
  RN_VEC(const rn_bundle_entry_t*) named;  // without them
  rn_mutex_t mutex;
  RN_VEC(rn_bundle_shard_t) open;  // under the mutex; each stays until the reader goes
};

// Entries with their names still to be found among |entries|.
const rn_bundle_entry_t* rn_bundle_find_any(const rn_bundle_reader_t* reader, rn_str_t key);
// The data file |number|, opened when it is first asked for.
RN_MUST_USE rn_status_t rn_bundle_shard(rn_bundle_reader_t* reader, int32_t number,
                                        rn_bundle_shard_t* out);
// The entry of slice |i| of |entry|; DATA_LOSS if there is none that fits.
RN_MUST_USE rn_status_t rn_bundle_part(const rn_bundle_reader_t* reader,
                                       const rn_bundle_entry_t* entry, size_t i,
                                       const rn_bundle_entry_t** out);
// A length of a string goes into the checksum as a fixed number.
uint32_t rn_bundle_length_checksum(uint32_t checksum, uint64_t length);

// An entry as the index holds it, encoded behind |out|.
RN_MUST_USE rn_status_t rn_bundle_encode_entry(const rn_bundle_entry_t* entry, rn_strbuf_t* out);
// A data file that takes its name in the checkpoint.
typedef struct rn_bundle_move_t {
  const char *from, *to;
} rn_bundle_move_t;
// Writes the index of |entries|, which are in the order of their names, to a temporary file, syncs
// it, moves the data files (synced already), syncs the directory, gives the index its name and
// syncs the directory again. A failure before the index has its name moves the data files back.
RN_MUST_USE rn_status_t rn_bundle_commit(const rn_env_t* env, const char* prefix, int32_t shards,
                                         const rn_bundle_entry_t* const* entries, size_t count,
                                         const rn_bundle_move_t* moves, size_t move_count);

// The data files that the checkpoint under a prefix has now, which a new one must not touch before
// it is whole.
typedef struct rn_bundle_kept_t {
  rn_names_t names;
  int32_t first;  // numbers of the new data files: first, first + 1, … of first + count
} rn_bundle_kept_t;
RN_MUST_USE rn_status_t rn_bundle_keep(const rn_env_t* env, const char* prefix, int32_t count,
                                       rn_bundle_kept_t* out);
// Removes the files of the old checkpoint, once the new one is in place.
void rn_bundle_drop(const rn_env_t* env, const rn_bundle_kept_t* kept);
void rn_bundle_kept_clear(rn_bundle_kept_t* kept);

// The directory of |prefix|, made if need be, with those above; new names of directories synced.
RN_MUST_USE rn_status_t rn_bundle_make_directory(const rn_env_t* env, const char* prefix);
RN_MUST_USE rn_status_t rn_bundle_sync_directory(const rn_env_t* env, const char* prefix);

#endif  // RUNNEL_IO_BUNDLE_INTERNAL_H_
