// See cluster_util.h.
#include "cluster_util.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "../support/ports.h"

const rn_var_t* zero_vector(rn_scope_t* s, const char* name, int64_t size) {
  return rn_get_variable(s, name, &size, 1, .initializer = rn_init_zeros());
}

TF_Server* serve(cluster_t* c, const char* job, int task) {
  TF_Server* server = rn_cluster_server(c->cluster, job, task, c->status);
  cr_assert(server, "%s", TF_Message(c->status));
  TF_ServerStart(server, c->status);
  cr_assert_eq(TF_GetCode(c->status), TF_OK, "%s", TF_Message(c->status));
  return server;
}

cluster_t cluster_open(int workers) {
  cluster_t c = {.status = TF_NewStatus(), .worker_count = workers};
  int ports[2 + MOST_WORKERS];
  for (int i = 0; i < 2 + workers; ++i) cr_assert((ports[i] = free_port()) > 0);
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

void cluster_close(cluster_t* c) {
  for (int i = 0; i < c->worker_count; ++i) TF_DeleteServer(c->workers[i]);
  for (int i = 0; i < 2; ++i) TF_DeleteServer(c->ps[i]);
  rn_cluster_destroy(c->cluster);
  TF_DeleteStatus(c->status);
}

replica_t replica_open(const cluster_t* c, int task, plan_t plan) {
  replica_t r = {.t = trial_open(), .task = task};
  char device[64];
  snprintf(device, sizeof device, "/job:worker/task:%d", task);
  rn_scope_t* s = r.t.s;
  rn_spread_variables(s, .tasks = 2, .worker_device = device);
  const rn_var_t* step = rn_global_step(s);
  r.w = zero_vector(s, "w", 2);
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

void replica_close(replica_t* r) {
  rn_supervisor_destroy(r->supervisor);
  rn_saver_destroy(r->saver);
  trial_close(&r->t);
}

bool replica_step(replica_t* r, float x) {
  TF_Output input = rn_output_of(r->x);
  TF_Tensor* value = tensor_floats((const float[]){x, 2 * x}, 2, 0);
  const TF_Operation* target = rn_operation_of(r->train);
  bool good =
      rn_supervisor_run(r->supervisor, &input, &value, 1, NULL, NULL, 0, &target, 1, r->t.status);
  TF_DeleteTensor(value);
  return good;
}

void replica_must(replica_t* r, bool good) {
  cr_assert(good, "task %d: %s", r->task, TF_Message(r->t.status));
}

void replica_look(replica_t* r, float w[2], int64_t* step) {
  TF_Output outputs[2] = {rn_output_of(r->w->value), rn_output_of(rn_global_step(r->t.s)->value)};
  TF_Tensor* values[2];
  replica_must(
      r, rn_supervisor_run(r->supervisor, NULL, NULL, 0, outputs, values, 2, NULL, 0, r->t.status));
  memcpy(w, TF_TensorData(values[0]), 2 * sizeof *w);
  *step = *(int64_t*)TF_TensorData(values[1]);
  TF_DeleteTensor(values[0]);
  TF_DeleteTensor(values[1]);
}

void* run_replica(void* arg) {
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

int run_all(replica_t* replicas, int count, int64_t last, float x) {
  runner_t runners[MOST_WORKERS];
  int steps = 0;
  for (int i = 0; i < count; ++i) {
    runners[i] = (runner_t){.replica = &replicas[i], .last = last, .x = x};
    pthread_create(&runners[i].thread, NULL, run_replica, &runners[i]);
  }
  for (int i = 0; i < count; ++i) {
    pthread_join(runners[i].thread, NULL);
    steps += runners[i].steps;
  }
  return steps;
}
