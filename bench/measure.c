// Clocks and checks of the bench client.
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

double bench_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// Steps between reads of the clock: about a millisecond, so that reading it costs nothing.
static long chunk_size(double seconds_per_step) {
  double steps = 1e-3 / (seconds_per_step > 1e-9 ? seconds_per_step : 1e-9);
  return steps < 1 ? 1 : (long)steps;
}

static double time_batch(double seconds, long chunk, void (*step)(void*), void* context) {
  long steps = 0;
  double start = bench_now(), elapsed = 0;
  do {
    for (long i = 0; i < chunk; ++i) step(context);
    steps += chunk;
    elapsed = bench_now() - start;
  } while (elapsed < seconds);
  return (double)steps / elapsed;
}

double bench_rate(const bench_options_t* options, void (*step)(void*), void* context) {
  step(context);  // The first step plans the graph, which is not measured here.
  double warm = time_batch(options->seconds / 3, 1, step, context);
  double best = 0;
  for (int i = 0; i < options->batches; ++i) {
    double rate = time_batch(options->seconds, chunk_size(1 / warm), step, context);
    if (rate > best) best = rate;
  }
  return best;
}

double bench_shortest(const bench_options_t* options, double (*sample)(void*), void* context) {
  double best = INFINITY, start = bench_now();
  double budget = options->seconds * options->batches;
  for (int i = 0; i < 3 || bench_now() - start < budget; ++i) {
    double seconds = sample(context);
    if (seconds < best) best = seconds;
  }
  return best;
}

void bench_fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
  exit(1);
}

void bench_expect(const char* what, double actual, double expected, double relative) {
  double slack = relative * fabs(expected);
  if (!(fabs(actual - expected) <= slack)) {
    bench_fail("%s: got %.9g, expected %.9g", what, actual, expected);
  }
}

double bench_status_megabytes(const char* field) {
  FILE* file = fopen("/proc/self/status", "r");
  if (file == NULL) bench_fail("cannot read /proc/self/status");
  char line[256];
  double kilobytes = -1;
  size_t length = strlen(field);
  while (kilobytes < 0 && fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, field, length) == 0 && line[length] == ':') {
      if (sscanf(line + length + 1, "%lf", &kilobytes) != 1) kilobytes = -1;
    }
  }
  fclose(file);
  if (kilobytes < 0) bench_fail("no %s in /proc/self/status", field);
  return kilobytes * 1024e-6;
}
