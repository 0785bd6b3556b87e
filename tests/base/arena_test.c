// Arenas: alignment, zeroed memory, limits, and freeing everything at once.
#include "base/arena.h"

#include <criterion/criterion.h>

#include "../support/status.h"

Test(arena, pieces_are_zeroed_aligned_and_apart) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_counting(&counting));
  enum { N = 2000 };
  static unsigned char* pieces[N];
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < N; i++) {
      size_t size = (size_t)(i * 7 % 501);
      OK(rn_arena_alloc(&arena, size, (void**)&pieces[i]));
      cr_assert_eq((uintptr_t)pieces[i] % 16, 0);
      for (size_t b = 0; b < size; b++) {
        cr_assert_eq(pieces[i][b], 0);
        pieces[i][b] = (unsigned char)i;
      }
    }
    for (int i = 0; i < N; i++) {
      for (size_t b = 0; b < (size_t)(i * 7 % 501); b++) cr_assert_eq(pieces[i][b], i % 256);
    }
    cr_assert_lt(counting.allocations, 100);
    rn_arena_clear(&arena);
    cr_assert_eq(counting.live_blocks, 0);
    cr_assert_eq(counting.live_bytes, 0);
    cr_assert_eq(arena.used, 0);
  }
}

Test(arena, large_pieces_do_not_end_the_current_chunk) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_counting(&counting));
  void *a, *big, *b;
  OK(rn_arena_alloc(&arena, 16, &a));
  OK(rn_arena_alloc(&arena, 10 << 20, &big));
  memset(big, 1, 10 << 20);
  OK(rn_arena_alloc(&arena, 16, &b));
  cr_assert_eq((char*)b - (char*)a, 16);
  cr_assert_eq(counting.allocations, 2);
  rn_arena_clear(&arena);
  cr_assert_eq(counting.live_bytes, 0);
}

Test(arena, limit_is_a_status) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  arena.limit = 100;
  void* p;
  OK(rn_arena_alloc(&arena, 64, &p));
  rn_status_t status = rn_arena_alloc(&arena, 48, &p);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  cr_assert_null(p);
  rn_status_free(status);
  OK(rn_arena_alloc(&arena, 36, &p));
  status = rn_arena_alloc(&arena, 1, &p);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  rn_status_free(status);
  rn_arena_clear(&arena);
  OK(rn_arena_alloc(&arena, 100, &p));
  rn_arena_clear(&arena);
}

Test(arena, overflow_is_a_status) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  void* p;
  OK(rn_arena_alloc(&arena, 8, &p));
  size_t sizes[] = {SIZE_MAX, SIZE_MAX - 8, SIZE_MAX - 15, SIZE_MAX / 2};
  for (int i = 0; i < 4; i++) {
    rn_status_t status = rn_arena_alloc(&arena, sizes[i], &p);
    cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
    rn_status_free(status);
  }
  rn_status_t status = rn_arena_alloc_array(&arena, SIZE_MAX / 8, 16, &p);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  rn_status_free(status);
  rn_arena_clear(&arena);
}

Test(arena, strings) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  char text[] = "hello";
  rn_str_t copy, printed, empty;
  OK(rn_arena_str(&arena, rn_str(text), &copy));
  text[0] = 'j';
  cr_assert_str_eq(copy.data, "hello");
  cr_assert_eq(copy.size, 5);
  OK(rn_arena_str(&arena, (rn_str_t){0}, &empty));
  cr_assert_str_eq(empty.data, "");
  OK(rn_arena_printf(&arena, &printed, "%s_%d", copy.data, 12));
  cr_assert_str_eq(printed.data, "hello_12");
  cr_assert_eq(printed.size, 8);
  OK(rn_arena_printf(&arena, &printed, "%5000d", 1));
  cr_assert_eq(strlen(printed.data), 5000);
  cr_assert_str_eq(copy.data, "hello");
  rn_arena_clear(&arena);
}

Test(arena, short_of_memory) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system(), .fail_at = 2};
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_counting(&counting));
  void* p;
  OK(rn_arena_alloc(&arena, 16, &p));
  rn_status_t status = rn_arena_alloc(&arena, 1 << 20, &p);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  cr_assert_null(p);
  cr_assert_eq(arena.used, 16);
  OK(rn_arena_alloc(&arena, 1 << 20, &p));
  rn_arena_clear(&arena);
  cr_assert_eq(counting.live_blocks, 0);
}

Test(arena, rewinds_to_a_mark) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_counting(&counting));
  for (size_t size = 8; size < 1 << 21; size *= 5) {
    char *kept, *first, *again;
    OK(rn_arena_alloc(&arena, 24, (void**)&kept));
    memset(kept, 7, 24);
    int64_t blocks = counting.live_blocks;
    rn_arena_mark_t mark = rn_arena_mark(&arena);
    for (int i = 0; i < 50; i++) {
      OK(rn_arena_alloc(&arena, size, (void**)&first));
      memset(first, 1, size);
    }
    rn_arena_rewind(&arena, mark);
    cr_assert_eq(counting.live_blocks, blocks);
    cr_assert_eq(arena.used, mark.used);
    // Pieces are zeroed the second time too.
    for (int i = 0; i < 50; i++) {
      OK(rn_arena_alloc(&arena, size, (void**)&again));
      for (size_t j = 0; j < size; j++) cr_assert_eq(again[j], 0);
    }
    rn_arena_rewind(&arena, mark);
    cr_assert_eq(kept[23], 7);
  }
  rn_arena_clear(&arena);
  cr_assert_eq(counting.live_blocks, 0);
}
