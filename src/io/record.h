// TFRecord files: a sequence of records with checksums. doc/formats.md describes the format.
//
// Readers and writers belong to one thread at a time. Errors name the path and the offset (after
// decompression) of the record.
#ifndef RUNNEL_IO_RECORD_H_
#define RUNNEL_IO_RECORD_H_

#include "io/sink.h"

// Around each record: length (8 bytes) and its checksum (4) before it, its own checksum (4) after.
#define RN_RECORD_HEADER 12
#define RN_RECORD_FOOTER 4

typedef struct rn_record_reader_t rn_record_reader_t;

// Opens |path|. |buffer_size| is the number of bytes per read; 0 for 256 KiB.
RN_MUST_USE rn_status_t rn_record_reader_open(const rn_env_t* env, const char* path,
                                              rn_compression_t compression, size_t buffer_size,
                                              rn_record_reader_t** out);
void rn_record_reader_close(rn_record_reader_t* reader);  // NULL is fine

// Returns the next record after verifying its checksums; after the last one, sets |*out_end|. The
// view is valid until the next call. DATA_LOSS if a checksum is wrong ("corrupted record at 12") or
// the file ends within a record ("truncated record at 0"); the reader then does not advance.
RN_MUST_USE rn_status_t rn_record_reader_next(rn_record_reader_t* reader, rn_str_t* out,
                                              bool* out_end);
// The same with records that stay valid while the caller holds a reference to
// |rn_record_reader_block|; each is followed by a NUL. See rn_input_share.
void rn_record_reader_share(rn_record_reader_t* reader, rn_allocator_t memory);
rn_buffer_t* rn_record_reader_block(const rn_record_reader_t* reader);
// See rn_input_read_ahead.
void rn_record_reader_read_ahead(rn_record_reader_t* reader, rn_pool_t* pool);
// Skips up to |count| records without verifying their data.
RN_MUST_USE rn_status_t rn_record_reader_skip(rn_record_reader_t* reader, int64_t count,
                                              int64_t* out_skipped);
// The offset of the next record, and seeking to one.
uint64_t rn_record_reader_offset(const rn_record_reader_t* reader);
RN_MUST_USE rn_status_t rn_record_reader_seek(rn_record_reader_t* reader, uint64_t offset);

typedef struct rn_record_writer_t rn_record_writer_t;

// Creates or truncates |path|, unless |appends|. |options| may be NULL for all defaults.
RN_MUST_USE rn_status_t rn_record_writer_open(const rn_env_t* env, const char* path,
                                              const rn_sink_options_t* options,
                                              rn_record_writer_t** out);
// After an error the file may end within a record, and every later call fails.
RN_MUST_USE rn_status_t rn_record_writer_write(rn_record_writer_t* writer, rn_str_t record);
// Writes everything to the file, so that readers see it; with |syncs|, also to disk. Flushes a
// compressed stream so that all of it can be read.
RN_MUST_USE rn_status_t rn_record_writer_flush(rn_record_writer_t* writer, bool syncs);
// Bytes written so far by this writer, before compression.
uint64_t rn_record_writer_offset(const rn_record_writer_t* writer);
// Flushes, closes and frees |writer|, even on failure; NULL is fine.
RN_MUST_USE rn_status_t rn_record_writer_close(rn_record_writer_t* writer);

#endif  // RUNNEL_IO_RECORD_H_
