// Recorded steps with loops and conditionals: replays compute what the steps before did, and give
// way when the host decides otherwise.
#include <math.h>

#include "counts.h"
#include "runnel/control_flow.h"
#include "runnel/gradients.h"
#include "runnel/variables.h"
#include "util.h"

typedef struct loop_t {
  rn_edge_t limit, factor;
} loop_t;

static rn_edge_t below(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  return rn_Less(s, values[0], ((loop_t*)arg)->limit);
}

// y ← y · factor + sin(y)
static void grow(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
  next[1] = rn_AddV2(s, rn_Mul(s, values[1], ((loop_t*)arg)->factor), rn_Sin(s, values[1]));
}

static float grown(float y, float factor, int turns) {
  for (int i = 0; i < turns; ++i) y = y * factor + sinf(y);
  return y;
}

static rn_edge_t loop(rn_scope_t* s, loop_t* l, rn_edge_t x) {
  rn_edge_t starts[2] = {rn_const_int32(s, 0), x}, ends[2] = {RN_NO_EDGE, RN_NO_EDGE};
  rn_while(s, below, grow, l, starts, ends, 2);
  return ends[1];
}

// How many kernels were launched one by one; 0 on a real card.
static int64_t launches(void) { return (int64_t)emulated_count("cuLaunchKernel"); }

// Expects that the steps since |before| launched nothing but graphs.
static void expect_replays(int64_t before, const char* what) {
  if (before) cr_assert_eq(launches(), before, "%s: every step is a graph", what);
}

// All turns of a loop are one graph, for any values on the device.
RT_TEST(record_loops, turns_are_replayed) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  loop_t l = {rn_const_int32(rt.s, 7), rn_const_float(rt.s, 0.75f)};
  rn_edge_t y = loop(rt.s, &l, x);
  int64_t before = 0;
  for (int turn = 0; turn < 8; ++turn) {
    if (turn == 2) before = launches();
    float value = 0.1f * (float)turn;
    cr_assert_float_eq(rt_get(&rt, y, x, value), grown(value, 0.75f, 7), 1e-5, "step %d", turn);
  }
  expect_replays(before, "loop");
  rt_end(&rt);
}

static float run_turns(rt_t* rt, rn_edge_t y, rn_edge_t x, float value, rn_edge_t limit,
                       int turns) {
  rt_step_t step = {0};
  rn_tensor_t fed = rt_scalar(value), count;
  OK(rn_tensor_create(rn_allocator_system(), RN_INT32, RN_SHAPE_SCALAR, &count));
  *RN_DATA(&count, int32_t) = turns;
  rt_feed(&step, x, &fed);
  rt_feed(&step, limit, &count);
  rt_fetch(&step, y);
  OK(rt_run(rt, &step));
  float result = rt_value(&step.out[0]);
  rt_clear(&step);
  rn_tensor_clear(&fed);
  rn_tensor_clear(&count);
  return result;
}

// The number of turns is fed: a recording serves the steps with its number only.
RT_TEST(record_loops, fed_numbers_of_turns) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  loop_t l = {rn_Placeholder(rt.s, RN_INT32, .shape = RN_SET_SHAPE(NULL, 0)),
              rn_const_float(rt.s, 0.75f)};
  rn_edge_t y = loop(rt.s, &l, x);
  static const int turns[] = {3, 3, 3, 5, 3, 3, 0, 0, 0, 4, 4, 4, 1, 4, 4, 4};
  for (size_t i = 0; i < sizeof turns / sizeof *turns; ++i) {
    int64_t before = launches();
    float value = 0.1f * (float)i + 0.1f;
    float got = run_turns(&rt, y, x, value, l.limit, turns[i]);
    cr_assert_float_eq(got, grown(value, 0.75f, turns[i]), 1e-5, "step %d: %g", (int)i, got);
    bool is_third = i > 1 && turns[i] == turns[i - 1] && turns[i] == turns[i - 2];
    if (is_third) expect_replays(before, "the same number for the third time");
  }
  rt_end(&rt);
}

// A number that the host computes is fetched: the client may change what it got.
RT_TEST(record_loops, fetched_numbers) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  loop_t l = {rn_const_int32(rt.s, 6), rn_const_float(rt.s, 0.5f)};
  rn_edge_t starts[2] = {rn_const_int32(rt.s, 2), x}, ends[2];
  rn_while(rt.s, below, grow, &l, starts, ends, 2);
  int64_t before = 0;
  for (int turn = 0; turn < 6; ++turn) {
    if (turn == 2) before = launches();
    rt_step_t step = {0};
    rn_tensor_t fed = rt_scalar(0.3f * (float)turn);
    rt_feed(&step, x, &fed);
    rt_fetch(&step, ends[0]);
    rt_fetch(&step, ends[1]);
    OK(rt_run(&rt, &step));
    cr_assert_eq(*RN_DATA(&step.out[0], int32_t), 6, "step %d: %d", turn,
                 *RN_DATA(&step.out[0], int32_t));
    cr_assert_float_eq(rt_value(&step.out[1]), grown(0.3f * (float)turn, 0.5f, 4), 1e-5);
    *RN_DATA(&step.out[0], int32_t) = -1;
    rt_clear(&step);
    rn_tensor_clear(&fed);
  }
  expect_replays(before, "numbers");
  rt_end(&rt);
}

