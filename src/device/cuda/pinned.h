// Page-locked host memory, which the card reads and writes by itself.
//
// Locking pages takes longer than most copies, so freed blocks are kept and handed out again: an
// rn_cache_alloc_t (base/cache_alloc.h) whose blocks come from a source, cuMemHostAlloc or a test.
// Any thread may call.
//
// A block must not be freed before the copies that use it have ended: its bytes are written at
// once, by the cache or by the next owner.
#ifndef RUNNEL_DEVICE_CUDA_PINNED_H_
#define RUNNEL_DEVICE_CUDA_PINNED_H_

#include "base/cache_alloc.h"

typedef struct rn_cuda_pinned_t rn_cuda_pinned_t;

// Where memory comes from. Its functions may be called by several threads at once, and must work
// until the last block is freed.
typedef struct rn_cuda_pinned_source_t {
  void* self;
  // |size| bytes, at least 16-byte aligned; NULL if there is no more.
  void* (*alloc)(void* self, size_t size);
  void (*free)(void* self, void* start, size_t size);
  size_t limit;  // most bytes that blocks may have together; 0 if there is no limit
} rn_cuda_pinned_source_t;

// Keeps at most |max_cached_bytes| idle. The caller owns |*out|.
RN_MUST_USE rn_status_t rn_cuda_pinned_create(rn_cuda_pinned_source_t source,
                                              size_t max_cached_bytes, rn_allocator_t allocator,
                                              rn_cuda_pinned_t** out);
// Gives idle blocks back to the source. Those in use stay valid; the manager is freed with the last
// of them, and its allocator works until then. NULL is fine.
void rn_cuda_pinned_release(rn_cuda_pinned_t* pinned);

// Blocks are aligned to RN_ALIGN. When the source has no more or its limit is reached, idle blocks
// are given back and it is asked again.
rn_allocator_t rn_cuda_pinned_allocator(rn_cuda_pinned_t* pinned);
// Gives all idle blocks back to the source.
void rn_cuda_pinned_trim(rn_cuda_pinned_t* pinned);
// Blocks smaller than 4 KiB count as 4 KiB.
void rn_cuda_pinned_stats(rn_cuda_pinned_t* pinned, rn_cache_stats_t* out);

#endif  // RUNNEL_DEVICE_CUDA_PINNED_H_
