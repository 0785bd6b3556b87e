// A histogram of latencies with a relative error below 1 %, from nanoseconds to hours, in fixed
// memory: 128 buckets per power of two, as in HdrHistogram.
#ifndef RUNNEL_CLI_LATENCIES_H_
#define RUNNEL_CLI_LATENCIES_H_

#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

#define RN_LATENCY_BUCKETS (128 * 40)

typedef struct rn_latencies_t {
  uint64_t counts[RN_LATENCY_BUCKETS];
  uint64_t count;
  double sum;  // nanoseconds
  int64_t max;
} rn_latencies_t;

void rn_latencies_add(rn_latencies_t* latencies, int64_t ns);
// Quantile |q|, from 0 to 1, of all values; 0 if the histogram is empty.
int64_t rn_latencies_quantile(const rn_latencies_t* latencies, double q);
static inline double rn_latencies_mean(const rn_latencies_t* latencies) {
  return latencies->count ? latencies->sum / (double)latencies->count : 0;
}

// Percentiles in HdrHistogram's text form (.hgrm), in milliseconds, which its plotters read.
void rn_latencies_print(const rn_latencies_t* latencies, FILE* out);
// The same as a picture: latency over percentile, logarithmic towards 100 %.
void rn_latencies_draw(const rn_latencies_t* latencies, const char* title, FILE* out);

#endif  // RUNNEL_CLI_LATENCIES_H_
