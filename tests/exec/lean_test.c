// Plans without control flow: feeds, fetches, order, reads and errors.
#include "util.h"

RT_TEST(lean, chain_and_diamond) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = rt_begin(1);
    rt.options.optimize = optimize;
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t a = rn_AddV2(rt.s, x, rn_const_float(rt.s, 1));
    rn_edge_t left = rn_Neg(rt.s, a), right = rn_Mul(rt.s, a, a);
    rn_edge_t sum = rn_AddV2(rt.s, left, right);
    rt_step_t step = {0};
    rn_tensor_t fed = rt_scalar(2);
    rt_feed(&step, x, &fed);
    rt_fetch(&step, sum);
    rt_fetch(&step, a);    // in between
    rt_fetch(&step, sum);  // twice
    rt_fetch(&step, x);    // what is fed
    rt_fetch(&step, right);
    for (int turn = 0; turn < 3; ++turn) {
      OK(rt_run(&rt, &step));
      cr_assert_eq(rt_value(&step.out[0]), 6);
      cr_assert_eq(rt_value(&step.out[1]), 3);
      cr_assert_eq(rt_value(&step.out[2]), 6);
      cr_assert_eq(rt_value(&step.out[3]), 2);
      cr_assert_eq(rt_value(&step.out[4]), 9);
      rt_clear(&step);
    }
    rn_tensor_clear(&fed);
    rt_end(&rt);
  }
}

// What is fetched is the client's: the next step does not write over it.
RT_TEST(lean, fetched_values_stay) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t y = rn_Mul(rt.s, rn_AddV2(rt.s, x, x), x);
  rn_tensor_t out[8];
  for (int i = 0; i < 8; ++i) {
    rt_step_t step = {0};
    rn_tensor_t fed = rt_scalar((float)i);
    rt_feed(&step, x, &fed);
    rt_fetch(&step, y);
    OK(rt_run(&rt, &step));
    out[i] = step.out[0];
    rn_tensor_clear(&fed);
  }
  for (int i = 0; i < 8; ++i) {
    cr_assert_eq(rt_value(&out[i]), 2.0f * (float)i * (float)i);
    rn_tensor_clear(&out[i]);
  }
  rt_end(&rt);
}

RT_TEST(lean, constants_fetched) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = rt_begin(1);
    rt.options.optimize = optimize;
    rn_edge_t c = rn_const_float(rt.s, 3);
    rn_edge_t folded = rn_AddV2(rt.s, c, rn_Mul(rt.s, c, c));
    rt_step_t step = {0};
    rt_fetch(&step, c);
    rt_fetch(&step, folded);
    rt_fetch(&step, rn_Identity(rt.s, c));
    for (int turn = 0; turn < 2; ++turn) {
      OK(rt_run(&rt, &step));
      cr_assert_eq(rt_value(&step.out[0]), 3);
      cr_assert_eq(rt_value(&step.out[1]), 12);
      cr_assert_eq(rt_value(&step.out[2]), 3);
      rt_clear(&step);
    }
    rt_end(&rt);
  }
}

// Any edge can be fed, with any shape but where a placeholder says otherwise.
RT_TEST(lean, feeds_anywhere) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = rt_begin(1);
    rt.options.optimize = optimize;
    rn_edge_t x = rn_const(rt.s, RN_FLOAT, (int64_t[]){3}, 1, (float[]){1, 2, 3});
    rn_edge_t y = rn_Neg(rt.s, x), z = rn_Mul(rt.s, rn_AddV2(rt.s, y, y), y);
    rn_edge_t shape = rn_Shape(rt.s, z);
    for (int64_t count = 5; count > 0; count -= 2) {
      rn_tensor_t fed = rt_floats(count, (float[]){1, 2, 3, 4, 5});
      rt_step_t step = {0};
      rt_feed(&step, y, &fed);
      rt_fetch(&step, z);
      rt_fetch(&step, shape);
      OK(rt_run(&rt, &step));
      cr_assert_eq(step.out[0].count, count);
      for (int64_t i = 0; i < count; ++i)
        cr_assert_eq(RN_DATA(&step.out[0], float)[i], 2 * (float)((i + 1) * (i + 1)));
      cr_assert_eq(*RN_DATA(&step.out[1], int32_t), count);
      rt_clear(&step);
      rn_tensor_clear(&fed);
    }
    // A constant, too.
    rn_tensor_t fed = rt_floats(2, (float[]){5, 6});
    rt_step_t step = {0};
    rt_feed(&step, x, &fed);
    rt_fetch(&step, y);
    OK(rt_run(&rt, &step));
    cr_assert_eq(RN_DATA(&step.out[0], float)[1], -6);
    rt_clear(&step);
    rn_tensor_clear(&fed);
    rt_end(&rt);
  }
}

