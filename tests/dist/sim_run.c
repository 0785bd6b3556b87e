// Trains on simulated clusters with random failures:
//
//   sim_run [--first N] [--count N] [--file SEEDS] [--breaks] [-v]
//
// A seed determines the cluster, what its clients do, and which tasks and connections crash,
// freeze, are cut off or become slow, and when. Then the failures stop: training must continue, and
// at the end no task may keep any state of it. A seed that fails is printed; add it to the file of
// seeds that are always run.
//
// With --breaks, only connections break, many of them, and no step may be lost. With SIM_CALLS in
// the environment, it also prints how every call ends.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/sim/training.h"

#define SECOND INT64_C(1000000000)

typedef struct run_t {
  rn_training_t* training;
  rn_sim_t* sim;
  int servers, workers, nodes;
  bool is_loud, is_very_loud;
  bool only_breaks;
  char fault[512];
  uint64_t trace;
} run_t;

static double between(rn_sim_t* sim, double least, double most) {
  return least + (most - least) * rn_sim_uniform(sim);
}
static int64_t seconds(rn_sim_t* sim, double least, double most) {
  return (int64_t)(between(sim, least, most) * 1e9);
}

static int64_t compute_ns(void* self, rn_sim_t* sim, int worker) {
  (void)self, (void)worker;
  return seconds(sim, 0.001, 0.1);
}

// Something that ends a while later.
typedef struct trouble_t {
  rn_timer_t timer;
  run_t* run;
  enum { CRASH, CUT, SLOW, NO_TROUBLE } kind;
  int a, b;
} trouble_t;
enum { MAX_TROUBLES = 64 };

static void say(const run_t* run, const char* what, int a, int b) {
  if (run->is_loud) printf("%8.3f s: %s %d %d\n", (double)rn_sim_now(run->sim) * 1e-9, what, a, b);
}

static void fail(run_t* run, const char* what) {
  if (!run->fault[0]) snprintf(run->fault, sizeof run->fault, "%s", what);
}

static void mend(trouble_t* trouble) {
  run_t* run = trouble->run;
  if (trouble->kind == CRASH && !rn_sim_is_up(run->sim, trouble->a)) {
    say(run, "starts again", trouble->a, 0);
    rn_status_t status = rn_sim_start(run->sim, trouble->a);
    if (!rn_ok(status)) fail(run, rn_status_message(status));
    rn_status_free(status);
    rn_training_restarted(run->training, trouble->a);
  } else if (trouble->kind == CUT) {
    rn_sim_cut(run->sim, trouble->a, trouble->b, false);
  } else if (trouble->kind == SLOW) {
    rn_sim_slow(run->sim, trouble->a, 1);
  }
  trouble->kind = NO_TROUBLE;
}

static void on_mend(rn_timer_t* timer) { mend((trouble_t*)timer); }

static void befall(run_t* run, trouble_t* trouble) {
  rn_sim_t* sim = run->sim;
  int tasks = run->servers + run->workers;
  int64_t lasts = seconds(sim, 0.05, rn_sim_random(sim) & 1 ? 1 : 8);
  *trouble = (trouble_t){.timer.fn = on_mend, .run = run, .kind = NO_TROUBLE};
  trouble->a = (int)(rn_sim_random(sim) % (uint64_t)tasks);
  trouble->b = (int)(rn_sim_random(sim) % (uint64_t)run->nodes);
  switch (rn_sim_random(sim) % 5) {
    case 0:
    case 1: {
      bool is_silent = rn_sim_random(sim) & 1;
      if (rn_sim_random(sim) % 4 == 0) trouble->a = trouble->b;  // perhaps a client
      say(run, is_silent ? "loses power" : "is killed", trouble->a, 0);
      trouble->kind = CRASH;
      rn_training_crash(run->training, trouble->a, is_silent);
      break;
    }
    case 2:
      say(run, "freezes", trouble->a, 0);
      rn_sim_freeze(sim, trouble->a, rn_sim_now(sim) + lasts);
      break;
    case 3:
      say(run, "is cut off from", trouble->a, trouble->b);
      trouble->kind = CUT;
      rn_sim_cut(sim, trouble->a, trouble->b, true);
      break;
    default:
      say(run, "is slow", trouble->a, 0);
      trouble->kind = SLOW;
      rn_sim_slow(sim, trouble->a, between(sim, 2, 40));
  }
  if (trouble->kind == NO_TROUBLE) return;
  rn_timers_t timers = rn_sim_timers(sim);
  rn_status_t status = timers.set(timers.self, &trouble->timer, rn_sim_now(sim) + lasts);
  if (!rn_ok(status)) fail(run, rn_status_message(status));
  rn_status_free(status);
}

