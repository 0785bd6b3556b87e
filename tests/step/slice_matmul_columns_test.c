// Matmuls computed by column slices, and sums that loops add matmuls to: the same bits as in the
// unoptimized graph.
#include "graph_of_step.h"
#include "matrices.h"
#include "runnel/control_flow.h"

enum { kSide = 70, kRows = 3 * kSide, kTurns = 40 };  // more turns than a sum keeps products

// x has kSide columns, w as many, and kRows rows, of which some are needed.
typedef struct net_t {
  rn_edge_t x, w, y;
  int64_t depth, w_rows;
} net_t;

static net_t inputs_of(rn_scope_t* s, int64_t rows, int64_t depth, int64_t w_rows) {
  const int64_t x_dims[2] = {rows, depth}, w_dims[2] = {w_rows, depth};
  return (net_t){.x = rn_Placeholder(s, RN_FLOAT, .shape = {true, x_dims, 2}),
                 .w = rn_Placeholder(s, RN_FLOAT, .shape = {true, w_dims, 2}),
                 .depth = depth,
                 .w_rows = w_rows};
}

static net_t inputs(rn_scope_t* s, int64_t rows) { return inputs_of(s, rows, kSide, kRows); }

static rn_edge_t both_parts(rn_scope_t* s, rn_edge_t x, rn_edge_t w) {
  rn_edge_t whole = rn_MatMul(s, x, w, .transpose_b = true);
  return rn_Tanh(s,
                 rn_Sub(s, columns(s, whole, 0, kSide), columns(s, whole, kRows - kSide, kSide)));
}

static net_t unrolled(rn_scope_t* s, int64_t rows) {
  net_t net = inputs(s, rows);
  net.y = both_parts(s, both_parts(s, net.x, net.w), net.w);
  return net;
}

static net_t one_part(rn_scope_t* s, int64_t rows) {
  net_t net = inputs(s, rows);
  net.y = columns(s, rn_MatMul(s, net.x, net.w, .transpose_b = true), 33, 64);
  return net;
}

static net_t overlapping(rn_scope_t* s, int64_t rows) {
  net_t net = inputs(s, rows);
  rn_edge_t whole = rn_MatMul(s, net.x, net.w, .transpose_b = true);
  net.y = rn_Sub(s, columns(s, whole, 0, 2 * kSide), columns(s, whole, kSide, 2 * kSide));
  return net;
}

// Nearly all columns are read.
static net_t most(rn_scope_t* s, int64_t rows) {
  net_t net = inputs(s, rows);
  rn_edge_t whole = rn_MatMul(s, net.x, net.w, .transpose_b = true);
  net.y = rn_Sub(s, columns(s, whole, 0, kRows / 2), columns(s, whole, kRows / 2, kRows / 2));
  return net;
}

// Somebody reads all of it.
static net_t whole(rn_scope_t* s, int64_t rows) {
  net_t net = inputs(s, rows);
  rn_edge_t all = rn_MatMul(s, net.x, net.w, .transpose_b = true);
  net.y = rn_AddV2(s, rn_Sum(s, all, rn_const_int32(s, 1), .keep_dims = true),
                   columns(s, all, kSide, kSide));
  return net;
}

// As on the way back through an unrolled network: one half of each product is for the step before,
// the other for nobody on the way. |waits|: for the next as well.
static net_t steps(rn_scope_t* s, int64_t rows, bool waits) {
  enum { kSteps = 6, kHalf = 500, kMore = 100 };
  net_t net = inputs_of(s, rows, kHalf + kMore, 2 * kHalf);
  rn_edge_t terms[kSteps], g = net.x;
  for (int t = 0; t < kSteps; ++t) {
    rn_edge_t whole = rn_MatMul(s, g, net.w, .transpose_b = true);
    rn_edge_t x = columns(s, whole, 0, kHalf), h = columns(s, whole, kHalf, kHalf);
    terms[t] = rn_Tanh(s, x);
    if (waits) h = rn_Sub(s, h, x);
    rn_edge_t sides[2] = {h, columns(s, h, 0, kMore)};
    g = rn_Tanh(s, rn_ConcatV2(s, sides, 2, rn_const_int32(s, 1)));
  }
  net.y = rn_AddN(s, terms, kSteps);
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
  net_t net = inputs(s, rows);
  rn_edge_t starts[2] = {rn_const_int32(s, 0), net.x}, ends[2];
  cr_assert(rn_while(s, goes_on, loop_body, &net.w, starts, ends, 2));
  net.y = ends[1];
  return net;
}

static void sum_body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  out[0] = rn_AddV2(s, in[0], rn_const_int32(s, 1));
  out[1] = both_parts(s, in[1], *(rn_edge_t*)arg);
  out[2] = rn_AddV2(s, in[2], rn_MatMul(s, in[1], out[1], .transpose_a = true));
}

// The sum of products over all turns.
static net_t summed(rn_scope_t* s, int64_t rows) {
  net_t net = inputs(s, rows);
  rn_edge_t start = columns(s, rn_MatMul(s, net.w, net.w, .transpose_a = true), 0, kSide);
  rn_edge_t starts[3] = {rn_const_int32(s, 0), net.x, start}, ends[3];
  cr_assert(rn_while(s, goes_on, sum_body, &net.w, starts, ends, 3));
  net.y = ends[2];
  return net;
}

