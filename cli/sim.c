// runnel sim: training on a simulated cluster. Here: the command, and what backup workers gain.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/sim.h"

#define SECOND_NS INT64_C(1000000000)
#define HOUR_NS (3600 * SECOND_NS)
#define WARM_UP 3  // updates that are not counted, while sessions open and graphs are registered

// The result of a run, in seconds.
typedef struct sim_result_t {
  int backups;
  double median, low, high, mean;
  int64_t messages;
} sim_result_t;

int64_t rn_cli_sim_compute_ns(void* self, rn_sim_t* sim, int worker) {
  (void)worker;
  const rn_cli_sim_t* request = self;
  double ns = (double)request->compute_ms * 1e6 * exp(0.08 * rn_sim_normal(sim));
  bool straggles = rn_sim_uniform(sim) * 100 < (double)request->stragglers;
  double by = rn_sim_exponential(sim) * (double)request->straggle / 100;
  return (int64_t)(straggles ? ns * (1 + by) : ns);
}

static int compare(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

void rn_cli_sim_sort(double* times, int64_t count) {
  qsort(times, (size_t)count, sizeof *times, compare);
}

static rn_status_t summarise(rn_cli_t* cli, const rn_training_t* training, int64_t steps,
                             sim_result_t* out) {
  double* times = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_array(cli->allocator, (size_t)steps, sizeof *times, (void**)&times));
  for (int64_t i = 0; i < steps; ++i) {
    times[i] = (double)(rn_training_update_ns(training, WARM_UP + i) -
                        rn_training_update_ns(training, WARM_UP + i - 1)) *
               1e-9;
    out->mean += times[i] / (double)steps;
  }
  rn_cli_sim_sort(times, steps);
  out->median = times[steps / 2];
  out->low = times[steps / 10];
  out->high = times[steps - 1 - steps / 10];
  RN_FREE_ARRAY(cli->allocator, times, steps);
  return RN_OK;
}

rn_status_t rn_cli_sim_train(rn_cli_t* cli, rn_cli_sim_t* request, int backups,
                             rn_training_t** out) {
  int workers = (int)request->workers + backups;
  bool is_calm = request->fault == RN_CLI_SIM_CALM;
  rn_training_options_t options = {
      .allocator = cli->allocator,
      .seed = (uint64_t)request->seed * 1000 + (uint64_t)backups,
      .servers = (int)request->servers,
      .workers = workers,
      .is_sync = request->mode == RN_CLI_SIM_SYNC,
      .needed = (int)request->workers,
      .trusts = true,
      .lease_ns = is_calm ? HOUR_NS : 0,
      // With faults, the chief issues the tokens of dead workers anew after this time.
      .wait_ns = is_calm ? HOUR_NS : 30 * SECOND_NS + 10 * request->compute_ms * 1000000,
      .net = {.latency_ns = RN_CLI_SIM_LATENCY_NS,
              .jitter_ns = RN_CLI_SIM_JITTER_NS,
              .bytes_per_ns = (double)request->gbits / 8},
      .compute_ns = rn_cli_sim_compute_ns,
      .compute_self = request};
  // Each number of the simulated graph represents its share of the model.
  double there = (double)rn_training_length(&options) * 4 * (double)request->servers;
  options.net.bytes_of_each = (double)request->megabytes * 1e6 / there;
  return rn_training_create(&options, out);
}

static rn_status_t simulate(rn_cli_t* cli, rn_cli_sim_t* request, int backups,
                            rn_cli_progress_t* progress, sim_result_t* out) {
  *out = (sim_result_t){.backups = backups};
  rn_training_t* training = NULL;
  RN_RETURN_IF_ERROR(rn_cli_sim_train(cli, request, backups, &training));
  rn_sim_t* sim = rn_training_sim(training);
  int64_t wanted = request->steps + WARM_UP;
  int64_t until = rn_sim_now(sim) + wanted * INT64_C(1000000000000);
  while (rn_training_stats(training).updates < wanted && rn_sim_now(sim) < until) {
    rn_sim_run(sim, rn_sim_now(sim) + INT64_C(1000000000));
    rn_cli_progress_set(progress,
                        backups / request->every * wanted + rn_training_stats(training).updates);
  }
  rn_cli_progress_end(progress);
  rn_status_t status = RN_OK;
  if (rn_training_fault(training)[0])
    status = rn_internal("%s", rn_training_fault(training));
  else if (rn_training_stats(training).updates < wanted)
    status = rn_internal("The training stopped");
  if (rn_ok(status)) status = summarise(cli, training, request->steps, out);
  out->messages = rn_sim_messages(sim);
  rn_training_destroy(training);
  return status;
}

