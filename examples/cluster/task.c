// One task of an example on a cluster: see task.h.
#include "task.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launch.h"

static const char usage[] =
    "  --ps N          parameter servers to start on this machine \n"
    "  --workers N     workers to start on this machine\n"
    "  --cluster C     a cluster that is there: ps=host:port|host:port,worker=host:port\n"
    "                  (without it, the environment variable TF_CONFIG)\n"
    "  --job JOB       ps or worker: this process is one task of it\n"
    "  --task N        which one (0)\n"
    "  --client        the task's server is there already: as with runnel cluster up -- PROGRAM\n"
    "  --sync          an update is the mean of one gradient from every worker\n"
    "  --backup N      the same without waiting for the slowest N\n"
    "  --dir FOLDER    checkpoints: a cluster that finds one goes on there\n"
    "  --device D      where workers compute: cpu or gpu (a GPU if the task has one)\n"
    "  --steps N       updates of training\n"
    "  --seed N        other random numbers\n"
    "  --ports N       says which N ports are free, and ends\n";

typedef struct words_t {
  const char *cluster, *job;
  int task, servers, workers, backup, ports;
  bool is_sync, is_client;
} words_t;

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int number(const char* option, const char* text) {
  char* end = NULL;
  long value = text ? strtol(text, &end, 10) : -1;
  if (!text || !*text || *end || value < 0 || value > 1000000000)
    example_fail(option, "needs a number after it");
  return (int)value;
}

static void read_words(task_t* t, words_t* w, int argc, char** argv, const char* about) {
  for (int i = 1; i < argc; ++i) {
    const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
    int seed = 1;
    struct {
      const char* name;
      int* out;
    } numbers[] = {{"--ps", &w->servers},    {"--workers", &w->workers}, {"--task", &w->task},
                   {"--backup", &w->backup}, {"--steps", &t->e.steps},   {"--ports", &w->ports},
                   {"--seed", &seed}};
    struct {
      const char* name;
      const char** out;
    } texts[] = {{"--cluster", &w->cluster},
                 {"--job", &w->job},
                 {"--dir", &t->directory},
                 {"--device", &t->e.device},
                 {"--dump", &t->summary}};
    bool is_known = false;
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers && !is_known; ++k)
      if ((is_known = !strcmp(word, numbers[k].name))) *numbers[k].out = number(word, next);
    if (is_known && !strcmp(word, "--seed")) t->e.seed = (uint64_t)seed;
    if (is_known && !strcmp(word, "--backup")) w->is_sync = true;
    for (size_t k = 0; k < sizeof texts / sizeof *texts && !is_known; ++k)
      if ((is_known = !strcmp(word, texts[k].name))) *texts[k].out = next;
    if (is_known) {
      if (!next) example_fail(word, "needs something after it");
      ++i;
    } else if (!strcmp(word, "--sync")) {
      w->is_sync = true;
    } else if (!strcmp(word, "--client")) {
      w->is_client = true;
    } else {
      bool is_asked = !strcmp(word, "--help");
      fprintf(is_asked ? stdout : stderr, "usage: %s [options]\n%s\n%s", t->e.name, about, usage);
      exit(is_asked ? 0 : 2);
    }
  }
}

static void serve(task_t* t, const char* job, int task) {
  t->server = rn_cluster_server(t->cluster, job, task, t->e.status);
  example_check(&t->e, "the server");
  TF_ServerStart(t->server, t->e.status);
  example_check(&t->e, "the server");
  snprintf(t->target, sizeof t->target, "%s", TF_ServerTarget(t->server));
}

