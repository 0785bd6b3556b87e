// Conditionals: Switch, Merge and dead values, also inside loops and around them.
#include "loop_bodies.h"

typedef struct cond_t {
  rt_t rt;
  rn_edge_t x, p;
  rn_Switch_out_t way;
} cond_t;
static cond_t cond_begin(bool optimize) {
  cond_t c = {.rt = rt_begin(1)};
  c.rt.options.optimize = optimize;
  c.x = rt_placeholder(&c.rt, "x");
  rn_scope_name_next(c.rt.s, "p");
  c.p = rn_Placeholder(c.rt.s, RN_BOOL);
  c.way = rn_Switch(c.rt.s, c.x, c.p);
  return c;
}
static rn_status_t cond_run(cond_t* c, rt_step_t* step, float x, bool p) {
  rn_tensor_t fed = rt_scalar(x), which = rt_bool(p);
  rt_feed(step, c->x, &fed);
  rt_feed(step, c->p, &which);
  rn_status_t status = rt_run(&c->rt, step);
  rn_tensor_clear(&fed);
  rn_tensor_clear(&which);
  step->feed_count = 0;
  return status;
}

RT_TEST(conditionals, conditional) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    cond_t c = cond_begin(optimize);
    rn_edge_t yes = rn_Neg(c.rt.s, c.way.output_true);
    rn_edge_t no = rn_AddV2(c.rt.s, c.way.output_false, c.way.output_false);
    rn_Merge_out_t merged = rn_Merge(c.rt.s, ((rn_edge_t[]){no, yes}), 2);
    rn_edge_t after = rn_AddV2(c.rt.s, merged.output, c.x);
    for (int p = 0; p < 2; ++p) {
      rt_step_t step = {0};
      rt_fetch(&step, merged.output);
      rt_fetch(&step, merged.value_index);
      rt_fetch(&step, after);
      OK(cond_run(&c, &step, 3, p));
      cr_assert_eq(rt_value(&step.out[0]), p ? -3 : 6);
      cr_assert_eq(*RN_DATA(&step.out[1], int32_t), p);
      cr_assert_eq(rt_value(&step.out[2]), p ? 0 : 9);
      rt_clear(&step);
      rt_step_t dead = {0};
      rt_fetch(&dead, c.x);
      rt_fetch(&dead, p ? no : yes);
      FAILS_WITH(cond_run(&c, &dead, 3, p), INVALID_ARGUMENT, "Retval[1] does not have value");
      rt_step_t live = {0};
      rt_fetch(&live, p ? yes : no);
      OK(cond_run(&c, &live, 3, p));
      rt_clear(&live);
    }
    rt_end(&c.rt);
  }
}

// Constants of a branch are dead with it, and what is computed of them alone.
RT_TEST(conditionals, constants_of_a_branch) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    cond_t c = cond_begin(optimize);
    rn_edge_t on = rn_Identity(c.rt.s, c.way.output_true);
    rn_edge_t off = rn_Identity(c.rt.s, c.way.output_false);
    rn_edge_t yes = rn_AddV2(c.rt.s, rt_const_at(c.rt.s, on, 1), rt_const_at(c.rt.s, on, 2));
    rn_edge_t no = rn_Mul(c.rt.s, rt_const_at(c.rt.s, off, 5), rt_const_at(c.rt.s, off, 2));
    rn_edge_t merged = rn_Merge(c.rt.s, ((rn_edge_t[]){no, yes}), 2).output;
    // x * 1 is x, but only where the 1 is alive.
    rn_edge_t times = rn_Mul(c.rt.s, c.x, rt_const_at(c.rt.s, on, 1));
    for (int p = 0; p < 2; ++p) {
      rt_step_t step = {0};
      rt_fetch(&step, merged);
      OK(cond_run(&c, &step, 3, p));
      cr_assert_eq(rt_value(&step.out[0]), p ? 3 : 10);
      rt_clear(&step);
      rt_step_t product = {0};
      rt_fetch(&product, times);
      rn_status_t status = cond_run(&c, &product, 3, p);
      cr_assert_eq(rn_ok(status), p == 1);
      rn_status_free(status);
      rt_clear(&product);
    }
    rt_end(&c.rt);
  }
}

