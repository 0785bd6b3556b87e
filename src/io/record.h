// TFRecord files: a sequence of records, each between checksums. doc/formats.md has the bytes.
//
// Readers and writers belong to one thread at a time. Errors carry the path and the offset (in the
// stream after decompression) of the record.
#ifndef RUNNEL_IO_RECORD_H_
#define RUNNEL_IO_RECORD_H_

#include "io/input.h"

// Around each record: length (8 bytes) and its checksum (4) before it, its own checksum (4) after.
#define RN_RECORD_HEADER 12
#define RN_RECORD_FOOTER 4

typedef struct rn_record_reader_t rn_record_reader_t;

// Opens |path|. |buffer_size| is how much is read ahead; 0: 256 KiB.
RN_MUST_USE rn_status_t rn_record_reader_open(const rn_env_t* env, const char* path,
                                              rn_compression_t compression, size_t buffer_size,
                                              rn_record_reader_t** out);
void rn_record_reader_close(rn_record_reader_t* reader);  // NULL is fine

// The next record, checked; |*out_end| and no record behind the last one. The view lasts until the
// next call. DATA_LOSS where the file is damaged or ends within a record: "corrupted record at 12"
// for a checksum that is wrong, "truncated record at 0"; the reader then stays where it is.
RN_MUST_USE rn_status_t rn_record_reader_next(rn_record_reader_t* reader, rn_str_t* out,
                                              bool* out_end);
// The same with records that outlast the reader, for whoever holds |rn_record_reader_block|; each
// has a NUL behind it. See rn_input_share.
void rn_record_reader_share(rn_record_reader_t* reader, rn_allocator_t memory);
rn_buffer_t* rn_record_reader_block(const rn_record_reader_t* reader);
// See rn_input_read_ahead.
void rn_record_reader_read_ahead(rn_record_reader_t* reader, rn_pool_t* pool);
// Passes over up to |count| records without checking what they hold.
RN_MUST_USE rn_status_t rn_record_reader_skip(rn_record_reader_t* reader, int64_t count,
                                              int64_t* out_skipped);
// Where the next record begins, and a way back there.
uint64_t rn_record_reader_offset(const rn_record_reader_t* reader);
RN_MUST_USE rn_status_t rn_record_reader_seek(rn_record_reader_t* reader, uint64_t offset);

typedef struct rn_record_writer_options_t {
  rn_compression_t compression;
  int level;           // of compression, 1 to 9; 0: zlib's default
  bool appends;        // to what the file has; a compressed file gets a further gzip member
  size_t buffer_size;  // 0: 256 KiB
} rn_record_writer_options_t;

typedef struct rn_record_writer_t rn_record_writer_t;

// Makes or empties |path| (|options| may be NULL: all zero).
RN_MUST_USE rn_status_t rn_record_writer_open(const rn_env_t* env, const char* path,
                                              const rn_record_writer_options_t* options,
                                              rn_record_writer_t** out);
// After an error the file may end within a record, and every later call gives an error too.
RN_MUST_USE rn_status_t rn_record_writer_write(rn_record_writer_t* writer, rn_str_t record);
// Hands everything to the system, so that readers see it; with |syncs| also to the disk. A
// compressed stream is brought to a point where all of it can be read.
RN_MUST_USE rn_status_t rn_record_writer_flush(rn_record_writer_t* writer, bool syncs);
// Bytes of records written so far, before compression, not counting what was there.
uint64_t rn_record_writer_offset(const rn_record_writer_t* writer);
// Flushes, closes and frees |writer| in any case; NULL is fine.
RN_MUST_USE rn_status_t rn_record_writer_close(rn_record_writer_t* writer);

#endif  // RUNNEL_IO_RECORD_H_
