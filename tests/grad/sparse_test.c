// Gradients that are IndexedSlices: which ones are, and that their sum equals the dense gradient.
#define GRAD_SUITE grad_sparse
#include <math.h>
#include <stdio.h>

#include "../support/status.h"
#include "base/env.h"
#include "differences.h"
#include "grad/grad.h"
#include "session/session.h"

typedef struct sparse_t {
  rn_graph_t* graph;
  rn_scope_t* s;
  int logged;
} sparse_t;

static sparse_t begin(void) {
  sparse_t t = {0};
  OK(rn_graph_create(rn_allocator_system(), &t.graph));
  t.s = rn_scope_create(t.graph);
  return t;
}

static void end(sparse_t* t) {
  rn_scope_destroy(t->s);
  rn_graph_release(t->graph);
}

static void count_line(void* arg, const char* line) {
  (void)line;
  ++*(int*)arg;
}

// A constant table of |rows| x 2: 1, 2, 3 …
static rn_edge_t table_of(rn_scope_t* s, int rows) {
  double values[64];
  int64_t dims[2] = {rows, 2};
  for (int i = 0; i < 2 * rows; ++i) values[i] = i + 1;
  return rn_const(s, RN_DOUBLE, dims, 2, values);
}

static rn_gradient_t gradient_of(sparse_t* t, rn_edge_t y, rn_edge_t x) {
  rn_gradient_t d;
  rn_gradient_options_t options = {.log = count_line, .log_arg = &t->logged};
  cr_assert(rn_gradients_of(t->s, &y, 1, &x, 1, &options, &d), "%s", rn_scope_message(t->s));
  return d;
}

static void fetch(sparse_t* t, rn_edge_t edge, double* out, int count) {
  rn_session_options_t options;
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = 1;
  rn_session_t* session = NULL;
  rn_status_t status =
      rn_session_create(t->graph, &options, rn_env_system(), rn_allocator_system(), &session);
  OK(status);
  rn_signature_t signature = {.fetches = &edge, .fetch_count = 1};
  rn_tensor_t value = {0};
  status = rn_session_run(session, &signature, NULL, &value, NULL);
  cr_assert(rn_ok(status), "%s", rn_status_message(status));
  cr_assert_eq(value.count, count, "%d elements, not %d", (int)value.count, count);
  for (int i = 0; i < count; ++i)
    out[i] = value.dtype == RN_DOUBLE  ? RN_DATA(&value, double)[i]
             : value.dtype == RN_INT64 ? (double)RN_DATA(&value, int64_t)[i]
                                       : RN_DATA(&value, int32_t)[i];
  rn_tensor_clear(&value);
  rn_session_destroy(session);
}

// The slices added up.
static void check_dense(sparse_t* t, rn_gradient_t d, int count, const double* wanted) {
  double found[64];
  fetch(t, rn_gradient_to_dense(t->s, d), found, count);
  for (int i = 0; i < count; ++i)
    cr_expect(fabs(found[i] - wanted[i]) < 1e-12, "[%d] is %g, not %g", i, found[i], wanted[i]);
}
#define DENSE(t, d, ...)                                                     \
  check_dense(t, d, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), \
              (const double[]){__VA_ARGS__})

#define SPARSE_TEST(name) Test(grad_sparse, name, .timeout = 60)

SPARSE_TEST(Gather) {
  sparse_t t = begin();
  rn_scope_t* s = t.s;
  rn_edge_t table = table_of(s, 3), y = rn_GatherV2(s, table, INTS(2, 0, 2), INT(0));
  rn_gradient_t d = gradient_of(&t, y, table);
  cr_assert(rn_gradient_is_slices(d));
  double indices[3], shape[2];
  fetch(&t, d.indices, indices, 3);
  cr_expect(indices[0] == 2 && indices[1] == 0 && indices[2] == 2);
  fetch(&t, d.dense_shape, shape, 2);
  cr_expect(shape[0] == 3 && shape[1] == 2);
  DENSE(&t, d, 1, 1, 0, 0, 2, 2);
  d = rn_gradient_unique(s, d);
  fetch(&t, d.indices, indices, 2);
  DENSE(&t, d, 1, 1, 0, 0, 2, 2);
  cr_expect_eq(t.logged, 0);
  end(&t);
}