static void print_row(const rn_cli_sim_t* request, const sim_result_t* result,
                      const sim_result_t* without) {
  double workers = (double)request->workers;
  double gain = without->median / result->median;
  int bar = (int)(result->median / without->median * 30 + 0.5);
  printf("%7d  %7.3f  %7.3f  %7.3f  %7.3f  %8.3f  ", result->backups, result->median, result->low,
         result->high, result->mean, gain * workers / (workers + result->backups));
  for (int i = 0; i < bar && i < 60; ++i) fputs("█", stdout);
  putchar('\n');
  fflush(stdout);
}

// The picture: the median with a band from the 10th to the 90th percentile, and the speed-up per
// machine used.

enum { LEFT = 70, TOP = 50, WIDTH = 520, HEIGHT = 260 };

static double x_of(const sim_result_t* results, size_t count, size_t i) {
  (void)results;
  return LEFT + (count > 1 ? (double)i * WIDTH / (double)(count - 1) : WIDTH / 2.0);
}
static double y_of(double value, double most) { return TOP + HEIGHT - value / most * HEIGHT; }

// A round distance between grid lines that gives four or a few more lines up to |most|.
static double round_step(double most) {
  double step = pow(10, floor(log10(most / 4)));
  if (most / step > 20) return step * 5;
  return most / step > 8 ? step * 2 : step;
}

static void draw_axes(FILE* file, const rn_cli_sim_t* request, const sim_result_t* results,
                      size_t count, double most) {
  fprintf(
      file,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 680 410\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"680\" height=\"410\" fill=\"white\"/>\n"
      "<text x=\"%d\" y=\"24\" font-size=\"15\">Step time against backup workers: %lld workers, "
      "%lld parameter servers</text>\n"
      "<text x=\"%d\" y=\"42\" fill=\"#666\">simulated; %lld %% of steps straggle</text>\n",
      LEFT, (long long)request->workers, (long long)request->servers, LEFT,
      (long long)request->stragglers);
  double step = round_step(most);
  for (double value = 0; value <= most; value += step) {
    double y = y_of(value, most);
    fprintf(file,
            "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>"
            "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
            LEFT, y, LEFT + WIDTH, LEFT - 8, y + 4, value);
  }
  for (size_t i = 0; i < count; ++i)
    fprintf(file, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
            x_of(results, count, i), TOP + HEIGHT + 20, results[i].backups);
  fprintf(file,
          "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">backup workers</text>\n"
          "<text x=\"18\" y=\"%d\" transform=\"rotate(-90 18 %d)\" "
          "text-anchor=\"middle\">seconds</text>\n",
          LEFT + WIDTH / 2, TOP + HEIGHT + 44, TOP + HEIGHT / 2, TOP + HEIGHT / 2);
}

static rn_status_t draw(const rn_cli_sim_t* request, const sim_result_t* results, size_t count) {
  FILE* file = fopen(request->svg, "w");
  if (!file) return rn_not_found("cannot write '%s'", request->svg);
  double most = 0, workers = (double)request->workers;
  for (size_t i = 0; i < count; ++i) most = fmax(most, results[i].high * 1.05);
  draw_axes(file, request, results, count, most);
  fputs("<path fill=\"#4a7\" fill-opacity=\"0.2\" d=\"M", file);
  for (size_t i = 0; i < count; ++i)
    fprintf(file, "%.1f %.1f ", x_of(results, count, i), y_of(results[i].high, most));
  for (size_t i = count; i-- > 0;)
    fprintf(file, "%.1f %.1f ", x_of(results, count, i), y_of(results[i].low, most));
  fputs("z\"/>\n<path fill=\"none\" stroke=\"#285\" stroke-width=\"2\" d=\"M", file);
  for (size_t i = 0; i < count; ++i)
    fprintf(file, "%.1f %.1f ", x_of(results, count, i), y_of(results[i].median, most));
  fputs("\"/>\n", file);
  for (size_t i = 0; i < count; ++i) {
    double x = x_of(results, count, i), y = y_of(results[i].median, most);
    double gain = results[0].median / results[i].median * workers / (workers + results[i].backups);
    fprintf(file,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"#285\"/>"
            "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.2f</text>"
            "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#a40\">%.3f</text>\n",
            x, y, x, y + 18, results[i].median, x, TOP + HEIGHT + 70, gain);
  }
  fprintf(
      file,
      "<text x=\"%d\" y=\"%d\" fill=\"#a40\">normalized speed-up: against no backup workers, per "
      "worker</text>\n</svg>\n",
      LEFT, TOP + HEIGHT + 86);
  bool is_ok = !ferror(file);
  return fclose(file) == 0 && is_ok ? RN_OK : rn_data_loss("'%s' was not written", request->svg);
}

