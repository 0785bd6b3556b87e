// What the machine itself can do, measured in the same run: the limits that other figures are read
// against. No library takes part.
#include <pthread.h>

#include "bench.h"

enum { kLanes = 16, kChains = 12, kTurns = 2000 };

typedef float lanes_t __attribute__((vector_size(kLanes * sizeof(float))));

// Chains of multiplications and additions that fill the pipelines of any processor since 2013.
__attribute__((target_clones("avx512f", "fma", "default"), noinline)) static float multiply_add(
    float start) {
  lanes_t sums[kChains], factor = {0}, term = {0};
  factor += 0.999f;
  term += start;
#pragma GCC unroll 12
  for (int c = 0; c < kChains; ++c) sums[c] = term * (float)c;
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = sums[c] * factor + term;
  }
#pragma GCC unroll 12
  for (int c = 1; c < kChains; ++c) sums[0] += sums[c];
  return sums[0][0];
}

typedef struct {
  pthread_t thread;
  pthread_barrier_t* start;
  double seconds, turns;  // turns: how many were made in that time
  float result;
} worker_t;

static void* work(void* arg) {
  worker_t* worker = arg;
  pthread_barrier_wait(worker->start);
  double begin = bench_now();
  while (bench_now() - begin < worker->seconds) {
    worker->result += multiply_add(worker->result * 1e-9f + 1);
    worker->turns++;
  }
  worker->turns /= bench_now() - begin;
  return NULL;
}

// GFLOP/s of |threads| threads together.
static double multiply_add_rate(const bench_options_t* options, int threads) {
  double best = 0;
  for (int batch = 0; batch < options->batches; ++batch) {
    worker_t workers[2] = {{0}};
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; ++i) {
      workers[i] = (worker_t){.start = &start, .seconds = options->seconds};
      if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) bench_fail("no thread");
    }
    double rate = 0;
    for (int i = 0; i < threads; ++i) {
      pthread_join(workers[i].thread, NULL);
      rate += workers[i].turns * 2 * kTurns * kChains * kLanes * 1e-9;
    }
    pthread_barrier_destroy(&start);
    if (rate > best) best = rate;
  }
  return best;
}

static double machine_fma(const bench_options_t* options, int threads, int unused) {
  (void)unused;
  return multiply_add_rate(options, threads);
}

// By turns, as scale2: what two threads can gain at most on this machine in this moment.
static double machine_scale2(const bench_options_t* options, int unused, int unused2) {
  (void)unused;
  (void)unused2;
  double one = 0, two = 0;
  for (int turn = 0; turn < 2; ++turn) {
    double rate = multiply_add_rate(options, 1);
    if (rate > one) one = rate;
    rate = multiply_add_rate(options, 2);
    if (rate > two) two = rate;
  }
  return two / one;
}

const bench_case_t bench_machine_cases[] = {
    {"machine_fma1", "GFLOP/s", machine_fma, 1, 0},
    {"machine_fma2", "GFLOP/s", machine_fma, 2, 0},
    {"machine_scale2", "x", machine_scale2, 0, 0},
    {0},
};
