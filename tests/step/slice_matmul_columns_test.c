// Matmuls computed by column slices, and sums that loops add matmuls to: the same bits as in the
// unoptimized graph.
#include "nets.h"
#include "runnel/control_flow.h"

enum { kSide = 70, kRows = 3 * kSide, kTurns = 40 };  // more turns than a sum keeps products

// x has kSide columns, w as many, and kRows rows, of which some are needed.
static net_t inputs(rn_scope_t* s, int64_t rows, rn_edge_t* out_x, rn_edge_t* out_w) {
  net_t net = {0};
  *out_x = net_feed(s, &net, rows, kSide);
  *out_w = net_feed(s, &net, kRows, kSide);
  return net;
}

// x w', for a network that reads only parts of it.
static net_t product(rn_scope_t* s, int64_t rows, rn_edge_t* out) {
  rn_edge_t x, w;
  net_t net = inputs(s, rows, &x, &w);
  *out = rn_MatMul(s, x, w, .transpose_b = true);
  return net;
}

static rn_edge_t both_parts(rn_scope_t* s, rn_edge_t x, rn_edge_t w) {
  rn_edge_t whole = rn_MatMul(s, x, w, .transpose_b = true);
  return rn_Tanh(s,
                 rn_Sub(s, columns(s, whole, 0, kSide), columns(s, whole, kRows - kSide, kSide)));
}

static net_t unrolled(rn_scope_t* s, int64_t rows) {
  rn_edge_t x, w;
  net_t net = inputs(s, rows, &x, &w);
  net_fetch(&net, both_parts(s, both_parts(s, x, w), w));
  return net;
}

static net_t one_part(rn_scope_t* s, int64_t rows) {
  rn_edge_t all;
  net_t net = product(s, rows, &all);
  net_fetch(&net, columns(s, all, 33, 64));
  return net;
}

static net_t overlapping(rn_scope_t* s, int64_t rows) {
  rn_edge_t all;
  net_t net = product(s, rows, &all);
  net_fetch(&net, rn_Sub(s, columns(s, all, 0, 2 * kSide), columns(s, all, kSide, 2 * kSide)));
  return net;
}

// Nearly all columns are read.
static net_t most(rn_scope_t* s, int64_t rows) {
  rn_edge_t all;
  net_t net = product(s, rows, &all);
  net_fetch(&net, rn_Sub(s, columns(s, all, 0, kRows / 2), columns(s, all, kRows / 2, kRows / 2)));
  return net;
}

// Another node reads all of it.
static net_t whole(rn_scope_t* s, int64_t rows) {
  rn_edge_t all;
  net_t net = product(s, rows, &all);
  rn_edge_t sum = rn_Sum(s, all, rn_const_int32(s, 1), .keep_dims = true);
  net_fetch(&net, rn_AddV2(s, sum, columns(s, all, kSide, kSide)));
  return net;
}

// As on the way back through an unrolled network: one half of each product is for the step before,
// the other for nobody on the way. |waits|: for the next as well.
static net_t steps(rn_scope_t* s, int64_t rows, bool waits) {
  enum { kSteps = 6, kHalf = 500, kMore = 100 };
  net_t net = {0};
  rn_edge_t g = net_feed(s, &net, rows, kHalf + kMore);
  rn_edge_t w = net_feed(s, &net, 2 * kHalf, kHalf + kMore), terms[kSteps];
  for (int t = 0; t < kSteps; ++t) {
    rn_edge_t whole = rn_MatMul(s, g, w, .transpose_b = true);
    rn_edge_t x = columns(s, whole, 0, kHalf), h = columns(s, whole, kHalf, kHalf);
    terms[t] = rn_Tanh(s, x);
    if (waits) h = rn_Sub(s, h, x);
    rn_edge_t sides[2] = {h, columns(s, h, 0, kMore)};
    g = rn_Tanh(s, rn_ConcatV2(s, sides, 2, rn_const_int32(s, 1)));
  }
  net_fetch(&net, rn_AddN(s, terms, kSteps));
  return net;
}
static net_t free_steps(rn_scope_t* s, int64_t rows) { return steps(s, rows, false); }
static net_t chained_steps(rn_scope_t* s, int64_t rows) { return steps(s, rows, true); }

static rn_edge_t goes_on(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rn_const_int32(s, kTurns));
}

static void loop_body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  out[0] = rn_AddV2(s, in[0], rn_const_int32(s, 1));
  out[1] = both_parts(s, in[1], *(rn_edge_t*)arg);
}

static net_t looped(rn_scope_t* s, int64_t rows) {
  rn_edge_t x, w;
  net_t net = inputs(s, rows, &x, &w);
  rn_edge_t starts[2] = {rn_const_int32(s, 0), x}, ends[2];
  cr_assert(rn_while(s, goes_on, loop_body, &w, starts, ends, 2));
  net_fetch(&net, ends[1]);
  return net;
}

