// The limits of the machine itself, measured in the same run, to compare other figures with. Uses
// no library.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { kLanes = 16, kChains = 12, kTurns = 2000 };

typedef float lanes_t __attribute__((vector_size(kLanes * sizeof(float))));

// Chains of fused multiply-adds that fill the pipelines of any processor since 2013.
__attribute__((target_clones("avx512f", "fma", "default"), optimize("fp-contract=fast"),
               noinline)) static float
multiply_add(float start) {
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
  double seconds, turns;  // turns: iterations in that time
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

// Measured alternately, like scale2: the largest speed-up of two threads on this machine at this
// time.
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

enum { kStream = 64 << 20 };  // floats per array, half per thread; larger than any cache

typedef struct {
  pthread_t thread;
  float *a, *b, *c;
} stream_t;

__attribute__((optimize("O3"))) static void* stream(void* arg) {
  const stream_t* part = arg;
  float* restrict a = part->a;
  for (int i = 0; i < kStream / 2; ++i) a[i] = part->b[i] * 0.5f + part->c[i];
  return NULL;
}

static double stream_once(void* arg) {
  stream_t other = *(stream_t*)arg, own = other;
  own.a += kStream / 2, own.b += kStream / 2, own.c += kStream / 2;
  double start = bench_now();
  if (pthread_create(&other.thread, NULL, stream, &other)) bench_fail("no thread");
  stream(&own);
  pthread_join(other.thread, NULL);
  return bench_now() - start;
}

double bench_memory_rate(const bench_options_t* options) {
  stream_t whole = {0};
  float** arrays[] = {&whole.a, &whole.b, &whole.c};
  for (int i = 0; i < 3; ++i) {
    *arrays[i] = malloc(kStream * sizeof(float));
    if (*arrays[i] == NULL) bench_fail("no memory");
    memset(*arrays[i], 0, kStream * sizeof(float));
  }
  double seconds = bench_shortest(options, stream_once, &whole);
  for (int i = 0; i < 3; ++i) free(*arrays[i]);
  return 3.0 * kStream * sizeof(float) / seconds * 1e-9;
}

static double machine_memory(const bench_options_t* options, int unused, int unused2) {
  (void)unused, (void)unused2;
  return bench_memory_rate(options);
}

const bench_case_t bench_machine_cases[] = {
    {"machine_fma1", "GFLOP/s", machine_fma, 1, 0},
    {"machine_fma2", "GFLOP/s", machine_fma, 2, 0},
    {"machine_memory", "GB/s", machine_memory, 0, 0},
    {"machine_scale2", "x", machine_scale2, 0, 0},
    {0},
};
