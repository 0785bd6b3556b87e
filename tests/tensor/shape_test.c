// Partial shapes.
#include "tensor/shape.h"

#include <criterion/criterion.h>

#include "../support/status.h"

#define SHAPE(...) \
  ((rn_shape_t){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__}})

static void expect_text(rn_shape_t shape, const char* text) {
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_system());
  rn_shape_print(&buf, shape);
  cr_assert_str_eq(buf.data, text);
  rn_strbuf_clear(&buf);
}

Test(shape, text) {
  expect_text(RN_SHAPE_UNKNOWN, "<unknown>");
  expect_text(RN_SHAPE_SCALAR, "[]");
  expect_text(SHAPE(2, -1, 3), "[2,?,3]");
  expect_text(SHAPE(INT64_MAX), "[9223372036854775807]");
}

Test(shape, full_equal_compatible) {
  cr_assert(rn_shape_is_full(RN_SHAPE_SCALAR));
  cr_assert(rn_shape_is_full(SHAPE(0, 3)));
  cr_assert(!rn_shape_is_full(SHAPE(2, -1)));
  cr_assert(!rn_shape_is_full(RN_SHAPE_UNKNOWN));
  cr_assert(rn_shape_eq(SHAPE(2, -1), SHAPE(2, -1)));
  cr_assert(!rn_shape_eq(SHAPE(2, -1), SHAPE(2, 3)));
  cr_assert(!rn_shape_eq(SHAPE(2), SHAPE(2, 3)));
  cr_assert(rn_shape_eq(RN_SHAPE_UNKNOWN, RN_SHAPE_UNKNOWN));
  cr_assert(!rn_shape_eq(RN_SHAPE_UNKNOWN, RN_SHAPE_SCALAR));
  cr_assert(rn_shape_compatible(SHAPE(2, -1), SHAPE(-1, 3)));
  cr_assert(rn_shape_compatible(RN_SHAPE_UNKNOWN, SHAPE(2)));
  cr_assert(!rn_shape_compatible(SHAPE(2, -1), SHAPE(3, -1)));
  cr_assert(!rn_shape_compatible(SHAPE(2), SHAPE(2, 1)));
}

Test(shape, count) {
  int64_t count;
  cr_assert(rn_shape_count(RN_SHAPE_SCALAR, &count) && count == 1);
  cr_assert(rn_shape_count(SHAPE(2, 3, 4), &count) && count == 24);
  cr_assert(rn_shape_count(SHAPE(2, 0, 4), &count) && count == 0);
  cr_assert(rn_shape_count(SHAPE(2, -1), &count) && count == RN_UNKNOWN);
  cr_assert(rn_shape_count(SHAPE(0, -1), &count) && count == RN_UNKNOWN);
  cr_assert(rn_shape_count(RN_SHAPE_UNKNOWN, &count) && count == RN_UNKNOWN);
  cr_assert(rn_shape_count(SHAPE(INT64_MAX), &count) && count == INT64_MAX);
  cr_assert(!rn_shape_count(SHAPE(INT64_C(1) << 32, INT64_C(1) << 31), &count));
  cr_assert(!rn_shape_count(SHAPE(INT64_C(1) << 32, -1, INT64_C(1) << 31), &count));
  cr_assert(!rn_shape_count(SHAPE(2, -2), &count));
  cr_assert(!rn_shape_count(SHAPE(INT64_MIN), &count));
}

Test(shape, copy) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  int64_t dims[] = {2, -1};
  rn_shape_t copy;
  OK(rn_shape_copy(&arena, (rn_shape_t){2, dims}, &copy));
  dims[0] = 9;
  cr_assert(rn_shape_eq(copy, SHAPE(2, -1)));
  OK(rn_shape_copy(&arena, RN_SHAPE_UNKNOWN, &copy));
  cr_assert(!rn_shape_has_rank(copy));
  arena.limit = arena.used;
  rn_status_t status = rn_shape_copy(&arena, (rn_shape_t){2, dims}, &copy);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  rn_status_free(status);
  rn_arena_clear(&arena);
}
