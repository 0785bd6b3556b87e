// JSON: the cursor, numbers, strings, tensors, both ways.
#include "serve/front/json.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../support/status.h"
#include "proto/serving_status.pb.h"
#include "serve/front/decimal.h"
#include "serve/front/json_proto.h"
#include "tensor/float16.h"
#include "tensor/tstring.h"

static rn_arena_t arena;
static void init(void) { rn_arena_init(&arena, rn_allocator_system()); }
static void fini(void) { rn_arena_clear(&arena); }
TestSuite(json, .init = init, .fini = fini, .timeout = 60);

static rn_json_reader_t reader(const char* text) { return rn_json_reader(rn_str(text), &arena); }

// Reads |text| as a tensor and prints it again, with its shape in front: "[2] [1.0, 2.0]". On
// failure, the code and the message.
static const char* tensor_text(const char* text, rn_dtype_t dtype) {
  rn_json_reader_t json = reader(text);
  rn_tensor_t tensor;
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  rn_status_t status = rn_json_tensor(&json, dtype, rn_allocator_system(), &tensor);
  if (rn_ok(status)) {
    rn_shape_print(&out, rn_tensor_shape(&tensor));
    rn_strbuf_append(&out, RN_STR(" "));
    status = rn_json_put_tensor(&out, &tensor, false);
    rn_tensor_clear(&tensor);
  }
  if (!rn_ok(status))
    rn_strbuf_printf(&out, "%s: %s", rn_code_name(rn_status_code(status)),
                     rn_status_message(status));
  rn_status_free(status);
  rn_str_t copy;
  OK(rn_arena_str(&arena, rn_strbuf_view(&out), &copy));
  rn_strbuf_clear(&out);
  return copy.data;
}

typedef struct tensor_row_t {
  rn_dtype_t dtype;
  const char *text, *want;
} tensor_row_t;

