// Where variables go on a cluster, and how a cluster is written down (cluster_spec.c).
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_util.h"

static const char* device_of(rn_edge_t edge) { return TF_OperationDevice(rn_output_of(edge).oper); }

static void expect_device(const rn_var_t* variable, const char* device) {
  cr_assert(variable, "no variable");
  cr_expect_str_eq(device_of(variable->handle), device, "%s is at %s, not %s", variable->name,
                   device_of(variable->handle), device);
}

CLUSTER_TEST(device_setter, variables_in_turn) {
  trial_t t = trial_open();
  rn_spread_variables(t.s, .tasks = 2, .worker_device = "/job:worker/task:3");
  const rn_var_t* step = rn_global_step(t.s);
  const rn_var_t* w = zero_vector(t.s, "w", 4);
  rn_scope_t* inner = rn_variable_scope(t.s, "inner");
  const rn_var_t* b = zero_vector(inner, "b", 4);
  rn_scope_set_device(inner, "/job:ps/task:1");
  const rn_var_t* placed = zero_vector(inner, "placed", 4);
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

CLUSTER_TEST(device_setter, variables_by_load) {
  trial_t t = trial_open();
  rn_spread_variables(t.s, .tasks = 3, .spread = RN_SPREAD_BY_LOAD);
  expect_device(zero_vector(t.s, "large", 1000), "/job:ps/task:0");
  expect_device(zero_vector(t.s, "middle", 500), "/job:ps/task:1");
  expect_device(zero_vector(t.s, "small", 100), "/job:ps/task:2");
  expect_device(zero_vector(t.s, "more", 300), "/job:ps/task:2");
  expect_device(zero_vector(t.s, "last", 700), "/job:ps/task:2");
  expect_device(zero_vector(t.s, "then", 1), "/job:ps/task:1");
  trial_close(&t);
}

static int by_name(void* arg, const char* name, int dtype, const int64_t* dims, int rank) {
  *(int*)arg += dtype == TF_FLOAT && rank == 1 && dims[0] == 4;
  return name[0] == 'a' ? 1 : name[0] == 'z' ? 9 : -1;
}

CLUSTER_TEST(device_setter, variables_as_the_client_says) {
  trial_t t = trial_open();
  int asked = 0;
  rn_spread_variables(t.s, .tasks = 2, .device = "/job:store", .choose = by_name, .arg = &asked);
  expect_device(zero_vector(t.s, "a", 4), "/job:store/task:1");
  expect_device(zero_vector(t.s, "b", 4), "/job:store/task:0");
  expect_device(zero_vector(t.s, "c", 4), "/job:store/task:1");
  cr_expect_eq(asked, 3);
  cr_expect(!zero_vector(t.s, "z", 4));
  cr_expect(strstr(rn_scope_message(t.s), "task 9"), "%s", rn_scope_message(t.s));
  trial_close(&t);
}

// A table over the servers: rows are looked up where they are, and its gradient stays rows.
CLUSTER_TEST(device_setter, gradients_of_tables_stay_sparse) {
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

CLUSTER_TEST(cluster_spec, clusters_in_words) {
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
