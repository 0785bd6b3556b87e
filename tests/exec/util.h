// Helpers of the tests of exec, session and place: a graph with a session, steps in one line,
// loops, and ops whose kernels fail, wait or complete on another thread.
#ifndef TESTS_EXEC_UTIL_H_
#define TESTS_EXEC_UTIL_H_

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../support/status.h"
#include "graph/graph.h"
#include "runnel/ops.h"
#include "session/session.h"

#define RT_TEST(suite, name) Test(suite, name, .timeout = 60)
#define RT_UNUSED __attribute__((unused))

// A sanitizer has an allocator of its own, which keeps what is freed.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RT_HAS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RT_HAS_SANITIZER 1
#endif

static RT_UNUSED int64_t rt_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// A graph under construction and the session that runs it, made with the first step.
typedef struct rt_t {
  rn_graph_t* graph;
  rn_scope_t* s;
  rn_session_options_t options;
  rn_allocator_t allocator;  // of the session
  rn_session_t* session;
} rt_t;

static void rt_register(void);

static RT_UNUSED rt_t rt_begin(int threads) {
  rt_register();
  rt_t rt = {.allocator = rn_allocator_system()};
  OK(rn_graph_create(rn_allocator_system(), &rt.graph));
  rt.s = rn_scope_create(rt.graph);
  rn_session_options_init(&rt.options);
  rt.options.intra_threads = rt.options.inter_threads = threads;
  return rt;
}

static RT_UNUSED rn_session_t* rt_session(rt_t* rt) {
  cr_assert(rn_scope_ok(rt->s), "%s", rn_scope_message(rt->s));
  if (!rt->session)
    OK(rn_session_create(rt->graph, &rt->options, rn_env_system(), rt->allocator, &rt->session));
  return rt->session;
}

static RT_UNUSED void rt_end(rt_t* rt) {
  rn_session_destroy(rt->session);
  rn_scope_destroy(rt->s);
  rn_graph_release(rt->graph);
}

#define RT_MAX 16

typedef struct rt_step_t {
  rn_edge_t feeds[RT_MAX];
  const rn_tensor_t* values[RT_MAX];  // Borrowed
  int feed_count;
  rn_edge_t fetches[RT_MAX];
  int fetch_count;
  rn_node_t* targets[RT_MAX];
  int target_count;
  rn_step_options_t options;
  rn_tensor_t out[RT_MAX];
} rt_step_t;

static RT_UNUSED void rt_feed(rt_step_t* step, rn_edge_t edge, const rn_tensor_t* value) {
  step->feeds[step->feed_count] = edge;
  step->values[step->feed_count++] = value;
}
static RT_UNUSED void rt_fetch(rt_step_t* step, rn_edge_t edge) {
  step->fetches[step->fetch_count++] = edge;
}
static RT_UNUSED void rt_target(rt_step_t* step, rn_node_t* node) {
  step->targets[step->target_count++] = node;
}
static RT_UNUSED rn_signature_t rt_signature(const rt_step_t* step) {
  return (rn_signature_t){.feeds = step->feeds,
                          .feed_count = step->feed_count,
                          .fetches = step->fetches,
                          .fetch_count = step->fetch_count,
                          .targets = step->targets,
                          .target_count = step->target_count};
}
static RT_UNUSED rn_status_t rt_run_in(rn_session_t* session, rt_step_t* step) {
  rn_signature_t signature = rt_signature(step);
  return rn_session_run(session, &signature, step->values, step->out, &step->options);
}
static RT_UNUSED rn_status_t rt_run(rt_t* rt, rt_step_t* step) {
  return rt_run_in(rt_session(rt), step);
}
static RT_UNUSED void rt_clear(rt_step_t* step) {
  for (int i = 0; i < step->fetch_count; ++i) rn_tensor_clear(&step->out[i]);
}

static RT_UNUSED rn_tensor_t rt_floats(int64_t count, const float* values) {
  rn_tensor_t tensor;
  rn_shape_t shape = count < 0 ? RN_SHAPE_SCALAR : (rn_shape_t){1, &count};
  OK(rn_tensor_create(rn_allocator_system(), RN_FLOAT, shape, &tensor));
  if (tensor.count) memcpy(tensor.data, values, rn_tensor_bytes(&tensor));
  return tensor;
}
static RT_UNUSED rn_tensor_t rt_scalar(float value) { return rt_floats(-1, &value); }
static RT_UNUSED rn_tensor_t rt_bool(bool value) {
  rn_tensor_t tensor;
  OK(rn_tensor_create(rn_allocator_system(), RN_BOOL, RN_SHAPE_SCALAR, &tensor));
  *RN_DATA(&tensor, bool) = value;
  return tensor;
}
static RT_UNUSED float rt_value(const rn_tensor_t* tensor) {
  cr_assert_eq(tensor->dtype, RN_FLOAT);
  cr_assert_eq(tensor->count, 1);
  return *RN_DATA(tensor, float);
}