// Asks the task's master which devices there are.
static void require_gpu(const task_t* t) {
  char own[64];
  bool has_gpu = false;
  snprintf(own, sizeof own, "/job:worker/replica:0/task:%d/device:GPU", t->index);
  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_SetTarget(options, t->target);
  TF_Session* session = TF_NewSession(graph, options, t->e.status);
  example_check(&t->e, "a session");
  TF_DeviceList* devices = TF_SessionListDevices(session, t->e.status);
  example_check(&t->e, "the devices");
  for (int i = 0; i < TF_DeviceListCount(devices); ++i)
    has_gpu |= !strncmp(TF_DeviceListName(devices, i, t->e.status), own, strlen(own));
  TF_DeleteDeviceList(devices);
  TF_DeleteSession(session, t->e.status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  if (!has_gpu) example_fail("--device gpu", "there is none; 'runnel devices' says why");
}

// Variables are on the CPUs of parameter servers, everything else on the worker: on its GPU where
// it has one and the command line does not say otherwise.
static void set_devices(const task_t* t) {
  char device[64];
  const char* wanted = t->e.device ? t->e.device : "";
  snprintf(device, sizeof device, "/job:worker/task:%d%s", t->index, task_device(t));
  if (!strcmp(wanted, "gpu"))
    require_gpu(t);
  else if (*wanted && strcmp(wanted, "cpu") != 0)
    example_fail("--device", "is cpu or gpu");
  rn_spread_variables(t->e.scope, .tasks = t->servers, .device = "/job:ps/cpu:0",
                      .worker_device = device, .spread = RN_SPREAD_IN_TURN);
}

static void connect_to(task_t* t, const char* job, int task) {
  const char* address = rn_cluster_address(t->cluster, job, task);
  if (!address || strcmp(job, "worker") != 0)
    example_fail("--client", "there is no such worker in the cluster");
  snprintf(t->target, sizeof t->target, "grpc://%s", address);
}

// A parameter server only serves until it is told to end.
static _Noreturn void stay(task_t* t, const sigset_t* signals) {
  int signal = 0;
  while (sigwait(signals, &signal) != 0) continue;
  TF_DeleteServer(t->server);
  rn_cluster_destroy(t->cluster);
  TF_DeleteStatus(t->e.status);
  exit(0);
}

static void block_signals(sigset_t* signals) {
  sigemptyset(signals);
  sigaddset(signals, SIGTERM);
  sigaddset(signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, signals, NULL);
}

const char* task_device(const task_t* t) {
  return t->e.device && !strcmp(t->e.device, "cpu") ? "/cpu:0" : "";
}

task_t task_open(int argc, char** argv, const char* about, int steps, int servers, int workers) {
  const char* slash = strrchr(argv[0], '/');
  task_t t = {.e = {.name = slash ? slash + 1 : argv[0], .steps = steps, .seed = 1}};
  words_t w = {.servers = servers, .workers = workers};
  read_words(&t, &w, argc, argv, about);
  if (w.ports) {
    int ports[128];
    find_ports(ports, w.ports);
    for (int i = 0; i < w.ports; ++i) printf("%d\n", ports[i]);
    exit(0);
  }
  bool is_configured = w.cluster || getenv("TF_CONFIG");
  if (!is_configured) exit(launch(argv, w.servers, w.workers));
  t.e.status = TF_NewStatus();
  t.cluster = rn_cluster_parse(w.cluster, t.e.status);
  example_check(&t.e, "the cluster");
  if (!w.job && rn_cluster_own_job(t.cluster)) {
    w.job = rn_cluster_own_job(t.cluster);
    w.task = rn_cluster_own_task(t.cluster);
  }
  t.servers = rn_cluster_count(t.cluster, "ps");
  t.workers = rn_cluster_count(t.cluster, "worker");
  if (!w.job && w.cluster) example_fail("--job", "must name the job of this task");
  if (!w.job) exit(launch_clients(argv, t.workers));
  sigset_t signals;
  bool is_server = strcmp(w.job, "worker") != 0;
  if (is_server) block_signals(&signals);  // before threads inherit the mask
  if (w.is_client)
    connect_to(&t, w.job, w.task);
  else
    serve(&t, w.job, w.task);
  if (is_server) stay(&t, &signals);
  t.index = w.task;
  t.counted = w.is_sync ? t.workers - w.backup : 0;
  if (w.is_sync && t.counted < 1) example_fail("--backup", "leaves no worker to count on");
  t.e.scope = rn_scope_with_graph();
  t.e.random = t.e.seed;
  set_devices(&t);
  rn_global_step(t.e.scope);
  return t;
}

void task_train(task_t* t, rn_optimizer_t optimizer, rn_edge_t loss) {
  rn_scope_t* s = t->e.scope;
  if (t->counted) {
    rn_sync_minimize(s, optimizer, loss, &t->sync, .replicas = t->counted, .total = t->workers);
    t->train = t->sync.train;
  } else {
    t->train =
        rn_minimize(s, optimizer, loss, .global_step = rn_global_step(s), .colocate = t->colocates);
  }
  if (t->directory) t->saver = rn_saver(s);
  t->supervisor = rn_supervisor(
      s, .target = t->target, .task = t->index, .sync = t->counted ? &t->sync : NULL,
      .saver = t->saver, .directory = t->directory, .save_seconds = 1, .patience_seconds = 120);
  if (!t->supervisor) example_fail("the graph", rn_scope_message(s));
  if (!rn_supervisor_start(t->supervisor, t->e.status)) example_check(&t->e, "the session");
  // Each worker draws its own examples.
  t->e.random = t->e.seed * 1000 + (uint64_t)t->index;
  t->e.start = seconds();
}

bool task_ran(const task_t* t, bool is_good) {
  // A chief that ends closes the queue on which replicas wait.
  if (!is_good && TF_GetCode(t->e.status) == TF_OUT_OF_RANGE) return false;
  example_check(&t->e, "a step");
  return true;
}

static void write_summary(task_t* t, bool reached) {
  FILE* file = t->summary && task_is_chief(t) ? fopen(t->summary, "w") : NULL;
  if (!file) return;
  fprintf(file, "reached %d\nstep %lld\nrecoveries %d\n", reached,
          (long long)rn_supervisor_step(t->supervisor), rn_supervisor_recoveries(t->supervisor));
  fclose(file);
}

int task_close(task_t* t, bool reached, const char* format, ...) {
  if (!rn_supervisor_finish(t->supervisor, t->e.status)) example_check(&t->e, "the end");
  if (task_is_chief(t)) {
    va_list args;
    va_start(args, format);
    printf("%s: ", t->e.name);
    vprintf(format, args);
    printf(": %s\n", reached ? "learned" : "NOT learned");
    va_end(args);
    write_summary(t, reached);
  }
  rn_supervisor_destroy(t->supervisor);
  rn_saver_destroy(t->saver);
  rn_scope_destroy(t->e.scope);
  TF_DeleteServer(t->server);
  rn_cluster_destroy(t->cluster);
  TF_DeleteStatus(t->e.status);
  return reached || !task_is_chief(t) ? 0 : 1;
}
