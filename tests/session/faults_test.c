// Out of memory: the n-th allocation fails, for n = 1, 2, 3 …, while a graph is built, planned, run
// and destroyed. Every call must return a status, and nothing may leak.
#include "graph/build.h"
#include "runnel/function.h"
#include "util.h"

typedef struct world_t {
  rn_graph_t* graph;
  rn_scope_t* s;
  rn_session_t* session;
  rn_edge_t x;           // fed
  rn_edge_t fetches[3];  // fetched
  int fetch_count;
  rn_node_t* first;  // run once before
} world_t;

typedef void (*build_t)(world_t* world);

static rn_status_t run_world(world_t* world, const rn_tensor_t* fed) {
  const rn_tensor_t* feeds[] = {fed};
  rn_tensor_t out[3] = {{0}};
  rn_signature_t signature = {.feeds = &world->x,
                              .feed_count = world->x.node ? 1 : 0,
                              .fetches = world->fetches,
                              .fetch_count = world->fetch_count};
  rn_status_t status = RN_OK;
  if (world->first) {
    rn_signature_t first = {.targets = &world->first, .target_count = 1};
    status = rn_session_run(world->session, &first, NULL, NULL, NULL);
  }
  for (int turn = 0; rn_ok(status) && turn < 2; ++turn) {
    status = rn_session_run(world->session, &signature, feeds, out, NULL);
    for (int i = 0; i < world->fetch_count; ++i) {
      if (rn_ok(status)) cr_assert(rn_tensor_is_set(&out[i]));
      rn_tensor_clear(&out[i]);
    }
  }
  return status;
}

static rn_status_t attempt(rn_allocator_t allocator, build_t build, int nulls,
                           const rn_tensor_t* fed) {
  world_t world = {0};
  rn_status_t status = rn_graph_create(allocator, &world.graph);
  if (rn_ok(status)) {
    world.s = rn_scope_create(world.graph);
    if (!world.s) status = rn_out_of_memory();
  }
  if (rn_ok(status)) {
    build(&world);
    if (!rn_scope_ok(world.s))
      status = rn_status_make((rn_code_t)rn_scope_code(world.s), "%s", rn_scope_message(world.s));
  }
  rn_session_options_t options;
  rn_session_options_init(&options);
  options.intra_threads = options.inter_threads = 1;
  options.null_devices = nulls;
  rn_env_t env = *rn_env_system();
  env.allocator = allocator;
  if (rn_ok(status))
    status = rn_session_create(world.graph, &options, &env, allocator, &world.session);
  if (rn_ok(status)) status = run_world(&world, fed);
  rn_session_destroy(world.session);
  rn_scope_destroy(world.s);
  rn_graph_release(world.graph);
  return status;
}

static void sweep_once(build_t build, int nulls, bool fail_all_after) {
  rt_register();
  rn_tensor_t fed = rt_scalar(2);
  rn_status_free(attempt(rn_allocator_system(), build, nulls, &fed));  // tables of the process
  int64_t n = 1;
  for (bool is_clean = false; !is_clean; ++n) {
    rn_counting_allocator_t counting = {
        .base = rn_allocator_system(), .fail_at = n, .fail_all_after = fail_all_after};
    rn_allocator_set_default_for_testing(rn_allocator_counting(&counting));
    rn_status_t status = attempt(rn_allocator_counting(&counting), build, nulls, &fed);
    rn_allocator_set_default_for_testing((rn_allocator_t){0});
    is_clean = counting.allocations < n;
    if (is_clean) {
      OK(status);
    } else if (!rn_ok(status)) {
      cr_assert_eq(rn_status_code(status), RN_CODE_RESOURCE_EXHAUSTED, "allocation %d: %s", (int)n,
                   rn_status_message(status));
    }
    rn_status_free(status);
    cr_assert_eq(counting.live_blocks, 0, "allocation %d of %d: %d blocks are left", (int)n,
                 (int)counting.allocations, (int)counting.live_blocks);
  }
  cr_assert_gt(n, 30);
  rn_tensor_clear(&fed);
}

