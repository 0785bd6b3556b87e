// The caching allocator: reuse, bounds and trimming. It lives until its last block is freed.
#include "base/cache_alloc.h"

#include <criterion/criterion.h>
#include <pthread.h>

#include "../support/status.h"

static rn_counting_allocator_t counting;

static rn_cache_alloc_t* make(size_t max_cached) {
  counting = (rn_counting_allocator_t){.base = rn_allocator_system()};
  rn_cache_alloc_t* cache = NULL;
  OK(rn_cache_alloc_create(rn_allocator_counting(&counting), max_cached, &cache));
  return cache;
}

static void* get(rn_cache_alloc_t* cache, size_t size) {
  void* p = NULL;
  OK(rn_alloc(rn_cache_allocator(cache), size, &p));
  cr_assert_eq((uintptr_t)p % RN_ALIGN, 0);
  memset(p, 0xab, size);
  return p;
}

static void put(rn_cache_alloc_t* cache, void* p, size_t size) {
  rn_free(rn_cache_allocator(cache), p, size);
}

static rn_cache_stats_t stats_of(rn_cache_alloc_t* cache) {
  rn_cache_stats_t stats;
  rn_cache_alloc_stats(cache, &stats);
  return stats;
}

Test(cache_alloc, a_limit_is_kept_without_asking_the_base) {
  rn_cache_alloc_t* cache = make(64 << 20);
  rn_cache_alloc_set_limit(cache, 3 << 20);
  void* a = get(cache, 1 << 20);
  int64_t allocations = counting.allocations;
  void* p = NULL;
  FAILS(rn_alloc(rn_cache_allocator(cache), (size_t)1 << 42, &p), RESOURCE_EXHAUSTED);
  FAILS(rn_alloc(rn_cache_allocator(cache), (2 << 20) + 1, &p), RESOURCE_EXHAUSTED);
  cr_assert_eq(counting.allocations, allocations);
  cr_assert_eq(stats_of(cache).bytes_in_use, 1 << 20);
  void* b = get(cache, 2 << 20);
  put(cache, a, 1 << 20);
  put(cache, b, 2 << 20);
  // Idle blocks are not in use.
  b = get(cache, 3 << 20);
  put(cache, b, 3 << 20);
  rn_cache_alloc_release(cache);
  cr_assert_eq(counting.live_blocks, 0);
}

