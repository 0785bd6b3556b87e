// runnel cluster: a local cluster to try things with; looking at any, and ending it.
#include <stdio.h>
#include <time.h>

#include "cli/cluster_up.h"
#include "cli/cluster_view.h"

const char rn_cli_cluster_help[] =
    "usage: runnel cluster up [--ps N] [--workers N] [--dir DIR] [-- COMMAND [ARGUMENT ...]]\n"
    "       runnel cluster status [--cluster CLUSTER | --dir DIR]\n"
    "       runnel cluster stop [--cluster CLUSTER | --dir DIR]\n"
    "\n"
    "up starts a cluster on this machine, on free ports of the loopback interface, and runs the\n"
    "command with TF_CONFIG and RUNNEL_CLUSTER set to the cluster and RUNNEL_TARGET to its first\n"
    "worker; when the command ends the tasks end, and its exit status is that of the command.\n"
    "Without a command it stays until Ctrl-C. status asks every task of a cluster how it is, and\n"
    "fails if one is down. stop ends every task in good order, parameter servers last.\n"
    "\n"
    "  --ps N             parameter servers (default 1)\n"
    "  --workers N        workers (default 1)\n"
    "  --dir DIR          a folder for cluster.json and the tasks' logs (default: one that goes\n"
    "                     when all went well); of status and stop: the cluster that has it\n"
    "  --threads N        threads of each task that steps run on (default: one for each "
    "processor)\n"
    "  --lease SECONDS    silence after which another task is given up (default 10)\n"
    "  --drain SECONDS    how long running steps may take at the end (default 10)\n"
    "  --tls              with certificates, made in DIR/certs, for the tasks and the command\n"
    "  --cluster CLUSTER  as 'runnel server' takes it (default: RUNNEL_CLUSTER, then TF_CONFIG)\n"
    "  --tls-cert FILE    the certificate to show, with its key and the authority\n"
    "  --tls-key FILE     (default: RUNNEL_TLS_CERT, RUNNEL_TLS_KEY, RUNNEL_TLS_CA)\n"
    "  --tls-ca FILE\n"
    "\n"
    "examples:\n"
    "  runnel cluster up --ps 2 --workers 4 -- python3 train.py\n"
    "  runnel cluster up --ps 1 --workers 2 --dir /tmp/c &\n"
    "  runnel cluster status --dir /tmp/c\n"
    "  runnel cluster stop --cluster cluster.json\n";

#define SAMPLE_NS 500000000

static rn_status_t show_status(rn_cli_t* cli, const rn_cli_cluster_t* cluster, rn_tls_t* tls) {
  rn_cli_view_t view;
  rn_status_t status = rn_cli_view_open(&view, cli, cluster, tls);
  if (rn_ok(status)) {
    rn_cli_view_ask(&view);
    nanosleep(&(struct timespec){.tv_nsec = SAMPLE_NS}, NULL);
    rn_cli_view_ask(&view);
    rn_cli_view_print_tasks(&view, stdout);
    size_t down = rn_cli_view_down(&view);
    if (down) status = rn_unavailable("%zu of %zu tasks are down", down, cluster->tasks.count);
  }
  rn_cli_view_close(&view);
  return status;
}

static bool is_ps(const rn_server_task_t* task) { return rn_str_is(task->job, "ps"); }

static rn_status_t ask(rn_cli_t* cli, rn_tls_t* tls, const rn_server_task_t* task,
                       const char* method, const char* path, int* out_code) {
  rn_strbuf_t body;
  rn_strbuf_init(&body, cli->allocator);
  rn_cli_http_t request = {.env = cli->env,
                           .allocator = cli->allocator,
                           .tls = tls,
                           .address = task->address.data,
                           .method = method,
                           .path = path,
                           .token = "stop",
                           .timeout_ns = 2000000000};
  *out_code = 0;
  rn_status_t status = rn_cli_http(&request, out_code, &body);
  rn_strbuf_clear(&body);
  return status;
}

static bool is_up(rn_cli_t* cli, rn_tls_t* tls, const rn_server_task_t* task) {
  int code;
  // Answers at once, whatever the task does.
  rn_status_t status = ask(cli, tls, task, "GET", "/readyz", &code);
  bool answers = rn_ok(status) && code;
  rn_status_free(status);
  return answers;
}