RT_TEST(conditionals, nested_conditional) {
  cond_t c = cond_begin(true);
  rn_edge_t q = rn_Greater(c.rt.s, c.way.output_true, rt_const_at(c.rt.s, c.way.output_true, 0));
  rn_Switch_out_t inner = rn_Switch(c.rt.s, c.way.output_true, q);
  rn_edge_t small = rn_Neg(c.rt.s, inner.output_false);
  rn_edge_t large = rn_AddV2(c.rt.s, inner.output_true, inner.output_true);
  rn_edge_t joined = rn_Merge(c.rt.s, ((rn_edge_t[]){small, large}), 2).output;
  rn_edge_t all = rn_Merge(c.rt.s, ((rn_edge_t[]){c.way.output_false, joined}), 2).output;
  static const float cases[][3] = {{5, 1, 10}, {-5, 1, 5}, {5, 0, 5}, {-5, 0, -5}};
  for (int i = 0; i < 4; ++i) {
    rt_step_t step = {0};
    rt_fetch(&step, all);
    OK(cond_run(&c, &step, cases[i][0], cases[i][1] > 0));
    cr_assert_eq(rt_value(&step.out[0]), cases[i][2]);
    rt_clear(&step);
  }
  rt_end(&c.rt);
}

// A whole loop that is dead: its exits are.
RT_TEST(conditionals, loop_in_a_branch) {
  for (int parallel = 1; parallel <= 10; parallel += 3) {
    cond_t c = cond_begin(true);
    rn_edge_t start = rn_Identity(c.rt.s, c.way.output_true);
    rt_loop_t loop = {.frame = "w",
                      .count = 2,
                      .parallel = parallel,
                      .start = {rt_const_at(c.rt.s, start, 0), start},
                      .cond = below_ten,
                      .body = count_up};
    rt_loop(c.rt.s, &loop);
    rn_edge_t result =
        rn_Merge(c.rt.s, ((rn_edge_t[]){c.way.output_false, loop.exits[1]}), 2).output;
    for (int turn = 0; turn < 6; ++turn) {
      rt_step_t step = {0};
      rt_fetch(&step, result);
      OK(cond_run(&c, &step, 4, turn % 2));
      cr_assert_eq(rt_value(&step.out[0]), turn % 2 ? counted(0, 4) : 4);
      rt_clear(&step);
    }
    rt_step_t dead = {0};
    rt_fetch(&dead, loop.exits[1]);
    FAILS_WITH(cond_run(&c, &dead, 4, false), INVALID_ARGUMENT, "Retval[0] does not have value");
    rt_end(&c.rt);
  }
}

// Every other turn another way.
static void zigzag(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  rn_edge_t two = rt_const_at(s, values[0], 2);
  rn_edge_t odd = rn_Greater(s, rn_FloorMod(s, values[0], two), rt_const_at(s, values[0], 0));
  rn_Switch_out_t way = rn_Switch(s, values[1], odd);
  rn_edge_t yes = rn_AddV2(s, way.output_true, rt_const_at(s, way.output_true, 1));
  rn_edge_t no = rn_Mul(s, way.output_false, rt_const_at(s, way.output_false, 3));
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  next[1] = rn_Merge(s, ((rn_edge_t[]){no, yes}), 2).output;
}
RT_TEST(conditionals, conditional_in_a_loop) {
  for (int parallel = 1; parallel <= 10; parallel += 3) {
    rt_t rt = rt_begin(1);
    rn_edge_t x = rt_placeholder(&rt, "x");
    rt_loop_t loop = {.frame = "w",
                      .count = 2,
                      .parallel = parallel,
                      .start = {rn_const_float(rt.s, 0), x},
                      .cond = below_ten,
                      .body = zigzag};
    rt_loop(rt.s, &loop);
    float expected = 1;
    for (int i = 0; i < 10; ++i) expected = i % 2 ? expected + 1 : expected * 3;
    cr_assert_eq(rt_get(&rt, loop.exits[1], x, 1), expected);
    rt_end(&rt);
  }
}

