// The sweep: repeats a scenario, each time in a process of its own in which the n-th allocation
// fails, for n = 1, 2, 3 …, until it passes without a failed allocation.
//
//   faults_test SCENARIO [quick|full]
//
// quick takes some hundred values of n, spread evenly; full takes all. Each n is tried twice: once
// only the n-th allocation fails, once all allocations from the n-th on.
#include "sweep.h"

#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "inject.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

// How many n a quick sweep takes; with half a hundred allocations a run, some seconds a scenario.
#define QUICK_RUNS 150
// Seconds after which a run counts as hung.
#define RUN_LIMIT 120

static const struct {
  const char* name;
  ft_scenario_t run;
} scenarios[] = {
#define ROW(name) {#name, scenario_##name},
    FT_SCENARIOS(ROW)
#undef ROW
};

bool ft_kept_less;

// What a run tells the process that started it.
typedef struct report_t {
  int64_t allocations;
  int64_t first_live;  // blocks that are left after the first of the two runs
  int64_t live;        // and after the second
  bool fired;
} report_t;

void ft_fail(const ft_t* t, int line, const char* format, ...) {
  inject_disarm();
  va_list args;
  va_start(args, format);
  fprintf(stderr, "line %d, in the step of line %d, %s: ", line, t->line, t->step ? t->step : "?");
  vfprintf(stderr, format, args);
  va_end(args);
  fprintf(stderr, "\n");
  if (inject_fired()) inject_print_stack();
  _exit(1);
}

bool ft_is_settled(ft_t* t, bool worked) {
  if (worked) {
    if (inject_fired() && !t->for_good) t->had_fault = true;  // done without: fine
    return true;
  }
  int code = t->status ? (int)TF_GetCode(t->status) : TF_RESOURCE_EXHAUSTED;
  if (!inject_fired() || t->had_fault)
    FT_FAIL(t, "fails without cause: code %d, %s", code, TF_Message(t->status));
  // A step without a status leaves OK there.
  if (code != TF_RESOURCE_EXHAUSTED && code != TF_OK)
    FT_FAIL(t, "code %d, %s", code, TF_Message(t->status));
  t->had_fault = true;
  t->is_over = t->for_good;
  return false;
}

static char folder[] = "/tmp/runnel_faults_XXXXXX";
const char* ft_folder(void) { return folder; }

static int remove_one(const char* path, const struct stat* info, int type, struct FTW* place) {
  (void)info, (void)type, (void)place;
  return remove(path);
}

static void end(ft_t* t) {
  for (int i = 0; i < FT_MAX; ++i) {
    TF_DeleteTensor(t->tensors[i]);
    TF_DeleteBuffer(t->buffers[i]);
  }
  rn_tape_delete(t->tape);
  for (int i = 0; i < 8; ++i) TFE_DeleteTensorHandle(t->handles[i]);
  TFE_DeleteContext(t->eager);
  TF_DeleteFunction(t->function);
  if (t->handle) TF_DeletePRunHandle(t->handle);
  TF_DeleteDeviceList(t->devices);
  TF_DeleteApiDefMap(t->api_defs);
  TF_DeleteImportGraphDefResults(t->results);
  TF_DeleteImportGraphDefOptions(t->import);
  TF_DeleteLibraryHandle(t->library);
  if (t->deprecated) TF_DeleteDeprecatedSession(t->deprecated, t->status);
  rn_model_close(t->model);
  if (t->session) TF_DeleteSession(t->session, t->status);
  TF_DeleteSessionOptions(t->options);
  rn_scope_destroy(t->child);
  rn_scope_destroy(t->scope);
  TF_DeleteGraph(t->other);
  TF_DeleteGraph(t->graph);
  TF_DeleteStatus(t->status);
}

static void run_once(ft_scenario_t scenario, bool for_good) {
  ft_t t = {.for_good = for_good};
  scenario(&t);
  end(&t);
}

// One run in this process with the failure, and one without, which makes up for tables that the
// first did without.
static void attempt(ft_scenario_t scenario, int64_t nth, bool for_good, report_t* out_report) {
  alarm(RUN_LIMIT);
  inject_arm(nth, for_good);
  run_once(scenario, for_good);
  inject_disarm();
  *out_report = (report_t){
      .allocations = inject_count(), .first_live = inject_live(), .fired = inject_fired()};
  inject_arm(0, false);
  run_once(scenario, false);
  out_report->live = inject_live();
}

static bool has_leak(const report_t* report, int64_t live) {
  if (live < 0) return false;  // the first run, which tells what to expect
  return report->live > live || (report->live < live && !ft_kept_less);
}

// The same in a child; false if it did not end well.
static bool attempt_apart(ft_scenario_t scenario, int64_t nth, bool for_good, int64_t live,
                          report_t* shared) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    attempt(scenario, nth, for_good, shared);
    if (!has_leak(shared, live)) _exit(0);
#ifdef __SANITIZE_ADDRESS__
    __lsan_do_recoverable_leak_check();
#endif
    fprintf(stderr, "%lld blocks are left, not %lld; the failure was in\n", (long long)shared->live,
            (long long)live);
    inject_print_stack();
    _exit(1);
  }
  int state = 0;
  if (child < 0 || waitpid(child, &state, 0) != child) return false;
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return true;
  if (WIFSIGNALED(state)) fprintf(stderr, "signal %d\n", WTERMSIG(state));
  return false;
}

static int sweep(const char* name, ft_scenario_t scenario, bool for_good, bool is_full,
                 report_t* shared) {
  if (!attempt_apart(scenario, 0, for_good, -1, shared)) return 1;
  int64_t total = shared->allocations, live = shared->live, runs = 0;
  if (live != shared->first_live) {
    fprintf(stderr, "%s: leaves %lld blocks, %lld when done again\n", name,
            (long long)shared->first_live, (long long)live);
    return 1;
  }
  int64_t stride = is_full || total < QUICK_RUNS ? 1 : total / QUICK_RUNS;
  int failures = 0;
  for (int64_t n = 1;; n += stride, ++runs) {
    if (!attempt_apart(scenario, n, for_good, live, shared)) {
      fprintf(stderr, "%s: allocation %lld of %lld%s\n\n", name, (long long)n, (long long)total,
              for_good ? " and all after it" : "");
      if (++failures == 10) return failures;
      if (n > total) return failures;
    } else if (!shared->fired) {
      break;  // passed clean
    }
  }
  printf("%s%s: %lld allocations, %lld runs, %d failures\n", name, for_good ? ", for good" : "",
         (long long)total, (long long)runs, failures);
  if (runs < 10) return 1;  // a scenario that does nothing proves nothing
  return failures;
}

int main(int argc, char** argv) {
  bool is_full = argc > 2 && strcmp(argv[2], "full") == 0;
  report_t* shared =
      mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || !mkdtemp(folder) || !inject_start()) return 2;
  int failures = 0, found = 0;
  for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; ++i) {
    if (argc > 1 && strcmp(argv[1], scenarios[i].name) != 0) continue;
    ++found;
    for (int for_good = 0; for_good < 2; ++for_good)
      failures += sweep(scenarios[i].name, scenarios[i].run, for_good, is_full, shared);
  }
  if (!found) fprintf(stderr, "No such scenario: %s\n", argv[1]);
  nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
  return failures || !found;
}