static void add_up(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
  next[1] =
      rn_AddV2(s, values[1], rn_Sum(s, rn_Sin(s, ((loop_t*)arg)->factor), rn_const_int32(s, 0)));
}

// A variable of no fixed shape: what was recorded for a long value must not serve a shorter one,
// which may lie in the same place.
RT_TEST(record_loops, variables_that_shrink) {
  rt_t rt = rt_begin(1);
  rn_scope_t* s = rt.s;
  rn_op_begin(s, "VarHandleOp");
  rn_op_attr_type(s, "dtype", RN_FLOAT);
  rn_op_attr_shape(s, "shape", NULL, -1);
  rn_edge_t handle = {rn_op_finish(s), 0};
  rn_edge_t x = rn_Placeholder(s, RN_FLOAT), start = rt_placeholder(&rt, "start");
  rn_node_t* set = rn_AssignVariableOp(s, handle, x);
  loop_t l = {rn_const_int32(s, 3), rn_ReadVariableOp(s, handle, RN_FLOAT)};
  rn_edge_t starts[2] = {rn_const_int32(s, 0), start}, ends[2];
  rn_while(s, below, add_up, &l, starts, ends, 2);
  const float values[] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f};
  static const int64_t sizes[] = {8, 8, 4, 4, 8, 2, 8, 3, 3};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    rn_tensor_t fed = rt_floats(sizes[i], values);
    rt_step_t step = {0};
    rt_feed(&step, x, &fed);
    rt_target(&step, set);
    OK(rt_run(&rt, &step));
    rn_tensor_clear(&fed);
    float want = 0;
    for (int64_t k = 0; k < sizes[i]; ++k) want += 3 * sinf(values[k]);
    for (int turn = 0; turn < 3; ++turn)
      cr_assert_float_eq(rt_get(&rt, ends[1], start, (float)turn), want + (float)turn, 1e-4,
                         "%d values, step %d", (int)sizes[i], turn);
  }
  rt_end(&rt);
}

// Three numbers of turns that take turns: each has a recording of its own.
RT_TEST(record_loops, numbers_that_take_turns) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  loop_t l = {rn_Placeholder(rt.s, RN_INT32, .shape = RN_SET_SHAPE(NULL, 0)),
              rn_const_float(rt.s, 0.75f)};
  rn_edge_t y = loop(rt.s, &l, x);
  int64_t before = 0;
  for (int i = 0; i < 18; ++i) {
    if (i == 6) before = launches();
    const int turns = 2 + i % 3 * 2;
    const float value = 0.1f * (float)i;
    cr_assert_float_eq(run_turns(&rt, y, x, value, l.limit, turns), grown(value, 0.75f, turns),
                       1e-5, "step %d", i);
  }
  expect_replays(before, "numbers that take turns");
  // More numbers than there are recordings.
  for (int i = 0; i < 60; ++i) {
    const int turns = i * i % 7;
    cr_assert_float_eq(run_turns(&rt, y, x, 0.5f, l.limit, turns), grown(0.5f, 0.75f, turns), 1e-5,
                       "step %d", i);
  }
  rt_end(&rt);
}

static void add_random(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  rn_edge_t numbers = rn_RandomUniform(s, rn_const_int32_list(s, (int32_t[]){5}, 1), RN_FLOAT,
                                       .seed = 3, .seed2 = 4);
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
  next[1] = rn_AddV2(s, values[1], rn_Sum(s, numbers, rn_const_int32(s, 0)));
}

// Each turn of a replayed loop draws new numbers, those that the CPU draws.
RT_TEST(record_loops, random_numbers_go_on) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x"), sums[2];
  loop_t l = {rn_const_int32(rt.s, 4), RN_NO_EDGE};
  for (int on_gpu = 0; on_gpu < 2; ++on_gpu) {
    rn_scope_set_device(rt.s, on_gpu ? "/gpu:0" : "/cpu:0");
    rn_edge_t starts[2] = {rn_const_int32(rt.s, 0), x}, ends[2];
    rn_while(rt.s, below, add_random, &l, starts, ends, 2, .parallel_iterations = 1);
    sums[on_gpu] = ends[1];
  }
  float last = 0;
  int64_t before = 0;
  for (int turn = 0; turn < 8; ++turn) {
    if (turn == 3) before = launches();
    float gpu = rt_get(&rt, sums[1], x, 1), cpu = rt_get(&rt, sums[0], x, 1);
    cr_assert_float_eq(gpu, cpu, 1e-4, "step %d: %g and %g", turn, gpu, cpu);
    cr_assert_neq(gpu, last);
    last = gpu;
  }
  expect_replays(before, "random numbers");
  rt_end(&rt);
}

