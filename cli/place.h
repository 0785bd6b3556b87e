// A call of `runnel place`: its devices and its measurements.
#ifndef RUNNEL_CLI_PLACE_H_
#define RUNNEL_CLI_PLACE_H_

#include "cli/run_inputs.h"
#include "session/placement.h"

typedef struct cli_place_job_t {
  rn_cli_run_t run;  // graph, feeds, fetches, targets; its session measures
  rn_arena_t arena;
  rn_auto_place_t* automatic;  // Owned: costs and traces
  int device_count;
  rn_device_t** devices;  // in the arena: names and types only
  double* speeds;
  int64_t* memory;
  int cpus;                  // of a session that could run the placement; 0: some are elsewhere
  int64_t measured_ns;       // of a step as it was; 0: not measured
  int64_t placed_ns;         // and as placed
  rn_signature_t signature;  // of the step
} cli_place_job_t;

// Reads --devices: "CPU:0,CPU:1*0.5@2G,/job:worker/task:1/device:CPU:0".
RN_MUST_USE rn_status_t rn_cli_place_devices(cli_place_job_t* job);

// Options of a session that runs the step.
void rn_cli_place_session(const cli_place_job_t* job, rn_session_options_t* out);

// Runs the initializers and the step --measure times, with and without a trace; adds the traces to
// |automatic| and sets |measured_ns|.
RN_MUST_USE rn_status_t rn_cli_place_measure(cli_place_job_t* job);

// Runs the step of |graph|, the placed one, by turns with the old one; sets both times.
RN_MUST_USE rn_status_t rn_cli_place_compare(cli_place_job_t* job, rn_graph_t* graph);

#endif  // RUNNEL_CLI_PLACE_H_
