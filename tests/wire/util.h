// What the tests of this room share.
#ifndef RUNNEL_TESTS_WIRE_UTIL_H_
#define RUNNEL_TESTS_WIRE_UTIL_H_

#include <criterion/criterion.h>

#include "base/arena.h"
#include "base/str.h"

#define ASSERT_OK(expression)                                                     \
  do {                                                                            \
    rn_status_t status_ = (expression);                                           \
    cr_assert(rn_ok(status_), "%s: %s", #expression, rn_status_message(status_)); \
  } while (0)

// Fails with |code_| and a message that holds |part|.
#define ASSERT_FAILS(expression, code_, part)                                       \
  do {                                                                              \
    rn_status_t status_ = (expression);                                             \
    cr_assert(!rn_ok(status_), "%s did not fail", #expression);                     \
    cr_assert_eq(rn_status_code(status_), code_, "%s", rn_status_message(status_)); \
    cr_assert_not_null(strstr(rn_status_message(status_), part), "message: %s",     \
                       rn_status_message(status_));                                 \
    rn_status_free(status_);                                                        \
  } while (0)

#define ASSERT_STR(str, text)                                                    \
  do {                                                                           \
    rn_str_t str_ = (str), text_ = (text);                                       \
    cr_assert(rn_str_eq(str_, text_), "'%.*s' is not '%.*s'", RN_STR_ARGS(str_), \
              RN_STR_ARGS(text_));                                               \
  } while (0)

// "0a 03" to bytes; |out| has room for them.
static inline rn_str_t from_hex(const char* hex, char* out) {
  size_t size = 0;
  for (; *hex; ++hex) {
    if (*hex == ' ') continue;
    char pair[3] = {hex[0], hex[1], 0};
    out[size++] = (char)strtol(pair, NULL, 16);
    ++hex;
  }
  return rn_str_n(out, size);
}

#endif  // RUNNEL_TESTS_WIRE_UTIL_H_
