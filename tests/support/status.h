// Checks of statuses. One that fails ends the test and prints the expression, its code and its
// message. A status that was expected to be an error is freed.
#ifndef RUNNEL_TESTS_SUPPORT_STATUS_H_
#define RUNNEL_TESTS_SUPPORT_STATUS_H_

#include <criterion/criterion.h>
#include <string.h>

#include "base/status.h"

#define OK(expression)                                                                          \
  do {                                                                                          \
    rn_status_t checked_status = (expression);                                                  \
    cr_assert(rn_ok(checked_status), "%s: %s: %s", #expression,                                 \
              rn_code_name(rn_status_code(checked_status)), rn_status_message(checked_status)); \
  } while (0)

// |wanted| is a code without its prefix: NOT_FOUND.
#define FAILS(expression, wanted) FAILS_CODE(expression, RN_CODE_##wanted, "")
// Also the message contains |part|.
#define FAILS_WITH(expression, wanted, part) FAILS_CODE(expression, RN_CODE_##wanted, part)
// The same for a code that is a value: RN_CODE_NOT_FOUND.
#define FAILS_CODE(expression, code, part)                                                         \
  do {                                                                                             \
    rn_status_t checked_status = (expression);                                                     \
    rn_code_t checked_code = (code);                                                               \
    cr_assert_eq(rn_status_code(checked_status), checked_code, "%s: %s, not %s: '%s'",             \
                 #expression, rn_code_name(rn_status_code(checked_status)),                        \
                 rn_code_name(checked_code), rn_status_message(checked_status));                   \
    cr_assert(strstr(rn_status_message(checked_status), part), "%s: '%s' lacks '%s'", #expression, \
              rn_status_message(checked_status), part);                                            \
    rn_status_free(checked_status);                                                                \
  } while (0)

// The whole message is |message|.
#define FAILS_SAYING(expression, wanted, message)                                           \
  do {                                                                                      \
    rn_status_t said = (expression);                                                        \
    cr_assert_str_eq(rn_status_message(said), message, "%s: '%s' is not '%s'", #expression, \
                     rn_status_message(said), message);                                     \
    FAILS(said, wanted);                                                                    \
  } while (0)

#endif  // RUNNEL_TESTS_SUPPORT_STATUS_H_
