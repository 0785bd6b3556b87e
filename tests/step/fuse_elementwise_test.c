// Elementwise nodes fused into one with several results, over columns of matrices: the same bits as
// without fusion, no node waits for its own result, and dead values do not spread.
#include <math.h>

#include "graph_of_step.h"
#include "matrices.h"

// Two steps of a recurrent cell over gates that are fed, and the way back through them.
enum { kGates = 4, kSteps = 2, kFetches = 5 };

typedef struct net_t {
  rn_edge_t fed[2], fetches[kFetches];
} net_t;

// All of |x|, for a reader that is not elementwise.
static rn_edge_t total(rn_scope_t* s, rn_edge_t x) { return rn_Sum(s, x, rn_const_int32(s, 0)); }

typedef struct cell_t {
  rn_edge_t i, j, f, o, before, c, tanh_c, h;
} cell_t;

static cell_t cell_of(rn_scope_t* s, rn_edge_t gates, rn_edge_t c, rn_edge_t one) {
  rn_edges_t parts = rn_Split(s, rn_const_int32(s, 1), gates, kGates);
  cell_t cell = {.before = c,
                 .i = rn_Sigmoid(s, rn_edge_at(parts, 0)),
                 .j = rn_Tanh(s, rn_edge_at(parts, 1)),
                 .f = rn_Sigmoid(s, rn_AddV2(s, rn_edge_at(parts, 2), one)),
                 .o = rn_Sigmoid(s, rn_edge_at(parts, 3))};
  cell.c = rn_AddV2(s, rn_Mul(s, cell.f, c), rn_Mul(s, cell.i, cell.j));
  cell.tanh_c = rn_Tanh(s, cell.c);
  cell.h = rn_Mul(s, cell.o, cell.tanh_c);
  return cell;
}

// The gradient of the gates, from that of |h| and of |c|, which becomes the one before.
static rn_edge_t back_through(rn_scope_t* s, const cell_t* cell, rn_edge_t dh, rn_edge_t* dc) {
  rn_edge_t sum[2] = {*dc, rn_TanhGrad(s, cell->tanh_c, rn_Mul(s, dh, cell->o))};
  rn_edge_t all = rn_AddN(s, sum, 2);
  rn_edge_t parts[kGates] = {rn_SigmoidGrad(s, cell->i, rn_Mul(s, all, cell->j)),
                             rn_TanhGrad(s, cell->j, rn_Mul(s, all, cell->i)),
                             rn_SigmoidGrad(s, cell->f, rn_Mul(s, all, cell->before)),
                             rn_SigmoidGrad(s, cell->o, rn_Mul(s, dh, cell->tanh_c))};
  *dc = rn_Mul(s, all, cell->f);
  return rn_ConcatV2(s, parts, kGates, rn_const_int32(s, -1));
}

