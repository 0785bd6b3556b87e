// The runner behind criterion/criterion.h: one process per test, one after the other.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOWER 10   // than without a sanitizer, at most
#define SKIPPED 77  // exit code, as usual

static stand_in_test_t* tests;
static stand_in_test_t** tests_end = &tests;
static atomic_bool has_failed;  // of the test's own process

void stand_in_add(stand_in_test_t* test) {
  *tests_end = test;
  tests_end = &test->next;
}

void stand_in_fail(const char* file, int line, bool goes_on, const char* condition,
                   const char* format, ...) {
  va_list args;
  va_start(args, format);
  flockfile(stderr);
  fprintf(stderr, "%s:%d: failed: %s:", file, line, condition);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  funlockfile(stderr);
  va_end(args);
  has_failed = true;
  if (!goes_on) _exit(1);
}

void stand_in_skip(const char* format, ...) {
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  _exit(SKIPPED);
}

static stand_in_options_t options_of(const stand_in_test_t* test) {
  stand_in_options_t options = test->options;
  for (const stand_in_test_t* suite = tests; suite; suite = suite->next) {
    if (suite->run || strcmp(suite->suite, test->suite) != 0) continue;
    if (!options.timeout) options.timeout = suite->options.timeout;
    if (!options.init) options.init = suite->options.init;
    if (!options.fini) options.fini = suite->options.fini;
    options.disabled |= suite->options.disabled;
  }
  return options;
}

static void run_here(const stand_in_test_t* test, const stand_in_options_t* options) {
  if (options->timeout > 0) alarm((unsigned)(options->timeout * SLOWER) + 1);
  if (options->init) options->init();
  test->run();
  if (options->fini) options->fini();
  exit(has_failed ? 1 : 0);  // not _exit: the sanitizer's verdict is in the exit code
}

static const char* run(const stand_in_test_t* test, const stand_in_options_t* options) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) run_here(test, options);
  int state = 0;
  while (child > 0 && waitpid(child, &state, 0) != child) continue;
  if (child < 0) return "FAIL (no process)";
  if (WIFSIGNALED(state))
    return WTERMSIG(state) == options->signal ? "pass"
           : WTERMSIG(state) == SIGALRM       ? "FAIL (timed out)"
                                              : "FAIL (died of a signal)";
  if (WEXITSTATUS(state) == SKIPPED) return "skip";
  return !options->signal && WEXITSTATUS(state) == options->exit_code ? "pass" : "FAIL";
}

static bool is_wanted(const stand_in_test_t* test, int argc, char** argv) {
  char name[256];
  snprintf(name, sizeof name, "%s/%s", test->suite, test->name);
  for (int i = 1; i < argc; ++i)
    if (strstr(name, argv[i])) return true;
  return argc < 2;
}

int main(int argc, char** argv) {
  int passed = 0, failed = 0;
  for (const stand_in_test_t* test = tests; test; test = test->next) {
    stand_in_options_t options = options_of(test);
    if (!test->run || options.disabled || !is_wanted(test, argc, argv)) continue;
    const char* outcome = run(test, &options);
    *(outcome[0] == 'F' ? &failed : &passed) += 1;
    printf("%s %s/%s\n", outcome, test->suite, test->name);
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed || !passed;
}
