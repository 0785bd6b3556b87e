// runnel sim: what its files share. sim.c has the command and the comparison of backup workers,
// sim_rates.c the rates of training around a fault, sim_rings.c all-reduce.
#ifndef RUNNEL_CLI_SIM_H_
#define RUNNEL_CLI_SIM_H_

#include "cli/cli.h"
#include "dist/sim/training.h"

// Every message takes the latency plus an exponentially distributed time with the mean of the
// jitter.
#define RN_CLI_SIM_LATENCY_NS 50000
#define RN_CLI_SIM_JITTER_NS 20000

typedef enum rn_cli_sim_mode_t {
  RN_CLI_SIM_SYNC,
  RN_CLI_SIM_ASYNC,
  RN_CLI_SIM_RING,   // all-reduce over one ring
  RN_CLI_SIM_RACKS,  // all-reduce within racks, then between them
} rn_cli_sim_mode_t;

typedef enum rn_cli_sim_fault_t {
  RN_CLI_SIM_CALM,
  RN_CLI_SIM_RACK,     // the last rack loses power
  RN_CLI_SIM_ROLLING,  // rack after rack is restarted
} rn_cli_sim_fault_t;

// What the command line asks for.
typedef struct rn_cli_sim_t {
  rn_cli_sim_mode_t mode;
  rn_cli_sim_fault_t fault;
  int64_t workers, servers, backups, every, steps, seed, racks;
  int64_t compute_ms, stragglers, straggle;  // the last two in percent
  int64_t megabytes, gbits, down_s;
  const char* svg;  // NULL if no picture is wanted
} rn_cli_sim_t;

// How long a worker computes; |self| is the request.
int64_t rn_cli_sim_compute_ns(void* self, rn_sim_t* sim, int worker);
void rn_cli_sim_sort(double* times, int64_t count);

// Starts a training on parameter servers. The request must outlive it.
RN_MUST_USE rn_status_t rn_cli_sim_train(rn_cli_t* cli, rn_cli_sim_t* request, int backups,
                                         rn_training_t** out);
// Prints gradients per second before, during and after the fault.
RN_MUST_USE rn_status_t rn_cli_sim_rates(rn_cli_t* cli, rn_cli_sim_t* request);
// Prints how long steps with an all-reduce take.
RN_MUST_USE rn_status_t rn_cli_sim_rings(rn_cli_t* cli, rn_cli_sim_t* request);

#endif  // RUNNEL_CLI_SIM_H_
