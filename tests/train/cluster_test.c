// Training on a cluster: placement of variables, synchronous replicas, supervisors. The servers are
// in this process, on loopback.
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "util.h"

#define CLUSTER_TEST(name) Test(cluster, name, .timeout = 120)

static const char* device_of(rn_edge_t edge) { return TF_OperationDevice(rn_output_of(edge).oper); }

static void expect_device(const rn_var_t* variable, const char* device) {
  cr_assert(variable, "no variable");
  cr_expect_str_eq(device_of(variable->handle), device, "%s is at %s, not %s", variable->name,
                   device_of(variable->handle), device);
}

static const rn_var_t* vector(rn_scope_t* s, const char* name, int64_t size) {
  return rn_get_variable(s, name, &size, 1, .initializer = rn_init_zeros());
}

CLUSTER_TEST(variables_in_turn) {
  trial_t t = trial_open();
  rn_spread_variables(t.s, .tasks = 2, .worker_device = "/job:worker/task:3");
  const rn_var_t* step = rn_global_step(t.s);
  const rn_var_t* w = vector(t.s, "w", 4);
  rn_scope_t* inner = rn_variable_scope(t.s, "inner");
  const rn_var_t* b = vector(inner, "b", 4);
  rn_scope_set_device(inner, "/job:ps/task:1");
  const rn_var_t* placed = vector(inner, "placed", 4);
  const rn_var_t* local = rn_get_variable(t.s, "local", NULL, 0, .initializer = rn_init_zeros(),
                                          .collection = RN_LOCAL_VARIABLES);
  rn_edge_t sum = rn_AddV2(t.s, w->value, b->value);
  rn_edge_t loss = rn_Sum(t.s, rn_Mul(t.s, sum, placed->value), rn_const_int32(t.s, 0));
  rn_minimize(t.s, rn_adam(.learning_rate = 0.1f), loss, .global_step = step);
  trial_built(&t);
  expect_device(step, "/job:ps/task:0");
  expect_device(w, "/job:ps/task:1");
  expect_device(b, "/job:ps/task:0");
  expect_device(placed, "/job:ps/task:1");
  expect_device(local, "/job:worker/task:3");
  cr_expect_str_eq(device_of(sum), "/job:worker/task:3");
  cr_expect_str_eq(device_of(w->initial_value), "/job:ps/task:1");
  expect_device(rn_slot(t.s, w, "Adam", 0), "/job:ps/task:1");
  expect_device(rn_slot(t.s, b, "Adam", 1), "/job:ps/task:0");
  expect_device(rn_find_variable(t.s, "beta1_power"), "/job:ps/task:0");  // with "inner/b"
  rn_scope_destroy(inner);
  trial_close(&t);
}

CLUSTER_TEST(variables_by_load) {
  trial_t t = trial_open();
  rn_spread_variables(t.s, .tasks = 3, .spread = RN_SPREAD_BY_LOAD);
  expect_device(vector(t.s, "large", 1000), "/job:ps/task:0");
  expect_device(vector(t.s, "middle", 500), "/job:ps/task:1");
  expect_device(vector(t.s, "small", 100), "/job:ps/task:2");
  expect_device(vector(t.s, "more", 300), "/job:ps/task:2");
  expect_device(vector(t.s, "last", 700), "/job:ps/task:2");
  expect_device(vector(t.s, "then", 1), "/job:ps/task:1");
  trial_close(&t);
}

static int by_name(void* arg, const char* name, int dtype, const int64_t* dims, int rank) {
  *(int*)arg += dtype == TF_FLOAT && rank == 1 && dims[0] == 4;
  return name[0] == 'a' ? 1 : name[0] == 'z' ? 9 : -1;
}

CLUSTER_TEST(variables_as_the_client_says) {
  trial_t t = trial_open();
  int asked = 0;
  rn_spread_variables(t.s, .tasks = 2, .device = "/job:store", .choose = by_name, .arg = &asked);
  expect_device(vector(t.s, "a", 4), "/job:store/task:1");
  expect_device(vector(t.s, "b", 4), "/job:store/task:0");
  expect_device(vector(t.s, "c", 4), "/job:store/task:1");
  cr_expect_eq(asked, 3);
  cr_expect(!vector(t.s, "z", 4));
  cr_expect(strstr(rn_scope_message(t.s), "task 9"), "%s", rn_scope_message(t.s));
  trial_close(&t);
}

