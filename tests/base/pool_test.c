// The thread pool: every job and every piece runs once, from any thread and at any depth.
#include "base/pool.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "../support/status.h"

// The threads of this process; with |name|, those of that name (a sanitizer has its own).
static int count_threads(const char* name) {
  int count = 0;
  DIR* dir = opendir("/proc/self/task");
  for (struct dirent* entry; (entry = readdir(dir));) {
    if (entry->d_name[0] == '.') continue;
    char path[300], text[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
    FILE* file = fopen(path, "r");
    if (!file) continue;  // gone meanwhile
    if (!fgets(text, sizeof text, file)) text[0] = '\0';
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
    count += !name || strcmp(text, name) == 0;
  }
  closedir(dir);
  return count;
}

// Loops use all |threads|, even if the machine has fewer processors.
static rn_pool_t* make_pool(int threads) {
  rn_pool_t* pool = NULL;
  OK(rn_pool_create_on(rn_allocator_system(), threads, threads, &pool));
  return pool;
}

typedef struct counted_job_t {
  rn_job_t job;
  _Atomic int* ran;
  pthread_t thread;
} counted_job_t;

static void run_counted(rn_job_t* job) {
  counted_job_t* counted = (counted_job_t*)job;
  counted->thread = pthread_self();
  atomic_fetch_add(counted->ran, 1);
}

enum { JOBS = 5000 };
static counted_job_t jobs[JOBS];

static void wait_for(_Atomic int* count, int target, rn_pool_t* helper) {
  while (atomic_load(count) < target) {
    if (!helper || !rn_pool_help(helper)) sched_yield();
  }
}

Test(pool, sizes) {
  cr_assert_eq(rn_pool_threads(NULL), 1);
  rn_pool_t* pool = make_pool(3);
  cr_assert_eq(rn_pool_threads(pool), 3);
  rn_pool_destroy(pool);
  OK(rn_pool_create(rn_allocator_system(), 0, &pool));
  cr_assert_geq(rn_pool_threads(pool), 1);
  rn_pool_destroy(pool);
  rn_pool_destroy(NULL);
  cr_assert_eq(rn_pool_loop_threads(NULL), 1);
  OK(rn_pool_create_on(rn_allocator_system(), 16, 3, &pool));
  cr_assert_eq(rn_pool_threads(pool), 16);
  cr_assert_eq(rn_pool_loop_threads(pool), 3);
  rn_pool_destroy(pool);
}

static void add_range(void* arg, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) atomic_fetch_add(&((_Atomic int*)arg)[i], 1);
}

enum { CELLS = 10007 };
static _Atomic int cells[CELLS];

static void check_cells(int times) {
  for (int i = 0; i < CELLS; i++) cr_assert_eq(cells[i], times, "cell %d", i);
}

Test(pool, one_thread_starts_none, .timeout = 60) {
  int before = count_threads(NULL);
  rn_pool_t* pool = make_pool(1);
  _Atomic int ran = 0;
  for (int i = 0; i < 100; i++) {
    jobs[i] = (counted_job_t){{run_counted, NULL}, &ran, 0};
    rn_pool_submit(pool, &jobs[i].job);
    cr_assert_eq(ran, i + 1);
    cr_assert(pthread_equal(jobs[i].thread, pthread_self()));
  }
  rn_pool_for(pool, CELLS, 10, add_range, cells);
  check_cells(1);
  cr_assert(!rn_pool_help(pool));
  cr_assert_eq(count_threads(NULL), before);
  rn_pool_destroy(pool);
  rn_pool_for(NULL, CELLS, 10, add_range, cells);
  check_cells(2);
  cr_assert(!rn_pool_help(NULL));
}

