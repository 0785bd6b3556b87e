// String views, number parsing, the hash, and string buffers.
#include "base/str.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "../support/status.h"

Test(str, compare_and_parts) {
  cr_assert(rn_str_eq((rn_str_t){0}, RN_STR("")));
  cr_assert(rn_str_is(RN_STR("abc"), "abc"));
  cr_assert(!rn_str_is(RN_STR("abc"), "abd"));
  cr_assert(rn_str_starts_with(RN_STR("abc"), RN_STR("ab")));
  cr_assert(rn_str_starts_with(RN_STR("abc"), RN_STR("")));
  cr_assert(!rn_str_starts_with(RN_STR("ab"), RN_STR("abc")));
  cr_assert(rn_str_ends_with(RN_STR("abc"), RN_STR("bc")));
  cr_assert(!rn_str_ends_with(RN_STR("abc"), RN_STR("ab")));
  cr_assert(rn_str_ends_with((rn_str_t){0}, (rn_str_t){0}));
  cr_assert_lt(rn_str_compare(RN_STR("a"), RN_STR("b")), 0);
  cr_assert_gt(rn_str_compare(RN_STR("\xff"), RN_STR("a")), 0);
  cr_assert_lt(rn_str_compare(RN_STR("a"), RN_STR("ab")), 0);
  cr_assert_gt(rn_str_compare(RN_STR("a"), (rn_str_t){0}), 0);
  cr_assert_eq(rn_str_compare(RN_STR("a"), RN_STR("a")), 0);
  cr_assert(rn_str_is(rn_str_trim(RN_STR(" \t a b \n")), "a b"));
  cr_assert(rn_str_is(rn_str_trim(RN_STR("  ")), ""));
}

Test(str, split) {
  rn_str_t rest = RN_STR("a,,bc");
  cr_assert(rn_str_is(rn_str_split(&rest, ','), "a"));
  cr_assert(rn_str_is(rn_str_split(&rest, ','), ""));
  cr_assert(rn_str_is(rest, "bc"));
  cr_assert(rn_str_is(rn_str_split(&rest, ','), "bc"));
  cr_assert_eq(rest.size, 0);
  cr_assert(rn_str_is(rn_str_split(&rest, ','), ""));
  rest = (rn_str_t){0};
  cr_assert_eq(rn_str_split(&rest, ',').size, 0);
}

