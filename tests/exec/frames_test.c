// Loops: frames, iterations, exits and invariants.
#include "loop_bodies.h"

RT_TEST(frames, while_loop) {
  static const int parallel[] = {1, 2, 3, 10, 100};
  for (int optimize = 0; optimize < 2; ++optimize) {
    for (size_t p = 0; p < sizeof parallel / sizeof *parallel; ++p) {
      rt_t rt = rt_begin(1);
      rt.options.optimize = optimize;
      rn_edge_t i = rt_placeholder(&rt, "i"), x = rn_const_float(rt.s, 1);
      rt_loop_t loop = {.frame = "w",
                        .count = 2,
                        .parallel = parallel[p],
                        .start = {i, x},
                        .cond = below_ten,
                        .body = count_up};
      rt_loop(rt.s, &loop);
      rn_edge_t after = rn_Neg(rt.s, loop.exits[1]);
      for (int start = 12; start >= 0; start -= 3) {
        cr_assert_eq(rt_get(&rt, loop.exits[1], i, (float)start), counted((float)start, 1));
        cr_assert_eq(rt_get(&rt, after, i, (float)start), -counted((float)start, 1));
        cr_assert_eq(rt_get(&rt, loop.exits[0], i, (float)start), start > 10 ? start : 10);
      }
      rt_end(&rt);
    }
  }
}

// Both of a loop's exits in one step, and a sum of them.
RT_TEST(frames, exits_together) {
  rt_t rt = rt_begin(1);
  rn_edge_t zero = rn_const_float(rt.s, 0), one = rn_const_float(rt.s, 1);
  rt_loop_t loop = {
      .frame = "w", .count = 2, .start = {zero, one}, .cond = below_ten, .body = count_up};
  rt_loop(rt.s, &loop);
  rn_edge_t sum = rn_AddV2(rt.s, loop.exits[0], loop.exits[1]);
  for (int turn = 0; turn < 3; ++turn) {
    rt_step_t step = {0};
    rt_fetch(&step, loop.exits[0]);
    rt_fetch(&step, loop.exits[1]);
    rt_fetch(&step, sum);
    OK(rt_run(&rt, &step));
    cr_assert_eq(rt_value(&step.out[0]), 10);
    cr_assert_eq(rt_value(&step.out[1]), counted(0, 1));
    cr_assert_eq(rt_value(&step.out[2]), 10 + counted(0, 1));
    rt_clear(&step);
  }
  rt_end(&rt);
}

// A loop in a loop: the inner one starts anew in every turn of the outer.
static rn_edge_t below_three(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rt_const_at(s, values[0], 3));
}
static void inner_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  rn_edge_t one = rt_const_at(s, values[0], 1);
  next[0] = rn_AddV2(s, values[0], one);
  next[1] = rn_AddV2(s, rn_AddV2(s, values[1], values[1]), one);
}
static void outer_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  rt_loop_t* inner = arg;
  inner->start[0] = rt_const_at(s, values[0], 0);
  inner->start[1] = values[1];
  rt_loop(s, inner);
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  next[1] = inner->exits[1];
}

RT_TEST(frames, nested) {
  static const int parallel[] = {1, 2, 10};
  for (int p = 0; p < 9; ++p) {
    rt_t rt = rt_begin(1);
    rn_edge_t x = rt_placeholder(&rt, "x");
    rt_loop_t inner = {.frame = "inner",
                       .count = 2,
                       .parallel = parallel[p / 3],
                       .cond = below_three,
                       .body = inner_body};
    rt_loop_t outer = {.frame = "outer",
                       .count = 2,
                       .parallel = parallel[p % 3],
                       .start = {rn_const_float(rt.s, 0), x},
                       .cond = below_ten,
                       .body = outer_body,
                       .arg = &inner};
    rt_loop(rt.s, &outer);
    float expected = 1;
    for (int turn = 0; turn < 30; ++turn) expected = expected + expected + 1;
    for (int turn = 0; turn < 3; ++turn) cr_assert_eq(rt_get(&rt, outer.exits[1], x, 1), expected);
    rt_end(&rt);
  }
}

// A loop invariant: an Enter that every iteration sees.
static rn_edge_t until_limit(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  return rn_Less(s, values[0], *(rn_edge_t*)arg);
}
static void add_invariant(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  rn_edge_t step = ((rn_edge_t*)arg)[1];
  next[0] = rn_AddV2(s, values[0], step);
}
RT_TEST(frames, invariants) {
  for (int parallel = 1; parallel <= 4; ++parallel) {
    rt_t rt = rt_begin(1);
    rn_edge_t limit = rt_placeholder(&rt, "limit");
    rn_edge_t inside[2] = {
        rn_Enter(rt.s, limit, "w", .is_constant = true, .parallel_iterations = RN_SET(parallel)),
        rn_Enter(rt.s, rn_const_float(rt.s, 3), "w", .is_constant = true,
                 .parallel_iterations = RN_SET(parallel))};
    rt_loop_t loop = {.frame = "w",
                      .count = 1,
                      .parallel = parallel,
                      .start = {rn_const_float(rt.s, 0)},
                      .cond = until_limit,
                      .body = add_invariant,
                      .arg = inside};
    rt_loop(rt.s, &loop);
    cr_assert_eq(rt_get(&rt, loop.exits[0], limit, 10), 12);
    cr_assert_eq(rt_get(&rt, loop.exits[0], limit, -1), 0);
    cr_assert_eq(rt_get(&rt, loop.exits[0], limit, 3000), 3000);
    rt_end(&rt);
  }
}

