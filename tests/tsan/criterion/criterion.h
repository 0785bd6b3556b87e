// Replaces Criterion in sanitizer builds, because Criterion's runner crashes under sanitizers or
// hides their reports. Put this folder before the system's in the include path, and link stand_in.c
// instead of criterion; the tests do not change.
//
// Like Criterion, it runs each test in a process of its own. With arguments, only tests whose
// \"suite/name\" contains one of them run.
#ifndef RUNNEL_TESTS_TSAN_CRITERION_H_
#define RUNNEL_TESTS_TSAN_CRITERION_H_

// Its macros compare what tests hand in, and warn of no more than the real ones.
#pragma GCC system_header

// What tests take from here without asking, as with the real one.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct stand_in_options_t {
  double timeout;  // seconds; 0: the suite's. Sanitizers are slow: the runner allows ten times that
  int signal;      // that the test must die of; 0: none
  int exit_code;
  bool disabled;
  void (*init)(void);
  void (*fini)(void);
  const char* description;
} stand_in_options_t;

typedef struct stand_in_test_t {
  const char* suite;
  const char* name;
  void (*run)(void);  // NULL: this is what holds for the whole suite
  stand_in_options_t options;
  struct stand_in_test_t* next;  // the runner's
} stand_in_test_t;

void stand_in_add(stand_in_test_t* test);
// A failed check: says so, and ends the test unless |goes_on|. From any thread.
__attribute__((format(printf, 5, 6))) void stand_in_fail(const char* file, int line, bool goes_on,
                                                         const char* condition, const char* format,
                                                         ...);
__attribute__((noreturn, format(printf, 1, 2))) void stand_in_skip(const char* format, ...);

#define STAND_IN_ADD(id, suite, name, run, ...)                            \
  __attribute__((constructor)) static void id##_add(void) {                \
    static stand_in_test_t test = {suite, name, run, {__VA_ARGS__}, NULL}; \
    stand_in_add(&test);                                                   \
  }

#define Test(suite, test_name, ...)                                                         \
  static void suite##_##test_name(void);                                                    \
  STAND_IN_ADD(suite##_##test_name, #suite, #test_name, suite##_##test_name, ##__VA_ARGS__) \
  static void suite##_##test_name(void)
#define TestSuite(suite, ...) STAND_IN_ADD(suite##_suite, #suite, "", NULL, ##__VA_ARGS__)

// The space keeps an absent message a valid format.
#define stand_in_check(goes_on, condition, text, ...)                                    \
  do {                                                                                   \
    if (!(condition)) stand_in_fail(__FILE__, __LINE__, goes_on, text, " " __VA_ARGS__); \
  } while (0)
#define STAND_IN_NEAR(a, b, epsilon) ((a) - (b) <= (epsilon) && (b) - (a) <= (epsilon))

#define cr_assert(a, ...) stand_in_check(false, (a), #a, ##__VA_ARGS__)
#define cr_assert_not(a, ...) stand_in_check(false, !(a), "not " #a, ##__VA_ARGS__)
#define cr_assert_fail(...) stand_in_check(false, false, "reached", ##__VA_ARGS__)
#define cr_assert_eq(a, b, ...) stand_in_check(false, (a) == (b), #a " == " #b, ##__VA_ARGS__)
#define cr_assert_neq(a, b, ...) stand_in_check(false, (a) != (b), #a " != " #b, ##__VA_ARGS__)
#define cr_assert_lt(a, b, ...) stand_in_check(false, (a) < (b), #a " < " #b, ##__VA_ARGS__)
#define cr_assert_leq(a, b, ...) stand_in_check(false, (a) <= (b), #a " <= " #b, ##__VA_ARGS__)
#define cr_assert_gt(a, b, ...) stand_in_check(false, (a) > (b), #a " > " #b, ##__VA_ARGS__)
#define cr_assert_geq(a, b, ...) stand_in_check(false, (a) >= (b), #a " >= " #b, ##__VA_ARGS__)
#define cr_assert_null(a, ...) stand_in_check(false, (a) == NULL, #a " is NULL", ##__VA_ARGS__)
#define cr_assert_not_null(a, ...) \
  stand_in_check(false, (a) != NULL, #a " is not NULL", ##__VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) \
  stand_in_check(false, strcmp((a), (b)) == 0, #a " reads " #b, ##__VA_ARGS__)
#define cr_assert_str_neq(a, b, ...) \
  stand_in_check(false, strcmp((a), (b)) != 0, #a " does not read " #b, ##__VA_ARGS__)
#define cr_assert_float_eq(a, b, epsilon, ...) \
  stand_in_check(false, STAND_IN_NEAR(a, b, epsilon), #a " is about " #b, ##__VA_ARGS__)
#define cr_assert_arr_eq(a, b, size, ...) \
  stand_in_check(false, memcmp((a), (b), (size)) == 0, #a " holds " #b, ##__VA_ARGS__)

#define cr_expect(a, ...) stand_in_check(true, (a), #a, ##__VA_ARGS__)
#define cr_expect_not(a, ...) stand_in_check(true, !(a), "not " #a, ##__VA_ARGS__)
#define cr_expect_eq(a, b, ...) stand_in_check(true, (a) == (b), #a " == " #b, ##__VA_ARGS__)
#define cr_expect_neq(a, b, ...) stand_in_check(true, (a) != (b), #a " != " #b, ##__VA_ARGS__)
#define cr_expect_lt(a, b, ...) stand_in_check(true, (a) < (b), #a " < " #b, ##__VA_ARGS__)
#define cr_expect_leq(a, b, ...) stand_in_check(true, (a) <= (b), #a " <= " #b, ##__VA_ARGS__)
#define cr_expect_gt(a, b, ...) stand_in_check(true, (a) > (b), #a " > " #b, ##__VA_ARGS__)
#define cr_expect_geq(a, b, ...) stand_in_check(true, (a) >= (b), #a " >= " #b, ##__VA_ARGS__)
#define cr_expect_null(a, ...) stand_in_check(true, (a) == NULL, #a " is NULL", ##__VA_ARGS__)
#define cr_expect_not_null(a, ...) \
  stand_in_check(true, (a) != NULL, #a " is not NULL", ##__VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) \
  stand_in_check(true, strcmp((a), (b)) == 0, #a " reads " #b, ##__VA_ARGS__)
#define cr_expect_float_eq(a, b, epsilon, ...) \
  stand_in_check(true, STAND_IN_NEAR(a, b, epsilon), #a " is about " #b, ##__VA_ARGS__)
#define cr_expect_arr_eq(a, b, size, ...) \
  stand_in_check(true, memcmp((a), (b), (size)) == 0, #a " holds " #b, ##__VA_ARGS__)

#define cr_skip_test(...) stand_in_skip(" " __VA_ARGS__)
#define cr_log_info(...) ((void)sizeof(snprintf(NULL, 0, __VA_ARGS__)))
#define cr_log_warn(...) fprintf(stderr, __VA_ARGS__)
#define cr_log_error(...) fprintf(stderr, __VA_ARGS__)

#endif  // RUNNEL_TESTS_TSAN_CRITERION_H_