// One failure that passes, and memory that is gone for good.
static void sweep(build_t build, int nulls) {
  sweep_once(build, nulls, false);
  sweep_once(build, nulls, true);
}

static rn_edge_t scalar(rn_scope_t* s) {
  rn_op_begin(s, "Placeholder");
  rn_op_attr_type(s, "dtype", RN_FLOAT);
  return (rn_edge_t){rn_op_finish(s), 0};
}

static void build_plain(world_t* w) {
  w->x = scalar(w->s);
  rn_edge_t a = rn_AddV2(w->s, w->x, rn_const_float(w->s, 1));
  rn_edge_t b = rn_Mul(w->s, rn_Neg(w->s, a),
                       rn_AddV2(w->s, rn_const_float(w->s, 1), rn_const_float(w->s, 2)));
  rn_edge_t shape = rn_const_int32_list(w->s, (int32_t[]){1, 1}, 2);
  w->fetches[w->fetch_count++] = rn_Reshape(w->s, b, shape);
  w->fetches[w->fetch_count++] = rn_Identity(w->s, a);
}
Test(faults, plain, .timeout = 120) { sweep(build_plain, 0); }

static void build_state(world_t* w) {
  w->x = scalar(w->s);
  rn_edge_t v = rn_VariableV2(w->s, NULL, 0, RN_FLOAT);
  rn_edge_t set = rn_Assign(w->s, v, rn_const_float(w->s, 1));
  w->first = set.node;
  w->fetches[w->fetch_count++] = rn_AssignAdd(w->s, v, w->x);
  w->fetches[w->fetch_count++] = rn_Neg(w->s, v);
}
Test(faults, variables, .timeout = 120) { sweep(build_state, 0); }

static void build_conditional(world_t* w) {
  w->x = scalar(w->s);
  rn_edge_t p = rn_Greater(w->s, w->x, rn_const_float(w->s, 0));
  rn_Switch_out_t way = rn_Switch(w->s, w->x, p);
  rn_edge_t yes = rn_Neg(w->s, way.output_true), no = rn_Relu(w->s, way.output_false);
  rn_Merge_out_t merged = rn_Merge(w->s, ((rn_edge_t[]){no, yes}), 2);
  w->fetches[w->fetch_count++] = merged.output;
  w->fetches[w->fetch_count++] = merged.value_index;
}
Test(faults, conditional, .timeout = 120) { sweep(build_conditional, 0); }

// As rt_loop, for memory that may be short.
static void build_loop(world_t* w) {
  rn_scope_t* s = w->s;
  w->x = scalar(s);
  rn_edge_t enter = rn_Enter(s, w->x, "w", .parallel_iterations = RN_SET(2));
  rn_edge_t limit =
      rn_Enter(s, rn_const_float(s, 6), "w", .is_constant = true, .parallel_iterations = RN_SET(2));
  rn_edge_t merged = rn_Merge(s, ((rn_edge_t[]){enter, enter}), 2).output;
  rn_edge_t go_on = rn_LoopCond(s, rn_Less(s, merged, limit));
  rn_Switch_out_t way = rn_Switch(s, merged, go_on);
  rn_edge_t inside = rn_Identity(s, way.output_true);
  if (inside.node) rn_scope_add_control(s, inside.node);
  rn_edge_t one = rn_const_float(s, 1);
  rn_scope_clear_controls(s);
  rn_edge_t back = rn_NextIteration(s, rt_op(s, "TestInline", rn_Sub(s, inside, one)));
  back = rn_NextIteration(s, rn_AddV2(s, inside, one));
  w->fetches[w->fetch_count++] = rn_Exit(s, way.output_false);
  if (!rn_scope_ok(s)) return;
  rn_status_t status = rn_graph_update_edge(w->graph, back, merged.node, 1);
  if (!rn_ok(status)) w->fetch_count = 0;  // half a loop: nothing to run
  rn_status_free(status);
}
Test(faults, loop, .timeout = 120) { sweep(build_loop, 0); }

