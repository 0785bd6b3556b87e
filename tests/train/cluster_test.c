// Replicas that train on a cluster: asynchronous, synchronous, with backups, in groups; and what a
// step on a table moves over the network. The servers are in this process, on loopback.
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster_util.h"

CLUSTER_TEST(cluster, asynchronous) {
  cluster_t c = cluster_open(2);
  replica_t r[2] = {replica_open(&c, 0, (plan_t){0}), replica_open(&c, 1, (plan_t){0})};
  int steps = run_all(r, 2, 40, 1);
  float w[2];
  int64_t step;
  replica_look(&r[1], w, &step);
  cr_expect_eq(step, steps, "%d steps were run, %d counted", steps, (int)step);
  cr_expect_eq(w[0], -0.125f * (float)steps);
  cr_expect_eq(w[1], -0.25f * (float)steps);
  for (int i = 0; i < 2; ++i) replica_close(&r[i]);
  cluster_close(&c);
}

CLUSTER_TEST(cluster, synchronous) {
  cluster_t c = cluster_open(3);
  replica_t r[3];
  for (int i = 0; i < 3; ++i) r[i] = replica_open(&c, i, (plan_t){.replicas = 3});
  run_all(r, 3, 30, 1);
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
CLUSTER_TEST(cluster, backups) {
  cluster_t c = cluster_open(3);
  plan_t plan = {.replicas = 2, .total = 3};
  replica_t r[3];
  for (int i = 0; i < 3; ++i) r[i] = replica_open(&c, i, plan);
  replica_must(&r[0], rn_supervisor_start(r[0].supervisor, r[0].t.status));
  replica_must(&r[2], rn_supervisor_start(r[2].supervisor, r[2].t.status));  // of step 0
  run_all(r, 2, 10, 1);
  replica_must(&r[2], replica_step(&r[2], 1e6f));  // with the local step of then
  run_all(r, 2, 20, 1);
  float w[2];
  int64_t step;
  replica_look(&r[0], w, &step);
  cr_expect(step >= 20);
  cr_expect_eq(w[0], -0.125f * (float)step, "%f after %d steps", w[0], (int)step);
  for (int i = 0; i < 3; ++i) replica_close(&r[i]);
  cluster_close(&c);
}

// Two groups of two: synchronous within, asynchronous between.
CLUSTER_TEST(cluster, groups) {
  cluster_t c = cluster_open(4);
  replica_t r[4];
  for (int i = 0; i < 4; ++i)
    r[i] = replica_open(
        &c, i,
        (plan_t){.replicas = 2, .group = i < 2 ? "first" : "second", .is_group_chief = i == 2});
  run_all(r, 4, 40, 1);
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

CLUSTER_TEST(cluster, tables_cost_their_rows) { train_on_a_table(false); }
CLUSTER_TEST(cluster, tables_cost_their_rows_synchronous) { train_on_a_table(true); }
