// Matmuls of an input concatenated with a state: the input's part is computed for all steps at
// once, with the same bits as in the unoptimized graph.
#include "graph_of_step.h"
#include "matrices.h"

enum { kSteps = 5, kInput = 300, kState = 260, kGates = 2 * kState };

// |products| are seen from outside, too; |fed| are x, h and w as floats.
typedef struct net_t {
  rn_edge_t fed[3], x, h, w, bias, y, products[kSteps];
} net_t;

static net_t inputs_of(rn_scope_t* s, int64_t rows, rn_dtype_t dtype) {
  const int64_t x_dims[2] = {rows, kInput}, h_dims[2] = {rows, kState};
  const int64_t w_dims[2] = {kInput + kState, kGates};
  net_t net = {.fed = {rn_Placeholder(s, RN_FLOAT, .shape = {true, x_dims, 2}),
                       rn_Placeholder(s, RN_FLOAT, .shape = {true, h_dims, 2}),
                       rn_Placeholder(s, RN_FLOAT, .shape = {true, w_dims, 2})}};
  net.x = rn_Cast(s, net.fed[0], dtype);
  net.h = rn_Cast(s, net.fed[1], dtype);
  net.w = rn_Cast(s, net.fed[2], dtype);
  net.bias = rn_Sum(s, net.w, rn_const_int32(s, 0));
  return net;
}

// The input of step |t|: another one for each, of x alone.
static rn_edge_t input_at(rn_scope_t* s, const net_t* net, int t) {
  rn_edge_t x = net->x;
  for (int i = 0; i < t; ++i) x = rn_Tanh(s, x);
  return x;
}

static rn_edge_t step_of(rn_scope_t* s, net_t* net, int t, rn_edge_t x, rn_edge_t h,
                         bool state_first) {
  rn_edge_t sides[2] = {state_first ? h : x, state_first ? x : h};
  rn_edge_t both = rn_ConcatV2(s, sides, 2, rn_const_int32(s, t % 2 ? 1 : -1));
  net->products[t] = rn_MatMul(s, both, net->w);
  rn_edge_t gates = rn_BiasAdd(s, net->products[t], net->bias);
  return rn_Mul(s, rn_Tanh(s, columns(s, gates, 0, kState)),
                rn_Sigmoid(s, columns(s, gates, kState, kState)));
}

static net_t unrolled_of(rn_scope_t* s, int64_t rows, rn_dtype_t dtype) {
  net_t net = inputs_of(s, rows, dtype);
  net.y = net.h;
  for (int t = 0; t < kSteps; ++t) net.y = step_of(s, &net, t, input_at(s, &net, t), net.y, false);
  return net;
}
static net_t unrolled(rn_scope_t* s, int64_t rows) { return unrolled_of(s, rows, RN_FLOAT); }
static net_t doubles(rn_scope_t* s, int64_t rows) { return unrolled_of(s, rows, RN_DOUBLE); }

// Each step's input is made of the state before.
static net_t fed_back(rn_scope_t* s, int64_t rows) {
  net_t net = inputs_of(s, rows, RN_FLOAT);
  net.y = net.h;
  for (int t = 0; t < kSteps; ++t) {
    rn_edge_t sides[2] = {net.y, columns(s, net.y, 0, kInput - kState)};
    rn_edge_t x = rn_ConcatV2(s, sides, 2, rn_const_int32(s, 1));
    net.y = step_of(s, &net, t, x, net.y, false);
  }
  return net;
}

// The state's part comes first in the sums: it cannot go on with the input's.
static net_t turned(rn_scope_t* s, int64_t rows) {
  net_t net = inputs_of(s, rows, RN_FLOAT);
  net.y = net.h;
  for (int t = 0; t < kSteps; ++t) net.y = step_of(s, &net, t, input_at(s, &net, t), net.y, true);
  return net;
}

typedef net_t (*build_t)(rn_scope_t* s, int64_t rows);

// The last state, and what the products of two steps came to.
typedef struct result_t {
  rn_tensor_t values[3];
} result_t;

static void clear(result_t* result) {
  for (int i = 0; i < 3; ++i) rn_tensor_clear(&result->values[i]);
}

