// The sweep over op cases: runs every kernel that has a row in tests/ops while its n-th allocation
// fails.
//
//   faults_rows_test FOLDER FAMILY [quick|full]
//
// The graph and the session are created with enough memory; allocations fail in the step, from its
// planning on. The step must end with RESOURCE_EXHAUSTED or with its normal result, and leak
// nothing; afterwards the same session must work normally. quick takes the first rows of each op,
// full takes all.
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ops/check.h"
#include "inject.h"

// Rows of one op that a quick sweep takes, and allocations of one row.
enum { QUICK_ROWS = 1, QUICK_RUNS = 40, ROW_LIMIT = 300, MAX_OPS = 4096 };

// RunOptions with a timeout_in_ms of 2000: a step whose element an earlier step took must end.
static const char limit[] = {0x10, (char)0xd0, 0x0f};
// The same with 64 ms, for the step that finds out whether that is so.
static const char short_limit[] = {0x10, 0x40};

typedef struct answer_t {
  TF_Code code;
  size_t count;
  TF_Tensor* tensors[MAX_OUTPUTS];  // Owned
} answer_t;

static void answer_clear(answer_t* answer) {
  check_release(answer->tensors, answer->count);
  answer->count = 0;
}

static void run_with(const build_t* build, TF_Session* session, const TF_Buffer* options,
                     answer_t* out) {
  TF_Output fetches[MAX_OUTPUTS];
  const TF_Operation* targets[] = {build->node};
  *out = (answer_t){.count = build_fetchable(build->node, fetches)};
  TF_SessionRun(session, options, build->feeds, build->feed_values, (int)build->feed_count, fetches,
                out->tensors, (int)out->count, targets, out->count ? 0 : 1, NULL, build->status);
  out->code = TF_GetCode(build->status);
}

static void run(const build_t* build, TF_Session* session, answer_t* out) {
  run_with(build, session, &(TF_Buffer){limit, sizeof limit, NULL}, out);
}

static bool same_tensor(const TF_Tensor* a, const TF_Tensor* b) {
  if (!a || !b) return a == b;
  if (TF_TensorType(a) != TF_TensorType(b) || TF_NumDims(a) != TF_NumDims(b) ||
      TF_TensorElementCount(a) != TF_TensorElementCount(b))
    return false;
  if (TF_TensorType(a) != TF_STRING)
    return memcmp(TF_TensorData(a), TF_TensorData(b), TF_TensorByteSize(a)) == 0;
  const TF_TString *x = TF_TensorData(a), *y = TF_TensorData(b);
  for (int64_t i = 0; i < TF_TensorElementCount(a); ++i) {
    size_t size = TF_StringGetSize(&x[i]);
    if (size != TF_StringGetSize(&y[i]) ||
        memcmp(TF_StringGetDataPointer(&x[i]), TF_StringGetDataPointer(&y[i]), size) != 0)
      return false;
  }
  return true;
}

static bool same_answer(const answer_t* a, const answer_t* b) {
  if (a->code != b->code || a->count != b->count) return false;
  for (size_t i = 0; i < a->count; ++i)
    if (!same_tensor(a->tensors[i], b->tensors[i])) return false;
  return true;
}

// A row being swept.
typedef struct row_t {
  check_t check;
  build_t build;
  answer_t clean;    // what it answers when nothing fails
  bool is_repeated;  // the same again when asked again in one session
  int64_t allocations;
  int64_t live;
} row_t;

static bool complain(const row_t* row, int64_t n, const char* what) {
  inject_disarm();
  fprintf(stderr, "%s, allocation %lld of %lld: %s (%d %s)\n",
          json_string_value(json_object_get(row->check.row, "name")), (long long)n,
          (long long)row->allocations, what, (int)TF_GetCode(row->build.status),
          TF_Message(row->build.status));
  inject_print_stack();
  return false;
}

static TF_Session* open_session(row_t* row) {
  TF_Session* session = check_open(&row->check, row->build.graph, row->build.status);
  if (session && check_prepare(&row->build, session)) return session;
  check_close(session);
  return NULL;
}

// Without a failure: what the row answers, and what it needs. False: it has nothing to sweep.
static bool run_clean(row_t* row) {
  TF_Session* session = open_session(row);
  if (!session) return false;
  inject_arm(0, false);
  run(&row->build, session, &row->clean);
  row->allocations = inject_count();
  answer_t again;
  run_with(&row->build, session, &(TF_Buffer){short_limit, sizeof short_limit, NULL}, &again);
  // Resources without a name are numbered, and a handle tells the number.
  const bool is_handle =
      TF_OperationNumOutputs(row->build.node) > 0 &&
      (int)TF_OperationOutputType((TF_Output){row->build.node, 0}) == (int)TF_STRING + 100;
  // A row whose values are undefined, such as the time, may by chance give the same twice.
  row->is_repeated = !is_handle && !json_object_get(row->check.row, "undefined") &&
                     same_answer(&row->clean, &again);
  answer_clear(&again);
  check_close(session);
  TF_SetStatus(row->build.status, TF_OK, "");  // its message is memory too
  row->live = inject_live();
  return true;
}