static rn_status_t compare_backups(rn_cli_t* cli, rn_cli_sim_t* request) {
  size_t count = (size_t)(request->backups / request->every) + 1;
  sim_result_t* results = NULL;
  RN_RETURN_IF_ERROR(rn_alloc_array(cli->allocator, count, sizeof *results, (void**)&results));
  printf(
      "seconds per step over %lld steps\n"
      "backups   median     10 %%     90 %%     mean  speed-up\n",
      (long long)request->steps);
  rn_status_t status = RN_OK;
  rn_cli_progress_t progress =
      rn_cli_progress(cli, "updates", (int64_t)count * (request->steps + WARM_UP));
  for (size_t i = 0; i < count && rn_ok(status); ++i) {
    status = simulate(cli, request, (int)((int64_t)i * request->every), &progress, &results[i]);
    if (rn_ok(status)) print_row(request, &results[i], &results[0]);
  }
  if (rn_ok(status) && request->svg) status = draw(request, results, count);
  RN_FREE_ARRAY(cli->allocator, results, count);
  return status;
}

// The position of the value of |option| among its |choices|; 0 if it was not given.
static int choice(const rn_cli_t* cli, const char* option, const char* const* choices) {
  const char* value = rn_cli_text(cli, option);
  for (int i = 0; value && choices[i]; ++i)
    if (!strcmp(value, choices[i])) return i;
  return 0;
}

static rn_status_t sim(rn_cli_t* cli) {
  static const char* const modes[] = {"sync", "async", "ring", "racks", NULL};
  static const char* const faults[] = {"none", "rack", "rolling", NULL};
  rn_cli_sim_t request = {.workers = rn_cli_number(cli, "--workers", 100),
                          .servers = rn_cli_number(cli, "--ps", 16),
                          .every = rn_cli_number(cli, "--every", 1),
                          .steps = rn_cli_number(cli, "--steps", 30),
                          .seed = rn_cli_number(cli, "--seed", 1),
                          .compute_ms = rn_cli_number(cli, "--compute", 2000),
                          .stragglers = rn_cli_number(cli, "--stragglers", 2),
                          .straggle = rn_cli_number(cli, "--straggle", 100),
                          .megabytes = rn_cli_number(cli, "--megabytes", 96),
                          .gbits = rn_cli_number(cli, "--gbits", 10),
                          .racks = rn_cli_number(cli, "--racks", 10),
                          .down_s = rn_cli_number(cli, "--down", 60),
                          .mode = (rn_cli_sim_mode_t)choice(cli, "--mode", modes),
                          .fault = (rn_cli_sim_fault_t)choice(cli, "--fault", faults),
                          .svg = rn_cli_text(cli, "--svg")};
  bool is_table = request.mode == RN_CLI_SIM_SYNC && request.fault == RN_CLI_SIM_CALM;
  bool has_servers = request.mode <= RN_CLI_SIM_ASYNC;
  request.backups = rn_cli_number(cli, "--backups", is_table ? 6 : 0);
  if (request.svg && !is_table)
    return rn_cli_usage(cli, "--svg draws backup workers: without --fault, with --mode sync");
  if (request.fault != RN_CLI_SIM_CALM && !has_servers)
    return rn_cli_usage(cli, "--fault needs --mode sync or async");
  if (request.backups && request.mode != RN_CLI_SIM_SYNC)
    return rn_cli_usage(cli, "only --mode sync has backup workers");
  bool has_racks = request.mode == RN_CLI_SIM_RACKS || request.fault != RN_CLI_SIM_CALM;
  if (has_racks && request.racks > request.workers)
    return rn_cli_usage(cli, "%lld racks are too many for %lld workers", (long long)request.racks,
                        (long long)request.workers);
  printf("%lld workers, ", (long long)request.workers);
  if (has_servers) printf("%lld parameter servers, ", (long long)request.servers);
  printf("%lld MB, %lld Gbit/s; ", (long long)request.megabytes, (long long)request.gbits);
  if (is_table) return compare_backups(cli, &request);
  return has_servers ? rn_cli_sim_rates(cli, &request) : rn_cli_sim_rings(cli, &request);
}

