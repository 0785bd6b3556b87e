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
