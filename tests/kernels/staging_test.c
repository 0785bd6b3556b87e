// Ops that wait for each other across steps: staging areas, barriers, accumulators, mutexes; and
// tensor arrays of old graphs.
#include <criterion/criterion.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../support/settle.h"
#include "../support/status.h"
#include "base/env.h"
#include "grad/grad.h"
#include "graph/graph.h"
#include "runnel/input.h"
#include "runnel/ops.h"
#include "session/session.h"

typedef struct world_t {
  rn_graph_t* graph;
  rn_scope_t* s;
  rn_session_t* session;
} world_t;

static world_t begin(void) {
  world_t w = {0};
  rn_status_t status = rn_graph_create(rn_allocator_system(), &w.graph);
  OK(status);
  w.s = rn_scope_create(w.graph);
  rn_session_options_t options;
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = 2;
  status = rn_session_create(w.graph, &options, rn_env_system(), rn_allocator_system(), &w.session);
  OK(status);
  return w;
}

static void end(world_t* w) {
  rn_session_destroy(w->session);
  rn_scope_destroy(w->s);
  rn_graph_release(w->graph);
}

// A step that runs |target| or fetches |fetch|, in a thread of its own.
typedef struct runner_t {
  pthread_t thread;
  world_t* w;
  rn_node_t* target;
  rn_edge_t fetch;
  rn_cancel_t* cancel;  // NULL if nothing cancels the step
  rn_status_t status;
  rn_tensor_t value;
  _Atomic bool is_done;
} runner_t;

static void* run(void* arg) {
  runner_t* r = arg;
  bool fetches = r->fetch.node != NULL;
  rn_signature_t signature = {.fetches = &r->fetch,
                              .fetch_count = fetches,
                              .targets = &r->target,
                              .target_count = r->target != NULL};
  cr_assert(rn_scope_ok(r->w->s), "%s", rn_scope_message(r->w->s));
  r->status = rn_session_run(r->w->session, &signature, NULL, &r->value,
                             &(rn_step_options_t){.cancel = r->cancel});
  r->is_done = true;
  return NULL;
}

static void start(runner_t* r) { cr_assert(pthread_create(&r->thread, NULL, run, r) == 0); }
static void join(runner_t* r) { pthread_join(r->thread, NULL); }

static void run_now(world_t* w, rn_node_t* target) {
  runner_t r = {.w = w, .target = target};
  run(&r);
  cr_assert(rn_ok(r.status), "%s", rn_status_message(r.status));
}

static double fetch_now(world_t* w, rn_edge_t edge) {
  runner_t r = {.w = w, .fetch = edge};
  run(&r);
  cr_assert(rn_ok(r.status), "%s", rn_status_message(r.status));
  double value = r.value.dtype == RN_FLOAT    ? *RN_DATA(&r.value, float)
                 : r.value.dtype == RN_DOUBLE ? *RN_DATA(&r.value, double)
                                              : *RN_DATA(&r.value, int32_t);
  rn_tensor_clear(&r.value);
  return value;
}

// An Unstage before any Stage waits for one.
Test(staging, unstage_waits, .timeout = 60) {
  world_t w = begin();
  int types[1] = {RN_FLOAT};
  rn_edges_t out = rn_Unstage(w.s, types, 1, .shared_name = "area");
  rn_edge_t one = rn_const_scalar(w.s, RN_FLOAT, 1.5);
  rn_node_t* stage = rn_Stage(w.s, &one, 1, .shared_name = "area");
  runner_t taker = {.w = &w, .fetch = rn_edge_at(out, 0)};
  start(&taker);
  settle();
  cr_expect(!taker.is_done);
  run_now(&w, stage);
  join(&taker);
  OK(taker.status);
  cr_expect_eq(*RN_DATA(&taker.value, float), 1.5f);
  rn_tensor_clear(&taker.value);
  end(&w);
}

