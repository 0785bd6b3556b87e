// runnel server: one task of a cluster.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cluster.h"

const char rn_cli_server_help[] =
    "usage: runnel server [--cluster CLUSTER] [--job JOB] [--task N] [--port PORT]\n"
    "\n"
    "Runs one task of a cluster: a worker with its devices, and a master for the clients that "
    "name\n"
    "it as their target. Prints the target when it is ready. Ends in good order on SIGTERM and on\n"
    "Ctrl-C. Stock TensorFlow's clients and servers may be the other tasks.\n"
    "\n"
    "  --cluster CLUSTER  {\"ps\": [\"host:port\", ...], \"worker\": [...]}, or "
    "ps=a:1|b:2,worker=c:3,\n"
    "                     or a ClusterDef in text form, or a file with one of them;\n"
    "                     without it the environment variable TF_CONFIG\n"
    "  --job JOB          which job this is (needless where the cluster has one task)\n"
    "  --task N           which task of the job (default: that of TF_CONFIG, else 0)\n"
    "  --port PORT        listen here and not on the task's own port of the cluster\n"
    "  --threads N        threads that steps run on (default: one for each processor)\n"
    "  --cpus N           CPU devices (default 1)\n"
    "  --lease SECONDS    silence after which another task is given up (default 10)\n"
    "  --insecure         allow an address beyond this machine: whoever reaches the port can run\n"
    "                     what it likes here\n"
    "\n"
    "examples:\n"
    "  runnel server --cluster worker=localhost:2222\n"
    "  runnel server --cluster 'ps=localhost:2222,worker=localhost:2223|localhost:2224' --job ps\n"
    "  TF_CONFIG='{\"cluster\": {...}, \"task\": {\"type\": \"worker\", \"index\": 0}}' runnel "
    "server\n";

typedef struct request_t {
  rn_cli_cluster_t cluster;
  int64_t port, threads, cpus, task, lease;
  const char* job;
  bool is_insecure;
} request_t;

static rn_status_t read_arguments(rn_cli_t* cli, request_t* request) {
  static const rn_cli_option_t options[] = {
      {"--cluster", true}, {"--job", true},       {"--task", true},
      {"--port", true},    {"--threads", true},   {"--cpus", true},
      {"--lease", true},   {"--insecure", false}, {0},
  };
  bool has_cluster = false;
  for (;;) {
    int option;
    const char* value = NULL;
    RN_RETURN_IF_ERROR(rn_cli_next(cli, options, &option, &value));
    if (option == RN_CLI_END) break;
    if (option == RN_CLI_WORD) return rn_cli_usage(cli, "'%s' is too much", value);
    int64_t* numbers[] = {
        NULL,           NULL,           &request->task, &request->port, &request->threads,
        &request->cpus, &request->lease};
    if (option == 0) {
      has_cluster = true;
      RN_RETURN_IF_ERROR(rn_cli_cluster_parse(&request->cluster, cli->env, value));
    } else if (option == 1) {
      request->job = value;
    } else if (option == 7) {
      request->is_insecure = true;
    } else {
      RN_RETURN_IF_ERROR(rn_cli_number(cli, options[option].name, value, 0, numbers[option]));
    }
  }
  if (has_cluster) return RN_OK;
  const char* config = getenv("TF_CONFIG");
  if (!config) return rn_cli_usage(cli, "neither --cluster nor TF_CONFIG says what the cluster is");
  return rn_cli_prefix(rn_cli_cluster_parse_config(&request->cluster, rn_str(config)),
                       "TF_CONFIG: ");
}

static const rn_server_task_t* find_task(const request_t* request, rn_str_t job, int32_t index) {
  const rn_cli_cluster_t* cluster = &request->cluster;
  for (size_t i = 0; i < cluster->tasks.count; ++i)
    if (cluster->tasks.items[i].index == index && rn_str_eq(cluster->tasks.items[i].job, job))
      return &cluster->tasks.items[i];
  return NULL;
}

static bool is_here(rn_str_t address) {
  return rn_str_starts_with(address, RN_STR("localhost:")) ||
         rn_str_starts_with(address, RN_STR("127.")) ||
         rn_str_starts_with(address, RN_STR("[::1]:"));
}

// Which task this is, and where it listens.
static rn_status_t choose(rn_cli_t* cli, request_t* request, rn_server_options_t* out) {
  const rn_cli_cluster_t* cluster = &request->cluster;
  rn_str_t job = request->job ? rn_str(request->job) : cluster->job;
  if (!job.size && cluster->tasks.count == 1) job = cluster->tasks.items[0].job;
  if (!job.size) return rn_cli_usage(cli, "--job must say which job of the cluster this is");
  int32_t index = request->task >= 0 ? (int32_t)request->task : cluster->index;
  if (index < 0) index = 0;
  const rn_server_task_t* task = find_task(request, job, index);
  if (!task)
    return rn_invalid_argument("the cluster has no task %d of job %.*s", index, RN_STR_ARGS(job));
  if (!is_here(task->address) && !request->is_insecure)
    return rn_invalid_argument(
        "%.*s can be reached from other machines, and whoever reaches it can run what it likes "
        "here; say --insecure if that is meant",
        RN_STR_ARGS(task->address));
  *out = (rn_server_options_t){.env = cli->env,
                               .allocator = cli->allocator,
                               .tasks = cluster->tasks.items,
                               .task_count = cluster->tasks.count,
                               .job = job,
                               .index = index,
                               .threads = (int)request->threads,
                               .cpu_devices = (int)request->cpus,
                               .lease_ns = request->lease * 1000000000};
  if (request->port < 0) return RN_OK;
  return rn_arena_printf(&request->cluster.arena, &out->address, "%s:%lld",
                         is_here(task->address) ? "127.0.0.1" : "0.0.0.0",
                         (long long)request->port);
}

static rn_status_t serve(const rn_server_options_t* options) {
  // Signals come to this thread alone, when it asks for them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  rn_server_t* server = NULL;
  RN_RETURN_IF_ERROR(rn_server_create(options, &server));
  rn_status_t status = rn_server_start(server);
  if (rn_ok(status)) {
    printf("%s\n", rn_server_target(server));
    fflush(stdout);
    int signal = 0;
    while (sigwait(&signals, &signal) != 0) continue;
    fprintf(stderr, "runnel: ending after %s\n", signal == SIGTERM ? "SIGTERM" : "Ctrl-C");
  }
  rn_server_destroy(server);
  return status;
}

rn_status_t rn_cli_server(rn_cli_t* cli) {
  request_t request = {.port = -1, .task = -1};
  rn_server_options_t options;
  rn_cli_cluster_init(&request.cluster, cli->allocator);
  rn_status_t status = read_arguments(cli, &request);
  if (rn_ok(status)) status = choose(cli, &request, &options);
  if (rn_ok(status)) status = serve(&options);
  rn_cli_cluster_clear(&request.cluster);
  return status;
}