Test(pool, workers_start_late_and_end, .timeout = 60) {
  rn_pool_t* pool = make_pool(4);
  cr_assert_eq(count_threads("rn_pool"), 0);
  rn_pool_for(pool, 5, 5, add_range, cells);  // one piece: nothing for anybody else
  cr_assert_eq(count_threads("rn_pool"), 0);
  _Atomic int ran = 0;
  jobs[0] = (counted_job_t){{run_counted, NULL}, &ran, 0};
  rn_pool_submit(pool, &jobs[0].job);
  wait_for(&ran, 1, NULL);
  cr_assert_eq(count_threads("rn_pool"), 1);
  for (int n = 0; n < 100; n++) rn_pool_for(pool, CELLS, 10, add_range, cells);
  cr_assert_leq(count_threads("rn_pool"), 3);
  rn_pool_destroy(pool);
  // A joined thread may show up for a moment longer.
  for (int n = 0; n < 1000 && count_threads("rn_pool") != 0; n++) usleep(1000);
  cr_assert_eq(count_threads("rn_pool"), 0);
}

Test(pool, every_job_runs_once, .timeout = 60) {
  for (int threads = 2; threads <= 8; threads *= 2) {
    rn_pool_t* pool = make_pool(threads);
    _Atomic int ran = 0;
    for (int i = 0; i < JOBS; i++) {
      jobs[i] = (counted_job_t){{run_counted, NULL}, &ran, 0};
      rn_pool_submit(pool, &jobs[i].job);
    }
    wait_for(&ran, JOBS, threads == 4 ? pool : NULL);
    cr_assert_eq(ran, JOBS);
    rn_pool_destroy(pool);
    cr_assert_eq(ran, JOBS);
  }
}

Test(pool, destroy_runs_what_was_submitted, .timeout = 60) {
  for (int n = 0; n < 50; n++) {
    rn_pool_t* pool = make_pool(3);
    _Atomic int ran = 0;
    for (int i = 0; i < 200; i++) {
      jobs[i] = (counted_job_t){{run_counted, NULL}, &ran, 0};
      rn_pool_submit(pool, &jobs[i].job);
    }
    rn_pool_destroy(pool);
    cr_assert_eq(ran, 200);
  }
}

// A job that submits two smaller ones: more than a deque holds, stolen from all sides.
typedef struct tree_job_t {
  rn_job_t job;
  rn_pool_t* pool;
  _Atomic int* ran;
  int index;
} tree_job_t;

enum { TREE = 1 << 15 };
static tree_job_t tree[TREE];

static void run_tree(rn_job_t* job) {
  tree_job_t* node = (tree_job_t*)job;
  for (int child = 2 * node->index; child <= 2 * node->index + 1; child++) {
    if (child < TREE) rn_pool_submit(node->pool, &tree[child].job);
  }
  atomic_fetch_add(node->ran, 1);
}

// The same number of jobs, all submitted by one worker: the deque overflows.
static void run_root(rn_job_t* job) {
  tree_job_t* node = (tree_job_t*)job;
  for (int i = TREE / 2; i < TREE; i++) rn_pool_submit(node->pool, &tree[i].job);
  atomic_fetch_add(node->ran, 1);
}

Test(pool, jobs_submit_jobs, .timeout = 60) {
  for (int threads = 2; threads <= 5; threads++) {
    rn_pool_t* pool = make_pool(threads);
    _Atomic int ran = 0;
    for (int i = 1; i < TREE; i++) tree[i] = (tree_job_t){{run_tree, NULL}, pool, &ran, i};
    rn_pool_submit(pool, &tree[1].job);
    wait_for(&ran, TREE - 1, threads % 2 ? pool : NULL);
    tree[1].job.run = run_root;
    rn_pool_submit(pool, &tree[1].job);
    rn_pool_destroy(pool);
    cr_assert_eq(ran, TREE - 1 + TREE / 2 + 1);
  }
}

// Two jobs that meet: they end only if both run at the same time.
typedef struct meeting_t {
  rn_job_t job;
  _Atomic int* here;
  _Atomic int* done;
} meeting_t;

static void run_meeting(rn_job_t* job) {
  meeting_t* meeting = (meeting_t*)job;
  atomic_fetch_add(meeting->here, 1);
  while (atomic_load(meeting->here) % 2) sched_yield();
  atomic_fetch_add(meeting->done, 1);
}

