// Measures the thread pool by itself: what a fork and join costs, from what length on a loop gains,
// and what busy neighbours do to it. Prints one line per number of threads.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/machine.h"
#include "base/pool.h"

enum { kSamples = 2000, kPause = 500000 };

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Steps of work per nanosecond of one thread, measured once: work itself must not read a clock.
static double steps_per_ns;

static void spend(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) __asm__ volatile("" ::: "memory");
}

static void calibrate(void) {
  int64_t best = INT64_MAX;
  for (int i = 0; i < 20; ++i) {
    int64_t start = now_ns();
    spend(1000000);
    int64_t time = now_ns() - start;
    if (time < best) best = time;
  }
  steps_per_ns = 1e6 / (double)best;
}

static void work(void* arg, int64_t begin, int64_t end) { spend((end - begin) * *(int64_t*)arg); }

static int compare(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

typedef struct {
  double median, high;  // microseconds; |high| is the 99th percentile
} figure_t;

// Loops of |pieces| pieces that take |loop_ns| in one thread, one after the other; with a pause
// between them, workers have gone to sleep.
static figure_t time_loops(rn_pool_t* pool, int64_t pieces, double loop_ns, bool pauses) {
  static int64_t times[kSamples];
  int samples = pauses ? kSamples / 20 : kSamples;
  int64_t steps = (int64_t)(loop_ns * steps_per_ns / (double)pieces);
  rn_pool_work_t loop = {
      .count = pieces, .grain = 1, .body = work, .arg = &steps, .kind = (uint64_t)steps + pauses};
  for (int i = -samples / 4; i < samples; ++i) {  // the first ones let the pool learn
    if (pauses) {
      struct timespec pause = {0, kPause};
      nanosleep(&pause, NULL);
    }
    int64_t start = now_ns();
    rn_pool_run(pool, &loop);
    if (i >= 0) times[i] = now_ns() - start;
  }
  qsort(times, (size_t)samples, sizeof *times, compare);
  return (figure_t){(double)times[samples / 2] / 1e3, (double)times[samples * 99 / 100] / 1e3};
}

static void print_loops(rn_pool_t* pool, int threads) {
  static const double lengths[] = {0, 2e3, 5e3, 20e3, 100e3, 1e6};
  printf("%7d", threads);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    figure_t figure = time_loops(pool, 4 * (int64_t)threads, lengths[i], false);
    printf("  %7.2f/%-8.2f", figure.median, figure.high);
  }
  figure_t asleep = time_loops(pool, 4 * (int64_t)threads, 100e3, true);
  printf("  %7.2f/%-8.2f\n", asleep.median, asleep.high);
  fflush(stdout);
}

typedef struct {
  rn_pool_t* pool;
  _Atomic bool* stop;
  int64_t loops;
} client_t;

static void* run_client(void* arg) {
  client_t* client = arg;
  int64_t steps = (int64_t)(50e3 * steps_per_ns / 32);
  for (; !atomic_load(client->stop); ++client->loops)
    rn_pool_for(client->pool, 32, 1, work, &steps);
  return NULL;
}

// Loops of 50 us per second that |count| callers get out of one pool together.
static double clients_rate(rn_pool_t* pool, int count) {
  enum { kMost = 64 };
  client_t clients[kMost];
  pthread_t threads[kMost];
  _Atomic bool stop = false;
  if (count > kMost) count = kMost;
  int64_t start = now_ns();
  int running = 0;
  for (; running < count; ++running) {
    clients[running] = (client_t){.pool = pool, .stop = &stop};
    if (pthread_create(&threads[running], NULL, run_client, &clients[running]) != 0) break;
  }
  struct timespec length = {0, 200000000};
  nanosleep(&length, NULL);
  atomic_store(&stop, true);
  double loops = 0;
  for (int i = 0; i < running; ++i) {
    pthread_join(threads[i], NULL);
    loops += (double)clients[i].loops;
  }
  return loops * 1e9 / (double)(now_ns() - start);
}

int main(int argc, char** argv) {
  rn_machine_processors_t machine = rn_machine_processors("");
  int most = argc > 1 ? atoi(argv[1]) : machine.all;
  if (most < 1 || argc > 2) {
    fprintf(stderr, "usage: pool_bench [THREADS]: measures 1, 2, 4 ... THREADS (default: all)\n");
    return 2;
  }
  calibrate();
  printf("%d processors, %d cores\n", machine.all, machine.cores);
  printf("time of a loop in us, median/99th percentile, by its length in one thread\n");
  printf("threads  %-16s  %-16s  %-16s  %-16s  %-16s  %-16s  %s\n", "0", "2 us", "5 us", "20 us",
         "100 us", "1 ms", "100 us, asleep");
  for (int threads = 1;; threads = 2 * threads < most ? 2 * threads : most) {
    rn_pool_t* pool = NULL;
    rn_status_t status = rn_pool_create(rn_allocator_default(), threads, &pool);
    if (!rn_ok(status)) return 1;
    print_loops(pool, threads);
    rn_pool_destroy(pool);
    if (threads == most) break;
  }
  rn_pool_t* pool = NULL;
  rn_status_t status = rn_pool_create(rn_allocator_default(), most, &pool);
  if (!rn_ok(status)) return 1;
  printf("loops of 50 us per second in one pool of %d threads, by callers:", most);
  for (int clients = 1; clients <= 2 * most; clients *= 2)
    printf("  %d: %.0f", clients, clients_rate(pool, clients));
  printf("\n");
  rn_pool_destroy(pool);
  return 0;
}
