// Functions in steps: inlined calls and calls that are kept have the same results, side effects and
// errors.
#include "function_util.h"
#include "tensor/tstring.h"

RT_TEST(function, call) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    make_f(&rt);
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t args[] = {x, rn_const_float(rt.s, 3)};
    rn_edge_t y = rn_edge_at(rn_PartitionedCall(rt.s, args, 2, one_float, 1, "f"), 0);
    cr_assert_eq(rt_get(&rt, y, x, 5), 20);
    cr_assert_eq(rt_get(&rt, rn_Neg(rt.s, y), x, 7), -28);
    rt_end(&rt);
  }
}

RT_TEST(function, is_an_op) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    make_f(&rt);
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t two = rn_const_float(rt.s, 2);
    rn_op_begin(rt.s, "f");
    rn_op_input(rt.s, x);
    rn_op_input(rt.s, two);
    rn_edge_t y = {rn_op_finish(rt.s), 0};
    cr_assert_eq(rt_get(&rt, y, x, 4), 12);
    rt_end(&rt);
  }
}

RT_TEST(function, nesting) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    int depth = ways[w].keeps_calls ? 900 : 1000;
    for (int i = 0; i < depth; ++i) {
      char name[16], inner[16];
      snprintf(name, sizeof name, "g%d", i);
      snprintf(inner, sizeof inner, "g%d", i - 1);
      fn_t fn = {.arg_count = 1};
      OK(rn_graph_create(rn_allocator_system(), &fn.graph));
      fn.s = rn_scope_create(fn.graph);
      fn.args[0] = rn_Placeholder(fn.s, RN_FLOAT);
      rn_edge_t value = i ? call(fn.s, inner, fn.args[0]) : fn.args[0];
      fn_end(&fn, &rt, name, rn_Add(fn.s, value, rn_const_float(fn.s, 1)));
    }
    char outer[16];
    snprintf(outer, sizeof outer, "g%d", depth - 1);
    rn_edge_t x = rt_placeholder(&rt, "x");
    cr_assert_eq(rt_get(&rt, call(rt.s, outer, x), x, 0.5f), 0.5f + (float)depth);
    rt_end(&rt);
  }
}

// h30 calls h29 twice, and so on: 2^30 nodes, if all were put in place.
RT_TEST(function, growth_is_bounded) {
  way_t way = {false, RN_LOWER_ALWAYS, 1};
  rt_t rt = begin(&way);
  for (int i = 0; i <= 30; ++i) {
    char name[16], inner[16];
    snprintf(name, sizeof name, "h%d", i);
    snprintf(inner, sizeof inner, "h%d", i - 1);
    fn_t fn = fn_begin(&rt, 1);
    rn_edge_t value = i ? rn_Add(fn.s, call(fn.s, inner, fn.args[0]), call(fn.s, inner, fn.args[0]))
                        : rn_Identity(fn.s, fn.args[0]);
    fn_end(&fn, &rt, name, value);
  }
  fn_t fn = fn_begin(&rt, 1);
  fn_end(&fn, &rt, "same", rn_Identity(fn.s, fn.args[0]));
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t small = call(rt.s, "h10", x);
  cr_assert_eq(rt_get(&rt, small, x, 1), 1024);
  rn_edge_t never = rn_Less(rt.s, x, x);
  rn_edge_t y = rn_edge_at(rn_If(rt.s, never, &x, 1, one_float, 1, "h30", "same"), 0);
  cr_assert_eq(rt_get(&rt, y, x, 3), 3);
  rt_end(&rt);
}

// n <= 1 ? 1 : n * factorial(n - 1)
static void make_factorial(rt_t* rt) {
  fn_t base = fn_begin(rt, 1);
  fn_end(&base, rt, "base", rn_const_float(base.s, 1));
  fn_t step = fn_begin(rt, 1);
  rn_edge_t less = rn_Sub(step.s, step.args[0], rn_const_float(step.s, 1));
  fn_end(&step, rt, "step", rn_Mul(step.s, step.args[0], call(step.s, "factorial", less)));
  fn_t fn = fn_begin(rt, 1);
  rn_edge_t is_base = rn_LessEqual(fn.s, fn.args[0], rn_const_float(fn.s, 1));
  fn_end(&fn, rt, "factorial",
         rn_edge_at(rn_If(fn.s, is_base, fn.args, 1, one_float, 1, "base", "step"), 0));
}

