// Random graphs on a GPU against the same graphs on the CPU. See ../README.md.
//
// Each graph runs several steps, so that its work is recorded and replayed: with other feeds, other
// sizes, other fetches in between, and variables that change. Graphs run in a child process: one
// that crashes is reported by its seed, and the rest continue.
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "maker.h"
#include "session/session.h"
#include "tensor/float16.h"

enum { MOST_FETCHES = 12, TIMEOUT_MS = 120000 };

typedef struct options_t {
  uint64_t first, count;
  int64_t seconds;  // 0: no limit
  int from;         // fetch the values from this one on; -1: random ones
  bool is_verbose;
} options_t;

typedef struct report_t {
  uint64_t seed;
  char text[1000];  // what is wrong; "" if nothing is
} report_t;

// One graph and its session.
typedef struct side_t {
  rn_graph_t* graph;
  rn_scope_t* s;
  rn_session_t* session;
  maker_t maker;
  rn_tensor_t out[MOST_FETCHES];
} side_t;

typedef struct run_t {
  report_t* report;
  uint64_t random;
  side_t gpu, cpu;
  rn_tensor_t fed[MOST_FEEDS];
  int fetches[2][MOST_FETCHES], fetch_count;  // two lists of values
} run_t;

// Says what is wrong, if nothing was before. False.
static bool say(run_t* run, const char* what, rn_status_t status) {
  if (!run->report->text[0])
    snprintf(run->report->text, sizeof run->report->text, "%s: %s", what,
             rn_status_message(status));
  rn_status_free(status);
  return false;
}

static uint32_t next(run_t* run, uint32_t below) {
  run->random = run->random * UINT64_C(6364136223846793005) + 1;
  return (uint32_t)(run->random >> 33) % below;
}

static bool open_side(run_t* run, side_t* side, const options_t* options, bool on_cpu) {
  rn_session_options_t session;
  rn_session_options_init(&session);
  uint64_t seed = run->report->seed;
  session.intra_threads = session.inter_threads = 1 + (int)(seed % 3);
  session.optimize = seed % 2;
  session.allow_soft_placement = true;
  session.log_device_placement = options->is_verbose && !on_cpu;
  rn_status_t status = rn_graph_create(rn_allocator_system(), &side->graph);
  if (!rn_ok(status)) return say(run, "graph", status);
  side->s = rn_scope_create(side->graph);
  make_graph(&side->maker, side->s, seed, on_cpu);
  if (!rn_scope_ok(side->s)) {
    snprintf(run->report->text, sizeof run->report->text, "built wrongly: %s",
             rn_scope_message(side->s));
    return false;
  }
  status = rn_session_create(side->graph, &session, rn_env_system(), rn_allocator_system(),
                             &side->session);
  return rn_ok(status) || say(run, "session", status);
}

static void clear_out(side_t* side) {
  for (int i = 0; i < MOST_FETCHES; ++i) rn_tensor_clear(&side->out[i]);
}

static void close_side(side_t* side) {
  clear_out(side);
  rn_session_destroy(side->session);
  rn_scope_destroy(side->s);
  rn_graph_release(side->graph);
}

static bool has_gpu(const side_t* side) {
  for (int i = 0; i < rn_session_device_count(side->session); ++i)
    if (strcmp(rn_session_device(side->session, i)->type, "GPU") == 0) return true;
  return false;
}

// ---- steps

static void fill(run_t* run, rn_tensor_t* tensor) {
  for (int64_t i = 0; i < tensor->count; ++i) {
    double fraction = (double)((int)next(run, 2001) - 1000) / 1000;
    int whole = (int)next(run, 19) - 9;
    if (tensor->dtype == RN_FLOAT) RN_DATA(tensor, float)[i] = (float)fraction;
    if (tensor->dtype == RN_DOUBLE) RN_DATA(tensor, double)[i] = fraction;
    if (tensor->dtype == RN_HALF) RN_DATA(tensor, uint16_t)[i] = rn_float_to_half((float)fraction);
    if (tensor->dtype == RN_INT32) RN_DATA(tensor, int32_t)[i] = whole;
    if (tensor->dtype == RN_INT64) RN_DATA(tensor, int64_t)[i] = whole;
    if (tensor->dtype == RN_BOOL) RN_DATA(tensor, bool)[i] = whole > 0;
  }
}

static bool make_feeds(run_t* run, int64_t batch) {
  const maker_t* m = &run->gpu.maker;
  for (int i = 0; i < m->feed_count; ++i) {
    const value_t* v = &m->values[i];
    int64_t dims[MOST_RANK];
    for (int d = 0; d < v->rank; ++d) dims[d] = v->dims[d] == BATCH ? batch : v->dims[d];
    rn_tensor_clear(&run->fed[i]);
    rn_status_t status = rn_tensor_create(rn_allocator_system(), v->dtype,
                                          (rn_shape_t){v->rank, dims}, &run->fed[i]);
    if (!rn_ok(status)) return say(run, "feed", status);
    fill(run, &run->fed[i]);
  }
  return true;
}

