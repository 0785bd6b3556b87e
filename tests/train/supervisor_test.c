// Supervisors: waiting for the chief, going on after a server is lost, checkpoints, hooks. The
// servers are in this process, on loopback.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cluster_util.h"

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

CLUSTER_TEST(supervisor, waiting_for_the_chief) {
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
  snprintf(out, size, "%s/supervisor_test_XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
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

CLUSTER_TEST(supervisor, a_lost_server_asynchronous) { lose_a_server((plan_t){0}); }
CLUSTER_TEST(supervisor, a_lost_server_synchronous) { lose_a_server((plan_t){.replicas = 2}); }

// A worker's server goes: others do not notice, and it goes on where they are.
CLUSTER_TEST(supervisor, a_lost_worker) {
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
CLUSTER_TEST(supervisor, beginning_and_going_on) {
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
CLUSTER_TEST(supervisor, in_this_process) {
  trial_t t = trial_open();
  rn_spread_variables(t.s, .tasks = 0, .worker_device = "");
  const rn_var_t* w = zero_vector(t.s, "w", 2);
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
