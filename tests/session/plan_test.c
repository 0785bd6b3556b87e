// Plans made in advance, threads that sessions share, and steps that use one thread only.
#include <time.h>

#include "function_util.h"
#include "session/passes.h"

static void count_report(void* self, const rn_pass_report_t* report) {
  (void)report;
  ++*(int*)self;
}

static void run_with(rt_t* rt, rn_edge_t feed, rn_edge_t fetch, int64_t count) {
  static const float zeros[64];
  rn_tensor_t fed = rt_floats(count, zeros);
  rt_step_t step = {0};
  rt_feed(&step, feed, &fed);
  rt_fetch(&step, fetch);
  OK(rt_run_in(rt->session, &step));
  cr_assert_eq(step.out[0].count, count);
  rt_clear(&step);
  rn_tensor_clear(&fed);
}

// After a plan for the declared shapes, no step is planned while its client waits; a plan for some
// shapes is for these alone.
RT_TEST(plan, in_advance) {
  int reports = 0;
  rn_pass_watch_t watch = {&reports, count_report};
  rt_t rt = rt_begin(1);
  rn_edge_t x = rt_placeholder(&rt, "x"), y = rn_AddV2(rt.s, x, rn_const_float(rt.s, 1));
  rt.options.watch = &watch;
  rt_session(&rt);
  rn_signature_t signature = {.feeds = &x, .feed_count = 1, .fetches = &y, .fetch_count = 1};
  rn_tensor_t shape;
  const rn_tensor_t* feeds[] = {&shape};
  int64_t three = 3;
  OK(rn_tensor_init(&shape, RN_FLOAT, (rn_shape_t){1, &three}));
  OK(rn_session_plan(rt.session, &signature, feeds));
  int after = reports;
  cr_assert_gt(after, 0);
  run_with(&rt, x, y, 3);
  cr_assert_eq(reports, after);
  run_with(&rt, x, y, 4);
  cr_assert_gt(reports, after);
  OK(rn_session_plan(rt.session, &signature, NULL));
  after = reports;
  for (int64_t count = 5; count < 40; ++count) run_with(&rt, x, y, count);
  OK(rn_session_plan(rt.session, &signature, NULL));
  cr_assert_eq(reports, after);
  shape.dtype = RN_INT32;
  FAILS(rn_session_plan(rt.session, &signature, feeds), INVALID_ARGUMENT);
  rt_end(&rt);
}

RT_TEST(plan, shared_pool_and_quiet_steps) {
  rn_env_t env = *rn_env_system();
  OK(rn_pool_create(rn_allocator_system(), 2, &env.pool));
  rt_t rt = rt_begin(0);
  rn_edge_t x = rt_placeholder(&rt, "x"), y = x;
  for (int i = 0; i < 20; ++i) y = rn_AddV2(rt.s, y, rn_AddV2(rt.s, x, rn_const_float(rt.s, 1)));
  rt.options.shares_pool = true;
  cr_assert(rn_scope_ok(rt.s));
  OK(rn_session_create(rt.graph, &rt.options, &env, rt.allocator, &rt.session));
  rn_signature_t signature = {.feeds = &x, .feed_count = 1, .fetches = &y, .fetch_count = 1};
  rn_tensor_t fed = rt_scalar(1), out;
  const rn_tensor_t* feeds[] = {&fed};
  rn_step_options_t quiet = {.is_quiet = true};
  for (int i = 0; i < 2; ++i) {
    OK(rn_session_run(rt.session, &signature, feeds, &out, i ? &quiet : NULL));
    cr_assert_eq(*RN_DATA(&out, float), 41);
    rn_tensor_clear(&out);
  }
  rn_tensor_clear(&fed);
  rt_end(&rt);
  rn_pool_destroy(env.pool);
}

// Processor time of this process but not of this thread, in seconds.
static double others_seconds(void) {
  struct timespec all, own;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &all);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
  return (double)(all.tv_sec - own.tv_sec) + (double)(all.tv_nsec - own.tv_nsec) * 1e-9;
}

// A product of two matrices of x, with about two billion operations.
static rn_edge_t product(rn_scope_t* s, rn_edge_t x) {
  rn_edge_t dims = rn_const_int32_list(s, (const int32_t[]){1024, 1024}, 2);
  rn_edge_t matrix = rn_Fill(s, dims, x);
  return rn_MatMul(s, matrix, matrix);
}

static void check_alone(rt_t* rt, rn_edge_t x, rn_edge_t y, const rn_env_t* env) {
  rt->options.shares_pool = true;
  rt->options.calls = (rn_calls_options_t){.keeps_calls = true};
  cr_assert(rn_scope_ok(rt->s));
  OK(rn_session_create(rt->graph, &rt->options, env, rt->allocator, &rt->session));
  rn_signature_t signature = {.feeds = &x, .feed_count = 1, .fetches = &y, .fetch_count = 1};
  rn_tensor_t fed = rt_scalar(1), out;
  const rn_tensor_t* feeds[] = {&fed};
  rn_step_options_t quiet = {.is_quiet = true};
  double before = others_seconds();
  OK(rn_session_plan(rt->session, &signature, feeds));
  OK(rn_session_run(rt->session, &signature, feeds, &out, &quiet));
  cr_assert_lt(others_seconds() - before, 0.004);
  cr_assert_eq(*RN_DATA(&out, float), 1025);
  rn_tensor_clear(&out);
  rn_tensor_clear(&fed);
}

// Neither what a plan computes in advance nor what a quiet step does in functions takes threads of
// a pool that others share.
RT_TEST(plan, loading_takes_no_thread_from_others) {
  rn_env_t env = *rn_env_system();
  OK(rn_pool_create_on(rn_allocator_system(), 2, 2, &env.pool));
  for (int in_function = 0; in_function < 2; ++in_function) {
    rt_t rt = rt_begin(0);
    rn_edge_t x = rt_placeholder(&rt, "x");
    fn_t fn = fn_begin(&rt, 1);
    fn_end(&fn, &rt, "f", product(fn.s, fn.args[0]));
    rn_edge_t y = in_function ? call(rt.s, "f", x) : product(rt.s, rn_const_float(rt.s, 1));
    check_alone(&rt, x, rn_AddV2(rt.s, y, x), &env);
    rt_end(&rt);
  }
  rn_pool_destroy(env.pool);
}