// A table over the servers: rows are looked up where they are, and its gradient stays rows.
CLUSTER_TEST(gradients_of_tables_stay_sparse) {
  enum { ROWS = 1000, DEPTH = 8, PARTS = 4 };
  trial_t t = trial_open();
  rn_spread_variables(t.s, .tasks = 2, .worker_device = "/job:worker/task:0");
  const rn_var_t* parts[PARTS];
  rn_partitioned_variable(t.s, "table", ROWS, DEPTH, rn_init_zeros(), PARTS, parts);
  for (int i = 0; i < PARTS; ++i)
    expect_device(parts[i], i % 2 ? "/job:ps/task:1" : "/job:ps/task:0");
  const int32_t ids[3] = {1, 500, 999};
  rn_edge_t rows = rn_embedding_lookup(t.s, parts, PARTS, rn_const_int32_list(t.s, ids, 3), false);
  rn_edge_t loss = rn_Sum(t.s, rn_Square(t.s, rows), rn_const_int32_list(t.s, (int[]){0, 1}, 2));
  rn_sync_replicas_t sync;
  rn_sync_minimize(t.s, rn_adagrad(.learning_rate = 0.1f), loss, &sync, .replicas = 2);
  rn_minimize(t.s, rn_adagrad(.learning_rate = 0.1f), loss, .name = "async");
  trial_built(&t);
  // Whatever has as many rows as a part stands on its server.
  size_t at = 0;
  int sparse = 0;
  for (TF_Operation* op; (op = TF_GraphNextOperation(t.graph, &at));) {
    sparse += !strcmp(TF_OperationOpType(op), "ResourceSparseApplyAdagrad");
    if (strncmp(TF_OperationDevice(op), "/job:worker", 11) != 0) continue;
    for (int i = 0; i < TF_OperationNumOutputs(op); ++i) {
      int64_t dims[8] = {0};
      TF_Output output = {op, i};
      int rank = TF_GraphGetTensorNumDims(t.graph, output, t.status);
      if (rank > 0 && rank <= 8) TF_GraphGetTensorShape(t.graph, output, dims, rank, t.status);
      cr_expect(rank < 2 || dims[0] < ROWS / PARTS, "%s (%s) is dense", TF_OperationName(op),
                TF_OperationOpType(op));
    }
  }
  cr_expect_eq(sparse, 2 * PARTS, "%d sparse updates", sparse);
  trial_close(&t);
}

CLUSTER_TEST(clusters_in_words) {
  TF_Status* status = TF_NewStatus();
  static const char* const same[] = {"ps=a:1|b:2, worker=c:3",
                                     "{\"ps\": [\"a:1\", \"b:2\"], \"worker\": {\"0\": \"c:3\"}}"};
  for (int i = 0; i < 2; ++i) {
    rn_cluster_t* cluster = rn_cluster_parse(same[i], status);
    cr_assert(cluster, "%s", TF_Message(status));
    cr_expect_eq(rn_cluster_count(cluster, "ps"), 2);
    cr_expect_eq(rn_cluster_count(cluster, "worker"), 1);
    cr_expect_eq(rn_cluster_count(cluster, "chief"), 0);
    cr_expect_str_eq(rn_cluster_address(cluster, "ps", 1), "b:2");
    cr_expect_str_eq(rn_cluster_address(cluster, "worker", 0), "c:3");
    cr_expect(!rn_cluster_address(cluster, "worker", 1));
    cr_expect(!rn_cluster_own_job(cluster));
    rn_cluster_destroy(cluster);
  }
  setenv("TF_CONFIG",
         "{\"cluster\": {\"worker\": [\"a:1\"]}, \"environment\": [{\"x\": [1, null, \"\\\"\"]}], "
         "\"task\": {\"type\": \"worker\", \"index\": 7}}",
         1);
  rn_cluster_t* own = rn_cluster_parse(NULL, status);
  cr_assert(own, "%s", TF_Message(status));
  cr_expect_str_eq(rn_cluster_own_job(own), "worker");
  cr_expect_eq(rn_cluster_own_task(own), 7);
  cr_expect(!rn_cluster_server(own, "worker", 7, status));
  cr_expect_eq(TF_GetCode(status), TF_NOT_FOUND);
  rn_cluster_destroy(own);
  static const char* const wrong[] = {"",
                                      "ps",
                                      "ps=",
                                      "ps=a",
                                      "=a:1",
                                      "ps=a:1|b:99999",
                                      "ps=a:1,ps=b:1",
                                      "{",
                                      "{\"ps\"",
                                      "{\"ps\": 3}",
                                      "{\"ps\": [\"a:1\"]} x",
                                      "{\"ps\": [\"a:1\"",
                                      "{\"ps\": {\"x\": \"a:1\"}}",
                                      "{\"ps\": {\"-1\": \"a:1\"}}",
                                      "{\"ps\": [\"a:1",
                                      "{}"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    cr_expect(!rn_cluster_parse(wrong[i], status), "'%s' was read", wrong[i]);
    cr_expect_eq(TF_GetCode(status), TF_INVALID_ARGUMENT, "%s", wrong[i]);
  }
  TF_DeleteStatus(status);
}