// A full area takes nothing until there is room.
Test(staging, stage_waits, .timeout = 60) {
  world_t w = begin();
  int types[1] = {RN_FLOAT};
  rn_edge_t one = rn_const_scalar(w.s, RN_FLOAT, 1);
  rn_node_t* stage = rn_Stage(w.s, &one, 1, .capacity = 1, .shared_name = "area");
  rn_edges_t out = rn_Unstage(w.s, types, 1, .capacity = 1, .shared_name = "area");
  rn_edge_t size = rn_StageSize(w.s, types, 1, .capacity = 1, .shared_name = "area");
  run_now(&w, stage);
  runner_t second = {.w = &w, .target = stage};
  start(&second);
  settle();
  cr_expect(!second.is_done);
  cr_expect_eq(fetch_now(&w, size), 1);
  cr_expect_eq(fetch_now(&w, rn_edge_at(out, 0)), 1);
  join(&second);
  cr_expect(rn_ok(second.status));
  cr_expect_eq(fetch_now(&w, size), 1);
  end(&w);
}

// A session that closes ends those who wait.
Test(staging, closing_ends_waiting, .timeout = 60) {
  world_t w = begin();
  int types[1] = {RN_FLOAT};
  rn_edge_t key = rn_const(w.s, RN_INT64, NULL, 0, &(int64_t){3});
  rn_edge_t at = rn_const_int32_list(w.s, (const int32_t[]){0}, 1);
  rn_edges_t out = rn_MapUnstage(w.s, key, at, types, 1, .shared_name = "map");
  runner_t taker = {.w = &w, .fetch = rn_edge_at(out, 0)};
  start(&taker);
  settle();
  cr_expect(!taker.is_done);
  cr_expect(rn_ok(rn_session_close(w.session)));
  join(&taker);
  cr_expect_eq(rn_status_code(taker.status), RN_CODE_CANCELLED);
  rn_status_free(taker.status);
  end(&w);
}

// A lock is held as long as its value lives: here, until the step that took it ends.
Test(mutex, one_at_a_time, .timeout = 60) {
  world_t w = begin();
  int types[1] = {RN_FLOAT};
  rn_edge_t mutex = rn_MutexV2(w.s, .shared_name = "lock");
  rn_edge_t held = rn_MutexLock(w.s, mutex);
  rn_edge_t one = rn_const_scalar(w.s, RN_FLOAT, 1);
  rn_scope_add_control(w.s, held.node);
  rn_node_t* tell = rn_Stage(w.s, &one, 1, .shared_name = "holding");
  rn_edges_t out = rn_Unstage(w.s, types, 1, .shared_name = "area");
  rn_scope_clear_controls(w.s);
  // The value is used after the wait, so that it lives through it.
  rn_scope_add_control(w.s, out.node);
  rn_scope_add_control(w.s, tell);
  rn_node_t* last = rn_ConsumeMutexLock(w.s, held);
  rn_scope_clear_controls(w.s);
  rn_edge_t again = rn_MutexLock(w.s, mutex);
  rn_node_t* quick = rn_ConsumeMutexLock(w.s, again);
  rn_node_t* stage = rn_Stage(w.s, &one, 1, .shared_name = "area");
  rn_edges_t told = rn_Unstage(w.s, types, 1, .shared_name = "holding");
  runner_t holder = {.w = &w, .target = last}, waiter = {.w = &w, .target = quick};
  start(&holder);
  run_now(&w, told.node);  // waits until the lock is held
  start(&waiter);
  settle();
  cr_expect(!holder.is_done && !waiter.is_done);
  run_now(&w, stage);
  join(&holder);
  join(&waiter);
  cr_expect(rn_ok(holder.status) && rn_ok(waiter.status));
  end(&w);
}

