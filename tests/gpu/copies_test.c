// Values that cross between the client and a GPU: small ones are part of the recorded step, large
// ones go over streams of their own, and nothing overtakes what it depends on.
#include "device/part.h"
#include "emulated_driver.h"
#include "util.h"

static rn_tensor_t bytes_of(int64_t count, int seed) {
  rn_tensor_t tensor;
  OK(rn_tensor_create(rn_allocator_system(), RN_UINT8, (rn_shape_t){1, &count}, &tensor));
  for (int64_t i = 0; i < count; ++i)
    RN_DATA(&tensor, uint8_t)[i] = (uint8_t)(i * 31 + i / 251 + seed * 7);
  return tensor;
}

static rn_tensor_t floats_of(int64_t count, float value) {
  rn_tensor_t tensor;
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, (rn_shape_t){1, &count}, &tensor));
  for (int64_t i = 0; i < count; ++i) RN_DATA(&tensor, float)[i] = value + (float)(i % 97);
  return tensor;
}

// Calls of the driver that a step makes.
typedef struct calls_t {
  uint64_t graphs, launches, in, out, pageable;
} calls_t;

static calls_t calls(void) {
  return (calls_t){rn_emulated_count("cuGraphLaunch"), rn_emulated_count("cuLaunchKernel"),
                   rn_emulated_count("cuMemcpyHtoDAsync_v2"),
                   rn_emulated_count("cuMemcpyDtoHAsync_v2"), rn_emulated_count("pageable")};
}

RT_TEST(copies, a_small_step_is_one_launch) {
  find_emulator();
  rt_t rt = rt_begin(1);
  rt.options.optimize = false;
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t y = rn_Mul(rt.s, rn_AddV2(rt.s, x, x), x), z = rn_Neg(rt.s, y);
  calls_t before = {0};
  for (int turn = 0; turn < 8; ++turn) {
    if (turn == 4) before = calls();
    rn_tensor_t fed = floats_of(784, (float)turn);
    rt_step_t step = {0};
    rt_feed(&step, x, &fed);
    rt_fetch(&step, y);
    rt_fetch(&step, z);
    OK(rt_run(&rt, &step));
    for (int64_t i = 0; i < fed.count; ++i) {
      float v = RN_DATA(&fed, float)[i];
      cr_assert_eq(RN_DATA(&step.out[0], float)[i], 2 * v * v, "step %d", turn);
      cr_assert_eq(RN_DATA(&step.out[1], float)[i], -2 * v * v, "step %d", turn);
    }
    rt_clear(&step);
    rn_tensor_clear(&fed);
  }
  calls_t after = calls();
  cr_expect_eq(after.graphs - before.graphs, 4);
  cr_expect_eq(after.launches - before.launches, 0);
  cr_expect_eq(after.in - before.in, 0);
  cr_expect_eq(after.out - before.out, 0);
  rt_end(&rt);
}

// Sizes around those at which the way changes, and more values than one kernel copies.
RT_TEST(copies, values_of_all_sizes) {
  find_emulator();
  static const int64_t sizes[] = {1,     15,    16,     17,      4096,          16 << 10, 16385,
                                  65535, 65536, 200001, 1 << 20, (9 << 20) + 3, 3};
  enum { COUNT = sizeof sizes / sizeof *sizes };
  rt_t rt = rt_begin(2);
  rn_edge_t x[COUNT], y[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    x[i] = rn_Placeholder(rt.s, RN_UINT8);
    rn_scope_set_device(rt.s, "/gpu:0");
    y[i] = i % 2 ? rn_Identity(rt.s, x[i]) : rn_Invert(rt.s, x[i]);
    rn_scope_set_device(rt.s, NULL);
  }
  for (int turn = 0; turn < 4; ++turn) {
    rt_step_t step = {0};
    rn_tensor_t fed[COUNT];
    for (int i = 0; i < COUNT; ++i) {
      fed[i] = bytes_of(sizes[i], turn + i);
      rt_feed(&step, x[i], &fed[i]);
      rt_fetch(&step, y[i]);
    }
    OK(rt_run(&rt, &step));
    for (int i = 0; i < COUNT; ++i) {
      const uint8_t *in = fed[i].data, *out = step.out[i].data, flip = i % 2 ? 0 : 0xff;
      for (int64_t k = 0; k < sizes[i]; ++k)
        cr_assert_eq(out[k], in[k] ^ flip, "step %d, value %d, byte %d", turn, i, (int)k);
      rn_tensor_clear(&fed[i]);
    }
    rt_clear(&step);
  }
  rt_end(&rt);
}

