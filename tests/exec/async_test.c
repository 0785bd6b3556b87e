// Asynchronous kernels: when and on which thread they complete, and what waits for them.
#include "util.h"

RT_TEST(async, chains) {
  for (int threads = 1; threads <= 4; threads += 3) {
    rt_t rt = rt_begin(threads);
    rn_edge_t x = rt_placeholder(&rt, "x"), y = x, z = x;
    for (int i = 0; i < 20; ++i) {
      y = rt_op(rt.s, i % 2 ? "TestInline" : "TestAsync", rn_Neg(rt.s, y));
      z = rn_AddV2(rt.s, rt_op(rt.s, "TestAsync", z), y);
    }
    float a = 1, b = 1;
    for (int i = 0; i < 20; ++i) {
      a = -a + 1;
      b = b + 1 + a;
    }
    for (int turn = 0; turn < 10; ++turn) {
      cr_assert_eq(rt_get(&rt, y, x, 1), a);
      cr_assert_eq(rt_get(&rt, z, x, 1), b);
    }
    rt_end(&rt);
  }
}

// What waits for an asynchronous kernel may come before the rest of the graph in the plan, and
// still reads a value of that rest. Others that are made meanwhile must not take its place.
RT_TEST(async, values_from_tasks_that_come_later) {
  for (int threads = 1; threads <= 4; threads += 3) {
    rt_t rt = rt_begin(threads);
    rt.options.optimize = false;
    rn_op_begin(rt.s, "Placeholder");
    rn_op_attr_type(rt.s, "dtype", RN_FLOAT);
    rn_op_attr_shape(rt.s, "shape", NULL, 0);
    rn_edge_t x = {rn_op_finish(rt.s), 0};
    rn_edge_t waits = rn_Neg(rt.s, rt_op(rt.s, "TestAsync", x));
    rn_edge_t early = rn_Mul(rt.s, x, rn_const_float(rt.s, 3));
    rn_edge_t y = rn_Sub(rt.s, rn_Neg(rt.s, waits), early);
    rn_edge_t other = x;
    for (int i = 0; i < 8; ++i) other = rn_Square(rt.s, rn_AddV2(rt.s, other, x));
    rn_edge_t z = rn_Sub(rt.s, other, other);
    for (int turn = 0; turn < 5; ++turn) {
      rn_tensor_t fed = rt_scalar(0.25f);
      rt_step_t step = {0};
      rt_feed(&step, x, &fed);
      rt_fetch(&step, y);
      rt_fetch(&step, z);
      OK(rt_run(&rt, &step));
      cr_assert_eq(rt_value(&step.out[0]), 0.5f, "%g", (double)rt_value(&step.out[0]));
      rt_clear(&step);
      rn_tensor_clear(&fed);
    }
    rt_end(&rt);
  }
}

// Two values that pass through queues crosswise: each chain waits for what the other puts in. They
// end only if neither is held up by a task of the other.
RT_TEST(async, chains_that_wait_for_each_other) {
  rt_t rt = rt_begin(1);
  rn_scope_t* s = rt.s;
  static const int types[] = {RN_FLOAT};
  rn_edge_t to_right = rn_FIFOQueueV2(s, types, 1), to_left = rn_FIFOQueueV2(s, types, 1);
  rn_edge_t x = rt_placeholder(&rt, "x");
  // Left: put x, then take and negate. Right: take, add one, put.
  rn_node_t* left_put = rn_QueueEnqueueV2(s, to_right, &x, 1);
  rn_edge_t left_got = rn_edge_at(rn_QueueDequeueV2(s, to_left, types, 1), 0);
  rn_edge_t left = rn_Neg(s, left_got);
  rn_edge_t right_got = rn_edge_at(rn_QueueDequeueV2(s, to_right, types, 1), 0);
  rn_edge_t right = rn_AddV2(s, right_got, rn_const_float(s, 1));
  rn_node_t* right_put = rn_QueueEnqueueV2(s, to_left, &right, 1);
  rn_edge_t sum = rn_AddV2(s, left, right);
  for (int turn = 0; turn < 20; ++turn) {
    rn_tensor_t fed = rt_scalar(4);
    rt_step_t step = {.options = {.timeout_ms = 20000}};
    rt_feed(&step, x, &fed);
    rt_fetch(&step, left);
    rt_fetch(&step, sum);
    rt_target(&step, left_put);
    rt_target(&step, right_put);
    OK(rt_run(&rt, &step));
    cr_assert_eq(rt_value(&step.out[0]), -5);
    cr_assert_eq(rt_value(&step.out[1]), 0);
    rt_clear(&step);
    rn_tensor_clear(&fed);
  }
  rt_end(&rt);
}

// A step that waits for ever ends with its deadline; the next one is as new.
RT_TEST(async, blocked_step_times_out) {
  rt_t rt = rt_begin(2);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t y = rn_Neg(rt.s, rt_op(rt.s, "TestBlock", rn_Neg(rt.s, x)));
  rn_tensor_t fed = rt_scalar(4);
  for (int turn = 0; turn < 3; ++turn) {
    rt_step_t step = {.options = {.timeout_ms = 50}};
    rt_feed(&step, x, &fed);
    rt_fetch(&step, y);
    int64_t start = rt_now_ms();
    FAILS_WITH(rt_run(&rt, &step), DEADLINE_EXCEEDED, "");
    cr_assert_geq(rt_now_ms() - start, 49);
    cr_assert_lt(rt_now_ms() - start, 20000);
  }
  rn_tensor_clear(&fed);
  rt_end(&rt);
}

