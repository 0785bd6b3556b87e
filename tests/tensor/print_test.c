// Tensor values as text. Every expected line was recorded from TensorFlow 2.21
// (SummarizeAttrValue).
#include "tensor/print.h"

#include <criterion/criterion.h>
#include <math.h>

#include "../support/status.h"
#include "tensor/tstring.h"

static rn_strbuf_t buf;

static void expect(const char* text) {
  OK(rn_strbuf_status(&buf));
  cr_assert_str_eq(rn_strbuf_view(&buf).data, text);
  rn_strbuf_clear(&buf);
}

Test(print, floats) {
  static const struct {
    float value;
    const char* text;
  } rows[] = {
      {1.0f, "1"},
      {0.5f, "0.5"},
      {0.1f, "0.1"},
      {1e10f, "1e+10"},
      {1e-5f, "1e-05"},
      {3.14159274f, "3.14159274"},
      {1e20f, "1e+20"},
      {123456789.f, "123456792"},
      {16777217.f, "16777216"},
      {0.f, "0"},
      {-0.f, "-0"},
      {1e-45f, "1.4013e-45"},
      {3.4e38f, "3.4e+38"},
      {INFINITY, "inf"},
      {-INFINITY, "-inf"},
      {NAN, "nan"},
      {0.001f, "0.001"},
      {1e-4f, "0.0001"},
      {100000.f, "100000"},
      {1e6f, "1e+06"},
      {0.3333333f, "0.333333313"},
      {9.99999e-5f, "9.99999e-05"},
  };
  rn_strbuf_init(&buf, rn_allocator_system());
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rn_print_float(&buf, rows[i].value);
    expect(rows[i].text);
  }
  static const struct {
    double value;
    const char* text;
  } doubles[] = {
      {1e10, "10000000000"},
      {1e-5, "1e-05"},
      {3.141592653589793, "3.1415926535897931"},
      {0.1, "0.1"},
  };
  for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
    rn_print_double(&buf, doubles[i].value);
    expect(doubles[i].text);
  }
}

Test(print, escapes) {
  rn_strbuf_init(&buf, rn_allocator_system());
  rn_print_escaped(&buf, RN_STR("a\"b\\c\n\t\x01\xff'\r?x"), false);
  expect("a\\\"b\\\\c\\n\\t\\001\\377\\'\\r?x");
  rn_print_escaped(&buf, rn_str_n("a\0b1", 4), false);
  expect("a\\000b1");
  rn_print_escaped(&buf, RN_STR("\x7f~ \x80"), false);
  expect("\\177~ \\200");
  rn_print_escaped(&buf, RN_STR("\x01\xff"), true);
  expect("\\001\xff");
}

static void expect_values(rn_dtype_t dtype, rn_shape_t shape, const void* data, const char* text) {
  rn_tensor_t tensor;
  OK(rn_tensor_init(&tensor, dtype, shape));
  tensor.data = (void*)data;
  rn_print_values(&buf, &tensor, 3);
  expect(text);
  rn_tensor_clear(&tensor);
}

Test(print, shapes) {
  static const struct {
    int rank;
    int64_t dims[5];
    const char* text;
  } rows[] = {
      {0, {0}, "0"},
      {1, {2}, "0 1"},
      {1, {3}, "0 1 2"},
      {1, {20}, "0 1 2..."},
      {2, {1, 1}, "[0]"},
      {2, {3, 1}, "[0][1][2]"},
      {2, {4, 1}, "[0][1][2]..."},
      {2, {1, 2}, "[0 1]"},
      {2, {2, 2}, "[0 1][2...]..."},
      {2, {4, 2}, "[0 1][2...]..."},
      {2, {1, 3}, "[0 1 2]"},
      {2, {2, 3}, "[0 1 2]..."},
      {2, {5, 4}, "[0 1 2...]..."},
      {2, {0, 3}, ""},
      {3, {2, 2, 0}, ""},
      {3, {2, 3, 2}, "[[0 1][2...]]..."},
      {3, {3, 1, 6}, "[[0 1 2...]]..."},
      {4, {1, 2, 1, 2}, "[[[0 1]][[2...]]]..."},
      {5, {1, 1, 1, 1, 1}, "[[[[0]]]]"},
  };
  int32_t data[20];
  for (int i = 0; i < 20; i++) data[i] = i;
  rn_strbuf_init(&buf, rn_allocator_system());
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    expect_values(RN_INT32, (rn_shape_t){rows[i].rank, rows[i].dims}, data, rows[i].text);
  }
}

