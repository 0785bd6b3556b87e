// Input: the bytes of a file from front to back, decompressed on the way, through one buffer.
//
// An input belongs to one thread at a time. Memory follows what was really read, not what the bytes
// claim: asking for more than the file holds costs at most twice what it holds. Of a compressed
// file no more may be asked for at once than rn_unpacked_limit allows (io/inflate.h). Errors carry
// the path and the position.
#ifndef RUNNEL_IO_INPUT_H_
#define RUNNEL_IO_INPUT_H_

#include "base/fs.h"
#include "base/pool.h"
#include "tensor/tensor.h"

typedef enum rn_compression_t {
  RN_COMPRESSION_NONE,
  RN_COMPRESSION_ZLIB,    // RFC 1950; what follows the first stream is ignored
  RN_COMPRESSION_GZIP,    // RFC 1952; several members are one stream
  RN_COMPRESSION_SNAPPY,  // blocks, each behind its size: files of records alone
} rn_compression_t;

// "", "ZLIB" or "GZIP"; false for anything else.
bool rn_compression_from_name(rn_str_t name, rn_compression_t* out);
// Those, or "SNAPPY": what files of records may be.
bool rn_record_compression_from_name(rn_str_t name, rn_compression_t* out);

typedef struct rn_input_t rn_input_t;

// Opens |path|. |buffer_size| is how much is read at a time; 0: 256 KiB.
RN_MUST_USE rn_status_t rn_input_open(const rn_env_t* env, const char* path,
                                      rn_compression_t compression, size_t buffer_size,
                                      rn_input_t** out);
void rn_input_close(rn_input_t* input);  // NULL is fine

// Shows what comes next, |wanted| bytes or more; fewer only where the stream ends. Takes nothing.
// The view lasts until the next call of anything but rn_input_take.
RN_MUST_USE rn_status_t rn_input_peek(rn_input_t* input, size_t wanted, rn_str_t* out);
// Takes |size| bytes, which a peek must have shown.
void rn_input_take(rn_input_t* input, size_t size);
// Takes up to |size| bytes unseen; fewer only where the stream ends.
RN_MUST_USE rn_status_t rn_input_skip(rn_input_t* input, uint64_t size, uint64_t* out_skipped);
// The next line, without its \n; |*out_end| if there is none. A \r before it is taken off too if
// |strips_return|. The last line may lack its \n. The view lasts as that of a peek.
RN_MUST_USE rn_status_t rn_input_line(rn_input_t* input, bool strips_return, rn_str_t* out,
                                      bool* out_end);

// For whoever keeps what was shown: from now on the bytes lie in counted blocks from |memory|, and
// are left alone as long as somebody holds the block. To be called before anything was read.
void rn_input_share(rn_input_t* input, rn_allocator_t memory);
// The block that the bytes shown last lie in, borrowed; NULL if they are not shared.
rn_buffer_t* rn_input_block(const rn_input_t* input);

// Reads a plain file ahead with the help of |pool|, which must outlive the input, once reading has
// gone on from one piece to the next. What wants more than a piece at once ends that.
void rn_input_read_ahead(rn_input_t* input, rn_pool_t* pool);

// Bytes taken so far, after decompression.
uint64_t rn_input_position(const rn_input_t* input);
// Goes to |position| (after decompression); OUT_OF_RANGE if the stream ends before it. Going back
// in a compressed stream starts over; in a pipe it is refused.
RN_MUST_USE rn_status_t rn_input_seek(rn_input_t* input, uint64_t position);
// Whether |size| bytes can still come, as far as is known without reading: false is sure.
bool rn_input_may_hold(const rn_input_t* input, uint64_t size);
const char* rn_input_path(const rn_input_t* input);

#endif  // RUNNEL_IO_INPUT_H_
