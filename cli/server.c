// runnel server: runs one task of a cluster.
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/machine.h"
#include "cli/audit.h"
#include "cli/cluster.h"
#include "cli/http.h"
#include "cli/log.h"
#include "cli/renewal.h"
#include "kernels/cpu/data_flow/queue.h"
#include "net/token.h"

typedef struct server_request_t {
  rn_cli_cluster_t cluster;
  rn_env_t env;            // the system's, with a log
  rn_tls_options_t files;  // of the certificates; empty: none
  uint64_t stamp;          // of these files, when they were last read
  rn_tls_t* tls;
  rn_tokens_t* tokens;
  const char* token_file;  // where the tokens came from; NULL for the environment
  rn_cli_audit_t* audit;   // NULL: none
} server_request_t;

static rn_status_t find_cluster(rn_cli_t* cli, server_request_t* request) {
  const char *text = rn_cli_text(cli, "--cluster"), *jobs = rn_cli_text(cli, "--jobs"),
             *hosts = rn_cli_text(cli, "--hosts");
  bool is_slurm = text && strcmp(text, "slurm") == 0, is_mpi = text && strcmp(text, "mpi") == 0;
  if (is_slurm || is_mpi) {
    rn_cli_launch_t launch = {
        .jobs = jobs, .hosts = hosts, .port_base = (int)rn_cli_number(cli, "--port-base", 0)};
    rn_status_t status = is_slurm ? rn_cli_cluster_of_slurm(&request->cluster, &launch)
                                  : rn_cli_cluster_of_mpi(&request->cluster, cli->env, &launch);
    return rn_cli_prefix(status, "%s: ", text);
  }
  if (jobs || hosts) return rn_cli_usage(cli, "--jobs and --hosts go with --cluster slurm or mpi");
  if (text) return rn_cli_cluster_parse(&request->cluster, cli->env, text);
  const char* config = getenv("TF_CONFIG");
  if (!config) return rn_cli_usage(cli, "no cluster is given: use --cluster or TF_CONFIG");
  return rn_cli_prefix(rn_cli_cluster_parse_config(&request->cluster, rn_str(config)),
                       "TF_CONFIG: ");
}

static const rn_server_task_t* find_task(const server_request_t* request, rn_str_t job,
                                         int64_t index) {
  const rn_cli_cluster_t* cluster = &request->cluster;
  for (size_t i = 0; i < cluster->tasks.count; ++i)
    if (cluster->tasks.items[i].index == index && rn_str_eq(cluster->tasks.items[i].job, job))
      return &cluster->tasks.items[i];
  return NULL;
}

static rn_status_t no_task(const server_request_t* request, rn_str_t job, int64_t index) {
  const rn_cli_cluster_t* cluster = &request->cluster;
  int count = 0;
  for (size_t i = 0; i < cluster->tasks.count; ++i)
    if (rn_str_eq(cluster->tasks.items[i].job, job)) ++count;
  if (!count) {
    rn_status_t status =
        rn_invalid_argument("the cluster has no job %.*s; its jobs are", RN_STR_ARGS(job));
    for (size_t i = 0; i < cluster->tasks.count; ++i)
      if (i == 0 || !rn_str_eq(cluster->tasks.items[i].job, cluster->tasks.items[i - 1].job))
        status = rn_status_annotate(status, "%s %.*s", i ? "," : "",
                                    RN_STR_ARGS(cluster->tasks.items[i].job));
    return status;
  }
  return rn_invalid_argument("the cluster has no task %lld of job %.*s, which has %d",
                             (long long)index, RN_STR_ARGS(job), count);
}

static bool is_here(rn_str_t address) {
  return rn_str_starts_with(address, RN_STR("localhost:")) ||
         rn_str_starts_with(address, RN_STR("127.")) ||
         rn_str_starts_with(address, RN_STR("[::1]:"));
}

