// Helpers of the tests in this folder.
#ifndef RUNNEL_TESTS_WIRE_UTIL_H_
#define RUNNEL_TESTS_WIRE_UTIL_H_

#include <criterion/criterion.h>

#include "../support/status.h"
#include "base/arena.h"
#include "base/str.h"

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