static void expect_same(const result_t* a, const result_t* b, int64_t rows, int threads) {
  for (int i = 0; i < 3; ++i) {
    cr_assert_eq(a->values[i].count, b->values[i].count);
    cr_assert(memcmp(a->values[i].data, b->values[i].data, rn_tensor_bytes(&a->values[i])) == 0,
              "result %d of %lld rows on %d threads", i, (long long)rows, threads);
  }
}

static result_t run(build_t build, int64_t rows, bool optimize, int threads) {
  rt_t rt = rt_begin(threads);
  rt.options.optimize = optimize;
  net_t net = build(rt.s, rows);
  cr_assert(rn_scope_ok(rt.s), "%s", rn_scope_message(rt.s));
  rn_tensor_t x = numbers(rows, kInput, 1), h = numbers(rows, kState, 2);
  rn_tensor_t w = numbers(kInput + kState, kGates, 3);
  result_t result = {0};
  for (int again = 0; again < 2; ++again) {  // the second step finds what the first has left
    rt_step_t step = {0};
    rt_feed(&step, net.fed[0], &x);
    rt_feed(&step, net.fed[1], &h);
    rt_feed(&step, net.fed[2], &w);
    rt_fetch(&step, net.y);
    rt_fetch(&step, net.products[1]);
    rt_fetch(&step, net.products[kSteps - 1]);
    OK(rt_run(&rt, &step));
    result_t got = {0};
    for (int i = 0; i < 3; ++i) got.values[i] = step.out[i];
    if (again) expect_same(&result, &got, rows, threads);
    clear(&result);
    result = got;
  }
  rn_tensor_clear(&x);
  rn_tensor_clear(&h);
  rn_tensor_clear(&w);
  rt_end(&rt);
  return result;
}

static void compare(build_t build) {
  static const int64_t rows[] = {1, 7, 24, 32, 33, 48, 61};
  for (size_t r = 0; r < sizeof rows / sizeof *rows; ++r) {
    result_t wanted = run(build, rows[r], false, 1);
    for (int threads = 1; threads <= 4; threads *= 2) {
      result_t got = run(build, rows[r], true, threads);
      expect_same(&wanted, &got, rows[r], threads);
      clear(&got);
    }
    clear(&wanted);
  }
}

RT_TEST(inputs, unrolled_keeps_its_bits) { compare(unrolled); }
RT_TEST(inputs, doubles_keep_their_bits) { compare(doubles); }
RT_TEST(inputs, fed_back_keeps_its_bits) { compare(fed_back); }
RT_TEST(inputs, turned_keeps_its_bits) { compare(turned); }

// The nodes of |op| that the passes leave in the graph of a step.
static int count_after(build_t build, int64_t rows, const char* op) {
  rt_t rt = rt_begin(1);
  net_t net = build(rt.s, rows);
  rt_step_t step = {0};
  for (int i = 0; i < 3; ++i) rt_feed(&step, net.fed[i], NULL);
  rt_fetch(&step, net.y);
  rn_ir_t* ir = graph_of_step(&rt, &step);
  OK(rn_pass_hoist_rnn_inputs(ir));
  int count = count_nodes(ir, op);
  rn_ir_destroy(ir);
  rt_end(&rt);
  return count;
}

RT_TEST(inputs, parts_of_inputs_are_made_at_once) {
  cr_assert_eq(count_after(unrolled, 32, "MatMul"), 1);
  cr_assert_eq(count_after(unrolled, 32, "_ContinuedMatMul"), kSteps);
  cr_assert_eq(count_after(doubles, 32, "_ContinuedMatMul"), kSteps);
  cr_assert_eq(count_after(unrolled, 32, "_PackMatrix"), 1);
  cr_assert_eq(count_after(unrolled, 32, "_StackRows"), 1);
  cr_assert_eq(count_after(unrolled, 32, "ConcatV2"), 0);  // they have no readers any more
  cr_assert_eq(count_after(unrolled, 32, "BiasAdd"), 0);
}

RT_TEST(inputs, what_waits_for_the_state_stays) {
  cr_assert_eq(count_after(fed_back, 32, "MatMul"), kSteps);
  cr_assert_eq(count_after(turned, 32, "MatMul"), kSteps);
  cr_assert_eq(count_after(turned, 32, "_ContinuedMatMul"), 0);
}

RT_TEST(inputs, few_rows_stay) { cr_assert_eq(count_after(unrolled, 7, "MatMul"), kSteps); }