// A step with one fetch and at most one feed, for its only number.
static RT_UNUSED float rt_get(rt_t* rt, rn_edge_t fetch, rn_edge_t feed, float value) {
  rt_step_t step = {0};
  rn_tensor_t fed = rt_scalar(value);
  if (feed.node) rt_feed(&step, feed, &fed);
  rt_fetch(&step, fetch);
  OK(rt_run(rt, &step));
  float result = rt_value(&step.out[0]);
  rt_clear(&step);
  rn_tensor_clear(&fed);
  return result;
}
static RT_UNUSED void rt_do(rt_t* rt, rn_node_t* target) {
  rt_step_t step = {0};
  rt_target(&step, target);
  OK(rt_run(rt, &step));
}
// The status of a step with one fetch, and no feeds.
static RT_UNUSED rn_status_t rt_try(rt_t* rt, rn_edge_t fetch) {
  rt_step_t step = {0};
  rt_fetch(&step, fetch);
  rn_status_t status = rt_run(rt, &step);
  rt_clear(&step);
  return status;
}

static RT_UNUSED rn_edge_t rt_placeholder(rt_t* rt, const char* name) {
  rn_scope_name_next(rt->s, name);
  return rn_Placeholder(rt->s, RN_FLOAT);
}

// A loop over |count| values: while cond(values) do values = body(values).
typedef struct rt_loop_t {
  const char* frame;
  int count;
  int parallel;  // 0: as by default
  rn_edge_t start[4];
  rn_edge_t (*cond)(rn_scope_t* s, const rn_edge_t* values, void* arg);
  void (*body)(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg);
  void* arg;
  rn_edge_t merged[4];  // the rest is for the bodies and the caller to read
  rn_edge_t inside[4];
  rn_edge_t exits[4];
} rt_loop_t;

static RT_UNUSED void rt_loop(rn_scope_t* s, rt_loop_t* loop) {
  int parallel = loop->parallel ? loop->parallel : 10;
  for (int i = 0; i < loop->count; ++i) {
    rn_op_begin(s, "Enter");
    rn_op_input(s, loop->start[i]);
    rn_op_attr_string(s, "frame_name", loop->frame);
    rn_op_attr_int(s, "parallel_iterations", parallel);
    rn_edge_t enter = {rn_op_finish(s), 0};
    loop->merged[i] = rn_Merge(s, ((rn_edge_t[]){enter, enter}), 2).output;
  }
  rn_edge_t cond = rn_LoopCond(s, loop->cond(s, loop->merged, loop->arg));
  for (int i = 0; i < loop->count; ++i) {
    rn_Switch_out_t way = rn_Switch(s, loop->merged[i], cond);
    loop->exits[i] = rn_Exit(s, way.output_false);
    loop->inside[i] = rn_Identity(s, way.output_true);
  }
  rn_edge_t next[4];
  loop->body(s, loop->inside, next, loop->arg);
  for (int i = 0; i < loop->count; ++i) {
    rn_edge_t back = rn_NextIteration(s, next[i]);
    cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
    OK(rn_graph_update_edge(rn_scope_graph(s), back, loop->merged[i].node, 1));
  }
}

// A constant that belongs where |pivot| is: in its loop, in its branch.
static RT_UNUSED rn_edge_t rt_const_at(rn_scope_t* s, rn_edge_t pivot, float value) {
  rn_scope_add_control(s, pivot.node);
  rn_edge_t constant = rn_const_float(s, value);
  rn_scope_clear_controls(s);
  return constant;
}

// Ops for tests, float in, float out:
//   TestFail    fails with "boom" while |rt_fails|
//   TestCount   passes its input on and counts in |rt_count|; has state, so it is never merged
//   TestSlow    takes 20 ms
//   TestAsync   adds 1, from another thread, a little later
//   TestInline  adds 1, asynchronously, at once
//   TestBlock   waits until its step is cancelled, or for rt_unblock
//   TestStub    waits for rt_unblock whatever happens to its step
static RT_UNUSED _Atomic bool rt_fails;
static RT_UNUSED _Atomic int rt_count;
static RT_UNUSED _Atomic int rt_blocked;
static RT_UNUSED _Atomic bool rt_open;

static rn_status_t rt_shape(rn_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->output_count; ++i) ctx->outputs[i] = ctx->inputs[0];
  return RN_OK;
}

