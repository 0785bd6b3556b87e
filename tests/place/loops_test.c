// Loops and conditionals over several devices: every part runs the same number of iterations,
// values and dead branches cross within an iteration, and the step always ends.
#include "steps.h"

// Where the parts of a loop go; NULL: anywhere, which is the first CPU.
typedef struct layout_t {
  const char* loop;  // Enter, Merge, Switch, NextIteration, Exit
  const char* cond;
  const char* body;
  const char* other;
} layout_t;

static const layout_t layouts[] = {
    {NULL, NULL, NULL, NULL},
    {"/cpu:0", "/cpu:0", "/cpu:0", "/cpu:1"},
    {"/cpu:0", "/cpu:0", "/cpu:1", "/cpu:0"},
    {"/cpu:1", "/cpu:0", "/cpu:1", "/cpu:0"},
    {"/cpu:0", "/cpu:1", "/cpu:0", "/cpu:0"},
    {"/cpu:0", "/device:NULL:0", "/cpu:1", "/device:NULL:1"},
    {"/device:NULL:0", "/device:NULL:0", "/device:NULL:1", "/device:NULL:2"},
    {"/device:NULL:1", "/cpu:1", "/device:NULL:0", "/device:NULL:0"},
    {"/cpu:1", "/device:NULL:2", "/device:NULL:2", "/cpu:1"},
};
#define LAYOUTS (sizeof layouts / sizeof *layouts)

static rt_t devices_begin(int threads) {
  rt_t rt = rt_begin(threads);
  rt.options.cpu_devices = 2;
  rt.options.null_devices = 3;
  rt.options.allow_soft_placement = true;  // null devices compare on the CPU
  return rt;
}
static void on(rn_scope_t* s, const char* device) { rn_scope_set_device(s, device); }

static rn_edge_t invariant(rn_scope_t* s, const char* frame, rn_edge_t value) {
  rn_op_begin(s, "Enter");
  rn_op_input(s, value);
  rn_op_attr_string(s, "frame_name", frame);
  rn_op_attr_bool(s, "is_constant", true);
  rn_op_attr_int(s, "parallel_iterations", 10);
  return (rn_edge_t){rn_op_finish(s), 0};
}

// while (i < 7) { i = i + 1; x = -(x * k) + i }
typedef struct sums_t {
  const layout_t* at;
  rn_edge_t k;
} sums_t;
static rn_edge_t sums_cond(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  const layout_t* at = ((sums_t*)arg)->at;
  on(s, at->cond);
  rn_edge_t less = rn_Less(s, values[0], rt_const_at(s, values[0], 7));
  on(s, at->loop);
  return less;
}
static void sums_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  sums_t* sums = arg;
  on(s, sums->at->body);
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  on(s, sums->at->other);
  rn_edge_t product = rn_Neg(s, rn_Mul(s, values[1], sums->k));
  on(s, sums->at->body);
  next[1] = rn_AddV2(s, product, next[0]);
  on(s, sums->at->loop);
}
static float sums_value(float x, float k) {
  for (int i = 0; i < 7;) {
    i = i + 1;
    x = -(x * k) + (float)i;
  }
  return x;
}

RT_TEST(loops, values_cross) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    for (size_t l = 0; l < LAYOUTS; ++l) {
      for (int parallel = 1; parallel <= 10; parallel += 9) {
        rt_t rt = devices_begin(2);
        rt.options.optimize = optimize;
        rn_edge_t x = rt_placeholder(&rt, "x");
        on(rt.s, layouts[l].loop);
        sums_t sums = {&layouts[l], invariant(rt.s, "w", rn_const_float(rt.s, 3))};
        rt_loop_t loop = {.frame = "w",
                          .count = 2,
                          .parallel = parallel,
                          .start = {rn_const_float(rt.s, 0), x},
                          .cond = sums_cond,
                          .body = sums_body,
                          .arg = &sums};
        rt_loop(rt.s, &loop);
        on(rt.s, layouts[l].other);
        rn_edge_t end = rn_Neg(rt.s, loop.exits[1]);
        on(rt.s, NULL);
        for (int turn = 0; turn < 3; ++turn)
          cr_assert_eq(get(&rt, x, (float)turn, end), -sums_value((float)turn, 3), "layout %zu", l);
        rt_end(&rt);
      }
    }
  }
}

