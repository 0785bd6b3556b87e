// Automatic placement: what a search may do to a step (place/auto/wishes.h, from_step.h), and
// sessions that place by it (session/placement.h).
#include "place/auto/wishes.h"

#include <stdlib.h>

#include "base/fs.h"
#include "proto/attr_value.pb.h"
#include "proto/config.pb.h"
#include "proto/rewriter_config.pb.h"
#include "steps.h"
#include "wire/writer.h"

enum { DEVICES = 3 };

// Devices by name only.
typedef struct stubs_t {
  rn_device_t devices[DEVICES];
  rn_device_t* list[DEVICES];
  rn_place_options_t place;
} stubs_t;

static void stubs_init(stubs_t* stubs) {
  static const char* const names[] = {"/job:localhost/replica:0/task:0/device:CPU:0",
                                      "/job:localhost/replica:0/task:0/device:CPU:1",
                                      "/job:localhost/replica:0/task:0/device:CPU:2"};
  memset(stubs, 0, sizeof *stubs);
  for (int d = 0; d < DEVICES; ++d) {
    stubs->devices[d].name = rn_str(names[d]);
    stubs->devices[d].type = "CPU";
    stubs->devices[d].is_host = true;
    stubs->list[d] = &stubs->devices[d];
  }
  stubs->place =
      (rn_place_options_t){.devices = stubs->list, .device_count = DEVICES, .env = rn_env_system()};
}

// The result of a search for |targets| and the device of each node by name.
typedef struct found_t {
  rn_arena_t arena;
  rn_ir_t* ir;
  rn_auto_result_t result;
  stubs_t stubs;
} found_t;

static void find(rt_t* rt, rn_edge_t fetch, rn_costs_t* costs, found_t* out) {
  rn_signature_t signature = {.fetches = &fetch, .fetch_count = 1};
  rn_fleet_options_t fleet = {.is_apart = true};
  cr_assert(rn_scope_ok(rt->s), "%s", rn_scope_message(rt->s));
  rn_arena_init(&out->arena, rn_allocator_system());
  stubs_init(&out->stubs);
  OK(rn_ir_create(rt->graph, &signature, &out->ir));
  OK(rn_auto_search(out->ir, &out->stubs.place, costs, &fleet, false, &(rn_search_options_t){0},
                    &out->arena, &out->result));
}

static void found_clear(found_t* found) {
  rn_ir_destroy(found->ir);
  rn_arena_clear(&found->arena);
}

static int32_t where(const found_t* found, const char* name) {
  for (int32_t n = 0; n < found->result.step.work.node_count; ++n)
    if (rn_str_is(rn_ir_node(found->ir, found->result.step.nodes[n])->name, name))
      return rn_auto_device(&found->result, n);
  cr_assert_fail("no node %s", name);
  return -1;
}

static rn_edge_t named(rn_scope_t* s, const char* name, rn_edge_t x) {
  rn_scope_name_next(s, name);
  return rn_Tanh(s, x);
}

// Says that a node takes |ns|.
static void tell(rn_costs_t* costs, const char* node, const char* op, int64_t ns) {
  rn_cost_key_t key = {.node = rn_str(node), .device = "CPU", .op = rn_str(op)};
  OK(rn_costs_add_node(costs, &key, ns, 0));
}

static rn_costs_t* new_costs(void) {
  rn_costs_t* costs = NULL;
  OK(rn_costs_create(rn_allocator_system(), &costs));
  return costs;
}

// Three chains of heavy nodes go to three devices; what the client asked for stays.
RT_TEST(automatic, chains_and_requests) {
  rt_t rt = rt_begin(1);
  rn_costs_t* costs = new_costs();
  rn_edge_t x = rn_const_float(rt.s, 1), ends[3];
  for (int c = 0; c < 3; ++c) {
    ends[c] = x;
    for (int i = 0; i < 3; ++i) {
      char name[16];
      snprintf(name, sizeof name, "n%d%d", c, i);
      if (c == 0 && i == 2) rn_scope_set_device(rt.s, "/device:CPU:2");
      ends[c] = named(rt.s, name, ends[c]);
      rn_scope_set_device(rt.s, NULL);
      tell(costs, name, "Tanh", 5000000);
    }
  }
  rn_edge_t sum = rn_AddV2(rt.s, rn_AddV2(rt.s, ends[0], ends[1]), ends[2]);
  found_t found;
  find(&rt, sum, costs, &found);
  cr_expect_eq(where(&found, "n02"), 2);
  cr_expect_eq(where(&found, "n00"), where(&found, "n01"));
  cr_expect_neq(where(&found, "n10"), where(&found, "n20"));
  cr_expect_leq(found.result.search.found.step_ns, 15300000);
  cr_expect_geq(found.result.search.start.step_ns, 40000000);
  found_clear(&found);
  rn_costs_destroy(costs);
  rt_end(&rt);
}

