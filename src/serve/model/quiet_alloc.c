// See quiet_alloc.h.
#include "serve/model/quiet_alloc.h"

#include <stdatomic.h>

#include "base/pages.h"
#include "base/sync.h"
#include "base/vec.h"

// malloc maps every block above this size on its own, and so ends the mapping when it is freed.
#define MAPPED_MIN ((size_t)32 << 20)

typedef struct quiet_block_t {
  void* start;
  size_t size;
} quiet_block_t;

struct rn_quiet_alloc_t {
  rn_allocator_t base;
  _Atomic size_t refs;  // the owner's and one per block
  _Atomic bool is_loading;
  rn_mutex_t mutex;              // guards what follows
  RN_VEC(quiet_block_t) blocks;  // that have small pages for now
};

rn_status_t rn_quiet_alloc_create(rn_allocator_t base, bool is_loading, rn_quiet_alloc_t** out) {
  RN_RETURN_IF_ERROR(RN_NEW(base, out));
  (*out)->base = base;
  (*out)->is_loading = is_loading;
  atomic_init(&(*out)->refs, 1);
  rn_mutex_init(&(*out)->mutex);
  return RN_OK;
}

void rn_quiet_alloc_release(rn_quiet_alloc_t* quiet) {
  if (!quiet || atomic_fetch_sub_explicit(&quiet->refs, 1, memory_order_acq_rel) != 1) return;
  rn_allocator_t base = quiet->base;
  rn_vec_free(&quiet->blocks, base);
  rn_mutex_destroy(&quiet->mutex);
  RN_FREE(base, quiet);
}

// A block that cannot be remembered keeps small pages.
static void note(rn_quiet_alloc_t* quiet, void* start, size_t size) {
  if (!start || size < RN_PAGES_MANY || !quiet->is_loading) return;
  rn_mutex_lock(&quiet->mutex);
  if (quiet->is_loading) {
    rn_pages_be_small(start, size);
    rn_status_free(rn_vec_push(&quiet->blocks, quiet->base, (quiet_block_t){start, size}));
  }
  rn_mutex_unlock(&quiet->mutex);
}

// True if the block had small pages.
static bool forget(rn_quiet_alloc_t* quiet, const void* start, size_t size) {
  bool is_found = false;
  if (!start || size < RN_PAGES_MANY || !quiet->is_loading) return false;
  rn_mutex_lock(&quiet->mutex);
  for (size_t i = 0; i < quiet->blocks.count && !is_found; ++i) {
    is_found = quiet->blocks.items[i].start == start;
    if (is_found) quiet->blocks.items[i] = quiet->blocks.items[--quiet->blocks.count];
  }
  rn_mutex_unlock(&quiet->mutex);
  return is_found;
}

static void* quiet_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  rn_quiet_alloc_t* quiet = self;
  const rn_allocator_t* base = &quiet->base;
  if (!ptr) {
    void* start = base->fn(base->self, NULL, 0, new_size);
    if (start) atomic_fetch_add_explicit(&quiet->refs, 1, memory_order_relaxed);
    note(quiet, start, new_size);
    return start;
  }
  // The next owner of the pages may want large ones.
  if (forget(quiet, ptr, old_size)) rn_pages_be_large(ptr, old_size);
  if (new_size) {
    void* moved = base->fn(base->self, ptr, old_size, new_size);
    note(quiet, moved ? moved : ptr, moved ? new_size : old_size);
    return moved;
  }
  if (old_size > MAPPED_MIN) rn_pages_drop(ptr, old_size);
  base->fn(base->self, ptr, old_size, 0);
  rn_quiet_alloc_release(quiet);
  return NULL;
}

rn_allocator_t rn_quiet_allocator(rn_quiet_alloc_t* quiet) {
  return (rn_allocator_t){.fn = quiet_realloc, .self = quiet};
}

void rn_quiet_alloc_settle(rn_quiet_alloc_t* quiet) {
  rn_mutex_lock(&quiet->mutex);
  quiet->is_loading = false;
  for (size_t i = 0; i < quiet->blocks.count; ++i)
    rn_pages_be_large(quiet->blocks.items[i].start, quiet->blocks.items[i].size);
  rn_vec_free(&quiet->blocks, quiet->base);
  rn_mutex_unlock(&quiet->mutex);
}
