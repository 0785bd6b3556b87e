// Options of rn_gradients, gradient functions of clients, malformed graphs, Jacobian-vector
// products, and rules that do not let NaN spread.
#define GRAD_SUITE grad_options
#include <math.h>
#include <stdio.h>

#include "../support/status.h"
#include "base/env.h"
#include "differences.h"
#include "grad/grad.h"
#include "graph/build.h"
#include "session/session.h"

typedef struct t_t {
  rn_graph_t* graph;
  rn_scope_t* s;
} t_t;

static t_t begin(void) {
  t_t t = {0};
  OK(rn_graph_create(rn_allocator_system(), &t.graph));
  t.s = rn_scope_create(t.graph);
  return t;
}

static void end(t_t* t) {
  rn_scope_destroy(t->s);
  rn_graph_release(t->graph);
}

static double fetch(t_t* t, rn_edge_t edge, int at) {
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
  double result = RN_DATA(&value, double)[at];
  rn_tensor_clear(&value);
  rn_session_destroy(session);
  return result;
}

static rn_edge_t pair_of(rn_scope_t* s, double a, double b) {
  double values[2] = {a, b};
  int64_t dim = 2;
  return rn_const(s, RN_DOUBLE, &dim, 1, values);
}

#define REAL_OF(s, value) rn_const_scalar(s, RN_DOUBLE, value)
#define INT_OF(s, value) rn_const_int32(s, value)
#define OPTION_TEST(name) Test(grad_options, name, .timeout = 60)
#define GRADIENTS(t, y, x, d, ...)                                                            \
  cr_assert(                                                                                  \
      rn_gradients_of((t)->s, &(y), 1, &(x), 1, &(rn_gradient_options_t){__VA_ARGS__}, &(d)), \
      "%s", rn_scope_message((t)->s))

// z = x^2 x, with x^2 held fast.
OPTION_TEST(Stops) {
  t_t t = begin();
  rn_edge_t x = REAL_OF(t.s, 3), square = rn_Square(t.s, x), y = rn_Mul(t.s, square, x);
  rn_gradient_t d;
  GRADIENTS(&t, y, x, d, .stops = &square, .stop_count = 1);
  cr_expect_eq(fetch(&t, d.dense, 0), 9);
  // An x that is a stop has a gradient itself.
  rn_edge_t xs[2] = {x, square};
  rn_gradient_t both[2];
  rn_gradient_options_t options = {.stops = xs, .stop_count = 2};
  cr_assert(rn_gradients_of(t.s, &y, 1, xs, 2, &options, both));
  cr_expect_eq(fetch(&t, both[0].dense, 0), 9);
  cr_expect_eq(fetch(&t, both[1].dense, 0), 3);
  end(&t);
}

OPTION_TEST(Unconnected) {
  t_t t = begin();
  rn_edge_t x = pair_of(t.s, 1, 2), other = REAL_OF(t.s, 1), y = rn_Neg(t.s, other);
  rn_gradient_t d;
  GRADIENTS(&t, y, x, d, .unconnected = RN_UNCONNECTED_NONE);
  cr_expect(rn_gradient_is_none(d));
  GRADIENTS(&t, y, x, d, .unconnected = RN_UNCONNECTED_ZERO);
  cr_expect_eq(fetch(&t, d.dense, 1), 0);
  end(&t);
}

// An integer on the way carries nothing, and is no error.
OPTION_TEST(Integers) {
  t_t t = begin();
  rn_edge_t x = REAL_OF(t.s, 3), whole = rn_Cast(t.s, x, RN_INT32);
  rn_edge_t product = rn_Mul(t.s, whole, rn_BitwiseAnd(t.s, whole, INT_OF(t.s, 7)));
  rn_edge_t y = rn_Mul(t.s, rn_Cast(t.s, product, RN_DOUBLE), x);
  rn_gradient_t d;
  GRADIENTS(&t, y, x, d, .dense = true);
  cr_expect_eq(fetch(&t, d.dense, 0), 9);
  end(&t);
}

// Nor is an x that is one, but what arrives at it directly.
OPTION_TEST(IntegerX) {
  t_t t = begin();
  rn_edge_t x = INT_OF(t.s, 3), square = rn_Mul(t.s, x, x);
  rn_edge_t real = rn_Sin(t.s, rn_Cast(t.s, x, RN_DOUBLE));
  rn_gradient_t d;
  GRADIENTS(&t, square, x, d, .dense = true);
  cr_expect(rn_gradient_is_none(d));
  GRADIENTS(&t, real, x, d, .dense = true);
  cr_expect(rn_gradient_is_none(d));
  GRADIENTS(&t, x, x, d, .dense = true);
  cr_assert_not(rn_gradient_is_none(d));
  cr_expect_eq(rn_edge_dtype(d.dense), RN_INT32);
  end(&t);
}

