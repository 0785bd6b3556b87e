// Files that a pool reads ahead: the same bytes in the same order, whatever is read, sought or
// fails meanwhile.
#include <criterion/criterion.h>
#include <errno.h>

#include "../support/memory_place.h"
#include "io/input.h"

enum { SIZE = 100003, PIECE = 512 };

static place_t place;
static rn_pool_t* pool;
static char bytes[SIZE];

static void set_up(void) {
  open_counted_place(&place);
  OK(rn_pool_create(rn_allocator_system(), 3, &pool));
  uint32_t seed = 1;
  for (int i = 0; i < SIZE; ++i) bytes[i] = (char)((seed = seed * 1664525u + 1013904223u) >> 24);
  OK(rn_fs_write(&place.env, "/f", rn_str_n(bytes, SIZE)));
}

static void tear_down(void) {
  rn_pool_destroy(pool);
  close_counted_place(&place);
}

TestSuite(read_ahead, .init = set_up, .fini = tear_down);

static rn_input_t* open_ahead(void) {
  rn_input_t* input = NULL;
  OK(rn_input_open(&place.env, "/f", RN_COMPRESSION_NONE, PIECE, &input));
  rn_input_read_ahead(input, pool);
  return input;
}

// Takes what there is in steps of |step| up to |end|.
static void expect_bytes(rn_input_t* input, size_t step, uint64_t end) {
  for (uint64_t at = rn_input_position(input); at < end; at += step) {
    rn_str_t view;
    size_t left = SIZE - (size_t)at, wanted = step < left ? step : left;
    OK(rn_input_peek(input, step, &view));
    cr_assert_geq(view.size, wanted);
    cr_assert_eq(memcmp(view.data, bytes + at, wanted), 0, "at %llu", (unsigned long long)at);
    rn_input_take(input, wanted);
  }
}

Test(read_ahead, every_step) {
  static const size_t steps[] = {1, 7, 100, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, SIZE};
  for (size_t i = 0; i < sizeof steps / sizeof *steps; ++i) {
    rn_input_t* input = open_ahead();
    rn_str_t view;
    expect_bytes(input, steps[i], SIZE);
    OK(rn_input_peek(input, 1, &view));
    cr_assert_eq(view.size, 0);
    rn_input_close(input);
  }
}

// Larger ones between small ones; forwards and back; left in the middle.
Test(read_ahead, mixed) {
  rn_input_t* input = open_ahead();
  expect_bytes(input, 100, 20000);
  expect_bytes(input, 5000, 40000);
  expect_bytes(input, 100, 60000);
  OK(rn_input_seek(input, 90000));
  expect_bytes(input, 100, 95000);
  OK(rn_input_seek(input, 10));
  expect_bytes(input, 300, 50000);
  rn_input_close(input);
}

// Blocks that are still referenced are not reused.
Test(read_ahead, kept) {
  enum { KEPT = 300, STEP = 77 };
  rn_input_t* input = open_ahead();
  rn_input_share(input, place.env.allocator);
  rn_buffer_t* blocks[KEPT];
  rn_str_t views[KEPT];
  for (int i = 0; i < KEPT; ++i) {
    OK(rn_input_peek(input, STEP, &views[i]));
    blocks[i] = rn_input_block(input);
    rn_buffer_retain(blocks[i]);
    rn_input_take(input, STEP);
  }
  rn_input_close(input);
  for (int i = 0; i < KEPT; ++i) {
    cr_assert_eq(memcmp(views[i].data, bytes + i * STEP, STEP), 0, "%d", i);
    rn_buffer_release(blocks[i]);
  }
}

// A read that fails is an error once, whether the pool or the caller made it; then reading goes on
// where it was.
Test(read_ahead, disk_that_fails) {
  for (int64_t n = 1; n < 60; n += 3) {
    rn_input_t* input = open_ahead();
    rn_str_t view;
    int failures = 0;
    rn_memory_fs_fail(place.fs, n, 1, EIO);
    while (rn_input_position(input) + 100 < SIZE) {
      rn_status_t status = rn_input_peek(input, 100, &view);
      if (rn_ok(status)) {
        cr_assert_eq(memcmp(view.data, bytes + rn_input_position(input), 100), 0);
        rn_input_take(input, 100);
        continue;
      }
      cr_assert_not_null(strstr(rn_status_message(status), "/f"));
      rn_status_free(status);
      failures++;
    }
    cr_assert_eq(failures, 1);
    rn_input_close(input);
  }
}

Test(read_ahead, no_memory) {
  for (int64_t at = 1; at < 30; ++at) {
    rn_input_t* input = NULL;
    rn_str_t view = {0};
    place.counting.allocations = 0;
    place.counting.fail_at = at;
    rn_status_t status = rn_input_open(&place.env, "/f", RN_COMPRESSION_NONE, PIECE, &input);
    if (rn_ok(status)) rn_input_read_ahead(input, pool);
    while (rn_ok(status) && rn_input_position(input) + 100 < SIZE) {
      status = rn_input_peek(input, 100, &view);
      if (rn_ok(status)) rn_input_take(input, 100);
    }
    cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
    rn_status_free(status);
    rn_input_close(input);
  }
  place.counting.fail_at = 0;
}

// A file that became shorter ends there; one that grew is read to its new end.
Test(read_ahead, other_size) {
  for (int grows = 0; grows < 2; ++grows) {
    rn_input_t* input = open_ahead();
    expect_bytes(input, 100, 1000);
    rn_file_t* file = NULL;
    OK(rn_fs_open(&place.env, "/f", RN_OPEN_APPEND, &file));
    if (grows)
      OK(file->vtable->append(file, RN_STR("more")));
    else
      OK(file->vtable->truncate(file, 50000));
    OK(file->vtable->close(file));
    uint64_t skipped = 0;
    OK(rn_input_skip(input, 10 * SIZE, &skipped));
    cr_assert_eq(rn_input_position(input), grows ? SIZE + 4 : 50000, "%llu",
                 (unsigned long long)rn_input_position(input));
    rn_input_close(input);
    OK(rn_fs_write(&place.env, "/f", rn_str_n(bytes, SIZE)));
  }
}