RT_TEST(function, recursion) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    make_factorial(&rt);
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t y = call(rt.s, "factorial", x);
    cr_assert_eq(rt_get(&rt, y, x, 5), 120);
    cr_assert_eq(rt_get(&rt, y, x, 0), 1);
    cr_assert_eq(rt_get(&rt, y, x, 10), 3628800);
    rt_end(&rt);
  }
}

RT_TEST(function, endless_recursion) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    fn_t fn = fn_begin(&rt, 1);
    fn_end(&fn, &rt, "endless", call(fn.s, "endless", rn_Neg(fn.s, fn.args[0])));
    rn_edge_t y = call(rt.s, "endless", rn_const_float(rt.s, 1));
    FAILS_WITH(rt_try(&rt, y), RESOURCE_EXHAUSTED, "'endless'");
    rt_end(&rt);
  }
}

RT_TEST(function, unknown_function) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    rn_edge_t one = rn_const_float(rt.s, 1);
    rn_scope_name_next(rt.s, "lost");
    rn_edge_t y = call(rt.s, "nowhere", one);
    FAILS_WITH(rt_try(&rt, y), NOT_FOUND, "nowhere");
    FAILS_WITH(rt_try(&rt, y), NOT_FOUND, "{{node lost}}");
    rt_end(&rt);
  }
}

RT_TEST(function, wrong_arguments) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    make_f(&rt);
    rn_edge_t y = call(rt.s, "f", rn_const_float(rt.s, 1));
    FAILS_WITH(rt_try(&rt, y), INVALID_ARGUMENT, "'f'");
    rn_edge_t ints[] = {rn_const_int32(rt.s, 1), rn_const_int32(rt.s, 2)};
    y = rn_edge_at(rn_PartitionedCall(rt.s, ints, 2, one_float, 1, "f"), 0);
    FAILS_WITH(rt_try(&rt, y), INVALID_ARGUMENT,
               "Expects arg[0] to be float but int32 is provided");
    rt_end(&rt);
  }
}

// A node with effects runs once per call, even if its output is not read.
RT_TEST(function, effects_run) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    fn_t fn = fn_begin(&rt, 1);
    apply(fn.s, "TestCount", fn.args[0]);
    fn_end(&fn, &rt, "counts", rn_Neg(fn.s, fn.args[0]));
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t y = call(rt.s, "counts", x);
    rt_count = 0;
    cr_assert_eq(rt_get(&rt, y, x, 2), -2);
    cr_assert_eq(rt_count, 1);
    rn_tensor_t fed = rt_scalar(1);
    rt_step_t step = {0};
    rt_feed(&step, x, &fed);
    rt_target(&step, y.node);  // its result is not fetched
    OK(rt_run(&rt, &step));
    cr_assert_eq(rt_count, 2);
    rn_tensor_clear(&fed);
    rt_end(&rt);
  }
}

