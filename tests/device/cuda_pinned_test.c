// Page-locked memory: reuse, bounds, trimming. Blocks may outlive the manager.
#include "device/cuda/pinned.h"

#include <pthread.h>
#include <stdatomic.h>

#include "../support/status.h"

// The source counts and fails as the tests' allocator does.
static rn_counting_allocator_t locked, records;

static void* lock_pages(void* self, size_t size) {
  rn_allocator_t allocator = rn_allocator_counting(self);
  return allocator.fn(allocator.self, NULL, 0, size);
}

static void unlock_pages(void* self, void* start, size_t size) {
  rn_free(rn_allocator_counting(self), start, size);
}

static size_t limit;  // of the source

static rn_status_t create(size_t max_cached, rn_cuda_pinned_t** out) {
  rn_cuda_pinned_source_t source = {&locked, lock_pages, unlock_pages, limit};
  return rn_cuda_pinned_create(source, max_cached, rn_allocator_counting(&records), out);
}

static rn_cuda_pinned_t* make(size_t max_cached) {
  locked = records = (rn_counting_allocator_t){.base = rn_allocator_system()};
  rn_cuda_pinned_t* pinned = NULL;
  OK(create(max_cached, &pinned));
  return pinned;
}

static void expect_nothing_left(void) {
  cr_assert_eq(locked.live_blocks, 0);
  cr_assert_eq(locked.live_bytes, 0);
  cr_assert_eq(records.live_blocks, 0);
  cr_assert_eq(records.live_bytes, 0);
}

static void* get(rn_cuda_pinned_t* pinned, size_t size) {
  void* p = NULL;
  OK(rn_alloc(rn_cuda_pinned_allocator(pinned), size, &p));
  cr_assert_eq((uintptr_t)p % RN_ALIGN, 0);
  memset(p, 0xab, size);
  return p;
}

static void put(rn_cuda_pinned_t* pinned, void* p, size_t size) {
  rn_free(rn_cuda_pinned_allocator(pinned), p, size);
}

static rn_cache_stats_t stats_of(rn_cuda_pinned_t* pinned) {
  rn_cache_stats_t stats;
  rn_cuda_pinned_stats(pinned, &stats);
  return stats;
}

Test(cuda_pinned, blocks_of_all_sizes_come_back) {
  rn_cuda_pinned_t* pinned = make((size_t)64 << 20);
  size_t sizes[] = {0, 1, 100, 4095, 4096, 4097, 100000, 5 << 20};
  for (int i = 0; i < 8; i++) {
    void* p = get(pinned, sizes[i]);
    put(pinned, p, sizes[i]);
    int64_t calls = locked.allocations;
    cr_assert_eq(get(pinned, sizes[i]), p);
    cr_assert_eq(locked.allocations, calls);
    put(pinned, p, sizes[i]);
  }
  cr_assert_eq(stats_of(pinned).bytes_in_use, 0);
  cr_assert_gt(stats_of(pinned).bytes_cached, 5 << 20);
  rn_cuda_pinned_trim(pinned);
  cr_assert_eq(stats_of(pinned).bytes_cached, 0);
  cr_assert_eq(locked.live_blocks, 1);  // the cache itself
  rn_cuda_pinned_release(pinned);
  expect_nothing_left();
  rn_cuda_pinned_release(NULL);
}

Test(cuda_pinned, keeps_no_more_than_its_bound) {
  rn_cuda_pinned_t* pinned = make(1 << 20);
  void* blocks[64];
  for (int i = 0; i < 64; i++) blocks[i] = get(pinned, 1000 * (size_t)(i + 1));
  for (int i = 0; i < 64; i++) {
    put(pinned, blocks[i], 1000 * (size_t)(i + 1));
    cr_assert_leq(stats_of(pinned).bytes_cached, 1 << 20);
  }
  cr_assert_gt(stats_of(pinned).bytes_cached, 1 << 19);
  rn_cuda_pinned_release(pinned);
  expect_nothing_left();
}

Test(cuda_pinned, blocks_move_with_their_bytes) {
  rn_cuda_pinned_t* pinned = make(1 << 20);
  rn_allocator_t allocator = rn_cuda_pinned_allocator(pinned);
  uint8_t* p = get(pinned, 100);
  p = allocator.fn(allocator.self, p, 100, 50000);
  cr_assert_eq(p[99], 0xab);
  p = allocator.fn(allocator.self, p, 50000, 10);
  cr_assert_eq(p[9], 0xab);
  cr_assert_null(allocator.fn(allocator.self, p, 10, 0));
  rn_cuda_pinned_release(pinned);
  expect_nothing_left();
}