// The name of the task that answers at |address|, or "".
static void ask_name(const server_request_t* request, rn_allocator_t allocator, const char* address,
                     char* out, size_t room) {
  rn_strbuf_t body;
  rn_strbuf_init(&body, allocator);
  int code = 0;
  rn_cli_http_t ask = {.env = &request->env,
                       .allocator = allocator,
                       .tls = request->tls,
                       .token_file = request->token_file,
                       .address = address,
                       .method = "GET",
                       .path = "/statusz?format=json",
                       .timeout_ns = 2000000000};
  rn_status_t status = rn_cli_http(&ask, &code, &body);
  json_t* root = rn_ok(status) && code == 200 ? json_loadb(body.data, body.size, 0, NULL) : NULL;
  const char* name = json_string_value(json_object_get(root, "task"));
  snprintf(out, room, "%s", name ? name : "");
  json_decref(root);
  rn_status_free(status);
  rn_strbuf_clear(&body);
}

// Whether the tasks of a job are numbered from 0 without gaps.
static bool is_list(const rn_cli_cluster_t* cluster, rn_str_t job) {
  int32_t next = 0;
  for (size_t i = 0; i < cluster->tasks.count; ++i)
    if (rn_str_eq(cluster->tasks.items[i].job, job) && cluster->tasks.items[i].index != next++)
      return false;
  return true;
}

// The cluster in the JSON form of TF_CONFIG and --cluster: lists, or objects with indices if tasks
// are left out.
static void show_json(const rn_cli_cluster_t* cluster) {
  json_t* jobs = json_object();
  bool ok = jobs != NULL;
  for (size_t i = 0; ok && i < cluster->tasks.count; ++i) {
    const rn_server_task_t* task = &cluster->tasks.items[i];
    json_t* tasks = json_object_get(jobs, task->job.data);
    bool lists = is_list(cluster, task->job);
    char key[16];
    snprintf(key, sizeof key, "%d", task->index);
    if (!tasks) {
      tasks = lists ? json_array() : json_object();
      ok = json_object_set_new(jobs, task->job.data, tasks) == 0;
    }
    json_t* address = json_string(task->address.data);
    ok = ok && (lists ? json_array_append_new(tasks, address)
                      : json_object_set_new(tasks, key, address)) == 0;
  }
  char* text = ok ? json_dumps(jobs, 0) : NULL;
  if (text) printf("%s\n", text);
  free(text);
  json_decref(jobs);
}

static rn_status_t show(const server_request_t* request, const rn_server_task_t* own) {
  const rn_cli_cluster_t* cluster = &request->cluster;
  for (size_t i = 0; i < cluster->tasks.count; ++i) {
    const rn_server_task_t* task = &cluster->tasks.items[i];
    printf("%s%.*s:%d %.*s\n", task == own ? "* " : "  ", RN_STR_ARGS(task->job), task->index,
           RN_STR_ARGS(task->address));
  }
  show_json(cluster);
  return RN_OK;
}

// Whether tensors travel by UCX. UCX does not encrypt them: in a cluster with certificates the
// environment alone does not ask for that.
static rn_status_t choose_wire(rn_cli_t* cli, const server_request_t* request, bool* out_is_ucx) {
  const char *option = rn_cli_text(cli, "--wire"), *said = option ? option : getenv("RUNNEL_WIRE");
  bool is_ucx = said && strcmp(said, "ucx") == 0;
  if (said && !is_ucx && strcmp(said, "grpc") != 0)
    return rn_invalid_argument("--wire is grpc or ucx, not '%s'", said);
  if (is_ucx && request->tls)
    rn_log(&request->env, RN_LOG_WARNING, "%s",
           option ? "large tensors travel by UCX, which does not encrypt them"
                  : "RUNNEL_WIRE=ucx is ignored: UCX does not encrypt tensors, and this task has "
                    "certificates; --wire ucx allows that");
  *out_is_ucx = is_ucx && (option || !request->tls);
  return RN_OK;
}