static net_t cells(rn_scope_t* s, int64_t rows, int64_t width, rn_dtype_t dtype) {
  const int64_t gate_dims[2] = {rows, kGates * width}, state_dims[2] = {rows, width};
  net_t net = {.fed = {rn_Placeholder(s, RN_FLOAT, .shape = {true, gate_dims, 2}),
                       rn_Placeholder(s, RN_FLOAT, .shape = {true, state_dims, 2})}};
  rn_edge_t gates = rn_Cast(s, net.fed[0], dtype), c = rn_Cast(s, net.fed[1], dtype);
  rn_edge_t one = rn_Cast(s, rn_const_float(s, 1), dtype), zero = rn_Sub(s, c, c);
  cell_t steps[kSteps];
  rn_edge_t h = c;
  for (int t = 0; t < kSteps; ++t) {
    // The second step's gates wait for the first one's state.
    rn_edge_t sides[kGates] = {h, h, h, h};
    rn_edge_t wide = rn_ConcatV2(s, sides, kGates, rn_const_int32(s, 1));
    steps[t] = cell_of(s, rn_AddV2(s, rn_Tanh(s, gates), wide), c, one);
    c = steps[t].c;
    h = steps[t].h;
  }
  rn_edge_t halves[2] = {h, steps[0].tanh_c};
  const int32_t axis[1] = {1}, counts[2] = {(int32_t)rows, (int32_t)rows};
  rn_edge_t both = rn_ReverseV2(s, rn_ConcatV2(s, halves, 2, rn_const_int32(s, 0)),
                                rn_const_int32_list(s, axis, 1));
  rn_edges_t given = rn_SplitV(s, both, rn_const_int32_list(s, counts, 2), rn_const_int32(s, 0), 2);
  rn_edge_t dc = zero, dh = rn_edge_at(given, 1);
  for (int t = kSteps - 1; t >= 0; --t) {
    rn_edge_t dgates = back_through(s, &steps[t], dh, &dc);
    net.fetches[t] = total(s, dgates);
    rn_edge_t summed[2] = {rn_edge_at(rn_Split(s, rn_const_int32(s, 1), dgates, kGates), 2), dh};
    dh = rn_AddN(s, summed, 2);
  }
  net.fetches[2] = total(s, rn_AddV2(s, dh, dc));
  net.fetches[3] = h;
  net.fetches[4] = total(s, steps[0].tanh_c);
  return net;
}

typedef struct result_t {
  rn_tensor_t values[kFetches];
} result_t;

static result_t run(int64_t rows, int64_t width, rn_dtype_t dtype, bool optimize, int threads) {
  rt_t rt = rt_begin(threads);
  rt.options.optimize = optimize;
  net_t net = cells(rt.s, rows, width, dtype);
  cr_assert(rn_scope_ok(rt.s), "%s", rn_scope_message(rt.s));
  rn_tensor_t gates = numbers(rows, kGates * width, 1), c = numbers(rows, width, 2);
  rt_step_t step = {0};
  rt_feed(&step, net.fed[0], &gates);
  rt_feed(&step, net.fed[1], &c);
  for (int i = 0; i < kFetches; ++i) rt_fetch(&step, net.fetches[i]);
  result_t result;
  OK(rt_run(&rt, &step));
  for (int i = 0; i < kFetches; ++i) result.values[i] = step.out[i];
  rn_tensor_clear(&gates);
  rn_tensor_clear(&c);
  rt_end(&rt);
  return result;
}

static void compare(rn_dtype_t dtype) {
  static const int64_t sizes[][2] = {{1, 64},   {1, 1024}, {13, 100}, {33, 65},
                                     {32, 512}, {2, 2100}, {200, 9}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    result_t wanted = run(sizes[i][0], sizes[i][1], dtype, false, 1);
    for (int threads = 1; threads <= 8; threads *= 2) {
      result_t got = run(sizes[i][0], sizes[i][1], dtype, true, threads);
      for (int k = 0; k < kFetches; ++k)
        same_bits(&got.values[k], &wanted.values[k], sizes[i][0], threads);
    }
    for (int k = 0; k < kFetches; ++k) rn_tensor_clear(&wanted.values[k]);
  }
}

RT_TEST(fuse, floats_keep_their_bits) { compare(RN_FLOAT); }
RT_TEST(fuse, doubles_keep_their_bits) { compare(RN_DOUBLE); }

// The nodes of |op| that are left in the graph of a step.
static int count_after(int64_t rows, int64_t width, const char* op) {
  rt_t rt = rt_begin(1);
  net_t net = cells(rt.s, rows, width, RN_FLOAT);
  rt_step_t step = {0};
  for (int i = 0; i < 2; ++i) rt_feed(&step, net.fed[i], NULL);
  for (int i = 0; i < kFetches; ++i) rt_fetch(&step, net.fetches[i]);
  rn_ir_t* ir = graph_of_step(&rt, &step);
  OK(rn_pass_fuse_elementwise(ir));
  int count = count_nodes(ir, op);
  rn_ir_destroy(ir);
  rt_end(&rt);
  return count;
}

