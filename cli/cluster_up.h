// Sub-commands of `runnel cluster` that are too long for its own file.
#ifndef RUNNEL_CLI_CLUSTER_UP_H_
#define RUNNEL_CLI_CLUSTER_UP_H_

#include "cli/cluster.h"
#include "cli/http.h"

// runnel cluster up: starts tasks on this machine, runs a command, ends them. With a command it
// ends the process with the command's exit status.
RN_MUST_USE rn_status_t rn_cli_cluster_up(rn_cli_t* cli);

#endif  // RUNNEL_CLI_CLUSTER_UP_H_