// A take from a barrier waits for all components of the keys it asked for.
Test(barrier, take_waits, .timeout = 60) {
  world_t w = begin();
  int types[2] = {RN_FLOAT, RN_INT32};
  const int64_t* shapes[2] = {NULL, NULL};
  int ranks[2] = {0, 0};
  rn_op_begin(w.s, "Barrier");
  rn_op_attr_type_list(w.s, "component_types", types, 2);
  rn_op_attr_shape_list(w.s, "shapes", shapes, ranks, 2);
  rn_edge_t barrier = {rn_op_finish(w.s), 0};
  rn_edge_t key = rn_AsString(w.s, rn_const_int32_list(w.s, (const int32_t[]){1}, 1));
  rn_edge_t a = rn_const(w.s, RN_FLOAT, (const int64_t[]){1}, 1, &(float){2.5f});
  rn_edge_t b = rn_const_int32_list(w.s, (const int32_t[]){7}, 1);
  rn_node_t* first = rn_BarrierInsertMany(w.s, barrier, key, a, 0);
  rn_node_t* second = rn_BarrierInsertMany(w.s, barrier, key, b, 1);
  rn_BarrierTakeMany_out_t taken =
      rn_BarrierTakeMany(w.s, barrier, rn_const_int32(w.s, 1), types, 2);
  runner_t taker = {.w = &w, .fetch = rn_edge_at(taken.values, 1)};
  start(&taker);
  run_now(&w, first);
  settle();
  cr_expect(!taker.is_done);
  run_now(&w, second);
  join(&taker);
  OK(taker.status);
  cr_expect_eq(*RN_DATA(&taker.value, int32_t), 7);
  rn_tensor_clear(&taker.value);
  end(&w);
}

// Calls are served in the order of their arrival, even if a later one needs fewer gradients; when
// the first is cancelled, it is the next one's turn.
Test(accumulator, take_waits_in_order, .timeout = 60) {
  world_t w = begin();
  rn_edge_t sum = rn_ConditionalAccumulator(w.s, RN_FLOAT, NULL, 0);
  rn_edge_t step = rn_const(w.s, RN_INT64, NULL, 0, &(int64_t){9});
  rn_node_t* put = rn_AccumulatorApplyGradient(w.s, sum, step, rn_const_scalar(w.s, RN_FLOAT, 3));
  rn_edge_t two = rn_AccumulatorTakeGradient(w.s, sum, rn_const_int32(w.s, 2), RN_FLOAT);
  rn_edge_t one = rn_AccumulatorTakeGradient(w.s, sum, rn_const_int32(w.s, 1), RN_FLOAT);
  for (int is_cancelled = 0; is_cancelled < 2; ++is_cancelled) {
    rn_cancel_t cancel;
    rn_cancel_init(&cancel);
    runner_t first = {.w = &w, .fetch = two, .cancel = &cancel}, second = {.w = &w, .fetch = one};
    start(&first);
    settle();
    start(&second);
    settle();
    run_now(&w, put);
    settle();
    cr_expect(!first.is_done && !second.is_done);
    if (is_cancelled) {
      rn_cancel(&cancel);
    } else {
      run_now(&w, put);
      join(&first);
      cr_expect(rn_ok(first.status));
      settle();
      cr_expect(!second.is_done);
      run_now(&w, put);
    }
    join(&second);
    cr_assert(rn_ok(second.status), "%s", rn_status_message(second.status));
    cr_expect_eq(*RN_DATA(&second.value, float), 3);
    if (is_cancelled) {
      join(&first);
      cr_expect_eq(rn_status_code(first.status), RN_CODE_CANCELLED);
      rn_status_free(first.status);
    }
    rn_tensor_clear(&first.value);
    rn_tensor_clear(&second.value);
    rn_cancel_destroy(&cancel);
  }
  end(&w);
}

