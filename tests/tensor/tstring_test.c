// String elements: all four layouts are read, two are written.
#include "tensor/tstring.h"

#include <criterion/criterion.h>

static void expect(const rn_tstring_t* str, const char* text, size_t size) {
  rn_str_t view = rn_tstring_view(str);
  cr_assert_eq(view.size, size);
  cr_assert_eq(memcmp(view.data, text, size), 0);
}

Test(tstring, layout_that_clients_write) {
  rn_tstring_t small = {.small = {3 << 2, 'a', 'b', 'c'}};
  expect(&small, "abc", 3);
  char bytes[] = "a string of more than twenty-two bytes";
  rn_tstring_t large = {.large = {38 << 2 | 1, 47, bytes}};
  expect(&large, bytes, 38);
  rn_tstring_t view = {.view = {5 << 2 | 3, bytes + 2, 0}};
  expect(&view, "strin", 5);
  struct {
    rn_tstring_t str;
    char bytes[8];
  } offset = {.str = {.offset = {4 << 2 | 2, 24, 1}}, .bytes = "data"};
  expect(&offset.str, "data", 4);
  rn_tstring_clear(&view);  // frees nothing: the bytes are not its own
  rn_tstring_clear(&offset.str);
  expect(&view, "", 0);
  expect(&offset.str, "", 0);
}

Test(tstring, layout_that_clients_read) {
  rn_tstring_t str;
  memset(&str, 0xff, sizeof str);
  rn_tstring_init(&str);
  for (int i = 0; i < 24; i++) cr_assert_eq(str.small[i], 0);
  cr_assert(rn_tstring_assign(&str, "0123456789012345678901", 22));
  cr_assert_eq(str.small[0], 22 << 2);
  cr_assert_eq(str.small[23], 0);
  expect(&str, "0123456789012345678901", 22);
  cr_assert(rn_tstring_assign(&str, "01234567890123456789012", 23));
  cr_assert_eq(str.large.size, 23 << 2 | 1);
  cr_assert_geq(str.large.capacity, 23);
  cr_assert_eq(str.large.data[23], 0);
  expect(&str, "01234567890123456789012", 23);
  free(str.large.data);  // as a client does, inline
}

Test(tstring, assign_any_to_any) {
  static char text[2000];
  for (size_t i = 0; i < sizeof text; i++) text[i] = (char)(i * 31);
  static const size_t sizes[] = {0, 1, 22, 23, 100, 24, 1999, 1000, 5, 0, 31, 32, 33};
  rn_tstring_t str;
  rn_tstring_init(&str);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    cr_assert(rn_tstring_assign(&str, text, sizes[i]));
    expect(&str, text, sizes[i]);
  }
  rn_tstring_clear(&str);
  rn_tstring_t view = {.view = {50 << 2 | 3, text, 0}};
  cr_assert(rn_tstring_assign(&view, text + 1, 40));
  expect(&view, text + 1, 40);
  rn_tstring_clear(&view);
}

Test(tstring, assign_a_part_of_itself) {
  rn_tstring_t str;
  rn_tstring_init(&str);
  cr_assert(rn_tstring_assign(&str, "abcdef", 6));
  cr_assert(rn_tstring_assign(&str, rn_tstring_view(&str).data + 2, 3));
  expect(&str, "cde", 3);
  char text[100];
  memset(text, 'x', 100);
  text[60] = 'y';
  cr_assert(rn_tstring_assign(&str, text, 100));
  cr_assert(rn_tstring_assign(&str, rn_tstring_view(&str).data + 50, 40));
  expect(&str, text + 50, 40);
  cr_assert(rn_tstring_assign(&str, rn_tstring_view(&str).data + 5, 10));
  expect(&str, text + 55, 10);
  rn_tstring_clear(&str);
}

Test(tstring, resize_keeps_the_common_bytes) {
  rn_tstring_t str;
  rn_tstring_init(&str);
  cr_assert(rn_tstring_assign(&str, "abcd", 4));
  static const size_t sizes[] = {10, 22, 23, 500, 400, 23, 22, 4};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char* data = rn_tstring_resize(&str, sizes[i]);
    cr_assert_eq(data, rn_tstring_view(&str).data);
    cr_assert_eq(rn_tstring_view(&str).size, sizes[i]);
    cr_assert_eq(memcmp(data, "abcd", 4), 0);
    cr_assert_eq(data[sizes[i]], 0);
    memset(data + 4, 'z', sizes[i] - 4);
  }
  cr_assert_eq(rn_tstring_view(&str).size, 4);
  rn_tstring_t view = {.view = {40 << 2 | 3, "0123456789012345678901234567890123456789", 0}};
  char* data = rn_tstring_resize(&view, 30);
  cr_assert_eq(memcmp(data, "012345678901234567890123456789", 30), 0);
  rn_tstring_clear(&view);
}

Test(tstring, too_large_leaves_it_as_it_was) {
  rn_tstring_t str;
  rn_tstring_init(&str);
  cr_assert(rn_tstring_assign(&str, "abcd", 4));
  cr_assert_null(rn_tstring_resize(&str, SIZE_MAX));
  cr_assert_null(rn_tstring_resize(&str, SIZE_MAX >> 2));
  cr_assert_null(rn_tstring_resize(&str, (SIZE_MAX >> 2) + 1));
  cr_assert(!rn_tstring_assign(&str, "x", SIZE_MAX - 5));
  expect(&str, "abcd", 4);
}