static void build_async(world_t* w) {
  w->x = scalar(w->s);
  static const int types[] = {RN_FLOAT};
  rn_edge_t queue = rn_FIFOQueueV2(w->s, types, 1, .capacity = RN_SET(3));
  rn_node_t* put = rn_QueueEnqueueV2(w->s, queue, &w->x, 1);
  if (put) rn_scope_add_control(w->s, put);
  rn_edges_t got = rn_QueueDequeueV2(w->s, queue, types, 1);
  rn_scope_clear_controls(w->s);
  w->fetches[w->fetch_count++] = rt_op(w->s, "TestInline", rn_edge_at(got, 0));
}
Test(faults, queues, .timeout = 120) { sweep(build_async, 0); }

static void build_devices(world_t* w) {
  w->x = scalar(w->s);
  rn_scope_set_device(w->s, "/device:NULL:0");
  rn_edge_t a = rn_AddV2(w->s, w->x, rn_const_float(w->s, 1));
  rn_scope_set_device(w->s, "/device:NULL:1");
  rn_edge_t b = rn_Neg(w->s, a);
  rn_scope_set_device(w->s, "/cpu:0");
  w->fetches[w->fetch_count++] = rn_Neg(w->s, b);
  w->fetches[w->fetch_count++] = a;
}
Test(faults, devices, .timeout = 120) { sweep(build_devices, 2); }

static void build_dead_devices(world_t* w) {
  w->x = scalar(w->s);
  rn_edge_t p = rn_Greater(w->s, w->x, rn_const_float(w->s, 0));
  rn_scope_set_device(w->s, "/device:NULL:0");
  rn_Switch_out_t way = rn_Switch(w->s, w->x, p);
  rn_edge_t yes = rn_Neg(w->s, way.output_true);
  rn_scope_set_device(w->s, "/cpu:0");
  w->fetches[w->fetch_count++] = rn_Merge(w->s, ((rn_edge_t[]){way.output_false, yes}), 2).output;
}
Test(faults, conditional_over_devices, .timeout = 120) { sweep(build_dead_devices, 1); }

// A function over one float: kind 0 squares, 1 asks whether it is small, 2 calls "square" and
// waits.
static void define(world_t* w, const char* name, int kind) {
  rn_graph_t* graph = NULL;
  rn_status_t status = rn_graph_create(w->graph->allocator, &graph);
  rn_scope_t* body = rn_ok(status) ? rn_scope_create(graph) : NULL;
  rn_status_free(status);
  if (body) {
    rn_edge_t x = scalar(body), y = rn_Mul(body, x, x);
    if (kind == 1) y = rn_Less(body, y, rn_const_float(body, 100));
    if (kind == 2) {
      static const int types[] = {RN_FLOAT};
      y = rn_edge_at(rn_PartitionedCall(body, &x, 1, types, 1, "square"), 0);
      y = rt_op(body, "TestInline", y);
    }
    rn_define_function(w->s, name, body, &x, 1, &y, 1);
  } else {
    rn_scope_fail(w->s, rn_out_of_memory());
  }
  rn_scope_destroy(body);
  rn_graph_release(graph);
}

static void build_functions(world_t* w) {
  static const int types[] = {RN_FLOAT};
  define(w, "square", 0);
  define(w, "small", 1);
  define(w, "waits", 2);
  w->x = scalar(w->s);
  rn_edge_t p = rn_Greater(w->s, w->x, rn_const_float(w->s, 0));
  w->fetches[w->fetch_count++] = rn_edge_at(rn_call(w->s, "waits", &w->x, 1), 0);
  w->fetches[w->fetch_count++] =
      rn_edge_at(rn_If(w->s, p, &w->x, 1, types, 1, "waits", "square"), 0);
  w->fetches[w->fetch_count++] = rn_edge_at(rn_While(w->s, &w->x, 1, "small", "waits"), 0);
}
Test(faults, functions, .timeout = 300) { sweep(build_functions, 0); }