// Determines which task this is and where it listens.
static rn_status_t choose(rn_cli_t* cli, server_request_t* request, rn_server_options_t* out) {
  const rn_cli_cluster_t* cluster = &request->cluster;
  const char *said = rn_cli_text(cli, "--job"), *allow = rn_cli_text(cli, "--allow");
  rn_str_t job = said ? rn_str(said) : cluster->job;
  if (!job.size && cluster->tasks.count == 1) job = cluster->tasks.items[0].job;
  if (!job.size) return rn_cli_usage(cli, "--job must name the job of this task");
  int64_t index = rn_cli_number(cli, "--task", cluster->index);
  if (index < 0) index = 0;
  const rn_server_task_t* task = find_task(request, job, index);
  if (!task) return no_task(request, job, index);
  if (rn_cli_has(cli, "--show")) return show(request, task);
  if (!is_here(task->address) && !rn_cli_has(cli, "--insecure") && !request->tls)
    return rn_invalid_argument(
        "%.*s can be reached from other machines, and anyone who reaches it can run any graph "
        "here; give it certificates (--tls-cert and others), or allow that with --insecure",
        RN_STR_ARGS(task->address));
  const int64_t idle = rn_cli_number(cli, "--idle", -1);
  const char* collectives = rn_cli_text(cli, "--collectives");
  if (!collectives) collectives = getenv("RUNNEL_COLLECTIVES");
  bool uses_mpi = collectives && strcmp(collectives, "mpi") == 0;
  if (collectives && !uses_mpi && strcmp(collectives, "rpc") != 0)
    return rn_invalid_argument("--collectives is rpc or mpi, not '%s'", collectives);
  bool uses_ucx = false;
  RN_RETURN_IF_ERROR(choose_wire(cli, request, &uses_ucx));
  *out = (rn_server_options_t){.env = &request->env,
                               .allocator = cli->allocator,
                               .tasks = cluster->tasks.items,
                               .task_count = cluster->tasks.count,
                               .job = job,
                               .index = (int32_t)index,
                               .threads = (int)rn_cli_number(cli, "--threads", 0),
                               .cpu_devices = (int)rn_cli_number(cli, "--cpus", 0),
                               .gpu = {.max_count = (int)rn_cli_number(cli, "--gpus", -1)},
                               .lease_ns = rn_cli_number(cli, "--lease", 0) * 1000000000,
                               .session_gc_ns = rn_cli_number(cli, "--session-gc", 0) * 1000000000,
                               .lends_nothing = rn_cli_has(cli, "--no-loans"),
                               .uses_mpi = uses_mpi,
                               .uses_ucx = uses_ucx,
                               .max_message = (size_t)rn_cli_number(cli, "--max-message", 0) << 20,
                               .max_client_memory = (size_t)rn_cli_number(cli, "--max-memory", 0)
                                                    << 20,
                               .max_streams = (int)rn_cli_number(cli, "--max-streams", 0),
                               .max_sessions = (int)rn_cli_number(cli, "--max-sessions", 0),
                               .max_connections = (int)rn_cli_number(cli, "--max-connections", 0),
                               .idle_ns = idle == 0  ? -1
                                          : idle > 0 ? idle * 1000000000
                                                     : 0,
                               .tokens = request->tokens,
                               .tls = request->tls,
                               .has_operators = rn_cli_has(cli, "--operators"),
                               .is_limited = allow != NULL,
                               .allow = rn_str(allow)};
  int64_t port = rn_cli_number(cli, "--port", -1);
  if (port < 0) return RN_OK;
  char name[256], own[256];
  ask_name(request, cli->allocator, task->address.data, name, sizeof name);
  snprintf(own, sizeof own, "/job:%.*s/replica:0/task:%lld", RN_STR_ARGS(job), (long long)index);
  if (strcmp(name, own) == 0)
    return rn_invalid_argument("%s is already running at %.*s", own, RN_STR_ARGS(task->address));
  bool is_v6 = task->address.data[0] == '[', here = is_here(task->address);
  const char* place = is_v6 ? (here ? "[::1]" : "[::]") : here ? "127.0.0.1" : "0.0.0.0";
  return rn_arena_printf(&request->cluster.arena, &out->address, "%s:%lld", place, (long long)port);
}

// Explains which task has the port if it is taken.
static rn_status_t explain(const server_request_t* request, const rn_server_options_t* options,
                           rn_status_t status) {
  const rn_server_task_t* task = find_task(request, options->job, options->index);
  if (!task || !strstr(rn_status_message(status), "Address already in use")) return status;
  char name[256], suffix[512] = "";
  const char* address = options->address.size ? options->address.data : task->address.data;
  ask_name(request, options->allocator, address, name, sizeof name);
  if (name[0]) snprintf(suffix, sizeof suffix, "; %s of a Runnel cluster answers there", name);
  rn_status_t longer =
      rn_status_make(rn_status_code(status), "%s%s", rn_status_message(status), suffix);
  rn_status_free(status);
  return longer;
}