Test(json, tensors_keep_their_shape_and_values) {
  static const tensor_row_t rows[] = {
      {RN_FLOAT, "[1, 2.0, 3, 4, 5.003, 0.007, 0.0]",
       "[7] [1.0, 2.0, 3.0, 4.0, 5.003, 0.007, 0.0]"},
      {RN_FLOAT, " [ [1 , 2 ]\n,\t[3,4]\r] ", "[2,2] [[1.0, 2.0], [3.0, 4.0]]"},
      {RN_FLOAT, "3", "[] 3.0"},
      {RN_FLOAT, "[]", "[0] []"},
      {RN_FLOAT, "[[],[]]", "[2,0] [[], []]"},
      {RN_FLOAT, "[[[1]],[[2]]]", "[2,1,1] [[[1.0]], [[2.0]]]"},
      {RN_FLOAT, "[NaN, Infinity, -Infinity, -0.0, -0]",
       "[5] [NaN, Infinity, -Infinity, -0.0, -0.0]"},
      {RN_FLOAT, "[Inf, -Inf]", "[2] [Infinity, -Infinity]"},
      // Beyond float, within double: infinite, or zero.
      {RN_FLOAT, "[1.79769e+308, -1.79769e+308, 2.22507e-308]", "[3] [Infinity, -Infinity, 0.0]"},
      {RN_FLOAT, "[1435774380, 1435774380.0]", "[2] [1.43577434e+09, 1.43577434e+09]"},
      {RN_FLOAT, "[9000000, 999999, 0.5, .0003]",
       "INVALID_ARGUMENT: JSON Parse error: Invalid value. at offset: 23"},
      {RN_FLOAT, "[9000000, 999999, 0.50000, 0.0003, 0.00003, 555557.5]",
       "[6] [9e+06, 999999.0, 0.5, 0.0003, 3e-05, 555557.5]"},
      {RN_DOUBLE, "[1.0, 2, 3, 4, 0.662, 0, 0.0]", "[7] [1.0, 2.0, 3.0, 4.0, 0.662, 0.0, 0.0]"},
      {RN_DOUBLE, "[0.1, 123456789.125, 4.9e-324, 1.7976931348623157e308]",
       "[4] [0.1, 123456789.125, 4.94066e-324, 1.7976931348623157e+308]"},
      {RN_INT32, "[[1,2],[3,4],[5,6]]", "[3,2] [[1, 2], [3, 4], [5, 6]]"},
      {RN_INT32, "[2147483647, -2147483648, -0]", "[3] [2147483647, -2147483648, 0]"},
      {RN_INT64, "[9223372036854775807, -9223372036854775808]",
       "[2] [9223372036854775807, -9223372036854775808]"},
      {RN_UINT64, "[18446744073709551615, 0]", "[2] [18446744073709551615, 0]"},
      {RN_UINT32, "[4294967295]", "[1] [4294967295]"},
      {RN_UINT16, "[65535]", "[1] [65535]"},
      {RN_INT16, "[-32768]", "[1] [-32768]"},
      {RN_INT8, "[127, -128]", "[2] [127, -128]"},
      {RN_UINT8, "[0, 255]", "[2] [0, 255]"},
      {RN_BOOL, "[true, false]", "[2] [true, false]"},
      {RN_HALF, "[0.5, 65504, 1e6]", "[3] [0.5, 65504.0, Infinity]"},
      {RN_BFLOAT16, "[0.5, 3]", "[2] [0.5, 3.0]"},
      {RN_STRING, "[\"a\", {\"b64\": \"aGVsbG8=\"}]", "[2] [\"a\", \"hello\"]"},
      {RN_STRING, "\"\\u00e9\\ud83d\\ude00\\n\\\"\\/\"", "[] \"\xc3\xa9\xf0\x9f\x98\x80\\n\\\"/\""},
      {RN_STRING, "[\"\\u0000\\u001f\"]", "[1] [\"\\u0000\\u001F\"]"},
      {RN_STRING, "{\"b64\": \"aGVs bG8\"}", "[] \"hello\""},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    cr_expect_str_eq(tensor_text(rows[i].text, rows[i].dtype), rows[i].want, "%s\n  %s\n  %s",
                     rows[i].text, tensor_text(rows[i].text, rows[i].dtype), rows[i].want);
}

Test(json, what_does_not_fit_is_an_error) {
#define BAD "INVALID_ARGUMENT: "
#define PARSE BAD "JSON Parse error: "
  static const tensor_row_t rows[] = {
      {RN_INT32, "[1.0]", BAD "JSON Value: 1.0 Type: Number is not of expected type: int32"},
      {RN_INT32, "[1e2]", BAD "JSON Value: 1e2 Type: Number is not of expected type: int32"},
      {RN_INT32, "[2147483648]",
       BAD "JSON Value: 2147483648 Type: Number is not of expected type: int32"},
      {RN_INT8, "[128]", BAD "JSON Value: 128 Type: Number is not of expected type: int8"},
      {RN_UINT8, "[-1]", BAD "JSON Value: -1 Type: Number is not of expected type: uint8"},
      {RN_INT64, "[9223372036854775808]",
       BAD "JSON Value: 9223372036854775808 Type: Number is not of expected type: int64"},
      {RN_UINT64, "[18446744073709551616]",
       BAD "JSON Value: 18446744073709551616 Type: Number is not of expected type: uint64"},
      {RN_UINT64, "[-1]", BAD "JSON Value: -1 Type: Number is not of expected type: uint64"},
      {RN_INT32, "[NaN]", BAD "JSON Value: NaN Type: Number is not of expected type: int32"},
      {RN_FLOAT, "[\"x\", \"y\"]",
       BAD "JSON Value: \"x\" Type: String is not of expected type: float"},
      {RN_FLOAT, "[1, null]", BAD "JSON Value: null Type: Null is not of expected type: float"},
      {RN_FLOAT, "[true]", BAD "JSON Value: true Type: True is not of expected type: float"},
      {RN_BOOL, "[1]", BAD "JSON Value: 1 Type: Number is not of expected type: bool"},
      {RN_STRING, "[1]", BAD "JSON Value: 1 Type: Number is not of expected type: string"},
      {RN_FLOAT, "[{\"b64\": \"aGVsbG8=\"}]",
       BAD
       "JSON Value: {\n    \"b64\": \"aGVsbG8=\"\n} Type: Object is not of expected type: float"},
      {RN_STRING, "[{\"b64\": \"a\"}]",
       BAD "JSON Value: {\n    \"b64\": \"a\"\n} not formatted correctly for base64 data"},
      {RN_STRING, "[{\"b64\": \"aGVsbG8=\", \"x\": 1}]",
       BAD "JSON Value: {\n    \"b64\": \"aGVsbG8=\",\n    \"x\": 1\n} not formatted correctly for "
           "base64 data"},
      {RN_FLOAT, "[[1, 2], [3]]",
       BAD "Encountered list at unexpected size: 1 at level: 1 expected size: 2"},
      {RN_FLOAT, "[[1], [2, 3]]",
       BAD "Encountered list at unexpected size: 2 at level: 1 expected size: 1"},
      {RN_FLOAT, "[1, [2]]", BAD "Encountered list at unexpected level: 1 expected < 1"},
      {RN_FLOAT, "[[1], 2]",
       BAD "JSON Value: 2 found at incorrect level: 2 in the JSON DOM. Expected at level: 2"},
      {RN_COMPLEX64, "[1]", "UNIMPLEMENTED: Conversion of JSON Value: [1] to type: complex64"},
      {RN_FLOAT, "", PARSE "The document is empty. at offset: 0"},
      {RN_FLOAT, "[", PARSE "Missing a comma or ] after an array element. at offset: 1"},
      {RN_FLOAT, "[1", PARSE "Missing a comma or ] after an array element. at offset: 2"},
      {RN_FLOAT, "[1 2]", PARSE "Missing a comma or ] after an array element. at offset: 3"},
      {RN_FLOAT, "[1,]", PARSE "Invalid value. at offset: 3"},
      {RN_FLOAT, "[,1]", PARSE "Invalid value. at offset: 1"},
      {RN_FLOAT, "[01]", PARSE "Missing a comma or ] after an array element. at offset: 2"},
      {RN_FLOAT, "[+1]", PARSE "Invalid value. at offset: 1"},
      {RN_FLOAT, "[-]", PARSE "Invalid value. at offset: 1"},
      {RN_FLOAT, "[1.]", PARSE "Miss fraction part in number. at offset: 3"},
      {RN_FLOAT, "[1e]", PARSE "Miss exponent in number. at offset: 3"},
      {RN_FLOAT, "[1e+]", PARSE "Miss exponent in number. at offset: 4"},
      {RN_FLOAT, "[1e309]", PARSE "Number too big to be stored in double. at offset: 1"},
      {RN_FLOAT, "[0x1]", PARSE "Missing a comma or ] after an array element. at offset: 2"},
      {RN_FLOAT, "[nan]", PARSE "Invalid value. at offset: 1"},
      {RN_FLOAT, "[NaX]", PARSE "Invalid value. at offset: 1"},
      {RN_STRING, "[\"a]", PARSE "Missing a comma or ] after an array element. at offset: 4"},
      {RN_STRING, "\"a", PARSE "Missing a closing quotation mark in string. at offset: 2"},
      {RN_STRING, "\"\\x\"", PARSE "Invalid escape character in string. at offset: 1"},
      {RN_STRING, "\"\\u12g4\"",
       PARSE "Incorrect hex digit after \\u escape in string. at offset: 1"},
      {RN_STRING, "\"\\ud800x\"", PARSE "The surrogate pair in string is invalid. at offset: 1"},
      {RN_STRING, "\"\\udc00\"", PARSE "The surrogate pair in string is invalid. at offset: 1"},
      {RN_STRING, "\"\\ud800\\u0041\"",
       PARSE "The surrogate pair in string is invalid. at offset: 1"},
      {RN_STRING, "\"a\nb\"", PARSE "Invalid encoding in string. at offset: 2"},
      {RN_STRING, "\"\xff\"", PARSE "Invalid encoding in string. at offset: 1"},
      {RN_STRING, "\"\xed\xa0\x80\"", PARSE "Invalid encoding in string. at offset: 1"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i)
    cr_expect_str_eq(tensor_text(rows[i].text, rows[i].dtype), rows[i].want, "%s\n  %s\n  %s",
                     rows[i].text, tensor_text(rows[i].text, rows[i].dtype), rows[i].want);
}

Test(json, flat_lists_fill_a_shape) {
  const int64_t dims[] = {2, 3};
  static const char* const good[] = {"[1, 2, 3, 4, 5, 6]", "[[1, 2, 3], [4, 5, 6]]",
                                     "[[[1]], 2, [3, [4, 5], 6]]"};
  rn_tensor_t tensor;
  for (size_t i = 0; i < sizeof good / sizeof *good; ++i) {
    rn_json_reader_t json = reader(good[i]);
    OK(rn_json_tensor_of_shape(&json, RN_INT64, (rn_shape_t){2, dims}, rn_allocator_system(),
                               &tensor));
    cr_assert_eq(tensor.count, 6);
    for (int64_t j = 0; j < 6; ++j) cr_assert_eq(RN_DATA(&tensor, int64_t)[j], j + 1);
    rn_tensor_clear(&tensor);
  }
  static const char* const bad[] = {"[1, 2, 3, 4, 5]", "[1, 2, 3, 4, 5, 6, 7]", "[]", "{}",
                                    "[1, 2"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    rn_json_reader_t json = reader(bad[i]);
    FAILS(rn_json_tensor_of_shape(&json, RN_INT64, (rn_shape_t){2, dims}, rn_allocator_system(),
                                  &tensor),
          INVALID_ARGUMENT);
  }
  // A shape that the text cannot fill costs no memory.
  const int64_t huge[] = {INT64_C(1) << 40};
  rn_json_reader_t json = reader("[1]");
  FAILS(rn_json_tensor_of_shape(&json, RN_INT64, (rn_shape_t){1, huge}, rn_allocator_system(),
                                &tensor),
        INVALID_ARGUMENT);
}

Test(json, a_cursor_walks_down) {
  rn_json_reader_t json = reader(
      "{\"a\": {\"x\": [1, [2], {}]}, \"n\": -12, \"t\": true, \"s\": \"q\", \"d\": 2.5} rest");
  rn_str_t key, text = {0};
  int64_t number = 0;
  double real = 0;
  bool truth = false;
  rn_status_t status = rn_json_open_object(&json);
  int members = 0;
  for (; rn_ok(status) && rn_json_next_member(&json, &key, &status); ++members) {
    if (rn_str_is(key, "n")) {
      status = rn_json_int(&json, &number);
    } else if (rn_str_is(key, "t")) {
      status = rn_json_bool(&json, &truth);
    } else if (rn_str_is(key, "s")) {
      status = rn_json_string(&json, &text);
    } else if (rn_str_is(key, "d")) {
      status = rn_json_double(&json, &real);
    } else {
      status = rn_json_skip(&json);
    }
  }
  OK(status);
  cr_assert_eq(members, 5);
  cr_assert_eq(number, -12);
  cr_assert(truth);
  cr_assert(rn_str_is(text, "q"));
  cr_assert_eq(real, 2.5);
  cr_assert_str_eq(json.next, " rest");
}

Test(json, malformed_text_is_found_wherever_it_is) {
  static const char* const bad[] = {"{",          "{\"a\"", "{\"a\":",   "{\"a\":1",
                                    "{\"a\":1,}", "{a:1}",  "{\"a\" 1}", "[1,2",
                                    "[[1,2]",     "[1}",    "{\"a\":1]", "tru",
                                    "nul",        "falsE",  "\"\\u12\"", "{\"a\":1 \"b\":2}",
                                    "",           "  ",     "}",         "[\"\x80\"]"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    rn_json_reader_t json = reader(bad[i]);
    FAILS_WITH(rn_json_skip(&json), INVALID_ARGUMENT, "JSON Parse error: ");
  }
}

Test(json, depth_costs_no_stack) {
  const size_t depth = 500000;
  char* text = malloc(2 * depth);
  memset(text, '[', depth);
  memset(text + depth, ']', depth);
  rn_json_reader_t json = rn_json_reader(rn_str_n(text, 2 * depth), &arena);
  OK(rn_json_skip(&json));
  cr_assert_eq(json.next, json.end);
  rn_str_t span;
  json = rn_json_reader(rn_str_n(text, 2 * depth), &arena);
  OK(rn_json_span(&json, &span));
  cr_assert_eq(span.size, 2 * depth);
  json = rn_json_reader(rn_str_n(text, depth), &arena);
  FAILS(rn_json_skip(&json), INVALID_ARGUMENT);
  rn_tensor_t tensor;
  json = rn_json_reader(rn_str_n(text, 2 * depth), &arena);
  FAILS(rn_json_tensor(&json, RN_FLOAT, rn_allocator_system(), &tensor), INVALID_ARGUMENT);
  free(text);
}

Test(json, commas_alone_cost_little) {
  const size_t size = 1 << 20;
  char* text = malloc(size + 1);
  memset(text, ',', size);
  text[0] = '[';
  text[size - 1] = ']';
  text[size] = '\0';
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_json_reader_t json = reader(text);
  rn_tensor_t tensor;
  FAILS(rn_json_tensor(&json, RN_STRING, rn_allocator_counting(&counting), &tensor),
        INVALID_ARGUMENT);
  cr_assert_leq(counting.peak_bytes, 1 << 18);
  // Strings that are there are all read, with room that grows.
  const size_t count = size / 3 - 1;
  for (size_t i = 0; i < count; ++i) memcpy(text + 1 + 3 * i, i + 1 < count ? "\"\"," : "\"\"]", 3);
  json = reader(text);
  OK(rn_json_tensor(&json, RN_STRING, rn_allocator_counting(&counting), &tensor));
  cr_assert_eq(tensor.count, (int64_t)count);
  rn_tensor_clear(&tensor);
  cr_assert_eq(counting.live_bytes, 0);
  free(text);
}

Test(json, spans_end_where_values_do) {
  static const char* const values[] = {"1.5",        "\"a]\\\"\"", "[1,[2,{\"]\":\"}\"}],3]",
                                       "{\"a\":[]}", "[\"\\\\\"]", "[          \"[[[[\"         ]"};
  for (size_t i = 0; i < sizeof values / sizeof *values; ++i) {
    char text[100];
    snprintf(text, sizeof text, "  %s  ,", values[i]);
    rn_json_reader_t json = reader(text);
    rn_str_t span;
    OK(rn_json_span(&json, &span));
    cr_assert(rn_str_is(span, values[i]), "%s", values[i]);
    cr_assert_str_eq(json.next, "  ,");
  }
}

Test(json, values_in_messages_are_cut) {
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  rn_json_reader_t json = reader("{\"a\": [1,2, {\"b\": []}], \"c\": {}}");
  rn_json_print(&json, &out);
  cr_assert_str_eq(out.data,
                   "{\n    \"a\": [1, 2, {\n            \"b\": []\n        }],\n    \"c\": {}\n}");
  out.size = 0;
  char text[2000] = "\"";
  while (strlen(text) < 1900) strcat(text, "\xc3\xa9");  // no character is cut in two
  strcat(text, "\"");
  json = reader(text);
  rn_json_print(&json, &out);
  cr_assert_eq(out.size, 255);
  rn_strbuf_clear(&out);
}

Test(json, strings_are_escaped_and_always_valid) {
  static const struct {
    rn_str_t text;
    const char* want;
  } rows[] = {
      {RN_STR("plain"), "\"plain\""},
      {RN_STR("\"\\\b\f\n\r\t\x01/"), "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001/\""},
      {RN_STR("\xc3\xa9"), "\"\xc3\xa9\""},
      {RN_STR("a\xff"
              "b"),
       "\"a\xef\xbf\xbd"
       "b\""},
      {RN_STR("\xf0\x9f\x98"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
      {RN_STR("a\0b"), "\"a\\u0000b\""},
      {RN_STR(""), "\"\""},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    rn_strbuf_t out;
    rn_strbuf_init(&out, rn_allocator_system());
    rn_json_put_string(&out, rows[i].text);
    cr_assert_str_eq(out.data, rows[i].want);
    rn_strbuf_clear(&out);
  }
}

Test(json, bytes_survive_base64) {
  char bytes[70];
  for (size_t size = 0; size < sizeof bytes; ++size) {
    for (size_t i = 0; i < size; ++i) bytes[i] = (char)(i * 37 + size);
    rn_strbuf_t out;
    rn_strbuf_init(&out, rn_allocator_system());
    rn_json_put_b64(&out, rn_str_n(bytes, size));
    rn_json_reader_t json = rn_json_reader(rn_strbuf_view(&out), &arena);
    rn_str_t back;
    cr_assert(rn_json_is_b64(&json));
    OK(rn_json_bytes(&json, &back));
    cr_assert(rn_str_eq(back, rn_str_n(bytes, size)));
    rn_strbuf_clear(&out);
  }
}

// What rn_decimal_put_float promises, by the C library.
static void put_by_library(char out[64], double value, int digits, bool is_float) {
  snprintf(out, 64, "%g", value);
  double back = is_float ? (double)strtof(out, NULL) : strtod(out, NULL);
  if (back != value) snprintf(out, 64, "%.*g", digits, value);
  if (!strpbrk(out, ".e")) strcat(out, ".0");
}

static uint64_t next_random(uint64_t* state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state * UINT64_C(0x2545F4914F6CDD1D);
}

// Kinds of numbers that go different ways: any bits, few binary digits, few decimal ones, a mean
// model's outputs.
static double random_number(uint64_t* state, int kind, bool is_float) {
  uint64_t bits = next_random(state);
  if (kind == 1) return (double)(bits % 2000000) / (double)(UINT64_C(1) << (bits >> 59));
  if (kind == 2) return (double)(bits % 1000000) * pow(10, (int)(bits >> 58) % 40 - 20);
  if (kind == 3) return (double)(bits >> 11) * 0x1p-53;
  double value;
  memcpy(&value, &bits, sizeof value);
  return is_float ? (double)rn_bits_float((uint32_t)(bits >> 32)) : value;
}

static rn_decimal_t scan(const char* text) {
  rn_decimal_t decimal;
  cr_assert_eq(rn_decimal_scan(text, text + strlen(text), &decimal), RN_DECIMAL_OK, "%s", text);
  cr_assert_eq(*decimal.end, '\0');
  return decimal;
}

Test(json, numbers_are_written_and_read_as_the_library_does) {
  uint64_t state = 88172645463325252;
  char ours[64], theirs[64];
  for (int i = 0; i < 200000; ++i) {
    bool is_float = i % 2;
    double value = random_number(&state, i / 2 % 4, is_float);
    if (is_float) value = (double)(float)value;
    if (!isfinite(value)) continue;
    *(is_float ? rn_decimal_put_float(ours, (float)value) : rn_decimal_put_double(ours, value)) = 0;
    put_by_library(theirs, value, is_float ? 9 : 17, is_float);
    cr_assert_str_eq(ours, theirs);
    rn_decimal_t decimal = scan(ours);
    cr_assert_eq(is_float ? (double)rn_decimal_to_float(&decimal) : rn_decimal_to_double(&decimal),
                 value, "%s", ours);
    // Any number of digits, also more than an integer holds.
    snprintf(theirs, sizeof theirs, "%.*g", 1 + (int)(next_random(&state) % 30), value);
    decimal = scan(theirs);
    cr_assert_eq(rn_decimal_to_double(&decimal), strtod(theirs, NULL), "%s", theirs);
    cr_assert_eq(rn_decimal_to_float(&decimal), strtof(theirs, NULL), "%s", theirs);
  }
}

Test(json, middles_of_two_numbers_round_to_even) {
  static const char* const texts[] = {
      "9007199254740993",
      "9007199254740993.0",
      "9007199254740993.00000000000000000001",
      "9007199254740992.99999999999999999999999",
      "16777217",
      "16777217.000000001",
      "16777219",
      "1.00000005960464477539062500",
      "1.000000059604644775390625000000000000000000000001",
      "0.500000029802322387695312499999999999999999999999999",
      "2.4703282292062327e-324",
      "2.4703282292062328e-324",
      "4.9406564584124654e-324",
      "2.2250738585072011e-308",
      "1.7976931348623158e308",
      "7.006492321624085e-46",
      "7.0064923216240854e-46",
      "3.4028235677973366e38",
      "3.4028235677973365e38",
      "1e-400",
      "0e400",
      "1e308",
      "123456789e-9",
      "0.0000000000000000000000000000000000000000000000000000000000000000000000000000000001e90"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    rn_decimal_t decimal = scan(texts[i]);
    cr_assert_eq(rn_decimal_to_double(&decimal), strtod(texts[i], NULL), "%s", texts[i]);
    cr_assert_eq(rn_decimal_to_float(&decimal), strtof(texts[i], NULL), "%s", texts[i]);
  }
  // More digits than any double has; the last one decides.
  char text[1200] = "9007199254740993.";
  size_t size = strlen(text);
  memset(text + size, '0', 1000);
  strcpy(text + size + 1000, "1");
  rn_decimal_t decimal = scan(text);
  cr_assert_eq(rn_decimal_to_double(&decimal), 9007199254740994.0);
}

Test(json, messages_have_defaults_and_quoted_integers) {
  rn_pb_serving_StatusProto_t status = {.error_message = RN_STR("")};
  rn_pb_serving_ModelVersionStatus_t version = {.version = 123, .state = 30, .status = &status};
  rn_pb_serving_GetModelStatusResponse_t message = {.model_version_status = {&version, 1, 0}};
  rn_strbuf_t out;
  rn_strbuf_init(&out, rn_allocator_system());
  OK(rn_json_put_message(&out, &rn_pb_serving_GetModelStatusResponse_desc, &message,
                         RN_JSON_LINES));
  cr_assert_str_eq(out.data,
                   "{\n \"model_version_status\": [\n  {\n   \"version\": \"123\",\n"
                   "   \"state\": \"AVAILABLE\",\n   \"status\": {\n    \"error_code\": \"OK\",\n"
                   "    \"error_message\": \"\"\n   }\n  }\n ]\n}");
  rn_strbuf_clear(&out);
}

// A list that several threads read, and how it is spoiled: |spoiled| replaces an element.
static rn_status_t read_long(rn_pool_t* pool, rn_dtype_t dtype, int count, int at,
                             const char* spoiled, rn_tensor_t* out) {
  rn_strbuf_t text;
  rn_strbuf_init(&text, rn_allocator_system());
  rn_strbuf_append(&text, RN_STR("[[ "));
  for (int i = 0; i < count; ++i) {
    if (i) rn_strbuf_append(&text, i % 3 ? RN_STR(",") : RN_STR(" ,\n "));
    if (i == at)
      rn_strbuf_append(&text, rn_str(spoiled));
    else if (rn_dtype_is_floating(dtype))
      rn_strbuf_printf(&text, "%.*g", 1 + i % 17, (i % 2 ? -1 : 1) * (i * 1.37 + 0.1));
    else
      rn_strbuf_printf(&text, "%d", i % 2 ? -i : i * 7);
  }
  rn_strbuf_append(&text, RN_STR(" ] ]"));
  rn_json_reader_t json = rn_json_reader(rn_strbuf_view(&text), &arena);
  json.pool = pool;
  rn_status_t status = rn_json_tensor(&json, dtype, rn_allocator_system(), out);
  if (rn_ok(status)) cr_assert_eq(json.next, json.end);
  rn_strbuf_clear(&text);
  return status;
}

// Long lists give the same tensors, and the same errors, however many threads read them.
Test(json, long_lists_in_pieces, .init = init, .fini = fini) {
  static const rn_dtype_t dtypes[] = {RN_FLOAT, RN_DOUBLE, RN_INT32, RN_INT64, RN_INT16};
  static const int counts[] = {1, 3000, 7000, 20011, 70001};
  static const char* const wrong[] = {"",      "1,",    ",",   "x",    "[1]",
                                      "\"1\"", "1e999", "1 2", "true", "1]"};
  rn_pool_t* pool = NULL;
  OK(rn_pool_create(rn_allocator_system(), 3, &pool));
  for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; ++d)
    for (size_t c = 0; c < sizeof counts / sizeof *counts; ++c) {
      if (dtypes[d] == RN_INT16 && counts[c] > 3000) continue;
      rn_tensor_t one, several;
      OK(read_long(NULL, dtypes[d], counts[c], -1, NULL, &one));
      OK(read_long(pool, dtypes[d], counts[c], -1, NULL, &several));
      cr_assert_eq(one.count, counts[c]);
      cr_assert_eq(several.count, counts[c]);
      cr_assert_eq(several.rank, 2);
      cr_assert(memcmp(one.data, several.data, rn_tensor_bytes(&one)) == 0);
      rn_tensor_clear(&one);
      rn_tensor_clear(&several);
    }
  for (size_t w = 0; w < sizeof wrong / sizeof *wrong; ++w)
    for (int at = 0; at < 20011; at += 20010 / 6) {
      rn_tensor_t none;
      if (!strcmp(wrong[w], "1]") && at == 20010)
        continue;  // a whole list, and something behind it
      rn_status_t one = read_long(NULL, RN_FLOAT, 20011, at, wrong[w], &none);
      rn_status_t several = read_long(pool, RN_FLOAT, 20011, at, wrong[w], &none);
      cr_assert(!rn_ok(one), "%s at %d", wrong[w], at);
      cr_assert_eq(rn_status_code(one), rn_status_code(several));
      cr_assert_str_eq(rn_status_message(one), rn_status_message(several));
      rn_status_free(one);
      rn_status_free(several);
    }
  rn_pool_destroy(pool);
}

// An empty element that would be a piece of its own.
Test(json, empty_elements_between_pieces, .init = init, .fini = fini) {
  rn_pool_t* pool = NULL;
  OK(rn_pool_create(rn_allocator_system(), 3, &pool));
  enum { SIZE = 5 * 32768 };
  char* text = malloc(SIZE);
  for (int offset = -3; offset <= 3; ++offset) {
    memset(text, ' ', SIZE);
    memcpy(text, "[1", 2);
    memcpy(text + 1 + 2 * 32768 + offset, ",,2", 3);
    text[SIZE - 1] = ']';
    rn_json_reader_t json = rn_json_reader(rn_str_n(text, SIZE), &arena);
    json.pool = pool;
    rn_tensor_t none;
    FAILS(rn_json_tensor(&json, RN_FLOAT, rn_allocator_system(), &none), INVALID_ARGUMENT);
  }
  free(text);
  rn_pool_destroy(pool);
}