// v starts at 1; one function doubles it, one adds 1: the order is that of the control edges.
RT_TEST(function, effects_keep_their_order) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    static const char* const ops[] = {"AssignVariableOp", "AssignAddVariableOp"};
    for (int i = 0; i < 2; ++i) {
      fn_t fn = fn_begin(&rt, 0);
      fn.args[0] = rn_Placeholder(fn.s, RN_RESOURCE);
      fn.arg_count = 1;
      rn_edge_t value = rn_const_float(fn.s, 1);
      if (i == 0)
        value =
            rn_Mul(fn.s, rn_ReadVariableOp(fn.s, fn.args[0], RN_FLOAT), rn_const_float(fn.s, 2));
      rn_op_begin(fn.s, ops[i]);
      rn_op_input(fn.s, fn.args[0]);
      rn_op_input(fn.s, value);
      rn_node_t* update = rn_op_finish(fn.s);
      fn_end_with(&fn, &rt, i ? "increase" : "double", NULL, 0, update);
    }
    rn_edge_t v = rn_VarHandleOp(rt.s, RN_FLOAT, NULL, 0);
    rn_node_t* set = rn_AssignVariableOp(rt.s, v, rn_const_float(rt.s, 1));
    rn_node_t* last = set;
    for (int i = 0; i < 6; ++i) {
      rn_scope_add_control(rt.s, last);
      rn_edges_t made =
          rn_StatefulPartitionedCall(rt.s, &v, 1, NULL, 0, i % 2 ? "increase" : "double");
      last = made.node;
      rn_scope_clear_controls(rt.s);
    }
    rn_scope_add_control(rt.s, last);
    rn_edge_t read = rn_ReadVariableOp(rt.s, v, RN_FLOAT);
    rn_scope_clear_controls(rt.s);
    // ((1·2+1)·2+1)·2+1
    for (int i = 0; i < 3; ++i) cr_assert_eq(rt_get(&rt, read, RN_NO_EDGE, 0), 15);
    rt_end(&rt);
  }
}

// What a call gives is there only after the call's control inputs.
RT_TEST(function, results_wait_for_the_call) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    fn_t fn = fn_begin(&rt, 1);
    fn_end(&fn, &rt, "plus", rn_Add(fn.s, fn.args[0], rn_const_float(fn.s, 1)));
    fn_t same = fn_begin(&rt, 1);
    fn_end(&same, &rt, "same", same.args[0]);
    rn_edge_t slow = rn_const_float(rt.s, 1);
    slow = apply(rt.s, "TestSlow", slow);
    rn_node_t* first = apply(rt.s, "TestCount", slow).node;
    for (int i = 0; i < 2; ++i) {
      rn_edge_t five = rn_const_float(rt.s, 5);
      rn_scope_add_control(rt.s, first);
      rn_edge_t y = call(rt.s, i ? "same" : "plus", five);
      rn_scope_clear_controls(rt.s);
      // Fails if it runs before the count.
      rn_edge_t v = rn_VarHandleOp(rt.s, RN_FLOAT, NULL, 0);
      rn_node_t* set = rn_AssignVariableOp(rt.s, v, y);
      rn_scope_add_control(rt.s, set);
      rn_edge_t read = rn_ReadVariableOp(rt.s, v, RN_FLOAT);
      rn_scope_clear_controls(rt.s);
      rt_count = 0;
      cr_assert_eq(rt_get(&rt, read, RN_NO_EDGE, 0), i ? 5 : 6);
      cr_assert_eq(rt_count, 1);
    }
    rt_end(&rt);
  }
}

// A call on a way that is not taken does nothing, not even what depends on nothing.
RT_TEST(function, dead_calls) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    fn_t fn = fn_begin(&rt, 1);
    rn_edge_t counted = apply(fn.s, "TestCount", rn_const_float(fn.s, 40));
    fn_end(&fn, &rt, "constant", counted);
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_Switch_out_t way = rn_Switch(rt.s, x, rn_Greater(rt.s, x, rn_const_float(rt.s, 0)));
    rn_edge_t y = call(rt.s, "constant", way.output_true);
    rn_edge_t both[] = {y, rn_Neg(rt.s, way.output_false)};
    rn_edge_t merged = rn_Merge(rt.s, both, 2).output;
    rt_count = 0;
    cr_assert_eq(rt_get(&rt, merged, x, -3), 3);
    cr_assert_eq(rt_count, 0);
    cr_assert_eq(rt_get(&rt, merged, x, 1), 40);
    cr_assert_eq(rt_count, 1);
    rt_end(&rt);
  }
}