// Each turn sees what the sum has come to.
static void seen_body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  sum_body(s, in, out, arg);
  out[1] = rn_AddV2(s, out[1], rn_Sum(s, in[2], rn_const_int32(s, 0), .keep_dims = true));
}

static net_t seen(rn_scope_t* s, int64_t rows) {
  net_t net = inputs(s, rows);
  const int32_t dims[2] = {kSide, kSide};
  rn_edge_t zeros = rn_Fill(s, rn_const_int32_list(s, dims, 2), rn_const_scalar(s, RN_FLOAT, 0));
  rn_edge_t starts[3] = {rn_const_int32(s, 0), net.x, zeros}, ends[3];
  cr_assert(rn_while(s, goes_on, seen_body, &net.w, starts, ends, 3));
  net.y = ends[2];
  return net;
}

typedef net_t (*build_t)(rn_scope_t* s, int64_t rows);

static rn_tensor_t run(build_t build, int64_t rows, bool optimize, int threads) {
  rt_t rt = rt_begin(threads);
  rt.options.optimize = optimize;
  net_t net = build(rt.s, rows);
  cr_assert(rn_scope_ok(rt.s), "%s", rn_scope_message(rt.s));
  rn_tensor_t x = numbers(rows, net.depth, 1), w = numbers(net.w_rows, net.depth, 2);
  rn_tensor_t result = {0};
  for (int again = 0; again < 2; ++again) {  // the second step finds what the first has left
    rt_step_t step = {0};
    rt_feed(&step, net.x, &x);
    rt_feed(&step, net.w, &w);
    rt_fetch(&step, net.y);
    OK(rt_run(&rt, &step));
    if (again) cr_assert(memcmp(result.data, step.out[0].data, rn_tensor_bytes(&result)) == 0);
    rn_tensor_clear(&result);
    result = step.out[0];
  }
  rn_tensor_clear(&x);
  rn_tensor_clear(&w);
  rt_end(&rt);
  return result;
}

static void compare(build_t build) {
  for (int64_t rows = 1; rows < 100; rows = rows * 3 + 1) {
    rn_tensor_t wanted = run(build, rows, false, 1);
    for (int threads = 1; threads <= 4; threads *= 2) {
      rn_tensor_t got = run(build, rows, true, threads);
      same_bits(&got, &wanted, rows, threads);
    }
    rn_tensor_clear(&wanted);
  }
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

// The nodes of |op| that the passes leave in the graph of a step.
static int count_after(build_t build, const char* op) {
  rt_t rt = rt_begin(1);
  net_t net = build(rt.s, 32);
  rt_step_t step = {0};
  rt_feed(&step, net.x, NULL);
  rt_feed(&step, net.w, NULL);
  rt_fetch(&step, net.y);
  rn_ir_t* ir = graph_of_step(&rt, &step);
  OK(rn_pass_sum_matmuls(ir));
  OK(rn_pass_sum_loop_matmuls(ir));
  OK(rn_pass_slice_matmul_columns(ir));
  int count = count_nodes(ir, op);
  rn_ir_destroy(ir);
  rt_end(&rt);
  return count;
}

RT_TEST(parts, rows_are_taken_once) {
  cr_assert_eq(count_after(unrolled, "_RowsOf"), 2);
  cr_assert_eq(count_after(unrolled, "MatMul"), 4);
  cr_assert_eq(count_after(unrolled, "Slice"), 0);
  cr_assert_eq(count_after(one_part, "_RowsOf"), 1);
  cr_assert_eq(count_after(one_part, "MatMul"), 1);
  cr_assert_eq(count_after(looped, "_RowsOf"), 2);
  cr_assert_eq(count_after(looped, "Slice"), 0);
}

RT_TEST(parts, what_is_read_whole_stays_whole) {
  cr_assert_eq(count_after(overlapping, "_RowsOf"), 0);
  cr_assert_eq(count_after(overlapping, "Slice"), 2);
  cr_assert_eq(count_after(whole, "_RowsOf"), 0);
  cr_assert_eq(count_after(most, "_RowsOf"), 0);
}

RT_TEST(parts, parts_that_nobody_waits_for_are_made_at_once) {
  cr_assert_eq(count_after(free_steps, "_StackRows"), 1);
  cr_assert_eq(count_after(free_steps, "MatMul"), 6);  // one for all, and from step to step
  cr_assert_eq(count_after(chained_steps, "_StackRows"), 0);
  cr_assert_eq(count_after(chained_steps, "_RowsOf"), 1);  // the last has one reader
}

RT_TEST(parts, sums_are_put_off_where_nobody_sees_them) {
  cr_assert_eq(count_after(summed, "_AddLater"), 1);
  cr_assert_eq(count_after(summed, "_BeginSum"), 1);
  cr_assert_eq(count_after(summed, "_EndSum"), 1);
  cr_assert_eq(count_after(seen, "_AddProduct"), 1);
  cr_assert_eq(count_after(seen, "_AddLater"), 0);
}
