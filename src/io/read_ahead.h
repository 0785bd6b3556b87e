// Reading ahead: the pieces of a file in their order, read by a task of a pool and by whoever asks
// for them, side by side. A pool that is busy costs nothing but its help.
//
// Belongs to one thread at a time; its task is its own affair.
#ifndef RUNNEL_IO_READ_AHEAD_H_
#define RUNNEL_IO_READ_AHEAD_H_

#include "base/fs.h"
#include "base/pool.h"
#include "tensor/tensor.h"

typedef struct rn_read_ahead_t rn_read_ahead_t;

typedef struct rn_read_ahead_options_t {
  rn_allocator_t memory;  // for blocks
  rn_pool_t* pool;        // of more than one thread
  rn_file_t* file;        // one that reads at any offset
  uint64_t begin, end;    // what to read of it
  size_t piece;           // so much at a time
  size_t room;            // bytes that each block leaves free before its piece
} rn_read_ahead_options_t;

// Pool and file must outlive what is made.
RN_MUST_USE rn_status_t rn_read_ahead_create(const rn_read_ahead_options_t* options,
                                             rn_allocator_t allocator, rn_read_ahead_t** out);
// Waits for what is being read. NULL is fine.
void rn_read_ahead_destroy(rn_read_ahead_t* ahead);

// The next piece: |*out_size| bytes behind the free room of |*out_block|, which the caller owns. A
// piece is short where |end| or the file's end is; no bytes and no block behind the last one. After
// a failure nothing else can be asked.
RN_MUST_USE rn_status_t rn_read_ahead_next(rn_read_ahead_t* ahead, rn_buffer_t** out_block,
                                           size_t* out_size);

#endif  // RUNNEL_IO_READ_AHEAD_H_