// A handle of a tensor that stays is good in later steps, as a string and as a resource's name.
Test(session_store, handles, .timeout = 60) {
  world_t w = begin();
  rn_edge_t handle = rn_GetSessionHandle(w.s, rn_const_scalar(w.s, RN_FLOAT, 4));
  rn_edge_t name = rn_Placeholder(w.s, RN_STRING);
  rn_edge_t value = rn_GetSessionTensor(w.s, name, RN_FLOAT);
  rn_node_t* forget = rn_DeleteSessionTensor(w.s, name);
  runner_t r = {.w = &w, .fetch = handle};
  run(&r);
  cr_assert(rn_ok(r.status), "%s", rn_status_message(r.status));
  const rn_tensor_t* feeds[1] = {&r.value};
  rn_tensor_t found = {0};
  rn_signature_t get = {.feeds = &name, .feed_count = 1, .fetches = &value, .fetch_count = 1};
  rn_signature_t drop = {.feeds = &name, .feed_count = 1, .targets = &forget, .target_count = 1};
  rn_status_t status = rn_session_run(w.session, &get, feeds, &found, NULL);
  cr_assert(rn_ok(status), "%s", rn_status_message(status));
  cr_expect_eq(*RN_DATA(&found, float), 4);
  rn_tensor_clear(&found);
  status = rn_session_run(w.session, &drop, feeds, NULL, NULL);
  cr_assert(rn_ok(status), "%s", rn_status_message(status));
  status = rn_session_run(w.session, &get, feeds, &found, NULL);
  cr_expect_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT);
  rn_status_free(status);
  rn_tensor_clear(&r.value);
  end(&w);
}

// Arrays whose handle is a pair of strings ("V2"), which only graphs of version 25 and before may
// have, or a reference to one (""), for graphs of version 15 and before.

// TensorArray|verb||version| with what goes between the handle and the flow.
static rn_edge_t old(rn_scope_t* s, const char* version, const char* verb, rn_edge_t array,
                     rn_edge_t first, rn_edge_t second, rn_edge_t flow, bool gives_values) {
  char op[32];
  snprintf(op, sizeof op, "TensorArray%s%s", verb, version);
  rn_op_begin(s, op);
  rn_op_input(s, array);
  if (first.node) rn_op_input(s, first);
  if (second.node) rn_op_input(s, second);
  rn_op_input(s, flow);
  if (gives_values) rn_op_attr_type(s, "dtype", RN_DOUBLE);
  return (rn_edge_t){rn_op_finish(s), 0};
}

// Two values go in one by one, stacked or joined, and come out so.
static rn_edge_t through_array(rn_scope_t* s, const char* version, int way, const rn_edge_t* both) {
  rn_edge_t flow = rn_const_scalar(s, RN_FLOAT, 0), size = rn_const_int32(s, 2);
  rn_edge_t stacked = rn_Pack(s, both, 2);
  rn_edge_t flat = rn_Reshape(s, stacked, rn_const_int32_list(s, (const int32_t[]){2}, 1));
  rn_edge_t lengths = rn_const(s, RN_INT64, (const int64_t[]){2}, 1, (const int64_t[]){1, 1});
  rn_edge_t order = rn_const_int32_list(s, (const int32_t[]){0, 1}, 2);
  rn_edge_t numbers[2] = {rn_const_int32(s, 0), rn_const_int32(s, 1)}, read[2];
  rn_op_begin(s, *version ? "TensorArrayV2" : "TensorArray");
  rn_op_input(s, size);
  rn_op_attr_type(s, "dtype", RN_DOUBLE);
  rn_edge_t array = {rn_op_finish(s), 0};
  if (way % 3 == 0)
    for (int i = 0; i < 2; ++i)
      flow = old(s, version, "Write", array, numbers[i], both[i], flow, false);
  if (way % 3 == 1) flow = old(s, version, "Scatter", array, order, stacked, flow, false);
  if (way % 3 == 2) flow = old(s, version, "Split", array, flat, lengths, flow, false);
  if (way / 3 == 1) return old(s, version, "Gather", array, order, RN_NO_EDGE, flow, true);
  if (way / 3 == 2) return old(s, version, "Concat", array, RN_NO_EDGE, RN_NO_EDGE, flow, true);
  for (int i = 0; i < 2; ++i)
    read[i] = old(s, version, "Read", array, numbers[i], RN_NO_EDGE, flow, true);
  return rn_Pack(s, read, 2);
}

