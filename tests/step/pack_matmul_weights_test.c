// Matrices that are packed once for several matmuls, outside loops and inside: the same bits as in
// the unoptimized graph.
#include "graph_of_step.h"
#include "matrices.h"
#include "runnel/control_flow.h"

enum { kSide = 300 };  // longer than what is read where it lies

typedef struct net_t {
  rn_edge_t x, w, y;
} net_t;

// One turn: forwards, and back by the transpose.
static rn_edge_t turn(rn_scope_t* s, rn_edge_t x, rn_edge_t w) {
  rn_edge_t h = rn_Tanh(s, rn_MatMul(s, x, w));
  return rn_AddV2(s, x, rn_MatMul(s, h, w, .transpose_b = true));
}

static net_t inputs(rn_scope_t* s, int64_t rows) {
  const int64_t x_dims[2] = {rows, kSide}, w_dims[2] = {kSide, kSide};
  return (net_t){.x = rn_Placeholder(s, RN_FLOAT, .shape = {true, x_dims, 2}),
                 .w = rn_Placeholder(s, RN_FLOAT, .shape = {true, w_dims, 2})};
}

static net_t unrolled(rn_scope_t* s, int64_t rows) {
  net_t net = inputs(s, rows);
  net.y = net.x;
  for (int i = 0; i < 4; ++i) net.y = turn(s, net.y, net.w);
  return net;
}

static rn_edge_t goes_on(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rn_const_int32(s, 3));
}

static void loop_body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  out[0] = rn_AddV2(s, in[0], rn_const_int32(s, 1));
  out[1] = turn(s, in[1], *(rn_edge_t*)arg);
}

static net_t looped(rn_scope_t* s, int64_t rows) {
  net_t net = inputs(s, rows);
  rn_edge_t starts[2] = {rn_const_int32(s, 0), net.x}, ends[2];
  cr_assert(rn_while(s, goes_on, loop_body, &net.w, starts, ends, 2));
  net.y = ends[1];
  return net;
}

static void nest_body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  rn_edge_t starts[2] = {rn_const_int32(s, 0), in[1]}, ends[2];
  rn_while(s, goes_on, loop_body, arg, starts, ends, 2);
  out[0] = rn_AddV2(s, in[0], rn_const_int32(s, 1));
  out[1] = turn(s, ends[1], *(rn_edge_t*)arg);
}

// A loop in a loop, and a product outside of both.
static net_t nested(rn_scope_t* s, int64_t rows) {
  net_t net = inputs(s, rows);
  rn_edge_t starts[2] = {rn_const_int32(s, 0), net.x}, ends[2];
  cr_assert(rn_while(s, goes_on, nest_body, &net.w, starts, ends, 2));
  net.y = turn(s, ends[1], net.w);
  return net;
}

// A product in a loop by what the loop itself makes.
static void own_body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  rn_edge_t w = rn_Mul(s, *(rn_edge_t*)arg, rn_Cast(s, in[0], RN_FLOAT));
  out[0] = rn_AddV2(s, in[0], rn_const_int32(s, 1));
  out[1] = turn(s, turn(s, in[1], w), w);
}

static net_t own(rn_scope_t* s, int64_t rows) {
  net_t net = inputs(s, rows);
  rn_edge_t starts[2] = {rn_const_int32(s, 0), net.x}, ends[2];
  cr_assert(rn_while(s, goes_on, own_body, &net.w, starts, ends, 2));
  net.y = ends[1];
  return net;
}

typedef net_t (*build_t)(rn_scope_t* s, int64_t rows);

static rn_tensor_t run(build_t build, int64_t rows, bool optimize, int threads) {
  rt_t rt = rt_begin(threads);
  rt.options.optimize = optimize;
  net_t net = build(rt.s, rows);
  rn_tensor_t x = numbers(rows, kSide, 1), w = numbers(kSide, kSide, 2);
  rt_step_t step = {0};
  rt_feed(&step, net.x, &x);
  rt_feed(&step, net.w, &w);
  rt_fetch(&step, net.y);
  OK(rt_run(&rt, &step));
  rn_tensor_clear(&x);
  rn_tensor_clear(&w);
  rt_end(&rt);
  return step.out[0];
}

static void compare(build_t build) {
  for (int64_t rows = 1; rows < 100; rows = rows * 3 + 1) {
    rn_tensor_t wanted = run(build, rows, false, 1);
    for (int threads = 1; threads <= 8; threads *= 2) {
      rn_tensor_t got = run(build, rows, true, threads);
      same_bits(&got, &wanted, rows, threads);
    }
    rn_tensor_clear(&wanted);
  }
}

RT_TEST(packed, unrolled_keeps_its_bits) { compare(unrolled); }
RT_TEST(packed, loop_keeps_its_bits) { compare(looped); }
RT_TEST(packed, loop_in_a_loop_keeps_its_bits) { compare(nested); }
RT_TEST(packed, matrix_of_the_loop_keeps_its_bits) { compare(own); }

// The nodes of |op| that the pass leaves in the graph of a step.
static int count_after_pass(build_t build, int64_t rows, const char* op) {
  rt_t rt = rt_begin(1);
  net_t net = build(rt.s, rows);
  rt_step_t step = {0};
  rt_feed(&step, net.x, NULL);
  rt_feed(&step, net.w, NULL);
  rt_fetch(&step, net.y);
  rn_ir_t* ir = graph_of_step(&rt, &step);
  OK(rn_pass_pack_matmul_weights(ir));
  int count = count_nodes(ir, op);
  rn_ir_destroy(ir);
  rt_end(&rt);
  return count;
}

// One for the matrix as it is and one for its transpose, whatever the number of products.
RT_TEST(packed, packs_once) {
  cr_assert_eq(count_after_pass(unrolled, 32, "_PackMatrix"), 2);
  cr_assert_eq(count_after_pass(unrolled, 32, "_PackedMatMul"), 8);
  cr_assert_eq(count_after_pass(looped, 32, "_PackMatrix"), 2);
  cr_assert_eq(count_after_pass(looped, 32, "_PackedMatMul"), 2);
  cr_assert_eq(count_after_pass(nested, 32, "_PackMatrix"), 2);
  cr_assert_eq(count_after_pass(nested, 32, "_PackedMatMul"), 6);
  cr_assert_eq(count_after_pass(nested, 32, "Enter") - count_after_pass(nested, 1, "Enter"), 4);
}

// Few rows read a matrix as it lies.
RT_TEST(packed, leaves_few_rows_alone) {
  cr_assert_eq(count_after_pass(unrolled, 4, "_PackMatrix"), 0);
  cr_assert_eq(count_after_pass(unrolled, 5, "_PackMatrix"), 1);
}
