// The op case tables against a libtensorflow. See README.md beside this file.
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "opdef.h"

enum { MAX_FAMILIES = 64, CASE_TIMEOUT_MS = 60000 };

typedef struct {
  const char* mode;
  const char* filter;
  const char* dir;
  bool is_verbose;
  size_t sample;  // rows per op and types; 0: all
  check_options_t check;
  size_t family_count;
  const char* families[MAX_FAMILIES];
  char found[MAX_FAMILIES][64];  // their names, where the folder was asked
} options_t;

typedef struct {
  size_t count, capacity;
  json_t** rows;
  bool* is_left_out;  // by row; NULL: none is
} table_t;

typedef struct {
  size_t passed, failed, skipped, known;
  json_t* without_gpu;  // op name -> number of rows that it has no kernel on the GPU for
} tally_t;

// What a child says about one case.
typedef struct {
  size_t index;
  outcome_t outcome;
  bool lacks_gpu_kernel;
  char text[1024];
} report_t;

static void die(const char* what, const char* path) {
  fprintf(stderr, "ops_test: %s: %s\n", what, path);
  exit(2);
}

// ---- tables

static void table_add(table_t* table, json_t* row) {
  if (table->count == table->capacity) {
    table->capacity = table->capacity ? 2 * table->capacity : 256;
    table->rows = realloc(table->rows, table->capacity * sizeof *table->rows);
    if (!table->rows) abort();
  }
  table->rows[table->count++] = row;
}

static void table_free(table_t* table) {
  for (size_t i = 0; i < table->count; i++) json_decref(table->rows[i]);
  free(table->rows);
  free(table->is_left_out);
}

// One JSON object a line; lines that start with '#' are comments.
static table_t table_load(const char* path) {
  table_t table = {0};
  char* line = NULL;
  size_t size = 0, number = 0;
  FILE* file = fopen(path, "r");
  if (!file) die(strerror(errno), path);
  for (ssize_t n; (n = getline(&line, &size, file)) >= 0;) {
    number++;
    if (n <= 1 || line[0] == '#') continue;
    json_error_t error;
    json_t* row = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, &error);
    if (!row) {
      fprintf(stderr, "ops_test: %s:%zu: %s\n", path, number, error.text);
      exit(2);
    }
    table_add(&table, row);
  }
  free(line);
  fclose(file);
  return table;
}

static const char* name_of(const json_t* row) {
  const char* name = json_string_value(json_object_get(row, "name"));
  return name ? name : "";
}

// Whether the row or its op is listed in second_order.txt: it has no second derivative to check.
static bool is_rough(const options_t* options, const json_t* row) {
  const char* op = json_string_value(json_object_get(row, "op"));
  char path[512], line[256], name[128];
  bool is_listed = false;
  snprintf(path, sizeof path, "%s/second_order.txt", options->dir);
  FILE* file = fopen(path, "r");
  while (file && op && !is_listed && fgets(line, sizeof line, file))
    is_listed = sscanf(line, "%127s", name) == 1 &&
                (strcmp(name, op) == 0 || strcmp(name, name_of(row)) == 0);
  if (file) fclose(file);
  return is_listed;
}

// ---- running cases in a child process

static outcome_t run_case(const options_t* options, const json_t* row, const json_t* golden,
                          report_t* report) {
  check_t check = {.row = row, .golden = golden, .options = options->check};
  outcome_t outcome;
  const bool needs_kernel = strcmp(options->mode, "eval") != 0;
  if (check_lacks_op(&check) || (needs_kernel && check_lacks_kernel(&check))) {
    outcome = OUTCOME_SKIPPED;
  } else if (strcmp(options->mode, "grad") == 0) {
    outcome = check_grad(&check);
  } else if (strcmp(options->mode, "grad2") == 0) {
    outcome = is_rough(options, row) ? OUTCOME_SKIPPED : check_grad2(&check);
  } else if (strcmp(options->mode, "perf") == 0) {
    outcome = check_perf(&check);
  } else {
    outcome = check_eval(&check);
  }
  memcpy(report->text, check.text, sizeof report->text);
  report->lacks_gpu_kernel = check.lacks_gpu_kernel;
  return outcome;
}

static bool is_selected(const options_t* options, const table_t* table, size_t i) {
  const json_t* row = table->rows[i];
  const char* op = json_string_value(json_object_get(row, "op"));
  if (table->is_left_out && table->is_left_out[i]) return false;
  return !options->filter || strstr(name_of(row), options->filter) ||
         (op && strcmp(op, options->filter) == 0);
}

// ---- samples: a few rows per op and types, for tools that make everything slow

static void add_text(char* text, size_t size, const char* more) {
  const size_t length = strlen(text);
  if (more) snprintf(text + length, size - length, " %s", more);
}