static int64_t queue_size(rn_resource_t* queue) { return rn_queue_size((rn_queue_t*)queue); }

static void on_asked_to_end(void) { kill(getpid(), SIGTERM); }

static void* end_anyhow(void* arg) {
  (void)arg;
  sleep(2);
  fprintf(stderr, "runnel: running steps did not end; exiting anyway\n");
  _exit(1);
}

// Waits for running steps to end; false if a second signal interrupted it.
static bool drain(rn_server_t* server, const sigset_t* signals, int64_t seconds) {
  const rn_env_t* env = rn_env_system();
  int64_t start = env->now_ns(env->self), quiet = 0;
  rn_server_drain(server);
  // Waits until the task is idle for a moment: a step may be in transit between two tasks.
  while (quiet < 3 && env->now_ns(env->self) - start < seconds * 1000000000) {
    const struct timespec moment = {.tv_nsec = 10000000};
    if (sigtimedwait(signals, NULL, &moment) > 0) return false;
    quiet = rn_server_is_busy(server) ? 0 : quiet + 1;
  }
  return true;
}

// Reads certificates and tokens again if their files have changed. Several files may be written one
// after the other: what does not fit together is tried again when the next one is there.
static void renew(server_request_t* request) {
  const rn_tls_options_t* files = &request->files;
  const char* const paths[] = {files->cert, files->key, files->ca};
  uint64_t stamp = rn_cli_stamp(&request->env, paths, 3);
  if (request->tls && stamp != request->stamp)
    rn_cli_log_renewal(&request->env, files->cert, rn_tls_replace(request->tls, files));
  request->stamp = stamp;
  bool is_new = false;
  rn_status_t status = request->tokens ? rn_tokens_refresh(request->tokens, &is_new) : RN_OK;
  if (is_new || !rn_ok(status)) rn_cli_log_renewal(&request->env, "the tokens", status);
}

static void wait_and_end(server_request_t* request, rn_server_t* server, const sigset_t* signals,
                         int64_t seconds) {
  const struct timespec wait = {.tv_sec = RN_CLI_RENEWAL_SECONDS};
  int signal;
  while ((signal = sigtimedwait(signals, NULL, &wait)) != SIGTERM && signal != SIGINT) {
    renew(request);
    if (signal == SIGHUP && request->audit)
      rn_status_free(rn_cli_at(rn_cli_audit_reopen(request->audit), "--audit"));
  }
  fprintf(stderr, "runnel: ending after %s\n", signal == SIGTERM ? "SIGTERM" : "Ctrl-C");
  if (!drain(server, signals, seconds)) {
    fprintf(stderr, "runnel: exiting at once\n");
    _exit(1);
  }
  pthread_t thread;
  if (rn_server_is_busy(server)) pthread_create(&thread, NULL, end_anyhow, NULL);
}

static rn_status_t serve(server_request_t* request, const rn_server_options_t* options,
                         int64_t drain_seconds) {
  // Only this thread receives signals, and only when it waits for them.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  rn_server_t* server = NULL;
  rn_status_t status = rn_server_create(options, &server);
  if (!rn_ok(status)) return explain(request, options, status);
  status = rn_server_start(server);
  if (rn_ok(status)) {
    printf("%s\n", rn_server_target(server));
    fflush(stdout);
    wait_and_end(request, server, &signals, drain_seconds);
  }
  rn_server_destroy(server);
  return status;
}

static rn_status_t read_credentials(rn_cli_t* cli, server_request_t* request) {
  RN_RETURN_IF_ERROR(rn_cli_tls_files(cli, &request->files));
  const rn_tls_options_t* files = &request->files;
  const char* const paths[] = {files->cert, files->key, files->ca};
  request->stamp = rn_cli_stamp(&request->env, paths, 3);
  if (files->cert) RN_RETURN_IF_ERROR(rn_tls_create(files, &request->tls));
  return rn_tokens_read(&request->env, request->token_file, &rn_call_gate_roles, cli->allocator,
                        &request->tokens);
}