// Servers of a cluster with two parameter servers and some workers.
enum { MOST = 8 };
typedef struct cluster_t {
  rn_cluster_t* cluster;
  TF_Status* status;
  TF_Server *ps[2], *workers[MOST];
  char targets[MOST][64];
  int worker_count;
} cluster_t;

static TF_Server* serve(cluster_t* c, const char* job, int task) {
  TF_Server* server = rn_cluster_server(c->cluster, job, task, c->status);
  cr_assert(server, "%s", TF_Message(c->status));
  TF_ServerStart(server, c->status);
  cr_assert_eq(TF_GetCode(c->status), TF_OK, "%s", TF_Message(c->status));
  return server;
}

static void free_ports(int* ports, int count) {
  int sockets[2 + MOST];
  for (int i = 0; i < count; ++i) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(sockets[i], (struct sockaddr*)&address, size), 0);
    getsockname(sockets[i], (struct sockaddr*)&address, &size);
    ports[i] = ntohs(address.sin_port);
  }
  for (int i = 0; i < count; ++i) close(sockets[i]);
}

static cluster_t cluster_open(int workers) {
  cluster_t c = {.status = TF_NewStatus(), .worker_count = workers};
  int ports[2 + MOST];
  free_ports(ports, 2 + workers);
  char text[512];
  int at = snprintf(text, sizeof text, "ps=127.0.0.1:%d|127.0.0.1:%d,worker=", ports[0], ports[1]);
  for (int i = 0; i < workers; ++i)
    at +=
        snprintf(text + at, sizeof text - (size_t)at, "%s127.0.0.1:%d", i ? "|" : "", ports[2 + i]);
  c.cluster = rn_cluster_parse(text, c.status);
  cr_assert(c.cluster, "%s", TF_Message(c.status));
  for (int i = 0; i < 2; ++i) c.ps[i] = serve(&c, "ps", i);
  for (int i = 0; i < workers; ++i) {
    c.workers[i] = serve(&c, "worker", i);
    snprintf(c.targets[i], sizeof c.targets[i], "%s", TF_ServerTarget(c.workers[i]));
  }
  return c;
}

static void cluster_close(cluster_t* c) {
  for (int i = 0; i < c->worker_count; ++i) TF_DeleteServer(c->workers[i]);
  for (int i = 0; i < 2; ++i) TF_DeleteServer(c->ps[i]);
  rn_cluster_destroy(c->cluster);
  TF_DeleteStatus(c->status);
}

// A replica that learns w by the gradient that is fed: w -= 0.125 x, so that every sum is exact.
typedef struct replica_t {
  trial_t t;
  int task;
  rn_edge_t x;
  const rn_var_t* w;
  rn_sync_replicas_t sync;
  rn_node_t* train;
  rn_saver_t* saver;
  rn_supervisor_t* supervisor;
} replica_t;

typedef struct plan_t {
  int replicas, total;  // 0: asynchronous
  const char* group;
  bool is_group_chief;
  const char* directory;
  double patience;
  int64_t save_steps;
} plan_t;

