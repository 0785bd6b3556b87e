// Chunks of device memory: the free ones found by size, the allocated ones by address.
//
// Both indexes link the chunks themselves, which the caller owns, and cannot fail to insert. Not
// thread-safe.
#ifndef RUNNEL_DEVICE_CUDA_CHUNKS_H_
#define RUNNEL_DEVICE_CUDA_CHUNKS_H_

#include "base/alloc.h"

// Addresses and sizes of chunks are multiples of this.
#define RN_CUDA_CHUNK_UNIT ((size_t)256)

// Who holds a chunk: longer names are cut to fit, with their NUL.
#define RN_CUDA_HOLDER_SIZE 39

typedef struct rn_cuda_chunk_t {
  uint64_t address;
  size_t size;
  struct rn_cuda_chunk_t* before;  // neighbours in the same block, NULL at its ends
  struct rn_cuda_chunk_t* after;
  struct rn_cuda_chunk_t* smaller;  // children in the bin, if the chunk is free
  struct rn_cuda_chunk_t* larger;
  struct rn_cuda_chunk_t* next;  // in the bucket or the caller's list, if the chunk is allocated
  bool is_free;
  char holder[RN_CUDA_HOLDER_SIZE];
} rn_cuda_chunk_t;

#define RN_CUDA_BIN_WORDS 7

// Free chunks in bins, eight per power of two. A bin is a treap ordered by size, then address, so
// an operation costs the logarithm of the number of chunks of similar size. Zeroed, it is empty.
typedef struct rn_cuda_bins_t {
  uint64_t used[RN_CUDA_BIN_WORDS];  // bit i of word w: bin 64 w + i has chunks
  rn_cuda_chunk_t* roots[64 * RN_CUDA_BIN_WORDS];
} rn_cuda_bins_t;

// The chunk's address and size must not change until it is removed.
void rn_cuda_bins_insert(rn_cuda_bins_t* bins, rn_cuda_chunk_t* chunk);
void rn_cuda_bins_remove(rn_cuda_bins_t* bins, rn_cuda_chunk_t* chunk);
// Removes the smallest chunk of at least |size| bytes, among equal ones that with the lowest
// address. NULL if there is none.
rn_cuda_chunk_t* rn_cuda_bins_take(rn_cuda_bins_t* bins, size_t size);
// The size of the largest chunk, 0 if there is none.
size_t rn_cuda_bins_largest(const rn_cuda_bins_t* bins);

// Allocated chunks in a hash table.
typedef struct rn_cuda_chunk_table_t {
  rn_allocator_t allocator;
  rn_cuda_chunk_t** buckets;  // Owned; the chunks of each are a list
  size_t capacity;            // a power of two
  size_t count;
} rn_cuda_chunk_table_t;

RN_MUST_USE rn_status_t rn_cuda_chunk_table_init(rn_cuda_chunk_table_t* table,
                                                 rn_allocator_t allocator);
// Takes a zeroed table, too.
void rn_cuda_chunk_table_clear(rn_cuda_chunk_table_t* table);
// The table grows with its chunks; without host memory it gets slower instead.
void rn_cuda_chunk_table_insert(rn_cuda_chunk_table_t* table, rn_cuda_chunk_t* chunk);
// Takes the chunk at |address| out; NULL if there is none.
rn_cuda_chunk_t* rn_cuda_chunk_table_remove(rn_cuda_chunk_table_t* table, uint64_t address);

#endif  // RUNNEL_DEVICE_CUDA_CHUNKS_H_
