// Loops that are malformed, fail or never end.
#include "loop_bodies.h"

// Malformed loops are named, and the session works on.
RT_TEST(loop_errors, malformed) {
  rt_t rt = rt_begin(1);
  rn_scope_t* s = rt.s;
  rn_edge_t x = rn_const_float(s, 1);
  // Outside any loop there is nothing to go on to: the value passes, as in stock.
  OK(rt_try(&rt, rn_NextIteration(s, x)));
  rn_scope_name_next(s, "out");
  FAILS_WITH(rt_try(&rt, rn_Exit(s, x)), INVALID_ARGUMENT,
             "Invalid Exit op: Cannot find a corresponding Enter op.");
  rn_scope_name_next(s, "in");
  rn_edge_t in = rn_Enter(s, x, "f");
  OK(rt_try(&rt, in));  // what is inside a frame can be fetched
  rn_scope_name_next(s, "mixed");
  FAILS_WITH(
      rt_try(&rt, rn_Exit(s, rn_AddV2(s, in, x))), INVALID_ARGUMENT,
      "{{node mixed}} has inputs from different frames. The input {{node in}} is in frame 'f'.");
  rn_edge_t other = rn_Enter(s, x, "g");
  rn_scope_name_next(s, "two");
  FAILS_WITH(rt_try(&rt, rn_Exit(s, rn_AddV2(s, in, other))), INVALID_ARGUMENT,
             "{{node two}} has inputs from different frames");
  rn_Merge_out_t merge = rn_Merge(s, ((rn_edge_t[]){x, x}), 2);
  rn_scope_name_next(s, "back");
  rn_edge_t back = rn_NextIteration(s, merge.output);
  OK(rn_graph_update_edge(rt.graph, back, merge.output.node, 1));
  FAILS_WITH(rt_try(&rt, merge.output), INVALID_ARGUMENT, "closes a loop that no Enter opens");
  cr_assert_eq(rt_get(&rt, rn_Neg(s, x), RN_NO_EDGE, 0), -1);
  cr_assert_eq(rt_get(&rt, rn_Exit(s, in), RN_NO_EDGE, 0), 1);
  rt_end(&rt);
}

// The back edge of one loop leads into another.
RT_TEST(loop_errors, back_edge_elsewhere) {
  rt_t rt = rt_begin(1);
  rn_edge_t zero = rn_const_float(rt.s, 0);
  rt_loop_t a = {.frame = "a", .count = 1, .start = {zero}, .cond = below_ten, .body = count_up};
  rt_loop_t b = {
      .frame = "b", .count = 2, .start = {zero, zero}, .cond = below_ten, .body = count_up};
  a.count = 2;
  a.start[1] = zero;
  rt_loop(rt.s, &a);
  rt_loop(rt.s, &b);
  rn_edge_t back = a.merged[1].node->inputs[1];
  OK(rn_graph_update_edge(rt.graph, back, b.merged[1].node, 1));
  FAILS_WITH(rt_try(&rt, b.exits[1]), INVALID_ARGUMENT, "{{node");
  cr_assert_eq(rt_get(&rt, a.exits[0], RN_NO_EDGE, 0), 10);
  rt_end(&rt);
}

static rn_edge_t always(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_GreaterEqual(s, values[0], values[0]);
}

// Errors within a loop, and a loop without end.
RT_TEST(loop_errors, errors_in_a_loop) {
  for (int parallel = 1; parallel <= 10; parallel += 9) {
    rt_t rt = rt_begin(1);
    rn_edge_t x = rt_placeholder(&rt, "x");
    rt_loop_t loop = {.frame = "w",
                      .count = 1,
                      .parallel = parallel,
                      .start = {x},
                      .cond = below_ten,
                      .body = do_it,
                      .arg = "TestFail"};
    rt_loop(rt.s, &loop);
    for (int turn = 0; turn < 6; ++turn) {
      rt_fails = turn % 2;
      rn_tensor_t fed = rt_scalar(1);
      rt_step_t step = {0};
      rt_feed(&step, x, &fed);
      rt_fetch(&step, loop.exits[0]);
      if (turn % 2) {
        FAILS_WITH(rt_run(&rt, &step), INTERNAL, "boom\n\t [[{{node TestFail}}]]");
        cr_assert_not(rn_tensor_is_set(&step.out[0]));
      } else {
        OK(rt_run(&rt, &step));
        cr_assert_eq(rt_value(&step.out[0]), 10);
      }
      rt_clear(&step);
      rn_tensor_clear(&fed);
    }
    rt_end(&rt);
  }
}

RT_TEST(loop_errors, endless_loop_times_out) {
  static const char* const ops[] = {"TestCount", "TestInline", "TestAsync", "TestBlock"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; ++i) {
    rt_t rt = rt_begin(2);
    rt_loop_t loop = {.frame = "w",
                      .count = 1,
                      .start = {rn_const_float(rt.s, 1)},
                      .cond = always,
                      .body = do_it,
                      .arg = (void*)ops[i]};
    rt_loop(rt.s, &loop);
    rt_step_t step = {.options = {.timeout_ms = 100}};
    rt_fetch(&step, loop.exits[0]);
    int64_t start = rt_now_ms();
    FAILS_WITH(rt_run(&rt, &step), DEADLINE_EXCEEDED, "");
    cr_assert_geq(rt_now_ms() - start, 99);
    cr_assert_lt(rt_now_ms() - start, 20000);
    rt_end(&rt);
  }
}