static replica_t replica_open(const cluster_t* c, int task, plan_t plan) {
  replica_t r = {.t = trial_open(), .task = task};
  char device[64];
  snprintf(device, sizeof device, "/job:worker/task:%d", task);
  rn_scope_t* s = r.t.s;
  rn_spread_variables(s, .tasks = 2, .worker_device = device);
  const rn_var_t* step = rn_global_step(s);
  r.w = vector(s, "w", 2);
  r.x = rn_Placeholder(s, TF_FLOAT, .shape = RN_SET_SHAPE(((const int64_t[]){2}), 1));
  rn_edge_t loss = rn_Sum(s, rn_Mul(s, r.w->value, r.x), rn_const_int32(s, 0));
  rn_optimizer_t descent = rn_gradient_descent(.learning_rate = 0.125f);
  if (plan.replicas) {
    rn_sync_minimize(s, descent, loss, &r.sync, .replicas = plan.replicas, .total = plan.total,
                     .group = plan.group);
    r.train = r.sync.train;
  } else {
    r.train = rn_minimize(s, descent, loss, .global_step = step);
  }
  if (plan.directory) r.saver = rn_saver(s);
  r.supervisor = rn_supervisor(s, .target = c->targets[task], .task = task,
                               .sync = plan.replicas ? &r.sync : NULL, .saver = r.saver,
                               .directory = plan.directory, .save_steps = plan.save_steps,
                               .patience_seconds = plan.patience ? plan.patience : 60,
                               .is_group_chief = plan.is_group_chief);
  trial_built(&r.t);
  return r;
}

static void replica_close(replica_t* r) {
  rn_supervisor_destroy(r->supervisor);
  rn_saver_destroy(r->saver);
  trial_close(&r->t);
}

static bool replica_step(replica_t* r, float x) {
  TF_Output input = rn_output_of(r->x);
  TF_Tensor* value = tensor_floats((const float[]){x, 2 * x}, 2, 0);
  const TF_Operation* target = rn_operation_of(r->train);
  bool good =
      rn_supervisor_run(r->supervisor, &input, &value, 1, NULL, NULL, 0, &target, 1, r->t.status);
  TF_DeleteTensor(value);
  return good;
}

static void replica_must(replica_t* r, bool good) {
  cr_assert(good, "task %d: %s", r->task, TF_Message(r->t.status));
}

// w and the global step, in one look.
static void replica_look(replica_t* r, float w[2], int64_t* step) {
  TF_Output outputs[2] = {rn_output_of(r->w->value), rn_output_of(rn_global_step(r->t.s)->value)};
  TF_Tensor* values[2];
  replica_must(
      r, rn_supervisor_run(r->supervisor, NULL, NULL, 0, outputs, values, 2, NULL, 0, r->t.status));
  memcpy(w, TF_TensorData(values[0]), 2 * sizeof *w);
  *step = *(int64_t*)TF_TensorData(values[1]);
  TF_DeleteTensor(values[0]);
  TF_DeleteTensor(values[1]);
}

// Steps of one replica in a thread of its own.
typedef struct runner_t {
  pthread_t thread;
  replica_t* replica;
  _Atomic int64_t last, seen;
  float x;
  int steps;
} runner_t;

static void* run_replica(void* arg) {
  runner_t* runner = arg;
  while (rn_supervisor_step(runner->replica->supervisor) < runner->last) {
    replica_must(runner->replica, replica_step(runner->replica, runner->x));
    runner->steps++;
    runner->seen = rn_supervisor_step(runner->replica->supervisor);
  }
  replica_must(runner->replica,
               rn_supervisor_finish(runner->replica->supervisor, runner->replica->t.status));
  return NULL;
}

static void run_all(replica_t* replicas, int count, int64_t last, float x, int* out_steps) {
  runner_t runners[MOST];
  *out_steps = 0;
  for (int i = 0; i < count; ++i) {
    runners[i] = (runner_t){.replica = &replicas[i], .last = last, .x = x};
    pthread_create(&runners[i].thread, NULL, run_replica, &runners[i]);
  }
  for (int i = 0; i < count; ++i) {
    pthread_join(runners[i].thread, NULL);
    *out_steps += runners[i].steps;
  }
}