// The parameter servers, or the others: asks them to end, waits until they have.
static rn_status_t stop_kind(rn_cli_t* cli, const rn_cli_cluster_t* cluster, rn_tls_t* tls,
                             bool of_ps, int64_t seconds, size_t* out_ended,
                             rn_status_t* out_silence) {
  int64_t deadline = cli->env->now_ns(cli->env->self) + (seconds + 4) * 1000000000;
  for (size_t i = 0; i < cluster->tasks.count; ++i) {
    const rn_server_task_t* task = &cluster->tasks.items[i];
    int code;
    if (is_ps(task) != of_ps) continue;
    rn_status_t status = ask(cli, tls, task, "POST", "/stop", &code);
    if (rn_ok(status) && code != 202)
      return rn_unavailable("%s does not take orders to end (HTTP %d)", task->address.data, code);
    *out_ended += rn_ok(status);
    if (rn_status_code(status) == RN_CODE_DEADLINE_EXCEEDED)
      *out_silence = rn_status_join(*out_silence,
                                    rn_deadline_exceeded("%s does not answer", task->address.data));
    rn_status_free(status);  // it is down already
  }
  for (size_t i = 0; i < cluster->tasks.count; ++i) {
    const rn_server_task_t* task = &cluster->tasks.items[i];
    while (is_ps(task) == of_ps && is_up(cli, tls, task)) {
      if (cli->env->now_ns(cli->env->self) > deadline)
        return rn_deadline_exceeded("%s has not ended", task->address.data);
      nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
  }
  return RN_OK;
}

rn_status_t rn_cli_cluster_stop(rn_cli_t* cli, const rn_cli_cluster_t* cluster, rn_tls_t* tls,
                                int64_t seconds) {
  size_t ended = 0;
  rn_status_t silence = RN_OK;
  rn_status_t status = stop_kind(cli, cluster, tls, false, seconds, &ended, &silence);
  if (rn_ok(status)) status = stop_kind(cli, cluster, tls, true, seconds, &ended, &silence);
  if (rn_ok(status) && !ended) status = rn_unavailable("no task of the cluster answers");
  if (rn_ok(status)) printf("%zu of %zu tasks have ended\n", ended, cluster->tasks.count);
  return rn_status_join(status, silence);
}

static rn_status_t look_or_stop(rn_cli_t* cli, bool stops) {
  static const rn_cli_option_t options[] = {{"--cluster", true},
                                            {"--dir", true},
                                            {"--tls-cert", true},
                                            {"--tls-key", true},
                                            {"--tls-ca", true},
                                            {"--drain", true},
                                            {0}};
  const char* texts[5] = {0};
  int64_t seconds = 10;
  for (int option = 0; option != RN_CLI_END;) {
    const char* value;
    RN_RETURN_IF_ERROR(rn_cli_next(cli, options, &option, &value));
    if (option == RN_CLI_WORD) return rn_cli_usage(cli, "'%s' is too much", value);
    if (option == 5) RN_RETURN_IF_ERROR(rn_cli_number(cli, "--drain", value, 0, &seconds));
    if (option >= 0 && option < 5) texts[option] = value;
  }
  rn_cli_cluster_t cluster;
  rn_tls_t* tls = NULL;
  rn_cli_cluster_init(&cluster, cli->allocator);
  rn_status_t status = rn_cli_cluster_find(cli, &cluster, texts[0], texts[1]);
  if (rn_ok(status)) status = rn_cli_tls(cli, texts[2], texts[3], texts[4], &tls);
  if (rn_ok(status))
    status =
        stops ? rn_cli_cluster_stop(cli, &cluster, tls, seconds) : show_status(cli, &cluster, tls);
  rn_tls_release(tls);
  rn_cli_cluster_clear(&cluster);
  return status;
}

rn_status_t rn_cli_cluster(rn_cli_t* cli) {
  const char* verb = cli->at < cli->argc ? cli->argv[cli->at++] : "";
  if (strcmp(verb, "up") == 0) return rn_cli_cluster_up(cli);
  if (strcmp(verb, "status") == 0) return look_or_stop(cli, false);
  if (strcmp(verb, "stop") == 0) return look_or_stop(cli, true);
  return rn_cli_usage(cli, "say up, status or stop, not '%s'", verb);
}
