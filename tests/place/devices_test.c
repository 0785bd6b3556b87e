// Graphs on the CPU and several null devices: values, control edges, host arguments, dead values,
// errors, and values that cannot leave their device.
#include "steps.h"

static rt_t devices_begin(int nulls) {
  rt_t rt = rt_begin(2);
  rt.options.null_devices = nulls;
  return rt;
}
static void on(rt_t* rt, const char* device) { rn_scope_set_device(rt->s, device); }

RT_TEST(devices, values_cross) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = devices_begin(3);
    rt.options.optimize = optimize;
    rn_edge_t x = rt_placeholder(&rt, "x");
    on(&rt, "/device:NULL:0");
    rn_edge_t a = rn_AddV2(rt.s, x, rn_const_float(rt.s, 1));
    on(&rt, "/device:NULL:1");
    rn_edge_t b = rn_Mul(rt.s, a, a);
    on(&rt, "/device:NULL:2");
    rn_edge_t c = rn_Sub(rt.s, b, a);
    on(&rt, "/cpu:0");
    rn_edge_t d = rn_Neg(rt.s, rn_AddV2(rt.s, c, b));
    on(&rt, NULL);
    for (int turn = 0; turn < 5; ++turn) {
      float y = (float)turn + 1;
      cr_assert_eq(get(&rt, x, (float)turn, d), -(y * y - y + y * y));
      cr_assert_eq(get(&rt, x, (float)turn, b), y * y);  // fetched from a device
      cr_assert_eq(get(&rt, a, y, c), y * y - y);        // fed to one
    }
    rt_end(&rt);
  }
}

// A constant that folding made for a device.
RT_TEST(devices, folded_constants) {
  rt_t rt = devices_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  on(&rt, "/device:NULL:0");
  rn_edge_t five = rn_AddV2(rt.s, rn_const_float(rt.s, 2), rn_const_float(rt.s, 3));
  rn_edge_t y = rn_Mul(rt.s, five, x);
  cr_assert_eq(get(&rt, x, 2, y), 10);
  cr_assert_eq(get(&rt, RN_NO_EDGE, 0, five), 5);
  rt_end(&rt);
}

// Shapes are host values on any device.
RT_TEST(devices, host_arguments) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = devices_begin(2);
    rt.options.optimize = optimize;
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t wanted = rn_Placeholder(rt.s, RN_INT32);
    on(&rt, "/device:NULL:0");
    rn_edge_t y = rn_Reshape(rt.s, rn_Neg(rt.s, x), wanted);
    rn_edge_t shape = rn_Shape(rt.s, y);
    rn_edge_t z = rn_Reshape(rt.s, x, shape);  // a host value that stays on the device's side
    on(&rt, "/device:NULL:1");
    rn_edge_t sum = rn_AddV2(rt.s, y, z);
    on(&rt, NULL);
    rn_tensor_t fed = rt_floats(6, (float[]){1, 2, 3, 4, 5, 6}), dims;
    OK(rn_tensor_create(rn_allocator_system(), RN_INT32, (rn_shape_t){1, (int64_t[]){2}}, &dims));
    RN_DATA(&dims, int32_t)[0] = 2;
    RN_DATA(&dims, int32_t)[1] = 3;
    rt_step_t step = {.options = {.timeout_ms = 20000}};
    rt_feed(&step, x, &fed);
    rt_feed(&step, wanted, &dims);
    rt_fetch(&step, y);
    rt_fetch(&step, shape);
    rt_fetch(&step, sum);
    for (int turn = 0; turn < 3; ++turn) {
      OK(rt_run(&rt, &step));
      cr_assert_eq(step.out[0].rank, 2);
      cr_assert_eq(RN_DATA(&step.out[0], float)[5], -6);
      cr_assert_eq(RN_DATA(&step.out[1], int32_t)[1], 3);
      for (int i = 0; i < 6; ++i) cr_assert_eq(RN_DATA(&step.out[2], float)[i], 0);
      rt_clear(&step);
    }
    rn_tensor_clear(&fed);
    rn_tensor_clear(&dims);
    rt_end(&rt);
  }
}

