// The reverse walk: which nodes it adds, and its messages if there is no gradient.
#include <criterion/criterion.h>

#include "../support/status.h"
#include "grad/grad.h"
#include "graph/graph.h"
#include "runnel/ops.h"

#define WALK_TEST(name) Test(grad_walk, name, .timeout = 60)

typedef struct walk_test_t {
  rn_graph_t* graph;
  rn_scope_t* s;
  size_t before;
} walk_test_t;

static walk_test_t open_graph(void) {
  walk_test_t t = {0};
  rn_status_t status = rn_graph_create(rn_allocator_system(), &t.graph);
  OK(status);
  t.s = rn_scope_create(t.graph);
  return t;
}

static void close_graph(walk_test_t* t) {
  rn_scope_destroy(t->s);
  rn_graph_release(t->graph);
}

static rn_status_t gradients(walk_test_t* t, rn_edge_t y, int x_count, const rn_edge_t* xs,
                             rn_edge_t* dxs) {
  cr_assert(rn_scope_ok(t->s), "%s", rn_scope_message(t->s));
  t->before = t->graph->nodes.count;
  return rn_add_gradients(t->graph, RN_STR(""), &y, 1, xs, x_count, NULL, dxs);
}

static void must(rn_status_t status) { cr_assert(rn_ok(status), "%s", rn_status_message(status)); }

// The ops that the last call added, in order.
static void check_added(const walk_test_t* t, const char* wanted) {
  char text[1024] = "";
  for (size_t i = t->before; i < t->graph->nodes.count; ++i) {
    if (*text) strcat(text, " ");
    strcat(text, t->graph->nodes.items[i]->op->name);
  }
  cr_assert_str_eq(text, wanted, "added '%s'", text);
}

static rn_edge_t matrix(rn_scope_t* s, int64_t rows, int64_t columns) {
  int64_t dims[2] = {rows, columns};
  return rn_Placeholder(s, RN_FLOAT, .shape = RN_SET_SHAPE(dims, 2));
}

static rn_edge_t vector(rn_scope_t* s, int64_t size) {
  return rn_Placeholder(s, RN_FLOAT, .shape = RN_SET_SHAPE(&size, 1));
}

WALK_TEST(YIsX) {
  walk_test_t t = open_graph();
  rn_edge_t x = rn_Placeholder(t.s, RN_FLOAT), dx;
  must(gradients(&t, x, 1, &x, &dx));
  check_added(&t, "OnesLike");
  cr_assert_eq(dx.node->op->name, rn_op_find(RN_STR("OnesLike"))->name);
  close_graph(&t);
}

WALK_TEST(XTwice) {
  walk_test_t t = open_graph();
  rn_edge_t x = rn_Placeholder(t.s, RN_FLOAT), dx[2];
  must(gradients(&t, rn_Neg(t.s, x), 2, (rn_edge_t[]){x, x}, dx));
  check_added(&t, "OnesLike Neg");
  cr_assert_eq(dx[0].node, dx[1].node);
  close_graph(&t);
}

WALK_TEST(XBeforeX) {
  walk_test_t t = open_graph();
  rn_edge_t x = rn_Placeholder(t.s, RN_FLOAT), middle = rn_Neg(t.s, x), dx[2];
  must(gradients(&t, rn_Neg(t.s, middle), 2, (rn_edge_t[]){x, middle}, dx));
  check_added(&t, "OnesLike Neg Neg");
  cr_assert_eq(dx[0].node->inputs[0].node, dx[1].node);
  close_graph(&t);
}

WALK_TEST(NothingFlowsBack) {
  walk_test_t t = open_graph();
  rn_edge_t x = rn_Placeholder(t.s, RN_FLOAT), dx;
  must(gradients(&t, rn_StopGradient(t.s, x), 1, &x, &dx));
  cr_assert_null(dx.node);
  rn_edge_t whole = rn_Cast(t.s, rn_Cast(t.s, x, RN_INT32), RN_FLOAT);
  must(gradients(&t, whole, 1, &x, &dx));
  cr_assert_null(dx.node);
  // An op without a rule behind it is not asked.
  rn_edge_t bits = rn_StopGradient(t.s, rn_Bitcast(t.s, x, RN_FLOAT));
  must(gradients(&t, bits, 1, &x, &dx));
  cr_assert_null(dx.node);
  close_graph(&t);
}