Test(str, integers) {
  static const struct {
    const char* text;
    bool ok;
    int64_t value;
  } rows[] = {
      {"0", true, 0},
      {"-17", true, -17},
      {"+5", true, 5},
      {"007", true, 7},
      {"9223372036854775807", true, INT64_MAX},
      {"-9223372036854775808", true, INT64_MIN},
      {"9223372036854775808", false, 0},
      {"-9223372036854775809", false, 0},
      {"", false, 0},
      {"-", false, 0},
      {" 1", false, 0},
      {"1 ", false, 0},
      {"0x10", false, 0},
      {"1.0", false, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t value = 0;
    cr_assert_eq(rn_str_to_i64(rn_str(rows[i].text), &value), rows[i].ok, "%s", rows[i].text);
    cr_assert_eq(value, rows[i].value, "%s", rows[i].text);
  }
  int64_t value;
  cr_assert(rn_str_to_i64(rn_str_n("123456", 3), &value));
  cr_assert_eq(value, 123);
}

Test(str, doubles) {
  static const struct {
    const char* text;
    bool ok;
    double value;
  } rows[] = {
      {"0", true, 0},
      {"1.5", true, 1.5},
      {"-.5", true, -.5},
      {"5.", true, 5},
      {"1e3", true, 1000},
      {"1E-3", true, .001},
      {"+2", true, 2},
      {"1e400", false, 0},
      {"1e-400", true, 0},
      {"", false, 0},
      {".", false, 0},
      {"e5", false, 0},
      {"1e", false, 0},
      {"1e+", false, 0},
      {"0x1p3", false, 0},
      {"nan", false, 0},
      {"inf", false, 0},
      {" 1", false, 0},
      {"1 ", false, 0},
      {"1,5", false, 0},
      {"4.9e-324", true, 4.9e-324},
      {"1.7976931348623157e308", true, 1.7976931348623157e308},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double value = 0;
    cr_assert_eq(rn_str_to_f64(rn_str(rows[i].text), &value), rows[i].ok, "%s", rows[i].text);
    cr_assert_eq(value, rows[i].value, "%s", rows[i].text);
  }
  char text[2000];
  memset(text, '0', sizeof text);
  memcpy(text, "1.", 2);
  double value = 0;
  cr_assert(rn_str_to_f64(rn_str_n(text, sizeof text), &value));
  cr_assert_eq(value, 1);
}

Test(str, hash_depends_on_every_byte) {
  char text[80];
  for (size_t size = 0; size <= 64; size++) {
    memset(text, 'a', sizeof text);
    uint64_t hash = rn_str_hash(rn_str_n(text, size));
    cr_assert_eq(hash, rn_str_hash(rn_str_n(text, size)));
    cr_assert_neq(hash, rn_str_hash(rn_str_n(text, size + 1)));
    for (size_t i = 0; i < size; i++) {
      for (int bit = 0; bit < 8; bit++) {
        text[i] ^= (char)(1 << bit);
        uint64_t other = rn_str_hash(rn_str_n(text, size));
        int changed = __builtin_popcountll(hash ^ other);
        cr_assert(changed >= 8 && changed <= 56, "size %zu byte %zu bit %d: %d bits", size, i, bit,
                  changed);
        text[i] ^= (char)(1 << bit);
      }
    }
  }
}

Test(str, hash_spreads_names_over_the_low_bits) {
  // Names as graphs have them, into 2^12 buckets: about as even as random.
  static uint16_t buckets[4096];
  for (int i = 0; i < 4096 * 8; i++) {
    char name[40];
    int size = snprintf(name, sizeof name, "layer_%d/weights/read_%d", i / 16, i % 16);
    buckets[rn_str_hash(rn_str_n(name, (size_t)size)) % 4096]++;
  }
  double chi = 0;
  for (int i = 0; i < 4096; i++) chi += (buckets[i] - 8.0) * (buckets[i] - 8.0) / 8.0;
  // 4095 degrees of freedom: deviation 90.5, six of them allowed.
  cr_assert_lt(fabs(chi - 4095), 6 * 90.5, "chi squared %f", chi);
}

Test(strbuf, builds_text) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_counting(&counting));
  cr_assert_str_eq(rn_strbuf_view(&buf).data, "");
  rn_strbuf_append(&buf, RN_STR("ab"));
  rn_strbuf_append(&buf, (rn_str_t){0});
  rn_strbuf_printf(&buf, "%d", 12);
  rn_strbuf_append_n(&buf, "\0x", 2);
  cr_assert_eq(buf.size, 6);
  cr_assert_eq(memcmp(buf.data, "ab12\0x", 7), 0);
  for (int i = 0; i < 1000; i++) {
    rn_strbuf_printf(&buf, "%0100d", i);
    cr_assert_eq(buf.data[buf.size], '\0');
  }
  cr_assert_eq(buf.size, 6 + 1000 * 100);
  OK(rn_strbuf_status(&buf));
  rn_strbuf_clear(&buf);
  cr_assert_eq(counting.live_bytes, 0);
  rn_strbuf_printf(&buf, "again");
  cr_assert_str_eq(buf.data, "again");
  rn_strbuf_clear(&buf);
}

Test(strbuf, first_failure_is_kept) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system(), .fail_at = 2};
  rn_strbuf_t buf;
  rn_strbuf_init(&buf, rn_allocator_counting(&counting));
  rn_strbuf_append(&buf, RN_STR("ab"));
  rn_strbuf_printf(&buf, "%1000d", 1);
  rn_strbuf_append(&buf, RN_STR("cd"));
  cr_assert_str_eq(buf.data, "ab");
  rn_status_t status = rn_strbuf_status(&buf);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  rn_status_free(status);
  rn_strbuf_clear(&buf);
  OK(rn_strbuf_status(&buf));
  cr_assert_eq(counting.live_bytes, 0);
  rn_strbuf_append_n(&buf, "x", SIZE_MAX);
  status = rn_strbuf_status(&buf);
  cr_assert(!rn_ok(status));
  rn_strbuf_clear(&buf);
}

Test(str, dup) {
  char* copy = NULL;
  OK(rn_str_dup(rn_allocator_system(), rn_str_n("abcd", 2), &copy));
  cr_assert_str_eq(copy, "ab");
  rn_free(rn_allocator_system(), copy, 3);
}
