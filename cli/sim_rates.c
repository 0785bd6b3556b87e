// runnel sim: how many gradients per second are applied before, during and after a fault.
#include <stdio.h>

#include "cli/progress.h"
#include "cli/sim.h"

#define SECOND_NS INT64_C(1000000000)
#define TICK_NS (SECOND_NS / 10)          // resolution of the pauses
#define PATIENCE_NS (100000 * SECOND_NS)  // of simulated time, for one phase

// A training with the racks that are restarted. |watch| counts what is applied.
typedef struct fault_run_t {
  rn_cli_sim_t* request;
  rn_training_t* training;
  rn_sim_t* sim;
  int workers;  // with backups
  rn_cli_progress_t progress;
  int64_t last, last_ns, longest_ns;  // applied, when that changed, the longest pause
} fault_run_t;

static int64_t applied(const fault_run_t* run) {
  int64_t updates = rn_training_stats(run->training).updates;
  return run->request->mode == RN_CLI_SIM_SYNC ? updates * run->request->workers : updates;
}

static void tick(fault_run_t* run) {
  int64_t before = rn_sim_now(run->sim);
  rn_sim_run(run->sim, before + TICK_NS);
  int64_t now = applied(run);
  if (rn_sim_now(run->sim) - run->last_ns > run->longest_ns)
    run->longest_ns = rn_sim_now(run->sim) - run->last_ns;
  if (now == run->last) return;
  run->last = now;
  run->last_ns = rn_sim_now(run->sim);
  rn_cli_progress_set(&run->progress, now);
}

// Runs until |wanted| more gradients are applied.
static rn_status_t run_gradients(fault_run_t* run, int64_t wanted) {
  int64_t until = rn_sim_now(run->sim) + PATIENCE_NS;
  wanted += applied(run);
  while (applied(run) < wanted && rn_sim_now(run->sim) < until) tick(run);
  if (rn_training_fault(run->training)[0])
    return rn_internal("%s", rn_training_fault(run->training));
  return applied(run) < wanted ? rn_internal("The training stopped") : RN_OK;
}

static void run_seconds(fault_run_t* run, int64_t seconds) {
  int64_t until = rn_sim_now(run->sim) + seconds * SECOND_NS;
  while (rn_sim_now(run->sim) < until) tick(run);
}

// Runs a function for the task and the client of every worker in |rack|.
static rn_status_t each_machine(fault_run_t* run, int rack,
                                rn_status_t (*fn)(fault_run_t* run, int node)) {
  int racks = (int)run->request->racks, servers = (int)run->request->servers;
  int first = (int)((int64_t)run->workers * rack / racks);
  int end = (int)((int64_t)run->workers * (rack + 1) / racks);
  for (int w = first; w < end; ++w) {
    RN_RETURN_IF_ERROR(fn(run, servers + w));
    RN_RETURN_IF_ERROR(fn(run, servers + run->workers + w));
  }
  return RN_OK;
}

static rn_status_t stop(fault_run_t* run, int node) {
  // A machine that loses power just falls silent; one that is upgraded closes its connections.
  rn_training_crash(run->training, node, run->request->fault == RN_CLI_SIM_RACK);
  return RN_OK;
}

static rn_status_t start(fault_run_t* run, int node) {
  RN_RETURN_IF_ERROR(rn_sim_start(run->sim, node));
  rn_training_restarted(run->training, node);
  return RN_OK;
}

static rn_status_t restart(fault_run_t* run, int rack) {
  RN_RETURN_IF_ERROR(each_machine(run, rack, stop));
  run_seconds(run, run->request->down_s);
  return each_machine(run, rack, start);
}

static rn_status_t inflict(fault_run_t* run) {
  // The last rack first: the first one has the chief's master.
  int last = run->request->fault == RN_CLI_SIM_ROLLING ? 0 : (int)run->request->racks - 1;
  for (int rack = (int)run->request->racks - 1; rack >= last; --rack)
    RN_RETURN_IF_ERROR(restart(run, rack));
  return RN_OK;
}

// Runs one phase and prints its rate.
static rn_status_t print_phase(fault_run_t* run, const char* name, bool is_fault) {
  int64_t count = applied(run), since = rn_sim_now(run->sim);
  run->longest_ns = 0;
  run->last_ns = since;
  RN_RETURN_IF_ERROR(is_fault ? inflict(run)
                              : run_gradients(run, run->request->steps * run->request->workers));
  rn_cli_progress_end(&run->progress);
  double seconds = (double)(rn_sim_now(run->sim) - since) * 1e-9;
  printf("%-8s  %9.1f  %13.1f  %13.1f\n", name, seconds, (double)(applied(run) - count) / seconds,
         (double)run->longest_ns * 1e-9);
  fflush(stdout);
  return RN_OK;
}

static rn_status_t run_phases(fault_run_t* run) {
  // Until every worker has trained, sessions open and graphs are registered.
  int64_t until = rn_sim_now(run->sim) + PATIENCE_NS;
  while (rn_training_stats(run->training).least < 1 && rn_sim_now(run->sim) < until) tick(run);
  RN_RETURN_IF_ERROR(run_gradients(run, run->request->workers));
  bool has_fault = run->request->fault != RN_CLI_SIM_CALM;
  RN_RETURN_IF_ERROR(print_phase(run, has_fault ? "before" : "all", false));
  if (!has_fault) return RN_OK;
  RN_RETURN_IF_ERROR(print_phase(run, "during", true));
  return print_phase(run, "after", false);
}

rn_status_t rn_cli_sim_rates(rn_cli_t* cli, rn_cli_sim_t* request) {
  printf("%s\nphase       seconds  gradients / s  longest pause\n",
         request->mode == RN_CLI_SIM_SYNC ? "synchronous" : "asynchronous");
  fault_run_t run = {.request = request, .workers = (int)(request->workers + request->backups)};
  bool has_fault = request->fault != RN_CLI_SIM_CALM;
  run.progress = rn_cli_progress(cli, "gradients",
                                 request->workers * (1 + request->steps * (has_fault ? 2 : 1)));
  RN_RETURN_IF_ERROR(rn_cli_sim_train(cli, request, (int)request->backups, &run.training));
  run.sim = rn_training_sim(run.training);
  rn_status_t status = run_phases(&run);
  rn_cli_progress_end(&run.progress);
  rn_training_destroy(run.training);
  return status;
}