RT_TEST(lean, wrong_feeds) {
  rt_t rt = rt_begin(1);
  rn_edge_t any = rt_placeholder(&rt, "any");
  rn_op_begin(rt.s, "Placeholder");
  rn_scope_name_next(rt.s, "pair");
  rn_op_attr_type(rt.s, "dtype", RN_FLOAT);
  rn_op_attr_shape(rt.s, "shape", (int64_t[]){2}, 1);
  rn_edge_t pair = {rn_op_finish(rt.s), 0};
  rn_edge_t sum = rn_AddV2(rt.s, any, pair);
  FAILS_WITH(
      rt_try(&rt, any), INVALID_ARGUMENT,
      "You must feed a value for placeholder tensor 'any' with dtype float\n\t [[{{node any}}]]");
  rn_tensor_t one = rt_scalar(1), two = rt_floats(2, (float[]){1, 2}), flag = rt_bool(true);
  rn_tensor_t unset = {0};
  rt_step_t step = {0};
  rt_feed(&step, any, &one);
  rt_fetch(&step, sum);
  FAILS_WITH(rt_run(&rt, &step), INVALID_ARGUMENT, "pair");
  rt_feed(&step, pair, &flag);
  FAILS_WITH(rt_run(&rt, &step), INVALID_ARGUMENT, "float");
  step.values[1] = &unset;
  FAILS_WITH(rt_run(&rt, &step), INVALID_ARGUMENT, "pair");
  step.values[1] = NULL;
  FAILS_WITH(rt_run(&rt, &step), INVALID_ARGUMENT, "pair");
  step.values[1] = &two;
  OK(rt_run(&rt, &step));
  rt_clear(&step);
  rt_feed(&step, pair, &two);
  FAILS_WITH(rt_run(&rt, &step), INVALID_ARGUMENT, "pair:0 was fed more than once");
  step.feed_count = 2;
  step.fetches[0].index = 7;
  FAILS_WITH(rt_run(&rt, &step), OUT_OF_RANGE, "does not have output 7");
  step.fetches[0].node = NULL;
  FAILS_WITH(rt_run(&rt, &step), INVALID_ARGUMENT, "NULL");
  // A node of another graph.
  rt_t other = rt_begin(1);
  step.fetches[0] = rn_const_float(other.s, 1);
  FAILS_WITH(rt_run(&rt, &step), INVALID_ARGUMENT, "not in the session's graph");
  rt_end(&other);
  rn_tensor_clear(&one);
  rn_tensor_clear(&two);

  rn_tensor_clear(&flag);
  rt_end(&rt);
}

// A control edge from a placeholder that is fed is satisfied; one from a placeholder that is not
// fed is an error.
RT_TEST(lean, control_on_a_placeholder) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_scope_add_control(rt.s, x.node);
  rn_edge_t y = rn_Identity(rt.s, rn_const_float(rt.s, 5));
  rn_scope_clear_controls(rt.s);
  cr_assert_eq(rt_get(&rt, y, x, 1), 5);
  FAILS_WITH(rt_try(&rt, y), INVALID_ARGUMENT, "placeholder tensor 'x'");
  rt_end(&rt);
}

// NoOps that gather, identities and constants that wait: all in order, each once.
RT_TEST(lean, control_edges) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = rt_begin(1);
    rt.options.optimize = optimize;
    rn_edge_t v = rn_VariableV2(rt.s, NULL, 0, RN_FLOAT);
    rn_edge_t set = rn_Assign(rt.s, v, rn_const_float(rt.s, 1));
    rn_scope_add_control(rt.s, set.node);
    rn_edge_t twice = rn_AssignAdd(rt.s, v, rn_const_float(rt.s, 1));
    rn_scope_clear_controls(rt.s);
    rn_scope_add_control(rt.s, twice.node);
    rn_op_begin(rt.s, "NoOp");
    rn_node_t* group = rn_op_finish(rt.s);
    rn_scope_clear_controls(rt.s);
    rn_scope_add_control(rt.s, group);
    rn_edge_t late = rn_const_float(rt.s, 10);  // a constant that waits
    rn_scope_clear_controls(rt.s);
    rn_scope_add_control(rt.s, late.node);
    rn_edge_t value = rn_Identity(rt.s, v);
    rn_scope_clear_controls(rt.s);
    for (int turn = 0; turn < 3; ++turn) {
      cr_assert_eq(rt_get(&rt, value, RN_NO_EDGE, 0), 2);
      cr_assert_eq(rt_get(&rt, late, RN_NO_EDGE, 0), 10);
      rt_do(&rt, group);
    }
    rt_end(&rt);
  }
}