// A control edge across devices orders what it must.
RT_TEST(devices, control_edges) {
  rt_t rt = devices_begin(2);
  rn_edge_t x = rt_placeholder(&rt, "x");
  on(&rt, "/cpu:0");
  rn_edge_t first = rt_op(rt.s, "TestCount", rt_op(rt.s, "TestSlow", x));
  on(&rt, "/device:NULL:0");
  rn_scope_add_control(rt.s, first.node);
  rn_edge_t second = rn_Neg(rt.s, x);
  rn_scope_clear_controls(rt.s);
  rn_scope_add_control(rt.s, second.node);
  on(&rt, "/device:NULL:1");
  rn_edge_t third = rn_Neg(rt.s, rn_const_float(rt.s, 3));
  rn_scope_clear_controls(rt.s);
  on(&rt, NULL);
  cr_assert_eq(get(&rt, x, 2, second), -2);
  cr_assert_eq(rt_count, 1);
  cr_assert_eq(get(&rt, x, 2, third), -3);
  cr_assert_eq(rt_count, 2);
  rt_end(&rt);
}

// Conditionals over devices: the way not taken is dead on the other side as well, for values and
// for control edges.
RT_TEST(devices, dead_values) {
  for (int optimize = 0; optimize < 2; ++optimize) {
    rt_t rt = devices_begin(2);
    rt.options.optimize = optimize;
    rn_edge_t x = rt_placeholder(&rt, "x");
    rn_edge_t p = rn_Placeholder(rt.s, RN_BOOL);
    on(&rt, "/device:NULL:0");
    rn_Switch_out_t way = rn_Switch(rt.s, x, p);
    on(&rt, "/device:NULL:1");
    rn_edge_t yes = rn_Neg(rt.s, way.output_true);
    on(&rt, "/cpu:0");
    rn_edge_t no = rn_AddV2(rt.s, way.output_false, way.output_false);
    rn_Merge_out_t merged = rn_Merge(rt.s, ((rn_edge_t[]){no, yes}), 2);
    on(&rt, "/device:NULL:1");
    rn_Merge_out_t there = rn_Merge(rt.s, ((rn_edge_t[]){no, yes}), 2);
    rn_edge_t after = rn_Neg(rt.s, there.output);
    // Counts on the CPU only if the true way is alive on the device.
    on(&rt, "/cpu:0");
    rn_scope_add_control(rt.s, yes.node);
    rn_edge_t counted = rt_op(rt.s, "TestCount", x);
    rn_scope_clear_controls(rt.s);
    on(&rt, NULL);
    for (int turn = 0; turn < 8; ++turn) {
      int is_true = turn % 2;
      rt_count = 0;
      rn_tensor_t fed = rt_scalar(3), which = rt_bool(is_true);
      rt_step_t step = {.options = {.timeout_ms = 20000}};
      rt_feed(&step, x, &fed);
      rt_feed(&step, p, &which);
      rt_fetch(&step, merged.output);
      rt_fetch(&step, merged.value_index);
      rt_fetch(&step, after);
      rt_fetch(&step, there.value_index);
      rt_target(&step, counted.node);
      OK(rt_run(&rt, &step));
      cr_assert_eq(rt_value(&step.out[0]), is_true ? -3 : 6);
      cr_assert_eq(*RN_DATA(&step.out[1], int32_t), is_true);
      cr_assert_eq(rt_value(&step.out[2]), is_true ? 3 : -6);
      cr_assert_eq(*RN_DATA(&step.out[3], int32_t), is_true);
      cr_assert_eq(rt_count, is_true);
      rt_clear(&step);
      step.fetch_count = step.target_count = 0;
      rt_fetch(&step, is_true ? no : yes);
      FAILS_WITH(rt_run(&rt, &step), INVALID_ARGUMENT, "Retval[0] does not have value");
      rn_tensor_clear(&fed);
      rn_tensor_clear(&which);
    }
    rt_end(&rt);
  }
}