RT_TEST(fuse, a_cell_is_one_node) {
  cr_assert_eq(
      count_after(16, 64, "Sigmoid") + count_after(16, 64, "Tanh") + count_after(16, 64, "Mul"), 0);
  cr_assert_eq(count_after(16, 64, "Split"), 0);
  cr_assert_eq(count_after(16, 64, "SplitV"), 0);
  cr_assert_eq(count_after(16, 64, "ConcatV2"), kSteps);  // those of the states
  cr_assert_eq(count_after(16, 64, "_StackRows"), 1);
  cr_assert_eq(count_after(16, 64, "AddN"), 0);
}

RT_TEST(fuse, small_ones_stay) { cr_assert_eq(count_after(2, 64, "_FusedColumns"), 0); }

RT_TEST(fuse, short_rows_are_taken_apart) {
  cr_assert_eq(count_after(200, 8, "Split"), 2 * kSteps);
  cr_assert_eq(count_after(200, 8, "SplitV"), 0);  // rows lie one behind the other
  cr_assert_eq(count_after(200, 8, "ConcatV2"), 2 * kSteps);
}

// Two results of |build|, which is given a matrix, are the same with and without fusion.
static void check_pair(void (*build)(rn_scope_t* s, rn_edge_t x, rn_edge_t results[2])) {
  rn_tensor_t wanted[2];
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = rt_begin(1);
    rt.options.optimize = optimize;
    static const int64_t dims[2] = {16, 256};
    rn_edge_t x = rn_Placeholder(rt.s, RN_FLOAT, .shape = {true, dims, 2}), results[2];
    build(rt.s, x, results);
    rn_tensor_t value = numbers(dims[0], dims[1], 9);
    rt_step_t step = {0};
    rt_feed(&step, x, &value);
    for (int i = 0; i < 2; ++i) rt_fetch(&step, total(rt.s, results[i]));
    OK(rt_run(&rt, &step));
    for (int i = 0; i < 2; ++i) {
      if (optimize) same_bits(&step.out[i], &wanted[i], dims[0], 1);
      if (optimize) rn_tensor_clear(&wanted[i]);
      if (!optimize) wanted[i] = step.out[i];
    }
    rn_tensor_clear(&value);
    rt_end(&rt);
  }
}

static rn_edge_t turn(rn_scope_t* s, rn_edge_t x) {
  return rn_Transpose(s, x, rn_const_int32_list(s, (const int32_t[]){1, 0}, 2));
}

// What a Split takes apart is itself a result of an earlier group.
static void parts_of_a_result(rn_scope_t* s, rn_edge_t x, rn_edge_t results[2]) {
  rn_edge_t e = rn_Tanh(s, x), far = rn_Exp(s, e);
  for (int i = 0; i < 6; ++i) far = rn_Tanh(s, turn(s, far));
  rn_edges_t parts = rn_Split(s, rn_const_int32(s, 1), e, kGates);
  results[0] = far;
  results[1] = rn_Mul(s, rn_Sigmoid(s, rn_edge_at(parts, 0)), rn_edge_at(parts, 3));
}
RT_TEST(fuse, parts_of_a_result) { check_pair(parts_of_a_result); }

// A group with too many operands is tried again, smaller: what has readers outside stays outside.
static void too_many_operands(rn_scope_t* s, rn_edge_t x, rn_edge_t results[2]) {
  rn_edge_t start = rn_Tanh(s, x), sum = start, outside = start;
  for (int i = 0; i < 3; ++i) {
    rn_edge_t other = turn(s, rn_Add(s, turn(s, start), rn_const_float(s, (float)i)));
    outside = i == 0 ? other : rn_Maximum(s, turn(s, turn(s, outside)), other);
  }
  for (int i = 0; i < 30; ++i) sum = rn_Mul(s, sum, rn_const_float(s, 1 + (float)i / 64));
  results[0] = rn_Mul(s, rn_AddV2(s, sum, outside), start);
  results[1] = outside;
}
RT_TEST(fuse, too_many_operands) { check_pair(too_many_operands); }

