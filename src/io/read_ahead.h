// Reads the pieces of a file in order, by a task in a pool and by the calling thread concurrently.
// If the pool is busy, the caller reads everything itself.
//
// Belongs to one thread at a time.
#ifndef RUNNEL_IO_READ_AHEAD_H_
#define RUNNEL_IO_READ_AHEAD_H_

#include "base/fs.h"
#include "base/pool.h"
#include "tensor/tensor.h"

typedef struct rn_read_ahead_t rn_read_ahead_t;

typedef struct rn_read_ahead_options_t {
  rn_allocator_t memory;  // for blocks
  rn_pool_t* pool;        // of more than one thread
  rn_file_t* file;        // must support reads at any offset
  uint64_t begin, end;    // the range to read
  size_t piece;           // bytes per read
  size_t room;            // bytes left free at the start of each block
} rn_read_ahead_options_t;

// Pool and file must outlive |*out|.
RN_MUST_USE rn_status_t rn_read_ahead_create(const rn_read_ahead_options_t* options,
                                             rn_allocator_t allocator, rn_read_ahead_t** out);
// Waits for reads in progress. NULL is fine.
void rn_read_ahead_destroy(rn_read_ahead_t* ahead);

// Returns the next piece: |*out_size| bytes after the free room of |*out_block|, which the caller
// owns. A piece is shorter at |end| or the end of the file; after the last one, there are no bytes
// and no block. After a failure only destroy may be called.
RN_MUST_USE rn_status_t rn_read_ahead_next(rn_read_ahead_t* ahead, rn_buffer_t** out_block,
                                           size_t* out_size);

#endif  // RUNNEL_IO_READ_AHEAD_H_
