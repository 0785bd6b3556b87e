// Loops and conditionals: frames, iterations, dead values.
#include "util.h"

static rn_edge_t below_ten(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rt_const_at(s, values[0], 10));
}
// i + 1, and twice the other plus i.
static void count_up(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  next[1] = rn_AddV2(s, rn_Mul(s, values[1], rt_const_at(s, values[0], 2)), values[0]);
}

static float counted(float i, float x) {
  for (; i < 10; ++i) x = x * 2 + i;
  return x;
}

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

RT_TEST(frames, conditional) {
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
RT_TEST(frames, constants_of_a_branch) {
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

RT_TEST(frames, nested_conditional) {
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
RT_TEST(frames, loop_in_a_branch) {
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
RT_TEST(frames, conditional_in_a_loop) {
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

// What waits for a dead node by a control edge is dead, but for a ControlTrigger.
RT_TEST(frames, dead_controls) {
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

RT_TEST(frames, predicate_must_be_scalar) {
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
RT_TEST(frames, variables_are_read) {
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

// Malformed loops are named, and the session works on.
RT_TEST(frames, malformed) {
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
RT_TEST(frames, back_edge_elsewhere) {
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
static void do_it(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  next[0] = rt_op(s, arg, rn_AddV2(s, values[0], rt_const_at(s, values[0], 1)));
}

// Errors within a loop, and a loop without end.
RT_TEST(frames, errors_in_a_loop) {
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

RT_TEST(frames, endless_loop_times_out) {
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
