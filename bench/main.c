// The bench client's command line. Prints `case<TAB>value<TAB>unit`, one line per case.
#include <fnmatch.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

extern char** environ;

static const bench_case_t* const kThemes[] = {
    bench_machine_cases, bench_process_cases, bench_dispatch_cases,    bench_dense_cases,
    bench_train_cases,   bench_model_cases,   bench_graph_cases,       bench_data_cases,
    bench_parse_cases,   bench_files_cases,   bench_saved_model_cases,
};
enum { kThemeCount = sizeof kThemes / sizeof *kThemes };

static const char kUsage[] =
    "usage: client [--list] [--case PATTERN] [--quick] [--seconds S]\n"
    "  --list          print the names of the cases\n"
    "  --case PATTERN  run the cases whose names match (shell pattern; all by default)\n"
    "  --quick         one short batch a case: a smoke test, not a measurement\n"
    "  --seconds S     length of a timed batch (default 0.7; the best of 3 counts)\n";

static void run_case(const bench_case_t* row, const bench_options_t* options) {
  double value = row->run(options, row->a, row->b);
  printf("%s\t%.6g\t%s\n", row->name, value, row->unit);
  fflush(stdout);
}

// Runs one case in its own process, so that no case inherits another's threads, caches or memory.
// True if it succeeded.
static bool spawn_case(const bench_case_t* row, const bench_options_t* options) {
  char seconds[32], batches[16];
  snprintf(seconds, sizeof seconds, "%g", options->seconds);
  snprintf(batches, sizeof batches, "%d", options->batches);
  char* arguments[] = {"client", "--case",    (char*)row->name, "--seconds",
                       seconds,  "--batches", batches,          NULL};
  pid_t child;
  int status = 0;
  if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) != 0) return false;
  if (waitpid(child, &status, 0) != child) return false;
  bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!ok) fprintf(stderr, "%s: failed\n", row->name);
  return ok;
}

static int run_matching(const char* pattern, const bench_options_t* options) {
  const bench_case_t* only = NULL;
  int matches = 0, failures = 0;
  for (int t = 0; t < kThemeCount; ++t) {
    for (const bench_case_t* row = kThemes[t]; row->name != NULL; ++row) {
      if (fnmatch(pattern, row->name, 0) != 0) continue;
      only = row;
      ++matches;
    }
  }
  if (matches == 0) {
    fprintf(stderr, "no case matches '%s'; --list names them\n", pattern);
    return 2;
  }
  if (matches == 1) {
    run_case(only, options);
    return 0;
  }
  for (int t = 0; t < kThemeCount; ++t) {
    for (const bench_case_t* row = kThemes[t]; row->name != NULL; ++row) {
      if (fnmatch(pattern, row->name, 0) == 0) failures += !spawn_case(row, options);
    }
  }
  return failures > 0;
}

static int list_cases(void) {
  for (int t = 0; t < kThemeCount; ++t) {
    for (const bench_case_t* row = kThemes[t]; row->name != NULL; ++row) {
      printf("%s\t%s\n", row->name, row->unit);
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  bench_options_t options = {.seconds = 0.7, .batches = 3};
  const char* pattern = "*";
  for (int i = 1; i < argc; ++i) {
    bool has_value = i + 1 < argc;
    if (strcmp(argv[i], "--list") == 0) {
      return list_cases();
    } else if (strcmp(argv[i], "--quick") == 0) {
      options = (bench_options_t){.seconds = 0.1, .batches = 1};
    } else if (strcmp(argv[i], "--case") == 0 && has_value) {
      pattern = argv[++i];
    } else if (strcmp(argv[i], "--seconds") == 0 && has_value) {
      options.seconds = atof(argv[++i]);
    } else if (strcmp(argv[i], "--batches") == 0 && has_value) {
      options.batches = atoi(argv[++i]);
    } else {
      fputs(kUsage, stderr);
      return 2;
    }
  }
  return run_matching(pattern, &options);
}
