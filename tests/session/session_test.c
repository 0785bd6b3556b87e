// Sessions: many threads, many signatures, growing graphs, closing, kernels with state.
#include "util.h"

typedef struct client_t {
  rt_t* rt;
  rn_edge_t* fetches;  // chosen by number
  int fetch_count;
  rn_edge_t feed;
  int number, turns;
  int failures;
  pthread_t thread;
} client_t;

// Fetch k of a graph where fetch k is x * 2 + k.
static void* client_main(void* arg) {
  client_t* client = arg;
  for (int turn = 0; turn < client->turns; ++turn) {
    int k = (client->number + turn) % client->fetch_count;
    float x = (float)(turn % 100);
    rn_tensor_t fed = rt_scalar(x);
    rt_step_t step = {0};
    rt_feed(&step, client->feed, &fed);
    rt_fetch(&step, client->fetches[k]);
    rn_status_t status = rt_run_in(client->rt->session, &step);
    if (!rn_ok(status) || *RN_DATA(&step.out[0], float) != x * 2 + (float)k) client->failures++;
    rn_status_free(status);
    rt_clear(&step);
    rn_tensor_clear(&fed);
  }
  return NULL;
}

static void run_clients(int threads, int signatures, int turns, const char* op) {
  rt_t rt = rt_begin(threads);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t fetches[32];
  for (int k = 0; k < signatures; ++k) {
    rn_edge_t y = rn_AddV2(rt.s, x, rn_const_float(rt.s, (float)k - (op ? 1 : 0)));
    fetches[k] = rn_AddV2(rt.s, op ? rt_op(rt.s, op, y) : y, x);
  }
  rt_session(&rt);
  client_t clients[8];
  for (int c = 0; c < 8; ++c) {
    clients[c] = (client_t){.rt = &rt,
                            .fetches = fetches,
                            .fetch_count = signatures,
                            .feed = x,
                            .number = c,
                            .turns = turns};
    pthread_create(&clients[c].thread, NULL, client_main, &clients[c]);
  }
  for (int c = 0; c < 8; ++c) {
    pthread_join(clients[c].thread, NULL);
    cr_assert_eq(clients[c].failures, 0);
  }
  rt_end(&rt);
}

RT_TEST(session, eight_clients_one_signature) { run_clients(1, 1, 3000, NULL); }
RT_TEST(session, eight_clients_many_signatures) { run_clients(2, 32, 1000, NULL); }
RT_TEST(session, eight_clients_asynchronous) { run_clients(2, 4, 100, "TestAsync"); }
RT_TEST(session, eight_clients_inline) { run_clients(4, 4, 500, "TestInline"); }

// Nodes added after the session was made, and after it has run.
RT_TEST(session, growing_graph) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x"), y = x;
  rt_session(&rt);
  for (int i = 1; i <= 300; ++i) {
    y = rn_AddV2(rt.s, y, x);
    cr_assert_eq(rt_get(&rt, y, x, 1), (float)i + 1);
  }
  rt_end(&rt);
}

static void* grow_main(void* arg) {
  rt_t* rt = arg;
  rn_scope_t* s = rn_scope_child(rt->s, "grown");
  rn_edge_t y = rn_const_float(s, 1);
  for (int i = 0; i < 3000; ++i) y = rn_Neg(s, y);
  rn_scope_destroy(s);
  return NULL;
}
// One thread builds while others plan and run.
RT_TEST(session, growing_while_running) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x"), fetches[32];
  for (int k = 0; k < 32; ++k)
    fetches[k] = rn_AddV2(rt.s, rn_AddV2(rt.s, x, rn_const_float(rt.s, (float)k)), x);
  rt_session(&rt);
  client_t clients[4];
  for (int c = 0; c < 4; ++c) {
    clients[c] = (client_t){
        .rt = &rt, .fetches = fetches, .fetch_count = 32, .feed = x, .number = c * 8, .turns = 64};
    pthread_create(&clients[c].thread, NULL, client_main, &clients[c]);
  }
  grow_main(&rt);
  for (int c = 0; c < 4; ++c) {
    pthread_join(clients[c].thread, NULL);
    cr_assert_eq(clients[c].failures, 0);
  }
  rt_end(&rt);
}

