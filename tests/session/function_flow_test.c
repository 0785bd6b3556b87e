// Functional conditionals and loops, kept and lowered: side effects, asynchronous kernels, shapes
// that change.
#include "function_util.h"

static rn_edge_t less_than(rn_scope_t* s, rn_edge_t a, rn_edge_t b) { return rn_Less(s, a, b); }

// while (i < n) { sum += i; i += 1; } with n going round unchanged.
static void make_sum(rt_t* rt) {
  fn_t cond = fn_begin(rt, 3);
  fn_end(&cond, rt, "cond", less_than(cond.s, cond.args[0], cond.args[2]));
  fn_t body = fn_begin(rt, 3);
  rn_edge_t next[] = {rn_Add(body.s, body.args[0], rn_const_float(body.s, 1)),
                      rn_Add(body.s, body.args[1], body.args[0]), body.args[2]};
  fn_end_with(&body, rt, "body", next, 3, NULL);
}

RT_TEST(function, loops) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    make_sum(&rt);
    rn_edge_t n = rt_placeholder(&rt, "n");
    rn_edge_t start[] = {rn_const_float(rt.s, 0), rn_const_float(rt.s, 0), n};
    rn_edges_t out = rn_While(rt.s, start, 3, "cond", "body");
    cr_assert_eq(rt_get(&rt, rn_edge_at(out, 1), n, 10), 45);
    cr_assert_eq(rt_get(&rt, rn_edge_at(out, 0), n, 10), 10);
    cr_assert_eq(rt_get(&rt, rn_edge_at(out, 2), n, 3), 3);
    cr_assert_eq(rt_get(&rt, rn_edge_at(out, 1), n, -1), 0);
    cr_assert_eq(rt_get(&rt, rn_edge_at(out, 1), n, 1000), 499500);
    rt_end(&rt);
  }
}

// A loop in a function that a loop calls.
RT_TEST(function, loops_in_loops) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    make_sum(&rt);
    fn_t body = fn_begin(&rt, 3);  // total += sum(0 … i-1)
    rn_edge_t start[] = {rn_const_float(body.s, 0), rn_const_float(body.s, 0), body.args[0]};
    rn_edge_t sum = rn_edge_at(rn_While(body.s, start, 3, "cond", "body"), 1);
    rn_edge_t next[] = {rn_Add(body.s, body.args[0], rn_const_float(body.s, 1)),
                        rn_Add(body.s, body.args[1], sum), body.args[2]};
    fn_end_with(&body, &rt, "outer", next, 3, NULL);
    rn_edge_t n = rt_placeholder(&rt, "n");
    rn_edge_t begin_at[] = {rn_const_float(rt.s, 0), rn_const_float(rt.s, 0), n};
    rn_edges_t out = rn_While(rt.s, begin_at, 3, "cond", "outer");
    cr_assert_eq(rt_get(&rt, rn_edge_at(out, 1), n, 6), 20);  // 0+0+1+3+6+10
    cr_assert_eq(rt_get(&rt, rn_edge_at(out, 1), n, 0), 0);
    rt_end(&rt);
  }
}

// Effects in a body run once an iteration, those of the condition once more.
RT_TEST(function, effects_in_loops) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    for (int i = 0; i < 2; ++i) {
      fn_t fn = fn_begin(&rt, 1);
      apply(fn.s, "TestCount", rn_const_float(fn.s, 1));  // depends on nothing that comes in
      fn_end(&fn, &rt, i ? "body" : "cond",
             i ? rn_Sub(fn.s, fn.args[0], rn_const_float(fn.s, 1))
               : rn_Greater(fn.s, fn.args[0], rn_const_float(fn.s, 0)));
    }
    rn_edge_t n = rt_placeholder(&rt, "n");
    rn_edges_t out = rn_While(rt.s, &n, 1, "cond", "body");
    rt_count = 0;
    cr_assert_eq(rt_get(&rt, rn_edge_at(out, 0), n, 4), 0);
    cr_assert_eq(rt_count, 9, "%d", (int)rt_count);
    rt_end(&rt);
  }
}