CLUSTER_TEST(asynchronous) {
  cluster_t c = cluster_open(2);
  replica_t r[2] = {replica_open(&c, 0, (plan_t){0}), replica_open(&c, 1, (plan_t){0})};
  int steps;
  run_all(r, 2, 40, 1, &steps);
  float w[2];
  int64_t step;
  replica_look(&r[1], w, &step);
  cr_expect_eq(step, steps, "%d steps were run, %d counted", steps, (int)step);
  cr_expect_eq(w[0], -0.125f * (float)steps);
  cr_expect_eq(w[1], -0.25f * (float)steps);
  for (int i = 0; i < 2; ++i) replica_close(&r[i]);
  cluster_close(&c);
}

CLUSTER_TEST(synchronous) {
  cluster_t c = cluster_open(3);
  replica_t r[3];
  for (int i = 0; i < 3; ++i) r[i] = replica_open(&c, i, (plan_t){.replicas = 3});
  int steps;
  run_all(r, 3, 30, 1, &steps);
  float w[2];
  int64_t step;
  replica_look(&r[0], w, &step);
  // An update is the mean of three equal gradients, and nothing else changes w.
  cr_expect(step >= 30);
  cr_expect_eq(w[0], -0.125f * (float)step, "%f after %d steps", w[0], (int)step);
  cr_expect_eq(w[1], -0.25f * (float)step);
  for (int i = 0; i < 3; ++i) replica_close(&r[i]);
  cluster_close(&c);
}

// Two of three count; the third comes late, and its gradient is dropped.
CLUSTER_TEST(backups) {
  cluster_t c = cluster_open(3);
  plan_t plan = {.replicas = 2, .total = 3};
  replica_t r[3];
  for (int i = 0; i < 3; ++i) r[i] = replica_open(&c, i, plan);
  replica_must(&r[0], rn_supervisor_start(r[0].supervisor, r[0].t.status));
  replica_must(&r[2], rn_supervisor_start(r[2].supervisor, r[2].t.status));  // of step 0
  int steps;
  run_all(r, 2, 10, 1, &steps);
  replica_must(&r[2], replica_step(&r[2], 1e6f));  // with the local step of then
  run_all(r, 2, 20, 1, &steps);
  float w[2];
  int64_t step;
  replica_look(&r[0], w, &step);
  cr_expect(step >= 20);
  cr_expect_eq(w[0], -0.125f * (float)step, "%f after %d steps", w[0], (int)step);
  for (int i = 0; i < 3; ++i) replica_close(&r[i]);
  cluster_close(&c);
}

// Two groups of two: synchronous within, asynchronous between.
CLUSTER_TEST(groups) {
  cluster_t c = cluster_open(4);
  replica_t r[4];
  for (int i = 0; i < 4; ++i)
    r[i] = replica_open(
        &c, i,
        (plan_t){.replicas = 2, .group = i < 2 ? "first" : "second", .is_group_chief = i == 2});
  int steps;
  run_all(r, 4, 40, 1, &steps);
  float w[2];
  int64_t step;
  replica_look(&r[3], w, &step);
  cr_expect(step >= 40);
  cr_expect_eq(w[0], -0.125f * (float)step, "%f after %d steps", w[0], (int)step);
  for (int i = 0; i < 4; ++i) replica_close(&r[i]);
  cluster_close(&c);
}

// What a server has received and sent so far, as its page says.
static double traffic_of(const cluster_t* c, const char* job, int task) {
  const char* address = rn_cluster_address(c->cluster, job, task);
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  to.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  cr_assert_eq(connect(fd, (struct sockaddr*)&to, sizeof to), 0);
  static const char ask[] = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  cr_assert_eq(write(fd, ask, sizeof ask - 1), (ssize_t)sizeof ask - 1);
  static char page[1 << 16];
  size_t size = 0;
  for (ssize_t got; (got = read(fd, page + size, sizeof page - 1 - size)) > 0;) size += (size_t)got;
  page[size] = 0;
  close(fd);
  // "runnel_received_bytes_total 7", "runnel_peer_sent_bytes_total{task=…} 7" and the like.
  double sum = 0;
  int found = 0;
  for (char* line = strtok(page, "\n"); line; line = strtok(NULL, "\n")) {
    bool counts = strstr(line, "received_bytes_total") || strstr(line, "sent_bytes_total");
    if (line[0] == '#' || !counts) continue;
    sum += atof(strrchr(line, ' '));
    found++;
  }
  cr_assert(found >= 2, "no counts on the page");
  return sum;
}

