// runnel top: a live view of a cluster.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/cluster_view.h"
#include "cli/json.h"

// Waits for the next refresh; false on Ctrl-C.
static bool pause_for(const sigset_t* signals, int64_t seconds) {
  const struct timespec time = {.tv_sec = seconds};
  return sigtimedwait(signals, NULL, &time) < 0;
}

static rn_status_t watch(rn_cli_view_t* view, int64_t interval, bool is_once) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  bool is_terminal = isatty(STDOUT_FILENO), is_json = rn_cli_has(view->cli, "--json");
  rn_cli_view_ask(view);
  while (pause_for(&signals, interval)) {
    rn_cli_view_ask(view);
    if (is_json) {
      RN_RETURN_IF_ERROR(rn_cli_json_print_line(rn_cli_view_json(view)));
    } else {
      if (!is_once && is_terminal) fputs("\033[H\033[2J", stdout);
      rn_cli_view_print_tasks(view, stdout);
      rn_cli_view_print_pairs(view, stdout);
      rn_cli_view_print_queues(view, stdout);
      if (!is_once && !is_terminal) fputs("\n", stdout);
    }
    fflush(stdout);
    if (is_once) break;
  }
  return RN_OK;
}

static rn_status_t top(rn_cli_t* cli) {
  rn_cli_cluster_t cluster;
  rn_cli_view_t view = {0};
  rn_tls_t* tls = NULL;
  rn_cli_cluster_init(&cluster, cli->allocator);
  rn_status_t status = rn_cli_cluster_find(cli, &cluster);
  if (rn_ok(status)) status = rn_cli_tls(cli, &tls);
  if (rn_ok(status)) status = rn_cli_view_open(&view, cli, &cluster, tls);
  if (rn_ok(status))
    status = watch(&view, rn_cli_number(cli, "--interval", 1), rn_cli_has(cli, "--once"));
  rn_cli_view_close(&view);
  rn_tls_release(tls);
  rn_cli_cluster_clear(&cluster);
  return status;
}

static const rn_cli_option_t options[] = {
    RN_OPTION(FOLDER, "--dir", "DIR", "the folder of a cluster that 'runnel cluster up' started"),
    RN_OPTION(NUMBER, "--interval", "SECONDS", "time between two polls (default 1)", .least = 1),
    RN_OPTION(FLAG, "--once", NULL, "print the tables once, after one interval, and end"),
    RN_OPTION(FLAG, "--json", NULL, "print one line of JSON per interval, for programs"),
    RN_CLI_CLUSTER_OPTIONS(NULL),
    {0},
};

const rn_cli_command_t rn_cli_top_command = {
    .name = "top",
    .summary = "watch a running cluster",
    .about =
        "Shows a running cluster: per task its sessions, steps per second, outstanding calls and "
        "memory; per pair of tasks that talk to each other the bytes per second, outstanding "
        "calls, queued bytes and lease; and the elements of each queue. Ctrl-C ends it.",
    .run = top,
    .options = options,
    .examples =
        "runnel cluster up --ps 1 --workers 2 -- runnel top --once\n"
        "runnel top --cluster ps=localhost:2222,worker=localhost:2223 --once",
};