SPARSE_TEST(MatrixOfIndices) {
  sparse_t t = begin();
  rn_scope_t* s = t.s;
  rn_edge_t table = table_of(s, 3), y = rn_Gather(s, table, MATRIX(2, 0, 1, 1, 1));
  rn_gradient_t d = gradient_of(&t, y, table);
  cr_assert(rn_gradient_is_slices(d));
  DENSE(&t, d, 1, 1, 3, 3, 0, 0);
  end(&t);
}

// Neg, a scalar factor, Identity and a new shape of the rows.
SPARSE_TEST(Kept) {
  sparse_t t = begin();
  rn_scope_t* s = t.s;
  rn_edge_t table = table_of(s, 3);
  rn_edge_t scaled = rn_Mul(s, rn_Neg(s, rn_Identity(s, table)), REAL(3));
  rn_edge_t cube = rn_Reshape(s, scaled, INTS(3, 1, 2));
  rn_gradient_t d = gradient_of(&t, rn_GatherV2(s, cube, INTS(1, 1), INT(0)), table);
  cr_assert(rn_gradient_is_slices(d));
  DENSE(&t, d, 0, 0, -6, -6, 0, 0);
  cr_expect_eq(t.logged, 0);
  end(&t);
}

// The factor's own gradient is a sum over the rows that took part.
SPARSE_TEST(Factor) {
  sparse_t t = begin();
  rn_scope_t* s = t.s;
  rn_edge_t table = table_of(s, 3), factor = REAL(3);
  rn_edge_t y = rn_GatherV2(s, rn_Mul(s, factor, table), INTS(2, 2), INT(0));
  rn_gradient_t d = gradient_of(&t, y, factor);
  cr_assert(!rn_gradient_is_slices(d));
  DENSE(&t, d, 2 * (5 + 6));
  end(&t);
}

SPARSE_TEST(Summed) {
  sparse_t t = begin();
  rn_scope_t* s = t.s;
  rn_edge_t table = table_of(s, 3), zero = INT(0);
  rn_edge_t y =
      rn_AddV2(s, rn_GatherV2(s, table, INTS(0, 1), zero), rn_GatherV2(s, table, INTS(1, 2), zero));
  rn_gradient_t d = gradient_of(&t, y, table);
  cr_assert(rn_gradient_is_slices(d));
  DENSE(&t, d, 1, 1, 2, 2, 1, 1);
  // With a dense one the sum is dense.
  d = gradient_of(&t, rn_AddV2(s, rn_Sum(s, y, INTS(0, 1)), rn_Sum(s, table, INTS(0, 1))), table);
  cr_assert(!rn_gradient_is_slices(d));
  DENSE(&t, d, 2, 2, 3, 3, 2, 2);
  end(&t);
}

SPARSE_TEST(AddedTables) {
  sparse_t t = begin();
  rn_scope_t* s = t.s;
  rn_edge_t a = table_of(s, 2), b = table_of(s, 2), three[3] = {a, b, a};
  rn_edge_t sum = rn_Sub(s, rn_AddN(s, three, 3), b);
  rn_gradient_t d = gradient_of(&t, rn_GatherV2(s, sum, INTS(1), INT(0)), b);
  cr_assert(rn_gradient_is_slices(d));
  DENSE(&t, d, 0, 0, 0, 0);
  d = gradient_of(&t, rn_GatherV2(s, sum, INTS(1), INT(0)), a);
  DENSE(&t, d, 0, 0, 2, 2);
  end(&t);
}

SPARSE_TEST(Joined) {
  sparse_t t = begin();
  rn_scope_t* s = t.s;
  rn_edge_t a = table_of(s, 2), b = table_of(s, 3), pair[2] = {a, b};
  rn_edge_t tall = rn_ConcatV2(s, pair, 2, INT(0));
  rn_edge_t y = rn_GatherV2(s, tall, INTS(4, 1, 2, 4), INT(0));
  rn_gradient_t d = gradient_of(&t, y, b);
  cr_assert(rn_gradient_is_slices(d));
  DENSE(&t, d, 1, 1, 0, 0, 2, 2);
  d = gradient_of(&t, y, a);
  DENSE(&t, d, 0, 0, 1, 1);
  rn_edge_t same[2] = {a, a}, wide = rn_ConcatV2(s, same, 2, INT(1));
  d = gradient_of(&t, rn_GatherV2(s, wide, INTS(1), INT(0)), a);
  cr_assert(rn_gradient_is_slices(d));
  DENSE(&t, d, 0, 0, 2, 2);
  end(&t);
}

