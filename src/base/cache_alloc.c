// The caching allocator.
//
// A block of |size| bytes is a base block with the bytes at an RN_ALIGN boundary in it; the byte
// before them says how far they are from its start. Blocks of at least CACHED_MIN bytes are rounded
// up to one of four sizes per power of two. Freed ones are kept in a list per size, linked through
// their own bytes.
//
// Before a large block comes from the base, idle large blocks of other sizes go back to it, as many
// bytes as it takes: what initialization needed does not stay beside what steps need. A size that
// is then missed is kept from there on, so that steps which repeat allocate nothing after a few
// turns.
#include "base/cache_alloc.h"

#include <stdatomic.h>

#include "base/sync.h"

// The smallest block worth keeping: below it malloc's own caches are as quick.
#define CACHED_MIN ((size_t)4096)
// Added to every cached size: a tensor's buffer has its record before the bytes, which must not
// push a round size into the next class.
#define SLACK (2 * (size_t)RN_ALIGN)
#define CLASSES 144  // 4 for each power of two from 2^12 to 2^48
// Blocks of this size and more make room for each other. The first of their classes.
#define LARGE_CLASS 32  // 2^20

// While the allocator has an owner, this is part of |held|.
#define OWNED (INT64_C(1) << 62)

// Idle blocks are poisoned, so that AddressSanitizer reports uses after free.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(HAS_ASAN)
#include <sanitizer/asan_interface.h>
#define POISON(bytes, size) __asan_poison_memory_region((bytes), (size))
#define UNPOISON(bytes, size) __asan_unpoison_memory_region((bytes), (size))
#else
#define POISON(bytes, size) ((void)0)
#define UNPOISON(bytes, size) ((void)0)
#endif

typedef struct idle_t {
  struct idle_t* next;
} idle_t;

typedef struct size_class_t {
  _Alignas(RN_ALIGN) rn_mutex_t mutex;
  idle_t* idle;  // Owned; the last freed first, for its lines may still be in the cache
  // A block made room for one of another size; one was asked for after that.
  _Atomic bool made_room, is_missed;
} size_class_t;

struct rn_cache_alloc_t {
  rn_allocator_t base;
  size_t max_cached;
  int64_t limit;  // of bytes in use
  void* block;    // Owned: what this struct, aligned, lies in
  _Atomic bool is_released;

  // Bytes in use, and OWNED until the release. What brings it to 0, the release or the end of the
  // last block, frees the allocator. Every block counts at least one byte.
  _Alignas(RN_ALIGN) _Atomic int64_t held;
  _Atomic int64_t peak;
  _Atomic int64_t small_allocations;
  _Atomic int64_t refusals;
  _Alignas(RN_ALIGN) _Atomic int64_t large_allocations;  // of CACHED_MIN bytes and more
  _Atomic int64_t large_misses;
  _Atomic size_t cached;    // bytes in the lists; above |max_cached| only between add and evict
  _Atomic uint32_t victim;  // the class where the next eviction begins
  size_class_t classes[CLASSES];
};

static size_t class_size(uint32_t index) {
  return (((size_t)4 + index % 4) << (index / 4 + 10)) + SLACK;
}

// The smallest class whose blocks hold |size| >= CACHED_MIN bytes; CLASSES if none does.
static uint32_t class_of(size_t size) {
  size_t last = size - SLACK - 1;
  if (last < CACHED_MIN) return 0;
  uint32_t power = 63 - (uint32_t)__builtin_clzll(last);
  uint32_t index = (power - 12) * 4 + (uint32_t)(last >> (power - 2)) - 4 + 1;
  return index < CLASSES ? index : CLASSES;
}

// |size| aligned bytes from the base.
static void* base_take(rn_cache_alloc_t* cache, size_t size) {
  size_t whole;
  if (!rn_add_ok(size, RN_ALIGN, &whole)) return NULL;
  uint8_t* start = cache->base.fn(cache->base.self, NULL, 0, whole);
  if (!start) return NULL;
  uint8_t* bytes = (uint8_t*)(((uintptr_t)start + RN_ALIGN) & ~(uintptr_t)(RN_ALIGN - 1));
  bytes[-1] = (uint8_t)(bytes - start);  // 16 to RN_ALIGN: base blocks are 16-byte aligned
  return bytes;
}

static void base_give(rn_cache_alloc_t* cache, void* bytes, size_t size) {
  uint8_t* start = (uint8_t*)bytes - ((uint8_t*)bytes)[-1];
  cache->base.fn(cache->base.self, start, size + RN_ALIGN, 0);
}