RT_TEST(function, errors_name_the_node) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    fn_t fn = fn_begin(&rt, 1);
    rn_scope_name_next(fn.s, "inner");
    rn_edge_t y = apply(fn.s, "TestFail", fn.args[0]);
    fn_end(&fn, &rt, "fails", rn_Neg(fn.s, y));
    rn_edge_t x = rn_const_float(rt.s, 1);
    rn_scope_name_next(rt.s, "outer");
    y = call(rt.s, "fails", x);
    rt_fails = true;
    FAILS_WITH(rt_try(&rt, y), INTERNAL, "boom");
    FAILS_WITH(rt_try(&rt, y), INTERNAL,
               ways[w].keeps_calls ? "{{node inner}}" : "{{node outer/inner}}");
    FAILS_WITH(rt_try(&rt, y), INTERNAL, "outer");
    rt_fails = false;
    OK(rt_try(&rt, y));  // and the session goes on
    rt_end(&rt);
  }
}

static void* cancel_soon(void* arg) {
  while (rt_blocked == 0) usleep(1000);
  rn_cancel(arg);
  return NULL;
}

RT_TEST(function, cancelling) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    fn_t fn = fn_begin(&rt, 1);
    rn_edge_t y = apply(fn.s, "TestBlock", fn.args[0]);
    fn_end(&fn, &rt, "blocks", y);
    fn_t outer = fn_begin(&rt, 1);
    fn_end(&outer, &rt, "outer", call(outer.s, "blocks", outer.args[0]));
    y = call(rt.s, "outer", rn_const_float(rt.s, 1));
    rn_cancel_t cancel;
    rn_cancel_init(&cancel);
    rt_blocked = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, cancel_soon, &cancel);
    rt_step_t step = {.options = {.cancel = &cancel}};
    rt_fetch(&step, y);
    FAILS_WITH(rt_run(&rt, &step), CANCELLED, "");
    pthread_join(thread, NULL);
    rn_cancel_destroy(&cancel);
    rt_step_t late = {.options = {.timeout_ms = 30}};
    rt_fetch(&late, y);
    FAILS_WITH(rt_run(&rt, &late), DEADLINE_EXCEEDED, "");
    rt_end(&rt);
  }
}

typedef struct runner_t {
  rt_t* rt;
  rn_edge_t x, y;
  int errors;
} runner_t;

static void* run_many(void* arg) {
  runner_t* runner = arg;
  for (int i = 0; i < 100; ++i) {
    rt_step_t step = {0};
    rn_tensor_t fed = rt_scalar((float)(i % 6));
    rt_feed(&step, runner->x, &fed);
    rt_fetch(&step, runner->y);
    rn_status_t status = rt_run_in(runner->rt->session, &step);
    static const float expected[] = {1, 1, 2, 6, 24, 120};
    runner->errors += !rn_ok(status) || rt_value(&step.out[0]) != expected[i % 6];
    rn_status_free(status);
    rt_clear(&step);
    rn_tensor_clear(&fed);
  }
  return NULL;
}

RT_TEST(function, many_threads) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    make_factorial(&rt);
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t y = call(rt.s, "factorial", x);
    rt_session(&rt);
    runner_t runners[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) {
      runners[i] = (runner_t){&rt, x, y, 0};
      pthread_create(&threads[i], NULL, run_many, &runners[i]);
    }
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; ++i) cr_assert_eq(runners[i].errors, 0);
    rt_end(&rt);
  }
}

// More shapes than a function has programs for.
RT_TEST(function, many_shapes) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    fn_t fn = fn_begin(&rt, 1);
    fn_end(&fn, &rt, "twice", rn_Add(fn.s, fn.args[0], fn.args[0]));
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t y = call(rt.s, "twice", x);
    for (int64_t n = 0; n < 20; ++n) {
      float values[20];
      for (int i = 0; i < 20; ++i) values[i] = (float)i;
      rn_tensor_t fed = rt_floats(n, values);
      rt_step_t step = {0};
      rt_feed(&step, x, &fed);
      rt_fetch(&step, y);
      OK(rt_run(&rt, &step));
      cr_assert_eq(step.out[0].count, n);
      for (int64_t i = 0; i < n; ++i) cr_assert_eq(RN_DATA(&step.out[0], float)[i], 2 * values[i]);
      rt_clear(&step);
      rn_tensor_clear(&fed);
    }
    rt_end(&rt);
  }
}

