// The system allocator, the counting one, and the checked calls over any allocator.
#include "base/alloc.h"

#include <stdatomic.h>

#include "base/pages.h"

// Blocks of up to this size come from glibc's caches per thread; its calloc passes them by (before
// 2.41), which made a gRPC server spend a fifth of its time there.
#define CACHED_MOST 1032

static void* system_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  (void)self, (void)old_size;
  void* start = NULL;
  if (!ptr && new_size >= RN_PAGES_MANY) {
    if (posix_memalign(&start, RN_PAGE_LARGE, new_size)) return NULL;
    rn_pages_be_large(start, new_size);
    return start;
  }
  if (new_size) return realloc(ptr, new_size);  // realloc(NULL, n) is malloc(n)
  free(ptr);
  return NULL;
}

rn_allocator_t rn_allocator_system(void) { return (rn_allocator_t){.fn = system_realloc}; }

// Written only by tests that run alone; see the header.
static rn_allocator_t default_for_testing;

rn_allocator_t rn_allocator_default(void) {
  return default_for_testing.fn ? default_for_testing : rn_allocator_system();
}

void rn_allocator_set_default_for_testing(rn_allocator_t allocator) {
  default_for_testing = allocator;
}

static void* counting_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  rn_counting_allocator_t* counting = self;
  if (new_size) {
    int64_t nth = atomic_fetch_add(&counting->allocations, 1) + 1;
    if (counting->fail_at > 0 &&
        (counting->fail_all_after ? nth >= counting->fail_at : nth == counting->fail_at)) {
      return NULL;
    }
  } else if (!ptr) {
    return NULL;
  }
  void* result = counting->base.fn(counting->base.self, ptr, old_size, new_size);
  if (new_size && !result) return NULL;
  atomic_fetch_add(&counting->live_blocks, (new_size ? 1 : 0) - (ptr ? 1 : 0));
  int64_t change = (int64_t)new_size - (ptr ? (int64_t)old_size : 0);
  int64_t live = atomic_fetch_add(&counting->live_bytes, change) + change;
  int64_t peak = atomic_load(&counting->peak_bytes);
  while (live > peak && !atomic_compare_exchange_weak(&counting->peak_bytes, &peak, live)) {
  }
  return result;
}

rn_allocator_t rn_allocator_counting(rn_counting_allocator_t* counting) {
  return (rn_allocator_t){.fn = counting_realloc, .self = counting};
}

rn_status_t rn_alloc(rn_allocator_t allocator, size_t size, void** out) {
  *out = allocator.fn(allocator.self, NULL, 0, size ? size : 1);
  return *out ? RN_OK : rn_out_of_memory();
}

rn_status_t rn_alloc_zeroed(rn_allocator_t allocator, size_t size, void** out) {
  if (size == 0) size = 1;
  if (allocator.fn == system_realloc && size > CACHED_MOST) {
    *out = calloc(1, size);  // fresh pages are zero already; calloc knows which ones are
    if (size >= RN_PAGES_MANY) rn_pages_be_large(*out, size);
  } else {
    *out = allocator.fn(allocator.self, NULL, 0, size);
    if (*out) memset(*out, 0, size);
  }
  return *out ? RN_OK : rn_out_of_memory();
}

rn_status_t rn_alloc_array(rn_allocator_t allocator, size_t count, size_t size, void** out) {
  size_t bytes;
  if (!rn_mul_ok(count, size, &bytes)) {
    *out = NULL;
    return rn_out_of_memory();
  }
  return rn_alloc_zeroed(allocator, bytes, out);
}

void rn_free(rn_allocator_t allocator, void* ptr, size_t size) {
  if (ptr) allocator.fn(allocator.self, ptr, size ? size : 1, 0);
}