static void* dead_client(void* arg) {
  rt_t* rt = ((void**)arg)[0];
  rn_edge_t* edges = ((void**)arg)[1];
  for (int turn = 0; turn < 50; ++turn) {
    rn_tensor_t fed = rt_scalar(3), which = rt_bool(turn % 2);
    rt_step_t step = {.options = {.timeout_ms = 20000}};
    rt_feed(&step, edges[0], &fed);
    rt_feed(&step, edges[1], &which);
    rt_fetch(&step, edges[2]);
    rn_status_t status = rt_run_in(rt->session, &step);
    bool ok = rn_ok(status) && *RN_DATA(&step.out[0], float) == (turn % 2 ? -3 : 3);
    if (!ok) ((void**)arg)[2] = arg;
    rn_status_free(status);
    rt_clear(&step);
    rn_tensor_clear(&fed);
    rn_tensor_clear(&which);
  }
  return NULL;
}
// Many steps at once: states of the parts are mixed, keys must not be.
RT_TEST(devices, concurrent_conditionals) {
  rt_t rt = devices_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t p = rn_Placeholder(rt.s, RN_BOOL);
  rn_Switch_out_t way = rn_Switch(rt.s, x, p);
  on(&rt, "/device:NULL:0");
  rn_edge_t yes = rn_Neg(rt.s, way.output_true);
  on(&rt, NULL);
  rn_edge_t edges[3] = {x, p, rn_Merge(rt.s, ((rn_edge_t[]){way.output_false, yes}), 2).output};
  rt_session(&rt);
  pthread_t threads[6];
  void* args[6][3];
  for (int i = 0; i < 6; ++i) {
    memcpy(args[i], (void*[]){&rt, edges, NULL}, sizeof args[i]);
    pthread_create(&threads[i], NULL, dead_client, args[i]);
  }
  for (int i = 0; i < 6; ++i) {
    pthread_join(threads[i], NULL);
    cr_assert_null(args[i][2]);
  }
  rt_end(&rt);
}

// A loop on one device beside values on another, and one whose body is on another device.
static rn_edge_t below(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rt_const_at(s, values[0], 10));
}
static void add_one(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  if (arg) rn_scope_set_device(s, arg);
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  rn_scope_set_device(s, NULL);
}
RT_TEST(devices, loops) {
  rt_t rt = devices_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  on(&rt, "/device:NULL:0");
  rn_edge_t start = rn_Neg(rt.s, x);
  on(&rt, NULL);
  rt_loop_t loop = {.frame = "w", .count = 1, .start = {start}, .cond = below, .body = add_one};
  rt_loop(rt.s, &loop);
  on(&rt, "/device:NULL:0");
  rn_edge_t end = rn_Neg(rt.s, loop.exits[0]);
  on(&rt, NULL);
  for (int turn = 0; turn < 3; ++turn) cr_assert_eq(get(&rt, x, (float)turn, end), -10);
  rt_loop_t cut = {.frame = "v",
                   .count = 1,
                   .start = {start},
                   .cond = below,
                   .body = add_one,
                   .arg = "/device:NULL:0"};
  rt_loop(rt.s, &cut);
  for (int turn = 0; turn < 3; ++turn) cr_assert_eq(get(&rt, x, (float)turn, cut.exits[0]), 10);
  rt_end(&rt);
}

// An error on a device, and one on the CPU while a device waits for it: the step ends, the next
// works.
RT_TEST(devices, errors) {
  rt_t rt = devices_begin(2);
  rn_edge_t x = rt_placeholder(&rt, "x"), y = rt_placeholder(&rt, "y");
  on(&rt, "/device:NULL:0");
  rn_scope_name_next(rt.s, "product");
  rn_edge_t product = rn_MatMul(rt.s, x, y);
  on(&rt, "/device:NULL:1");
  rn_edge_t next = rn_Neg(rt.s, product);
  on(&rt, "/cpu:0");
  rn_edge_t bad = rt_op(rt.s, "TestFail", next);
  on(&rt, "/device:NULL:0");
  rn_edge_t last = rn_Neg(rt.s, bad);
  on(&rt, NULL);
  rn_tensor_t vector = rt_floats(2, (float[]){1, 2}), matrix;
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){2, (int64_t[]){1, 1}},
                      &matrix));
  *RN_DATA(&matrix, float) = 3;
  for (int turn = 0; turn < 4; ++turn) {
    rt_step_t step = {.options = {.timeout_ms = 20000}};
    rt_feed(&step, x, turn == 1 ? &vector : &matrix);
    rt_feed(&step, y, &matrix);
    rt_fetch(&step, last);
    rt_fails = turn == 2;
    rn_status_t status = rt_run(&rt, &step);
    if (turn == 1)
      FAILS_WITH(status, INVALID_ARGUMENT, "{{node product}}");
    else if (turn == 2)
      FAILS_WITH(status, INTERNAL, "boom\n\t [[{{node TestFail}}]]");
    else
      OK(status);
    rt_clear(&step);
  }
  rn_tensor_clear(&vector);
  rn_tensor_clear(&matrix);
  rt_end(&rt);
}