// Functions are run outside of steps as well.
RT_TEST(function, without_a_step) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    make_factorial(&rt);
    rn_functions_t* functions = rn_session_functions(rt_session(&rt));
    rn_instance_t* instance = NULL;
    rn_func_attr_t factorial = {.name = RN_STR("factorial")}, nothing = {.name = RN_STR("nothing")};
    FAILS_WITH(rn_function_prepare(functions, &nothing, RN_STR(""), &instance), NOT_FOUND,
               "nothing");
    OK(rn_function_prepare(functions, &factorial, RN_STR(""), &instance));
    cr_assert_eq(instance->arg_count, 1);
    cr_assert_eq(instance->result_count, 1);
    cr_assert_eq(instance->arg_types[0], RN_FLOAT);
    for (int i = 0; i < 3; ++i) {
      rn_tensor_t arg = rt_scalar(6), result = {0};
      const rn_tensor_t* args[] = {&arg};
      rn_function_call_t made = {.args = args, .results = &result};
      OK(rn_function_run_and_wait(functions, instance, &made));
      cr_assert_eq(rt_value(&result), 720);
      rn_tensor_clear(&result);
      rn_tensor_clear(&arg);
    }
    rn_function_forget(functions, instance);
    rt_end(&rt);
  }
}

// Two results, in another order than they are computed in; an argument among them.
RT_TEST(function, results) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    fn_t fn = fn_begin(&rt, 2);
    rn_edge_t results[] = {fn.args[1], rn_Sub(fn.s, fn.args[0], fn.args[1])};
    fn_end_with(&fn, &rt, "swap", results, 2, NULL);
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t args[] = {x, rn_const_float(rt.s, 2)};
    rn_edges_t out = rn_PartitionedCall(rt.s, args, 2, two_floats, 2, "swap");
    cr_assert_eq(rt_get(&rt, rn_edge_at(out, 0), x, 9), 2);
    cr_assert_eq(rt_get(&rt, rn_edge_at(out, 1), x, 9), 7);
    rt_end(&rt);
  }
}

// d(x·y + x)/dx = y + 1, d/dy = x, each times what arrives.
RT_TEST(function, symbolic_gradient) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    make_f(&rt);
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t inputs[] = {x, rn_const_float(rt.s, 3), rn_const_float(rt.s, 10)};
    rn_edges_t out = rn_SymbolicGradient(rt.s, inputs, 3, two_floats, 2, "f");
    cr_assert_eq(rt_get(&rt, rn_edge_at(out, 0), x, 5), 40);
    cr_assert_eq(rt_get(&rt, rn_edge_at(out, 1), x, 5), 50);
    rt_end(&rt);
  }
}

// A function that has a gradient function is differentiated by it.
RT_TEST(function, given_gradient) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    fn_t gradient = fn_begin(&rt, 2);
    fn_end(&gradient, &rt, "g",
           rn_Mul(gradient.s, gradient.args[1], rn_const_float(gradient.s, 7)));
    fn_t fn = fn_begin(&rt, 1);
    fn_end(&fn, &rt, "neg", rn_Neg(fn.s, fn.args[0]));
    rn_function_t *f = rn_graph_get_function(rt.graph, RN_STR("neg")),
                  *g = rn_graph_get_function(rt.graph, RN_STR("g"));
    OK(rn_graph_add_function(rt.graph, f, g));
    rn_function_release(f);
    rn_function_release(g);
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t inputs[] = {x, rn_const_float(rt.s, 2)};
    rn_edges_t out = rn_SymbolicGradient(rt.s, inputs, 2, one_float, 1, "neg");
    cr_assert_eq(rt_get(&rt, rn_edge_at(out, 0), x, 5), 14);
    rt_end(&rt);
  }
}