// A step moves the rows that it reads and their gradients, whatever the table's size.
static void train_on_a_table(bool is_sync) {
  // Parts below what tasks of one machine lend each other, which is not counted.
  enum { ROWS = 12000, DEPTH = 16, PARTS = 4, IDS = 64, STEPS = 20 };
  cluster_t c = cluster_open(1);
  trial_t t = trial_open();
  rn_scope_t* s = t.s;
  rn_spread_variables(s, .tasks = 2, .worker_device = "/job:worker/task:0");
  const rn_var_t* step = rn_global_step(s);
  const rn_var_t* parts[PARTS];
  rn_partitioned_variable(s, "table", ROWS, DEPTH, rn_init_ones(), PARTS, parts);
  int32_t picks[IDS];
  for (int i = 0; i < IDS; ++i) picks[i] = i * 301 % ROWS;
  rn_edge_t ids = rn_const_int32_list(s, picks, IDS);
  rn_edge_t rows = rn_embedding_lookup(s, parts, PARTS, ids, false);
  rn_edge_t loss = rn_Sum(s, rn_Square(s, rows), rn_const_int32_list(s, (int[]){0, 1}, 2));
  rn_optimizer_t descent = rn_gradient_descent(.learning_rate = 0.25f);
  rn_sync_replicas_t sync = {0};
  rn_node_t* train = NULL;
  if (is_sync && rn_sync_minimize(s, descent, loss, &sync, .replicas = 1))
    train = sync.train;
  else
    train = rn_minimize(s, descent, loss, .global_step = step);
  rn_supervisor_t* v = rn_supervisor(s, .target = c.targets[0], .sync = is_sync ? &sync : NULL);
  trial_built(&t);
  const TF_Operation* target = rn_operation_of(train);
  TF_Output output = rn_output_of(loss);
  TF_Tensor* value = NULL;
  double before = 0, last = 0;
  for (int i = 0; i < STEPS + 1; ++i) {
    cr_assert(rn_supervisor_run(v, NULL, NULL, 0, &output, &value, 1, &target, 1, t.status), "%s",
              TF_Message(t.status));
    last = *(float*)TF_TensorData(value);
    TF_DeleteTensor(value);
    if (i == 0) before = traffic_of(&c, "ps", 0) + traffic_of(&c, "ps", 1);  // all is set up
  }
  double bytes = (traffic_of(&c, "ps", 0) + traffic_of(&c, "ps", 1) - before) / STEPS;
  // Rows there and back with their numbers, and what calls cost; the table is 768,000 bytes.
  cr_expect(bytes < 3 * IDS * DEPTH * 4 + 16384, "%.0f bytes a step", bytes);
  cr_expect(bytes > 2 * IDS * DEPTH * 4, "%.0f bytes a step", bytes);
  cr_expect(last < 1e-3, "the loss is %g", last);
  rn_supervisor_destroy(v);
  trial_close(&t);
  cluster_close(&c);
}

CLUSTER_TEST(tables_cost_their_rows) { train_on_a_table(false); }
CLUSTER_TEST(tables_cost_their_rows_synchronous) { train_on_a_table(true); }

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

CLUSTER_TEST(waiting_for_the_chief) {
  cluster_t c = cluster_open(2);
  replica_t r = replica_open(&c, 1, (plan_t){.patience = 1.5});
  double start = seconds();
  cr_expect(!replica_step(&r, 1));
  double waited = seconds() - start;
  cr_expect(waited > 1.4 && waited < 5, "%.2f s", waited);
  cr_expect_eq(TF_GetCode(r.t.status), TF_DEADLINE_EXCEEDED, "%s", TF_Message(r.t.status));
  cr_expect(strstr(TF_Message(r.t.status), "global_step, w"), "%s", TF_Message(r.t.status));
  replica_close(&r);
  // A task that is not there is named.
  TF_DeleteServer(c.ps[1]);
  c.ps[1] = NULL;
  r = replica_open(&c, 1, (plan_t){.patience = 2});
  cr_expect(!replica_step(&r, 1));
  cr_expect_eq(TF_GetCode(r.t.status), TF_DEADLINE_EXCEEDED, "%s", TF_Message(r.t.status));
  cr_expect(strstr(TF_Message(r.t.status), "/job:ps/replica:0/task:1"), "%s",
            TF_Message(r.t.status));
  replica_close(&r);
  cluster_close(&c);
}

