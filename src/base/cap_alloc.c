// See cap_alloc.h.
#include "base/cap_alloc.h"

#include <stdatomic.h>

struct rn_cap_alloc_t {
  rn_allocator_t base;
  size_t limit;
  _Atomic size_t bytes;
  _Atomic size_t refs;  // the owner's and one per block
};

rn_status_t rn_cap_alloc_create(rn_allocator_t base, size_t limit, rn_cap_alloc_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(base, out));
  (*out)->base = base;
  (*out)->limit = limit;
  atomic_init(&(*out)->refs, 1);
  return RN_OK;
}

void rn_cap_alloc_release(rn_cap_alloc_t* cap) {
  if (!cap || atomic_fetch_sub_explicit(&cap->refs, 1, memory_order_acq_rel) != 1) return;
  rn_allocator_t base = cap->base;
  RN_FREE(base, cap);
}

// Counts |more| bytes in, unless that passes the limit.
static bool take(rn_cap_alloc_t* cap, size_t more) {
  size_t before = atomic_fetch_add_explicit(&cap->bytes, more, memory_order_relaxed);
  if (more <= cap->limit && before <= cap->limit - more) return true;
  atomic_fetch_sub_explicit(&cap->bytes, more, memory_order_relaxed);
  return false;
}

static void* cap_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  rn_cap_alloc_t* cap = self;
  if (!ptr) old_size = 0;
  if (new_size > old_size && !take(cap, new_size - old_size)) return NULL;
  if (!ptr) atomic_fetch_add_explicit(&cap->refs, 1, memory_order_relaxed);
  void* moved = cap->base.fn(cap->base.self, ptr, old_size, new_size);
  bool is_free = ptr && new_size == 0;
  if (!moved && !is_free) {
    if (new_size > old_size)
      atomic_fetch_sub_explicit(&cap->bytes, new_size - old_size, memory_order_relaxed);
    if (!ptr) rn_cap_alloc_release(cap);
    return NULL;
  }
  if (new_size < old_size)
    atomic_fetch_sub_explicit(&cap->bytes, old_size - new_size, memory_order_relaxed);
  if (is_free) rn_cap_alloc_release(cap);
  return moved;
}

rn_allocator_t rn_cap_allocator(rn_cap_alloc_t* cap) {
  return (rn_allocator_t){.fn = cap_realloc, .self = cap};
}

size_t rn_cap_alloc_bytes(const rn_cap_alloc_t* cap) {
  return atomic_load_explicit(&((rn_cap_alloc_t*)cap)->bytes, memory_order_relaxed);
}