RT_TEST(function, conditionals) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    static const char* const names[] = {"minus", "counted"};
    for (int i = 0; i < 2; ++i) {
      fn_t fn = fn_begin(&rt, 2);
      rn_edge_t counted = apply(fn.s, "TestCount", i ? fn.args[1] : rn_const_float(fn.s, 8));
      fn_end(&fn, &rt, names[i], i ? counted : rn_Sub(fn.s, fn.args[0], fn.args[1]));
    }
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t args[] = {x, rn_const_float(rt.s, 2)};
    rn_edge_t cond = rn_Greater(rt.s, x, args[1]);
    rn_edge_t y = rn_edge_at(rn_If(rt.s, cond, args, 2, one_float, 1, names[0], names[1]), 0);
    rt_count = 0;
    cr_assert_eq(rt_get(&rt, y, x, 5), 3);
    cr_assert_eq(rt_get(&rt, y, x, 1), 2);
    cr_assert_eq(rt_count, 2, "only the branch that is taken runs");
    rt_end(&rt);
  }
}

// A branch that is to be taken apart is pruned with the step: counting for the result that is not
// fetched does not happen, unless it is a control result.
RT_TEST(function, unused_effects_of_branches) {
  for (int has_control = 0; has_control < 2; ++has_control) {
    rt_t rt = begin(&(way_t){false, RN_LOWER_WHERE_ASKED, 1});
    fn_t fn = fn_begin(&rt, 1);
    rn_edge_t results[2];
    for (int i = 0; i < 2; ++i) results[i] = apply(fn.s, "TestCount", fn.args[0]);
    fn_end_with(&fn, &rt, "twice", results, 2, has_control ? results[1].node : NULL);
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t is_positive = rn_Greater(rt.s, x, rn_const_float(rt.s, 0));
    rn_op_begin(rt.s, "If");
    rn_op_input(rt.s, is_positive);
    rn_op_input_list(rt.s, &x, 1);
    rn_op_attr_type_list(rt.s, "Tout", two_floats, 2);
    rn_op_attr_func(rt.s, "then_branch", "twice");
    rn_op_attr_func(rt.s, "else_branch", "twice");
    rn_op_attr_bool(rt.s, "_lower_using_switch_merge", true);
    rn_edge_t y = {rn_op_finish(rt.s), 0};
    rt_count = 0;
    cr_assert_eq(rt_get(&rt, y, x, 2), 2);
    cr_assert_eq(rt_count, 1 + has_control);
    rn_tensor_t fed = rt_scalar(1);
    rt_step_t step = {0};
    rt_feed(&step, x, &fed);
    rt_target(&step, y.node);  // all of it
    OK(rt_run(&rt, &step));
    cr_assert_eq(rt_count, 3 + has_control);
    rn_tensor_clear(&fed);
    rt_end(&rt);
  }
}

// A condition that is a number holds if it is not 0; a list, if it is not empty.
RT_TEST(function, conditions_of_any_type) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    for (int i = 0; i < 2; ++i) {
      fn_t fn = fn_begin(&rt, 0);
      fn_end(&fn, &rt, i ? "yes" : "no", rn_const_float(fn.s, (float)i));
    }
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t y = rn_edge_at(rn_If(rt.s, x, NULL, 0, one_float, 1, "yes", "no"), 0);
    cr_assert_eq(rt_get(&rt, y, x, 0), 0);
    cr_assert_eq(rt_get(&rt, y, x, -2), 1);
    for (int count = 0; count < 2; ++count) {
      rt_step_t step = {0};
      float zero = 0;
      rn_tensor_t list = rt_floats(count, &zero);
      rt_feed(&step, x, &list);
      rt_fetch(&step, y);
      OK(rt_run(&rt, &step));
      cr_assert_eq(rt_value(&step.out[0]), (float)count);
      rt_clear(&step);
      rn_tensor_clear(&list);
    }
    rt_end(&rt);
  }
}