static rn_edge_t count_cond(rn_scope_t* s, const rn_edge_t* values, void* arg) {
  (void)arg;
  return rn_Less(s, values[0], rt_const_at(s, values[0], 7));
}
static void count_body(rn_scope_t* s, const rn_edge_t* values, rn_edge_t* next, void* arg) {
  (void)arg;
  next[0] = rn_AddV2(s, values[0], rt_const_at(s, values[0], 1));
  next[1] = named(s, "inner", values[1]);
}

// A loop stays on one device, together with what enters and leaves it.
RT_TEST(automatic, loops_stay_together) {
  rt_t rt = rt_begin(1);
  rn_costs_t* costs = new_costs();
  rn_edge_t x = rn_const_float(rt.s, 1);
  rn_edge_t before = named(rt.s, "before", x), beside = named(rt.s, "beside", x);
  rt_loop_t loop = {.frame = "loop",
                    .count = 2,
                    .start = {rn_const_float(rt.s, 0), before},
                    .cond = count_cond,
                    .body = count_body};
  rt_loop(rt.s, &loop);
  tell(costs, "inner", "Tanh", 9000000);
  tell(costs, "before", "Tanh", 3000000);
  tell(costs, "beside", "Tanh", 9000000);
  found_t found;
  find(&rt, rn_AddV2(rt.s, loop.exits[1], beside), costs, &found);
  int32_t at = where(&found, "inner"), in_loop = 0;
  cr_expect_neq(where(&found, "beside"), at);
  for (int32_t n = 0; n < found.result.step.work.node_count; ++n) {
    const rn_ir_node_t* node = rn_ir_node(found.ir, found.result.step.nodes[n]);
    if (!rn_ir_is_control_flow(node->op->role)) continue;
    cr_expect_eq(rn_auto_device(&found.result, n), at, "%.*s", RN_STR_ARGS(node->name));
    in_loop++;
  }
  cr_expect_geq(in_loop, 9);
  found_clear(&found);
  rn_costs_destroy(costs);
  rt_end(&rt);
}

// Nodes of a trace get the median of their times; nodes without an entry were fused away.
RT_TEST(automatic, learns_from_traces) {
  rt_t rt = rt_begin(1);
  rn_costs_t* costs = new_costs();
  rn_edge_t a = named(rt.s, "a", rn_const_float(rt.s, 1)), b = named(rt.s, "b", a);
  rn_signature_t signature = {.fetches = &b, .fetch_count = 1};
  rn_ir_t* ir = NULL;
  OK(rn_ir_create(rt.graph, &signature, &ir));
  rn_str_t cpu = RN_STR("/job:localhost/replica:0/task:0/device:CPU:0");
  rn_trace_entry_t entries[] = {{RN_STR("b"), cpu, 900, 4, 0}, {RN_STR("b"), cpu, 100, 4, 1},
                                {RN_STR("b"), cpu, 50, 4, 1},  {RN_STR("b"), cpu, 200, 4, 2},
                                {RN_STR("b"), cpu, 1, 4, -7},  {RN_STR("?"), cpu, 5, 0, 0}};
  OK(rn_costs_learn(costs, ir, entries, sizeof entries / sizeof *entries));
  rn_cost_source_t source;
  rn_cost_key_t key = {.node = RN_STR("b"), .device = "CPU", .op = RN_STR("Tanh")};
  cr_expect_eq(rn_costs_find(costs, &key, &source), 200);
  cr_expect_eq(source, RN_COST_OF_NODE);
  key.node = RN_STR("a");
  cr_expect_eq(rn_costs_find(costs, &key, &source), 0);
  cr_expect_eq(source, RN_COST_OF_NODE);
  rn_ir_destroy(ir);
  rn_costs_destroy(costs);
  rt_end(&rt);
}

// A ConfigProto that asks for a placement of |step| with the costs in |file|.
static void write_config(const char* step, const char* file, rn_strbuf_t* out) {
  const char* texts[][2] = {{"step", step}, {"costs", file}};
  size_t graph = rn_pb_begin(out, rn_pb_ConfigProto_graph_options_field);
  size_t rewrite = rn_pb_begin(out, rn_pb_GraphOptions_rewrite_options_field);
  size_t asked = rn_pb_begin(out, rn_pb_RewriterConfig_custom_optimizers_field);
  rn_pb_put_str(out, rn_pb_RewriterConfig_CustomGraphOptimizer_name_field,
                RN_STR("runnel_placement"));
  for (int i = 0; i < 2; ++i) {
    size_t entry = rn_pb_begin(out, rn_pb_RewriterConfig_CustomGraphOptimizer_parameter_map_field);
    rn_pb_put_str(out, 1, rn_str(texts[i][0]));
    size_t value = rn_pb_begin(out, 2);
    rn_pb_put_str(out, rn_pb_AttrValue_s_field, rn_str(texts[i][1]));
    rn_pb_end(out, value);
    rn_pb_end(out, entry);
  }
  size_t entry = rn_pb_begin(out, rn_pb_RewriterConfig_CustomGraphOptimizer_parameter_map_field);
  rn_pb_put_str(out, 1, RN_STR("apart"));
  size_t value = rn_pb_begin(out, 2);
  rn_pb_put_uint(out, rn_pb_AttrValue_b_field, 1);
  rn_pb_end(out, value);
  rn_pb_end(out, entry);
  rn_pb_end(out, asked);
  rn_pb_end(out, rewrite);
  rn_pb_end(out, graph);
}