static rn_status_t open_audit(rn_cli_t* cli, server_request_t* request,
                              rn_server_options_t* options) {
  const char* path = rn_cli_text(cli, "--audit");
  if (!path || rn_cli_has(cli, "--show")) return RN_OK;
  char task[512];
  snprintf(task, sizeof task, "/job:%.*s/replica:0/task:%d", RN_STR_ARGS(options->job),
           options->index);
  options->audit = rn_cli_audit_write;
  RN_RETURN_IF_ERROR(
      rn_cli_audit_open(&request->env, path, rn_str(task), cli->allocator, &request->audit));
  options->audit_self = request->audit;
  return RN_OK;
}

static rn_status_t server(rn_cli_t* cli) {
  rn_machine_map_large_blocks();
  server_request_t request = {.env = *cli->env, .token_file = rn_cli_text(cli, "--token")};
  request.env.log = rn_cli_log_text;
  rn_server_options_t options;
  rn_cli_cluster_init(&request.cluster, cli->allocator);
  rn_status_t status = find_cluster(cli, &request);
  if (rn_ok(status)) status = read_credentials(cli, &request);
  if (rn_ok(status)) status = choose(cli, &request, &options);
  if (rn_ok(status)) status = open_audit(cli, &request, &options);
  if (rn_ok(status) && !rn_cli_has(cli, "--show")) {
    options.asked_to_end = on_asked_to_end;
    options.queue_size = queue_size;
    status = serve(&request, &options, rn_cli_number(cli, "--drain", 10));
  }
  rn_tls_release(request.tls);
  rn_tokens_release(request.tokens);
  rn_cli_audit_close(request.audit);
  rn_cli_cluster_clear(&request.cluster);
  return status;
}

