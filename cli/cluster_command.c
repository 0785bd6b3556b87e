// runnel cluster: starts a local cluster; shows the status of any cluster; stops it.
#include <stdio.h>
#include <time.h>

#include "cli/cluster_up.h"
#include "cli/cluster_view.h"
#include "cli/json.h"

#define SAMPLE_NS 500000000

static rn_status_t show_status(rn_cli_t* cli, const rn_cli_cluster_t* cluster, rn_tls_t* tls) {
  rn_cli_view_t view;
  rn_status_t status = rn_cli_view_open(&view, cli, cluster, tls);
  if (rn_ok(status)) {
    rn_cli_view_ask(&view);
    nanosleep(&(struct timespec){.tv_nsec = SAMPLE_NS}, NULL);
    rn_cli_view_ask(&view);
    if (rn_cli_has(cli, "--json"))
      status = rn_cli_json_print(rn_cli_view_json(&view));
    else
      rn_cli_view_print_tasks(&view, stdout);
    size_t down = rn_cli_view_down(&view);
    if (rn_ok(status) && down)
      status = rn_unavailable("%zu of %zu tasks are down", down, cluster->tasks.count);
  }
  rn_cli_view_close(&view);
  return status;
}

static bool is_ps(const rn_server_task_t* task) { return rn_str_is(task->job, "ps"); }

static rn_status_t ask(rn_cli_t* cli, rn_tls_t* tls, const rn_server_task_t* task,
                       const char* method, const char* path, int* out_code, rn_strbuf_t* body) {
  rn_cli_http_t request = {.env = cli->env,
                           .allocator = cli->allocator,
                           .tls = tls,
                           .token_file = rn_cli_text(cli, "--token"),
                           .address = task->address.data,
                           .method = method,
                           .path = path,
                           .token = "stop",
                           .timeout_ns = 2000000000};
  *out_code = 0;
  return rn_cli_http(&request, out_code, body);
}

static bool is_up(rn_cli_t* cli, rn_tls_t* tls, const rn_server_task_t* task) {
  int code;
  rn_strbuf_t body;
  rn_strbuf_init(&body, cli->allocator);
  // The task answers at once, even if it is busy.
  rn_status_t status = ask(cli, tls, task, "GET", "/readyz", &code, &body);
  rn_strbuf_clear(&body);
  bool answers = rn_ok(status) && code;
  rn_status_free(status);
  return answers;
}

// Asks a task to end; |*out_is_refused| if it does not want to.
static rn_status_t ask_to_stop(rn_cli_t* cli, rn_tls_t* tls, const rn_server_task_t* task,
                               bool* out_is_refused) {
  int code;
  rn_strbuf_t body;
  rn_strbuf_init(&body, cli->allocator);
  rn_status_t status = ask(cli, tls, task, "POST", "/stop", &code, &body);
  *out_is_refused = rn_ok(status) && code != 202;
  if (*out_is_refused)
    status = rn_unavailable("%s refuses to stop: %.*s (HTTP %d)", task->address.data,
                            RN_STR_ARGS(rn_str_trim(rn_strbuf_view(&body))), code);
  rn_strbuf_clear(&body);
  return status;
}

