// Control edges that the planner drops, and those that it must keep.
#include "loop_bodies.h"

static rn_edge_t after(rn_scope_t* s, rn_edge_t value, rn_node_t* control) {
  rn_scope_add_control(s, control);
  rn_edge_t passed = rn_Identity(s, value);
  rn_scope_clear_controls(s);
  return passed;
}
static rn_node_t* group(rn_scope_t* s, rn_node_t* a, rn_node_t* b) {
  rn_scope_add_control(s, a);
  rn_scope_add_control(s, b);
  rn_node_t* node = rn_NoOp(s);
  rn_scope_clear_controls(s);
  return node;
}

// A gradient that nobody wants is only waited for: what it would be is not computed. Here it cannot
// be.
RT_TEST(controls, nobody_computes_what_is_only_waited_for) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = rt_begin(1);
    rt.options.optimize = optimize;
    rn_edge_t x = rt_placeholder(&rt, "x"), wanted = rn_Neg(rt.s, x);
    rn_edge_t impossible = rn_Reshape(rt.s, rn_Square(rt.s, x), rn_Shape(rt.s, rn_Shape(rt.s, x)));
    rn_edge_t y = after(rt.s, wanted, group(rt.s, wanted.node, impossible.node));
    rt_step_t step = {0};
    float two[] = {1, 2};
    rn_tensor_t fed = rt_floats(2, two);
    rt_feed(&step, x, &fed);
    rt_fetch(&step, rn_Neg(rt.s, y));
    rn_status_t status = rt_run(&rt, &step);
    cr_assert_eq(rn_ok(status), optimize);
    rn_status_free(status);
    rt_clear(&step);
    rn_tensor_clear(&fed);
    rt_end(&rt);
  }
}

// An effect stays, however it is waited for, and a check too.
RT_TEST(controls, effects_and_checks_are_waited_for) {
  rt_t rt = rt_begin(2);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t counted = rt_op(rt.s, "TestCount", x);
  rn_node_t* both = group(rt.s, rn_Neg(rt.s, counted).node, x.node);
  rn_edge_t y = rn_Neg(rt.s, rn_Square(rt.s, after(rt.s, x, both)));
  int before = rt_count;
  cr_assert_eq(rt_get(&rt, y, x, 3), -9);
  cr_assert_eq(rt_count, before + 1);
  rn_edge_t check = rn_CheckNumerics(rt.s, rn_Log(rt.s, x), "log");
  rn_edge_t z = rn_Neg(rt.s, after(rt.s, x, group(rt.s, x.node, check.node)));
  cr_assert_eq(rt_get(&rt, z, x, 3), -3);
  rt_step_t step = {0};
  rn_tensor_t fed = rt_scalar(-1);
  rt_feed(&step, x, &fed);
  rt_fetch(&step, z);
  FAILS_WITH(rt_run(&rt, &step), INVALID_ARGUMENT, "log");
  rn_tensor_clear(&fed);
  rt_end(&rt);
}

// What is assigned waits, through nodes without effects, for a slow reader of the old value.
RT_TEST(controls, assignments_come_after_reads) {
  for (int threads = 1; threads <= 4; threads *= 2) {
    rt_t rt = rt_begin(threads);
    rn_scope_t* s = rt.s;
    rn_edge_t variable = rn_VarHandleOp(s, RN_FLOAT, NULL, 0), x = rt_placeholder(&rt, "x");
    rn_node_t* init = rn_AssignVariableOp(s, variable, x);
    rn_edge_t trigger = rt_op(s, "TestSlow", x);
    rn_scope_add_control(s, trigger.node);
    rn_edge_t old = rn_ReadVariableOp(s, variable, RN_FLOAT);
    rn_scope_clear_controls(s);
    rn_edge_t twice = rn_AddV2(s, old, old);
    rn_edge_t next = rn_AddV2(s, after(s, x, group(s, twice.node, x.node)), x);
    rn_node_t* assign = rn_AssignVariableOp(s, variable, rn_Square(s, next));
    for (int turn = 0; turn < 5; ++turn) {
      rn_tensor_t fed = rt_scalar(1);
      rt_step_t first = {0}, second = {0};
      rt_feed(&first, x, &fed);
      rt_target(&first, init);
      OK(rt_run(&rt, &first));
      rt_feed(&second, x, &fed);
      rt_target(&second, assign);
      rt_fetch(&second, twice);
      OK(rt_run(&rt, &second));
      cr_assert_eq(rt_value(&second.out[0]), 2);
      rt_clear(&second);
      rn_tensor_clear(&fed);
    }
    rt_end(&rt);
  }
}

