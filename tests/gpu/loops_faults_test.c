// Steps with a loop in which a call of the driver fails, while they run as they are, are recorded
// or are replayed. The step ends with a status, nothing leaks, and the next steps are right.
#include <math.h>
#include <stdlib.h>

#include "emulated_driver.h"
#include "runnel/control_flow.h"
#include "util.h"

#define UNKNOWN 999
enum { STEPS = 5, TURNS = 6 };

static rn_edge_t below(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rn_const_int32(s, TURNS));
}

// y ← y / 2 + sin(y)
static void change(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  next[0] = rn_AddV2(s, values[0], rn_const_int32(s, 1));
  next[1] = rn_AddV2(s, rn_Mul(s, values[1], rn_const_float(s, 0.5f)), rn_Sin(s, values[1]));
}

static float changed(float y) {
  for (int i = 0; i < TURNS; ++i) y = y / 2 + sinf(y);
  return y;
}

typedef struct looped_t {
  rt_t rt;
  rn_edge_t x, y;
} looped_t;

static looped_t begin(void) {
  looped_t l = {.rt = rt_begin(1)};
  l.x = rt_placeholder(&l.rt, "x");
  rn_edge_t starts[2] = {rn_const_int32(l.rt.s, 0), l.x}, ends[2] = {RN_NO_EDGE, RN_NO_EDGE};
  rn_while(l.rt.s, below, change, NULL, starts, ends, 2);
  l.y = ends[1];
  rt_session(&l.rt);
  return l;
}

// Runs a step, which computes the right number or fails.
static rn_status_t run(looped_t* l, float value, const char* call, int nth) {
  rt_step_t step = {0};
  rn_tensor_t fed = rt_scalar(value);
  rt_feed(&step, l->x, &fed);
  rt_fetch(&step, l->y);
  rn_status_t status = rt_run(&l->rt, &step);
  if (rn_ok(status)) {
    cr_assert_float_eq(rt_value(&step.out[0]), changed(value), 1e-5, "%s, the %d-th", call, nth);
    rt_clear(&step);
  }
  rn_tensor_clear(&fed);
  return status;
}

static void sweep(const char* call) {
  bool has_failed = true;
  int failed = 0;
  for (int nth = 1; has_failed && nth < 200; nth += nth < 20 ? 1 : 7) {
    looped_t l = begin();
    has_failed = false;
    cr_assert(rn_emulated_fail(call, nth, UNKNOWN), "%s", call);
    for (int i = 0; i < STEPS; ++i) {
      rn_status_t status = run(&l, 0.2f * (float)i, call, nth);
      has_failed |= !rn_ok(status);
      failed += !rn_ok(status);
      rn_status_free(status);
    }
    rn_emulated_heal();
    for (int i = 0; i < STEPS; ++i) OK(run(&l, 0.3f * (float)i, call, nth));
    rt_end(&l.rt);
    static const char* const things[] = {"device", "allocations", "graphs"};
    for (size_t i = 0; i < sizeof things / sizeof *things; ++i)
      cr_expect_eq(rn_emulated_in_use(things[i]), 0, "%s, the %d-th: %s", call, nth, things[i]);
  }
  cr_assert_gt(failed, 0, "%s is called", call);
}

RT_TEST(loops_faults, calls_of_the_driver) {
  static const char* const calls[] = {"cuLaunchKernel",       "cuMemcpyHtoDAsync_v2",
                                      "cuMemcpyDtoHAsync_v2", "cuStreamBeginCapture_v2",
                                      "cuStreamEndCapture",   "cuGraphInstantiateWithFlags",
                                      "cuGraphLaunch",        "cuMemHostAlloc"};
  find_emulator();
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) sweep(calls[i]);
}