static void sum_body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  out[0] = rn_AddV2(s, in[0], rn_const_int32(s, 1));
  out[1] = both_parts(s, in[1], *(rn_edge_t*)arg);
  out[2] = rn_AddV2(s, in[2], rn_MatMul(s, in[1], out[1], .transpose_a = true));
}

// The sum of products over all turns.
static net_t summed(rn_scope_t* s, int64_t rows) {
  rn_edge_t x, w;
  net_t net = inputs(s, rows, &x, &w);
  rn_edge_t start = columns(s, rn_MatMul(s, w, w, .transpose_a = true), 0, kSide);
  rn_edge_t starts[3] = {rn_const_int32(s, 0), x, start}, ends[3];
  cr_assert(rn_while(s, goes_on, sum_body, &w, starts, ends, 3));
  net_fetch(&net, ends[2]);
  return net;
}

// Each turn sees what the sum has come to.
static void seen_body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  sum_body(s, in, out, arg);
  out[1] = rn_AddV2(s, out[1], rn_Sum(s, in[2], rn_const_int32(s, 0), .keep_dims = true));
}

static net_t seen(rn_scope_t* s, int64_t rows) {
  rn_edge_t x, w;
  net_t net = inputs(s, rows, &x, &w);
  const int32_t dims[2] = {kSide, kSide};
  rn_edge_t zeros = rn_Fill(s, rn_const_int32_list(s, dims, 2), rn_const_scalar(s, RN_FLOAT, 0));
  rn_edge_t starts[3] = {rn_const_int32(s, 0), x, zeros}, ends[3];
  cr_assert(rn_while(s, goes_on, seen_body, &w, starts, ends, 3));
  net_fetch(&net, ends[2]);
  return net;
}

static void compare(build_t build) {
  static const int64_t rows[] = {1, 4, 13, 40};
  keeps_bits(build, rows, 4, 4);
}

RT_TEST(parts, unrolled_keeps_its_bits) { compare(unrolled); }
RT_TEST(parts, one_part_keeps_its_bits) { compare(one_part); }
RT_TEST(parts, overlapping_keeps_its_bits) { compare(overlapping); }
RT_TEST(parts, whole_keeps_its_bits) { compare(whole); }
RT_TEST(parts, most_keeps_its_bits) { compare(most); }
RT_TEST(parts, free_steps_keep_their_bits) { compare(free_steps); }
RT_TEST(parts, chained_steps_keep_their_bits) { compare(chained_steps); }
RT_TEST(parts, loop_keeps_its_bits) { compare(looped); }
RT_TEST(parts, sum_of_a_loop_keeps_its_bits) { compare(summed); }
RT_TEST(parts, sum_that_is_seen_keeps_its_bits) { compare(seen); }

static rn_status_t run_passes(rn_ir_t* ir) {
  RN_RETURN_IF_ERROR(rn_pass_sum_matmuls(ir));
  RN_RETURN_IF_ERROR(rn_pass_sum_loop_matmuls(ir));
  return rn_pass_slice_matmul_columns(ir);
}

static int left(build_t build, const char* op) { return count_after(run_passes, build, 32, op); }

RT_TEST(parts, rows_are_taken_once) {
  cr_assert_eq(left(unrolled, "_RowsOf"), 2);
  cr_assert_eq(left(unrolled, "MatMul"), 4);
  cr_assert_eq(left(unrolled, "Slice"), 0);
  cr_assert_eq(left(one_part, "_RowsOf"), 1);
  cr_assert_eq(left(one_part, "MatMul"), 1);
  cr_assert_eq(left(looped, "_RowsOf"), 2);
  cr_assert_eq(left(looped, "Slice"), 0);
}

RT_TEST(parts, what_is_read_whole_stays_whole) {
  cr_assert_eq(left(overlapping, "_RowsOf"), 0);
  cr_assert_eq(left(overlapping, "Slice"), 2);
  cr_assert_eq(left(whole, "_RowsOf"), 0);
  cr_assert_eq(left(most, "_RowsOf"), 0);
}

RT_TEST(parts, parts_that_nobody_waits_for_are_made_at_once) {
  cr_assert_eq(left(free_steps, "_StackRows"), 1);
  cr_assert_eq(left(free_steps, "MatMul"), 6);  // one for all, and from step to step
  cr_assert_eq(left(chained_steps, "_StackRows"), 0);
  cr_assert_eq(left(chained_steps, "_RowsOf"), 1);  // the last has one reader
}

RT_TEST(parts, sums_are_put_off_where_nobody_sees_them) {
  cr_assert_eq(left(summed, "_AddLater"), 1);
  cr_assert_eq(left(summed, "_BeginSum"), 1);
  cr_assert_eq(left(summed, "_EndSum"), 1);
  cr_assert_eq(left(seen, "_AddProduct"), 1);
  cr_assert_eq(left(seen, "_AddLater"), 0);
}
