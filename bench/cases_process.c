// The cost of the library to a process: memory, threads, and the lifetime of a session.
#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "graph_util.h"

typedef struct {
  net_t net;
  TF_Output x;
  TF_Output y;
} null_graph_t;

static void null_graph_open(null_graph_t* null) {
  net_open(&null->net);
  null->x = net_placeholder(&null->net, TF_FLOAT, SCALAR);
  null->y = net_unary(&null->net, "Identity", null->x);
}

static void run_once(null_graph_t* null, TF_Session* session) {
  step_t step;
  step_open(&step, session);
  step_feed(&step, null->x, tensor_float(3));
  step_fetch(&step, null->y);
  step_run(&step);
  bench_expect("result", step.result, 3, 0);
  step_close(&step);
}

static void churn(void* argument) {
  null_graph_t* null = argument;
  TF_Session* session = session_open(&null->net, (session_config_t){0});
  run_once(null, session);
  session_close(session);
}

// Microseconds to create a session, run it once and delete it.
static double session_churn(const bench_options_t* options, int a, int b) {
  (void)a, (void)b;
  null_graph_t null;
  null_graph_open(&null);
  double rate = bench_rate(options, churn, &null);
  net_close(&null.net);
  return 1e6 / rate;
}

// Resident megabytes, now or at the |peak|, of a process that ran one step.
static double resident(const bench_options_t* options, int peak, int unused) {
  (void)options, (void)unused;
  null_graph_t null;
  null_graph_open(&null);
  TF_Session* session = session_open(&null.net, (session_config_t){0});
  run_once(&null, session);
  double megabytes = bench_status_megabytes(peak ? "VmHWM" : "VmRSS");
  session_close(session);
  net_close(&null.net);
  return megabytes;
}

static int thread_count(void) {
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == NULL) bench_fail("cannot read /proc/self/task");
  int count = 0;
  for (struct dirent* entry = readdir(tasks); entry != NULL; entry = readdir(tasks)) {
    count += entry->d_name[0] != '.';
  }
  closedir(tasks);
  return count;
}

// Threads other than the client's own while a session with 1 x 1 threads is open and has run a
// step.
static double start_threads(const bench_options_t* options, int a, int b) {
  (void)options, (void)a, (void)b;
  null_graph_t null;
  null_graph_open(&null);
  TF_Session* session =
      session_open(&null.net, (session_config_t){.intra_threads = 1, .inter_threads = 1});
  run_once(&null, session);
  double threads = thread_count() - 1;
  session_close(session);
  net_close(&null.net);
  return threads;
}

const bench_case_t bench_process_cases[] = {
    {"rss", "MB", resident, false, 0},
    {"rss_peak", "MB", resident, true, 0},
    {"start_threads", "threads", start_threads, 0, 0},
    {"session_churn", "us", session_churn, 0, 0},
    {0},
};