OPTION_TEST(Colocated) {
  t_t t = begin();
  rn_edge_t x = REAL_OF(t.s, 3);
  rn_scope_name_next(t.s, "here");
  rn_edge_t y = rn_Square(t.s, x);
  rn_gradient_t d;
  GRADIENTS(&t, y, x, d, .colocate = true);
  const rn_attr_value_t* place = rn_node_attr(d.dense.node, RN_STR("_class"));
  cr_assert_not_null(place);
  cr_assert_eq(place->count, 1);
  cr_expect(rn_str_is(place->list_s[0], "loc:@here"));
  cr_expect_eq(fetch(&t, d.dense, 0), 6);
  GRADIENTS(&t, y, x, d, .colocate = false);
  cr_expect_null(rn_node_attr(d.dense.node, RN_STR("_class")));
  end(&t);
}

OPTION_TEST(Gates) {
  t_t t = begin();
  rn_edge_t xs[2] = {REAL_OF(t.s, 3), REAL_OF(t.s, 4)}, y = rn_Mul(t.s, xs[0], xs[1]);
  for (int gate = RN_GATE_NONE; gate <= RN_GATE_GRAPH; ++gate) {
    rn_gradient_t d[2];
    rn_gradient_options_t options = {.gate = (rn_gate_t)gate};
    cr_assert(rn_gradients_of(t.s, &y, 1, xs, 2, &options, d));
    cr_expect_eq(fetch(&t, d[0].dense, 0), 4);
    cr_expect_eq(fetch(&t, d[1].dense, 0), 3);
    size_t waits = d[0].dense.node->controls.count;
    cr_expect_eq(waits, gate == RN_GATE_NONE ? 0 : 1);
    if (waits) cr_expect_eq(d[0].dense.node->controls.items[0], d[1].dense.node->controls.items[0]);
  }
  end(&t);
}

// More than a few arrivals are added up as they come: no sum takes more than four.
OPTION_TEST(Accumulates) {
  t_t t = begin();
  rn_edge_t x = REAL_OF(t.s, 3), parts[20];
  for (int i = 0; i < 20; ++i) parts[i] = rn_Mul(t.s, x, REAL_OF(t.s, i));
  rn_edge_t y = rn_AddN(t.s, parts, 20);
  size_t first = t.graph->nodes.count;
  rn_gradient_t d;
  GRADIENTS(&t, y, x, d, .dense = true);
  for (size_t id = first; id < t.graph->nodes.count; ++id) {
    const rn_node_t* node = t.graph->nodes.items[id];
    if (strcmp(node->op->name, "AddN") == 0) cr_expect_leq(node->input_count, 4);
  }
  cr_expect_eq(fetch(&t, d.dense, 0), 190);
  end(&t);
}

static bool twice(rn_grad_t* g, void* arg) {
  ++*(int*)arg;
  rn_scope_t* s = rn_grad_scope(g);
  rn_edge_t dy = rn_grad_arrived(g, 0);
  rn_grad_send(g, 0, rn_AddV2(s, dy, dy));
  return true;
}

static bool wrong(rn_grad_t* g, void* arg) {
  (void)arg;
  rn_grad_send(g, 5, rn_grad_arrived(g, 0));
  return true;
}

static rn_edge_t with_rule(rn_scope_t* s, rn_edge_t x, const char* rule) {
  rn_op_begin(s, "Identity");
  rn_op_input(s, x);
  rn_op_attr_string(s, "_gradient_op_type", rule);
  return (rn_edge_t){rn_op_finish(s), 0};
}

OPTION_TEST(ClientRule) {
  int calls = 0;
  cr_assert(rn_register_gradient("Twice", twice, &calls));
  cr_assert(!rn_register_gradient("Twice", twice, &calls));
  t_t t = begin();
  rn_edge_t x = REAL_OF(t.s, 3), y = with_rule(t.s, x, "Twice");
  rn_gradient_t d;
  GRADIENTS(&t, y, x, d, .dense = true);
  cr_expect_eq(fetch(&t, d.dense, 0), 2);
  cr_expect_eq(calls, 1);
  // The rule of another op, by its name.
  rn_edge_t minus = with_rule(t.s, x, "Neg");
  GRADIENTS(&t, minus, x, d, .dense = true);
  cr_expect_eq(fetch(&t, d.dense, 0), -1);
  end(&t);
}

