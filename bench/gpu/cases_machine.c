// Large tables, and what the card itself can do.
#include <stdio.h>

#include "gpu_bench.h"

enum { TABLES = 26, COLUMNS = 64, DENSE = 13 };

// A recommender: 26 tables of 100,000 rows of 64 numbers, one row of each per example. A step
// updates only the rows that it has read.
static void dlrm(bench_t* b) {
  rn_scope_t* s = b->s;
  const int tables = (int)bench_size(b, TABLES, 3);
  const int64_t batch = bench_batch(b, 4096, 8), rows = bench_size(b, 100000, 20);
  network_t n = bench_network(b);
  n.x = bench_numbers(b, "x", (const int64_t[]){batch, DENSE}, 2);
  rn_edge_t ids = bench_ids(b, "ids", (const int64_t[]){batch, tables}, 2, rows);
  rn_edges_t columns = rn_Unpack(s, ids, tables, .axis = 1);
  network_dense(&n, bench_size(b, 512, 16), rn_relu);
  network_dense(&n, COLUMNS, rn_relu);
  rn_edge_t parts[TABLES + 1] = {n.x};
  for (int i = 0; i < tables; ++i) {
    char name[16];
    snprintf(name, sizeof name, "table%d", i);
    parts[i + 1] = rn_embedding(s, rn_edge_at(columns, i), rows, COLUMNS, .name = name,
                                .kernel_initializer = rn_init_normal(0, 0.1, 100 + i));
  }
  n.x = rn_ConcatV2(s, parts, tables + 1, rn_const_int32(s, 1));
  network_dense(&n, bench_size(b, 512, 16), rn_relu);
  network_dense(&n, bench_size(b, 256, 8), rn_relu);
  network_dense(&n, 1, NULL);
  rn_edge_t loss = rn_Mean(s, rn_Square(s, n.x), rn_const_int32_list(s, (int32_t[]){0, 1}, 2));
  bench_train(b, rn_gradient_descent(.learning_rate = b->is_tiny ? 0.01f : 0.1f), loss);
}

// The least that a step on the GPU can do.
static void null_step(bench_t* b) {
  const rn_var_t* v = rn_get_variable(b->s, "v", NULL, 0, .initializer = rn_init_zeros());
  if (v) b->step = rn_AssignAddVariableOp(b->s, v->handle, rn_const_float(b->s, 1));
}

static void matmul(bench_t* b) {
  const int64_t side = bench_size(b, 8192, 16), dims[] = {side, side};
  const rn_var_t* ones = NULL;
  if (b->dtype != TF_FLOAT)
    ones = rn_get_variable(b->s, "x", dims, 2, .dtype = b->dtype, .initializer = rn_init_ones());
  rn_edge_t x = ones ? ones->value : bench_numbers(b, "x", dims, 2);
  bench_infer(b, rn_MatMul(b->s, x, x));
  b->work = 2e-12 * (double)side * (double)side * (double)side;
}

static int64_t copied(const bench_t* b) { return bench_size(b, 64 << 20, 4096) / 4; }
static double in_gib(int64_t floats) { return (double)floats * 4 / (1 << 30); }

// A large array into the GPU's memory.
static void copy_in(bench_t* b) {
  b->fed_rank = 1;
  b->fed_dims[0] = copied(b);
  b->fed = rn_Placeholder(b->s, TF_FLOAT, .shape = RN_SHAPE(copied(b)));
  rn_edge_t first = rn_Slice(b->s, b->fed, rn_const_int32_list(b->s, (int32_t[]){0}, 1),
                             rn_const_int32_list(b->s, (int32_t[]){1}, 1));
  b->step = rn_Neg(b->s, first).node;
  b->work = in_gib(copied(b));
}

// The same, while the card computes: two clients, so that one step's copy and another's products
// can overlap. The products take about as long as the copy.
static void copy_beside(bench_t* b) {
  copy_in(b);
  const int64_t side = bench_size(b, 4096, 16), dims[] = {side, side};
  rn_edge_t x = bench_numbers(b, "x", dims, 2), y = x;
  for (int i = 0; i < 3; ++i) y = rn_MatMul(b->s, y, x);
  rn_node_t* both[2] = {b->step, y.node};
  b->step = rn_group(b->s, both, 2);
  b->has_two_clients = true;
}

// A large array out of it.
static void copy_out(bench_t* b) {
  const int64_t count = copied(b);
  b->fetched = bench_numbers(b, "x", &count, 1);
  b->work = in_gib(count);
}

// Elementwise ops that read and write much more than the card's caches hold.
static void elementwise(bench_t* b) {
  rn_scope_t* s = b->s;
  const int64_t count = bench_size(b, 256 << 20, 1000);
  rn_edge_t x = bench_numbers(b, "x", &count, 1), y = x;
  for (int i = 0; i < 4; ++i) {
    y = rn_AddV2(s, rn_Mul(s, y, rn_const_float(s, 0.5f)), rn_const_float(s, 0.25f));
    y = rn_Maximum(s, y, rn_const_float(s, -1));
  }
  b->step = y.node;
  b->work = (double)count * 8 / 1e12;
}

const bench_case_t bench_machine[] = {
    {"dlrm", dlrm, "ms", false},
    {"null_step", null_step, "ms", false},
    {"matmul", matmul, "TFLOP/s", true},
    {"copy_in", copy_in, "GiB/s", false},
    {"copy_out", copy_out, "GiB/s", false},
    {"copy_beside", copy_beside, "GiB/s", false},
    {"elementwise", elementwise, "TB/s", false},
    {0},
};