static void* pop_idle(rn_cache_alloc_t* cache, uint32_t index) {
  size_class_t* class = &cache->classes[index];
  rn_mutex_lock(&class->mutex);
  idle_t* idle = class->idle;
  if (idle) {
    UNPOISON(idle, class_size(index));
    class->idle = idle->next;
  }
  rn_mutex_unlock(&class->mutex);
  if (idle) atomic_fetch_sub_explicit(&cache->cached, class_size(index), memory_order_relaxed);
  return idle;
}

// Gives one idle block of the class back to the base; false if it has none.
static bool evict_from(rn_cache_alloc_t* cache, uint32_t index) {
  void* bytes = pop_idle(cache, index);
  if (bytes) base_give(cache, bytes, class_size(index));
  return bytes != NULL;
}

// Frees idle blocks until |cached| is within the bound. The classes take turns, so that sizes no
// longer used are freed eventually.
static void evict(rn_cache_alloc_t* cache) {
  uint32_t misses = 0;
  while (atomic_load_explicit(&cache->cached, memory_order_relaxed) > cache->max_cached &&
         misses < CLASSES) {
    uint32_t turn = atomic_fetch_add_explicit(&cache->victim, 1, memory_order_relaxed);
    misses = evict_from(cache, turn % CLASSES) ? 0 : misses + 1;
  }
}

// Frees idle blocks before |index|, a large class, gets a block from the base.
static void make_room(rn_cache_alloc_t* cache, uint32_t index) {
  size_class_t* class = &cache->classes[index];
  if (atomic_load_explicit(&class->made_room, memory_order_relaxed))
    atomic_store_explicit(&class->is_missed, true, memory_order_relaxed);
  if (atomic_load_explicit(&cache->cached, memory_order_relaxed) == 0) return;
  size_t freed = 0, wanted = class_size(index);
  for (uint32_t i = CLASSES; i-- > LARGE_CLASS && freed < wanted;) {
    class = &cache->classes[i];
    if (i == index || atomic_load_explicit(&class->is_missed, memory_order_relaxed)) continue;
    for (; freed < wanted && evict_from(cache, i); freed += class_size(i))
      atomic_store_explicit(&class->made_room, true, memory_order_relaxed);
  }
}

static void push_idle(rn_cache_alloc_t* cache, uint32_t index, void* bytes) {
  size_t size = class_size(index);
  bool full = atomic_fetch_add_explicit(&cache->cached, size, memory_order_relaxed) + size >
              cache->max_cached;
  size_class_t* class = &cache->classes[index];
  rn_mutex_lock(&class->mutex);
  idle_t* idle = bytes;
  idle->next = class->idle;
  class->idle = idle;
  POISON(idle, size);
  rn_mutex_unlock(&class->mutex);
  if (full) evict(cache);
}

void rn_cache_alloc_trim_some(rn_cache_alloc_t* cache, size_t bytes) {
  size_t given = 0;
  for (uint32_t i = 0; i < CLASSES && given < bytes; i++)
    while (given < bytes && evict_from(cache, i)) given += class_size(i);
}

void rn_cache_alloc_trim(rn_cache_alloc_t* cache) { rn_cache_alloc_trim_some(cache, SIZE_MAX); }

static void cache_destroy(rn_cache_alloc_t* cache) {
  rn_cache_alloc_trim(cache);
  for (uint32_t i = 0; i < CLASSES; i++) rn_mutex_destroy(&cache->classes[i].mutex);
  rn_free(cache->base, cache->block, sizeof *cache + RN_ALIGN);
}

// Subtracts |bytes| from those in use; the last block frees the allocator.
static void drop(rn_cache_alloc_t* cache, int64_t bytes) {
  if (atomic_fetch_sub_explicit(&cache->held, bytes, memory_order_acq_rel) == bytes) {
    cache_destroy(cache);
  }
}

// |size| bytes from the base; if it has none, trims the idle blocks and tries again.
static void* base_take_or_trim(rn_cache_alloc_t* cache, size_t size) {
  void* bytes = base_take(cache, size);
  if (bytes || atomic_load_explicit(&cache->cached, memory_order_relaxed) == 0) return bytes;
  rn_cache_alloc_trim(cache);
  return base_take(cache, size);
}

static void* find_or_make(rn_cache_alloc_t* cache, size_t size) {
  if (size < CACHED_MIN) {
    atomic_fetch_add_explicit(&cache->small_allocations, 1, memory_order_relaxed);
    return base_take_or_trim(cache, size);
  }
  atomic_fetch_add_explicit(&cache->large_allocations, 1, memory_order_relaxed);
  uint32_t index = class_of(size);
  void* bytes = index < CLASSES ? pop_idle(cache, index) : NULL;
  if (bytes) return bytes;
  atomic_fetch_add_explicit(&cache->large_misses, 1, memory_order_relaxed);
  if (index >= LARGE_CLASS && index < CLASSES) make_room(cache, index);
  return base_take_or_trim(cache, index < CLASSES ? class_size(index) : size);
}