Test(cuda_pinned, blocks_may_outlive_the_manager) {
  rn_cuda_pinned_t* pinned = make(1 << 20);
  void* small = get(pinned, 10);
  void* large = get(pinned, 100000);
  put(pinned, get(pinned, 200000), 200000);
  rn_cuda_pinned_release(pinned);
  cr_assert_eq(locked.live_blocks, 3);
  memset(large, 1, 100000);
  put(pinned, large, 100000);
  put(pinned, small, 10);
  expect_nothing_left();
}

Test(cuda_pinned, short_of_memory) {
  rn_cuda_pinned_t* pinned = make(1 << 20);
  put(pinned, get(pinned, 100000), 100000);
  // The source fails once; it gets the idle blocks back and is asked again.
  locked.fail_at = locked.allocations + 1;
  void* p = get(pinned, 200000);
  cr_assert_eq(stats_of(pinned).bytes_cached, 0);
  locked.fail_at = locked.allocations + 1;
  locked.fail_all_after = true;
  size_t sizes[] = {0, 300000, SIZE_MAX, SIZE_MAX - 4095, SIZE_MAX / 2};
  for (int i = 0; i < 5; i++) {
    void* q = &q;
    FAILS(rn_alloc(rn_cuda_pinned_allocator(pinned), sizes[i], &q), RESOURCE_EXHAUSTED);
    cr_assert_null(q);
  }
  put(pinned, p, 200000);
  rn_cuda_pinned_release(pinned);
  expect_nothing_left();
}

Test(cuda_pinned, no_memory_for_the_manager) {
  rn_cuda_pinned_t* pinned = NULL;
  rn_counting_allocator_t fails = {.base = rn_allocator_system(), .fail_at = 1};
  locked = (rn_counting_allocator_t){.base = rn_allocator_system()};
  records = fails;
  FAILS(create(1 << 20, &pinned), RESOURCE_EXHAUSTED);
  cr_assert_null(pinned);
  expect_nothing_left();
  records = locked;
  locked = fails;
  FAILS(create(1 << 20, &pinned), RESOURCE_EXHAUSTED);
  cr_assert_null(pinned);
  expect_nothing_left();
}

static void* churn(void* arg) {
  rn_cuda_pinned_t* pinned = arg;
  uint32_t random = (uint32_t)(uintptr_t)&random | 1;
  enum { N = 8 };
  uint8_t* held[N] = {0};
  size_t sizes[N] = {0};
  for (int step = 0; step < 2000; step++) {
    random = random * 1664525 + 1013904223;
    int i = (int)(random >> 28) % N;
    if (held[i]) {
      cr_assert_eq(held[i][0], i);
      cr_assert_eq(held[i][sizes[i] - 1], i);
      put(pinned, held[i], sizes[i]);
      held[i] = NULL;
    } else {
      sizes[i] = 1 + (random >> 8) % 60000;
      held[i] = get(pinned, sizes[i]);
      held[i][0] = held[i][sizes[i] - 1] = (uint8_t)i;
    }
    if (step % 500 == 499) rn_cuda_pinned_trim(pinned);
  }
  for (int i = 0; i < N; i++) put(pinned, held[i], sizes[i]);
  return NULL;
}

// The manager is released while the threads still run: the last block frees it.
Test(cuda_pinned, many_threads, .timeout = 60) {
  rn_cuda_pinned_t* pinned = make(1 << 18);
  void* held = get(pinned, 100);
  pthread_t threads[6];
  for (int i = 0; i < 6; i++) cr_assert_eq(pthread_create(&threads[i], NULL, churn, pinned), 0);
  rn_cuda_pinned_release(pinned);
  for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
  put(pinned, held, 100);
  expect_nothing_left();
}

// At the limit, idle blocks make room; what is in use stays.
Test(cuda_pinned, a_limit) {
  limit = (size_t)4 << 20;
  rn_cuda_pinned_t* pinned = make((size_t)64 << 20);
  put(pinned, get(pinned, 2 << 20), 2 << 20);
  void *large = get(pinned, 3 << 20), *more = NULL;
  rn_status_t status = rn_alloc(rn_cuda_pinned_allocator(pinned), 2 << 20, &more);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  rn_status_free(status);
  put(pinned, large, 3 << 20);
  put(pinned, get(pinned, 2 << 20), 2 << 20);
  rn_cuda_pinned_release(pinned);
  expect_nothing_left();
}