// References: an Identity of a variable shows what is assigned after it; a resource's read does
// not.
RT_TEST(lean, references) {
  rt_t rt = rt_begin(1);
  rn_scope_name_next(rt.s, "v");
  rn_edge_t v = rn_VariableV2(rt.s, NULL, 0, RN_FLOAT);
  rn_edge_t set = rn_Assign(rt.s, v, rn_const_float(rt.s, 1));
  rn_edge_t seen = rn_Identity(rt.s, v);
  rn_scope_add_control(rt.s, seen.node);
  rn_edge_t add = rn_AssignAdd(rt.s, v, rn_const_float(rt.s, 10));
  rn_scope_clear_controls(rt.s);
  FAILS_WITH(rt_try(&rt, seen), FAILED_PRECONDITION,
             "Attempting to use uninitialized value v\n\t [[{{node Identity}}]]");
  FAILS_WITH(rt_try(&rt, v), FAILED_PRECONDITION,
             "Attempting to use uninitialized value v\n\t [[{{node _retval_v_0_0}}]]");
  rt_do(&rt, set.node);
  rt_step_t step = {0};
  rt_fetch(&step, seen);
  rt_fetch(&step, add);
  OK(rt_run(&rt, &step));
  cr_assert_eq(rt_value(&step.out[0]), 11);
  cr_assert_eq(rt_value(&step.out[1]), 11);
  rt_clear(&step);
  cr_assert_eq(rt_get(&rt, v, RN_NO_EDGE, 0), 11);
  // A variable that is fed is a value: it can be read, not assigned to.
  cr_assert_eq(rt_get(&rt, seen, v, 5), 5);
  rn_tensor_t fed = rt_scalar(5);
  rt_step_t assign = {0};
  rt_feed(&assign, v, &fed);
  rt_target(&assign, set.node);
  FAILS_WITH(rt_run(&rt, &assign), INVALID_ARGUMENT,
             "Input 0 of node Assign was passed float from _arg_v_0_0:0 incompatible with expected "
             "float_ref.");
  rn_tensor_clear(&fed);
  cr_assert_eq(rt_get(&rt, v, RN_NO_EDGE, 0), 11);
  rt_end(&rt);
}

// What broadcasts one number over another value must not be overwritten by the result, small as
// both may be.
RT_TEST(lean, broadcast_is_not_in_place) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = rt_begin(1);
    rt.options.optimize = optimize;
    rn_edge_t a = rn_const(rt.s, RN_FLOAT, (int64_t[]){4, 1}, 2, (float[]){1, 2, 3, 4});
    rn_edge_t b = rn_const(rt.s, RN_FLOAT, (int64_t[]){1, 4}, 2, (float[]){10, 20, 30, 40});
    rn_op_begin(rt.s, "Placeholder");
    rn_op_attr_type(rt.s, "dtype", RN_FLOAT);
    rn_op_attr_shape(rt.s, "shape", NULL, 0);
    rn_edge_t one = {rn_op_finish(rt.s), 0};
    rn_edge_t p = rn_AddV2(rt.s, a, one), q = rn_AddV2(rt.s, b, one);
    rn_edge_t grid = rn_AddV2(rt.s, p, q);                               // [4,4] of [4,1] and [1,4]
    rn_edge_t row = rn_AddV2(rt.s, rn_Neg(rt.s, one), rn_Neg(rt.s, q));  // [] and [1,4]
    rn_edge_t result = rn_Neg(rt.s, grid), other = rn_Neg(rt.s, row);
    rn_tensor_t fed = rt_scalar(1);
    rt_step_t step = {0};
    rt_feed(&step, one, &fed);
    rt_fetch(&step, result);
    rt_fetch(&step, other);
    for (int turn = 0; turn < 2; ++turn) {
      OK(rt_run(&rt, &step));
      for (int i = 0; i < 4; ++i) {
        cr_assert_eq(RN_DATA(&step.out[1], float)[i], 1 + 10 * (i + 1) + 1);
        for (int k = 0; k < 4; ++k)
          cr_assert_eq(RN_DATA(&step.out[0], float)[4 * i + k], -(i + 2 + 10 * (k + 1) + 1));
      }
      rt_clear(&step);
    }
    rn_tensor_clear(&fed);
    rt_end(&rt);
  }
}