RT_TEST(function, cases) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    static const char* const names[] = {"b0", "b1", "b2"};
    for (int i = 0; i < 3; ++i) {
      fn_t fn = fn_begin(&rt, 1);
      rn_edge_t counted = apply(fn.s, "TestCount", fn.args[0]);
      fn_end(&fn, &rt, names[i], rn_Add(fn.s, counted, rn_const_float(fn.s, (float)(10 * i))));
    }
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t number = rn_Cast(rt.s, x, RN_INT32);
    rn_op_begin(rt.s, "Case");
    rn_op_input(rt.s, number);
    rn_op_input_list(rt.s, &x, 1);
    rn_op_attr_type_list(rt.s, "Tout", one_float, 1);
    rn_op_attr_func_list(rt.s, "branches", names, 3);
    rn_edge_t y = {rn_op_finish(rt.s), 0};
    rt_count = 0;
    static const float expected[][2] = {{0, 0}, {1, 11}, {2, 22}, {-1, 19}, {7, 27}};
    for (int i = 0; i < 5; ++i) cr_assert_eq(rt_get(&rt, y, x, expected[i][0]), expected[i][1]);
    cr_assert_eq(rt_count, 5);
    rt_end(&rt);
  }
}

// Asynchronous kernels in a body: from another thread, and at once.
static void loop_over(const char* op, int turns) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    fn_t cond = fn_begin(&rt, 2);
    fn_end(&cond, &rt, "cond", less_than(cond.s, cond.args[0], cond.args[1]));
    fn_t body = fn_begin(&rt, 2);
    rn_edge_t next[] = {apply(body.s, op, body.args[0]), body.args[1]};
    fn_end_with(&body, &rt, "body", next, 2, NULL);
    rn_edge_t n = rt_placeholder(&rt, "n");
    rn_edge_t start[] = {rn_const_float(rt.s, 0), n};
    rn_edges_t out = rn_While(rt.s, start, 2, "cond", "body");
    cr_assert_eq(rt_get(&rt, rn_edge_at(out, 0), n, (float)turns), (float)turns);
    rt_end(&rt);
  }
}

RT_TEST(function, asynchronous_bodies) { loop_over("TestAsync", 20); }
RT_TEST(function, long_loops_need_no_stack) { loop_over("TestInline", 100000); }

// A value whose shape changes with every turn, though the graph takes it to stay.
RT_TEST(function, shapes_change_in_loops) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    fn_t cond = fn_begin(&rt, 2);
    fn_end(&cond, &rt, "cond", less_than(cond.s, cond.args[0], rn_const_float(cond.s, 3)));
    fn_t body = fn_begin(&rt, 2);
    rn_edge_t parts[] = {body.args[1], body.args[1]};
    rn_edge_t next[] = {rn_Add(body.s, body.args[0], rn_const_float(body.s, 1)),
                        rn_ConcatV2(body.s, parts, 2, rn_const_int32(body.s, 0))};
    fn_end_with(&body, &rt, "body", next, 2, NULL);
    float values[] = {1, 2};
    int64_t dims[] = {2};
    rn_edge_t start[] = {rn_const_float(rt.s, 0), rn_const(rt.s, RN_FLOAT, dims, 1, values)};
    rn_edges_t out = rn_While(rt.s, start, 2, "cond", "body");
    rt_step_t step = {0};
    rt_fetch(&step, rn_Neg(rt.s, rn_Exp(rt.s, rn_edge_at(out, 1))));
    for (int i = 0; i < 2; ++i) {
      OK(rt_run(&rt, &step));
      cr_assert_eq(step.out[0].count, 16);
      rt_clear(&step);
    }
    rt_end(&rt);
  }
}