// The builders of runnel/function.h.
RT_TEST(function, builders) {
  rt_t rt = rt_begin(1);
  rn_graph_t* graph = NULL;
  OK(rn_graph_create(rn_allocator_system(), &graph));
  rn_scope_t* body = rn_scope_create(graph);
  rn_edge_t x = rn_Placeholder(body, RN_FLOAT), y = rn_Mul(body, x, x);
  cr_assert(rn_define_function(rt.s, "square", body, &x, 1, &y, 1));
  rn_edge_t fed = rt_placeholder(&rt, "x");
  rn_edges_t out = rn_call(rt.s, "square", &fed, 1);
  cr_assert_eq(out.count, 1);
  cr_assert_eq(rt_get(&rt, rn_edge_at(out, 0), fed, 7), 49);
  out = rn_call(rt.s, "nothing", &fed, 1);
  cr_assert_null(out.node);
  cr_assert_not(rn_scope_ok(rt.s));
  cr_assert(strstr(rn_scope_message(rt.s), "Function nothing is not defined."));
  cr_assert_not(rn_define_function(rt.s, "late", body, &x, 1, &y, 1));
  rn_scope_destroy(body);
  rn_graph_release(graph);
  rt_end(&rt);
}

// The body of a call runs where the call does; what it says itself counts more.
RT_TEST(function, hands_its_device_on) {
  for (int w = 0; w < WAYS; ++w) {
    rt_t rt = begin(&ways[w]);
    rt.options.cpu_devices = 2;
    for (int says = 0; says < 2; ++says) {
      fn_t fn = fn_begin(&rt, 1);
      if (says) rn_scope_set_device(fn.s, "/device:CPU:0");
      fn_end(&fn, &rt, says ? "says" : "silent", rn_GetSessionHandle(fn.s, fn.args[0]));
    }
    const int text[] = {RN_STRING};
    rn_edge_t x = rn_const_float(rt.s, 3);
    for (int says = 0; says < 2; ++says) {
      rn_scope_set_device(rt.s, "/device:CPU:1");
      rn_edge_t y =
          rn_edge_at(rn_StatefulPartitionedCall(rt.s, &x, 1, text, 1, says ? "says" : "silent"), 0);
      rn_scope_set_device(rt.s, NULL);
      rn_signature_t signature = {.fetches = &y, .fetch_count = 1};
      rn_tensor_t found = {0};
      OK(rn_session_run(rt_session(&rt), &signature, NULL, &found, NULL));
      rn_str_t handle = rn_tstring_view(RN_DATA(&found, rn_tstring_t));
      cr_expect(rn_str_ends_with(handle, says ? RN_STR("CPU:0") : RN_STR("CPU:1")), "way %d: %.*s",
                w, RN_STR_ARGS(handle));
      rn_tensor_clear(&found);
    }
    rt_end(&rt);
  }
}

// Nodes of a body that the device has no kernel for go to the CPU.
RT_TEST(function, prefers_its_device) {
  static const struct {
    const char* device;
    const char* message;  // NULL: it works
  } cases[] = {{"/device:NULL:0", NULL},
               {"/device:NULL:7", "/device:NULL:7 but available devices"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    rt_t rt = rt_begin(1);
    rt.options.null_devices = 1;
    fn_t fn = fn_begin(&rt, 1);
    fn_end(&fn, &rt, "f", rn_Floor(fn.s, rn_Neg(fn.s, fn.args[0])));
    rn_edge_t x = rn_const_float(rt.s, 2.5f), target = rn_Placeholder(rt.s, RN_STRING);
    rn_tensor_t name = {0};
    OK(rn_tensor_create(rn_allocator_system(), RN_STRING, RN_SHAPE_SCALAR, &name));
    cr_assert(rn_tstring_assign(name.data, cases[i].device, strlen(cases[i].device)));
    rn_edge_t y = rn_edge_at(rn_RemoteCall(rt.s, target, &x, 1, one_float, 1, "f"), 0);
    rt_step_t step = {.options = {.timeout_ms = 20000}};
    rt_feed(&step, target, &name);
    rt_fetch(&step, y);
    rn_status_t status = rt_run(&rt, &step);
    if (cases[i].message)
      FAILS_WITH(status, INVALID_ARGUMENT, cases[i].message);
    else
      OK(status);
    if (!cases[i].message) cr_assert_eq(rt_value(&step.out[0]), -3);
    rt_clear(&step);
    rn_tensor_clear(&name);
    rt_end(&rt);
  }
}