Test(pool, two_jobs_get_two_workers, .timeout = 60) {
  rn_pool_t* pool = make_pool(3);
  _Atomic int here = 0, done = 0;
  for (int n = 0; n < 2000; n++) {
    meeting_t a = {{run_meeting, NULL}, &here, &done}, b = a;
    rn_pool_submit(pool, &a.job);
    rn_pool_submit(pool, &b.job);
    wait_for(&done, 2 * n + 2, NULL);
    if (n % 100 == 0) usleep(200);  // time to fall asleep
  }
  rn_pool_destroy(pool);
}

typedef struct pieces_t {
  int64_t count, grain;
  _Atomic int64_t covered, calls;
} pieces_t;

static void check_piece(void* arg, int64_t begin, int64_t end) {
  pieces_t* pieces = arg;
  cr_assert_eq(begin % pieces->grain, 0);
  int64_t rest = pieces->count - begin;
  cr_assert_eq(end - begin, rest < pieces->grain ? rest : pieces->grain);
  atomic_fetch_add(&pieces->covered, end - begin);
  atomic_fetch_add(&pieces->calls, 1);
}

Test(pool, pieces_are_the_same_for_any_number_of_threads, .timeout = 60) {
  static const int64_t rows[][2] = {{1, 1}, {2, 1}, {10, 3}, {10, 10}, {1000, 7}, {1000, 999}};
  for (int threads = 1; threads <= 4; threads++) {
    rn_pool_t* pool = make_pool(threads);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      pieces_t pieces = {.count = rows[i][0], .grain = rows[i][1]};
      rn_pool_for(pool, pieces.count, pieces.grain, check_piece, &pieces);
      cr_assert_eq(pieces.covered, pieces.count);
      cr_assert_eq(pieces.calls, (pieces.count + pieces.grain - 1) / pieces.grain);
    }
    pieces_t huge = {.count = INT64_MAX, .grain = INT64_MAX / 3};
    rn_pool_for(pool, huge.count, huge.grain, check_piece, &huge);
    cr_assert_eq(huge.covered, INT64_MAX);
    pieces_t none = {.grain = 1};
    rn_pool_for(pool, 0, 1, check_piece, &none);
    rn_pool_for(pool, -5, 1, check_piece, &none);
    cr_assert_eq(none.calls, 0);
    pieces_t unset = {.count = 5, .grain = 1};
    rn_pool_for(pool, 5, 0, check_piece, &unset);
    cr_assert_eq(unset.calls, 5);
    rn_pool_destroy(pool);
  }
}

Test(pool, loops_one_after_the_other, .timeout = 120) {
  rn_pool_t* pool = make_pool(4);
  for (int n = 0; n < 3000; n++) {
    rn_pool_for(pool, CELLS, CELLS / (1 + n % 13) + 1, add_range, cells);
    if (n % 500 == 0) usleep(300);
  }
  check_cells(3000);
  rn_pool_destroy(pool);
}

typedef struct nested_t {
  rn_pool_t* pool;
  int depth;
  _Atomic int64_t* leaves;
} nested_t;

static void nested_body(void* arg, int64_t begin, int64_t end) {
  nested_t* outer = arg;
  if (outer->depth == 0) {
    atomic_fetch_add(outer->leaves, end - begin);
    return;
  }
  nested_t inner = {outer->pool, outer->depth - 1, outer->leaves};
  for (int64_t i = begin; i < end; i++) rn_pool_for(outer->pool, 7, 1, nested_body, &inner);
}

Test(pool, loops_inside_loops, .timeout = 60) {
  rn_pool_t* pool = make_pool(4);
  for (int n = 0; n < 30; n++) {
    _Atomic int64_t leaves = 0;
    nested_t outer = {pool, 3, &leaves};
    rn_pool_for(pool, 7, 1, nested_body, &outer);
    cr_assert_eq(leaves, 7 * 7 * 7 * 7);
  }
  rn_pool_destroy(pool);
}

// Loops in jobs, from many threads, more of them than there are slots for.
typedef struct loop_job_t {
  rn_job_t job;
  rn_pool_t* pool;
  _Atomic int64_t* leaves;
  _Atomic int* done;
} loop_job_t;