typedef struct waiting_t {
  rn_session_t* session;
  rt_step_t step;
  rn_status_t status;
} waiting_t;
static void* waiting_main(void* arg) {
  waiting_t* waiting = arg;
  waiting->status = rt_run_in(waiting->session, &waiting->step);
  return NULL;
}
// A device that waits for a CPU that waits for ever: the deadline and closing end both.
RT_TEST(devices, blocked_steps_end) {
  rt_t rt = devices_begin(2);
  rn_edge_t blocked = rt_op(rt.s, "TestBlock", rn_const_float(rt.s, 1));
  on(&rt, "/device:NULL:0");
  rn_edge_t a = rn_Neg(rt.s, blocked);
  on(&rt, "/device:NULL:1");
  rn_edge_t b = rn_Neg(rt.s, a);
  rt_step_t step = {.options = {.timeout_ms = 50}};
  rt_fetch(&step, b);
  FAILS_WITH(rt_run(&rt, &step), DEADLINE_EXCEEDED, "");
  rn_cancel_t cancel;
  rn_cancel_init(&cancel);
  waiting_t waiting[2] = {{.session = rt.session, .step = {.options = {.cancel = &cancel}}},
                          {.session = rt.session}};
  pthread_t threads[2];
  for (int i = 0; i < 2; ++i) {
    rt_fetch(&waiting[i].step, b);
    pthread_create(&threads[i], NULL, waiting_main, &waiting[i]);
  }
  while (rt_blocked < 2) usleep(1000);
  rn_cancel(&cancel);
  pthread_join(threads[0], NULL);
  FAILS_WITH(waiting[0].status, CANCELLED, "");
  OK(rn_session_close(rt.session));
  pthread_join(threads[1], NULL);
  FAILS_WITH(waiting[1].status, CANCELLED, "");
  rn_cancel_destroy(&cancel);
  rt_end(&rt);
}

// Many readers share one transfer; many values cross.
RT_TEST(devices, many_edges) {
  rt_t rt = devices_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t many[300];
  on(&rt, "/device:NULL:0");
  for (int i = 0; i < 300; ++i) many[i] = rn_AddV2(rt.s, x, rn_const_float(rt.s, (float)(i % 10)));
  on(&rt, NULL);
  rn_edge_t sum = rn_AddN(rt.s, many, 300);
  for (int turn = 0; turn < 3; ++turn) cr_assert_eq(get(&rt, x, 1, sum), 300 + 30 * 45);
  rt_end(&rt);
}

// Waits for TestCount to run, on whatever thread; fails after a while.
static rn_status_t meet_compute(rn_kernel_ctx_t* ctx) {
  for (int i = 0; i < 20000 && !rt_count; ++i) usleep(500);
  return rt_count ? rt_pass(ctx, 0) : rn_internal("nobody came");
}

// A value is sent as soon as it is there, and the other device begins with it while the first one
// still works.
RT_TEST(devices, parts_overlap) {
  static const rn_op_def_t op = RT_OP("TestMeet", RN_OP_STATEFUL);
  static const rn_kernel_def_t kernel = {
      .op = "TestMeet", .device = "CPU", .compute = meet_compute};
  OK(rn_op_register(&op));
  OK(rn_kernel_register(&kernel));
  rt_t rt = rt_begin(2);
  rt.options.cpu_devices = 2;
  rn_edge_t x = rn_const_float(rt.s, 3);
  rn_scope_set_device(rt.s, "/cpu:0");
  rn_edge_t first = rt_op(rt.s, "TestFail", x), here = rt_op(rt.s, "TestMeet", first);
  rn_scope_set_device(rt.s, "/cpu:1");
  rn_edge_t there = rt_op(rt.s, "TestCount", first);
  for (int i = 0; i < 20; ++i) {
    rt_step_t step = {.options = {.timeout_ms = TIMEOUT_MS}};
    rt_count = 0;
    rt_fetch(&step, here);
    rt_fetch(&step, there);
    OK(rt_run(&rt, &step));
    cr_assert_eq(rt_value(&step.out[0]), 3);
    cr_assert_eq(rt_value(&step.out[1]), 3);
    rt_clear(&step);
  }
  rt_end(&rt);
}
