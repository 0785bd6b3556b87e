// See pages.h.
#include "base/pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

// The smallest pages there are. Of larger ones, some are touched more than once.
#define SMALL_PAGE ((size_t)4096)

// Cuts the block down to whole pages of |page| bytes; false if there is none in it.
static bool cut(void** inout_start, size_t* inout_size, size_t page) {
  uintptr_t begin = ((uintptr_t)*inout_start + page - 1) & ~(uintptr_t)(page - 1);
  uintptr_t end = ((uintptr_t)*inout_start + *inout_size) & ~(uintptr_t)(page - 1);
  if (!*inout_start || begin >= end) return false;
  *inout_start = (void*)begin;
  *inout_size = end - begin;
  return true;
}

static void advise(void* start, size_t size, int advice) {
  if (cut(&start, &size, RN_PAGE_LARGE)) madvise(start, size, advice);
}

void rn_pages_be_large(void* start, size_t size) {
#ifdef MADV_HUGEPAGE
  advise(start, size, MADV_HUGEPAGE);
#else
  (void)start, (void)size;
#endif
}

void rn_pages_be_small(void* start, size_t size) {
#ifdef MADV_NOHUGEPAGE
  advise(start, size, MADV_NOHUGEPAGE);
#else
  (void)start, (void)size;
#endif
}

void rn_pages_touch(void* start, size_t size) {
  // A write that changes nothing: a read would get a page of zeros that is replaced later.
  char* bytes = start;
  for (size_t at = 0; at < size; at += SMALL_PAGE)
    __atomic_fetch_or(&bytes[at], 0, __ATOMIC_RELAXED);
  if (size) __atomic_fetch_or(&bytes[size - 1], 0, __ATOMIC_RELAXED);
}

void rn_pages_drop(void* start, size_t size) {
  if (!cut(&start, &size, SMALL_PAGE)) return;
  char *at = start, *end = at + size;
  while (at < end) {  // to the next border of a large page, which would have to be split
    size_t piece = RN_PAGE_LARGE - (uintptr_t)at % RN_PAGE_LARGE;
    if (piece > (size_t)(end - at)) piece = (size_t)(end - at);
    madvise(at, piece, MADV_DONTNEED);
    at += piece;
  }
}