static const rn_cli_option_t options[] = {
    RN_OPTION(NUMBER, "--workers", "N", "gradients per update (default 100)", .least = 1,
              .most = 1000),
    RN_OPTION(NUMBER, "--ps", "N", "parameter servers (default 16)", .least = 1, .most = 1000),
    RN_OPTION(CHOICE, "--mode", "MODE",
              "sync (the default), async, ring or racks: how gradients meet",
              .choices = "sync async ring racks"),
    RN_OPTION(NUMBER, "--backups", "N",
              "largest number of backup workers (default 6; with --fault their number, default 0)",
              .most = 100),
    RN_OPTION(NUMBER, "--every", "N", "try only every Nth number of backup workers (default 1)",
              .least = 1),
    RN_OPTION(NUMBER, "--racks", "N", "racks that the workers stand in (default 10)", .least = 1,
              .most = 1000),
    RN_OPTION(CHOICE, "--fault", "KIND",
              "none (the default), rack (one loses power) or rolling (all restart in turn)",
              .choices = "none rack rolling"),
    RN_OPTION(NUMBER, "--down", "SECONDS", "how long a rack is down (default 60)", .least = 1,
              .most = 3600),
    RN_OPTION(NUMBER, "--steps", "N", "updates per run (default 30)", .least = 3),
    RN_OPTION(NUMBER, "--seed", "N", "seed of the random numbers (default 1)"),
    RN_OPTION(NUMBER, "--compute", "MS",
              "median time of a worker's step, in milliseconds (default 2000)", .least = 1),
    RN_OPTION(NUMBER, "--stragglers", "PERCENT", "steps that straggle (default 2)"),
    RN_OPTION(NUMBER, "--straggle", "PERCENT", "mean of E (default 100)"),
    RN_OPTION(NUMBER, "--megabytes", "N", "size of the model (default 96)", .least = 1),
    RN_OPTION(NUMBER, "--gbits", "N",
              "bandwidth of each task in each direction, in Gbit/s (default 10)", .least = 1),
    RN_OPTION(FILE, "--svg", "FILE", "plot step time against backup workers"),
    {0},
};

const rn_cli_command_t rn_cli_sim_command = {
    .name = "sim",
    .summary = "train on a simulated cluster, with backup workers or faults",
    .about =
        "Trains synchronously on a simulated cluster, with 0, 1, 2 ... backup workers: an update "
        "uses the first --workers gradients that arrive and drops later ones. Masters, workers, "
        "rendezvous, accumulators and queues are the real ones, on a simulated clock and network, "
        "in one thread: the same seed gives the same run.\n\nA worker computes for --compute "
        "milliseconds times exp(0.08 N), with N from the standard normal distribution; "
        "--stragglers percent of its steps take 1 + E times as long, with E exponential of mean "
        "--straggle.\n\nWith --mode async or --fault it prints gradients per second instead: "
        "before the "
        "fault, while racks are down, and afterwards. The modes ring and racks have no parameter "
        "servers and run no real code: they follow the messages of an all-reduce over one ring, "
        "or over a ring in each rack and rings between the racks, from clock to clock.",
    .run = sim,
    .options = options,
    .examples =
        "runnel sim --workers 10 --ps 2 --backups 2 --steps 10\n"
        "runnel sim --workers 50 --ps 17 --backups 5 --svg backups.svg\n"
        "runnel sim --workers 40 --ps 4 --mode async --fault rack --steps 5\n"
        "runnel sim --workers 1000 --mode racks --racks 40",
};
