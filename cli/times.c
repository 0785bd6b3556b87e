// Times of steps: see times.h.
#include "cli/times.h"

#include <stdlib.h>

#define MOST_KEPT INT64_C(1000000)

void rn_cli_times_init(rn_cli_times_t* times, rn_allocator_t allocator, int64_t total) {
  *times = (rn_cli_times_t){.allocator = allocator, .every = (total + MOST_KEPT - 1) / MOST_KEPT};
}

rn_status_t rn_cli_times_add(rn_cli_times_t* times, int64_t step, int64_t ns) {
  if (step == 0) {
    times->first_ns = ns;
    return RN_OK;
  }
  times->count++;
  times->sum_ns += ns;
  if (ns > times->max_ns) times->max_ns = ns;
  return step % times->every == 0 ? rn_vec_push(&times->kept, times->allocator, ns) : RN_OK;
}

static int compare(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

// The smallest time that |percent| of the steps did not exceed, in microseconds.
static double percentile(const rn_cli_times_t* times, size_t percent) {
  size_t rank = (times->kept.count * percent + 99) / 100;
  return (double)times->kept.items[rank ? rank - 1 : 0] / 1e3;
}

void rn_cli_times_print(rn_cli_times_t* times, FILE* out) {
  if (!times->count || !times->kept.count) return;
  qsort(times->kept.items, times->kept.count, sizeof *times->kept.items, compare);
  fprintf(out,
          "%lld steps: the first took %.1f us, the others %.2f us each (p50 %.2f, p90 %.2f, p99 "
          "%.2f, max %.2f)\n",
          (long long)times->count + 1, (double)times->first_ns / 1e3,
          (double)times->sum_ns / 1e3 / (double)times->count, percentile(times, 50),
          percentile(times, 90), percentile(times, 99), (double)times->max_ns / 1e3);
}

void rn_cli_times_clear(rn_cli_times_t* times) { rn_vec_free(&times->kept, times->allocator); }