// [x] and [x^2] become 10 x^2 + x.
static void use_old_array(const char* version, int producer, int way) {
  world_t w = begin();
  w.graph->producer = producer;
  rn_scope_t* s = w.s;
  rn_edge_t x = rn_const_scalar(s, RN_DOUBLE, 3);
  rn_edge_t one = rn_const_int32_list(s, (const int32_t[]){1}, 1);
  rn_edge_t both[2] = {rn_Reshape(s, x, one), rn_Reshape(s, rn_Square(s, x), one)};
  rn_edge_t rows = through_array(s, version, way, both);
  rows = rn_Reshape(s, rows, rn_const_int32_list(s, (const int32_t[]){2}, 1));
  rn_edge_t weights = rn_const(s, RN_DOUBLE, (const int64_t[]){2}, 1, (const double[]){1, 10});
  rn_edge_t y = rn_Sum(s, rn_Mul(s, rows, weights), rn_const_int32(s, 0)), d;
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  cr_assert(rn_gradients(s, y, &x, 1, &d), "%s", rn_scope_message(s));
  cr_expect_eq(fetch_now(&w, y), 93);
  cr_expect_eq(fetch_now(&w, d), 61, "%s, way %d: %g", version, way, fetch_now(&w, d));
  end(&w);
}

Test(tensor_array, of_old_graphs, .timeout = 60) {
  for (int way = 0; way < 9; ++way) {
    use_old_array("V2", 25, way);
    use_old_array("", 15, way);
  }
}

// TensorArrayUnpack and TensorArrayPack, the size, and the end of an array.
Test(tensor_array, of_the_oldest_graphs, .timeout = 60) {
  world_t w = begin();
  w.graph->producer = 15;
  rn_scope_t* s = w.s;
  rn_edge_t flow = rn_const_scalar(s, RN_FLOAT, 0);
  rn_edge_t rows = rn_const(s, RN_DOUBLE, (const int64_t[]){2}, 1, (const double[]){4, 5});
  rn_edge_t two = rn_const_int32(s, 2);
  rn_op_begin(s, "TensorArray");
  rn_op_input(s, two);
  rn_op_attr_type(s, "dtype", RN_DOUBLE);
  rn_edge_t array = {rn_op_finish(s), 0};
  flow = old(s, "", "Unpack", array, rows, RN_NO_EDGE, flow, false);
  rn_edge_t packed = old(s, "", "Pack", array, RN_NO_EDGE, RN_NO_EDGE, flow, true);
  rn_edge_t size = old(s, "", "Size", array, RN_NO_EDGE, RN_NO_EDGE, flow, false);
  rn_op_begin(s, "TensorArrayClose");
  rn_op_input(s, array);
  rn_op_control(s, packed.node);
  rn_op_control(s, size.node);
  rn_node_t* close = rn_op_finish(s);
  rn_edge_t sum = rn_Sum(s, packed, rn_const_int32(s, 0)), count = rn_Cast(s, size, RN_DOUBLE);
  rn_op_begin(s, "Add");
  rn_op_input(s, sum);
  rn_op_input(s, count);
  rn_op_control(s, close);
  rn_edge_t total = {rn_op_finish(s), 0};
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  cr_expect_eq(fetch_now(&w, total), 11);
  end(&w);
}

// A pair of strings that names nothing: a step without arrays has no container to look into.
Test(tensor_array, that_is_missing, .timeout = 60) {
  world_t w = begin();
  rn_scope_t* s = w.s;
  rn_edge_t pair = rn_const_strings(s, (const char* const[]){"a", "b"}, 2);
  rn_edge_t joined =
      old(s, "V2", "Concat", pair, RN_NO_EDGE, RN_NO_EDGE, rn_const_scalar(s, RN_FLOAT, 0), true);
  runner_t r = {.w = &w, .fetch = joined};
  run(&r);
  int64_t step = -1;
  cr_expect_eq(rn_status_code(r.status), RN_CODE_NOT_FOUND);
  cr_expect_eq(sscanf(rn_status_message(r.status),
                      "Container __per_step_%" SCNd64
                      " does not exist. (Could not find resource: __per_step_",
                      &step),
               1, "%s", rn_status_message(r.status));
  cr_expect(strstr(rn_status_message(r.status), "/ab)"), "%s", rn_status_message(r.status));
  rn_status_free(r.status);
  end(&w);
}