SPARSE_TEST(Partitioned) {
  sparse_t t = begin();
  rn_scope_t* s = t.s;
  rn_edge_t table = table_of(s, 4);
  rn_edges_t parts = rn_DynamicPartition(s, table, INTS(1, 0, 1, 0), 2);
  rn_edge_t y = rn_GatherV2(s, rn_edge_at(parts, 1), INTS(1, 1), INT(0));
  rn_gradient_t d = gradient_of(&t, y, table);
  cr_assert(rn_gradient_is_slices(d));
  DENSE(&t, d, 0, 0, 0, 0, 2, 2, 0, 0);
  end(&t);
}

// Rows from two shards, put together by number: each shard's gradient is slices.
SPARSE_TEST(Shards) {
  sparse_t t = begin();
  rn_scope_t* s = t.s;
  rn_edge_t shards[2] = {table_of(s, 2), table_of(s, 2)}, ids = INTS(0, 3, 2, 1);
  rn_edge_t which = rn_FloorMod(s, ids, INT(2)), row = rn_FloorDiv(s, ids, INT(2));
  rn_edges_t rows = rn_DynamicPartition(s, row, which, 2);
  rn_edges_t places = rn_DynamicPartition(s, INTS(0, 1, 2, 3), which, 2);
  rn_edge_t found[2], at[2];
  for (int i = 0; i < 2; ++i) {
    found[i] = rn_GatherV2(s, shards[i], rn_edge_at(rows, i), INT(0));
    at[i] = rn_edge_at(places, i);
  }
  rn_edge_t y = rn_Mul(s, rn_DynamicStitch(s, at, 2, found, 2), table_of(s, 4));
  rn_gradient_t d = gradient_of(&t, y, shards[1]);
  cr_assert(rn_gradient_is_slices(d));
  DENSE(&t, d, 7, 8, 3, 4);
  cr_expect_eq(t.logged, 0);
  end(&t);
}

// An op that knows nothing of slices gets a dense gradient, and the log says so.
SPARSE_TEST(MadeDense) {
  sparse_t t = begin();
  rn_scope_t* s = t.s;
  rn_edge_t table = table_of(s, 3);
  rn_edge_t y = rn_GatherV2(s, rn_Square(s, table), INTS(1), INT(0));
  rn_gradient_t d = gradient_of(&t, y, table);
  cr_assert(!rn_gradient_is_slices(d));
  DENSE(&t, d, 0, 0, 6, 8, 0, 0);
  cr_expect_eq(t.logged, 1);
  end(&t);
}

// A branch of a conditional each way; one way only.
SPARSE_TEST(Conditional) {
  sparse_t t = begin();
  rn_scope_t* s = t.s;
  rn_edge_t table = table_of(s, 3), no = rn_Less(s, INT(1), INT(0));
  rn_Switch_out_t out = rn_Switch(s, table, no);
  rn_edge_t pair[2] = {rn_GatherV2(s, out.output_false, INTS(1), INT(0)),
                       rn_GatherV2(s, out.output_true, INTS(2), INT(0))};
  rn_edge_t y = rn_Merge(s, pair, 2).output;
  rn_gradient_t d = gradient_of(&t, y, table);
  cr_assert(rn_gradient_is_slices(d));
  DENSE(&t, d, 0, 0, 1, 1, 0, 0);
  pair[1] = rn_Mul(s, rn_Identity(s, rn_Switch(s, REAL(2), no).output_true), REAL(1));
  pair[1] = rn_Fill(s, INTS(1, 2), pair[1]);
  d = gradient_of(&t, rn_Merge(s, pair, 2).output, table);
  cr_assert(rn_gradient_is_slices(d));
  DENSE(&t, d, 0, 0, 1, 1, 0, 0);
  cr_expect_eq(t.logged, 0);
  end(&t);
}

// Rows of what was stitched go back to the parts as rows.
SPARSE_TEST(Stitched) {
  sparse_t t = begin();
  rn_scope_t* s = t.s;
  rn_edge_t tables[2] = {table_of(s, 3), table_of(s, 2)}, at[2] = {INTS(4, 0, 2), INTS(1, 3)};
  rn_edge_t whole = rn_DynamicStitch(s, at, 2, tables, 2);
  rn_edge_t y = rn_GatherV2(s, whole, INTS(4, 1, 2, 4), INT(0));
  rn_gradient_t d = gradient_of(&t, y, tables[0]);
  cr_assert(rn_gradient_is_slices(d));
  DENSE(&t, d, 2, 2, 0, 0, 1, 1);
  d = gradient_of(&t, y, tables[1]);
  cr_assert(rn_gradient_is_slices(d));
  DENSE(&t, d, 1, 1, 0, 0);
  cr_expect_eq(t.logged, 0);
  end(&t);
}