// Tensors that do not fit an iteration's own memory, and unknown shapes.
RT_TEST(frames, big_values) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rt_loop_t loop = {.frame = "w",
                    .count = 2,
                    .start = {rn_const_float(rt.s, 0), x},
                    .cond = below_ten,
                    .body = count_up};
  rt_loop(rt.s, &loop);
  for (int64_t count = 1; count <= 5000; count = count * 7 + 1) {
    float values[5000];
    for (int64_t k = 0; k < count; ++k) values[k] = (float)(k % 17);
    rn_tensor_t fed = rt_floats(count, values);
    rt_step_t step = {0};
    rt_feed(&step, x, &fed);
    rt_fetch(&step, loop.exits[1]);
    OK(rt_run(&rt, &step));
    cr_assert_eq(step.out[0].count, count);
    for (int64_t k = 0; k < count; ++k)
      cr_assert_eq(RN_DATA(&step.out[0], float)[k], counted(0, (float)(k % 17)));
    rt_clear(&step);
    rn_tensor_clear(&fed);
  }
  rt_end(&rt);
}

RT_TEST(frames, two_loops) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rt_loop_t first = {.frame = "a",
                     .count = 2,
                     .start = {rn_const_float(rt.s, 0), x},
                     .cond = below_ten,
                     .body = count_up};
  rt_loop(rt.s, &first);
  rt_loop_t second = {.frame = "b",
                      .count = 2,
                      .start = {rn_const_float(rt.s, 5), x},
                      .cond = below_ten,
                      .body = count_up};
  rt_loop(rt.s, &second);
  rt_loop_t third = {.frame = "c",
                     .count = 2,
                     .start = {rn_const_float(rt.s, 8), first.exits[1]},
                     .cond = below_ten,
                     .body = count_up};
  rt_loop(rt.s, &third);
  rn_edge_t sum = rn_AddV2(rt.s, rn_AddV2(rt.s, second.exits[1], third.exits[1]), x);
  cr_assert_eq(rt_get(&rt, sum, x, 2), counted(5, 2) + counted(8, counted(0, 2)) + 2);
  rt_end(&rt);
}

// A control edge within a loop: what counts runs once a turn, before what it orders.
static void counting_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  rn_edge_t counted_one = rt_op(s, "TestCount", values[0]);
  rn_scope_add_control(s, counted_one.node);
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  rn_scope_clear_controls(s);
  rn_scope_add_control(s, counted_one.node);
  next[1] = rn_Identity(s, values[1]);
  rn_scope_clear_controls(s);
}
RT_TEST(frames, control_edges_in_a_loop) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rt_loop_t loop = {.frame = "w",
                    .count = 2,
                    .start = {rn_const_float(rt.s, 0), x},
                    .cond = below_ten,
                    .body = counting_body};
  rt_loop(rt.s, &loop);
  cr_assert_eq(rt_get(&rt, loop.exits[1], x, 7), 7);
  cr_assert_eq(rt_count, 10);
  rt_end(&rt);
}

// Asynchronous kernels within a loop.
RT_TEST(frames, async_in_a_loop) {
  static const char* const ops[] = {"TestInline", "TestAsync"};
  for (int parallel = 1; parallel <= 10; parallel += 9) {
    for (int i = 0; i < 2; ++i) {
      rt_t rt = rt_begin(2);
      rn_edge_t x = rt_placeholder(&rt, "x");
      rt_loop_t loop = {.frame = "w",
                        .count = 1,
                        .parallel = parallel,
                        .start = {x},
                        .cond = below_ten,
                        .body = do_it,
                        .arg = (void*)ops[i]};
      rt_loop(rt.s, &loop);
      for (int turn = 0; turn < 3; ++turn) cr_assert_eq(rt_get(&rt, loop.exits[0], x, 1), 11);
      rt_end(&rt);
    }
  }
}

// Statistics know the nodes of loops.
RT_TEST(frames, statistics) {
  rt_t rt = rt_begin(1);
  rn_edge_t zero = rn_const_float(rt.s, 0), one = rn_const_float(rt.s, 1);
  rt_loop_t loop = {
      .frame = "w", .count = 2, .start = {zero, one}, .cond = below_ten, .body = count_up};
  rt_loop(rt.s, &loop);
  rn_step_stats_t stats;
  rn_step_stats_init(&stats, rn_allocator_system(), rn_env_system());
  rt_step_t step = {.options = {.stats = &stats}};
  rt_fetch(&step, loop.exits[1]);
  OK(rt_run(&rt, &step));
  int muls = 0;
  for (size_t i = 0; i < stats.nodes.count; ++i)
    muls += strcmp(stats.nodes.items[i].op, "Less") == 0;
  cr_assert_eq(muls, 11);
  rn_step_stats_clear(&stats);
  rt_clear(&step);
  rt_end(&rt);
}