// Reads that wait for the same are one; those before and after an assignment are not.
RT_TEST(controls, reads_see_what_was_assigned_before_them) {
  for (int threads = 1; threads <= 2; ++threads) {
    rt_t rt = rt_begin(threads);
    rn_scope_t* s = rt.s;
    rn_edge_t variable = rn_VarHandleOp(s, RN_FLOAT, NULL, 0), x = rt_placeholder(&rt, "x");
    rn_node_t* init = rn_AssignVariableOp(s, variable, rn_const_float(s, 1));
    rn_edge_t a = rn_ReadVariableOp(s, variable, RN_FLOAT);
    rn_edge_t b = rn_ReadVariableOp(s, variable, RN_FLOAT);
    rn_node_t* assign = rn_AssignVariableOp(s, variable, rn_AddV2(s, rn_AddV2(s, a, b), x));
    rn_scope_add_control(s, assign);
    rn_edge_t c = rn_ReadVariableOp(s, variable, RN_FLOAT);
    rn_edge_t d = rn_ReadVariableOp(s, variable, RN_FLOAT);
    rn_scope_clear_controls(s);
    rn_edge_t sum = rn_AddV2(s, rn_AddV2(s, a, b), rn_Mul(s, c, d));
    rt_do(&rt, init);
    cr_assert_eq(rt_get(&rt, sum, x, 5), 2 + 49);
    cr_assert_eq(rt_get(&rt, sum, x, 0), 14 + 196);
    rt_end(&rt);
  }
}

// A value that waits for one way of a Switch lives and dies with it, also behind other nodes.
RT_TEST(controls, the_way_not_taken_stays_dead) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = rt_begin(1);
    rt.options.optimize = optimize;
    rn_scope_t* s = rt.s;
    rn_edge_t x = rt_placeholder(&rt, "x"), y = rt_placeholder(&rt, "y");
    rn_Switch_out_t way = rn_Switch(s, x, rn_Less(s, x, rn_const_float(s, 0)));
    rn_edge_t below = rn_Square(s, rn_Neg(s, way.output_true));
    rn_edge_t above = rn_Square(s, rn_Neg(s, way.output_false));
    rn_edge_t a = rn_AddV2(s, after(s, y, below.node), rn_const_float(s, 1));
    rn_edge_t b = rn_AddV2(s, after(s, y, above.node), rn_const_float(s, 2));
    rn_edge_t result = rn_Neg(s, rn_Merge(s, ((rn_edge_t[]){a, b}), 2).output);
    for (int turn = 0; turn < 4; ++turn) {
      rt_step_t step = {0};
      rn_tensor_t fed = rt_scalar(turn % 2 ? 5 : -5), other = rt_scalar(10);
      rt_feed(&step, x, &fed);
      rt_feed(&step, y, &other);
      rt_fetch(&step, result);
      OK(rt_run(&rt, &step));
      cr_assert_eq(rt_value(&step.out[0]), turn % 2 ? -12 : -11);
      rt_clear(&step);
      rn_tensor_clear(&fed);
      rn_tensor_clear(&other);
    }
    rt_end(&rt);
  }
}

// The gradient of a loop in small: values go on a stack, come off it in a second loop, and a weight
// adds up products, with every value in a group with others.
typedef struct chain_t {
  rn_edge_t stack, a, b;
} chain_t;

