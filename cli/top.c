// runnel top: a cluster as it runs.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/cluster_view.h"

const char rn_cli_top_help[] =
    "usage: runnel top [--cluster CLUSTER | --dir DIR] [--interval SECONDS] [--once]\n"
    "\n"
    "Shows a live cluster: for each task its sessions, steps a second, calls under way and "
    "memory;\n"
    "for each pair of tasks that talk, bytes a second, calls and bytes that wait, and the lease;\n"
    "and the elements of each queue.\n"
    "Ctrl-C ends it.\n"
    "\n"
    "  --cluster CLUSTER  as 'runnel server' takes it (default: RUNNEL_CLUSTER, then TF_CONFIG)\n"
    "  --dir DIR          of a cluster that 'runnel cluster up' has started\n"
    "  --interval SECONDS between two looks (default 1)\n"
    "  --once             print the tables once, after one interval, and end\n"
    "  --tls-cert FILE    the certificate to show, with its key and the authority\n"
    "  --tls-key FILE     (default: RUNNEL_TLS_CERT, RUNNEL_TLS_KEY, RUNNEL_TLS_CA)\n"
    "  --tls-ca FILE\n"
    "\n"
    "examples:\n"
    "  runnel top --cluster ps=localhost:2222,worker=localhost:2223\n"
    "  runnel top --dir /tmp/cluster --once\n";

// Until the next look, or Ctrl-C: then false.
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
  bool is_terminal = isatty(STDOUT_FILENO);
  rn_cli_view_ask(view);
  while (pause_for(&signals, interval)) {
    rn_cli_view_ask(view);
    if (!is_once && is_terminal) fputs("\033[H\033[2J", stdout);
    rn_cli_view_print_tasks(view, stdout);
    rn_cli_view_print_pairs(view, stdout);
    rn_cli_view_print_queues(view, stdout);
    if (!is_once && !is_terminal) fputs("\n", stdout);
    fflush(stdout);
    if (is_once) break;
  }
  return RN_OK;
}

rn_status_t rn_cli_top(rn_cli_t* cli) {
  static const rn_cli_option_t options[] = {
      {"--cluster", true}, {"--dir", true},      {"--tls-cert", true}, {"--tls-key", true},
      {"--tls-ca", true},  {"--interval", true}, {"--once", false},    {0}};
  const char* texts[5] = {0};
  int64_t interval = 1;
  bool is_once = false;
  for (int option = 0; option != RN_CLI_END;) {
    const char* value;
    RN_RETURN_IF_ERROR(rn_cli_next(cli, options, &option, &value));
    if (option == RN_CLI_WORD) return rn_cli_usage(cli, "'%s' is too much", value);
    if (option == 5) RN_RETURN_IF_ERROR(rn_cli_number(cli, "--interval", value, 1, &interval));
    if (option == 6) is_once = true;
    if (option >= 0 && option < 5) texts[option] = value;
  }
  rn_cli_cluster_t cluster;
  rn_cli_view_t view = {0};
  rn_tls_t* tls = NULL;
  rn_cli_cluster_init(&cluster, cli->allocator);
  rn_status_t status = rn_cli_cluster_find(cli, &cluster, texts[0], texts[1]);
  if (rn_ok(status)) status = rn_cli_tls(cli, texts[2], texts[3], texts[4], &tls);
  if (rn_ok(status)) status = rn_cli_view_open(&view, cli, &cluster, tls);
  if (rn_ok(status)) status = watch(&view, interval, is_once);
  rn_cli_view_close(&view);
  rn_tls_release(tls);
  rn_cli_cluster_clear(&cluster);
  return status;
}