// Shapes that placeholders leave open: a step for each, and more than are kept.
RT_TEST(session, many_shapes) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t y = rn_Mul(rt.s, rn_AddV2(rt.s, x, x), rn_Neg(rt.s, x));
  float values[40];
  for (int i = 0; i < 40; ++i) values[i] = (float)i;
  for (int turn = 0; turn < 3; ++turn) {
    for (int64_t count = 0; count <= 40; count += 1 + count / 8) {
      rn_tensor_t fed = rt_floats(count, values);
      rt_step_t step = {0};
      rt_feed(&step, x, &fed);
      rt_fetch(&step, y);
      OK(rt_run(&rt, &step));
      cr_assert_eq(step.out[0].count, count);
      for (int64_t i = 0; i < count; ++i)
        cr_assert_eq(RN_DATA(&step.out[0], float)[i], -2.0f * (float)(i * i));
      rt_clear(&step);
      rn_tensor_clear(&fed);
    }
  }
  rt_end(&rt);
}

typedef struct runner_t {
  rn_session_t* session;
  rt_step_t step;
  rn_status_t status;
  pthread_t thread;
} runner_t;
static void* runner_main(void* arg) {
  runner_t* runner = arg;
  runner->status = rt_run_in(runner->session, &runner->step);
  return NULL;
}

// Closing stops steps that wait, steps that loop and steps that take long.
RT_TEST(session, close_while_running) {
  rt_t rt = rt_begin(2);
  rn_edge_t x = rn_const_float(rt.s, 1);
  rn_edge_t blocked = rt_op(rt.s, "TestBlock", x), slow = x;
  for (int i = 0; i < 1000; ++i) slow = rt_op(rt.s, "TestSlow", slow);
  rt_session(&rt);
  runner_t runners[6];
  for (int i = 0; i < 6; ++i) {
    runners[i] = (runner_t){.session = rt.session};
    rt_fetch(&runners[i].step, i % 2 ? blocked : slow);
    pthread_create(&runners[i].thread, NULL, runner_main, &runners[i]);
  }
  while (rt_blocked < 3) usleep(1000);
  int64_t start = rt_now_ms();
  OK(rn_session_close(rt.session));
  cr_assert_lt(rt_now_ms() - start, 10000);
  for (int i = 0; i < 6; ++i) {
    pthread_join(runners[i].thread, NULL);
    FAILS_WITH(runners[i].status, CANCELLED, "");
  }
  FAILS_WITH(rt_try(&rt, x), CANCELLED, "Session has been closed.");
  OK(rn_session_close(rt.session));
  rt_end(&rt);
}

// Destroying right behind the last step.
RT_TEST(session, destroy_behind_steps) {
  for (int turn = 0; turn < 100; ++turn) {
    rt_t rt = rt_begin(1);
    rn_edge_t y = rt_op(rt.s, turn % 2 ? "TestInline" : "TestCount", rn_const_float(rt.s, 1));
    rt_session(&rt);
    runner_t runners[4];
    for (int i = 0; i < 4; ++i) {
      runners[i] = (runner_t){.session = rt.session};
      rt_fetch(&runners[i].step, y);
      pthread_create(&runners[i].thread, NULL, runner_main, &runners[i]);
    }
    OK(rn_session_close(rt.session));
    for (int i = 0; i < 4; ++i) {
      pthread_join(runners[i].thread, NULL);
      cr_assert(rn_ok(runners[i].status) || rn_status_code(runners[i].status) == RN_CODE_CANCELLED);
      rn_status_free(runners[i].status);
      rt_clear(&runners[i].step);
    }
    rt_end(&rt);
  }
}

// What was fetched outlives its session and its graph.
RT_TEST(session, fetches_outlive_it) {
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t c = rn_const(rt.s, RN_FLOAT, (int64_t[]){3}, 1, (float[]){1, 2, 3});
  float* zeros = calloc(10000, sizeof *zeros);
  rn_tensor_t fed = rt_floats(10000, zeros);
  rt_step_t step = {0};
  rt_feed(&step, x, &fed);
  rt_fetch(&step, rn_AddV2(rt.s, x, rn_const_float(rt.s, 1)));
  rt_fetch(&step, c);
  rt_fetch(&step, x);
  OK(rt_run(&rt, &step));
  rt_end(&rt);
  rn_tensor_clear(&fed);
  cr_assert_eq(RN_DATA(&step.out[0], float)[9999], 1);
  cr_assert_eq(RN_DATA(&step.out[1], float)[2], 3);
  cr_assert_eq(RN_DATA(&step.out[2], float)[9999], 0);
  rt_clear(&step);
  free(zeros);
}

