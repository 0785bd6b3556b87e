// A scenario for training on clusters: its builders, and a supervisor in this process.
#include "sweep.h"

static bool read_cluster(ft_t* t) {
  rn_cluster_t* cluster = rn_cluster_parse("ps=a:1|b:2,worker=c:3", t->status);
  if (cluster) FT_CHECK(t, rn_cluster_count(cluster, "ps") == 2);
  rn_cluster_destroy(cluster);
  return ft_ok(t);
}

typedef struct replica_t {
  rn_sync_replicas_t sync;
  rn_node_t* train;
  rn_supervisor_t* supervisor;
} replica_t;

// Replicas that wait for each other are built, and one that does not is run.
static bool build(ft_t* t, replica_t* r) {
  rn_scope_destroy(t->scope);
  t->scope = rn_scope_create(rn_graph_of(t->graph));
  if (!t->scope) return false;
  rn_scope_t* s = rn_variable_scope(t->scope, "model", .reuse = RN_REUSE_AUTO);
  if (s) {
    const int64_t dims[2] = {4, 2};
    rn_spread_variables(s, .tasks = 1, .device = "/job:localhost", .worker_device = "");
    const rn_var_t* w = rn_get_variable(s, "w", dims, 2, .initializer = rn_init_zeros());
    rn_edge_t rows = rn_var_gather(s, w, rn_const_int32_list(s, (int[]){1, 3}, 2));
    rn_edge_t loss = rn_Sum(s, rows, rn_const_int32_list(s, (int[]){0, 1}, 2));
    rn_optimizer_t descent = rn_gradient_descent(.learning_rate = 1);
    rn_sync_minimize(s, descent, loss, &r->sync, .replicas = 2, .total = 3, .group = "group");
    rn_spread_variables(s, .tasks = 0, .worker_device = "");
    const rn_var_t* v = rn_get_variable(s, "v", NULL, 0, .initializer = rn_init_zeros());
    r->train = rn_minimize(s, descent, v ? v->value : RN_NO_EDGE, .variables = &v,
                           .variable_count = 1, .global_step = NULL);
  }
  TF_SetStatus(t->status, (TF_Code)rn_scope_code(t->scope), rn_scope_message(t->scope));
  rn_scope_destroy(s);
  return ft_ok(t);
}

static bool supervise(ft_t* t, replica_t* r) {
  rn_scope_t* s = rn_scope_create(rn_graph_of(t->graph));
  if (!s) return false;
  r->supervisor = rn_supervisor(s, .patience_seconds = 10);
  TF_SetStatus(t->status, (TF_Code)rn_scope_code(s), rn_scope_message(s));
  rn_scope_destroy(s);
  return ft_ok(t);
}

static bool step(ft_t* t, replica_t* r) {
  const TF_Operation* target = rn_operation_of(r->train);
  return rn_supervisor_run(r->supervisor, NULL, NULL, 0, NULL, NULL, 0, &target, 1, t->status);
}

static void run(ft_t* t, replica_t* r) {
  FT(ft_start(t));
  FT(read_cluster(t));
  FT(build(t, r));
  FT(supervise(t, r));
  FT(step(t, r));
  FT(step(t, r));
  FT_CHECK(t, rn_supervisor_step(r->supervisor) == 0);  // nothing counts the global step
}

void scenario_replicas(ft_t* t) {
  replica_t r = {0};
  run(t, &r);
  rn_supervisor_destroy(r.supervisor);
}
