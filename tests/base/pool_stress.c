// The thread pool under ThreadSanitizer: callers, jobs and nested loops at once, over plain memory,
// so that a piece that runs twice, or is not finished when its loop returns, is a data race.
//
// Built with the sanitizer in every build, from the pool's own files, and without Criterion, which
// does not start under this sanitizer.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"

enum { CELLS = 4096, CALLERS = 6, TURNS = 150, JOBS = 8 };

static void fail(const char* what) {
  fprintf(stderr, "pool_stress: %s\n", what);
  exit(1);
}

static void add_one(void* arg, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) ((int*)arg)[i]++;
}

static void check(const int* cells, int count, int expected) {
  for (int i = 0; i < count; ++i)
    if (cells[i] != expected) fail("a piece did not run exactly once");
}

typedef struct {
  rn_pool_t* pool;
  int* cells;
} outer_t;

static void inner_loops(void* arg, int64_t begin, int64_t end) {
  outer_t* outer = arg;
  for (int64_t i = begin; i < end; ++i)
    rn_pool_for(outer->pool, 64, 5, add_one, outer->cells + 64 * i);
}

typedef struct {
  rn_job_t job;
  outer_t outer;
  _Atomic int* done;
} stress_job_t;

static void run_job(rn_job_t* job) {
  stress_job_t* stress = (stress_job_t*)job;
  rn_pool_for(stress->outer.pool, 256, 16, add_one, stress->outer.cells);
  atomic_fetch_add(stress->done, 1);
}

static void run_jobs(rn_pool_t* pool, int* cells, bool helps) {
  stress_job_t jobs[JOBS];
  _Atomic int done = 0;
  for (int i = 0; i < JOBS; ++i) {
    jobs[i] = (stress_job_t){{run_job, NULL}, {pool, cells + 256 * i}, &done};
    rn_pool_submit(pool, &jobs[i].job);
  }
  while (atomic_load(&done) < JOBS)
    if (!helps || !rn_pool_help(pool)) sched_yield();
}

static void* run_caller(void* arg) {
  rn_pool_t* pool = arg;
  int* cells = calloc(CELLS, sizeof *cells);
  if (!cells) fail("out of memory");
  for (int turn = 0; turn < TURNS; ++turn) {
    memset(cells, 0, CELLS * sizeof *cells);
    rn_pool_for(pool, CELLS, 100 + turn, add_one, cells);
    check(cells, CELLS, 1);
    rn_pool_run(pool, &(rn_pool_work_t){.count = CELLS,
                                        .grain = 1 + turn % 7,
                                        .body = add_one,
                                        .arg = cells,
                                        .kind = (uint64_t)turn,
                                        .is_backwards = true});
    check(cells, CELLS, 2);
    rn_pool_for_small(pool, CELLS, CELLS, 256, add_one, cells);
    check(cells, CELLS, 3);
    outer_t outer = {pool, cells};
    rn_pool_for(pool, CELLS / 64, 3, inner_loops, &outer);
    check(cells, CELLS, 4);
    run_jobs(pool, cells, turn % 2);
    check(cells, 256 * JOBS, 5);
    if (turn % 50 == 0) usleep(300);  // workers fall asleep
  }
  free(cells);
  return NULL;
}

static void run_callers(int threads, int processors, int callers) {
  rn_pool_t* pool = NULL;
  if (!rn_ok(rn_pool_create_on(rn_allocator_system(), threads, processors, &pool))) fail("no pool");
  pthread_t all[CALLERS];
  for (int i = 0; i < callers; ++i)
    if (pthread_create(&all[i], NULL, run_caller, pool) != 0) fail("no thread");
  for (int i = 0; i < callers; ++i) pthread_join(all[i], NULL);
  rn_pool_destroy(pool);
}

// A thread outside the pool submits a job; when the job has run, the pool is destroyed,
// whether or not the thread has left it.
static void note_done(rn_job_t* job) {
  stress_job_t* stress = (stress_job_t*)job;
  atomic_store(stress->done, 1);
}

static void* submit_one(void* arg) {
  stress_job_t* stress = arg;
  rn_pool_submit(stress->outer.pool, &stress->job);
  return NULL;
}

static void run_last_jobs(void) {
  for (int turn = 0; turn < TURNS; ++turn) {
    rn_pool_t* pool = NULL;
    _Atomic int done = 0;
    pthread_t submitter;
    if (!rn_ok(rn_pool_create_on(rn_allocator_system(), 4, 4, &pool))) fail("no pool");
    rn_pool_start(pool);
    stress_job_t stress = {{note_done, NULL}, {pool, NULL}, &done};
    if (pthread_create(&submitter, NULL, submit_one, &stress) != 0) fail("no thread");
    while (!atomic_load(&done)) sched_yield();
    rn_pool_destroy(pool);
    pthread_join(submitter, NULL);
  }
}

int main(void) {
  run_callers(2, 2, 1);
  run_callers(4, 4, 2);
  run_callers(9, 16, CALLERS);
  run_callers(16, 4, CALLERS);
  run_last_jobs();
  return 0;
}