Test(cache_alloc, big_blocks_come_back) {
  rn_cache_alloc_t* cache = make(64 << 20);
  void* a = get(cache, 1 << 20);
  void* b = get(cache, 1 << 20);
  cr_assert_neq(a, b);
  put(cache, a, 1 << 20);
  int64_t allocations = counting.allocations;
  cr_assert_eq(get(cache, (1 << 20) - 1000), a);
  cr_assert_eq(counting.allocations, allocations);
  rn_cache_stats_t stats = stats_of(cache);
  cr_assert_eq(stats.allocations, 3);
  cr_assert_eq(stats.misses, 2);
  cr_assert_eq(stats.bytes_in_use, (2 << 20) - 1000);
  cr_assert_eq(stats.peak_bytes_in_use, 2 << 20);
  cr_assert_eq(stats.bytes_cached, 0);
  put(cache, a, (1 << 20) - 1000);
  put(cache, b, 1 << 20);
  stats = stats_of(cache);
  cr_assert_eq(stats.bytes_in_use, 0);
  cr_assert_geq(stats.bytes_cached, 2 << 20);
  rn_cache_alloc_release(cache);
  cr_assert_eq(counting.live_blocks, 0);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(cache_alloc, small_blocks_are_not_kept) {
  rn_cache_alloc_t* cache = make(64 << 20);
  int64_t blocks = counting.live_blocks;
  for (size_t size = 0; size < 4096; size = size * 3 / 2 + 1) put(cache, get(cache, size), size);
  cr_assert_eq(counting.live_blocks, blocks);
  cr_assert_eq(stats_of(cache).bytes_cached, 0);
  rn_cache_alloc_release(cache);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(cache_alloc, every_size_fits_its_class) {
  rn_cache_alloc_t* cache = make(SIZE_MAX);
  for (size_t power = 4096; power <= 4 << 20; power *= 2) {
    for (int quarter = 0; quarter < 4; quarter++) {
      size_t round = power + power / 4 * (size_t)quarter;
      for (size_t size = round - 2; size <= round + 130; size++) {
        int64_t before = counting.live_bytes;
        void* p = get(cache, size);  // writes all of it: the sanitizer watches the end
        put(cache, p, size);
        cr_assert_leq((size_t)(counting.live_bytes - before), size + size / 4 + 256);
        if (size == round - 2) size = round + 125;
      }
    }
    rn_cache_alloc_trim(cache);
  }
  rn_cache_alloc_release(cache);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(cache_alloc, a_round_tensor_with_its_record_wastes_nothing) {
  rn_cache_alloc_t* cache = make(SIZE_MAX);
  int64_t before = counting.live_bytes;
  void* p = get(cache, (1 << 20) + 112);
  cr_assert_leq(counting.live_bytes - before, (1 << 20) + 256);
  put(cache, p, (1 << 20) + 112);
  rn_cache_alloc_release(cache);
}

Test(cache_alloc, keeps_no_more_than_its_bound) {
  rn_cache_alloc_t* cache = make(1 << 20);
  enum { N = 64 };
  void* blocks[N];
  for (int i = 0; i < N; i++) blocks[i] = get(cache, 10000 + (size_t)i * 3000);
  for (int i = 0; i < N; i++) {
    put(cache, blocks[i], 10000 + (size_t)i * 3000);
    cr_assert_leq(stats_of(cache).bytes_cached, 1 << 20);
  }
  cr_assert_gt(stats_of(cache).bytes_cached, 1 << 19);
  // A block larger than the bound goes straight back and evicts nothing.
  int64_t cached = stats_of(cache).bytes_cached;
  put(cache, get(cache, 2 << 20), 2 << 20);
  cr_assert_eq(stats_of(cache).bytes_cached, cached);
  rn_cache_alloc_trim(cache);
  cr_assert_eq(stats_of(cache).bytes_cached, 0);
  cr_assert_eq(counting.live_blocks, 1);
  rn_cache_alloc_release(cache);
  cr_assert_eq(counting.live_blocks, 0);
}

Test(cache_alloc, trims_a_part) {
  rn_cache_alloc_t* cache = make(SIZE_MAX);
  enum { N = 16 };
  void* blocks[N];
  for (int i = 0; i < N; i++) blocks[i] = get(cache, 100000 + (size_t)i * 10000);
  for (int i = 0; i < N; i++) put(cache, blocks[i], 100000 + (size_t)i * 10000);
  int64_t before = stats_of(cache).bytes_cached;
  rn_cache_alloc_trim_some(cache, 300000);
  int64_t after = stats_of(cache).bytes_cached;
  cr_assert(before - after >= 300000 && before - after < 700000, "%lld",
            (long long)(before - after));
  rn_cache_alloc_release(cache);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(cache_alloc, new_sizes_push_old_ones_out) {
  rn_cache_alloc_t* cache = make(1 << 20);
  void* blocks[8];
  for (int i = 0; i < 8; i++) blocks[i] = get(cache, 120000);
  for (int i = 0; i < 8; i++) put(cache, blocks[i], 120000);
  // From here on only another size is asked for; it must not miss for ever.
  int64_t misses = 0;
  for (int n = 0; n < 50; n++) {
    misses = stats_of(cache).misses;
    for (int i = 0; i < 4; i++) blocks[i] = get(cache, 200000);
    for (int i = 0; i < 4; i++) put(cache, blocks[i], 200000);
  }
  cr_assert_eq(stats_of(cache).misses, misses);
  rn_cache_alloc_release(cache);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(cache_alloc, large_blocks_make_room) {
  rn_cache_alloc_t* cache = make((size_t)1 << 30);
  put(cache, get(cache, 40 << 20), 40 << 20);
  put(cache, get(cache, 100 << 10), 100 << 10);
  cr_assert_geq(stats_of(cache).bytes_cached, 40 << 20);
  void* other = get(cache, 24 << 20);
  cr_assert_lt(stats_of(cache).bytes_cached, 1 << 20, "the larger block is idle beside it");
  cr_assert_geq(stats_of(cache).bytes_cached, 100 << 10, "small blocks stay");
  put(cache, other, 24 << 20);
  rn_cache_alloc_release(cache);
  cr_assert_eq(counting.live_bytes, 0);
}

// What steps repeat is soon kept, though none of its sizes is in use at the same time.
Test(cache_alloc, steps_that_repeat_stop_missing) {
  static const size_t sizes[] = {3 << 20, 40 << 20, 5 << 20, 24 << 20, 2 << 20};
  rn_cache_alloc_t* cache = make((size_t)1 << 30);
  int64_t misses = 0;
  for (int step = 0; step < 8; ++step) {
    if (step == 3) misses = stats_of(cache).misses;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
      put(cache, get(cache, sizes[i]), sizes[i]);
  }
  cr_assert_eq(stats_of(cache).misses, misses);
  rn_cache_alloc_release(cache);
}

Test(cache_alloc, lives_as_long_as_its_blocks) {
  rn_cache_alloc_t* cache = make(64 << 20);
  rn_allocator_t allocator = rn_cache_allocator(cache);
  void* a = get(cache, 100);
  void* b = get(cache, 100000);
  void* c = get(cache, 50000);
  put(cache, c, 50000);
  cr_assert_eq(counting.live_blocks, 4);
  rn_cache_alloc_release(cache);
  cr_assert_eq(counting.live_blocks, 3);  // the allocator and two blocks
  rn_free(allocator, b, 100000);
  cr_assert_eq(counting.live_blocks, 2);
  rn_free(allocator, a, 100);
  cr_assert_eq(counting.live_blocks, 0);
  cr_assert_eq(counting.live_bytes, 0);
  rn_cache_alloc_release(NULL);
}

Test(cache_alloc, moves_keep_the_bytes) {
  rn_cache_alloc_t* cache = make(64 << 20);
  rn_allocator_t allocator = rn_cache_allocator(cache);
  size_t sizes[] = {1, 100, 4095, 4096, 4500, 100000, 99999, 20000, 3000, 7};
  unsigned char* p = NULL;
  size_t old = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    p = allocator.fn(allocator.self, p, old, sizes[i]);
    cr_assert_not_null(p);
    cr_assert_eq((uintptr_t)p % RN_ALIGN, 0);
    size_t common = old < sizes[i] ? old : sizes[i];
    for (size_t k = 0; k < common; k++) cr_assert_eq(p[k], (unsigned char)(k * 7));
    for (size_t k = 0; k < sizes[i]; k++) p[k] = (unsigned char)(k * 7);
    old = sizes[i];
    cr_assert_eq(stats_of(cache).bytes_in_use, (int64_t)old);
  }
  rn_free(allocator, p, old);
  rn_cache_alloc_release(cache);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(cache_alloc, short_of_memory) {
  rn_cache_alloc_t* cache = make(64 << 20);
  rn_allocator_t allocator = rn_cache_allocator(cache);
  put(cache, get(cache, 100000), 100000);
  // The base refuses once; the idle blocks go back to it, and it is asked again.
  counting.fail_at = counting.allocations + 1;
  void* p = get(cache, 200000);
  cr_assert_eq(stats_of(cache).bytes_cached, 0);
  // It refuses for good.
  counting.fail_at = counting.allocations + 1;
  counting.fail_all_after = true;
  void* q = &q;
  rn_status_t status = rn_alloc(allocator, 300000, &q);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  cr_assert_null(q);
  cr_assert_null(allocator.fn(allocator.self, p, 200000, 400000));
  cr_assert_eq(((unsigned char*)p)[199999], 0xab);
  cr_assert_eq(stats_of(cache).bytes_in_use, 200000);
  put(cache, p, 200000);
  counting.fail_at = 0;
  size_t sizes[] = {SIZE_MAX, SIZE_MAX - 100, SIZE_MAX / 2, (size_t)1 << 60, (size_t)1 << 50};
  for (int i = 0; i < 5; i++) {
    status = rn_alloc(allocator, sizes[i], &q);
    cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  }
  cr_assert_eq(stats_of(cache).bytes_in_use, 0);
  rn_cache_alloc_release(cache);
  cr_assert_eq(counting.live_bytes, 0);
}

static void* churn(void* arg) {
  rn_cache_alloc_t* cache = arg;
  uint32_t random = (uint32_t)(uintptr_t)&random | 1;
  enum { N = 16 };
  unsigned char* blocks[N] = {0};
  size_t sizes[N] = {0};
  for (int n = 0; n < 4000; n++) {
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    int i = (int)(random % N);
    if (blocks[i]) {
      cr_assert_eq(blocks[i][0], (unsigned char)i);
      cr_assert_eq(blocks[i][sizes[i] - 1], (unsigned char)i);
      put(cache, blocks[i], sizes[i]);
      blocks[i] = NULL;
    } else {
      sizes[i] = 100 + (random >> 8) % 60000;
      OK(rn_alloc(rn_cache_allocator(cache), sizes[i], (void**)&blocks[i]));
      blocks[i][0] = blocks[i][sizes[i] - 1] = (unsigned char)i;
    }
    if (n % 1000 == 999) rn_cache_alloc_trim(cache);
  }
  for (int i = 0; i < N; i++) put(cache, blocks[i], sizes[i]);
  return NULL;
}

Test(cache_alloc, many_threads, .timeout = 60) {
  rn_cache_alloc_t* cache = make(1 << 20);
  pthread_t threads[8];
  for (int i = 0; i < 8; i++) cr_assert_eq(pthread_create(&threads[i], NULL, churn, cache), 0);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  rn_cache_alloc_release(cache);
  cr_assert_eq(counting.live_blocks, 0);
  cr_assert_eq(counting.live_bytes, 0);
}