static rn_status_t run_side(run_t* run, side_t* side, int list, bool is_first) {
  const maker_t* m = &side->maker;
  rn_edge_t feeds[MOST_FEEDS], fetches[MOST_FETCHES];
  const rn_tensor_t* fed[MOST_FEEDS];
  rn_node_t* targets[3 * MOST_VARIABLES];
  int feed_count = is_first ? 0 : m->feed_count, target_count = 0;
  for (int i = 0; i < feed_count; ++i) feeds[i] = m->values[i].edge, fed[i] = &run->fed[i];
  for (int i = 0; i < run->fetch_count; ++i) fetches[i] = m->values[run->fetches[list][i]].edge;
  for (int i = 0; i < m->variable_count; ++i) {
    rn_node_t* target = is_first ? m->variables[i].first : m->variables[i].update;
    if (target && (is_first || list == 0)) targets[target_count++] = target;
    for (int k = 0; is_first && k < 2; ++k)
      if (m->variables[i].slot_firsts[k]) targets[target_count++] = m->variables[i].slot_firsts[k];
  }
  rn_signature_t signature = {.feeds = feeds,
                              .feed_count = feed_count,
                              .fetches = fetches,
                              .fetch_count = is_first ? 0 : run->fetch_count,
                              .targets = targets,
                              .target_count = target_count};
  clear_out(side);
  return rn_session_run(side->session, &signature, fed, side->out, NULL);
}

static double element(const rn_tensor_t* tensor, int64_t i) {
  switch (tensor->dtype) {
    case RN_FLOAT:
      return (double)RN_DATA(tensor, float)[i];
    case RN_DOUBLE:
      return RN_DATA(tensor, double)[i];
    case RN_HALF:
      return (double)rn_half_to_float(RN_DATA(tensor, uint16_t)[i]);
    case RN_INT32:
      return RN_DATA(tensor, int32_t)[i];
    case RN_INT64:
      return (double)RN_DATA(tensor, int64_t)[i];
    default:
      return RN_DATA(tensor, bool)[i];
  }
}

static bool is_shaped_alike(const rn_tensor_t* a, const rn_tensor_t* b) {
  bool is_alike = a->dtype == b->dtype && a->rank == b->rank;
  for (int i = 0; is_alike && i < a->rank; ++i)
    is_alike = rn_tensor_dim(a, i) == rn_tensor_dim(b, i);
  return is_alike;
}

static bool compare(run_t* run, int step, const value_t* value, const rn_tensor_t* got,
                    const rn_tensor_t* want) {
  char* text = run->report->text;
  rn_str_t name = value->edge.node->name;
  if (!is_shaped_alike(got, want)) {
    snprintf(text, sizeof run->report->text, "step %d: %.*s:%d has another shape", step,
             RN_STR_ARGS(name), value->edge.index);
    return false;
  }
  for (int64_t i = 0; i < got->count; ++i) {
    double a = element(got, i), b = element(want, i);
    if (a == b || fabs(a - b) <= 4 * value->error || (isnan(a) && isnan(b))) continue;
    snprintf(text, sizeof run->report->text,
             "step %d: %.*s:%d, element %lld of %lld: %.9g on the GPU, %.9g on the CPU, allowed %g",
             step, RN_STR_ARGS(name), value->edge.index, (long long)i, (long long)got->count, a, b,
             4 * value->error);
    return false;
  }
  return true;
}

static bool run_step(run_t* run, int step) {
  static const int64_t batches[STEPS] = {4, 4, 4, 4, 9, 9, 1, 4, 4};
  static const int lists[STEPS] = {0, 0, 0, 0, 0, 1, 0, 1, 0};
  if (!make_feeds(run, batches[step])) return false;
  int list = lists[step];
  rn_status_t status = run_side(run, &run->cpu, list, false);
  if (!rn_ok(status)) return say(run, "the CPU's step", status);
  status = run_side(run, &run->gpu, list, false);
  if (!rn_ok(status)) return say(run, "the GPU's step", status);
  // What was made first is nearest to the fault.
  int wrong = MOST_VALUES;
  for (int i = 0; i < run->fetch_count; ++i) {
    int number = run->fetches[list][i];
    if (number < wrong &&
        !compare(run, step, &run->gpu.maker.values[number], &run->gpu.out[i], &run->cpu.out[i]))
      wrong = number;
  }
  return wrong == MOST_VALUES;
}