// Asks the parameter servers, or the other tasks, to end, and waits until they have.
static rn_status_t stop_kind(rn_cli_t* cli, const rn_cli_cluster_t* cluster, rn_tls_t* tls,
                             bool of_ps, int64_t seconds, size_t* out_ended,
                             rn_status_t* out_silence) {
  int64_t deadline = cli->env->now_ns(cli->env->self) + (seconds + 4) * 1000000000;
  for (size_t i = 0; i < cluster->tasks.count; ++i) {
    const rn_server_task_t* task = &cluster->tasks.items[i];
    bool is_refused;
    if (is_ps(task) != of_ps) continue;
    rn_status_t status = ask_to_stop(cli, tls, task, &is_refused);
    if (is_refused) return status;
    if (rn_status_code(status) == RN_CODE_FAILED_PRECONDITION)
      return rn_cli_prefix(status, "%s: ", task->address.data);
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

static rn_status_t stop(rn_cli_t* cli, const rn_cli_cluster_t* cluster, rn_tls_t* tls) {
  int64_t seconds = rn_cli_number(cli, "--drain", 10);
  size_t ended = 0;
  rn_status_t silence = RN_OK;
  rn_status_t status = stop_kind(cli, cluster, tls, false, seconds, &ended, &silence);
  if (rn_ok(status)) status = stop_kind(cli, cluster, tls, true, seconds, &ended, &silence);
  if (rn_ok(status) && !ended) status = rn_unavailable("no task of the cluster answers");
  if (rn_ok(status)) printf("%zu of %zu tasks have ended\n", ended, cluster->tasks.count);
  return rn_status_join(status, silence);
}

// Parses the cluster of the arguments and calls |look| on it.
static rn_status_t look(rn_cli_t* cli,
                        rn_status_t (*look)(rn_cli_t* cli, const rn_cli_cluster_t* cluster,
                                            rn_tls_t* tls)) {
  rn_cli_cluster_t cluster;
  rn_tls_t* tls = NULL;
  rn_cli_cluster_init(&cluster, cli->allocator);
  rn_status_t status = rn_cli_cluster_find(cli, &cluster);
  if (rn_ok(status)) status = rn_cli_tls(cli, &tls);
  if (rn_ok(status)) status = look(cli, &cluster, tls);
  rn_tls_release(tls);
  rn_cli_cluster_clear(&cluster);
  return status;
}

static rn_status_t run_status(rn_cli_t* cli) { return look(cli, show_status); }
static rn_status_t run_stop(rn_cli_t* cli) { return look(cli, stop); }

static const rn_cli_verb_t verbs[] = {
    RN_VERB("up", "[-- COMMAND [ARGUMENT ...]]", rn_cli_cluster_up, TEXT,
            "starts a cluster on this machine, on free ports of the loopback interface, and runs "
            "the command with TF_CONFIG and RUNNEL_CLUSTER set to the cluster and RUNNEL_TARGET to "
            "its first worker; when the command ends, the tasks end too, and the exit status is "
            "that of the command. Without a command it stays until Ctrl-C"),
    RN_VERB("status", NULL, run_status, TEXT,
            "prints the state of every task, and fails if one is down"),
    RN_VERB("stop", NULL, run_stop, TEXT, "drains every task, parameter servers last"),
    {0},
};

static const rn_cli_option_t options[] = {
    RN_OPTION(NUMBER, "--ps", "N", "parameter servers (default 1)", .most = 1000, .verbs = "up"),
    RN_OPTION(NUMBER, "--workers", "N", "workers (default 1)", .least = 1, .most = 1000,
              .verbs = "up"),
    RN_OPTION(FOLDER, "--dir", "DIR",
              "a folder for cluster.json and the tasks' logs (default: one that is removed on "
              "success); for status and stop: the folder of the cluster"),
    RN_OPTION(NUMBER, "--threads", "N", "threads per task for steps (default: one per processor)",
              .verbs = "up"),
    RN_OPTION(NUMBER, "--gpus", "N",
              "at most this many GPUs per worker, 0: none (default: all); parameter servers have "
              "none",
              .verbs = "up"),
    RN_OPTION(NUMBER, "--lease", "SECONDS",
              "how long another task may be silent before it counts as lost (default 10)",
              .verbs = "up"),
    RN_OPTION(NUMBER, "--drain", "SECONDS",
              "how long running steps may take at the end (default 10)", .verbs = "up stop"),
    RN_OPTION(FLAG, "--tls", NULL,
              "use TLS, with certificates for the tasks and the command in DIR/certs",
              .verbs = "up"),
    RN_OPTION(FLAG, "--restart", NULL,
              "restart tasks that end by themselves, but not those that were stopped",
              .verbs = "up"),
    RN_CLI_JSON_OPTION("status"),
    RN_CLI_CLUSTER_OPTIONS("status stop"),
    {0},
};

const rn_cli_command_t rn_cli_cluster_command = {
    .name = "cluster",
    .summary = "start a local cluster; show or stop a cluster",
    .about = "Starts a local cluster, shows the state of any cluster, and stops it.",
    .verbs = verbs,
    .options = options,
    .examples =
        "runnel cluster up --ps 2 --workers 3 -- build/release/examples/cluster/digits\n"
        "runnel cluster up --ps 1 --workers 2 --dir cluster &\n"
        "runnel cluster status --dir cluster\n"
        "runnel cluster stop --dir cluster",
};