// x + 1 goes into a queue, and is multiplied by what comes out of it: one node for both would wait
// for itself.
RT_TEST(fuse, nobody_waits_for_himself) {
  rt_t rt = rt_begin(2);
  static const int types[] = {RN_FLOAT};
  static const int64_t dims[2] = {2, 600};
  static const int64_t* const shapes[] = {dims};
  static const int ranks[] = {2};
  rn_op_begin(rt.s, "FIFOQueueV2");
  rn_op_attr_type_list(rt.s, "component_types", types, 1);
  rn_op_attr_shape_list(rt.s, "shapes", shapes, ranks, 1);
  rn_edge_t queue = {rn_op_finish(rt.s), 0};
  rn_edge_t x = rn_Placeholder(rt.s, RN_FLOAT, .shape = {true, dims, 2});
  rn_edge_t more = rn_AddV2(rt.s, x, rn_const_float(rt.s, 1));
  rn_node_t* put = rn_QueueEnqueueV2(rt.s, queue, &more, 1);
  const int32_t shape[2] = {(int32_t)dims[0], (int32_t)dims[1]};
  rn_edge_t taken = rn_Reshape(rt.s, rn_edge_at(rn_QueueDequeueV2(rt.s, queue, types, 1), 0),
                               rn_const_int32_list(rt.s, shape, 2));
  rn_edge_t product = rn_Tanh(rt.s, rn_Mul(rt.s, more, taken));
  rn_tensor_t value = numbers(2, 600, 1);
  rt_step_t step = {0};
  rt_feed(&step, x, &value);
  rt_fetch(&step, product);
  rt_target(&step, put);
  OK(rt_run(&rt, &step));
  float wanted = RN_DATA(&value, float)[0] + 1;
  cr_assert_float_eq(RN_DATA(&step.out[0], float)[0], tanhf(wanted * wanted), 1e-6);
  rt_clear(&step);
  rn_tensor_clear(&value);
  rt_end(&rt);
}

// Of a conditional whose branch multiplies by x + 1, that is there whichever branch is taken.
static void check_branch(bool predicate) {
  rt_t rt = rt_begin(1);
  static const int64_t dims[2] = {2, 600};
  rn_edge_t x = rn_Placeholder(rt.s, RN_FLOAT, .shape = {true, dims, 2});
  rn_edge_t p = rn_Placeholder(rt.s, RN_BOOL, .shape = {true, dims, 0});
  rn_edge_t more = rn_AddV2(rt.s, x, rn_const_float(rt.s, 1));
  rn_Switch_out_t forked = rn_Switch(rt.s, x, p);
  rn_edge_t ends[2] = {rn_Neg(rt.s, forked.output_false), rn_Mul(rt.s, more, forked.output_true)};
  rn_tensor_t value = numbers(2, 600, 1), chosen = rt_bool(predicate);
  rt_step_t step = {0};
  rt_feed(&step, x, &value);
  rt_feed(&step, p, &chosen);
  rt_fetch(&step, rn_Merge(rt.s, ends, 2).output);
  rt_fetch(&step, total(rt.s, more));
  OK(rt_run(&rt, &step));
  const float* in = value.data;
  cr_assert_float_eq(RN_DATA(&step.out[0], float)[0], predicate ? in[0] * (in[0] + 1) : -in[0],
                     1e-6);
  cr_assert_float_eq(RN_DATA(&step.out[1], float)[0], in[0] + in[600] + 2, 1e-6);
  rt_clear(&step);
  rn_tensor_clear(&value);
  rn_tensor_clear(&chosen);
  rt_end(&rt);
}

RT_TEST(fuse, a_branch_takes_nothing_with_it) {
  check_branch(true);
  check_branch(false);
}