WALK_TEST(NoRule) {
  walk_test_t t = open_graph();
  rn_edge_t x = rn_Placeholder(t.s, RN_FLOAT), dx;
  rn_edge_t y = rn_Neg(t.s, rn_PreventGradient(t.s, rn_Neg(t.s, x)));
  rn_status_t status = gradients(&t, y, 1, &x, &dx);
  cr_assert_eq(rn_status_code(status), RN_CODE_NOT_FOUND);
  cr_assert_str_eq(rn_status_message(status),
                   "No gradient defined for op: PreventGradient. Please see "
                   "https://www.tensorflow.org/code/tensorflow/cc/gradients/README.md for "
                   "instructions on how to add C++ gradients."
                   "\n\t node 'PreventGradient'; towards y: - 'Neg_1'; towards x: - 'Neg' - "
                   "'Placeholder'");
  rn_status_free(status);
  close_graph(&t);
}

WALK_TEST(GivenGradients) {
  walk_test_t t = open_graph();
  rn_edge_t x = rn_Placeholder(t.s, RN_FLOAT), other = rn_Placeholder(t.s, RN_FLOAT), dx[2];
  rn_edge_t ys[2] = {rn_Neg(t.s, x), rn_Neg(t.s, other)}, dys[2] = {x, RN_NO_EDGE};
  cr_assert(rn_scope_ok(t.s));
  must(rn_add_gradients(t.graph, RN_STR(""), ys, 2, (rn_edge_t[]){x, other}, 2, dys, dx));
  cr_assert_not_null(dx[0].node);
  cr_assert_null(dx[1].node);  // no gradient arrives
  close_graph(&t);
}

// Equal shapes that are known need no sums.
WALK_TEST(SmallGraphs) {
  walk_test_t t = open_graph();
  rn_edge_t x = matrix(t.s, 8, 4), w = matrix(t.s, 4, 3), b = vector(t.s, 3), dx[2];
  rn_edge_t product = rn_MatMul(t.s, x, w);
  must(gradients(&t, rn_Relu(t.s, rn_BiasAdd(t.s, product, b)), 2, (rn_edge_t[]){w, b}, dx));
  check_added(&t, "OnesLike ReluGrad BiasAddGrad MatMul");
  must(gradients(&t, rn_AddV2(t.s, product, rn_MatMul(t.s, x, w)), 1, &w, dx));
  check_added(&t, "OnesLike MatMul MatMul AddN");
  must(gradients(&t, rn_AddV2(t.s, product, b), 1, &b, dx));
  check_added(&t, "OnesLike Const Sum");
  must(gradients(&t, rn_Mul(t.s, x, x), 1, &x, dx));
  check_added(&t, "OnesLike Mul Mul AddN");
  close_graph(&t);
}

// The number of rows may be unknown: that a bias has none is enough.
WALK_TEST(UnknownRows) {
  walk_test_t t = open_graph();
  rn_edge_t x = matrix(t.s, -1, 3), b = vector(t.s, 3), dx[2];
  must(gradients(&t, rn_AddV2(t.s, x, b), 2, (rn_edge_t[]){x, b}, dx));
  check_added(&t, "OnesLike Const Sum");
  must(gradients(&t, rn_AddV2(t.s, x, matrix(t.s, -1, 3)), 1, &x, dx));
  check_added(&t, "OnesLike Shape Shape BroadcastGradientArgs Sum Reshape");
  close_graph(&t);
}

// No device here has a kernel for it, so the test looks at the nodes: the pairs are turned round.
WALK_TEST(PermutesBack) {
  walk_test_t t = open_graph();
  int32_t pairs[] = {0, 1, 1, 0};
  int64_t dims[] = {2, 2};
  rn_edge_t x = vector(t.s, 3), dx;
  rn_edge_t y = rn_CollectivePermute(t.s, x, rn_const(t.s, RN_INT32, dims, 2, pairs));
  must(gradients(&t, y, 1, &x, &dx));
  check_added(&t, "OnesLike Const ReverseV2 CollectivePermute");
  cr_assert_str_eq(dx.node->op->name, "CollectivePermute");
  close_graph(&t);
}