// Large values are never copied from or to memory that the driver would have to stage, whether it
// is ours or the client's.
RT_TEST(copies, large_values_are_pinned) {
  find_emulator();
  const int64_t count = 3 << 20;
  rt_t rt = rt_begin(2);
  rn_edge_t x = rt_placeholder(&rt, "x"), y = rn_AddV2(rt.s, x, x);
  rn_tensor_t fed = floats_of(count, 1);
  uint64_t before = 0;
  for (int turn = 0; turn < 5; ++turn) {
    rt_step_t step = {0};
    rt_feed(&step, x, &fed);
    rt_fetch(&step, y);
    if (turn == 1) before = rn_emulated_count("pageable");
    OK(rt_run(&rt, &step));
    for (int64_t i = 0; i < count; ++i)
      cr_assert_eq(RN_DATA(&step.out[0], float)[i], 2 * RN_DATA(&fed, float)[i]);
    rn_tensor_clear(&fed);
    fed = step.out[0];  // of the pinned memory
  }
  cr_expect_eq(rn_emulated_count("pageable"), before);
  rn_tensor_clear(&fed);
  rt_end(&rt);
}

// A fetched value lives on when its session, and so the card's memory, is gone.
RT_TEST(copies, fetched_values_outlive_the_session) {
  find_emulator();
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x"), y = rn_Neg(rt.s, x);
  rn_tensor_t fed = floats_of(1 << 20, 5);
  rt_step_t step = {0};
  rt_feed(&step, x, &fed);
  rt_fetch(&step, y);
  OK(rt_run(&rt, &step));
  rt_end(&rt);
  for (int64_t i = 0; i < fed.count; ++i)
    cr_assert_eq(RN_DATA(&step.out[0], float)[i], -RN_DATA(&fed, float)[i]);
  rt_clear(&step);
  rn_tensor_clear(&fed);
}

// Steps of several threads on one session, so that copies of one overlap with work of the others.
// With a seed, the emulated card takes the streams in any order that the events allow.
typedef struct client_t {
  rt_t* rt;
  rn_edge_t x, y, total, most;
  int number;
} client_t;

static void* client_run(void* arg) {
  const client_t* client = arg;
  for (int turn = 0; turn < 12; ++turn) {
    int64_t count = turn % 3 ? 40000 : 300;
    rn_tensor_t fed = floats_of(count, (float)(client->number * 100 + turn));
    rt_step_t step = {0};
    rt_feed(&step, client->x, &fed);
    rt_fetch(&step, client->y);
    rt_fetch(&step, client->total);
    rt_fetch(&step, client->most);  // two small fetches behind a large one are recorded
    OK(rt_run(client->rt, &step));
    double total = 0;
    for (int64_t i = 0; i < count; ++i) {
      float v = RN_DATA(&fed, float)[i];
      total += (double)v;
      cr_assert_eq(RN_DATA(&step.out[0], float)[i], 2 * v + v, "client %d, step %d, element %d",
                   client->number, turn, (int)i);
    }
    cr_assert_float_eq(rt_value(&step.out[1]), total, 1e-4 * total);
    rt_clear(&step);
    rn_tensor_clear(&fed);
  }
  return NULL;
}