// for (i = 0; i < 3; ++i) for (j = 0; j < 4; ++j) x = -x + i
typedef struct nested_t {
  const layout_t *outer, *inner;
} nested_t;
typedef struct inner_t {
  const layout_t* at;
  rn_edge_t i;
} inner_t;
static rn_edge_t below(rn_scope_t* s, rn_edge_t value, float limit, const layout_t* at) {
  on(s, at->cond);
  rn_edge_t less = rn_Less(s, value, rt_const_at(s, value, limit));
  on(s, at->loop);
  return less;
}
static rn_edge_t inner_cond(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  return below(s, values[0], 4, ((inner_t*)arg)->at);
}
static void inner_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  inner_t* inner = arg;
  on(s, inner->at->body);
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  on(s, inner->at->other);
  next[1] = rn_AddV2(s, rn_Neg(s, values[1]), inner->i);
  on(s, inner->at->loop);
}
static rn_edge_t outer_cond(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  return below(s, values[0], 3, ((nested_t*)arg)->outer);
}
static void outer_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  nested_t* nested = arg;
  on(s, nested->inner->loop);
  inner_t inner = {nested->inner, invariant(s, "inner", values[0])};
  rt_loop_t loop = {.frame = "inner",
                    .count = 2,
                    .start = {rt_const_at(s, values[0], 0), values[1]},
                    .cond = inner_cond,
                    .body = inner_body,
                    .arg = &inner};
  rt_loop(s, &loop);
  on(s, nested->outer->body);
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  next[1] = rn_Identity(s, loop.exits[1]);
  on(s, nested->outer->loop);
}

RT_TEST(loops, nested) {
  for (size_t o = 0; o < LAYOUTS; ++o) {
    for (size_t i = 0; i < LAYOUTS; ++i) {
      rt_t rt = devices_begin(2);
      rn_edge_t x = rt_placeholder(&rt, "x");
      nested_t nested = {&layouts[o], &layouts[i]};
      on(rt.s, layouts[o].loop);
      rt_loop_t loop = {.frame = "outer",
                        .count = 2,
                        .start = {rn_const_float(rt.s, 0), x},
                        .cond = outer_cond,
                        .body = outer_body,
                        .arg = &nested};
      rt_loop(rt.s, &loop);
      on(rt.s, NULL);
      float wanted = 5;
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 4; ++b) wanted = -wanted + (float)a;
      for (int turn = 0; turn < 2; ++turn)
        cr_assert_eq(get(&rt, x, 5, loop.exits[1]), wanted, "layouts %zu and %zu", o, i);
      rt_end(&rt);
    }
  }
}

// while (i < 6) { x = i < 3 ? x + i : -x; i = i + 1 }, each way on a device of its own.
static rn_edge_t branch_cond(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  return below(s, values[0], 6, arg);
}
static void branch_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  const layout_t* at = arg;
  on(s, at->cond);
  rn_edge_t early = rn_Less(s, values[0], rt_const_at(s, values[0], 3));
  on(s, at->body);
  rn_Switch_out_t x = rn_Switch(s, values[1], early), i = rn_Switch(s, values[0], early);
  rn_edge_t sum = rn_AddV2(s, x.output_true, i.output_true);
  on(s, at->other);
  rn_edge_t negated = rn_Neg(s, x.output_false);
  rn_edge_t merged = rn_Merge(s, ((rn_edge_t[]){negated, sum}), 2).output;
  on(s, at->body);
  next[1] = rn_Identity(s, merged);
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  on(s, at->loop);
}

