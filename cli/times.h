// The times of the steps of `runnel run --repeat`.
#ifndef RUNNEL_CLI_TIMES_H_
#define RUNNEL_CLI_TIMES_H_

#include "cli/cli.h"

typedef struct rn_cli_times_t {
  rn_allocator_t allocator;
  int64_t count;     // of steps, without the first
  int64_t first_ns;  // the first step includes planning and is counted separately
  int64_t sum_ns, max_ns;
  int64_t every;  // sampling interval: one step in |every| is kept for the percentiles
  RN_VEC(int64_t) kept;
} rn_cli_times_t;

// |total| is the number of steps to come.
void rn_cli_times_init(rn_cli_times_t* times, rn_allocator_t allocator, int64_t total);
RN_MUST_USE rn_status_t rn_cli_times_add(rn_cli_times_t* times, int64_t step, int64_t ns);
// "1000 steps: the first took 80.1 us, the others 2.31 us each (p50 2.2, p90 2.6, p99 4.1,
// max 31.0)"
void rn_cli_times_print(rn_cli_times_t* times, FILE* out);
void rn_cli_times_clear(rn_cli_times_t* times);

#endif  // RUNNEL_CLI_TIMES_H_