// Whether the answer has elements, so that a kernel runs.
static bool has_elements(const json_t* answer) {
  size_t i, d;
  const json_t *output, *dim;
  bool is_full = false;
  json_array_foreach(json_object_get(answer, "outputs"), i, output) {
    bool is_empty = false;
    json_array_foreach(json_object_get(output, "shape"), d, dim) is_empty |=
        json_integer_value(dim) == 0;
    is_full |= !is_empty;
  }
  return is_full;
}

// What a row is a sample of: its op, the types of its inputs, attributes that are texts, and
// whether it computes something.
static void kind_of(const json_t* row, const json_t* answer, char* text, size_t size) {
  size_t i;
  const char* key;
  const json_t *input, *value;
  text[0] = '\0';
  add_text(text, size, json_string_value(json_object_get(row, "op")));
  json_array_foreach(json_object_get(row, "inputs"), i, input)
      add_text(text, size, json_string_value(json_object_get(input, "dtype")));
  json_object_foreach(json_object_get(row, "attrs"), key, value)
      add_text(text, size, json_string_value(value));
  if (!has_elements(answer)) add_text(text, size, "nothing");
}

static void leave_out(const options_t* options, table_t* table, const table_t* golden) {
  json_t* seen = json_object();
  table->is_left_out = calloc(table->count + 1, sizeof *table->is_left_out);
  if (!table->is_left_out || !seen) abort();
  for (size_t i = 0; i < table->count; i++) {
    char kind[512];
    kind_of(table->rows[i], golden->rows[i], kind, sizeof kind);
    const json_int_t count = json_integer_value(json_object_get(seen, kind));
    // Long rows take other kernels than short ones.
    const bool is_long = strstr(name_of(table->rows[i]), "long") != NULL;
    table->is_left_out[i] = !is_long && (size_t)count >= options->sample;
    json_object_set_new(seen, kind, json_integer(count + 1));
  }
  json_decref(seen);
}

static void run_child(const options_t* options, const table_t* cases, const table_t* golden,
                      size_t from, int pipe_end) {
  for (size_t i = from; i < cases->count; i++) {
    if (!is_selected(options, cases, i)) continue;
    report_t report = {.index = i};
    report.outcome = run_case(options, cases->rows[i], golden->rows[i], &report);
    if (write(pipe_end, &report, sizeof report) != (ssize_t)sizeof report) _exit(3);
  }
}

// Waits for the next report. False at the end of the child; then |*out_timed_out| says why.
static bool read_report(int pipe_end, report_t* out, bool* out_timed_out) {
  size_t have = 0;
  while (have < sizeof *out) {
    struct pollfd poll_fd = {.fd = pipe_end, .events = POLLIN};
    const int ready = poll(&poll_fd, 1, CASE_TIMEOUT_MS);
    *out_timed_out = ready == 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    const ssize_t n = read(pipe_end, (char*)out + have, sizeof *out - have);
    if (n <= 0) return false;
    have += (size_t)n;
  }
  return true;
}

// ---- rows that are known to differ today

// Whether "<mode> <family>/<case>" is a line of known.txt. The list can only shrink: a row on it
// that passes fails the run.
static bool is_known(const options_t* options, const char* family, const char* name) {
  if (options->check.is_stock || options->check.codes_only) return false;
  char path[4096], line[512], wanted[512];
  snprintf(path, sizeof path, "%s/known.txt", options->dir);
  snprintf(wanted, sizeof wanted, "%s%s %s/%s", options->check.on_gpu ? "gpu-" : "", options->mode,
           family, name);
  FILE* file = fopen(path, "r");
  bool found = false;
  while (file && !found && fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    found = strcmp(line, wanted) == 0;
  }
  if (file) fclose(file);
  return found;
}

static void count_row(json_t* ops, const json_t* row) {
  const char* op = json_string_value(json_object_get(row, "op"));
  json_object_set_new(ops, op, json_integer(json_integer_value(json_object_get(ops, op)) + 1));
}

static void print_report(const options_t* options, const char* family, const json_t* row,
                         const report_t* report, tally_t* tally) {
  bool failed = report->outcome == OUTCOME_FAILED;
  bool skipped = report->outcome == OUTCOME_SKIPPED;
  if (!skipped && is_known(options, family, name_of(row))) {
    if (!failed) printf("%s/%s: passes now: take it off known.txt\n", family, name_of(row));
    tally->known += failed;
    tally->failed += !failed;
    return;
  }
  tally->failed += failed;
  tally->skipped += skipped;
  if (skipped && report->lacks_gpu_kernel) count_row(tally->without_gpu, row);
  tally->passed += !failed && !skipped;
  if (failed || options->is_verbose || (!skipped && strcmp(options->mode, "perf") == 0)) {
    printf("%s/%s: %s%s\n", family, name_of(row),
           failed    ? ""
           : skipped ? "skipped "
                     : "ok ",
           report->text);
  }
}