RT_TEST(loops, conditionals_inside) {
  for (size_t l = 0; l < LAYOUTS; ++l) {
    rt_t rt = devices_begin(2);
    rn_edge_t x = rt_placeholder(&rt, "x");
    on(rt.s, layouts[l].loop);
    rt_loop_t loop = {.frame = "w",
                      .count = 2,
                      .start = {rn_const_float(rt.s, 0), x},
                      .cond = branch_cond,
                      .body = branch_body,
                      .arg = (void*)&layouts[l]};
    rt_loop(rt.s, &loop);
    on(rt.s, NULL);
    for (int turn = 0; turn < 3; ++turn)
      cr_assert_eq(get(&rt, x, (float)turn, loop.exits[1]), -((float)turn + 3), "layout %zu", l);
    rt_end(&rt);
  }
}

// A loop on a way that may not be taken: none of its parts hangs, and what it leaves is dead.
RT_TEST(loops, inside_a_conditional) {
  for (size_t l = 0; l < LAYOUTS; ++l) {
    rt_t rt = devices_begin(2);
    rn_edge_t x = rt_placeholder(&rt, "x"), p = rn_Placeholder(rt.s, RN_BOOL);
    rn_Switch_out_t way = rn_Switch(rt.s, x, p);
    nested_t nested = {&layouts[l], &layouts[(l + 3) % LAYOUTS]};
    on(rt.s, layouts[l].loop);
    rt_loop_t loop = {.frame = "outer",
                      .count = 2,
                      .start = {rt_const_at(rt.s, way.output_true, 0), way.output_true},
                      .cond = outer_cond,
                      .body = outer_body,
                      .arg = &nested};
    // The control edge of the constant comes from the Switch, alive either way.
    loop.start[0] = rn_Mul(rt.s, way.output_true, rn_const_float(rt.s, 0));
    rt_loop(rt.s, &loop);
    on(rt.s, NULL);
    rn_edge_t end = rn_Merge(rt.s, ((rn_edge_t[]){way.output_false, loop.exits[1]}), 2).output;
    float wanted = 5;
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 4; ++b) wanted = -wanted + (float)a;
    for (int turn = 0; turn < 4; ++turn) {
      rn_tensor_t fed = rt_scalar(5), which = rt_bool(turn % 2);
      rt_step_t step = {.options = {.timeout_ms = TIMEOUT_MS}};
      rt_feed(&step, x, &fed);
      rt_feed(&step, p, &which);
      rt_fetch(&step, end);
      OK(rt_run(&rt, &step));
      cr_assert_eq(rt_value(&step.out[0]), turn % 2 ? wanted : 5, "layout %zu", l);
      rt_clear(&step);
      rn_tensor_clear(&fed);
      rn_tensor_clear(&which);
    }
    rt_end(&rt);
  }
}

// One variable of a loop is dead, the other goes round: what crosses of the dead one is dead in
// every iteration.
static rn_edge_t first_below(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rt_const_at(s, values[0], 5));
}
static void half_dead(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  on(s, "/cpu:1");
  next[1] = rn_Neg(s, values[1]);
  on(s, "/cpu:0");
}
RT_TEST(loops, half_dead) {
  rt_t rt = devices_begin(2);
  rn_edge_t x = rt_placeholder(&rt, "x"), p = rn_Placeholder(rt.s, RN_BOOL);
  on(rt.s, "/cpu:0");
  rn_Switch_out_t way = rn_Switch(rt.s, x, p);
  rt_loop_t loop = {.frame = "w",
                    .count = 2,
                    .start = {x, way.output_true},
                    .cond = first_below,
                    .body = half_dead};
  rt_loop(rt.s, &loop);
  rn_edge_t other = rn_Merge(rt.s, ((rn_edge_t[]){way.output_false, loop.exits[1]}), 2).output;
  on(rt.s, NULL);
  for (int turn = 0; turn < 4; ++turn) {
    rn_tensor_t fed = rt_scalar(2), which = rt_bool(turn % 2);
    rt_step_t step = {.options = {.timeout_ms = TIMEOUT_MS}};
    rt_feed(&step, x, &fed);
    rt_feed(&step, p, &which);
    rt_fetch(&step, loop.exits[0]);
    rt_fetch(&step, other);
    OK(rt_run(&rt, &step));
    cr_assert_eq(rt_value(&step.out[0]), 5);
    cr_assert_eq(rt_value(&step.out[1]), turn % 2 ? -2 : 2);
    rt_clear(&step);
    rn_tensor_clear(&fed);
    rn_tensor_clear(&which);
  }
  rt_end(&rt);
}

