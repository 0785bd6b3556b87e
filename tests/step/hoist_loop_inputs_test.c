// Loops over the rows of a tensor, multiplied by weights: the inputs' part is computed before the
// loop, with the same bits as in the unoptimized graph.
#include "grad/grad.h"
#include "nets.h"
#include "runnel/control_flow.h"

enum { kTime = 7, kInput = 130, kState = 65, kGates = 2 * kState };

typedef enum kind_t {
  kArray = 0,   // a TensorArray, [x, h] W and a bias
  kShapeless,   // likewise; only the tensor in the array tells the shape of x
  kList,        // a list, likewise
  kAlone,       // a list, x V + h U
  kReversed,    // a list, from its end
  kShuffled,    // a TensorArray whose rows are scattered in another order: stays
  kHalves,      // a TensorArray that two nodes write: stays
  kStateFirst,  // [h, x] W: stays
} kind_t;

typedef struct loop_t {
  net_t net;
  kind_t kind;
  int64_t rows;
  rn_edge_t handle, source;  // the TensorArray and its flow, or the list
  rn_edge_t w, v, u, bias;
  rn_edge_t out_handle;
} loop_t;

static rn_edge_t goes_on(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rn_const_int32(s, kTime));
}

static bool is_list(kind_t kind) { return kind == kList || kind == kAlone || kind == kReversed; }

static rn_edge_t input_at(rn_scope_t* s, const loop_t* loop, rn_edge_t t) {
  const int32_t sizes[2] = {(int32_t)loop->rows, kInput};
  if (loop->kind == kReversed) t = rn_Sub(s, rn_const_int32(s, kTime - 1), t);
  if (is_list(loop->kind))
    return rn_TensorListGetItem(s, loop->source, t, rn_const_int32_list(s, sizes, 2), RN_FLOAT);
  const int64_t dims[2] = {loop->rows, kInput};
  rn_edge_t x = rn_TensorArrayReadV3(s, loop->handle, t, loop->source, RN_FLOAT);
  if (loop->kind == kShapeless) return x;
  return rn_EnsureShape(s, x, dims, 2);
}

static void body(rn_scope_t* s, const rn_edge_t* in, rn_edge_t* out, void* arg) {
  const loop_t* loop = arg;
  rn_edge_t x = input_at(s, loop, in[0]), h = in[1], gates;
  if (loop->kind == kAlone) {
    gates = rn_AddV2(s, rn_MatMul(s, x, loop->v), rn_MatMul(s, h, loop->u));
  } else {
    bool is_first = loop->kind == kStateFirst;
    rn_edge_t sides[2] = {is_first ? h : x, is_first ? x : h};
    gates = rn_MatMul(s, rn_ConcatV2(s, sides, 2, rn_const_int32(s, 1)), loop->w);
    gates = rn_BiasAdd(s, gates, loop->bias);
  }
  out[0] = rn_AddV2(s, in[0], rn_const_int32(s, 1));
  out[1] = rn_Mul(s, rn_Tanh(s, columns(s, gates, 0, kState)),
                  rn_Sigmoid(s, columns(s, gates, kState, kState)));
}

// Puts the rows of |all|, [time, rows, input], where the loop reads them.
static void fill(rn_scope_t* s, loop_t* loop, rn_edge_t all) {
  if (is_list(loop->kind)) {
    const int32_t sizes[2] = {(int32_t)loop->rows, kInput};
    loop->source = rn_TensorListFromTensor(s, all, rn_const_int32_list(s, sizes, 2));
    return;
  }
  static const int32_t up[kTime] = {0, 1, 2, 3, 4, 5, 6}, shuffled[kTime] = {0, 2, 1, 3, 4, 6, 5};
  const int32_t* order = loop->kind == kShuffled ? shuffled : up;
  int32_t size = loop->kind == kHalves ? 2 * kTime : kTime;
  rn_TensorArrayV3_out_t array = rn_TensorArrayV3(s, rn_const_int32(s, size), RN_FLOAT);
  loop->handle = array.handle;
  loop->source = rn_TensorArrayScatterV3(s, array.handle, rn_const_int32_list(s, order, kTime), all,
                                         array.flow);
  if (loop->kind != kHalves) return;
  static const int32_t more[kTime] = {7, 8, 9, 10, 11, 12, 13};
  rn_edge_t flow = rn_TensorArrayScatterV3(s, array.handle, rn_const_int32_list(s, more, kTime),
                                           rn_Neg(s, all), array.flow);
  loop->source = rn_AddV2(s, loop->source, flow);
}

static net_t net_of(rn_scope_t* s, int64_t rows, kind_t kind, bool has_gradients) {
  loop_t loop = {.kind = kind, .rows = rows};
  rn_edge_t flat = net_feed(s, &loop.net, kTime * rows, kInput);
  rn_edge_t h = net_feed(s, &loop.net, rows, kState);
  loop.w = net_feed(s, &loop.net, kInput + kState, kGates);
  const int32_t v_from[2] = {0, 0}, v_size[2] = {kInput, kGates};
  const int32_t u_from[2] = {kInput, 0}, u_size[2] = {kState, kGates};
  loop.v =
      rn_Slice(s, loop.w, rn_const_int32_list(s, v_from, 2), rn_const_int32_list(s, v_size, 2));
  loop.u =
      rn_Slice(s, loop.w, rn_const_int32_list(s, u_from, 2), rn_const_int32_list(s, u_size, 2));
  loop.bias = rn_Sum(s, loop.w, rn_const_int32(s, 0));
  const int32_t dims[3] = {kTime, (int32_t)rows, kInput};
  fill(s, &loop, rn_Reshape(s, flat, rn_const_int32_list(s, dims, 3)));
  rn_edge_t starts[2] = {rn_const_int32(s, 0), h}, ends[2];
  cr_assert(rn_while(s, goes_on, body, &loop, starts, ends, 2));
  net_fetch(&loop.net, ends[1]);
  if (has_gradients) {
    rn_edge_t y = rn_Sum(s, rn_Square(s, ends[1]), rn_const_int32(s, 0)), grads[2];
    const rn_edge_t xs[2] = {loop.w, flat};
    OK(rn_add_gradients(rn_scope_graph(s), RN_STR("g"), &y, 1, xs, 2, NULL, grads));
    net_fetch(&loop.net, grads[0]);
    net_fetch(&loop.net, grads[1]);
  }
  return loop.net;
}