static void live_through(run_t* run) {
  rn_sim_t* sim = run->sim;
  if (run->only_breaks) {
    rn_sim_run(sim, rn_sim_now(sim) + 3 * SECOND);  // until the variables are there
    int64_t failures = rn_training_stats(run->training).failures;
    rn_sim_run(sim, rn_sim_now(sim) + 10 * SECOND);
    if (rn_training_stats(run->training).failures > failures)
      fail(run, "a connection that broke has cost a step");
    return;
  }
  trouble_t troubles[MAX_TROUBLES];
  int count = 0;
  int64_t until = rn_sim_now(sim) + seconds(sim, 2, 20);
  double pace = between(sim, 0.2, 3);
  while (rn_sim_now(sim) < until && count < MAX_TROUBLES) {
    rn_sim_run(sim, rn_sim_now(sim) + (int64_t)(rn_sim_exponential(sim) * pace * 1e9));
    befall(run, &troubles[count++]);
  }
  rn_timers_t timers = rn_sim_timers(sim);
  for (int i = 0; i < count; ++i) {
    timers.clear(timers.self, &troubles[i].timer);
    mend(&troubles[i]);
  }
  for (int n = 0; n < run->nodes; ++n) rn_sim_freeze(sim, n, 0);
}

// All is well: everybody gets on.
static void recover(run_t* run) {
  rn_sim_t* sim = run->sim;
  rn_training_stats_t before = rn_training_stats(run->training), now = before;
  int64_t until = rn_sim_now(sim) + 120 * SECOND;
  while (rn_sim_now(sim) < until &&
         (now.least < before.least + 2 || now.updates < before.updates + 2)) {
    rn_sim_run(sim, rn_sim_now(sim) + SECOND / 4);
    now = rn_training_stats(run->training);
  }
  if (now.least < before.least + 2 || now.updates < before.updates + 2)
    fail(run, "training has not gone on after everything was well again");
}

// A master that comes back when its clients are ending: nobody opens a session there again, and
// still what it had open elsewhere must go.
static void lose_master(run_t* run) {
  int node = run->servers + (int)(rn_sim_random(run->sim) % (uint64_t)run->workers);
  say(run, "is killed at the end", node, 0);
  rn_training_crash(run->training, node, false);
  rn_status_t status = rn_sim_start(run->sim, node);
  if (!rn_ok(status)) fail(run, rn_status_message(status));
  rn_status_free(status);
  rn_training_restarted(run->training, node);
}