// A value that is made of invariants alone, on a device that receives nothing.
static void use_invariant(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  next[0] = rn_AddV2(s, values[0], *(rn_edge_t*)arg);
}
RT_TEST(loops, sender_without_variables) {
  rt_t rt = devices_begin(2);
  rn_edge_t x = rt_placeholder(&rt, "x");
  on(rt.s, "/cpu:1");
  rn_edge_t one = rn_Neg(rt.s, invariant(rt.s, "w", rn_const_float(rt.s, -1)));
  on(rt.s, "/cpu:0");
  rt_loop_t loop = {.frame = "w",
                    .count = 1,
                    .start = {x},
                    .cond = first_below,
                    .body = use_invariant,
                    .arg = &one};
  rt_loop(rt.s, &loop);
  on(rt.s, NULL);
  for (int turn = 0; turn < 3; ++turn) cr_assert_eq(get(&rt, x, (float)turn, loop.exits[0]), 5);
  rt_end(&rt);
}

// Control edges cross within iterations.
static void counted_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  on(s, "/cpu:0");
  rn_edge_t counted = rt_op(s, "TestCount", rt_op(s, "TestAsync", values[0]));
  on(s, "/device:NULL:0");
  rn_scope_add_control(s, counted.node);
  rn_edge_t one = rn_const_float(s, 1);
  rn_scope_clear_controls(s);
  next[0] = rn_AddV2(s, values[0], one);
  on(s, NULL);
}
RT_TEST(loops, control_edges) {
  rt_t rt = devices_begin(2);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rt_loop_t loop = {
      .frame = "w", .count = 1, .start = {x}, .cond = first_below, .body = counted_body};
  rt_loop(rt.s, &loop);
  for (int turn = 0; turn < 3; ++turn) {
    rt_count = 0;
    cr_assert_eq(get(&rt, x, (float)turn, loop.exits[0]), 5);
    cr_assert_eq(rt_count, 5 - turn);
  }
  rt_end(&rt);
}

// Many steps at once, of many iterations: keys of different runs must not meet.
typedef struct client_t {
  rt_t* rt;
  rn_edge_t x, end;
  bool is_wrong;
} client_t;
static void* client_main(void* arg) {
  client_t* client = arg;
  for (int turn = 0; turn < 20; ++turn) {
    rn_tensor_t fed = rt_scalar((float)turn);
    rt_step_t step = {.options = {.timeout_ms = TIMEOUT_MS}};
    rt_feed(&step, client->x, &fed);
    rt_fetch(&step, client->end);
    rn_status_t status = rt_run_in(client->rt->session, &step);
    if (!rn_ok(status) || *RN_DATA(&step.out[0], float) != sums_value((float)turn, 1))
      client->is_wrong = true;
    rn_status_free(status);
    rt_clear(&step);
    rn_tensor_clear(&fed);
  }
  return NULL;
}
RT_TEST(loops, concurrent) {
  rt_t rt = devices_begin(2);
  rn_edge_t x = rt_placeholder(&rt, "x");
  const layout_t* at = &layouts[5];
  on(rt.s, at->loop);
  sums_t sums = {at, invariant(rt.s, "w", rn_const_float(rt.s, 1))};
  rt_loop_t loop = {.frame = "w",
                    .count = 2,
                    .start = {rn_const_float(rt.s, 0), x},
                    .cond = sums_cond,
                    .body = sums_body,
                    .arg = &sums};
  rt_loop(rt.s, &loop);
  on(rt.s, NULL);
  rt_session(&rt);
  pthread_t threads[4];
  client_t clients[4];
  for (int i = 0; i < 4; ++i) {
    clients[i] = (client_t){&rt, x, loop.exits[1], false};
    pthread_create(&threads[i], NULL, client_main, &clients[i]);
  }
  for (int i = 0; i < 4; ++i) {
    pthread_join(threads[i], NULL);
    cr_assert_not(clients[i].is_wrong);
  }
  rt_end(&rt);
}

