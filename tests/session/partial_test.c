// Partial runs: one step in several calls; every node runs once.
#include "util.h"

typedef struct part_t {
  rt_t rt;
  rn_edge_t a, b, sum, twice, product;
} part_t;
static part_t part_begin(void) {
  part_t p = {.rt = rt_begin(1)};
  p.a = rt_placeholder(&p.rt, "a");
  p.b = rt_placeholder(&p.rt, "b");
  p.sum = rt_op(p.rt.s, "TestCount", rn_AddV2(p.rt.s, p.a, rn_const_float(p.rt.s, 1)));
  p.twice = rn_AddV2(p.rt.s, p.sum, p.sum);
  p.product = rn_Mul(p.rt.s, p.twice, p.b);
  return p;
}
static rn_partial_run_t* set_up(part_t* p) {
  rt_step_t setup = {0};
  rt_feed(&setup, p->a, NULL);
  rt_feed(&setup, p->b, NULL);
  rt_fetch(&setup, p->sum);
  rt_fetch(&setup, p->product);
  rt_target(&setup, p->twice.node);
  rn_signature_t signature = rt_signature(&setup);
  rn_partial_run_t* run = NULL;
  OK(rn_session_partial_setup(rt_session(&p->rt), &signature, &run));
  return run;
}
static rn_status_t call(part_t* p, rn_partial_run_t* run, rn_edge_t feed, float value,
                        rn_edge_t fetch, float* out) {
  rt_step_t step = {0};
  rn_tensor_t fed = rt_scalar(value);
  if (feed.node) rt_feed(&step, feed, &fed);
  if (fetch.node) rt_fetch(&step, fetch);
  rn_signature_t signature = rt_signature(&step);
  rn_status_t status =
      rn_session_partial_run(p->rt.session, run, &signature, step.values, step.out);
  if (rn_ok(status) && fetch.node) *out = rt_value(&step.out[0]);
  if (!rn_ok(status)) cr_assert_not(rn_tensor_is_set(&step.out[0]));
  rt_clear(&step);
  rn_tensor_clear(&fed);
  return status;
}

RT_TEST(partial, in_two_calls) {
  part_t p = part_begin();
  for (int turn = 1; turn <= 3; ++turn) {
    rn_partial_run_t* run = set_up(&p);
    float value = 0;
    OK(call(&p, run, p.a, 2, p.sum, &value));
    cr_assert_eq(value, 3);
    OK(call(&p, run, p.b, 5, p.product, &value));
    cr_assert_eq(value, 30);
    cr_assert_eq(rt_count, turn);
    rn_partial_run_destroy(run);
  }
  rt_end(&p.rt);
}

RT_TEST(partial, mistakes) {
  part_t p = part_begin();
  rn_partial_run_t* run = set_up(&p);
  float value = 0;
  FAILS_WITH(call(&p, run, RN_NO_EDGE, 0, p.sum, &value), INVALID_ARGUMENT, "TestCount:0");
  FAILS_WITH(call(&p, run, p.a, 1, p.product, &value), INVALID_ARGUMENT, "Mul:0");
  FAILS_WITH(call(&p, run, p.sum, 1, p.product, &value), INVALID_ARGUMENT, "was not specified");
  FAILS_WITH(call(&p, run, p.a, 1, p.twice, &value), INVALID_ARGUMENT, "was not specified");
  OK(call(&p, run, p.a, 1, p.sum, &value));
  FAILS_WITH(call(&p, run, p.a, 1, RN_NO_EDGE, &value), INVALID_ARGUMENT, "already been fed");
  FAILS_WITH(call(&p, run, RN_NO_EDGE, 0, p.sum, &value), INVALID_ARGUMENT, "already been fetched");
  // A node of later, which the run cannot know.
  rn_edge_t late = rn_Neg(p.rt.s, p.a);
  FAILS_WITH(call(&p, run, RN_NO_EDGE, 0, late, &value), INVALID_ARGUMENT, "was not specified");
  rt_step_t step = {0};
  rt_target(&step, late.node);
  rn_signature_t signature = rt_signature(&step);
  FAILS_WITH(rn_session_partial_run(p.rt.session, run, &signature, NULL, NULL), INVALID_ARGUMENT,
             "was not specified");
  OK(call(&p, run, p.b, 2, p.product, &value));
  cr_assert_eq(value, 8);
  rn_partial_run_destroy(run);
  rn_partial_run_destroy(NULL);
  rt_end(&p.rt);
}

// A call that fails leaves everything to be done again.
RT_TEST(partial, failed_call_can_be_repeated) {
  rt_t rt = rt_begin(1);
  rn_edge_t a = rt_placeholder(&rt, "a"), y = rt_op(rt.s, "TestFail", a), z = rn_Neg(rt.s, y);
  part_t p = {.rt = rt};
  rt_step_t setup = {0};
  rt_feed(&setup, a, NULL);
  rt_fetch(&setup, y);
  rt_fetch(&setup, z);
  rn_signature_t signature = rt_signature(&setup);
  rn_partial_run_t* run = NULL;
  OK(rn_session_partial_setup(rt_session(&p.rt), &signature, &run));
  float value = 0;
  rt_fails = true;
  FAILS_WITH(call(&p, run, a, 4, y, &value), INTERNAL, "boom");
  rt_fails = false;
  OK(call(&p, run, a, 5, y, &value));
  cr_assert_eq(value, 5);
  OK(call(&p, run, RN_NO_EDGE, 0, z, &value));
  cr_assert_eq(value, -5);
  rn_partial_run_destroy(run);
  rt_end(&p.rt);
}

RT_TEST(partial, closed_session) {
  part_t p = part_begin();
  rn_partial_run_t* run = set_up(&p);
  OK(rn_session_close(p.rt.session));
  float value = 0;
  FAILS_WITH(call(&p, run, p.a, 2, p.sum, &value), CANCELLED, "Session has been closed.");
  rn_partial_run_destroy(run);
  rt_end(&p.rt);
}