static void make_folder(char* out, size_t size) {
  snprintf(out, size, "%s/cluster_test_XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  cr_assert(mkdtemp(out));
}

static void remove_folder(const char* folder) {
  char command[256];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  cr_expect_eq(system(command), 0);
}

// A parameter server goes and comes back empty: the same supervisors go on from the checkpoint.
static void lose_a_server(plan_t plan) {
  char folder[128];
  make_folder(folder, sizeof folder);
  plan.directory = folder;
  plan.save_steps = 1;
  cluster_t c = cluster_open(2);
  replica_t r[2] = {replica_open(&c, 0, plan), replica_open(&c, 1, plan)};
  runner_t runners[2];
  for (int i = 0; i < 2; ++i) {
    runners[i] = (runner_t){.replica = &r[i], .last = INT64_MAX, .x = 1};
    pthread_create(&runners[i].thread, NULL, run_replica, &runners[i]);
  }
  while (runners[0].seen < 20 || runners[1].seen < 20) usleep(1000);
  TF_DeleteServer(c.ps[1]);  // w is there
  usleep(300000);
  int64_t before = runners[0].seen;
  c.ps[1] = serve(&c, "ps", 1);
  double start = seconds();
  while (runners[0].seen < before + 20) usleep(1000);
  double took = seconds() - start;
  for (int i = 0; i < 2; ++i) runners[i].last = runners[0].seen + 10;
  for (int i = 0; i < 2; ++i) pthread_join(runners[i].thread, NULL);
  float w[2];
  int64_t step;
  replica_look(&r[0], w, &step);
  cr_expect(step >= before + 20);
  // Whole updates. Values and step are saved while others train, and may differ by a step of each.
  cr_expect(fabsf(w[0] + 0.125f * (float)step) <= 0.25f, "%f after %d steps", w[0], (int)step);
  cr_expect_eq(w[1], 2 * w[0]);
  for (int i = 0; i < 2; ++i)
    cr_expect(rn_supervisor_recoveries(r[i].supervisor) >= 1, "task %d never noticed", i);
  cr_expect(took < 60, "%.1f s", took);
  for (int i = 0; i < 2; ++i) replica_close(&r[i]);
  cluster_close(&c);
  remove_folder(folder);
}

CLUSTER_TEST(a_lost_server_asynchronous) { lose_a_server((plan_t){0}); }
CLUSTER_TEST(a_lost_server_synchronous) { lose_a_server((plan_t){.replicas = 2}); }

// A worker's server goes: others do not notice, and it goes on where they are.
CLUSTER_TEST(a_lost_worker) {
  char folder[128];
  make_folder(folder, sizeof folder);
  plan_t plan = {.directory = folder};
  cluster_t c = cluster_open(2);
  replica_t r[2] = {replica_open(&c, 0, plan), replica_open(&c, 1, plan)};
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 2; ++k) replica_must(&r[k], replica_step(&r[k], 1));
  TF_DeleteServer(c.workers[1]);
  c.workers[1] = NULL;
  for (int i = 0; i < 4; ++i) replica_must(&r[0], replica_step(&r[0], 1));
  c.workers[1] = serve(&c, "worker", 1);
  for (int i = 0; i < 4; ++i) replica_must(&r[1], replica_step(&r[1], 1));
  float w[2];
  int64_t step;
  replica_look(&r[0], w, &step);
  cr_expect_eq(step, 16);
  cr_expect_eq(w[0], -0.125f * 16);
  cr_expect_eq(rn_supervisor_recoveries(r[0].supervisor), 0);
  cr_expect_eq(rn_supervisor_recoveries(r[1].supervisor), 1);
  // The chief's, too: nothing is restored, for nothing was lost.
  TF_DeleteServer(c.workers[0]);
  c.workers[0] = serve(&c, "worker", 0);
  replica_must(&r[0], replica_step(&r[0], 1));
  replica_look(&r[0], w, &step);
  cr_expect_eq(step, 17);
  cr_expect_eq(w[0], -0.125f * 17);
  for (int i = 0; i < 2; ++i) replica_close(&r[i]);
  cluster_close(&c);
  remove_folder(folder);
}