OPTION_TEST(WrongRule) {
  cr_assert(rn_register_gradient("Wrong", wrong, NULL));
  t_t t = begin();
  rn_edge_t x = REAL_OF(t.s, 3), y = with_rule(t.s, x, "Wrong");
  rn_gradient_t d;
  cr_assert(!rn_gradients_of(t.s, &y, 1, &x, 1, NULL, &d));
  cr_expect(strstr(rn_scope_message(t.s), "'Identity' (Identity) sends to input 5"), "%s",
            rn_scope_message(t.s));
  cr_expect(rn_gradient_is_none(d));
  end(&t);
}

OPTION_TEST(UnknownRule) {
  t_t t = begin();
  rn_edge_t x = REAL_OF(t.s, 3), y = with_rule(t.s, x, "NobodyKnows");
  rn_gradient_t d;
  cr_assert(!rn_gradients_of(t.s, &y, 1, &x, 1, NULL, &d));
  cr_expect(strstr(rn_scope_message(t.s), "No gradient defined for op: Identity"));
  end(&t);
}

// d/dx of x y and sin(x) along (1, 2).
OPTION_TEST(JacobianVector) {
  t_t t = begin();
  rn_edge_t xs[2] = {pair_of(t.s, 0.5, 2), pair_of(t.s, 3, 4)};
  rn_edge_t ys[3] = {rn_Mul(t.s, xs[0], xs[1]), rn_Sin(t.s, xs[0]), rn_Neg(t.s, REAL_OF(t.s, 1))};
  rn_edge_t vs[2] = {pair_of(t.s, 1, 1), pair_of(t.s, 2, 2)}, out[3];
  cr_assert(rn_jacobian_vector(t.s, ys, 3, xs, 2, vs, out), "%s", rn_scope_message(t.s));
  cr_expect_float_eq(fetch(&t, out[0], 0), 3 + 2 * 0.5, 1e-14);
  cr_expect_float_eq(fetch(&t, out[0], 1), 4 + 2 * 2, 1e-14);
  cr_expect_float_eq(fetch(&t, out[1], 1), cos(2), 1e-14);
  cr_expect_null(out[2].node);
  end(&t);
}

// where(x > 0, log(x), x): what is chosen away has no part, though it is not a number.
OPTION_TEST(WhereIsSafe) {
  t_t t = begin();
  rn_edge_t x = pair_of(t.s, -1, 2), zero = REAL_OF(t.s, 0);
  rn_edge_t positive = rn_Greater(t.s, x, zero);
  rn_edge_t safe = rn_SelectV2(t.s, positive, x, REAL_OF(t.s, 1));
  rn_edge_t y = rn_SelectV2(t.s, positive, rn_Log(t.s, safe), x);
  rn_gradient_t d;
  GRADIENTS(&t, y, x, d, .dense = true);
  cr_expect_eq(fetch(&t, d.dense, 0), 1);
  cr_expect_eq(fetch(&t, d.dense, 1), 0.5);
  // The arriving gradient may be infinite where it is not used.
  rn_edge_t same = rn_Select(t.s, positive, x, rn_ZerosLike(t.s, x));
  rn_edge_t dy = pair_of(t.s, INFINITY, 3);
  GRADIENTS(&t, same, x, d, .dys = &dy);
  cr_expect_eq(fetch(&t, d.dense, 0), 0);
  cr_expect_eq(fetch(&t, d.dense, 1), 3);
  // x^y at 0: no logarithm is taken; 0 log y.
  rn_edge_t power = rn_Pow(t.s, pair_of(t.s, 0, 2), x);
  GRADIENTS(&t, power, x, d, .dense = true);
  cr_expect(!isnan(fetch(&t, d.dense, 1)));
  rn_edge_t none = pair_of(t.s, 0, 0), quotient = rn_DivNoNan(t.s, x, none);
  GRADIENTS(&t, quotient, none, d, .dense = true);
  cr_expect_eq(fetch(&t, d.dense, 0), 0);
  rn_edge_t entropy = rn_Xlogy(t.s, none, x);
  GRADIENTS(&t, entropy, x, d, .dense = true);
  cr_expect_eq(fetch(&t, d.dense, 0), 0);
  end(&t);
}

// Malformed loops.

