// Matmuls of an input concatenated with a state: the input's part is computed for all steps at
// once, with the same bits as in the unoptimized graph.
#include "nets.h"

enum { kSteps = 5, kInput = 300, kState = 260, kGates = 2 * kState };

// The operands of a network; its |products| are seen from outside, too.
typedef struct cell_t {
  net_t net;
  rn_edge_t x, h, w, bias, products[kSteps];
} cell_t;

static cell_t begin_cell(rn_scope_t* s, int64_t rows, rn_dtype_t dtype) {
  cell_t cell = {0};
  cell.x = rn_Cast(s, net_feed(s, &cell.net, rows, kInput), dtype);
  cell.h = rn_Cast(s, net_feed(s, &cell.net, rows, kState), dtype);
  cell.w = rn_Cast(s, net_feed(s, &cell.net, kInput + kState, kGates), dtype);
  cell.bias = rn_Sum(s, cell.w, rn_const_int32(s, 0));
  return cell;
}

// The network with the last state |y| and two of the products.
static net_t end_cell(cell_t* cell, rn_edge_t y) {
  net_fetch(&cell->net, y);
  net_fetch(&cell->net, cell->products[1]);
  net_fetch(&cell->net, cell->products[kSteps - 1]);
  return cell->net;
}

// The input of step |t|: another one for each, of x alone.
static rn_edge_t input_at(rn_scope_t* s, const cell_t* cell, int t) {
  rn_edge_t x = cell->x;
  for (int i = 0; i < t; ++i) x = rn_Tanh(s, x);
  return x;
}

static rn_edge_t step_of(rn_scope_t* s, cell_t* cell, int t, rn_edge_t x, rn_edge_t h,
                         bool state_first) {
  rn_edge_t sides[2] = {state_first ? h : x, state_first ? x : h};
  rn_edge_t both = rn_ConcatV2(s, sides, 2, rn_const_int32(s, t % 2 ? 1 : -1));
  cell->products[t] = rn_MatMul(s, both, cell->w);
  rn_edge_t gates = rn_BiasAdd(s, cell->products[t], cell->bias);
  return rn_Mul(s, rn_Tanh(s, columns(s, gates, 0, kState)),
                rn_Sigmoid(s, columns(s, gates, kState, kState)));
}

static net_t unrolled_of(rn_scope_t* s, int64_t rows, rn_dtype_t dtype, bool state_first) {
  cell_t cell = begin_cell(s, rows, dtype);
  rn_edge_t y = cell.h;
  for (int t = 0; t < kSteps; ++t) y = step_of(s, &cell, t, input_at(s, &cell, t), y, state_first);
  return end_cell(&cell, y);
}
static net_t unrolled(rn_scope_t* s, int64_t rows) { return unrolled_of(s, rows, RN_FLOAT, false); }
static net_t doubles(rn_scope_t* s, int64_t rows) { return unrolled_of(s, rows, RN_DOUBLE, false); }
// The state's part comes first in the sums: it cannot go on with the input's.
static net_t turned(rn_scope_t* s, int64_t rows) { return unrolled_of(s, rows, RN_FLOAT, true); }

// Each step's input is made of the state before.
static net_t fed_back(rn_scope_t* s, int64_t rows) {
  cell_t cell = begin_cell(s, rows, RN_FLOAT);
  rn_edge_t y = cell.h;
  for (int t = 0; t < kSteps; ++t) {
    rn_edge_t sides[2] = {y, columns(s, y, 0, kInput - kState)};
    rn_edge_t x = rn_ConcatV2(s, sides, 2, rn_const_int32(s, 1));
    y = step_of(s, &cell, t, x, y, false);
  }
  return end_cell(&cell, y);
}

static void compare(build_t build) {
  static const int64_t rows[] = {1, 7, 24, 32, 33, 48, 61};
  keeps_bits(build, rows, 7, 4);
}

RT_TEST(inputs, unrolled_keeps_its_bits) { compare(unrolled); }
RT_TEST(inputs, doubles_keep_their_bits) { compare(doubles); }
RT_TEST(inputs, fed_back_keeps_its_bits) { compare(fed_back); }
RT_TEST(inputs, turned_keeps_its_bits) { compare(turned); }

static int left(build_t build, int64_t rows, const char* op) {
  return count_after(rn_pass_hoist_rnn_inputs, build, rows, op);
}

RT_TEST(inputs, parts_of_inputs_are_made_at_once) {
  cr_assert_eq(left(unrolled, 32, "MatMul"), 1);
  cr_assert_eq(left(unrolled, 32, "_ContinuedMatMul"), kSteps);
  cr_assert_eq(left(doubles, 32, "_ContinuedMatMul"), kSteps);
  cr_assert_eq(left(unrolled, 32, "_PackMatrix"), 1);
  cr_assert_eq(left(unrolled, 32, "_StackRows"), 1);
  cr_assert_eq(left(unrolled, 32, "ConcatV2"), 0);  // they have no readers any more
  cr_assert_eq(left(unrolled, 32, "BiasAdd"), 0);
}

RT_TEST(inputs, what_waits_for_the_state_stays) {
  cr_assert_eq(left(fed_back, 32, "MatMul"), kSteps);
  cr_assert_eq(left(turned, 32, "MatMul"), kSteps);
  cr_assert_eq(left(turned, 32, "_ContinuedMatMul"), 0);
}

RT_TEST(inputs, few_rows_stay) { cr_assert_eq(left(unrolled, 7, "MatMul"), kSteps); }