// Reshapes and identities are views; what they show lives as long as the views do.
RT_TEST(lean, views_keep_bytes_alive) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = rt_begin(1);
    rt.options.optimize = optimize;
    rn_op_begin(rt.s, "Placeholder");
    rn_op_attr_type(rt.s, "dtype", RN_FLOAT);
    rn_op_attr_shape(rt.s, "shape", (int64_t[]){6}, 1);
    rn_edge_t x = {rn_op_finish(rt.s), 0};
    rn_edge_t a = rn_Neg(rt.s, x);
    rn_edge_t view = rn_Reshape(rt.s, a, rn_const_int32_list(rt.s, (int32_t[]){2, 3}, 2));
    rn_edge_t b = rn_Neg(rt.s, a), c = rn_Neg(rt.s, b), d = rn_AddV2(rt.s, b, c);
    rn_edge_t again = rn_Reshape(rt.s, view, rn_const_int32_list(rt.s, (int32_t[]){6}, 1));
    rn_edge_t result = rn_AddV2(rt.s, rn_AddV2(rt.s, d, again), c);  // -2x
    rn_tensor_t fed = rt_floats(6, (float[]){1, 2, 3, 4, 5, 6});
    rt_step_t step = {0};
    rt_feed(&step, x, &fed);
    rt_fetch(&step, result);
    rt_fetch(&step, view);
    for (int turn = 0; turn < 2; ++turn) {
      OK(rt_run(&rt, &step));
      for (int i = 0; i < 6; ++i) {
        cr_assert_eq(RN_DATA(&step.out[0], float)[i], -2.0f * (float)(i + 1));
        cr_assert_eq(RN_DATA(&step.out[1], float)[i], -(float)(i + 1));
      }
      cr_assert_eq(step.out[1].rank, 2);
      rt_clear(&step);
    }
    rn_tensor_clear(&fed);
    rt_end(&rt);
  }
}

// An error in the middle names its node; the state can be used again.
RT_TEST(lean, errors_in_the_middle) {
  for (int threads = 1; threads <= 4; threads += 3) {
    rt_t rt = rt_begin(threads);
    rn_edge_t x = rt_placeholder(&rt, "x"), y = x;
    for (int i = 0; i < 10; ++i) y = rn_AddV2(rt.s, y, x);
    rn_scope_name_next(rt.s, "middle/one");
    y = rt_op(rt.s, "TestFail", y);
    for (int i = 0; i < 10; ++i) y = rn_AddV2(rt.s, y, x);
    float zeros[1000] = {0};
    rn_tensor_t fed = rt_floats(1000, zeros);
    for (int turn = 0; turn < 6; ++turn) {
      rt_fails = turn % 2;
      rt_step_t step = {0};
      rt_feed(&step, x, &fed);
      rt_fetch(&step, y);
      if (turn % 2)
        FAILS_WITH(rt_run(&rt, &step), INTERNAL, "boom\n\t [[{{node middle/one}}]]");
      else
        OK(rt_run(&rt, &step));
      rt_clear(&step);
    }
    rn_tensor_clear(&fed);
    rt_end(&rt);
  }
}

// Cycles are named, whether or not anything is optimised.
RT_TEST(lean, cycles) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = rt_begin(1);
    rt.options.optimize = optimize;
    rn_edge_t x = rn_const_float(rt.s, 1);
    rn_Merge_out_t merge = rn_Merge(rt.s, ((rn_edge_t[]){x, x}), 2);
    rn_scope_name_next(rt.s, "round");
    rn_edge_t round = rn_Neg(rt.s, merge.output);
    rn_status_t status = rn_graph_update_edge(rt.graph, round, merge.output.node, 1);
    if (rn_ok(status))
      FAILS_WITH(rt_try(&rt, round), INVALID_ARGUMENT, "round");
    else
      rn_status_free(status);
    cr_assert_eq(rt_get(&rt, rn_Neg(rt.s, x), RN_NO_EDGE, 0), -1);
    rt_end(&rt);
  }
}