// One row of the new shape is two of the old; where it is half of one there are no slices.
SPARSE_TEST(Reshaped) {
  sparse_t t = begin();
  rn_scope_t* s = t.s;
  rn_edge_t table = table_of(s, 4), pairs = rn_Reshape(s, table, INTS(2, 2, 2));
  rn_gradient_t d = gradient_of(&t, rn_GatherV2(s, pairs, INTS(1, 1), INT(0)), table);
  cr_assert(rn_gradient_is_slices(d));
  DENSE(&t, d, 0, 0, 0, 0, 2, 2, 2, 2);
  cr_expect_eq(t.logged, 0);
  rn_edge_t halves = rn_Reshape(s, table, INTS(8, 1));
  d = gradient_of(&t, rn_GatherV2(s, halves, INTS(3), INT(0)), table);
  cr_assert(!rn_gradient_is_slices(d));
  DENSE(&t, d, 0, 0, 0, 1, 0, 0, 0, 0);
  end(&t);
}

// x = x * table[i], i from 0 to 2; the table is held, or handed on from iteration to iteration.
static rn_edge_t looked_up_in_loop(rn_scope_t* s, rn_edge_t table, bool is_handed_on) {
  rn_edge_t ones = rn_const(s, RN_DOUBLE, (const int64_t[]){2}, 1, (const double[]){1, 1});
  rn_edge_t start[3] = {INT(0), ones, table}, merges[3], in[3], outs[3];
  int count = is_handed_on ? 3 : 2;
  for (int i = 0; i < count; ++i) {
    rn_edge_t enter = rn_Enter(s, start[i], "lookup"), both[2] = {enter, enter};
    merges[i] = rn_Merge(s, both, 2).output;
  }
  in[2] = is_handed_on ? RN_NO_EDGE : rn_Enter(s, table, "lookup", .is_constant = true);
  rn_scope_add_control(s, merges[0].node);
  rn_edge_t cond = rn_LoopCond(s, rn_Less(s, merges[0], INT(2)));
  rn_scope_clear_controls(s);
  for (int i = 0; i < count; ++i) {
    rn_Switch_out_t both = rn_Switch(s, merges[i], cond);
    in[i] = both.output_true;
    outs[i] = rn_Exit(s, both.output_false);
  }
  rn_scope_add_control(s, in[0].node);
  rn_edge_t next[3] = {rn_AddV2(s, in[0], INT(1)),
                       rn_Mul(s, in[1], rn_GatherV2(s, in[2], in[0], INT(0))), in[2]};
  rn_scope_clear_controls(s);
  for (int i = 0; i < count; ++i) {
    rn_edge_t back = rn_NextIteration(s, next[i]);
    rn_status_t status = rn_graph_update_edge(rn_scope_graph(s), back, merges[i].node, 1);
    OK(status);
  }
  return outs[1];
}

// The gradients of one op wait for each other in the loop that runs backwards, indices too, which
// the forward loop made.
SPARSE_TEST(LoopedAndGated) {
  for (int is_handed_on = 0; is_handed_on < 2; ++is_handed_on) {
    sparse_t t = begin();
    rn_edge_t table = table_of(t.s, 4), y = looked_up_in_loop(t.s, table, is_handed_on);
    rn_gradient_t d;
    rn_gradient_options_t options = {.gate = RN_GATE_OP};
    cr_assert(rn_gradients_of(t.s, &y, 1, &table, 1, &options, &d), "%s", rn_scope_message(t.s));
    DENSE(&t, d, 3, 4, 1, 2, 0, 0, 0, 0);
    end(&t);
  }
}

SPARSE_TEST(Looped) {
  for (int is_handed_on = 0; is_handed_on < 2; ++is_handed_on) {
    sparse_t t = begin();
    rn_edge_t table = table_of(t.s, 4);
    rn_gradient_t d = gradient_of(&t, looked_up_in_loop(t.s, table, is_handed_on), table);
    cr_assert(rn_gradient_is_slices(d), "handed on: %d", is_handed_on);
    double indices[2];
    fetch(&t, d.indices, indices, 2);
    DENSE(&t, d, 3, 4, 1, 2, 0, 0, 0, 0);
    cr_expect_eq(t.logged, 0);
    end(&t);
  }
}