// Something on another device fails, or waits for ever, in the middle of a loop.
static void troubled_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  on(s, "/cpu:1");
  next[0] = rt_op(s, arg, rn_AddV2(s, values[0], rt_const_at(s, values[0], 1)));
  on(s, "/device:NULL:0");
  next[0] = rn_Neg(s, rn_Neg(s, next[0]));
  on(s, "/cpu:0");
}
RT_TEST(loops, errors_end_all_parts) {
  rt_t rt = devices_begin(2);
  rn_edge_t x = rt_placeholder(&rt, "x");
  on(rt.s, "/cpu:0");
  rt_loop_t loop = {.frame = "w",
                    .count = 1,
                    .start = {x},
                    .cond = first_below,
                    .body = troubled_body,
                    .arg = "TestFail"};
  rt_loop(rt.s, &loop);
  on(rt.s, NULL);
  float out = 0;
  for (int turn = 0; turn < 6; ++turn) {
    rt_fails = turn % 2;
    rn_status_t status = run_once(&rt, x, 1, loop.exits[0], &out);
    if (turn % 2)
      FAILS_WITH(status, INTERNAL, "boom\n\t [[{{node TestFail}}]]");
    else
      OK(status);
    if (turn % 2 == 0) cr_assert_eq(out, 5);
  }
  rt_fails = false;
  rt_end(&rt);
}

typedef struct blocked_t {
  rt_t* rt;
  rt_step_t step;
  rn_status_t status;
} blocked_t;
static void* blocked_main(void* arg) {
  blocked_t* blocked = arg;
  blocked->status = rt_run_in(blocked->rt->session, &blocked->step);
  return NULL;
}
RT_TEST(loops, cancellation_and_deadline_end_all_parts) {
  rt_t rt = devices_begin(2);
  rn_edge_t x = rt_placeholder(&rt, "x");
  on(rt.s, "/cpu:0");
  rt_loop_t loop = {.frame = "w",
                    .count = 1,
                    .start = {x},
                    .cond = first_below,
                    .body = troubled_body,
                    .arg = "TestBlock"};
  rt_loop(rt.s, &loop);
  on(rt.s, NULL);
  rt_session(&rt);
  rn_tensor_t fed = rt_scalar(1);
  for (int turn = 0; turn < 3; ++turn) {
    rn_cancel_t cancel;
    rn_cancel_init(&cancel);
    blocked_t blocked = {.rt = &rt};
    rt_feed(&blocked.step, x, &fed);
    rt_fetch(&blocked.step, loop.exits[0]);
    blocked.step.options.cancel = turn == 0 ? &cancel : NULL;
    blocked.step.options.timeout_ms = turn == 1 ? 100 : 0;
    int before = rt_blocked;
    pthread_t thread;
    pthread_create(&thread, NULL, blocked_main, &blocked);
    while (rt_blocked == before) usleep(1000);
    if (turn == 0) rn_cancel(&cancel);
    if (turn == 2) OK(rn_session_close(rt.session));
    pthread_join(thread, NULL);
    if (turn == 1)
      FAILS_WITH(blocked.status, DEADLINE_EXCEEDED, "");
    else
      FAILS_WITH(blocked.status, CANCELLED, "");
    rn_cancel_destroy(&cancel);
  }
  rn_tensor_clear(&fed);
  rt_end(&rt);
}

// A loop that no condition governs cannot be shared.
RT_TEST(loops, without_a_condition) {
  rt_t rt = devices_begin(2);
  rn_edge_t x = rt_placeholder(&rt, "x");
  on(rt.s, "/cpu:0");
  rn_edge_t inside = rn_Neg(rt.s, invariant(rt.s, "bare", x));
  on(rt.s, "/cpu:1");
  rn_edge_t end = rn_Exit(rt.s, rn_Neg(rt.s, inside));
  on(rt.s, NULL);
  float out;
  FAILS_WITH(run_once(&rt, x, 1, end, &out), INVALID_ARGUMENT,
             "A cross-device loop must have a pivot predicate: bare");
  rt_end(&rt);
}