static int device_of(const rn_step_stats_t* stats, const char* name) {
  for (size_t i = 0; i < stats->nodes.count; ++i) {
    rn_str_t device = stats->nodes.items[i].device;
    if (rn_str_is(stats->nodes.items[i].node, name)) return device.data[device.size - 1] - '0';
  }
  return -1;
}

// A variable on each side: the initializer, which runs first, puts each where the training step
// needs it, and both keep their values.
RT_TEST(automatic, sessions) {
  rt_t rt = rt_begin(2);
  rn_costs_t* costs = new_costs();
  rn_node_t* inits[2];
  rn_edge_t ends[2];
  for (int c = 0; c < 2; ++c) {
    char name[16];
    snprintf(name, sizeof name, "v%d", c);
    rn_scope_name_next(rt.s, name);
    rn_edge_t v = rn_VariableV2(rt.s, NULL, 0, RN_FLOAT);
    inits[c] = rn_Assign(rt.s, v, rn_const_float(rt.s, (float)(c + 1))).node;
    rn_edge_t ten = rn_const_float(rt.s, 10);
    snprintf(name, sizeof name, "add%d", c);
    rn_scope_name_next(rt.s, name);
    rn_edge_t added = rn_AssignAdd(rt.s, v, ten);
    snprintf(name, sizeof name, "work%d", c);
    ends[c] = named(rt.s, name, added);
    tell(costs, name, "Tanh", 7000000);
  }
  rn_scope_name_next(rt.s, "step");
  rn_edge_t step = rn_AddV2(rt.s, ends[0], ends[1]);
  char file[] = "/tmp/runnel_costs_XXXXXX";
  int opened = mkstemp(file);
  cr_assert_geq(opened, 0);
  close(opened);
  rn_strbuf_t text, config;
  rn_strbuf_init(&text, rn_allocator_system());
  rn_strbuf_init(&config, rn_allocator_system());
  OK(rn_costs_write(costs, &text));
  OK(rn_fs_write(rn_env_system(), file, rn_strbuf_view(&text)));
  write_config("step", file, &config);
  rt.options.cpu_devices = 2;
  rt.options.optimize = false;
  rt.options.config = rn_strbuf_view(&config);
  for (int c = 0; c < 2; ++c) rt_do(&rt, inits[c]);
  for (int i = 0; i < 2; ++i) {
    rn_step_stats_t stats;
    rn_step_stats_init(&stats, rn_allocator_system(), rn_env_system());
    rt_step_t run = {.options = {.stats = &stats, .timeout_ms = TIMEOUT_MS}};
    rt_fetch(&run, step);
    rt_fetch(&run, (rn_edge_t){rn_graph_find(rt.graph, RN_STR("add1")), 0});
    OK(rt_run(&rt, &run));
    cr_expect_eq(rt_value(&run.out[1]), (float)(12 + 10 * i), "%g", (double)rt_value(&run.out[1]));
    cr_expect_neq(device_of(&stats, "work0"), device_of(&stats, "work1"));
    for (int c = 0; c < 2; ++c) {
      char add[16], work[16];
      snprintf(add, sizeof add, "add%d", c);
      snprintf(work, sizeof work, "work%d", c);
      cr_expect_eq(device_of(&stats, add), device_of(&stats, work), "%s", add);
    }
    rt_clear(&run);
    rn_step_stats_clear(&stats);
  }
  unlink(file);
  rn_strbuf_clear(&text);
  rn_strbuf_clear(&config);
  rn_costs_destroy(costs);
  rt_end(&rt);
}

static rn_status_t open_with(const char* step, const char* file) {
  rt_t rt = rt_begin(1);
  rn_strbuf_t config;
  rn_strbuf_init(&config, rn_allocator_system());
  write_config(step, file, &config);
  rt.options.config = rn_strbuf_view(&config);
  rn_status_t status =
      rn_session_create(rt.graph, &rt.options, rn_env_system(), rn_allocator_system(), &rt.session);
  rn_strbuf_clear(&config);
  rt_end(&rt);
  return status;
}

RT_TEST(automatic, bad_files) {
  FAILS_WITH(open_with("", "/nowhere/costs"), NOT_FOUND, "/nowhere/costs");
  FAILS_WITH(open_with("", "/dev/null"), INVALID_ARGUMENT, "FULL_TRACE");
  OK(open_with("no_such_node", ""));
}
