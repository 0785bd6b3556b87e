// A file of a snapshot, in each of the formats that TensorFlow has had. Their number is the version
// in the snapshot's metadata:
//
//   2  TFRecords, a TensorProto per component
//   1  a record per element: its length (8 bytes, little-endian), a SnapshotRecord message. Of
//      SNAPPY files two records: sizes and shapes, and the bytes of all components as one block.
//   0  as 1, but SNAPPY compresses the file in blocks. Only read.
//
// Readers and writers belong to one thread at a time. Errors name the path.
#ifndef RUNNEL_IO_SNAPSHOT_FILE_H_
#define RUNNEL_IO_SNAPSHOT_FILE_H_

#include "io/input.h"

typedef struct rn_snapshot_file_t rn_snapshot_file_t;

// INVALID_ARGUMENT for other versions.
RN_MUST_USE rn_status_t rn_snapshot_file_open(const rn_env_t* env, const char* path,
                                              rn_compression_t compression, int64_t version,
                                              rn_snapshot_file_t** out);
void rn_snapshot_file_close(rn_snapshot_file_t* file);  // NULL is fine
// Reads the next element of |count| tensors into |row|, which is unset; it stays unset after the
// last element. DATA_LOSS if the file is damaged or holds other types.
RN_MUST_USE rn_status_t rn_snapshot_file_next(rn_snapshot_file_t* file, int32_t count,
                                              const rn_dtype_t* types, rn_allocator_t memory,
                                              rn_tensor_t* row, bool* out_end);
// Skips an element.
RN_MUST_USE rn_status_t rn_snapshot_file_skip(rn_snapshot_file_t* file, int32_t count,
                                              bool* out_end);

// Writes a file of version 1.
typedef struct rn_snapshot_file_writer_t rn_snapshot_file_writer_t;
RN_MUST_USE rn_status_t rn_snapshot_file_writer_open(const rn_env_t* env, const char* path,
                                                     rn_compression_t compression,
                                                     rn_snapshot_file_writer_t** out);
RN_MUST_USE rn_status_t rn_snapshot_file_writer_put(rn_snapshot_file_writer_t* writer,
                                                    const rn_tensor_t* row, int32_t count);
// Writes everything to the file, so that its size is known.
RN_MUST_USE rn_status_t rn_snapshot_file_writer_flush(rn_snapshot_file_writer_t* writer);
// Everything is on disk when this returns. Frees |writer| even on failure; NULL is fine.
RN_MUST_USE rn_status_t rn_snapshot_file_writer_close(rn_snapshot_file_writer_t* writer);
// Frees |writer| and leaves its file incomplete; NULL is fine.
void rn_snapshot_file_writer_drop(rn_snapshot_file_writer_t* writer);

#endif  // RUNNEL_IO_SNAPSHOT_FILE_H_
