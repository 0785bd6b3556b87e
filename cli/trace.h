// Step statistics in the format of chrome://tracing and Perfetto.
#ifndef RUNNEL_CLI_TRACE_H_
#define RUNNEL_CLI_TRACE_H_

#include "exec/step_stats.h"

// Appends the step as JSON: one row per device and thread, one bar per node.
void rn_cli_put_trace(const rn_step_stats_t* stats, rn_strbuf_t* out);

#endif  // RUNNEL_CLI_TRACE_H_