static void run_clients(const char* seed) {
  setenv("RN_EMULATED_SHUFFLE", seed, 1);
  setenv("RN_EMULATED_FILL", "255", 1);
  rt_t rt = rt_begin(2);
  rt.options.optimize = false;
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t y = rn_AddV2(rt.s, rn_AddV2(rt.s, x, x), x);
  rn_edge_t total = rn_Sum(rt.s, x, rn_const_int32(rt.s, 0));
  rn_edge_t most = rn_Max(rt.s, x, rn_const_int32(rt.s, 0));
  rt_session(&rt);
  client_t clients[4];
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    clients[i] = (client_t){&rt, x, y, total, most, i};
    cr_assert_eq(pthread_create(&threads[i], NULL, client_run, &clients[i]), 0);
  }
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  rt_end(&rt);
}

RT_TEST(copies, steps_of_many_threads) { run_clients("0"); }
RT_TEST(copies, steps_of_many_threads_in_any_order) { run_clients("12"); }
RT_TEST(copies, steps_of_many_threads_in_another_order) { run_clients("77"); }

// A copy that fails ends its step with a status; the next step works.
RT_TEST(copies, a_copy_fails) {
  find_emulator();
  static const char* const names[] = {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
                                      "cuStreamWaitEvent", "cuEventRecord", "cuMemHostAlloc"};
  for (int i = 0; i < 5; ++i) {
    for (int nth = 1; nth < 6; ++nth) {
      rt_t rt = rt_begin(1);
      rn_edge_t x = rt_placeholder(&rt, "x"), y = rn_Neg(rt.s, x);
      rn_tensor_t fed = floats_of(100000, 5);
      for (int turn = 0; turn < 4; ++turn) {
        rt_step_t step = {0};
        rt_feed(&step, x, &fed);
        rt_fetch(&step, y);
        if (turn == 1) rn_emulated_fail(names[i], nth, 1);
        rn_status_t status = rt_run(&rt, &step);
        cr_assert(turn == 1 || rn_ok(status), "%s %d: %s", names[i], nth,
                  rn_status_message(status));
        if (rn_ok(status)) cr_assert_eq(RN_DATA(&step.out[0], float)[99999], -5.f - 99999 % 97);
        rn_status_free(status);
        rt_clear(&step);
        rn_emulated_heal();
      }
      rn_tensor_clear(&fed);
      rt_end(&rt);
    }
  }
}

// What clients allocate while a session uses a GPU is page-locked: it is copied in one piece.
RT_TEST(copies, memory_of_clients) {
  find_emulator();
  cr_assert_null(rn_cuda_part_transfer_memory().fn);
  rt_t rt = rt_begin(2);
  rn_edge_t x = rt_placeholder(&rt, "x"), y = rn_Neg(rt.s, x);
  rt_session(&rt);
  rn_allocator_t memory = rn_cuda_part_transfer_memory();
  cr_assert_not_null(memory.fn);
  int64_t count = 3 << 20;
  rn_tensor_t fed[2] = {floats_of(count, 1)};
  OK(rn_tensor_create(memory, RN_FLOAT, (rn_shape_t){1, &count}, &fed[1]));
  memcpy(fed[1].data, fed[0].data, rn_tensor_bytes(&fed[0]));
  uint64_t copies[2];
  for (int turn = 0; turn < 4; ++turn) {
    uint64_t before = rn_emulated_count("cuMemcpyHtoDAsync_v2");
    rt_step_t step = {0};
    rt_feed(&step, x, &fed[turn % 2]);
    rt_fetch(&step, y);
    OK(rt_run(&rt, &step));
    copies[turn % 2] = rn_emulated_count("cuMemcpyHtoDAsync_v2") - before;
    cr_assert_eq(RN_DATA(&step.out[0], float)[count - 1], -RN_DATA(&fed[0], float)[count - 1]);
    rt_clear(&step);
  }
  cr_expect_eq(copies[0], 3);
  cr_expect_eq(copies[1], 1);
  rt_end(&rt);
  cr_assert_null(rn_cuda_part_transfer_memory().fn);
  cr_assert_eq(RN_DATA(&fed[1], float)[7], RN_DATA(&fed[0], float)[7]);
  for (int i = 0; i < 2; ++i) rn_tensor_clear(&fed[i]);
}
