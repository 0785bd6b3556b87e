// Sessions over a GPU, emulated here: where nodes go, values that cross, variables, loops.
#include "util.h"

static rt_t gpu_begin(void) { return rt_begin(1); }
static void on(rt_t* rt, const char* device) { rn_scope_set_device(rt->s, device); }

RT_TEST(gpu, is_listed) {
  rt_t rt = gpu_begin();
  rn_session_t* session = rt_session(&rt);
  cr_assert_eq(rn_session_device_count(session), 2);
  const rn_device_t* gpu = rn_session_device(session, 1);
  cr_assert_str_eq(gpu->type, "GPU");
  cr_assert_str_eq(gpu->name.data, "/job:localhost/replica:0/task:0/device:GPU:0");
  cr_assert_gt(gpu->memory_limit, 0);
  rt_end(&rt);
}

RT_TEST(gpu, can_be_left_out) {
  rt_t rt = gpu_begin();
  rt.options.gpu.max_count = 0;
  cr_assert_eq(rn_session_device_count(rt_session(&rt)), 1);
  rt_end(&rt);
}

RT_TEST(gpu, feeds_computes_and_fetches) {
  rt_t rt = gpu_begin();
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_edge_t y = rn_Mul(rt.s, rn_AddV2(rt.s, x, rn_const_float(rt.s, 1)), x);
  for (int turn = 0; turn < 4; ++turn) {
    float v = (float)turn;
    cr_assert_eq(rt_get(&rt, y, x, v), (v + 1) * v);
  }
  rt_end(&rt);
}

RT_TEST(gpu, values_cross) {
  rt_t rt = gpu_begin();
  rn_edge_t x = rt_placeholder(&rt, "x");
  on(&rt, "/gpu:0");
  rn_edge_t a = rn_AddV2(rt.s, x, rn_const_float(rt.s, 1));
  on(&rt, "/cpu:0");
  rn_edge_t b = rn_Mul(rt.s, a, a);
  on(&rt, "/gpu:0");
  rn_edge_t c = rn_Sub(rt.s, b, a);
  on(&rt, NULL);
  for (int turn = 0; turn < 4; ++turn) {
    float y = (float)turn + 1;
    cr_assert_eq(rt_get(&rt, c, x, (float)turn), y * y - y);
    cr_assert_eq(rt_get(&rt, b, x, (float)turn), y * y);
  }
  rt_end(&rt);
}

static rn_edge_t count_cond(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  rn_scope_add_control(s, values[0].node);
  rn_edge_t limit = rn_const_int32(s, 5);
  rn_scope_clear_controls(s);
  return rn_Less(s, values[0], limit);
}
static void count_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  rn_scope_add_control(s, values[0].node);
  rn_edge_t one = rn_const_int32(s, 1);
  rn_scope_clear_controls(s);
  next[0] = rn_AddV2(s, values[0], one);
}

// A loop keeps what it is entered with. A feed without a buffer of its own is copied, on the host:
// a GPU leaves int32 there.
RT_TEST(gpu, loops_keep_borrowed_values) {
  rt_t rt = gpu_begin();
  rn_scope_name_next(rt.s, "x");
  rn_edge_t x = rn_Placeholder(rt.s, RN_INT32);
  on(&rt, "/gpu:0");
  rt_loop_t loop = {.frame = "w", .count = 1, .start = {x}, .cond = count_cond, .body = count_body};
  rt_loop(rt.s, &loop);
  rn_edge_t y = rn_Cast(rt.s, loop.exits[0], RN_FLOAT);
  on(&rt, NULL);
  for (int32_t start = 0; start < 4; ++start) {
    rt_step_t step = {0};
    rn_tensor_t fed;
    OK(rn_tensor_init(&fed, RN_INT32, RN_SHAPE_SCALAR));
    fed.data = &start;
    rt_feed(&step, x, &fed);
    rt_fetch(&step, loop.exits[0]);
    rt_fetch(&step, y);
    OK(rt_run(&rt, &step));
    cr_assert_eq(*RN_DATA(&step.out[0], int32_t), 5);
    cr_assert_eq(rt_value(&step.out[1]), 5);
    rt_clear(&step);
  }
  rt_end(&rt);
}