// A graph a hundred thousand nodes deep, and one as wide.
RT_TEST(lean, deep_and_wide) {
  rt_t rt = rt_begin(1);
  rt.options.optimize = false;
  rn_edge_t x = rt_placeholder(&rt, "x"), y = x;
  for (int i = 0; i < 100000; ++i) y = rn_Neg(rt.s, y);
  cr_assert_eq(rt_get(&rt, y, x, 3), 3);
  rn_edge_t* many = calloc(20000, sizeof *many);
  for (int i = 0; i < 20000; ++i) many[i] = rn_Neg(rt.s, x);
  rn_edge_t sum = rn_AddN(rt.s, many, 20000);
  cr_assert_eq(rt_get(&rt, sum, x, 1), -20000);
  free(many);
  rt_end(&rt);
}

// More inputs and outputs than there are bits.
RT_TEST(lean, many_arguments) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t many[100];
  for (int i = 0; i < 100; ++i) many[i] = rn_AddV2(rt.s, x, rn_const_float(rt.s, (float)i));
  rn_edges_t same = rn_IdentityN(rt.s, many, 100);
  rn_edge_t sum = rn_AddV2(rt.s, rn_edge_at(same, 3), rn_edge_at(same, 99));
  cr_assert_eq(rt_get(&rt, sum, x, 1), 104);
  cr_assert_eq(rt_get(&rt, rn_edge_at(same, 70), x, 1), 71);
  rt_end(&rt);
}

RT_TEST(lean, statistics) {
  rt_t rt = rt_begin(1);
  rt.options.optimize = false;
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t y = rt_op(rt.s, "TestAsync", rn_Neg(rt.s, x));
  rn_tensor_t fed = rt_scalar(1);
  rn_step_stats_t stats;
  rn_step_stats_init(&stats, rn_allocator_system(), rn_env_system());
  rt_step_t step = {.options = {.stats = &stats}};
  rt_feed(&step, x, &fed);
  rt_fetch(&step, y);
  OK(rt_run(&rt, &step));
  cr_assert_eq(stats.nodes.count, 5);
  cr_assert(rn_str_is(stats.nodes.items[0].node, "_SOURCE"));
  cr_assert_str_eq(stats.nodes.items[1].op, "Neg");
  cr_assert_str_eq(stats.nodes.items[2].op, "TestAsync");
  cr_assert_eq(stats.nodes.items[2].output_bytes, 4);
  cr_assert_gt(stats.nodes.items[2].end_ns, stats.nodes.items[2].start_ns);
  cr_assert(rn_str_is(stats.nodes.items[3].label, "_arg_x_0_0 = _Arg()"));
  cr_assert_eq(stats.nodes.items[3].output_count, 1);
  cr_assert_eq(stats.nodes.items[3].output_bytes, 0);  // it is the client's memory
  cr_assert(rn_str_is(stats.nodes.items[4].node, "_retval_TestAsync_0_0"));
  rn_step_stats_clear(&stats);
  rt_clear(&step);
  rn_tensor_clear(&fed);
  rt_end(&rt);
}

static rn_edge_t large_sum(rt_t* rt, rn_edge_t x, int64_t megabytes) {
  const int64_t count = megabytes << 18, one = 1;
  rn_edge_t dims = rn_const(rt->s, RN_INT32, &one, 1, &(int32_t){(int32_t)count});
  rn_edge_t axis = rn_const(rt->s, RN_INT32, &one, 1, &(int32_t){0});
  return rn_Sum(rt->s, rn_Neg(rt->s, rn_Fill(rt->s, dims, x)), axis);
}

// Plans that run once, as initialization does, do not keep their memory beside the others'.
RT_TEST(lean, memory_of_single_steps_is_not_kept) {
  rn_counting_allocator_t counting = {.base = rn_allocator_system()};
  rt_t rt = rt_begin(1);
  rt.allocator = rn_allocator_counting(&counting);
  rt.options.optimize = false;
  rn_edge_t x = rt_placeholder(&rt, "x");
  const int64_t sizes[] = {60, 40, 90, 30};
  rn_edge_t sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = large_sum(&rt, x, sizes[i]);
  for (int i = 0; i < 4; ++i) {
    rn_tensor_t fed = rt_scalar(1);
    rt_step_t step = {0};
    rt_feed(&step, x, &fed);
    rt_fetch(&step, sums[i]);
    OK(rt_run(&rt, &step));
    cr_assert_eq(rt_value(&step.out[0]), -(float)(sizes[i] << 18));
    rt_clear(&step);
    rn_tensor_clear(&fed);
    cr_assert_leq(counting.live_bytes, 3 * sizes[i] << 20, "step %d", i);
  }
  rt_end(&rt);
  cr_assert_eq(counting.live_bytes, 0);
}
