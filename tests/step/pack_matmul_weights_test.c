// Matrices that are packed once for several matmuls, outside loops and inside: the same bits as in
// the unoptimized graph.
#include "nets.h"
#include "runnel/control_flow.h"

enum { kSide = 300 };  // longer than what is read where it lies

// One turn: forwards, and back by the transpose.
static rn_edge_t turn(rn_scope_t* s, rn_edge_t x, rn_edge_t w) {
  rn_edge_t h = rn_Tanh(s, rn_MatMul(s, x, w));
  return rn_AddV2(s, x, rn_MatMul(s, h, w, .transpose_b = true));
}

static net_t inputs(rn_scope_t* s, int64_t rows, rn_edge_t* out_x, rn_edge_t* out_w) {
  net_t net = {0};
  *out_x = net_feed(s, &net, rows, kSide);
  *out_w = net_feed(s, &net, kSide, kSide);
  return net;
}

static net_t unrolled(rn_scope_t* s, int64_t rows) {
  rn_edge_t y, w;
  net_t net = inputs(s, rows, &y, &w);
  for (int i = 0; i < 4; ++i) y = turn(s, y, w);
  net_fetch(&net, y);
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

// What three iterations of |body| make of x; the body gets w.
static net_t iterated(rn_scope_t* s, int64_t rows, rn_body_t body, rn_edge_t* out_w) {
  rn_edge_t x;
  net_t net = inputs(s, rows, &x, out_w);
  rn_edge_t starts[2] = {rn_const_int32(s, 0), x}, ends[2];
  cr_assert(rn_while(s, goes_on, body, out_w, starts, ends, 2));
  net_fetch(&net, ends[1]);
  return net;
}

static net_t looped(rn_scope_t* s, int64_t rows) {
  rn_edge_t w;
  return iterated(s, rows, loop_body, &w);
}

// By a constant, as in a frozen graph.
static net_t frozen(rn_scope_t* s, int64_t rows) {
  static float values[kSide * kSide];
  for (int i = 0; i < kSide * kSide; ++i) values[i] = (float)(i % 17 - 8) / 64;
  const int64_t dims[] = {kSide, kSide};
  net_t net = {0};
  rn_edge_t x = net_feed(s, &net, rows, kSide);
  rn_edge_t w = rn_const(s, RN_FLOAT, dims, 2, values);
  rn_edge_t starts[2] = {rn_const_int32(s, 0), x}, ends[2];
  cr_assert(rn_while(s, goes_on, loop_body, &w, starts, ends, 2));
  net_fetch(&net, turn(s, ends[1], w));
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
  rn_edge_t w;
  net_t net = iterated(s, rows, nest_body, &w);
  net.fetched[0] = turn(s, net.fetched[0], w);
  return net;
}

// A product in a loop by what the loop itself makes.
static void own_body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  rn_edge_t w = rn_Mul(s, *(rn_edge_t*)arg, rn_Cast(s, in[0], RN_FLOAT));
  out[0] = rn_AddV2(s, in[0], rn_const_int32(s, 1));
  out[1] = turn(s, turn(s, in[1], w), w);
}

static net_t own(rn_scope_t* s, int64_t rows) {
  rn_edge_t w;
  return iterated(s, rows, own_body, &w);
}

static void compare(build_t build) {
  static const int64_t rows[] = {1, 4, 13, 40};
  keeps_bits(build, rows, 4, 8);
}

RT_TEST(packed, unrolled_keeps_its_bits) { compare(unrolled); }
RT_TEST(packed, loop_keeps_its_bits) { compare(looped); }
RT_TEST(packed, loop_over_a_constant_keeps_its_bits) { compare(frozen); }
RT_TEST(packed, loop_in_a_loop_keeps_its_bits) { compare(nested); }
RT_TEST(packed, matrix_of_the_loop_keeps_its_bits) { compare(own); }

static int packed(build_t build, int64_t rows, const char* op) {
  return count_after(rn_pass_pack_matmul_weights, build, rows, op);
}

// One for the matrix as it is and one for its transpose, whatever the number of products.
RT_TEST(packed, packs_once) {
  cr_assert_eq(packed(unrolled, 32, "_PackMatrix"), 2);
  cr_assert_eq(packed(unrolled, 32, "_PackedMatMul"), 8);
  cr_assert_eq(packed(looped, 32, "_PackMatrix"), 2);
  cr_assert_eq(packed(looped, 32, "_PackedMatMul"), 2);
  cr_assert_eq(packed(nested, 32, "_PackMatrix"), 2);
  cr_assert_eq(packed(nested, 32, "_PackedMatMul"), 6);
  cr_assert_eq(packed(nested, 32, "Enter") - packed(nested, 1, "Enter"), 2);
}

// A loop packs for one row, too, what it reads in every turn, but not the transpose, by which it
// computes dot products.
RT_TEST(packed, loops_pack_for_few_rows) {
  static const int64_t rows[] = {1, 4, 13};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    cr_assert_eq(packed(looped, rows[i], "_PackMatrix"), rows[i] < 5 ? 1 : 2);
    cr_assert_eq(packed(looped, rows[i], "_PackedMatMul"), rows[i] < 5 ? 1 : 2);
  }
  cr_assert_eq(packed(own, 1, "_PackMatrix"), 0);
  cr_assert_eq(packed(frozen, 1, "_PackMatrix"), 1);
  cr_assert_eq(packed(frozen, 1, "_PackedMatMul"), 1);
}

// Outside of loops, few rows read a matrix as it lies.
RT_TEST(packed, leaves_few_rows_alone) {
  cr_assert_eq(packed(unrolled, 4, "_PackMatrix"), 0);
  cr_assert_eq(packed(unrolled, 5, "_PackMatrix"), 1);
}