static rn_edge_t below_five(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rt_const_at(s, values[0], 5));
}
static void push_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const chain_t* chain = arg;
  rn_edge_t pushed = rn_StackPushV2(s, enter(s, "forward", chain->stack), values[1]);
  next[0] = after(s, rn_AddV2(s, values[0], rt_const_at(s, values[0], 1)), pushed.node);
  next[1] = rn_Tanh(s, rn_AddV2(s, values[1], rn_Square(s, values[1])));
}
static void pop_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const chain_t* chain = arg;
  rn_edge_t count = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  rn_edge_t stack = enter(s, "backward", chain->stack);
  rn_scope_add_control(s, count.node);
  rn_edge_t popped = rn_StackPopV2(s, stack, RN_FLOAT);
  rn_scope_clear_controls(s);
  rn_edge_t gradient = rn_Mul(s, values[2], rn_Sigmoid(s, popped));
  rn_edge_t product = rn_MatMul(s, popped, enter(s, "backward", chain->b), .transpose_a = true);
  rn_node_t* all = group(s, gradient.node, product.node);
  next[0] = after(s, count, all);
  next[1] = rn_AddV2(s, values[1], after(s, product, all));
  next[2] = after(s, gradient, all);
}

static rn_tensor_t run_chain(bool optimize, int threads) {
  rt_t rt = rt_begin(threads);
  rt.options.optimize = optimize;
  rn_scope_t* s = rt.s;
  enum { kDepth = 9, kRows = 70, kColumns = 90 };
  float a[kDepth * kRows], b[kDepth * kColumns];
  for (int i = 0; i < kDepth * kRows; ++i) a[i] = (float)((i * 7919) % 1009) / 1009 - 0.4f;
  for (int i = 0; i < kDepth * kColumns; ++i) b[i] = (float)((i * 104729) % 997) / 997 - 0.3f;
  const int64_t a_dims[] = {kDepth, kRows}, b_dims[] = {kDepth, kColumns};
  rn_tensor_t a_fed = rt_floats(kDepth * kRows, a), b_fed = rt_floats(kDepth * kColumns, b);
  rn_tensor_t fed[2];
  OK(rn_tensor_reshape(&a_fed, RN_FLOAT, (rn_shape_t){2, a_dims}, &fed[0]));
  OK(rn_tensor_reshape(&b_fed, RN_FLOAT, (rn_shape_t){2, b_dims}, &fed[1]));
  chain_t chain = {.a = rn_Placeholder(s, RN_FLOAT, .shape = {true, a_dims, 2}),
                   .b = rn_Placeholder(s, RN_FLOAT, .shape = {true, b_dims, 2})};
  chain.stack = rn_StackV2(s, rn_const_int32(s, -1), RN_FLOAT);
  rn_edge_t zero = rn_const_float(s, 0);
  rt_loop_t forward = {.frame = "forward",
                       .count = 2,
                       .start = {zero, chain.a},
                       .cond = below_five,
                       .body = push_body,
                       .arg = &chain};
  rt_loop(s, &forward);
  rn_edge_t sum = rn_Fill(s, rn_const_int32_list(s, (int32_t[]){kRows, kColumns}, 2), zero);
  rt_loop_t backward = {.frame = "backward",
                        .count = 3,
                        .start = {rn_AddV2(s, zero, rn_Sub(s, forward.exits[0], forward.exits[0])),
                                  sum, forward.exits[1]},
                        .cond = below_five,
                        .body = pop_body,
                        .arg = &chain};
  rt_loop(s, &backward);
  rn_tensor_t result = {0};
  for (int turn = 0; turn < 2; ++turn) {
    rt_step_t step = {0};
    rt_feed(&step, chain.a, &fed[0]);
    rt_feed(&step, chain.b, &fed[1]);
    rt_fetch(&step, backward.exits[1]);
    rt_fetch(&step, backward.exits[2]);
    OK(rt_run(&rt, &step));
    cr_assert_eq(step.out[1].count, kDepth * kRows);
    rn_tensor_clear(&result);
    result = step.out[0];
    step.out[0] = (rn_tensor_t){0};
    rt_clear(&step);
  }
  rn_tensor_clear(&a_fed);
  rn_tensor_clear(&b_fed);
  for (int i = 0; i < 2; ++i) rn_tensor_clear(&fed[i]);
  rt_end(&rt);
  return result;
}

RT_TEST(controls, gradients_of_loops_keep_their_bits) {
  rn_tensor_t wanted = run_chain(false, 1);
  for (int threads = 1; threads <= 2; ++threads) {
    rn_tensor_t got = run_chain(true, threads);
    cr_assert_eq(got.count, wanted.count);
    cr_assert(memcmp(got.data, wanted.data, rn_tensor_bytes(&wanted)) == 0);
    rn_tensor_clear(&got);
  }
  rn_tensor_clear(&wanted);
}