static int doubled(rn_scope_t* s, rn_edge_t* out, void* arg) {
  out[0] = rn_Sin(s, rn_AddV2(s, *(rn_edge_t*)arg, *(rn_edge_t*)arg));
  return 1;
}

static int squared(rn_scope_t* s, rn_edge_t* out, void* arg) {
  out[0] = rn_Exp(s, rn_Mul(s, *(rn_edge_t*)arg, *(rn_edge_t*)arg));
  return 1;
}

// The predicate of a conditional is fed.
RT_TEST(record_loops, fed_predicates) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x"), y;
  rn_edge_t is_small = rn_Placeholder(rt.s, RN_BOOL, .shape = RN_SET_SHAPE(NULL, 0));
  rn_cond(rt.s, is_small, rn_branch(doubled, &x), rn_branch(squared, &x), &y, 1);
  for (int turn = 0; turn < 20; ++turn) {
    bool chosen = turn < 12 ? turn / 4 % 2 == 0 : turn % 2 == 0;
    float value = 0.05f * (float)turn;
    rt_step_t step = {0};
    rn_tensor_t fed = rt_scalar(value), choice = rt_bool(chosen);
    rt_feed(&step, x, &fed);
    rt_feed(&step, is_small, &choice);
    rt_fetch(&step, y);
    int64_t before = launches();
    OK(rt_run(&rt, &step));
    float want = chosen ? sinf(2 * value) : expf(value * value);
    cr_assert_float_eq(rt_value(&step.out[0]), want, 1e-5, "step %d", turn);
    if (turn < 12 && turn % 4 > 1) expect_replays(before, "conditional");
    rt_clear(&step);
    rn_tensor_clear(&fed);
    rn_tensor_clear(&choice);
  }
  rt_end(&rt);
}

static rn_edge_t below_limit(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  return rn_Less(s, values[1], rn_const_float(s, *(float*)arg));
}

static void add_one(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
  next[1] = rn_AddV2(s, values[1], rn_const_float(s, 1));
}

// What the device computes decides: nothing is recorded.
RT_TEST(record_loops, conditions_on_the_device) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  float limit = 5;
  rn_edge_t starts[2] = {rn_const_int32(rt.s, 0), x}, ends[2];
  rn_while(rt.s, below_limit, add_one, &limit, starts, ends, 2);
  for (int turn = 0; turn < 10; ++turn) {
    float value = 0.7f * (float)turn;
    float want = value;
    while (want < limit) want += 1;
    cr_assert_float_eq(rt_get(&rt, ends[1], x, value), want, 1e-5, "step %d", turn);
  }
  rt_end(&rt);
}

// Gradients of a loop keep values of all turns on stacks, and change a variable: on the CPU and on
// the GPU, step for step.
static void train(const char* device, float* values, int steps) {
  rt_t rt = rt_begin(1);
  rn_scope_t* s = rt.s;
  rn_scope_set_device(s, device);
  rn_edge_t handle = rn_VarHandleOp(s, RN_FLOAT, (int64_t[]){2}, 1, .shared_name = "w");
  const int64_t two = 2;
  rn_edge_t start = rn_const(s, RN_FLOAT, &two, 1, (float[]){0.5f, -0.25f});
  rn_node_t* begin = rn_AssignVariableOp(s, handle, start);
  rn_edge_t w = rn_ReadVariableOp(s, handle, RN_FLOAT);
  rn_edge_t x = rn_const(s, RN_FLOAT, &two, 1, (float[]){0.3f, 0.6f}), dw;
  loop_t l = {rn_const_int32(s, 5), w};
  rn_edge_t loss = rn_Sum(s, rn_Square(s, loop(s, &l, x)), rn_const_int32(s, 0));
  rn_gradients(s, loss, &w, 1, &dw);
  rn_node_t* update = rn_ResourceApplyGradientDescent(s, handle, rn_const_float(s, 0.05f), dw);
  rt_do(&rt, begin);
  int64_t before = 0;
  for (int i = 0; i < steps; ++i) {
    if (i == 3) before = launches();
    rt_step_t step = {0};
    rt_fetch(&step, loss);
    rt_target(&step, update);
    OK(rt_run(&rt, &step));
    values[i] = rt_value(&step.out[0]);
    rt_clear(&step);
  }
  if (strstr(device, "gpu")) expect_replays(before, "training");
  rt_end(&rt);
}

RT_TEST(record_loops, gradients) {
  float cpu[9], gpu[9];
  train("/cpu:0", cpu, 9);
  train("/gpu:0", gpu, 9);
  for (int i = 0; i < 9; ++i) cr_assert_float_eq(gpu[i], cpu[i], 1e-4, "step %d", i);
  cr_assert_lt(gpu[8], gpu[0]);
}