// Runs the cases from |from| on until the child ends; returns the case to go on with.
static size_t run_batch(const options_t* options, const char* family, const table_t* cases,
                        const table_t* golden, size_t from, tally_t* tally) {
  int ends[2];
  report_t report = {0};
  bool timed_out = false;
  fflush(stdout);
  if (pipe(ends) != 0) die(strerror(errno), "pipe");
  const pid_t pid = fork();
  if (pid < 0) die(strerror(errno), "fork");
  if (pid == 0) {
    close(ends[0]);
    run_child(options, cases, golden, from, ends[1]);
    close(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  while (read_report(ends[0], &report, &timed_out)) {
    print_report(options, family, cases->rows[report.index], &report, tally);
    from = report.index + 1;
  }
  close(ends[0]);
  if (timed_out) kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  while (from < cases->count && !is_selected(options, cases, from)) from++;
  if (from == cases->count && status == 0) return from;
  if (from == cases->count) die("the child failed after its last case", family);
  report.outcome = OUTCOME_FAILED;
  if (timed_out) {
    snprintf(report.text, sizeof report.text, "no answer in %d s", CASE_TIMEOUT_MS / 1000);
  } else if (WIFSIGNALED(status)) {
    snprintf(report.text, sizeof report.text, "died: %s", strsignal(WTERMSIG(status)));
  } else {
    snprintf(report.text, sizeof report.text, "died: exit status %d", WEXITSTATUS(status));
  }
  print_report(options, family, cases->rows[from], &report, tally);
  return from + 1;
}

static void run_family(const options_t* options, const char* family, tally_t* tally) {
  char path[4096];
  snprintf(path, sizeof path, "%s/cases/%s.jsonl", options->dir, family);
  table_t cases = table_load(path);
  snprintf(path, sizeof path, "%s/golden/%s.jsonl", options->dir, family);
  table_t golden = table_load(path);
  if (cases.count != golden.count) die("not as many rows as cases; run record.sh", path);
  for (size_t i = 0; i < cases.count; i++) {
    if (strcmp(name_of(cases.rows[i]), name_of(golden.rows[i])) != 0) {
      die("not in the order of the cases; run record.sh", path);
    }
  }
  if (options->sample) leave_out(options, &cases, &golden);
  for (size_t i = 0; i < cases.count;) {
    i = run_batch(options, family, &cases, &golden, i, tally);
  }
  table_free(&cases);
  table_free(&golden);
}

// ---- support: every registered op has rows

typedef struct {
  json_t* ops;  // op name -> number of rows
  const options_t* options;
  tally_t* tally;
} support_t;

static void count_rows(const options_t* options, const char* family, json_t* ops) {
  char path[4096];
  snprintf(path, sizeof path, "%s/cases/%s.jsonl", options->dir, family);
  table_t cases = table_load(path);
  for (size_t i = 0; i < cases.count; i++) count_row(ops, cases.rows[i]);
  table_free(&cases);
}

// Ops that cannot be rows (files, state over several steps) are listed with the test that has them.
static bool is_elsewhere(const options_t* options, const char* name) {
  char path[4096], line[512];
  snprintf(path, sizeof path, "%s/elsewhere.txt", options->dir);
  FILE* file = fopen(path, "r");
  bool found = false;
  while (file && !found && fgets(line, sizeof line, file)) {
    line[strcspn(line, " \n")] = '\0';
    found = strcmp(line, name) == 0;
  }
  if (file) fclose(file);
  return found;
}

static void support_op(void* arg, const opdef_t* def) {
  support_t* support = arg;
  const json_int_t rows = json_integer_value(json_object_get(support->ops, def->name));
  if (rows > 0) {
    support->tally->passed++;
    if (support->options->is_verbose) printf("%s: %lld rows\n", def->name, (long long)rows);
  } else if (def->name[0] == '_' || support->options->check.is_stock) {
    support->tally->skipped++;  // internal ops have no face that rows could use
  } else if (is_elsewhere(support->options, def->name)) {
    support->tally->passed++;
  } else if (is_known(support->options, "op", def->name)) {
    support->tally->known++;
  } else {
    support->tally->failed++;
    printf("%s: registered, but no case row has it\n", def->name);
  }
  json_object_del(support->ops, def->name);
}

static void run_support(const options_t* options, tally_t* tally) {
  support_t support = {.ops = json_object(), .options = options, .tally = tally};
  for (size_t i = 0; i < options->family_count; i++) {
    count_rows(options, options->families[i], support.ops);
  }
  TF_Buffer* list = TF_GetAllOpList();
  if (!list || !oplist_each(list->data, list->length, support_op, &support)) {
    die("cannot be read", "the op list of the library");
  }
  TF_DeleteBuffer(list);
  const char* op;
  json_t* rows;
  json_object_foreach(support.ops, op, rows) {
    tally->skipped++;
    if (options->is_verbose) printf("%s: not registered\n", op);
  }
  json_decref(support.ops);
}

// ---- the command

// The ops with rows that did not run on the GPU, and how many.
static void print_without_gpu(const json_t* ops) {
  json_int_t total = 0;
  const char* op;
  json_t* rows;
  json_object_foreach((json_t*)(uintptr_t)ops, op, rows) total += json_integer_value(rows);
  if (total == 0) return;
  printf("%lld rows have no kernel on the GPU:", (long long)total);
  json_object_foreach((json_t*)(uintptr_t)ops, op, rows)
      printf(" %s %lld", op, (long long)json_integer_value(rows));
  printf("\n");
}

static int compare_names(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

static void find_families(options_t* options) {
  char path[4096];
  snprintf(path, sizeof path, "%s/cases", options->dir);
  DIR* dir = opendir(path);
  if (!dir) die(strerror(errno), path);
  for (struct dirent* entry; (entry = readdir(dir)) != NULL;) {
    const char* dot = strrchr(entry->d_name, '.');
    if (!dot || strcmp(dot, ".jsonl") != 0 || options->family_count == MAX_FAMILIES) continue;
    char* name = options->found[options->family_count];
    snprintf(name, sizeof options->found[0], "%.*s", (int)(dot - entry->d_name), entry->d_name);
    options->families[options->family_count++] = name;
  }
  closedir(dir);
  qsort(options->families, options->family_count, sizeof *options->families, compare_names);
}

static const char usage[] =
    "usage: ops_test [--mode eval|grad|grad2|support|perf] [--filter TEXT] [--dir DIR] [--stock]\n"
    "                [--optimize] [--codes-only] [--gpu] [--sample N] [--verbose] [FAMILY ...]\n";

static bool parse(options_t* options, int argc, char** argv) {
  for (int i = 1; i < argc; i++) {
    const bool has_value = i + 1 < argc;
    if (strcmp(argv[i], "--mode") == 0 && has_value) {
      options->mode = argv[++i];
    } else if (strcmp(argv[i], "--filter") == 0 && has_value) {
      options->filter = argv[++i];
    } else if (strcmp(argv[i], "--sample") == 0 && has_value) {
      options->sample = strtoul(argv[++i], NULL, 10);
    } else if (strcmp(argv[i], "--dir") == 0 && has_value) {
      options->dir = argv[++i];
    } else if (strcmp(argv[i], "--stock") == 0) {
      options->check.is_stock = true;
    } else if (strcmp(argv[i], "--optimize") == 0) {
      options->check.optimize = true;
    } else if (strcmp(argv[i], "--codes-only") == 0) {
      options->check.codes_only = true;
    } else if (strcmp(argv[i], "--gpu") == 0) {
      options->check.on_gpu = true;
    } else if (strcmp(argv[i], "--verbose") == 0) {
      options->is_verbose = true;
    } else if (argv[i][0] != '-' && options->family_count < MAX_FAMILIES) {
      options->families[options->family_count++] = argv[i];
    } else {
      return false;
    }
  }
  static const char* const modes[] = {"eval", "grad", "grad2", "support", "perf"};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(options->mode, modes[i]) == 0) return true;
  }
  return false;
}

// The answers were recorded with stock's plain kernels. It reads these variables while it is being
// loaded, so they must be there before.
static void use_plain_kernels(char** argv) {
  if (getenv("TF_ENABLE_ONEDNN_OPTS")) return;
  setenv("TF_ENABLE_ONEDNN_OPTS", "0", 1);
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
  execv("/proc/self/exe", argv);
  die(strerror(errno), "exec");
}

int main(int argc, char** argv) {
  options_t options = {.mode = "eval", .dir = "tests/ops"};
  tally_t tally = {.without_gpu = json_object()};
  if (!parse(&options, argc, argv)) {
    fputs(usage, stderr);
    return 2;
  }
  if (options.check.is_stock) use_plain_kernels(argv);
  if (options.family_count == 0) find_families(&options);
  if (strcmp(options.mode, "support") == 0) {
    run_support(&options, &tally);
  } else {
    for (size_t i = 0; i < options.family_count; i++) {
      run_family(&options, options.families[i], &tally);
    }
  }
  print_without_gpu(tally.without_gpu);
  json_decref(tally.without_gpu);
  if (tally.known) printf("%zu rows differ as known.txt says\n", tally.known);
  printf("%zu passed, %zu failed", tally.passed, tally.failed);
  if (tally.skipped) printf(", %zu skipped", tally.skipped);
  printf("\n");
  return tally.failed ? 1 : 0;
}