// What waits for a dead node by a control edge is dead, but for a ControlTrigger.
RT_TEST(conditionals, dead_controls) {
  cond_t c = cond_begin(true);
  rn_scope_add_control(c.rt.s, rn_Identity(c.rt.s, c.way.output_true).node);
  rn_edge_t counted_one = rt_op(c.rt.s, "TestCount", c.x);
  rn_op_begin(c.rt.s, "ControlTrigger");
  rn_node_t* trigger = rn_op_finish(c.rt.s);
  rn_op_begin(c.rt.s, "NoOp");
  rn_node_t* nothing = rn_op_finish(c.rt.s);
  rn_scope_clear_controls(c.rt.s);
  rn_scope_add_control(c.rt.s, trigger);
  rn_edge_t triggered = rn_Identity(c.rt.s, c.x);
  rn_scope_clear_controls(c.rt.s);
  for (int p = 0; p < 2; ++p) {
    rt_count = 0;
    rt_step_t step = {0};
    rt_target(&step, counted_one.node);
    rt_target(&step, nothing);
    rt_fetch(&step, triggered);
    OK(cond_run(&c, &step, 3, p));
    cr_assert_eq(rt_count, p);
    cr_assert_eq(rt_value(&step.out[0]), 3);
    rt_clear(&step);
  }
  rt_end(&c.rt);
}

RT_TEST(conditionals, predicate_must_be_scalar) {
  cond_t c = cond_begin(true);
  rn_tensor_t fed = rt_scalar(1), which;
  OK(rn_tensor_create(rn_allocator_system(), RN_BOOL, (rn_shape_t){1, (int64_t[]){2}}, &which));
  memset(which.data, 1, 2);
  rt_step_t step = {0};
  rt_feed(&step, c.x, &fed);
  rt_feed(&step, c.p, &which);
  rt_fetch(&step, c.way.output_true);
  FAILS_WITH(rt_run(&c.rt, &step), INVALID_ARGUMENT,
             "The second input must be a scalar, but it has shape [2]\n\t [[{{node Switch}}]]");
  rn_tensor_clear(&fed);
  rn_tensor_clear(&which);
  rt_end(&c.rt);
}

// A variable's value, not the reference, goes through Switch, Merge and a loop.
RT_TEST(conditionals, variables_are_read) {
  cond_t c = cond_begin(true);
  rn_edge_t v = rn_VariableV2(c.rt.s, RN_SHAPE_SCALAR.dims, 0, RN_FLOAT);
  rn_edge_t set = rn_Assign(c.rt.s, v, rn_const_float(c.rt.s, 7));
  rn_Switch_out_t way = rn_Switch(c.rt.s, v, c.p);
  rn_edge_t merged =
      rn_Merge(c.rt.s, ((rn_edge_t[]){rn_Neg(c.rt.s, way.output_false), way.output_true}), 2)
          .output;
  rt_loop_t loop = {.frame = "w",
                    .count = 2,
                    .start = {rn_const_float(c.rt.s, 9), v},
                    .cond = below_ten,
                    .body = count_up};
  rt_loop(c.rt.s, &loop);
  rt_step_t early = {0};
  rt_fetch(&early, merged);
  FAILS_WITH(cond_run(&c, &early, 0, true), FAILED_PRECONDITION,
             "Attempting to use uninitialized value");
  rt_do(&c.rt, set.node);
  for (int p = 0; p < 2; ++p) {
    rt_step_t step = {0};
    rt_fetch(&step, merged);
    rt_fetch(&step, loop.exits[1]);
    OK(cond_run(&c, &step, 0, p));
    cr_assert_eq(rt_value(&step.out[0]), p ? 7 : -7);
    cr_assert_eq(rt_value(&step.out[1]), 23);
    rt_clear(&step);
  }
  rt_end(&c.rt);
}