static void run_loop_job(rn_job_t* job) {
  loop_job_t* loop = (loop_job_t*)job;
  nested_t nested = {loop->pool, 1, loop->leaves};
  rn_pool_for(loop->pool, 7, 1, nested_body, &nested);
  atomic_fetch_add(loop->done, 1);
}

static void* many_loops(void* arg) {
  rn_pool_t* pool = arg;
  for (int n = 0; n < 20; n++) {
    _Atomic int64_t leaves = 0;
    _Atomic int done = 0;
    loop_job_t mine[4];
    for (int i = 0; i < 4; i++) {
      mine[i] = (loop_job_t){{run_loop_job, NULL}, pool, &leaves, &done};
      rn_pool_submit(pool, &mine[i].job);
    }
    nested_t nested = {pool, 1, &leaves};
    rn_pool_for(pool, 7, 2, nested_body, &nested);
    wait_for(&done, 4, n % 2 ? pool : NULL);
    cr_assert_eq(leaves, 5 * 7 * 7);
  }
  return NULL;
}

Test(pool, many_threads_at_once, .timeout = 120) {
  rn_pool_t* pool = make_pool(5);
  pthread_t threads[80];
  for (int i = 0; i < 80; i++) cr_assert_eq(pthread_create(&threads[i], NULL, many_loops, pool), 0);
  for (int i = 0; i < 80; i++) pthread_join(threads[i], NULL);
  rn_pool_destroy(pool);
}

Test(pool, two_pools_do_not_mix, .timeout = 60) {
  rn_pool_t* a = make_pool(3);
  rn_pool_t* b = make_pool(2);
  _Atomic int64_t leaves = 0;
  nested_t inner = {b, 2, &leaves};  // loops of b inside pieces of a
  for (int n = 0; n < 20; n++) rn_pool_for(a, 7, 1, nested_body, &inner);
  cr_assert_eq(leaves, 20 * 7 * 7 * 7);
  rn_pool_destroy(b);
  rn_pool_destroy(a);
}

// Workers that are not there: the caller does all the work.
typedef struct held_job_t {
  rn_job_t job;
  _Atomic int* here;
  _Atomic bool* may_end;
} held_job_t;

static void run_held(rn_job_t* job) {
  held_job_t* held = (held_job_t*)job;
  atomic_fetch_add(held->here, 1);
  while (!atomic_load(held->may_end)) usleep(100);
  atomic_fetch_sub(held->here, 1);
}

Test(pool, a_caller_needs_no_worker, .timeout = 60) {
  rn_pool_t* pool = make_pool(4);
  _Atomic int here = 0;
  _Atomic bool may_end = false;
  held_job_t held[3];
  for (int i = 0; i < 3; i++) {
    held[i] = (held_job_t){{run_held, NULL}, &here, &may_end};
    rn_pool_submit(pool, &held[i].job);
  }
  wait_for(&here, 3, NULL);
  for (int n = 0; n < 20; n++) rn_pool_for(pool, CELLS, 100, add_range, cells);
  check_cells(20);
  atomic_store(&may_end, true);
  while (atomic_load(&here)) sched_yield();
  rn_pool_destroy(pool);
}

// One thread stops inside a piece until all others are done. If any other piece were bound to that
// thread, this would not end.
typedef struct stopper_t {
  pthread_t caller;
  int64_t pieces;
  _Atomic int64_t done;
  _Atomic bool has_stopped;
} stopper_t;

static void stop_once(void* arg, int64_t begin, int64_t end) {
  stopper_t* stopper = arg;
  cr_assert_eq(end, begin + 1);
  if (!pthread_equal(pthread_self(), stopper->caller) &&
      !atomic_exchange(&stopper->has_stopped, true))
    while (atomic_load(&stopper->done) < stopper->pieces - 1) sched_yield();
  usleep(20);  // time for others to come
  atomic_fetch_add(&stopper->done, 1);
}