// Counts |size| bytes as in use; false beyond the limit.
static bool reserve(rn_cache_alloc_t* cache, size_t size) {
  if (size > (size_t)1 << 60) return false;  // keeps |held| below OWNED
  int64_t held = (int64_t)size;
  held += atomic_fetch_add_explicit(&cache->held, held, memory_order_relaxed);
  if ((held & (OWNED - 1)) <= cache->limit) return true;
  atomic_fetch_sub_explicit(&cache->held, (int64_t)size, memory_order_relaxed);
  atomic_fetch_add_explicit(&cache->refusals, 1, memory_order_relaxed);
  return false;
}

static void* take(rn_cache_alloc_t* cache, size_t size) {
  if (!reserve(cache, size)) return NULL;
  void* bytes = find_or_make(cache, size);
  if (!bytes) {
    atomic_fetch_sub_explicit(&cache->held, (int64_t)size, memory_order_relaxed);
    return NULL;
  }
  int64_t in_use = atomic_load_explicit(&cache->held, memory_order_relaxed) & (OWNED - 1);
  int64_t peak = atomic_load_explicit(&cache->peak, memory_order_relaxed);
  while (in_use > peak &&
         !atomic_compare_exchange_weak_explicit(&cache->peak, &peak, in_use, memory_order_relaxed,
                                                memory_order_relaxed)) {
  }
  return bytes;
}

static void give(rn_cache_alloc_t* cache, void* bytes, size_t size) {
  uint32_t index = size < CACHED_MIN ? CLASSES : class_of(size);
  if (index == CLASSES) {
    base_give(cache, bytes, size);
  } else if (class_size(index) > cache->max_cached || atomic_load(&cache->is_released)) {
    base_give(cache, bytes, class_size(index));
  } else {
    push_idle(cache, index, bytes);
  }
  drop(cache, (int64_t)size);
}

static void* cache_realloc(void* self, void* ptr, size_t old_size, size_t new_size) {
  rn_cache_alloc_t* cache = self;
  if (!ptr) return new_size ? take(cache, new_size) : NULL;
  if (new_size == 0) {
    give(cache, ptr, old_size);
    return NULL;
  }
  // The old block keeps the allocator alive until the new one does.
  void* moved = take(cache, new_size);
  if (!moved) return NULL;
  memcpy(moved, ptr, old_size < new_size ? old_size : new_size);
  give(cache, ptr, old_size);
  return moved;
}

rn_status_t rn_cache_alloc_create(rn_allocator_t base, size_t max_cached_bytes,
                                  rn_cache_alloc_t** out) {
  *out = NULL;
  void* block = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_zeroed(base, sizeof(rn_cache_alloc_t) + RN_ALIGN, &block));
  rn_cache_alloc_t* cache =
      (rn_cache_alloc_t*)(((uintptr_t)block + RN_ALIGN - 1) & ~(uintptr_t)(RN_ALIGN - 1));
  cache->base = base;
  cache->max_cached = max_cached_bytes;
  cache->limit = OWNED;
  cache->block = block;
  atomic_init(&cache->held, OWNED);
  for (uint32_t i = 0; i < CLASSES; i++) rn_mutex_init(&cache->classes[i].mutex);
  *out = cache;
  return RN_OK;
}

void rn_cache_alloc_release(rn_cache_alloc_t* cache) {
  if (!cache) return;
  atomic_store(&cache->is_released, true);
  rn_cache_alloc_trim(cache);
  drop(cache, OWNED);
}

void rn_cache_alloc_set_limit(rn_cache_alloc_t* cache, size_t limit) {
  cache->limit = limit < (size_t)OWNED ? (int64_t)limit : OWNED;
}

rn_allocator_t rn_cache_allocator(rn_cache_alloc_t* cache) {
  return (rn_allocator_t){.fn = cache_realloc, .self = cache};
}

void rn_cache_alloc_stats(rn_cache_alloc_t* cache, rn_cache_stats_t* out) {
  int64_t small = atomic_load(&cache->small_allocations);
  *out = (rn_cache_stats_t){
      .bytes_in_use = atomic_load(&cache->held) & (OWNED - 1),
      .peak_bytes_in_use = atomic_load(&cache->peak),
      .bytes_cached = (int64_t)atomic_load(&cache->cached),
      .allocations = small + atomic_load(&cache->large_allocations),
      .large = atomic_load(&cache->large_allocations),
      .misses = small + atomic_load(&cache->large_misses),
      .refusals = atomic_load(&cache->refusals),
  };
}
