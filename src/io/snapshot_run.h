// The files of one run of a snapshot of the first version: RUN/00000000.snapshot, 00000001 and so
// on, in the format of snapshot_file.h.
//
// Readers and writers belong to one thread at a time. Errors name the path.
#ifndef RUNNEL_IO_SNAPSHOT_RUN_H_
#define RUNNEL_IO_SNAPSHOT_RUN_H_

#include "io/snapshot_file.h"

#define RN_SNAPSHOT_MAX_FILES 256  // that are written at a time

typedef struct rn_snapshot_run_options_t {
  rn_compression_t compression;
  int64_t files;        // that elements go to in turn, 1 to RN_SNAPSHOT_MAX_FILES
  int64_t file_size;    // bytes after which the next file begins
  int64_t next_number;  // of the first file, for a writer that continues another one's work
} rn_snapshot_run_options_t;

typedef struct rn_snapshot_run_writer_t rn_snapshot_run_writer_t;
// Makes the directory |run|.
RN_MUST_USE rn_status_t rn_snapshot_run_writer_open(const rn_env_t* env, const char* run,
                                                    const rn_snapshot_run_options_t* options,
                                                    rn_snapshot_run_writer_t** out);
RN_MUST_USE rn_status_t rn_snapshot_run_writer_put(rn_snapshot_run_writer_t* writer,
                                                   const rn_tensor_t* row, int32_t count);
// The number of the next file.
int64_t rn_snapshot_run_writer_number(const rn_snapshot_run_writer_t* writer);
// Ends the current files, which are on disk when this returns. The next element begins new ones.
RN_MUST_USE rn_status_t rn_snapshot_run_writer_pause(rn_snapshot_run_writer_t* writer);
// The same at the end of the elements. Without any there are files too.
RN_MUST_USE rn_status_t rn_snapshot_run_writer_finish(rn_snapshot_run_writer_t* writer);
// Frees |writer| and leaves its current files incomplete; NULL is fine.
void rn_snapshot_run_writer_drop(rn_snapshot_run_writer_t* writer);

typedef struct rn_snapshot_run_reader_t rn_snapshot_run_reader_t;
// NOT_FOUND if |run| has no files. |prefix| precedes their paths where they are opened.
RN_MUST_USE rn_status_t rn_snapshot_run_reader_open(const rn_env_t* env, const char* run,
                                                    rn_str_t prefix, rn_compression_t compression,
                                                    int64_t version,
                                                    rn_snapshot_run_reader_t** out);
void rn_snapshot_run_reader_close(rn_snapshot_run_reader_t* reader);  // NULL is fine
// The paths of the files, sorted. The caller may change them before the first element is read.
rn_names_t* rn_snapshot_run_reader_names(rn_snapshot_run_reader_t* reader);
// The number of elements read.
int64_t rn_snapshot_run_reader_position(const rn_snapshot_run_reader_t* reader);
// Reads the next element into |row|, which is unset; it stays unset after the last element.
RN_MUST_USE rn_status_t rn_snapshot_run_reader_next(rn_snapshot_run_reader_t* reader, int32_t count,
                                                    const rn_dtype_t* types, rn_allocator_t memory,
                                                    rn_tensor_t* row, bool* out_end);
// Skips |elements| of |count| tensors each, or as many as there are.
RN_MUST_USE rn_status_t rn_snapshot_run_reader_skip(rn_snapshot_run_reader_t* reader, int32_t count,
                                                    int64_t elements);

#endif  // RUNNEL_IO_SNAPSHOT_RUN_H_