#define MAX_NUMBER (1 << 30)
static const rn_cli_option_t options_of_server[] = {
    RN_OPTION(TEXT, "--cluster", "CLUSTER",
              "{\"ps\": [\"host:port\", ...], \"worker\": [...]}, or ps=a:1|b:2,worker=c:3, or a "
              "ClusterDef in text form, or a file with one of these; slurm or mpi: the tasks that "
              "srun or mpirun has started (default: the environment variable TF_CONFIG)"),
    RN_OPTION(TEXT, "--jobs", "JOBS",
              "with slurm and mpi: the jobs of the ranks, in order, as in ps=2,worker=4 (default: "
              "all are workers; a job without a number gets the remaining ranks)"),
    RN_OPTION(FILE, "--hosts", "FILE",
              "with mpi: the hosts file of mpirun (default: this machine)"),
    RN_OPTION(NUMBER, "--port-base", "PORT",
              "with slurm and mpi: the port of a host's first task (default 8888)", .most = 65535),
    RN_OPTION(TEXT, "--job", "JOB",
              "the job of this task (not needed if the cluster has one task)"),
    RN_OPTION(NUMBER, "--task", "N",
              "the number of this task in its job (default: that of TF_CONFIG, or 0)"),
    RN_OPTION(NUMBER, "--port", "PORT", "listen on this port instead of that of the task's address",
              .most = 65535),
    RN_OPTION(NUMBER, "--threads", "N", "threads for steps (default: one per processor)",
              .most = MAX_NUMBER),
    RN_OPTION(NUMBER, "--cpus", "N", "CPU devices (default 1)", .most = MAX_NUMBER),
    RN_OPTION(NUMBER, "--gpus", "N",
              "at most this many GPUs, 0: none (default: all that CUDA_VISIBLE_DEVICES allows)",
              .most = MAX_NUMBER),
    RN_OPTION(NUMBER, "--lease", "SECONDS",
              "how long another task may be silent before it counts as lost (default 10)",
              .most = MAX_NUMBER),
    RN_OPTION(NUMBER, "--session-gc", "SECONDS",
              "how long an idle session outlives the last connection of its client (default 3600)",
              .most = MAX_NUMBER),
    RN_OPTION(NUMBER, "--drain", "SECONDS",
              "how long running steps may take after a signal (default 10)", .most = MAX_NUMBER),
    RN_OPTION(FILE, "--tls-cert", "FILE",
              "the certificate of this task (see 'runnel cert'); peers without a certificate are "
              "refused"),
    RN_OPTION(FILE, "--tls-key", "FILE", "its key"),
    RN_OPTION(FILE, "--tls-ca", "FILE", "the certificate authority of all tasks and clients"),
    RN_OPTION(FILE, "--token", "FILE",
              "accept only calls that carry a token of this file (default: the file that "
              "RUNNEL_TOKEN names): one token, or lines \"client TOKEN\", \"worker TOKEN\" and "
              "\"operator TOKEN\". Clients name a file with theirs in RUNNEL_TOKEN"),
    RN_OPTION(FLAG, "--operators", NULL,
              "with certificates: only an operator's allows to stop the task and to clear its "
              "variables (see 'runnel cert --operator')"),
    RN_OPTION(FILE, "--audit", "FILE",
              "append a line of JSON to this file for each call that opens, closes or clears "
              "something, and for refused calls; SIGHUP opens it again"),
    RN_OPTION(FLAG, "--insecure", NULL,
              "allow an address that other machines can reach, without TLS: anyone who reaches the "
              "port can run any graph on this task"),
    RN_OPTION(FLAG, "--no-loans", NULL,
              "send large tensors between tasks of this machine over the network too"),
    RN_OPTION(TEXT, "--wire", "HOW",
              "grpc (the default) or ucx: large tensors between tasks travel by UCX, where both "
              "ends have it (InfiniBand, RoCE, shared memory, TCP), and are not encrypted. Also "
              "RUNNEL_WIRE, but not with certificates"),
    RN_OPTION(TEXT, "--collectives", "HOW",
              "rpc (the default) or mpi: collectives of all tasks run by Open MPI, under whose "
              "mpirun each task is started. Also RUNNEL_COLLECTIVES"),
    RN_OPTION(TEXT, "--allow", "WHAT",
              "what graphs may do with files and the network: read:FOLDER, write:FOLDER, network, "
              "all, separated by ';'; \"\": nothing. By default graphs may do whatever the process "
              "may do, except that eager clients cannot make the task connect to addresses outside "
              "its cluster: network or all allows that"),
    RN_OPTION(NUMBER, "--max-message", "MIB", "the largest message of a client (default 2048)",
              .most = MAX_NUMBER),
    RN_OPTION(NUMBER, "--max-streams", "N", "open calls per client (default 65536)",
              .most = MAX_NUMBER),
    RN_OPTION(NUMBER, "--max-sessions", "N", "open sessions per client (default 1000)",
              .most = MAX_NUMBER),
    RN_OPTION(
        NUMBER, "--max-memory", "MIB",
        "memory for messages per client (default: half of the memory that the process may use)",
        .most = MAX_NUMBER),
    RN_OPTION(NUMBER, "--max-connections", "N",
              "connections of clients (default: half of the descriptors that the process may open)",
              .most = MAX_NUMBER),
    RN_OPTION(
        NUMBER, "--idle", "SECONDS",
        "how long a connection without calls and sessions stays open (default 600; 0: forever)",
        .most = MAX_NUMBER),
    RN_OPTION(
        FLAG, "--show", NULL,
        "print the cluster with this task marked, on the last line the cluster as JSON, and end"),
    {0},
};

const rn_cli_command_t rn_cli_server_command = {
    .name = "server",
    .summary = "run a task of a cluster",
    .about =
        "Runs one task of a cluster: a worker with its devices, and a master for the clients that "
        "use it as their target. Prints the target when it is ready. On SIGTERM and Ctrl-C it "
        "accepts no new sessions and steps, lets running steps finish, and ends; a second signal "
        "ends it at once. Certificates and tokens are read again when their files change, and on "
        "SIGHUP. The port also answers HTTP: /healthz, /readyz, /statusz, /metrics. "
        "Clients and other tasks may be stock TensorFlow's.",
    .run = server,
    .options = options_of_server,
    .examples =
        "runnel server --cluster worker=localhost:2222\n"
        "runnel server --cluster 'ps=localhost:2222,worker=localhost:2223|localhost:2224' --job "
        "ps\n"
        "srun -n 6 runnel server --cluster slurm --jobs ps=2,worker --insecure",
};
