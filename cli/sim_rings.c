// runnel sim: steps of workers that add up their gradients by an all-reduce, over one ring or over
// rings in racks and between them. No real code runs: every message is followed from the clock of
// its sender to that of its receiver.
#include <math.h>
#include <stdio.h>

#include "cli/sim.h"

// A worker's clock is the time in ns at which it has computed or received everything so far.
typedef struct rings_t {
  const rn_cli_sim_t* request;
  rn_sim_t* sim;  // for random numbers only
  double* clocks;
  int workers;
  double bytes;
} rings_t;

static double message_ns(const rings_t* rings, double bytes) {
  double late = RN_CLI_SIM_LATENCY_NS + RN_CLI_SIM_JITTER_NS * rn_sim_exponential(rings->sim);
  return late + bytes / ((double)rings->request->gbits / 8);
}

// |rounds| rounds of a ring of |count| workers, |stride| apart from |first| on: each sends |bytes|
// to the next and waits for as many from the one before.
static void run_ring(rings_t* rings, int first, int stride, int count, int rounds, double bytes) {
  double* clocks = rings->clocks;
  for (int r = 0; r < rounds; ++r) {
    double before = clocks[first + (count - 1) * stride];
    for (int k = 0; k < count; ++k) {
      double own = clocks[first + k * stride];
      clocks[first + k * stride] = fmax(own, before) + message_ns(rings, bytes);
      before = own;
    }
  }
}

static void reduce_over_one_ring(rings_t* rings) {
  int n = rings->workers;
  run_ring(rings, 0, 1, n, 2 * (n - 1), rings->bytes / n);
}

// Each worker of a rack sums one part of the gradient within the rack, then with the workers of the
// other racks that have the same part, and then all workers of a rack exchange their parts.
static void reduce_over_racks(rings_t* rings) {
  int racks = (int)rings->request->racks, size = rings->workers / racks;
  double part = rings->bytes / size;
  for (int rack = 0; rack < racks; ++rack) run_ring(rings, rack * size, 1, size, size - 1, part);
  for (int k = 0; k < size; ++k) run_ring(rings, k, size, racks, 2 * (racks - 1), part / racks);
  for (int rack = 0; rack < racks; ++rack) run_ring(rings, rack * size, 1, size, size - 1, part);
}

// One step from time 0 on; returns its seconds, and those of its all-reduce.
static double run_step(rings_t* rings, double* out_reduce) {
  double slowest = 0, end = 0;
  for (int w = 0; w < rings->workers; ++w) {
    rings->clocks[w] =
        (double)rn_cli_sim_compute_ns((void*)(uintptr_t)rings->request, rings->sim, w);
    slowest = fmax(slowest, rings->clocks[w]);
  }
  if (rings->request->mode == RN_CLI_SIM_RING)
    reduce_over_one_ring(rings);
  else
    reduce_over_racks(rings);
  for (int w = 0; w < rings->workers; ++w) end = fmax(end, rings->clocks[w]);
  *out_reduce = (end - slowest) * 1e-9;
  return end * 1e-9;
}

static rn_status_t print_steps(rings_t* rings, double* times) {
  int64_t steps = rings->request->steps;
  double mean = 0, reduce = 0;
  for (int64_t i = 0; i < steps; ++i) {
    double of_it = 0;
    times[i] = run_step(rings, &of_it);
    mean += times[i] / (double)steps;
    reduce += of_it / (double)steps;
  }
  rn_cli_sim_sort(times, steps);
  printf(
      "seconds per step over %lld steps\n"
      " median     10 %%     90 %%     mean  all-reduce  gradients / s\n"
      "%7.3f  %7.3f  %7.3f  %7.3f  %10.3f  %13.1f\n",
      (long long)steps, times[steps / 2], times[steps / 10], times[steps - 1 - steps / 10], mean,
      reduce, rings->workers / mean);
  return RN_OK;
}

rn_status_t rn_cli_sim_rings(rn_cli_t* cli, rn_cli_sim_t* request) {
  bool has_racks = request->mode == RN_CLI_SIM_RACKS;
  if (has_racks && request->workers % request->racks)
    return rn_cli_usage(cli, "%lld workers do not fill %lld racks evenly",
                        (long long)request->workers, (long long)request->racks);
  rings_t rings = {.request = request,
                   .workers = (int)request->workers,
                   .bytes = (double)request->megabytes * 1e6};
  static const char* const task = "/job:worker/replica:0/task:0";
  rn_sim_options_t options = {.allocator = cli->allocator,
                              .seed = (uint64_t)request->seed,
                              .tasks = &task,
                              .task_count = 1};
  double* times = NULL;
  size_t workers = (size_t)request->workers, steps = (size_t)request->steps;
  rn_status_t status = rn_sim_create(&options, &rings.sim);
  if (rn_ok(status))
    status = rn_alloc_array(cli->allocator, workers, sizeof(double), (void**)&rings.clocks);
  if (rn_ok(status)) status = rn_alloc_array(cli->allocator, steps, sizeof(double), (void**)&times);
  if (rn_ok(status)) status = print_steps(&rings, times);
  if (times) RN_FREE_ARRAY(cli->allocator, times, steps);
  if (rings.clocks) RN_FREE_ARRAY(cli->allocator, rings.clocks, workers);
  rn_sim_destroy(rings.sim);
  return status;
}
