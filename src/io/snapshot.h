// Snapshots: the elements of a dataset in files, as TensorFlow's dataset.save and dataset.snapshot
// leave them. doc/formats.md has the layout.
//
// Writers and readers belong to one thread at a time. Errors carry the path.
#ifndef RUNNEL_IO_SNAPSHOT_H_
#define RUNNEL_IO_SNAPSHOT_H_

#include "io/record.h"

// What the file "snapshot.metadata" of a folder says. Texts lie in |text|.
typedef struct rn_snapshot_meta_t {
  rn_strbuf_t text;     // of the file; to be initialised by the caller, and cleared
  rn_str_t graph_hash;  // of what was kept; empty where it was simply saved
  rn_str_t run;         // the folder of the files
  int64_t created_us;   // since 1970
  int64_t version;      // 2 is what is written here
  int64_t element_count;
  bool is_final;  // all elements are there
} rn_snapshot_meta_t;

// NOT_FOUND if there is none; DATA_LOSS if it is no such message, or names a run outside of
// |folder|.
RN_MUST_USE rn_status_t rn_snapshot_meta_read(const rn_env_t* env, const char* folder,
                                              rn_snapshot_meta_t* out);
// Replaces it; on disk when this returns. |types| are those of an element.
RN_MUST_USE rn_status_t rn_snapshot_meta_write(const rn_env_t* env, const char* folder,
                                               const rn_snapshot_meta_t* meta, int32_t type_count,
                                               const rn_dtype_t* types);

// Elements to the shards of a run.
typedef struct rn_snapshot_writer_t rn_snapshot_writer_t;
// |part| numbers the files within each shard: a writer that goes on where another stopped has the
// next one.
RN_MUST_USE rn_status_t rn_snapshot_writer_open(const rn_env_t* env, const char* run, int64_t part,
                                                rn_compression_t compression,
                                                rn_snapshot_writer_t** out);
// A file is made for each shard that was not seen before.
RN_MUST_USE rn_status_t rn_snapshot_writer_put(rn_snapshot_writer_t* writer, int64_t shard,
                                               const rn_tensor_t* row, int32_t count);
// All of it is on disk when this returns. Frees |writer| in any case; NULL is fine.
RN_MUST_USE rn_status_t rn_snapshot_writer_close(rn_snapshot_writer_t* writer);
// Frees |writer| and leaves its files as they are, not whole.
void rn_snapshot_writer_drop(rn_snapshot_writer_t* writer);
// Removes the files of |part| and later ones: what was written after a state was saved.
RN_MUST_USE rn_status_t rn_snapshot_cut(const rn_env_t* env, const char* run, int64_t part);

// Adds the paths of the shards of |run|, sorted.
RN_MUST_USE rn_status_t rn_snapshot_shards(const rn_env_t* env, const char* run, rn_names_t* names);

// The elements of one shard, file by file.
typedef struct rn_snapshot_reader_t rn_snapshot_reader_t;
RN_MUST_USE rn_status_t rn_snapshot_reader_open(const rn_env_t* env, const char* shard,
                                                rn_compression_t compression,
                                                rn_snapshot_reader_t** out);
void rn_snapshot_reader_close(rn_snapshot_reader_t* reader);  // NULL is fine
// The next element to |row|, which is unset, and stays so behind the last.
RN_MUST_USE rn_status_t rn_snapshot_reader_next(rn_snapshot_reader_t* reader, int32_t count,
                                                const rn_dtype_t* types, rn_allocator_t memory,
                                                rn_tensor_t* row, bool* out_end);
// Passes over |elements| of |count| tensors each; fewer where they end.
RN_MUST_USE rn_status_t rn_snapshot_reader_skip(rn_snapshot_reader_t* reader, int32_t count,
                                                int64_t elements);

#endif  // RUNNEL_IO_SNAPSHOT_H_
