// A cache over the source.
//
// The cache's own record is a block of the source, too, and the last that the cache frees. So when
// no block is left, nothing can use this manager any more, and it frees itself.
#include "device/cuda/pinned.h"

#include <stdatomic.h>

// A page, and the smallest size that the cache keeps: smaller requests are rounded up to it.
#define SMALLEST ((size_t)4096)

struct rn_cuda_pinned_t {
  rn_allocator_t allocator;
  rn_cuda_pinned_source_t source;
  rn_cache_alloc_t* cache;  // Owned
  _Atomic int64_t blocks;   // of the source
  _Atomic size_t bytes;     // in them
};

static void* take_block(rn_cuda_pinned_t* pinned, size_t size) {
  size_t limit = pinned->source.limit;
  size_t before = atomic_fetch_add_explicit(&pinned->bytes, size, memory_order_relaxed);
  void* start = NULL;
  if (!limit || (before <= limit && size <= limit - before))
    start = pinned->source.alloc(pinned->source.self, size);
  if (start)
    atomic_fetch_add_explicit(&pinned->blocks, 1, memory_order_relaxed);
  else
    atomic_fetch_sub_explicit(&pinned->bytes, size, memory_order_relaxed);
  return start;
}

// The cache's base. It never moves a block.
static void* source_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  rn_cuda_pinned_t* pinned = self;
  if (!ptr) return take_block(pinned, new_size);
  pinned->source.free(pinned->source.self, ptr, old_size);
  atomic_fetch_sub_explicit(&pinned->bytes, old_size, memory_order_relaxed);
  if (atomic_fetch_sub_explicit(&pinned->blocks, 1, memory_order_acq_rel) == 1)
    RN_FREE(pinned->allocator, pinned);
  return NULL;
}

static size_t at_least_smallest(size_t size) { return size < SMALLEST ? SMALLEST : size; }

static void* pinned_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  rn_allocator_t cached = rn_cache_allocator(((rn_cuda_pinned_t*)self)->cache);
  return cached.fn(cached.self, ptr, ptr ? at_least_smallest(old_size) : 0,
                   new_size ? at_least_smallest(new_size) : 0);
}

rn_status_t rn_cuda_pinned_create(rn_cuda_pinned_source_t source, size_t max_cached_bytes,
                                  rn_allocator_t allocator, rn_cuda_pinned_t** out) {
  *out = NULL;
  rn_cuda_pinned_t* pinned = NULL;
  RN_RETURN_IF_ERROR(RN_NEW(allocator, &pinned));
  pinned->allocator = allocator;
  pinned->source = source;
  rn_allocator_t base = {.fn = source_realloc, .self = pinned};
  rn_status_t status = rn_cache_alloc_create(base, max_cached_bytes, &pinned->cache);
  if (!rn_ok(status)) {
    RN_FREE(allocator, pinned);
    return status;
  }
  *out = pinned;
  return RN_OK;
}

void rn_cuda_pinned_release(rn_cuda_pinned_t* pinned) {
  if (pinned) rn_cache_alloc_release(pinned->cache);
}

rn_allocator_t rn_cuda_pinned_allocator(rn_cuda_pinned_t* pinned) {
  return (rn_allocator_t){.fn = pinned_realloc, .self = pinned};
}

void rn_cuda_pinned_trim(rn_cuda_pinned_t* pinned) { rn_cache_alloc_trim(pinned->cache); }

void rn_cuda_pinned_stats(rn_cuda_pinned_t* pinned, rn_cache_stats_t* out) {
  rn_cache_alloc_stats(pinned->cache, out);
}
