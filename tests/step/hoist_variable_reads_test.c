// Variables that loops read: the read is hoisted out of the loop if that makes no difference, and
// kept in the loop if it does.
#include "loop_bodies.h"

typedef struct body_t {
  rn_edge_t handle, stack;
  bool writes;
} body_t;

static rn_edge_t read_at(rn_scope_t* s, rn_edge_t handle, rn_node_t* control) {
  rn_scope_add_control(s, control);
  rn_edge_t value = rn_ReadVariableOp(s, handle, RN_FLOAT);
  rn_scope_clear_controls(s);
  return value;
}
static rn_edge_t below_four(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rt_const_at(s, values[0], 4));
}

// The sum of the variable over four iterations; it goes on the stack each time, and may grow.
static void forward(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const body_t* body = arg;
  rn_edge_t handle = enter(s, "forward", body->handle);
  rn_edge_t stack = enter(s, "forward", body->stack);
  rn_edge_t value = read_at(s, handle, values[0].node);
  rn_edge_t pushed = rn_StackPushV2(s, stack, value);
  rn_scope_add_control(s, pushed.node);
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  rn_scope_clear_controls(s);
  next[1] = rn_AddV2(s, values[1], value);
  if (!body->writes) return;
  rn_scope_add_control(s, pushed.node);
  rn_node_t* add = rn_AssignAddVariableOp(s, handle, rt_const_at(s, values[0], 1));
  rn_scope_clear_controls(s);
  rn_scope_add_control(s, add);
  next[0] = rn_Identity(s, next[0]);
  rn_scope_clear_controls(s);
}
// What comes off the stack, summed up with growing weights.
static void backward(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const body_t* body = arg;
  rn_edge_t stack = enter(s, "backward", body->stack);
  rn_edge_t count = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  rn_scope_add_control(s, count.node);
  rn_edge_t popped = rn_StackPopV2(s, stack, RN_FLOAT);
  rn_scope_clear_controls(s);
  rn_scope_add_control(s, popped.node);
  next[0] = rn_Identity(s, count);
  rn_scope_clear_controls(s);
  next[1] = rn_AddV2(s, values[1], rn_Mul(s, popped, count));
}

static void check(bool writes, bool assigns_first, bool descends, float start, float sum,
                  float weighted, float last) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = rt_begin(2);
    rt.options.optimize = optimize;
    rn_scope_t* s = rt.s;
    body_t body = {.handle = rn_VarHandleOp(s, RN_FLOAT, NULL, 0), .writes = writes};
    body.stack = rn_StackV2(s, rn_const_int32(s, -1), RN_FLOAT);
    rn_edge_t x = rt_placeholder(&rt, "x"), zero = rn_const_float(s, 0);
    rn_node_t* init = rn_AssignVariableOp(s, body.handle, x);
    rn_edge_t begin = zero;
    if (assigns_first) {
      rn_scope_add_control(s, rn_AssignVariableOp(s, body.handle, rn_Neg(s, x)));
      begin = rn_Identity(s, zero);
      rn_scope_clear_controls(s);
    }
    rt_loop_t there = {.frame = "forward",
                       .count = 2,
                       .start = {begin, zero},
                       .cond = below_four,
                       .body = forward,
                       .arg = &body};
    rt_loop(s, &there);
    rn_edge_t over = rn_Sub(s, there.exits[0], there.exits[0]);
    rt_loop_t back = {.frame = "backward",
                      .count = 2,
                      .start = {over, zero},
                      .cond = below_four,
                      .body = backward,
                      .arg = &body};
    rt_loop(s, &back);
    rn_node_t* after = back.exits[1].node;
    if (descends)
      after = rn_ResourceApplyGradientDescent(s, body.handle, rn_const_float(s, 1), back.exits[1]);
    rn_edge_t final = read_at(s, body.handle, after);
    for (int turn = 0; turn < 2; ++turn) {
      rn_tensor_t fed = rt_scalar(start);
      rt_step_t first = {0}, second = {0};
      rt_feed(&first, x, &fed);
      rt_target(&first, init);
      OK(rt_run(&rt, &first));
      rt_feed(&second, x, &fed);
      rt_fetch(&second, there.exits[1]);
      rt_fetch(&second, back.exits[1]);
      rt_fetch(&second, final);
      OK(rt_run(&rt, &second));
      cr_assert_eq(rt_value(&second.out[0]), sum);
      cr_assert_eq(rt_value(&second.out[1]), weighted);
      cr_assert_eq(rt_value(&second.out[2]), last);
      rt_clear(&second);
      rn_tensor_clear(&fed);
    }
    rt_end(&rt);
  }
}

RT_TEST(invariants, a_loop_that_reads) { check(false, false, false, 3, 12, 30, 3); }
RT_TEST(invariants, what_is_written_after_the_loop) { check(false, false, true, 3, 12, 30, -27); }
// 3, 4, 5 and 6 are read; they come back as 6, 5, 4 and 3, times 1, 2, 3 and 4.
RT_TEST(invariants, a_loop_that_writes) { check(true, false, false, 3, 18, 40, 7); }
RT_TEST(invariants, what_was_assigned_before_the_loop) {
  check(false, true, false, 3, -12, -30, -3);
}