Test(print, types) {
  rn_strbuf_init(&buf, rn_allocator_system());
  static const int64_t three[] = {3};
  rn_shape_t shape = {1, three};
  static const uint8_t bytes[] = {0x80, 0x7f, 0x31};
  expect_values(RN_FLOAT8_E5M2, shape, bytes, "-0 nan 0.15625");
  expect_values(RN_FLOAT8_E4M3FN, shape, bytes, "-0 nan 0.5625");
  expect_values(RN_FLOAT8_E4M3FNUZ, shape, bytes, "? ? ?");
  expect_values(RN_FLOAT8_E4M3B11FNUZ, shape, bytes, "-nan 30 0.03515625");
  expect_values(RN_FLOAT8_E5M2FNUZ, shape, bytes, "? ? ?");
  expect_values(RN_INT8, shape, bytes, "-128 127 49");
  expect_values(RN_QINT8, shape, bytes, "-128 127 49");
  expect_values(RN_UINT8, shape, bytes, "128 127 49");
  expect_values(RN_FLOAT4_E2M1FN, shape, (uint8_t[]){0, 7, 13}, "0 6 -3");
  static const uint8_t narrow[] = {1, 3, 2};
  expect_values(RN_INT2, shape, narrow, "1 -1 -2");
  expect_values(RN_UINT2, shape, narrow, "1 3 2");
  expect_values(RN_UINT4, shape, narrow, "1 3 2");
  expect_values(RN_INT4, shape, (uint8_t[]){0xfd, 3, 2}, "-3 3 2");
  expect_values(RN_BOOL, shape, (uint8_t[]){1, 0, 1}, "1 0 1");
  static const uint16_t words[] = {0x7c00, 0x0001, 0xfe00};
  expect_values(RN_HALF, shape, words, "inf 5.96046448e-08 -nan");
  expect_values(RN_BFLOAT16, shape, words, "2.65845599e+36 9.18355e-41 -4.25352959e+37");
  expect_values(RN_QINT16, shape, words, "31744 1 -512");
  expect_values(RN_UINT16, shape, words, "31744 1 65024");
  static const int64_t longs[] = {-10000000000, INT64_MIN, -1};
  expect_values(RN_INT64, shape, longs, "-10000000000 -9223372036854775808 -1");
  expect_values(RN_UINT64, shape, longs,
                "18446744063709551616 9223372036854775808 18446744073709551615");
  expect_values(RN_QINT32, shape, longs, "? ? ?");
  expect_values(RN_COMPLEX64, shape, longs, "? ? ?");
  static const float floats[] = {1e10f, 1e-5f, 3.14159274f};
  expect_values(RN_FLOAT, shape, floats, "1e+10 1e-05 3.14159274");
  static const rn_tstring_t strings[] = {
      {.small = {7 << 2, 'a', '\'', 'b', 0x7f, '\r', '\t', '\\'}}, {.small = {1 << 2, 'x'}}, {{0}}};
  expect_values(RN_STRING, shape, strings, "a\\'b\\177\\r\\t\\\\ x ");
}

Test(print, tensors_without_bytes) {
  rn_strbuf_init(&buf, rn_allocator_system());
  rn_tensor_t none = {0};
  rn_print_values(&buf, &none, 3);
  expect("");
}
