// A stand-in for Criterion where the real one does not run: under ThreadSanitizer, which its
// runner crashes with. Put this folder before the system's in the include path and do not link
// criterion; the tests stay as they are.
//
// As there, each test is a process of its own. With an argument, only tests whose "suite/name"
// contains it run.
#ifndef RUNNEL_TESTS_TSAN_CRITERION_H_
#define RUNNEL_TESTS_TSAN_CRITERION_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct stand_in_options_t {
  double timeout;  // seconds; 0: none
  int exit_code;
  bool disabled;
  void (*init)(void);
  void (*fini)(void);
} stand_in_options_t;

typedef struct stand_in_test_t {
  const char* name;
  void (*run)(void);
  stand_in_options_t options;
  struct stand_in_test_t* next;
} stand_in_test_t;

static stand_in_test_t* stand_in_tests;

#define Test(suite, test_name, ...)                                                               \
  static void suite##_##test_name(void);                                                          \
  __attribute__((constructor)) static void suite##_##test_name##_add(void) {                      \
    static stand_in_test_t test = {#suite "/" #test_name, suite##_##test_name, {__VA_ARGS__}, 0}; \
    test.next = stand_in_tests;                                                                   \
    stand_in_tests = &test;                                                                       \
  }                                                                                               \
  static void suite##_##test_name(void)

// Ends the process, from whichever thread. The space keeps an absent message a valid format.
#define stand_in_check(condition, text, ...)                                      \
  do {                                                                            \
    if (!(condition)) {                                                           \
      fprintf(stderr, "%s:%d: assertion failed: %s\n", __FILE__, __LINE__, text); \
      fprintf(stderr, " " __VA_ARGS__);                                           \
      fputc('\n', stderr);                                                        \
      _exit(1);                                                                   \
    }                                                                             \
  } while (0)

#define cr_assert(condition, ...) stand_in_check((condition), #condition, ##__VA_ARGS__)
#define cr_assert_not(condition, ...) stand_in_check(!(condition), "not " #condition, ##__VA_ARGS__)
#define cr_assert_fail(...) stand_in_check(false, "reached", ##__VA_ARGS__)
#define cr_assert_eq(a, b, ...) stand_in_check((a) == (b), #a " == " #b, ##__VA_ARGS__)
#define cr_assert_neq(a, b, ...) stand_in_check((a) != (b), #a " != " #b, ##__VA_ARGS__)
#define cr_assert_lt(a, b, ...) stand_in_check((a) < (b), #a " < " #b, ##__VA_ARGS__)
#define cr_assert_leq(a, b, ...) stand_in_check((a) <= (b), #a " <= " #b, ##__VA_ARGS__)
#define cr_assert_gt(a, b, ...) stand_in_check((a) > (b), #a " > " #b, ##__VA_ARGS__)
#define cr_assert_geq(a, b, ...) stand_in_check((a) >= (b), #a " >= " #b, ##__VA_ARGS__)
#define cr_assert_null(a, ...) stand_in_check((a) == NULL, #a " is NULL", ##__VA_ARGS__)
#define cr_assert_not_null(a, ...) stand_in_check((a) != NULL, #a " is not NULL", ##__VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) \
  stand_in_check(strcmp((a), (b)) == 0, #a " reads " #b, ##__VA_ARGS__)
#define cr_assert_str_neq(a, b, ...) \
  stand_in_check(strcmp((a), (b)) != 0, #a " does not read " #b, ##__VA_ARGS__)
#define cr_assert_float_eq(a, b, epsilon, ...)                                         \
  stand_in_check((a) - (b) <= (epsilon) && (b) - (a) <= (epsilon), #a " is about " #b, \
                 ##__VA_ARGS__)
#define cr_assert_arr_eq(a, b, size, ...) \
  stand_in_check(memcmp((a), (b), (size)) == 0, #a " holds " #b, ##__VA_ARGS__)
#define cr_log_info(...) ((void)0)

static bool stand_in_run(const stand_in_test_t* test) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    if (test->options.timeout > 0) alarm((unsigned)test->options.timeout * 10);
    if (test->options.init) test->options.init();
    test->run();
    if (test->options.fini) test->options.fini();
    exit(0);  // not _exit: the sanitizer's verdict is in the exit code
  }
  int state = 0;
  bool passed = child > 0 && waitpid(child, &state, 0) == child && WIFEXITED(state) &&
                WEXITSTATUS(state) == test->options.exit_code;
  printf("%s %s\n", passed ? "pass" : "FAIL", test->name);
  return passed;
}

int main(int argc, char** argv) {
  int passed = 0, failed = 0;
  for (const stand_in_test_t* test = stand_in_tests; test; test = test->next) {
    if (test->options.disabled || (argc > 1 && !strstr(test->name, argv[1]))) continue;
    *(stand_in_run(test) ? &passed : &failed) += 1;
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed || !passed;
}

#endif  // RUNNEL_TESTS_TSAN_CRITERION_H_
