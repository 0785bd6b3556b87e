// Weights that are cast to bfloat16 once: the results of the graph as it was built, also when the
// variables get other values, and nothing kept in a step that changes variables.
#include "device/device.h"
#include "graph_of_step.h"
#include "util.h"

typedef struct kept_net_t {
  rt_t rt;
  rn_edge_t x, image, y, conv, variable, filter;
} kept_net_t;

static rn_edge_t numbers(rn_scope_t* s, const int64_t* dims, int rank, float first) {
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= dims[i];
  float* values = malloc((size_t)count * sizeof *values);
  cr_assert(values);
  for (int64_t i = 0; i < count; ++i) values[i] = first + (float)(i * 7 % 31) / 16;
  rn_edge_t edge = rn_const(s, RN_FLOAT, dims, rank, values);
  free(values);
  return edge;
}

static rn_edge_t variable(kept_net_t* net, const int64_t* dims, int rank) {
  rn_scope_t* s = net->rt.s;
  rn_edge_t handle = rn_VarHandleOp(s, RN_FLOAT, dims, rank);
  rt_step_t step = {0};
  rt_target(&step, rn_AssignVariableOp(s, handle, numbers(s, dims, rank, 0.5f)));
  OK(rt_run(&net->rt, &step));
  return handle;
}

static rn_edge_t cast_read(rn_scope_t* s, rn_edge_t handle) {
  return rn_Cast(s, rn_ReadVariableOp(s, handle, RN_FLOAT), RN_BFLOAT16);
}

static kept_net_t net_of(bool optimize) {
  kept_net_t net = {.rt = rt_begin(2)};
  net.rt.options.optimize = optimize;
  rn_scope_t* s = net.rt.s;
  const int64_t w[] = {33, 18}, x[] = {5, 33}, filter[] = {3, 3, 4, 9}, image[] = {1, 6, 5, 4};
  net.variable = variable(&net, w, 2);
  net.filter = variable(&net, filter, 4);
  net.x = rn_Placeholder(s, RN_BFLOAT16, .shape = {true, x, 2});
  net.image = rn_Placeholder(s, RN_BFLOAT16, .shape = {true, image, 4});
  net.y = rn_Cast(s, rn_MatMul(s, net.x, cast_read(s, net.variable)), RN_FLOAT);
  const int64_t strides[4] = {1, 1, 1, 1};
  rn_edge_t conv = rn_Conv2D(s, net.image, cast_read(s, net.filter), strides, 4, "SAME");
  net.conv = rn_Cast(s, rn_Relu(s, conv), RN_FLOAT);
  return net;
}

static rn_tensor_t fed(const int64_t* dims, int rank) {
  rn_tensor_t value = {0};
  OK(rn_tensor_create(rn_allocator_system(), RN_BFLOAT16, (rn_shape_t){rank, dims}, &value));
  for (int64_t i = 0; i < value.count; ++i)
    RN_DATA(&value, uint16_t)[i] = (uint16_t)(0x3f00 + i * 11 % 160);
  return value;
}

static void feed_and_fetch(kept_net_t* net, rn_tensor_t values[2], rt_step_t* step) {
  values[0] = fed((const int64_t[]){5, 33}, 2);
  values[1] = fed((const int64_t[]){1, 6, 5, 4}, 4);
  rt_feed(step, net->x, &values[0]);
  rt_feed(step, net->image, &values[1]);
  rt_fetch(step, net->y);
  rt_fetch(step, net->conv);
}

static void run(kept_net_t* net, rn_tensor_t out[2]) {
  rt_step_t step = {0};
  rn_tensor_t values[2];
  feed_and_fetch(net, values, &step);
  OK(rt_run(&net->rt, &step));
  for (int i = 0; i < 2; ++i) {
    out[i] = step.out[i];
    rn_tensor_clear(&values[i]);
  }
}

static void assign(kept_net_t* net, float first) {
  rn_scope_t* s = net->rt.s;
  rt_step_t step = {0};
  rt_target(&step,
            rn_AssignVariableOp(s, net->variable, numbers(s, (const int64_t[]){33, 18}, 2, first)));
  rt_target(&step, rn_AssignAddVariableOp(s, net->filter,
                                          numbers(s, (const int64_t[]){3, 3, 4, 9}, 4, first)));
  OK(rt_run(&net->rt, &step));
}

RT_TEST(keep_weights, new_values_are_seen) {
  kept_net_t plain = net_of(false), kept = net_of(true);
  for (int turn = 0; turn < 4; ++turn) {
    if (turn > 1) assign(&plain, (float)turn);
    if (turn > 1) assign(&kept, (float)turn);
    rn_tensor_t wanted[2], got[2];
    run(&plain, wanted);
    run(&kept, got);
    for (int i = 0; i < 2; ++i) {
      cr_assert_eq(got[i].count, wanted[i].count);
      cr_assert(memcmp(got[i].data, wanted[i].data, rn_tensor_bytes(&got[i])) == 0,
                "result %d in turn %d", i, turn);
      rn_tensor_clear(&got[i]);
      rn_tensor_clear(&wanted[i]);
    }
  }
  rt_end(&plain.rt);
  rt_end(&kept.rt);
}

static rn_ir_t* passed(kept_net_t* net, rn_node_t* target) {
  rt_step_t step = {0};
  rn_tensor_t values[2];
  feed_and_fetch(net, values, &step);
  if (target) rt_target(&step, target);
  rn_ir_t* ir = graph_of_step(&net->rt, &step);
  static rn_device_t host = {.type = "CPU", .is_host = true};
  for (size_t n = 0; n < ir->nodes.count; ++n) ir->nodes.items[n].device = &host;
  OK(rn_pass_keep_weights(ir));
  for (int i = 0; i < 2; ++i) rn_tensor_clear(&values[i]);
  return ir;
}

RT_TEST(keep_weights, only_where_no_variable_changes) {
  kept_net_t net = net_of(true);
  rn_ir_t* ir = passed(&net, NULL);
  cr_expect_eq(count_nodes(ir, "_KeptMatMul"), 1);
  cr_expect_eq(count_nodes(ir, "_KeptCast"), 1);
  cr_expect_eq(count_nodes(ir, "MatMul"), 0);
  cr_expect_eq(count_nodes(ir, "Cast"), 2);  // of the results
  rn_ir_destroy(ir);
  rn_node_t* change = rn_AssignVariableOp(net.rt.s, net.filter,
                                          numbers(net.rt.s, (const int64_t[]){3, 3, 4, 9}, 4, 1));
  ir = passed(&net, change);
  cr_expect_eq(count_nodes(ir, "_KeptMatMul") + count_nodes(ir, "_KeptCast"), 0);
  rn_ir_destroy(ir);
  rt_end(&net.rt);
}
