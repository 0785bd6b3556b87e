// A caching allocator: keeps freed blocks by size and hands them out again.
//
// For tensor memory. The operating system zeroes every page it maps, which costs more than most
// kernels that fill it. So large blocks are cached, up to a bound; trimming frees them.
// Thread-safe; small blocks go straight to the base allocator's own caches.
#ifndef RUNNEL_BASE_CACHE_ALLOC_H_
#define RUNNEL_BASE_CACHE_ALLOC_H_

#include "base/alloc.h"

typedef struct rn_cache_alloc_t rn_cache_alloc_t;

typedef struct rn_cache_stats_t {
  int64_t bytes_in_use;
  int64_t peak_bytes_in_use;
  int64_t bytes_cached;
  int64_t allocations;
  int64_t large;     // of them, those of sizes that are cached
  int64_t misses;    // allocations that went to the base
  int64_t refusals;  // allocations beyond the limit
} rn_cache_stats_t;

// Keeps at most |max_cached_bytes| idle. Blocks are aligned to RN_ALIGN.
RN_MUST_USE rn_status_t rn_cache_alloc_create(rn_allocator_t base, size_t max_cached_bytes,
                                              rn_cache_alloc_t** out);
// Blocks of more than |limit| bytes together are refused before the base is asked. Without a call
// there is no limit. Before the first block only.
void rn_cache_alloc_set_limit(rn_cache_alloc_t* cache, size_t limit);
// Blocks may outlive the session that made the allocator: it is freed with the last of them. NULL
// is fine.
void rn_cache_alloc_release(rn_cache_alloc_t* cache);
rn_allocator_t rn_cache_allocator(rn_cache_alloc_t* cache);
// Returns all idle blocks to the base.
void rn_cache_alloc_trim(rn_cache_alloc_t* cache);
// Stops once |bytes| have been returned, because the system takes a while to free each block.
void rn_cache_alloc_trim_some(rn_cache_alloc_t* cache, size_t bytes);
void rn_cache_alloc_stats(rn_cache_alloc_t* cache, rn_cache_stats_t* out);

#endif  // RUNNEL_BASE_CACHE_ALLOC_H_