// A node with state is one node, whatever is fetched beside it: a random generator goes on.
RT_TEST(session, stateful_kernels_are_shared) {
  rt_t rt = rt_begin(1);
  rn_edge_t shape = rn_const_int32_list(rt.s, (int32_t[]){4}, 1);
  rn_edge_t draw = rn_RandomUniform(rt.s, shape, RN_FLOAT, .seed = 1, .seed2 = 2);
  rn_edge_t other = rn_Neg(rt.s, draw), third = rn_AddV2(rt.s, draw, draw);
  rn_edge_t alone = rn_RandomUniform(rt.s, shape, RN_FLOAT, .seed = 1, .seed2 = 2);
  float expected[3][4];
  for (int turn = 0; turn < 3; ++turn) {
    rt_step_t step = {0};
    rt_fetch(&step, alone);
    OK(rt_run(&rt, &step));
    memcpy(expected[turn], step.out[0].data, sizeof expected[turn]);
    rt_clear(&step);
  }
  rn_edge_t fetches[] = {draw, other, third};
  static const float factor[] = {1, -1, 2};
  for (int turn = 0; turn < 3; ++turn) {
    rt_step_t step = {0};
    rt_fetch(&step, fetches[turn]);
    OK(rt_run(&rt, &step));
    for (int i = 0; i < 4; ++i)
      cr_assert_eq(RN_DATA(&step.out[0], float)[i], factor[turn] * expected[turn][i]);
    rt_clear(&step);
  }
  rt_end(&rt);
}

// Variables live as long as their session.
RT_TEST(session, variables) {
  rt_t rt = rt_begin(1);
  rn_edge_t v = rn_VariableV2(rt.s, NULL, 0, RN_FLOAT);
  rn_edge_t set = rn_Assign(rt.s, v, rn_const_float(rt.s, 1));
  rn_edge_t add = rn_AssignAdd(rt.s, v, rn_const_float(rt.s, 1), .use_locking = true);
  rt_do(&rt, set.node);
  for (int i = 0; i < 10; ++i) rt_do(&rt, add.node);
  cr_assert_eq(rt_get(&rt, v, RN_NO_EDGE, 0), 11);
  rn_session_t* other = NULL;
  OK(rn_session_create(rt.graph, &rt.options, rn_env_system(), rn_allocator_system(), &other));
  rt_step_t step = {0};
  rt_fetch(&step, v);
  FAILS_WITH(rt_run_in(other, &step), FAILED_PRECONDITION, "uninitialized");
  rn_session_destroy(other);
  rt_end(&rt);
}

static void* adder_main(void* arg) {
  runner_t* runner = arg;
  for (int i = 0; i < 200 && rn_ok(runner->status); ++i)
    runner->status = rt_run_in(runner->session, &runner->step);
  return NULL;
}
RT_TEST(session, locked_updates_from_many_threads) {
  rt_t rt = rt_begin(2);
  rn_edge_t v = rn_VariableV2(rt.s, NULL, 0, RN_FLOAT);
  rn_edge_t set = rn_Assign(rt.s, v, rn_const_float(rt.s, 0));
  rn_edge_t add = rn_AssignAdd(rt.s, v, rn_const_float(rt.s, 1), .use_locking = true);
  rt_do(&rt, set.node);
  runner_t runners[8];
  for (int i = 0; i < 8; ++i) {
    runners[i] = (runner_t){.session = rt.session};
    rt_target(&runners[i].step, add.node);
    pthread_create(&runners[i].thread, NULL, adder_main, &runners[i]);
  }
  for (int i = 0; i < 8; ++i) {
    pthread_join(runners[i].thread, NULL);
    OK(runners[i].status);
  }
  cr_assert_eq(rt_get(&rt, v, RN_NO_EDGE, 0), 1600);
  rt_end(&rt);
}

static int count_threads(void) {
  FILE* file = fopen("/proc/self/status", "r");
  char line[256];
  int threads = -1;
  while (file && fgets(line, sizeof line, file)) sscanf(line, "Threads: %d", &threads);
  if (file) fclose(file);
  return threads;
}
// One thread inside and one beside: no thread is started.
RT_TEST(session, one_thread_starts_none) {
  int before = count_threads();
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  float* zeros = calloc(1 << 20, sizeof *zeros);
  rn_tensor_t fed = rt_floats(1 << 20, zeros);
  rt_step_t step = {0};
  rt_feed(&step, x, &fed);
  rt_fetch(&step, rn_AddV2(rt.s, rn_Neg(rt.s, x), rn_Relu(rt.s, x)));
  OK(rt_run(&rt, &step));
  cr_assert_eq(count_threads(), before);
  rt_clear(&step);
  rn_tensor_clear(&fed);
  free(zeros);
  rt_end(&rt);
}

RT_TEST(session, targets_and_nothing) {
  rt_t rt = rt_begin(1);
  rt_step_t nothing = {0};
  OK(rt_run(&rt, &nothing));
  rn_edge_t x = rn_const_float(rt.s, 1);
  rt_do(&rt, x.node);
  rt_do(&rt, rt_op(rt.s, "TestCount", x).node);
  cr_assert_eq(rt_count, 1);
  rt_step_t bad = {0};
  rt_target(&bad, NULL);
  FAILS_WITH(rt_run(&rt, &bad), INVALID_ARGUMENT, "NULL");
  rt_end(&rt);
}

