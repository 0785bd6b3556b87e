// The memory of a card: chunks of any size, cut from large blocks.
//
// A request gets the smallest free chunk that holds it (best fit); a freed chunk joins its free
// neighbours at once. Blocks come from a source, which is cuMemAlloc or a test. All records are in
// host memory; the manager never reads or writes what an address points to.
//
// A freed chunk may be handed out again at once, so work that uses it must have been issued before
// work of the next holder, on the same stream (see rn_cuda_memory_hold). Any thread may call; one
// mutex guards a memory, and the source is called under it.
#ifndef RUNNEL_DEVICE_CUDA_MEMORY_H_
#define RUNNEL_DEVICE_CUDA_MEMORY_H_

#include "base/str.h"

typedef struct rn_cuda_memory_t rn_cuda_memory_t;

// Where blocks come from.
typedef struct rn_cuda_memory_source_t {
  void* self;
  // A block of |size| bytes at a multiple of 256; 0 if there is no more.
  uint64_t (*alloc)(void* self, size_t size);
  // Takes a block back. Waits for work that still uses it.
  void (*free)(void* self, uint64_t address, size_t size);
} rn_cuda_memory_source_t;

typedef struct rn_cuda_memory_options_t {
  rn_cuda_memory_source_t source;
  // Size of the first block; 0 means 64 MiB. Every later block is twice as large as the one before,
  // up to 1 GiB. A request larger than that gets a block of its own, in multiples of 2 MiB. When
  // the source has no such block, smaller ones are tried.
  size_t block_size;
  size_t limit;       // most bytes that blocks may have together; 0 if there is no limit
  bool keeps_blocks;  // gives blocks without allocations back only in rn_cuda_memory_trim
  // Every allocation is a block of exactly its size, given back when it is freed: for tools that
  // watch the borders of blocks.
  bool is_exact;
} rn_cuda_memory_options_t;

// Sizes count whole chunks: requests rounded up to multiples of 256.
typedef struct rn_cuda_memory_stats_t {
  size_t bytes_in_use;
  size_t peak_bytes_in_use;
  size_t bytes_reserved;  // in blocks
  size_t bytes_limit;     // 0 if there is no limit
  size_t largest_free_chunk;
  int64_t allocations;  // since the memory was made
  int64_t live_allocations;
} rn_cuda_memory_stats_t;

// |allocator| is for the records. The caller owns |*out|.
RN_MUST_USE rn_status_t rn_cuda_memory_create(const rn_cuda_memory_options_t* options,
                                              rn_allocator_t allocator, rn_cuda_memory_t** out);
// Gives all blocks back, also those with live allocations, whose addresses are then invalid. NULL
// is fine.
void rn_cuda_memory_destroy(rn_cuda_memory_t* memory);

// An address at a multiple of 256 with |size| bytes, which the caller owns. A size of 0 gives an
// address of its own, too. 0 when the card, the limit or host memory is exhausted; before that,
// free blocks are given back (unless kept) and the source is asked again. |holder| names the
// caller, for rn_cuda_memory_describe; it is copied, up to 38 bytes, and may be NULL.
uint64_t rn_cuda_memory_alloc(rn_cuda_memory_t* memory, size_t size, const char* holder);
// Takes back what rn_cuda_memory_alloc gave. False if this memory did not give |address|; nothing
// happens then.
bool rn_cuda_memory_free(rn_cuda_memory_t* memory, uint64_t address);

// From now on, what is freed is not handed out again, until rn_cuda_memory_resume was called as
// often: work that uses it is written down, but not issued yet.
void rn_cuda_memory_hold(rn_cuda_memory_t* memory);
// Like rn_cuda_memory_free, but what is freed is handed out again at once, also meanwhile: for what
// only the work that is being written down uses.
bool rn_cuda_memory_free_now(rn_cuda_memory_t* memory, uint64_t address);
void rn_cuda_memory_resume(rn_cuda_memory_t* memory);

// Changes the limit; 0 if there is none. What is in use above it stays.
void rn_cuda_memory_set_limit(rn_cuda_memory_t* memory, size_t limit);
// Gives blocks without allocations back to the source. Returns how many bytes that were.
size_t rn_cuda_memory_trim(rn_cuda_memory_t* memory);

// Whether an allocation failed since the last call.
bool rn_cuda_memory_was_short(rn_cuda_memory_t* memory);
void rn_cuda_memory_stats(rn_cuda_memory_t* memory, rn_cuda_memory_stats_t* out);
// Appends a table of who holds how much, the largest first, and a line of totals.
void rn_cuda_memory_describe(rn_cuda_memory_t* memory, rn_strbuf_t* out);

// The memory as an allocator, whose blocks are addresses of the card: for rn_alloc and rn_free, not
// for what zeroes or copies. A block can shrink in place and cannot grow (NULL).
rn_allocator_t rn_cuda_memory_allocator(rn_cuda_memory_t* memory);

#endif  // RUNNEL_DEVICE_CUDA_MEMORY_H_