Test(pool, a_thread_holds_one_piece, .timeout = 60) {
  rn_pool_t* pool = make_pool(4);
  bool has_stopped = false;
  for (int n = 0; n < 20 || (!has_stopped && n < 10000); n++) {
    stopper_t stopper = {.caller = pthread_self(), .pieces = 40};
    rn_pool_for(pool, stopper.pieces, 1, stop_once, &stopper);
    cr_assert_eq(stopper.done, stopper.pieces);
    has_stopped |= stopper.has_stopped;
  }
  cr_assert(has_stopped);
  rn_pool_destroy(pool);
}

// With one thread the order of pieces is visible.
static void note_order(void* arg, int64_t begin, int64_t end) {
  (void)end;
  int64_t** next = arg;
  *(*next)++ = begin;
}

Test(pool, loops_backwards) {
  rn_pool_t* pool = make_pool(3);
  pieces_t pieces = {.count = 1000, .grain = 7};
  rn_pool_run(
      pool,
      &(rn_pool_work_t){
          .count = 1000, .grain = 7, .body = check_piece, .arg = &pieces, .is_backwards = true});
  cr_assert_eq(pieces.covered, 1000);
  cr_assert_eq(pieces.calls, 143);
  rn_pool_destroy(pool);
  int64_t order[10], *next = order;
  rn_pool_run(NULL,
              &(rn_pool_work_t){
                  .count = 10, .grain = 1, .body = note_order, .arg = &next, .is_backwards = true});
  for (int i = 0; i < 10; i++) cr_assert_eq(order[i], 9 - i);
}

Test(pool, short_of_memory) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system(), .fail_at = 1};
  rn_pool_t* pool = NULL;
  rn_status_t status = rn_pool_create(rn_allocator_counting(&counting), 4, &pool);
  cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED);
  cr_assert_null(pool);
  OK(rn_pool_create(rn_allocator_counting(&counting), 4, &pool));
  for (int n = 0; n < 100; n++) rn_pool_for(pool, CELLS, 100, add_range, cells);
  cr_assert_eq(counting.allocations, 2);  // loops allocate nothing
  rn_pool_destroy(pool);
  cr_assert_eq(counting.live_bytes, 0);
}

// One block is kept between calls, the largest up to a limit; what is lent is never lent twice.
Test(pool, lends_memory) {
  enum { SMALL = 1000, LARGE = 100000 };
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rn_pool_t* pool = NULL;
  OK(rn_pool_create(rn_allocator_counting(&counting), 2, &pool));
  int64_t bytes = counting.live_bytes;
  void *first = NULL, *second = NULL, *again = NULL;
  OK(rn_pool_borrow(pool, SMALL, &first));
  OK(rn_pool_borrow(pool, LARGE, &second));
  cr_assert_neq(first, second);
  rn_pool_give_back(pool, first, SMALL);
  cr_assert_eq(counting.live_bytes, bytes + SMALL + LARGE);
  rn_pool_give_back(pool, second, LARGE);
  cr_assert_eq(counting.live_bytes, bytes + LARGE);
  OK(rn_pool_borrow(pool, SMALL, &again));
  cr_assert_eq(again, second);
  OK(rn_pool_borrow(pool, SMALL, &first));  // the kept one is lent
  cr_assert_neq(first, again);
  rn_pool_give_back(pool, first, SMALL);
  rn_pool_give_back(pool, again, SMALL);
  cr_assert_eq(counting.live_bytes, bytes + LARGE);
  const size_t huge = (size_t)1 << 30;
  OK(rn_pool_borrow(pool, huge, &first));
  rn_pool_give_back(pool, first, huge);
  cr_assert_eq(counting.live_bytes, bytes + LARGE);
  counting.fail_at = counting.allocations + 1;
  cr_assert_eq(rn_status_code(rn_pool_borrow(pool, 2 * LARGE, &first)), RN_CODE_RESOURCE_EXHAUSTED);
  rn_pool_destroy(pool);
  cr_assert_eq(counting.live_bytes, 0);
  OK(rn_pool_borrow(NULL, SMALL, &first));
  rn_pool_give_back(NULL, first, SMALL);
}
