// The verifiers report what a broken pass or a broken memory plan leaves behind.
#include "step/verify.h"

#include "device/device.h"
#include "exec/verify_plan.h"
#include "session/passes.h"
#include "util.h"

enum { kRows = 64 };

// y = tanh(x w) - exp(x), planned on one CPU.
typedef struct case_t {
  rt_t rt;
  rn_env_t env;
  rn_device_t* device;
  rn_planner_t planner;
  rn_kernel_cache_t kernels;
  rn_edge_t x, y;
  rn_ir_t* ir;
} case_t;

static void case_open(case_t* c) {
  *c = (case_t){.rt = rt_begin(1), .env = *rn_env_system()};
  rn_scope_t* s = c->rt.s;
  const int64_t square[] = {kRows, kRows};
  c->x = rn_Placeholder(s, RN_FLOAT, .shape = {true, square, 2});
  c->y = rn_Sub(s, rn_Tanh(s, rn_MatMul(s, c->x, c->x)), rn_Exp(s, c->x));
  cr_assert(rn_scope_ok(s), "%s", rn_scope_message(s));
  rn_allocator_t allocator = rn_allocator_system();
  OK(rn_cpu_device_create(allocator, RN_STR("/job:localhost/replica:0/task:0"), 0, &c->env,
                          &c->device));
  rn_kernel_cache_init(&c->kernels, allocator);
  c->planner = (rn_planner_t){.allocator = allocator,
                              .env = &c->env,
                              .place = {.devices = &c->device, .device_count = 1, .env = &c->env},
                              .kernels = &c->kernels,
                              .threads = 1,
                              .optimize = false,
                              .debug = {.verifies = true}};
  rn_signature_t signature = {.feeds = &c->x, .feed_count = 1, .fetches = &c->y, .fetch_count = 1};
  OK(rn_ir_create(c->rt.graph, &signature, &c->ir));
}

static void case_close(case_t* c) {
  rn_ir_destroy(c->ir);
  rn_kernel_cache_clear(&c->kernels);
  rn_device_destroy(c->device);
  rt_end(&c->rt);
}

static int32_t node_of(const rn_ir_t* ir, const char* op) {
  for (size_t n = 0; n < ir->nodes.count; ++n)
    if (ir->nodes.items[n].feed < 0 && strcmp(ir->nodes.items[n].op->name, op) == 0)
      return (int32_t)n;
  cr_assert_fail("no node of op %s", op);
  return -1;
}

static rn_status_t break_edge(const rn_planner_t* planner, rn_ir_t* ir) {
  (void)planner;
  rn_ir_node(ir, node_of(ir, "Tanh"))->is_removed = true;
  return RN_OK;
}

static rn_status_t break_output(const rn_planner_t* planner, rn_ir_t* ir) {
  (void)planner;
  rn_ir_node(ir, node_of(ir, "Sub"))->inputs[1].output = 1;
  return RN_OK;
}

static rn_status_t break_type(const rn_planner_t* planner, rn_ir_t* ir) {
  (void)planner;
  rn_ir_node(ir, node_of(ir, "Exp"))->types[0] = RN_DOUBLE;
  return RN_OK;
}

static rn_status_t break_shape(const rn_planner_t* planner, rn_ir_t* ir) {
  (void)planner;
  static const int64_t wrong[] = {kRows, kRows + 1};
  rn_ir_node(ir, node_of(ir, "Tanh"))->shapes[0] = (rn_shape_t){2, wrong};
  return RN_OK;
}

static rn_status_t break_order(const rn_planner_t* planner, rn_ir_t* ir) {
  (void)planner;
  return rn_ir_add_control(ir, node_of(ir, "MatMul"), node_of(ir, "Sub"));
}

static rn_status_t break_fetch(const rn_planner_t* planner, rn_ir_t* ir) {
  (void)planner;
  ir->fetches[0].node = (int32_t)ir->nodes.count;
  return RN_OK;
}

static rn_status_t forget_device(const rn_planner_t* planner, rn_ir_t* ir) {
  (void)planner;
  rn_ir_node(ir, node_of(ir, "Exp"))->device = NULL;
  return RN_OK;
}

static void expect_found(rn_status_t (*run)(const rn_planner_t*, rn_ir_t*), rn_ir_stage_t stage,
                         const char* message) {
  case_t c;
  case_open(&c);
  OK(rn_passes_run(&c.planner, rn_passes, rn_pass_count, c.ir));
  rn_pass_t broken = {.name = "broken", .run = run, .stage = stage};
  rn_status_t status = rn_passes_run(&c.planner, &broken, 1, c.ir);
  cr_assert(!rn_ok(status), "not found: %s", message);
  cr_assert(strstr(rn_status_message(status), message), "%s", rn_status_message(status));
  rn_status_free(status);
  case_close(&c);
}

RT_TEST(verify, a_pass_that_breaks_an_edge) {
  expect_found(break_edge, RN_IR_PARTITIONED, "which was removed");
  expect_found(break_output, RN_IR_PARTITIONED, "which has 1 outputs");
}
RT_TEST(verify, a_pass_that_breaks_a_type) {
  expect_found(break_type, RN_IR_PARTITIONED, "wants float and gets double");
}
RT_TEST(verify, a_pass_that_breaks_a_shape) {
  expect_found(break_shape, RN_IR_PARTITIONED, "by its inputs' shapes");
}
RT_TEST(verify, a_pass_that_makes_a_cycle) {
  expect_found(break_order, RN_IR_PARTITIONED, "contains a cycle");
}
RT_TEST(verify, a_pass_that_loses_a_fetch) {
  expect_found(break_fetch, RN_IR_PARTITIONED, "which does not exist");
}
RT_TEST(verify, a_pass_that_forgets_a_device) {
  expect_found(forget_device, RN_IR_PLACED, "placement gave it no device");
}

RT_TEST(verify, a_memory_plan_with_two_values_in_one_place) {
  case_t c;
  case_open(&c);
  OK(rn_passes_run(&c.planner, rn_passes, rn_pass_count, c.ir));
  rn_plan_options_t options = {
      .device = c.device, .host = c.device, .env = &c.env, .kernels = &c.kernels, .threads = 1};
  rn_plan_t* plan = NULL;
  OK(rn_plan_create(c.ir, &options, rn_allocator_system(), &plan));
  OK(rn_plan_verify(plan));
  int broken = 0;
  for (int32_t s = 0; s < plan->slot_count; ++s) {
    if (plan->slots[s].kind != RN_SLOT_PLANNED) continue;
    size_t offset = plan->slots[s].offset;
    plan->slots[s].offset = plan->block_size;
    FAILS_WITH(rn_plan_verify(plan), INTERNAL, "of a block of");
    // Where the other value lies that lives at the same time.
    plan->slots[s].offset = offset ? 0 : offset + RN_ALIGN;
    rn_status_t status = rn_plan_verify(plan);
    broken += !rn_ok(status);
    rn_status_free(status);
    plan->slots[s].offset = offset;
  }
  cr_assert_geq(broken, 1, "no two values in one place were found");
  OK(rn_plan_verify(plan));
  rn_plan_destroy(plan);
  case_close(&c);
}