#define NET(name, kind) \
  static net_t name(rn_scope_t* s, int64_t rows) { return net_of(s, rows, kind, false); }
NET(array, kArray)
NET(shapeless, kShapeless)
NET(list, kList)
NET(alone, kAlone)
NET(reversed, kReversed)
NET(shuffled, kShuffled)
NET(halves, kHalves)
NET(state_first, kStateFirst)
static net_t trained(rn_scope_t* s, int64_t rows) { return net_of(s, rows, kArray, true); }

static void compare(build_t build) {
  static const int64_t rows[] = {1, 2, 7, 24, 49};
  keeps_bits(build, rows, 5, 4);
}

RT_TEST(loop_inputs, array_keeps_its_bits) { compare(array); }
RT_TEST(loop_inputs, shapeless_reads_keep_their_bits) { compare(shapeless); }
RT_TEST(loop_inputs, list_keeps_its_bits) { compare(list); }
RT_TEST(loop_inputs, product_of_the_input_alone_keeps_its_bits) { compare(alone); }
RT_TEST(loop_inputs, reversed_list_keeps_its_bits) { compare(reversed); }
RT_TEST(loop_inputs, shuffled_array_keeps_its_bits) { compare(shuffled); }
RT_TEST(loop_inputs, array_of_two_writers_keeps_its_bits) { compare(halves); }
RT_TEST(loop_inputs, state_first_keeps_its_bits) { compare(state_first); }
RT_TEST(loop_inputs, gradients_keep_their_bits) { compare(trained); }

static int left(build_t build, int64_t rows, const char* op) {
  return count_after(rn_pass_hoist_loop_inputs, build, rows, op);
}

RT_TEST(loop_inputs, parts_of_inputs_are_made_before_the_loop) {
  static const build_t builds[] = {array, shapeless, list, reversed, trained};
  for (size_t i = 0; i < sizeof builds / sizeof *builds; ++i) {
    cr_assert_eq(left(builds[i], 1, "_RowsAt"), 1);
    cr_assert_eq(left(builds[i], 1, "_ContinuedMatMul"), 1);
    cr_assert_eq(left(builds[i], 1, "MatMul"), 1);
    cr_assert_eq(left(builds[i], 1, "BiasAdd"), 0);
  }
  cr_assert_eq(left(alone, 24, "_RowsAt"), 1);
  cr_assert_eq(left(alone, 24, "MatMul"), 2);
}

RT_TEST(loop_inputs, what_may_be_another_row_stays) {
  static const build_t builds[] = {shuffled, halves, state_first};
  for (size_t i = 0; i < sizeof builds / sizeof *builds; ++i)
    cr_assert_eq(left(builds[i], 1, "_RowsAt"), 0);
}

// A read beyond the end fails as it does without the pass.
static rn_edge_t goes_too_far(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rn_const_int32(s, kTime + 1));
}

static rn_status_t run_too_far(bool optimize) {
  rt_t rt = rt_begin(1);
  rt.options.optimize = optimize;
  loop_t loop = {.kind = kArray, .rows = 1};
  const int32_t all[3] = {kTime, 1, kInput}, w[2] = {kInput + kState, kGates}, h[2] = {1, kState};
  rn_edge_t one = rn_const_scalar(rt.s, RN_FLOAT, 1);
  loop.w = rn_Fill(rt.s, rn_const_int32_list(rt.s, w, 2), one);
  loop.bias = rn_Fill(rt.s, rn_const_int32_list(rt.s, w + 1, 1), one);
  fill(rt.s, &loop, rn_Fill(rt.s, rn_const_int32_list(rt.s, all, 3), one));
  rn_edge_t starts[2] = {rn_const_int32(rt.s, 0),
                         rn_Fill(rt.s, rn_const_int32_list(rt.s, h, 2), one)};
  rn_edge_t ends[2];
  cr_assert(rn_while(rt.s, goes_too_far, body, &loop, starts, ends, 2));
  rt_step_t step = {0};
  rt_fetch(&step, ends[1]);
  rn_status_t status = rt_run(&rt, &step);
  rt_end(&rt);
  return status;
}

RT_TEST(loop_inputs, reads_beyond_the_end_fail_alike) {
  rn_status_t plain = run_too_far(false), optimized = run_too_far(true);
  cr_assert(!rn_ok(plain) && !rn_ok(optimized));
  cr_assert_eq(rn_status_code(plain), rn_status_code(optimized));
  cr_assert_str_eq(rn_status_message(plain), rn_status_message(optimized));
  rn_status_free(plain);
  rn_status_free(optimized);
}