// A process that starts anew takes up its checkpoint; one without a checkpoint begins at 0.
CLUSTER_TEST(beginning_and_going_on) {
  char folder[128];
  make_folder(folder, sizeof folder);
  cluster_t c = cluster_open(1);
  for (int turn = 0; turn < 2; ++turn) {
    replica_t r = replica_open(&c, 0, (plan_t){.directory = folder});
    for (int i = 0; i < 5; ++i) replica_must(&r, replica_step(&r, 1));
    replica_must(&r, rn_supervisor_finish(r.supervisor, r.t.status));
    replica_close(&r);
    if (turn) break;
    for (int i = 0; i < 2; ++i) {  // all state is gone
      TF_DeleteServer(c.ps[i]);
      c.ps[i] = serve(&c, "ps", i);
    }
  }
  replica_t last = replica_open(&c, 0, (plan_t){.directory = folder});
  float w[2];
  int64_t step;
  replica_look(&last, w, &step);
  cr_expect_eq(step, 10);
  cr_expect_eq(w[1], -0.25f * 10);
  replica_close(&last);
  replica_t fresh = replica_open(&c, 0, (plan_t){0});
  replica_look(&fresh, w, &step);
  cr_expect_eq(step, 0);
  cr_expect_eq(w[1], 0);
  replica_close(&fresh);
  cluster_close(&c);
  remove_folder(folder);
}

static void count_session(void* arg, rn_supervisor_t* supervisor, TF_Session* session) {
  ((int*)arg)[0] += session == rn_supervisor_session(supervisor);
}
static void count_step(void* arg, rn_supervisor_t* supervisor, int64_t step) {
  ((int*)arg)[1] += step == rn_supervisor_step(supervisor);
}
static bool set_w(void* arg, TF_Session* session, TF_Status* status) {
  const TF_Operation* op = arg;
  TF_SessionRun(session, NULL, NULL, NULL, 0, NULL, NULL, 0, &op, 1, NULL, status);
  return TF_GetCode(status) == TF_OK;
}

// Without a cluster: the same program on one machine.
CLUSTER_TEST(in_this_process) {
  trial_t t = trial_open();
  rn_spread_variables(t.s, .tasks = 0, .worker_device = "");
  const rn_var_t* w = vector(t.s, "w", 2);
  rn_edge_t five = rn_const(t.s, TF_FLOAT, (const int64_t[]){2}, 1, (const float[]){5, 5});
  rn_node_t* assign = rn_var_assign(t.s, w, five);
  int counts[2] = {0};
  rn_hook_t hook = {count_session, count_step, counts};
  char folder[128];
  make_folder(folder, sizeof folder);
  rn_summary_writer_t* log = rn_summary_writer_create(folder, NULL, t.status);
  cr_assert(log, "%s", TF_Message(t.status));
  rn_supervisor_t* v = rn_supervisor(t.s, .init = set_w, .init_arg = rn_operation_of(assign),
                                     .hooks = &hook, .hook_count = 1, .log = log, .log_steps = 1);
  trial_built(&t);
  TF_Output output = rn_output_of(w->value);
  TF_Tensor* value = NULL;
  for (int i = 0; i < 3; ++i) {
    cr_assert(rn_supervisor_run(v, NULL, NULL, 0, &output, &value, 1, NULL, 0, t.status), "%s",
              TF_Message(t.status));
    cr_expect_eq(((float*)TF_TensorData(value))[1], 5);
    TF_DeleteTensor(value);
  }
  cr_expect_eq(rn_supervisor_step(v), 3);
  cr_expect_eq(counts[0], 1);
  cr_expect_eq(counts[1], 3);
  rn_supervisor_destroy(v);
  rn_summary_writer_close(log, t.status);
  char command[256];
  snprintf(command, sizeof command, "grep -q global_step/sec '%s'/events.*", folder);
  cr_expect_eq(system(command), 0, "nothing was logged");
  remove_folder(folder);
  rn_supervisor_destroy(NULL);
  cr_expect(rn_supervisor_should_stop(NULL));
  trial_close(&t);
}
