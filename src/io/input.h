// Sequential, buffered reading of a file, with optional decompression.
//
// An input belongs to one thread at a time. Memory grows with the bytes actually read: requesting
// more than the file holds costs at most twice its size. A single request to a compressed file is
// limited by rn_unpacked_limit (io/inflate.h). Errors name the path and the position.
#ifndef RUNNEL_IO_INPUT_H_
#define RUNNEL_IO_INPUT_H_

#include "base/fs.h"
#include "base/pool.h"
#include "tensor/tensor.h"

typedef enum rn_compression_t {
  RN_COMPRESSION_NONE,
  RN_COMPRESSION_ZLIB,    // RFC 1950; anything after the first stream is ignored
  RN_COMPRESSION_GZIP,    // RFC 1952; several members form one stream
  RN_COMPRESSION_SNAPPY,  // blocks, each preceded by its size; record files only
} rn_compression_t;

// "", "ZLIB" or "GZIP"; false for anything else.
bool rn_compression_from_name(rn_str_t name, rn_compression_t* out);
// The same, or "SNAPPY", for record files.
bool rn_record_compression_from_name(rn_str_t name, rn_compression_t* out);

typedef struct rn_input_t rn_input_t;

// Opens |path|. |buffer_size| is the number of bytes per read; 0 for 256 KiB.
RN_MUST_USE rn_status_t rn_input_open(const rn_env_t* env, const char* path,
                                      rn_compression_t compression, size_t buffer_size,
                                      rn_input_t** out);
void rn_input_close(rn_input_t* input);  // NULL is fine

// Returns a view of the next bytes, at least |wanted| of them unless the stream ends, without
// consuming them. The view is valid until the next call of any function but rn_input_take.
RN_MUST_USE rn_status_t rn_input_peek(rn_input_t* input, size_t wanted, rn_str_t* out);
// Consumes |size| bytes, which a peek must have returned.
void rn_input_take(rn_input_t* input, size_t size);
// Skips |size| bytes, fewer only if the stream ends.
RN_MUST_USE rn_status_t rn_input_skip(rn_input_t* input, uint64_t size, uint64_t* out_skipped);
// Returns the next line, without its \n; sets |*out_end| if there is none. If |strips_return|, also
// strips a \r before the \n. The last line may lack its \n. The view is valid as long as that of a
// peek.
RN_MUST_USE rn_status_t rn_input_line(rn_input_t* input, bool strips_return, rn_str_t* out,
                                      bool* out_end);

// For callers that keep views: puts bytes into reference-counted blocks from |memory|, which are
// not reused while the caller holds a reference. Must be called before anything is read.
void rn_input_share(rn_input_t* input, rn_allocator_t memory);
// The block that holds the bytes returned last, borrowed; NULL if blocks are not shared.
rn_buffer_t* rn_input_block(const rn_input_t* input);

// Lets |pool|, which must outlive the input, read ahead in an uncompressed file once reading is
// sequential. A request for more than one piece stops reading ahead.
void rn_input_read_ahead(rn_input_t* input, rn_pool_t* pool);

// Bytes consumed so far, after decompression.
uint64_t rn_input_position(const rn_input_t* input);
// Seeks to |position| (after decompression); OUT_OF_RANGE if the stream ends before it. Seeking
// backwards restarts a compressed stream, and fails for a pipe.
RN_MUST_USE rn_status_t rn_input_seek(rn_input_t* input, uint64_t position);
// Whether |size| more bytes are possible, without reading; false is certain, true is not.
bool rn_input_may_hold(const rn_input_t* input, uint64_t size);
const char* rn_input_path(const rn_input_t* input);

#endif  // RUNNEL_IO_INPUT_H_