// What a GraphDef may leave open can be kept in a graph, not run.
RT_TEST(session, open_attributes) {
  rt_t rt = rt_begin(1);
  rn_attr_t attrs[] = {{RN_STR("dtype"), {.kind = RN_ATTR_TYPE, .type = RN_FLOAT}},
                       {RN_STR("value"), {.kind = RN_ATTR_PLACEHOLDER, .s = RN_STR("of whom")}}};
  rn_node_spec_t spec = {
      .op = RN_STR("Const"), .name = RN_STR("open"), .attrs = attrs, .attr_count = 2};
  rn_node_t* node = NULL;
  OK(rn_graph_add(rt.graph, &spec, &node));
  FAILS_WITH(rt_try(&rt, (rn_edge_t){node, 0}), INVALID_ARGUMENT, "attr 'value'");
  FAILS_WITH(rt_try(&rt, rn_Neg(rt.s, ((rn_edge_t){node, 0}))), INVALID_ARGUMENT, "{{node open}}");
  rt_end(&rt);
}

// References to a temporary variable may be read after it was destroyed.
RT_TEST(session, destroyed_temporary) {
  rt_t rt = rt_begin(1);
  rn_op_begin(rt.s, "TemporaryVariable");
  rn_op_attr_type(rt.s, "dtype", RN_FLOAT);
  rn_op_attr_shape(rt.s, "shape", NULL, 0);
  rn_op_attr_string(rt.s, "var_name", "v");
  rn_edge_t variable = {rn_op_finish(rt.s), 0};
  rn_op_begin(rt.s, "DestroyTemporaryVariable");
  rn_op_input(rt.s, variable);
  rn_op_attr_string(rt.s, "var_name", "v");
  rn_edge_t last = {rn_op_finish(rt.s), 0};
  rt_step_t step = {0};
  rt_fetch(&step, variable);
  rt_fetch(&step, last);
  FAILS_WITH(rt_run(&rt, &step), FAILED_PRECONDITION, "uninitialized value v");
  cr_assert_eq(rt_get(&rt, last, RN_NO_EDGE, 0), 0);
  rt_end(&rt);
}

RT_TEST(session, timeouts_beyond_reason) {
  rt_t rt = rt_begin(1);
  rt_step_t step = {.options = {.timeout_ms = INT64_MAX}};
  rt_fetch(&step, rt_op(rt.s, "TestInline", rn_const_float(rt.s, 1)));
  OK(rt_run(&rt, &step));
  rt_clear(&step);
  rt_end(&rt);
}

static rn_node_t* assign(rn_scope_t* s, rn_edge_t variable, rn_edge_t value, bool validates) {
  rn_op_begin(s, "Assign");
  rn_op_input(s, variable);
  rn_op_input(s, value);
  rn_op_attr_bool(s, "validate_shape", validates);
  return rn_op_finish(s);
}

// As in stock, an Assign that does not validate shapes may change that of its variable, and steps
// that were planned before read the new one.
RT_TEST(session, variables_of_changing_shape) {
  rt_t rt = rt_begin(1);
  static const int64_t three[] = {3};
  rn_op_begin(rt.s, "VariableV2");
  rn_op_attr_type(rt.s, "dtype", RN_FLOAT);
  rn_op_attr_shape(rt.s, "shape", three, 1);
  rn_edge_t v = {rn_op_finish(rt.s), 0}, zero = rn_const_int32(rt.s, 0);
  rn_edge_t sizes[2] = {rn_ExpandDims(rt.s, rn_const_int32(rt.s, 3), zero),
                        rn_ExpandDims(rt.s, rn_const_int32(rt.s, 5), zero)};
  rn_node_t* assigns[2];
  for (int i = 0; i < 2; ++i)
    assigns[i] = assign(rt.s, v, rn_Fill(rt.s, sizes[i], rn_const_float(rt.s, 2)), i == 0);
  rn_edge_t x = rn_Mul(rt.s, rn_AddV2(rt.s, v, rn_const_float(rt.s, 1)), v);
  rn_edge_t sum = rn_Sum(rt.s, rn_Sub(rt.s, x, v), zero);
  for (int turn = 0; turn < 2; ++turn) {
    rt_do(&rt, assigns[turn]);
    cr_assert_eq(rt_get(&rt, sum, (rn_edge_t){0}, 0), turn ? 20 : 12);
  }
  rt_end(&rt);
}