static bool run_short(row_t* row, int64_t n, bool for_good) {
  TF_Session* session = open_session(row);
  if (!session) return complain(row, n, "no session");
  answer_t answer, again;
  inject_arm(n, for_good);
  run(&row->build, session, &answer);
  inject_disarm();
  const bool failed = answer.code == TF_RESOURCE_EXHAUSTED;
  bool ok = failed || answer.code == row->clean.code || complain(row, n, "another answer");
  if (ok && !failed && row->is_repeated)
    ok = same_answer(&answer, &row->clean) || complain(row, n, "another value");
  for (size_t i = 0; ok && failed && i < answer.count; ++i)
    ok = !answer.tensors[i] || complain(row, n, "an error with a result");
  if (ok && row->is_repeated) {
    run(&row->build, session, &again);
    ok = same_answer(&again, &row->clean) || complain(row, n, "another answer afterwards");
    answer_clear(&again);
  }
  answer_clear(&answer);
  check_close(session);
  if (ok) TF_SetStatus(row->build.status, TF_OK, "");
  if (ok && inject_live() != row->live) {
    fprintf(stderr, "%lld blocks are left, not %lld: ", (long long)inject_live(),
            (long long)row->live);
    ok = complain(row, n, "a leak");
  }
  return ok;
}

// In a process of its own. The exit status: 0 passed, 1 failed.
static int sweep_row(const json_t* json, bool is_full, int64_t* runs) {
  row_t row = {.check = {.row = json, .options = {.optimize = true}}};
  alarm(ROW_LIMIT);
  if (check_lacks_op(&row.check) || check_lacks_kernel(&row.check)) return 0;
  // Once more than needed: tables of the process are made.
  bool ok = true;
  if (build_case(&row.build, json, true, NULL) && run_clean(&row)) {
    answer_clear(&row.clean);
    if (!run_clean(&row)) return 1;
    const int64_t stride =
        is_full || row.allocations < QUICK_RUNS ? 1 : row.allocations / QUICK_RUNS;
    for (int64_t n = 1; ok && n <= row.allocations; n += stride)
      ok = run_short(&row, n, false) && run_short(&row, n, true), *runs += 2;
    answer_clear(&row.clean);
  }
  build_destroy(&row.build);
  return ok ? 0 : 1;
}

static bool sweep_row_apart(const json_t* json, bool is_full, int64_t* runs) {
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) _exit(sweep_row(json, is_full, runs));
  int state = 0;
  if (child < 0 || waitpid(child, &state, 0) != child) return false;
  if (WIFSIGNALED(state))
    fprintf(stderr, "%s: signal %d\n", json_string_value(json_object_get(json, "name")),
            WTERMSIG(state));
  return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

// Counts the rows of each op.
static int seen_before(const char** ops, int* counts, size_t* op_count, const char* op) {
  for (size_t i = 0; i < *op_count; ++i)
    if (strcmp(ops[i], op) == 0) return counts[i]++;
  if (*op_count < MAX_OPS) {
    ops[*op_count] = strdup(op);
    counts[(*op_count)++] = 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  static const char* ops[MAX_OPS];
  static int counts[MAX_OPS];
  size_t op_count = 0;
  char path[4096];
  int64_t* runs =
      mmap(NULL, sizeof *runs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (argc < 3 || runs == MAP_FAILED || !inject_start()) return 2;
  // The C library never tries again to load a locale that memory was too short for: not ours to
  // mend.
  const locale_t loaded = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
  if (!loaded) return 2;
  const bool is_full = argc > 3 && strcmp(argv[3], "full") == 0;
  const char* filter = argc > 4 ? argv[4] : NULL;
  snprintf(path, sizeof path, "%s/cases/%s.jsonl", argv[1], argv[2]);
  FILE* file = fopen(path, "r");
  if (!file) {
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return 2;
  }
  char* line = NULL;
  size_t size = 0;
  int rows = 0, failures = 0;
  for (ssize_t n; (n = getline(&line, &size, file)) >= 0;) {
    if (n <= 1 || line[0] == '#') continue;
    json_t* row = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, NULL);
    const char* op = json_string_value(json_object_get(row, "op"));
    const char* name = json_string_value(json_object_get(row, "name"));
    const bool is_taken = op && name && (!filter || strstr(name, filter)) &&
                          (seen_before(ops, counts, &op_count, op) < QUICK_ROWS || is_full);
    if (is_taken) {
      ++rows;
      failures += !sweep_row_apart(row, is_full, runs);
    }
    json_decref(row);
    if (failures >= 20) break;
  }
  free(line);
  fclose(file);
  for (size_t i = 0; i < op_count; ++i) free((void*)(uintptr_t)ops[i]);
  printf("%s: %d rows, %lld runs, %d failures\n", argv[2], rows, (long long)*runs, failures);
  freelocale(loaded);
  return failures || !rows;
}
