// Measures how long clients take to learn that a task was killed or stopped: failure_run RUNNEL
//
// Starts three `runnel server` tasks on loopback with a lease of two seconds; this process is the
// client.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/ports.h"
#include "base/net.h"
#include "client.h"
#include "runnel/ops.h"

#define SECOND INT64_C(1000000000)
enum { kTasks = 3, kLease = 2 };

static int failures;
#define EXPECT(condition, ...)                               \
  do {                                                       \
    if (!(condition)) {                                      \
      printf("%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      printf(__VA_ARGS__);                                   \
      printf("\n");                                          \
      failures++;                                            \
    }                                                        \
  } while (0)

static rn_allocator_t memory(void) { return rn_allocator_system(); }
static double now(void) {
  const rn_env_t* env = rn_env_system();
  return (double)env->now_ns(env->self) * 1e-9;
}
static void nap(double seconds) { usleep((useconds_t)(seconds * 1e6)); }

static void check(rn_status_t status) {
  if (rn_ok(status)) return;
  printf("%s\n", rn_status_message(status));
  exit(1);
}

typedef struct cluster_t {
  const char* runnel;
  char addresses[kTasks][64];  // the worker's, which is the master, then two parameter servers'
  char spec[256], target[80];
  pid_t tasks[kTasks];
} cluster_t;

// Ports that stay free until the tasks take them, also after one has died.
static void find_ports(cluster_t* cluster) {
  free_addresses(cluster->addresses, kTasks);
  snprintf(cluster->spec, sizeof cluster->spec, "worker=%s,ps=%s|%s", cluster->addresses[0],
           cluster->addresses[1], cluster->addresses[2]);
  snprintf(cluster->target, sizeof cluster->target, "grpc://%s", cluster->addresses[0]);
}

// Returns when the task has said that it is ready.
static void start(cluster_t* cluster, int task) {
  int out[2];
  char index[12], lease[12];
  snprintf(index, sizeof index, "%d", task ? task - 1 : 0);
  snprintf(lease, sizeof lease, "%d", kLease);
  if (pipe(out) != 0) exit(1);
  pid_t pid = fork();
  if (pid == 0) {
    dup2(out[1], 1);
    close(out[0]);
    close(out[1]);
    execl(cluster->runnel, cluster->runnel, "server", "--cluster", cluster->spec, "--job",
          task ? "ps" : "worker", "--task", index, "--lease", lease, "--session-gc", "2",
          (char*)NULL);
    _exit(127);
  }
  close(out[1]);
  char line[256];
  FILE* says = fdopen(out[0], "r");
  if (pid < 0 || !says || !fgets(line, sizeof line, says)) {
    printf("A task did not start\n");
    exit(1);
  }
  fclose(says);
  cluster->tasks[task] = pid;
}

static void end(cluster_t* cluster, int task) {
  if (!cluster->tasks[task]) return;
  kill(cluster->tasks[task], SIGKILL);
  waitpid(cluster->tasks[task], NULL, 0);
  cluster->tasks[task] = 0;
}

typedef struct client_t {
  rn_graph_t* graph;
  rn_scope_t* scope;
  rn_session_t* session;
  rn_edge_t x, on_ps0, on_ps1, waits;  // a number that goes through each; a token that never comes
  rn_node_t* add;                      // 1 to a variable of ps 1
  rn_node_t* init;
  rn_edge_t sum;
} client_t;

static rn_scope_t* on(rn_scope_t* scope, const char* device) {
  rn_scope_set_device(scope, device);
  return scope;
}

static void client_open(const cluster_t* cluster, client_t* client) {
  static const char* const ps0 = "/job:ps/task:0";
  static const char* const ps1 = "/job:ps/task:1";
  const int type = RN_FLOAT;
  *client = (client_t){0};
  check(rn_graph_create(memory(), &client->graph));
  rn_scope_t* s = client->scope = rn_scope_create(client->graph);
  client->x = rn_Placeholder(on(s, NULL), RN_FLOAT);
  client->on_ps0 = rn_Neg(on(s, ps0), client->x);
  client->on_ps1 = rn_Neg(on(s, ps1), client->x);
  rn_edge_t queue = rn_FIFOQueueV2(on(s, ps0), &type, 1, .shared_name = "never");
  client->waits = rn_edge_at(rn_QueueDequeueV2(on(s, ps0), queue, &type, 1), 0);
  rn_edge_t v = rn_VarHandleOp(on(s, ps1), RN_FLOAT, NULL, 0, .shared_name = "v");
  client->init = rn_AssignVariableOp(s, v, rn_const_float(s, 0));
  client->add = rn_AssignAddVariableOp(s, v, rn_const_float(s, 1));
  client->sum = rn_ReadVariableOp(s, v, RN_FLOAT);
  if (!rn_scope_ok(s)) printf("%s\n", rn_scope_message(s));
  check(session_open(cluster->target, 0, kLease * SECOND, client->graph, &client->session));
}

static void client_close(client_t* client) {
  rn_session_destroy(client->session);
  rn_scope_destroy(client->scope);
  rn_graph_release(client->graph);
}

// Runs |fetch| or |target|; |*out_s| is how long that took.
static rn_status_t run(client_t* client, rn_edge_t fetch, rn_node_t* target, float* out,
                       double* out_s) {
  double from = now();
  rn_status_t status = step_run(client->session, client->x, 5, fetch, target, out);
  if (out_s) *out_s = now() - from;
  return status;
}

static void expect_ok(client_t* client, rn_edge_t fetch, const char* when) {
  float got = 0;
  rn_status_t status = run(client, fetch, NULL, &got, NULL);
  EXPECT(rn_ok(status) && got == -5, "%s: %g, %s", when, (double)got, rn_status_message(status));
  rn_status_free(status);
}

// Takes |status|.
static void expect_unavailable(rn_status_t status, const char* name, double took, double most,
                               const char* when) {
  EXPECT(rn_status_code(status) == RN_CODE_UNAVAILABLE, "%s: %s", when, rn_status_message(status));
  EXPECT(strstr(rn_status_message(status), name), "%s: %s", when, rn_status_message(status));
  EXPECT(took <= most * 1.1, "%s: heard after %.2f s", when, took);
  printf("%-60s %6.3f s\n", when, took);
  rn_status_free(status);
}

#define PS0 "/job:ps/replica:0/task:0"

typedef struct waiting_t {
  client_t* client;
  rn_status_t status;
  double ended;
} waiting_t;

static void* wait_for_token(void* arg) {
  waiting_t* waiting = arg;
  waiting->status = run(waiting->client, waiting->client->waits, NULL, NULL, NULL);
  waiting->ended = now();
  return NULL;
}

// |signal| for parameter server 0 while a step waits there, and then another step.
static void strike_server(cluster_t* cluster, client_t* client, int signal, const char* during,
                          const char* after) {
  waiting_t waiting = {.client = client};
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_token, &waiting);
  nap(0.3);
  double from = now();
  kill(cluster->tasks[1], signal);
  expect_ok(client, client->on_ps1, "a step of the other server meanwhile");
  pthread_join(thread, NULL);
  expect_unavailable(waiting.status, PS0, waiting.ended - from, kLease, during);
  double took;
  rn_status_t status = run(client, client->on_ps0, NULL, NULL, &took);
  expect_unavailable(status, PS0, took, kLease, after);
  expect_ok(client, client->on_ps1, "a step of the other server afterwards");
}

static void strike_master(cluster_t* cluster, client_t* client) {
  waiting_t waiting = {.client = client};
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_token, &waiting);
  nap(0.3);
  double from = now();
  kill(cluster->tasks[0], SIGSTOP);
  pthread_join(thread, NULL);
  expect_unavailable(waiting.status, cluster->target, waiting.ended - from, kLease,
                     "master stopped while a step waits");
  kill(cluster->tasks[0], SIGCONT);
  nap(0.2);
  expect_ok(client, client->on_ps0, "after the master goes on");
}

static void restart_master(cluster_t* cluster, client_t* client) {
  end(cluster, 0);
  double took;
  rn_status_t status = run(client, client->on_ps1, NULL, NULL, &took);
  expect_unavailable(status, "", took, kLease, "master killed, then a step");
  start(cluster, 0);
  status = run(client, client->on_ps1, NULL, NULL, &took);
  EXPECT(rn_status_code(status) == RN_CODE_ABORTED, "the new master: %s",
         rn_status_message(status));
  rn_status_free(status);
  expect_ok(client, client->on_ps1, "the next step on the new master");
}

// Adds until the master is cut off in the middle of it all, again and again: what is repeated is
// applied once.
static void count_additions(client_t* client) {
  rn_status_t status = run(client, (rn_edge_t){0}, client->init, NULL, NULL);
  EXPECT(rn_ok(status), "%s", rn_status_message(status));
  rn_status_free(status);
  int done = 0;
  for (int i = 0; i < 200; ++i) {
    status = run(client, (rn_edge_t){0}, client->add, NULL, NULL);
    done += rn_ok(status);
    rn_status_free(status);
  }
  float sum = 0;
  status = run(client, client->sum, NULL, &sum, NULL);
  EXPECT(rn_ok(status) && sum == (float)done && done == 200, "%d additions, the sum is %g: %s",
         done, (double)sum, rn_status_message(status));
  rn_status_free(status);
}

// A step that was given up because its server was stopped is not run when that goes on.
static void add_late(cluster_t* cluster, client_t* client) {
  float before = 0, after = 0;
  double took;
  rn_status_t status = run(client, client->sum, NULL, &before, NULL);
  EXPECT(rn_ok(status), "%s", rn_status_message(status));
  rn_status_free(status);
  kill(cluster->tasks[2], SIGSTOP);
  nap(0.1);  // until all of its threads have stopped
  status = run(client, (rn_edge_t){0}, client->add, NULL, &took);
  expect_unavailable(status, "/job:ps/replica:0/task:1", took, kLease, "an addition there");
  kill(cluster->tasks[2], SIGCONT);
  nap(0.5);
  status = run(client, client->sum, NULL, &after, NULL);
  EXPECT(rn_ok(status) && after == before, "%g became %g: %s", (double)before, (double)after,
         rn_status_message(status));
  rn_status_free(status);
}

static void* run_many(void* arg) {
  client_t* client = arg;
  count_additions(client);
  return NULL;
}

// A client that dies leaves a session, which is closed when it has been gone for a while.
static void lose_client(cluster_t* cluster) {
  pid_t pid = fork();
  if (pid == 0) {
    client_t client;
    client_open(cluster, &client);
    expect_ok(&client, client.on_ps0, "a client that will die");
    _exit(failures != 0);  // without closing anything
  }
  int status = 1;
  waitpid(pid, &status, 0);
  EXPECT(status == 0, "the client that should die first failed");
}

// The number behind |key| in what a task says of itself; -1: none.
static long ask_page(const char* address, const char* key) {
  char command[256], text[65536];
  snprintf(command, sizeof command, "curl -s 'http://%s/metrics'", address);
  FILE* page = popen(command, "r");
  if (!page) return -1;
  size_t size = fread(text, 1, sizeof text - 1, page);
  text[size] = '\0';
  if (pclose(page) != 0) return -1;
  for (char* line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
    if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ' ')
      return strtol(line + strlen(key), NULL, 10);
  return -1;
}

static void expect_collected(cluster_t* cluster, const char* key, long before) {
  long left = -1;
  for (int i = 0; i < 100; ++i) {
    left = ask_page(cluster->addresses[0], key);
    if (left < 0 || left <= before) break;
    nap(0.1);
  }
  if (left < 0)
    printf("skipped: no metric %s to look at\n", key);
  else
    EXPECT(left <= before, "%ld sessions are left, %ld were there", left, before);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    printf("usage: failure_run RUNNEL\n");
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  cluster_t cluster = {.runnel = argv[1]};
  find_ports(&cluster);
  for (int i = 0; i < kTasks; ++i) start(&cluster, i);
  lose_client(&cluster);  // before there are threads here
  client_t client;
  client_open(&cluster, &client);
  expect_ok(&client, client.on_ps0, "at first");

  strike_server(&cluster, &client, SIGSTOP, "server stopped while a step waits",
                "server stopped, then a step");
  kill(cluster.tasks[1], SIGCONT);
  nap(0.2);
  expect_ok(&client, client.on_ps0, "after the server goes on");

  strike_server(&cluster, &client, SIGKILL, "server killed while a step waits",
                "server killed, then a step");
  end(&cluster, 1);
  double from = now();
  start(&cluster, 1);
  expect_ok(&client, client.on_ps0, "the next step after the server's restart");
  printf("%-60s %6.3f s\n", "server started anew, to the end of the next step", now() - from);

  strike_master(&cluster, &client);
  pthread_t adder;
  pthread_create(&adder, NULL, run_many, &client);
  pthread_join(adder, NULL);
  add_late(&cluster, &client);
  expect_collected(&cluster, "runnel_sessions", 1);
  restart_master(&cluster, &client);

  client_close(&client);
  for (int i = 0; i < kTasks; ++i) end(&cluster, i);
  printf("%s\n", failures ? "failed" : "passed");
  return failures != 0;
}