static const char* message_of(t_t* t, rn_edge_t y, rn_edge_t x) {
  rn_gradient_t d;
  cr_assert(rn_scope_ok(t->s), "%s", rn_scope_message(t->s));
  cr_assert(!rn_gradients_of(t->s, &y, 1, &x, 1, NULL, &d), "no error");
  return rn_scope_message(t->s);
}

OPTION_TEST(NoLoopCond) {
  t_t t = begin();
  rn_edge_t x = REAL_OF(t.s, 3), enter = rn_Enter(t.s, x, "frame");
  rn_edge_t both[2] = {enter, enter}, merge = rn_Merge(t.s, both, 2).output;
  rn_edge_t pred = rn_Less(t.s, merge, merge);
  rn_Switch_out_t out = rn_Switch(t.s, merge, pred);
  rn_edge_t next = rn_NextIteration(t.s, out.output_true), y = rn_Exit(t.s, out.output_false);
  cr_assert(rn_scope_ok(t.s), "%s", rn_scope_message(t.s));
  rn_status_t status = rn_graph_update_edge(t.graph, next, merge.node, 1);
  OK(status);
  cr_expect_str_eq(message_of(&t, y, x), "Loop 'frame', entered by node 'Enter', has no LoopCond");
  end(&t);
}

OPTION_TEST(EdgeBetweenFrames) {
  t_t t = begin();
  rn_edge_t x = REAL_OF(t.s, 3), outside = rn_Neg(t.s, x), enter = rn_Enter(t.s, x, "frame");
  rn_edge_t both[2] = {enter, enter}, merge = rn_Merge(t.s, both, 2).output;
  rn_edge_t cond = rn_LoopCond(t.s, rn_Less(t.s, merge, merge));
  rn_Switch_out_t out = rn_Switch(t.s, merge, cond);
  rn_edge_t product = rn_Mul(t.s, out.output_true, outside);
  rn_edge_t next = rn_NextIteration(t.s, product), y = rn_Exit(t.s, out.output_false);
  cr_assert(rn_scope_ok(t.s), "%s", rn_scope_message(t.s));
  rn_status_t status = rn_graph_update_edge(t.graph, next, merge.node, 1);
  OK(status);
  cr_expect_str_eq(message_of(&t, y, x),
                   "{{node Mul}} has inputs from different frames. The input {{node Switch}} is in "
                   "frame 'frame'. The input {{node Neg}} is in frame ''.");
  end(&t);
}

OPTION_TEST(NoNextIteration) {
  t_t t = begin();
  rn_edge_t x = REAL_OF(t.s, 3), enter = rn_Enter(t.s, x, "frame");
  rn_edge_t both[2] = {enter, enter}, merge = rn_Merge(t.s, both, 2).output;
  rn_edge_t cond = rn_LoopCond(t.s, rn_Less(t.s, merge, merge));
  rn_Switch_out_t out = rn_Switch(t.s, merge, cond);
  rn_edge_t y = rn_Exit(t.s, out.output_false);
  cr_expect_str_eq(message_of(&t, y, x),
                   "Loop 'frame' is malformed: node 'Merge' (Merge) does not join an Enter and a "
                   "NextIteration");
  end(&t);
}

// A back edge that is none: the graph refuses the cycle, and names both ends.
OPTION_TEST(Cycle) {
  t_t t = begin();
  rn_edge_t x = REAL_OF(t.s, 3), enter = rn_Enter(t.s, x, "frame");
  rn_edge_t both[2] = {enter, enter}, merge = rn_Merge(t.s, both, 2).output;
  rn_edge_t body = rn_Neg(t.s, merge);
  cr_assert(rn_scope_ok(t.s));
  rn_status_t status = rn_graph_update_edge(t.graph, body, merge.node, 1);
  cr_assert(!rn_ok(status));
  cr_expect(
      strstr(rn_status_message(status), "'Neg'") && strstr(rn_status_message(status), "'Merge'"),
      "%s", rn_status_message(status));
  rn_status_free(status);
  end(&t);
}

OPTION_TEST(AcrossTheBorder) {
  t_t t = begin();
  rn_edge_t x = rn_Enter(t.s, REAL_OF(t.s, 3), "one"), y = rn_Enter(t.s, REAL_OF(t.s, 4), "other");
  cr_expect_str_eq(message_of(&t, rn_Neg(t.s, y), x),
                   "Gradients cross the boundary of a loop: 'Neg' is in frame 'other', 'Enter' in "
                   "frame 'one'");
  end(&t);
}