static void choose_fetches(run_t* run, int from) {
  int count = run->gpu.maker.count;
  run->fetch_count = count < MOST_FETCHES ? count : MOST_FETCHES;
  for (int list = 0; list < 2; ++list)
    for (int i = 0; i < run->fetch_count; ++i)
      run->fetches[list][i] = from >= 0 ? (from + i) % count
                              : i < 5   ? count - 1 - i
                                        : (int)next(run, (uint32_t)count);
}

static bool run_graph(run_t* run, const options_t* options) {
  if (!open_side(run, &run->cpu, options, true) || !open_side(run, &run->gpu, options, false))
    return false;
  if (!has_gpu(&run->gpu)) {
    snprintf(run->report->text, sizeof run->report->text, "there is no GPU");
    return false;
  }
  choose_fetches(run, options->from);
  side_t* const sides[] = {&run->cpu, &run->gpu};
  for (int i = 0; i < 2; ++i) {
    rn_status_t status = run_side(run, sides[i], 0, true);
    if (!rn_ok(status)) return say(run, "the first values", status);
  }
  for (int step = 0; step < STEPS; ++step)
    if (!run_step(run, step)) return false;
  return true;
}

static void run_seed(const options_t* options, report_t* report) {
  run_t* run = calloc(1, sizeof *run);
  if (!run) abort();
  run->report = report;
  run->random = report->seed;
  run_graph(run, options);
  close_side(&run->gpu);
  close_side(&run->cpu);
  for (int i = 0; i < MOST_FEEDS; ++i) rn_tensor_clear(&run->fed[i]);
  free(run);
}

// ---- processes

static int64_t now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

static void child_main(const options_t* options, uint64_t from, int64_t end_s, int out) {
  for (uint64_t seed = from; seed < options->first + options->count; ++seed) {
    if (options->seconds && now_s() >= end_s) break;
    report_t report = {.seed = seed};
    run_seed(options, &report);
    if (write(out, &report, sizeof report) != (ssize_t)sizeof report) _exit(3);
  }
}

static bool read_report(int in, report_t* out) {
  struct pollfd ready = {.fd = in, .events = POLLIN};
  return poll(&ready, 1, TIMEOUT_MS) == 1 && read(in, out, sizeof *out) == (ssize_t)sizeof *out;
}

// Runs a child from |seed| on. Returns the seed to go on with; all are done if it is the last one's
// successor or time is up.
static uint64_t run_batch(const options_t* options, uint64_t seed, int64_t end_s, int* passed,
                          int* failed) {
  int ends[2];
  fflush(stdout);
  if (pipe(ends) != 0) abort();
  pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    child_main(options, seed, end_s, ends[1]);
    exit(0);
  }
  close(ends[1]);
  report_t report;
  while (pid > 0 && read_report(ends[0], &report)) {
    bool is_good = !report.text[0];
    if (!is_good) printf("seed %llu: %s\n", (unsigned long long)report.seed, report.text);
    *passed += is_good;
    *failed += !is_good;
    seed = report.seed + 1;
    fflush(stdout);
  }
  close(ends[0]);
  int status = 0;
  struct timespec pause = {.tv_nsec = 200000000};
  for (int i = 0; i < 50 && waitpid(pid, &status, WNOHANG) == 0; ++i) nanosleep(&pause, NULL);
  if (kill(pid, SIGKILL) == 0) waitpid(pid, &status, 0);
  if (status == 0) return options->first + options->count;
  printf("seed %llu: died: %s %d\n", (unsigned long long)seed,
         WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit status",
         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  ++*failed;
  return seed + 1;
}

static bool parse(options_t* options, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    bool has_value = i + 1 < argc;
    if (strcmp(argv[i], "--first") == 0 && has_value)
      options->first = strtoull(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--count") == 0 && has_value)
      options->count = strtoull(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--seconds") == 0 && has_value)
      options->seconds = strtoll(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--fetch") == 0 && has_value)
      options->from = (int)strtol(argv[++i], NULL, 10);
    else if (strcmp(argv[i], "--verbose") == 0)
      options->is_verbose = true;
    else
      return false;
  }
  return true;
}

int main(int argc, char** argv) {
  options_t options = {.first = 1, .count = 20, .from = -1};
  setenv("RUNNEL_ATTENTION_KEYS", "1", 0);  // graphs are small
  if (!parse(&options, argc, argv)) {
    fputs(
        "usage: random_graphs [--first SEED] [--count N] [--seconds S] [--fetch VALUE] "
        "[--verbose]\n",
        stderr);
    return 2;
  }
  setenv("NVIDIA_TF32_OVERRIDE", "0", 0);  // results must be close
  int passed = 0, failed = 0;
  int64_t end_s = now_s() + options.seconds;
  for (uint64_t seed = options.first; seed < options.first + options.count;)
    seed = run_batch(&options, seed, end_s, &passed, &failed);
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
