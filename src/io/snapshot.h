// Snapshots: the elements of a dataset in files, in the format of TensorFlow's dataset.save and
// dataset.snapshot. doc/formats.md describes the layout.
//
// Writers and readers belong to one thread at a time. Errors name the path.
#ifndef RUNNEL_IO_SNAPSHOT_H_
#define RUNNEL_IO_SNAPSHOT_H_

#include "io/record.h"

// The content of a folder's file "snapshot.metadata". Strings point into |text|.
typedef struct rn_snapshot_meta_t {
  rn_strbuf_t text;     // bytes of the file; the caller initialises and clears it
  rn_str_t graph_hash;  // of the dataset of a snapshot; empty for dataset.save
  rn_str_t run;         // the folder of the files
  int64_t created_us;   // since 1970
  int64_t version;      // we write 2
  int64_t element_count;
  bool is_final;   // the snapshot is complete
  rn_str_t types;  // of an element, as the field packs them; not written from here
} rn_snapshot_meta_t;

// NOT_FOUND if there is none; DATA_LOSS if it is malformed or names a run outside of |folder|.
RN_MUST_USE rn_status_t rn_snapshot_meta_read(const rn_env_t* env, const char* folder,
                                              rn_snapshot_meta_t* out);
// INTERNAL, with stock's messages, unless an element has these types.
RN_MUST_USE rn_status_t rn_snapshot_meta_check_types(const rn_snapshot_meta_t* meta, int32_t count,
                                                     const rn_dtype_t* types);
// Replaces the file, which is on disk when this returns. |types| are those of an element.
RN_MUST_USE rn_status_t rn_snapshot_meta_write(const rn_env_t* env, const char* folder,
                                               const rn_snapshot_meta_t* meta, int32_t type_count,
                                               const rn_dtype_t* types);

// Writes |graph|, a serialized GraphDef, as text.
RN_MUST_USE rn_status_t rn_snapshot_graph_write(const rn_env_t* env, const char* path,
                                                rn_str_t graph);

// Writes elements to the shards of a run.
typedef struct rn_snapshot_writer_t rn_snapshot_writer_t;
// |part| numbers the files within each shard: a writer that continues another one's work uses the
// next number.
RN_MUST_USE rn_status_t rn_snapshot_writer_open(const rn_env_t* env, const char* run, int64_t part,
                                                rn_compression_t compression,
                                                rn_snapshot_writer_t** out);
// Makes a file for each new shard.
RN_MUST_USE rn_status_t rn_snapshot_writer_put(rn_snapshot_writer_t* writer, int64_t shard,
                                               const rn_tensor_t* row, int32_t count);
// Everything is on disk when this returns. Frees |writer| even on failure; NULL is fine.
RN_MUST_USE rn_status_t rn_snapshot_writer_close(rn_snapshot_writer_t* writer);
// Frees |writer| and leaves its files incomplete.
void rn_snapshot_writer_drop(rn_snapshot_writer_t* writer);
// Removes the files of |part| and later parts, which were written after a state was saved.
RN_MUST_USE rn_status_t rn_snapshot_cut(const rn_env_t* env, const char* run, int64_t part);
// The same for the files that match |pattern|.
RN_MUST_USE rn_status_t rn_snapshot_cut_files(const rn_env_t* env, const char* pattern,
                                              int64_t part);

// Adds the paths in |folder| that match |pattern|, sorted.
RN_MUST_USE rn_status_t rn_snapshot_list(const rn_env_t* env, const char* folder,
                                         const char* pattern, rn_names_t* names);
// Adds the paths of the shards of |run|, sorted.
RN_MUST_USE rn_status_t rn_snapshot_shards(const rn_env_t* env, const char* run, rn_names_t* names);

// Reads the elements of one shard, file by file. snapshot_file.h has the versions. NOT_FOUND if
// there is no first file.
typedef struct rn_snapshot_reader_t rn_snapshot_reader_t;
RN_MUST_USE rn_status_t rn_snapshot_reader_open(const rn_env_t* env, const char* shard,
                                                rn_compression_t compression, int64_t version,
                                                rn_snapshot_reader_t** out);
void rn_snapshot_reader_close(rn_snapshot_reader_t* reader);  // NULL is fine
// Reads the next element into |row|, which is unset; it stays unset after the last element.
RN_MUST_USE rn_status_t rn_snapshot_reader_next(rn_snapshot_reader_t* reader, int32_t count,
                                                const rn_dtype_t* types, rn_allocator_t memory,
                                                rn_tensor_t* row, bool* out_end);
// Skips |elements| of |count| tensors each, or as many as there are.
RN_MUST_USE rn_status_t rn_snapshot_reader_skip(rn_snapshot_reader_t* reader, int32_t count,
                                                int64_t elements);

#endif  // RUNNEL_IO_SNAPSHOT_H_
