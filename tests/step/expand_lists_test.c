// Nodes that stand for several: _SwitchN, _VarHandlesOp and _ReadVariablesOp.
#include "util.h"

static rn_edge_t index_input(rt_t* rt) { return rn_Placeholder(rt->s, RN_INT32); }

// The sum of |outs| different numbers, of which only the chosen one is alive.
static rn_edge_t chosen(rt_t* rt, rn_edge_t index, int outs) {
  rn_scope_t* s = rt->s;
  rn_edge_t one = rn_const_float(s, 1), values[4] = {{0}};
  rn_op_begin(s, "_SwitchN");
  rn_op_input(s, one);
  rn_op_input(s, index);
  rn_op_attr_int(s, "num_outs", outs);
  rn_node_t* node = rn_op_finish(s);
  for (int i = 0; i < outs; ++i) {
    rn_edge_t out = {node, i};
    values[i] = rn_Mul(s, out, rn_const_float(s, (float)(10 + i)));
  }
  return rn_Merge(s, values, outs).output;
}

static float choose(int outs, int32_t index) {
  rt_t rt = rt_begin(1);
  rn_edge_t in = index_input(&rt), out = chosen(&rt, in, outs);
  rn_tensor_t fed = {0};
  OK(rn_tensor_create(rn_allocator_system(), RN_INT32, RN_SHAPE_SCALAR, &fed));
  *RN_DATA(&fed, int32_t) = index;
  rt_step_t step = {0};
  rt_feed(&step, in, &fed);
  rt_fetch(&step, out);
  OK(rt_run(&rt, &step));
  float value = *RN_DATA(&step.out[0], float);
  rt_clear(&step);
  rn_tensor_clear(&fed);
  rt_end(&rt);
  return value;
}

RT_TEST(expand_lists, switch_n) {
  for (int outs = 1; outs <= 4; ++outs)
    for (int32_t index = -1; index < 6; ++index) {
      int taken = index < 0 || index >= outs ? outs - 1 : index;
      cr_expect_eq(choose(outs, index), (float)(10 + taken), "%d of %d", index, outs);
    }
}

static const int types[] = {RN_FLOAT, RN_FLOAT};

// Two variables, of which handles and values come from one node each.
RT_TEST(expand_lists, variables) {
  rt_t rt = rt_begin(1);
  rn_scope_t* s = rt.s;
  const char *containers[] = {"", ""}, *names[] = {"a", "b"};
  rn_op_begin(s, "_VarHandlesOp");
  rn_op_attr_string_list(s, "containers", containers, 2);
  rn_op_attr_string_list(s, "shared_names", names, 2);
  rn_op_attr_int(s, "N", 2);
  rn_op_attr_type_list(s, "dtypes", types, 2);
  const int64_t* no_dims[] = {NULL, NULL};
  const int ranks[] = {0, 0};
  rn_op_attr_shape_list(s, "shapes", no_dims, ranks, 2);
  rn_node_t* handles = rn_op_finish(s);
  cr_assert(handles, "%s", rn_scope_message(s));
  rn_edge_t both[] = {{handles, 0}, {handles, 1}};
  rn_node_t* set[] = {rn_AssignVariableOp(s, both[0], rn_const_float(s, 3)),
                      rn_AssignVariableOp(s, both[1], rn_const_float(s, 4))};
  rn_op_begin(s, "_ReadVariablesOp");
  rn_op_input_list(s, both, 2);
  rn_op_attr_type_list(s, "dtypes", types, 2);
  for (int i = 0; i < 2; ++i) rn_op_control(s, set[i]);
  rn_node_t* reads = rn_op_finish(s);
  cr_assert(reads, "%s", rn_scope_message(s));
  rn_edge_t a = {reads, 0}, b = {reads, 1};
  rn_edge_t sum = rn_Add(s, a, rn_Mul(s, b, rn_const_float(s, 10)));
  cr_expect_eq(rt_get(&rt, sum, RN_NO_EDGE, 0), 43);
  rt_end(&rt);
}