// A long step of short nodes ends with its deadline, too.
RT_TEST(async, long_step_times_out) {
  for (int threads = 1; threads <= 2; ++threads) {
    rt_t rt = rt_begin(threads);
    rn_edge_t x = rt_placeholder(&rt, "x"), y = x;
    for (int i = 0; i < 500; ++i) y = rt_op(rt.s, "TestSlow", y);
    rn_tensor_t fed = rt_scalar(4);
    rt_step_t step = {.options = {.timeout_ms = 100}};
    rt_feed(&step, x, &fed);
    rt_fetch(&step, y);
    int64_t start = rt_now_ms();
    FAILS_WITH(rt_run(&rt, &step), DEADLINE_EXCEEDED, "");
    cr_assert_lt(rt_now_ms() - start, 5000);
    rn_tensor_clear(&fed);
    rt_end(&rt);
  }
}

typedef struct background_t {
  rt_t* rt;
  rt_step_t step;
  rn_status_t status;
  pthread_t thread;
} background_t;
static void* background_main(void* arg) {
  background_t* background = arg;
  background->status = rt_run_in(background->rt->session, &background->step);
  return NULL;
}

// The caller's cancellation stops its step; a step that fails leaves the caller's alone.
RT_TEST(async, cancellation) {
  rt_t rt = rt_begin(2);
  rn_edge_t x = rn_const_float(rt.s, 4);
  rn_edge_t y = rn_Neg(rt.s, rt_op(rt.s, "TestBlock", x));
  rn_edge_t bad = rt_op(rt.s, "TestFail", rt_op(rt.s, "TestInline", x));
  rn_cancel_t cancel;
  rn_cancel_init(&cancel);
  rt_fails = true;
  rt_session(&rt);
  rt_step_t failing = {.options = {.cancel = &cancel}};
  rt_fetch(&failing, bad);
  FAILS_WITH(rt_run(&rt, &failing), INTERNAL, "boom");
  cr_assert_not(rn_is_cancelled(&cancel));
  background_t background = {.rt = &rt, .step = {.options = {.cancel = &cancel}}};
  rt_fetch(&background.step, y);
  pthread_create(&background.thread, NULL, background_main, &background);
  while (rt_blocked == 0) usleep(1000);
  rn_cancel(&cancel);
  pthread_join(background.thread, NULL);
  FAILS_WITH(background.status, CANCELLED, "");
  // Cancelled before it began.
  rt_step_t late = {.options = {.cancel = &cancel}};
  rt_fetch(&late, y);
  FAILS_WITH(rt_run(&rt, &late), CANCELLED, "");
  rt_step_t plain = {.options = {.cancel = &cancel}};
  rt_fetch(&plain, rt_op(rt.s, "TestCount", x));
  FAILS_WITH(rt_run(&rt, &plain), CANCELLED, "");
  rn_cancel_destroy(&cancel);
  rt_end(&rt);
}

// A kernel that comes back long after its step was cancelled holds the step, not the process.
RT_TEST(async, completion_after_cancellation) {
  rt_t rt = rt_begin(2);
  rn_edge_t x = rn_const_float(rt.s, 4);
  rn_edge_t slow = rt_op(rt.s, "TestStub", x);
  rn_edge_t y = rn_AddV2(rt.s, slow, rt_op(rt.s, "TestFail", rt_op(rt.s, "TestAsync", x)));
  rt_fails = true;
  rt_session(&rt);
  background_t background = {.rt = &rt};
  rt_fetch(&background.step, y);
  pthread_create(&background.thread, NULL, background_main, &background);
  usleep(50000);
  rt_open = true;
  pthread_join(background.thread, NULL);
  FAILS_WITH(background.status, INTERNAL, "boom");
  rt_fails = false;
  cr_assert_eq(rt_get(&rt, y, RN_NO_EDGE, 0), 10);
  rt_end(&rt);
}

RT_TEST(async, unblocked_in_time) {
  rt_t rt = rt_begin(1);
  rn_edge_t y = rn_Neg(rt.s, rt_op(rt.s, "TestBlock", rn_const_float(rt.s, 4)));
  rt_session(&rt);
  background_t background = {.rt = &rt, .step = {.options = {.timeout_ms = 30000}}};
  rt_fetch(&background.step, y);
  pthread_create(&background.thread, NULL, background_main, &background);
  while (rt_blocked == 0) usleep(1000);
  rt_unblock();
  pthread_join(background.thread, NULL);
  OK(background.status);
  cr_assert_eq(rt_value(&background.step.out[0]), -5);
  rt_clear(&background.step);
  rt_end(&rt);
}

// A value that asynchronous and other kernels of several tasks read is given up after the last.
RT_TEST(async, shared_by_tasks) {
  rt_t rt = rt_begin(4);
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t base = rn_Neg(rt.s, x), sum = base;
  for (int i = 0; i < 12; ++i)
    sum = rn_AddV2(rt.s, sum, rn_Mul(rt.s, rt_op(rt.s, "TestAsync", base), base));
  for (int turn = 0; turn < 10; ++turn) cr_assert_eq(rt_get(&rt, sum, x, -2), 2 + 12 * 6);
  rt_end(&rt);
}