static void one(uint64_t seed, run_t* run) {
  uint64_t bits = seed * 0x9e3779b97f4a7c15u;
  *run = (run_t){.is_loud = run->is_loud,
                 .is_very_loud = run->is_very_loud,
                 .only_breaks = run->only_breaks,
                 .servers = 1 + (int)(bits >> 60 & 1) + (int)(bits >> 61 & 1),
                 .workers = 1 + (int)(bits >> 58 & 3)};
  run->nodes = 2 * run->workers + run->servers + 1;
  int backups = run->workers > 1 ? (int)(bits >> 57 & 1) : 0;
  rn_training_options_t options = {.allocator = rn_allocator_system(),
                                   .seed = seed,
                                   .servers = run->servers,
                                   .workers = run->workers,
                                   .is_sync = bits >> 56 & 1,
                                   .needed = run->workers - backups,
                                   .lease_ns = 2 * SECOND,
                                   .net = {.latency_ns = 50000,
                                           .jitter_ns = bits >> 55 & 1 ? 20000 : 2000000,
                                           .break_rate = run->only_breaks ? 0.005
                                                         : bits >> 54 & 1 ? 0
                                                                          : 0.003},
                                   .is_loud = run->is_very_loud,
                                   .compute_ns = compute_ns};
  rn_status_t status = rn_training_create(&options, &run->training);
  if (!rn_ok(status)) {
    fail(run, rn_status_message(status));
    rn_status_free(status);
    return;
  }
  run->sim = rn_training_sim(run->training);
  live_through(run);
  recover(run);
  lose_master(run);
  rn_training_end(run->training);
  if (rn_training_fault(run->training)[0]) fail(run, rn_training_fault(run->training));
  rn_training_stats_t stats = rn_training_stats(run->training);
  run->trace = rn_sim_trace(run->sim);
  if (run->is_loud)
    printf(
        "%8.3f s: %lld updates, %lld steps, %lld failed, %lld repeated, %lld sessions, trace "
        "%016llx\n",
        (double)rn_sim_now(run->sim) * 1e-9, (long long)stats.updates, (long long)stats.steps,
        (long long)stats.failures, (long long)stats.repeated, (long long)stats.sessions,
        (unsigned long long)run->trace);
  rn_training_destroy(run->training);
}

static int try_seed(uint64_t seed, bool only_breaks, bool is_loud, bool is_twice) {
  run_t run = {
      .only_breaks = only_breaks, .is_loud = is_loud, .is_very_loud = getenv("SIM_CALLS") != NULL};
  if (is_loud) printf("seed %llu\n", (unsigned long long)seed);
  one(seed, &run);
  uint64_t trace = run.trace;
  if (is_twice && !run.fault[0]) {
    one(seed, &run);
    if (run.trace != trace) fail(&run, "two runs of the seed differ");
  }
  if (!run.fault[0]) return 0;
  printf("seed %llu: %s\n", (unsigned long long)seed, run.fault);
  fflush(stdout);
  return 1;
}

static int try_file(const char* path, bool is_loud, int* out_count) {
  FILE* file = fopen(path, "r");
  if (!file) {
    perror(path);
    return 1;
  }
  int failures = 0;
  char line[256];
  while (fgets(line, sizeof line, file)) {
    char* end;
    unsigned long long seed = strtoull(line, &end, 10);
    if (end == line) continue;  // words
    failures += try_seed(seed, false, is_loud, true);
    ++*out_count;
  }
  fclose(file);
  return failures;
}

int main(int argc, char** argv) {
  uint64_t first = 1, count = 0;
  const char* path = NULL;
  bool is_loud = false, only_breaks = false;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "-v") == 0) is_loud = true;
    if (strcmp(argv[i], "--breaks") == 0) only_breaks = true;
    if (strcmp(argv[i], "--first") == 0 && i + 1 < argc) first = strtoull(argv[++i], NULL, 10);
    if (strcmp(argv[i], "--count") == 0 && i + 1 < argc) count = strtoull(argv[++i], NULL, 10);
    if (strcmp(argv[i], "--file") == 0 && i + 1 < argc) path = argv[++i];
  }
  int failures = 0, tried = 0;
  if (path) failures += try_file(path, is_loud, &tried);
  for (uint64_t i = 0; i < count; ++i, ++tried)
    failures += try_seed(first + i, only_breaks, is_loud, i % 50 == 0);
  printf("%d seeds, %d failed\n", tried, failures);
  return failures || !tried;
}