static rn_status_t rt_pass(rn_kernel_ctx_t* ctx, float plus) {
  rn_tensor_t* out = NULL;
  const rn_tensor_t* in = rn_in(ctx, 0);
  RN_RETURN_IF_ERROR(rn_output(ctx, 0, rn_tensor_shape(in), &out));
  for (int64_t i = 0; i < in->count; ++i) RN_DATA(out, float)[i] = RN_DATA(in, float)[i] + plus;
  return RN_OK;
}
static rn_status_t rt_fail_compute(rn_kernel_ctx_t* ctx) {
  return rt_fails ? rn_internal("boom") : rt_pass(ctx, 0);
}
static rn_status_t rt_count_compute(rn_kernel_ctx_t* ctx) {
  rt_count++;
  return rt_pass(ctx, 0);
}
static rn_status_t rt_slow_compute(rn_kernel_ctx_t* ctx) {
  usleep(20000);
  return rt_pass(ctx, 0);
}
static void rt_inline_compute(rn_kernel_ctx_t* ctx) { rn_done(ctx, rt_pass(ctx, 1)); }
static void* rt_later(void* arg) {
  usleep(200);
  rt_inline_compute(arg);
  return NULL;
}
static void rt_async_compute(rn_kernel_ctx_t* ctx) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, rt_later, ctx) == 0)
    pthread_detach(thread);
  else
    rn_done(ctx, rn_internal("no thread"));
}

typedef struct rt_waiter_t {
  rn_cancel_entry_t entry;  // first
  rn_kernel_ctx_t* ctx;
  pthread_t thread;
  _Atomic int turns;  // the first one ends the wait
} rt_waiter_t;
static void rt_waiter_end(rt_waiter_t* waiter, bool is_cancelled) {
  if (waiter->turns++ > 0) return;
  rn_kernel_ctx_t* ctx = waiter->ctx;
  rt_blocked--;
  rn_done(ctx, is_cancelled ? rn_cancelled("no longer wanted") : rt_pass(ctx, 1));
}
static void rt_on_cancel(rn_cancel_entry_t* entry) { rt_waiter_end((rt_waiter_t*)entry, true); }
static RT_UNUSED rt_waiter_t* _Atomic rt_waiting;
static void rt_block_compute(rn_kernel_ctx_t* ctx) {
  static rt_waiter_t waiters[256];
  static _Atomic int count;
  rt_waiter_t* waiter = &waiters[count++ % 256];
  waiter->entry = (rn_cancel_entry_t){.fn = rt_on_cancel};
  waiter->ctx = ctx;
  waiter->turns = 0;
  rt_blocked++;
  rt_waiting = waiter;
  if (!rn_cancel_add(ctx->step->cancel, &waiter->entry)) rt_waiter_end(waiter, true);
}
// Lets the last blocked kernel go on.
static RT_UNUSED void rt_unblock(void) {
  rt_waiter_t* waiter = rt_waiting;
  rn_cancel_remove(waiter->ctx->step->cancel, &waiter->entry);
  rt_waiter_end(waiter, false);
}
static void* rt_stub_main(void* arg) {
  while (!rt_open) usleep(1000);
  rt_inline_compute(arg);
  return NULL;
}
static void rt_stub_compute(rn_kernel_ctx_t* ctx) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, rt_stub_main, ctx) == 0)
    pthread_detach(thread);
  else
    rn_done(ctx, rn_internal("no thread"));
}

static const rn_arg_def_t rt_arg = {
    .name = "x", .type = RN_FLOAT, .type_attr = -1, .number_attr = -1, .type_list_attr = -1};
#define RT_OP(text, marks)                                                              \
  {                                                                                     \
    .name = text, .summary = "", .input_count = 1, .output_count = 1, .flags = (marks), \
    .inputs = &rt_arg, .outputs = &rt_arg, .shape = rt_shape                            \
  }
static const rn_op_def_t rt_ops[] = {
    RT_OP("TestFail", RN_OP_STATEFUL),
    RT_OP("TestCount", RN_OP_STATEFUL),
    RT_OP("TestSlow", RN_OP_STATEFUL),
    RT_OP("TestAsync", 0),
    RT_OP("TestInline", 0),
    RT_OP("TestBlock", RN_OP_STATEFUL),
    RT_OP("TestStub", RN_OP_STATEFUL),
};
static const rn_kernel_def_t rt_kernels[] = {
    {.op = "TestFail", .device = "CPU", .compute = rt_fail_compute},
    {.op = "TestCount", .device = "CPU", .compute = rt_count_compute},
    {.op = "TestSlow", .device = "CPU", .flags = RN_KERNEL_EXPENSIVE, .compute = rt_slow_compute},
    {.op = "TestAsync", .device = "CPU", .compute_async = rt_async_compute},
    {.op = "TestInline", .device = "CPU", .compute_async = rt_inline_compute},
    {.op = "TestBlock", .device = "CPU", .compute_async = rt_block_compute},
    {.op = "TestStub", .device = "CPU", .compute_async = rt_stub_compute},
};
static void rt_register(void) {
  static bool is_done;
  if (is_done) return;
  is_done = true;
  for (size_t i = 0; i < sizeof rt_ops / sizeof *rt_ops; ++i) {
    OK(rn_op_register(&rt_ops[i]));
    OK(rn_kernel_register(&rt_kernels[i]));
  }
}
static RT_UNUSED rn_edge_t rt_op(rn_scope_t* s, const char* op, rn_edge_t x) {
  rn_op_begin(s, op);
  rn_op_input(s, x);
  return (rn_edge_t){rn_op_finish(s), 0};
}

#endif  // TESTS_EXEC_UTIL_H_
