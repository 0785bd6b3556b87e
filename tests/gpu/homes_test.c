// A variable stays on one device, whichever of its users a step runs.
#include "runnel/control_flow.h"
#include "util.h"

static rn_edge_t handle(rt_t* rt) {
  rn_scope_name_next(rt->s, "v");
  return rn_VarHandleOp(rt->s, RN_INT64, RN_SHAPE_SCALAR.dims, 0);
}

static rn_edge_t five(rt_t* rt) { return rn_const_scalar(rt->s, RN_INT64, 5); }

static int64_t get(rt_t* rt, rn_edge_t fetch) {
  rt_step_t step = {0};
  rt_fetch(&step, fetch);
  OK(rt_run(rt, &step));
  int64_t value = *RN_DATA(&step.out[0], int64_t);
  rt_clear(&step);
  return value;
}

// GPUs assign to the variable and read it, but only the CPU counts. No step runs all of them.
RT_TEST(homes, users_in_other_steps_count) {
  rt_t rt = rt_begin(1);
  rn_edge_t v = handle(&rt);
  rn_node_t* assign = rn_AssignVariableOp(rt.s, v, five(&rt));
  rn_edge_t read = rn_ReadVariableOp(rt.s, v, RN_INT64);
  rn_edge_t next = rn_ResourceCountUpTo(rt.s, v, 100, RN_INT64);
  rt_do(&rt, assign);
  cr_assert_eq(get(&rt, read), 5);
  cr_assert_eq(get(&rt, next), 5);
  cr_assert_eq(get(&rt, next), 6);
  cr_assert_eq(get(&rt, read), 7);
  rt_end(&rt);
}

// A variable that has lived on the GPU does not move for a user that comes later.
RT_TEST(homes, later_users_follow) {
  rt_t rt = rt_begin(1);
  rn_edge_t v = handle(&rt);
  rt_do(&rt, rn_AssignVariableOp(rt.s, v, five(&rt)));
  cr_assert_eq(get(&rt, rn_ReadVariableOp(rt.s, v, RN_INT64)), 5);
  rn_status_t status = rt_try(&rt, rn_ResourceCountUpTo(rt.s, v, 100, RN_INT64));
  cr_assert_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT);
  cr_assert(strstr(rn_status_message(status), "Cannot colocate nodes"), "%s",
            rn_status_message(status));
  rn_status_free(status);
  cr_assert_eq(get(&rt, rn_ReadVariableOp(rt.s, v, RN_INT64)), 5);
  rt_end(&rt);
}

// A node that no device can run does not disturb the steps without it.
RT_TEST(homes, misfits_elsewhere_are_ignored) {
  rt_t rt = rt_begin(1);
  rn_edge_t v = handle(&rt);
  rn_node_t* assign = rn_AssignVariableOp(rt.s, v, five(&rt));
  rn_scope_set_device(rt.s, "/device:TPU:3");
  rn_edge_t lost = rn_ReadVariableOp(rt.s, v, RN_INT64);
  rt_do(&rt, assign);
  rn_status_t status = rt_try(&rt, lost);
  cr_assert_eq(rn_status_code(status), RN_CODE_INVALID_ARGUMENT, "%s", rn_status_message(status));
  rn_status_free(status);
  rt_end(&rt);
}

// With soft placement, a variable on "/gpu:0" follows a user that only the CPU has a kernel for.
RT_TEST(homes, soft_placement_moves_state) {
  for (int soft = 0; soft < 2; ++soft) {
    rt_t rt = rt_begin(1);
    rt.options.allow_soft_placement = soft;
    rn_scope_set_device(rt.s, "/gpu:0");
    rn_edge_t v = handle(&rt);
    rn_node_t* assign = rn_AssignVariableOp(rt.s, v, five(&rt));
    rn_edge_t read = rn_ReadVariableOp(rt.s, v, RN_INT64);
    rn_scope_set_device(rt.s, NULL);
    rn_edge_t next = rn_ResourceCountUpTo(rt.s, v, 100, RN_INT64);
    rt_do(&rt, assign);
    cr_assert_eq(get(&rt, read), 5);
    if (soft)
      cr_assert_eq(get(&rt, next), 5);
    else
      FAILS_WITH(rt_try(&rt, next), INVALID_ARGUMENT, "Cannot colocate nodes");
    cr_assert_eq(get(&rt, read), soft ? 6 : 5);
    rt_end(&rt);
  }
}

static int read_twice(rn_scope_t* s, rn_edge_t* out, void* arg) {
  rn_edge_t read = rn_ReadVariableOp(s, *(const rn_edge_t*)arg, RN_INT64);
  out[0] = rn_AddV2(s, read, read);
  return 1;
}

static int read_once(rn_scope_t* s, rn_edge_t* out, void* arg) {
  out[0] = rn_ReadVariableOp(s, *(const rn_edge_t*)arg, RN_INT64);
  return 1;
}

// A function that is called, not inlined, reads a variable where the variable is.
RT_TEST(homes, functions_go_to_their_resources) {
  static const char* const devices[] = {"/cpu:0", "/gpu:0"};
  for (int d = 0; d < 2; ++d) {
    rt_t rt = rt_begin(1);
    rt.options.optimize = false;
    rn_scope_set_device(rt.s, devices[d]);
    rn_edge_t v = handle(&rt);
    rn_node_t* assign = rn_AssignVariableOp(rt.s, v, five(&rt));
    rn_scope_set_device(rt.s, NULL);
    rn_op_begin(rt.s, "Placeholder");
    rn_op_attr_type(rt.s, "dtype", RN_BOOL);
    rn_edge_t which = {rn_op_finish(rt.s), 0}, out;
    rn_cond(rt.s, which, rn_branch(read_twice, &v), rn_branch(read_once, &v), &out, 1,
            .functional = true);
    rt_do(&rt, assign);
    for (int turn = 0; turn < 4; ++turn) {
      rt_step_t step = {0};
      rn_tensor_t fed = rt_bool(turn % 2);
      rt_feed(&step, which, &fed);
      rt_fetch(&step, out);
      OK(rt_run(&rt, &step));
      cr_assert_eq(*RN_DATA(&step.out[0], int64_t), turn % 2 ? 10 : 5);
      rt_clear(&step);
      rn_tensor_clear(&fed);
    }
    rt_end(&rt);
  }
}
