// Resource handles that were serialized find their resource when they are decoded in the same
// session.
#include "tensor/tensor_proto.h"
#include "util.h"

static rn_tensor_t there_and_back(const rn_tensor_t* handle) {
  rn_arena_t arena;
  rn_arena_init(&arena, rn_allocator_system());
  rn_pb_TensorProto_t proto;
  rn_tensor_t back;
  OK(rn_tensor_to_proto(handle, RN_TENSOR_AUTO, &arena, &proto));
  cr_assert_eq(proto.resource_handle_val.count, 1);
  cr_assert(rn_str_is(proto.resource_handle_val.items[0].maybe_type_name, RN_VARIABLE_TYPE));
  OK(rn_tensor_from_proto(&proto, 1000, rn_allocator_system(), &back));
  rn_arena_clear(&arena);
  return back;
}

RT_TEST(handles, find_their_resource) {
  rt_t rt = rt_begin(1);
  rn_scope_name_next(rt.s, "v");
  rn_edge_t v = rn_VarHandleOp(rt.s, RN_FLOAT, NULL, 0);
  rn_node_t* assign = rn_AssignVariableOp(rt.s, v, rn_const_float(rt.s, 3));
  rn_edge_t fed = rn_Placeholder(rt.s, RN_RESOURCE);
  rn_edge_t value = rn_ReadVariableOp(rt.s, fed, RN_FLOAT);
  rt_do(&rt, assign);
  rt_step_t step = {0};
  rt_fetch(&step, v);
  OK(rt_run(&rt, &step));
  rn_tensor_t handle = there_and_back(&step.out[0]);
  rt_clear(&step);
  for (int turn = 0; turn < 2; ++turn) {
    rt_step_t read = {0};
    rt_feed(&read, fed, &handle);
    rt_fetch(&read, value);
    OK(rt_run(&rt, &read));
    cr_assert_eq(rt_value(&read.out[0]), 3);
    rt_clear(&read);
  }
  rn_tensor_clear(&handle);
  rt_end(&rt);
}

RT_TEST(handles, to_nothing) {
  rt_t rt = rt_begin(1);
  rn_edge_t fed = rn_Placeholder(rt.s, RN_RESOURCE);
  rn_edge_t value = rn_ReadVariableOp(rt.s, fed, RN_FLOAT);
  for (int named = 0; named < 2; ++named) {
    rn_pb_ResourceHandleProto_t address = {.name = named ? RN_STR("gone") : RN_STR("")};
    rn_pb_TensorProto_t proto = {.dtype = RN_RESOURCE, .resource_handle_val = {&address, 1, 1}};
    rn_tensor_t handle;
    OK(rn_tensor_from_proto(&proto, 1000, rn_allocator_system(), &handle));
    rt_step_t step = {0};
    rt_feed(&step, fed, &handle);
    rt_fetch(&step, value);
    if (named)
      FAILS_WITH(rt_run(&rt, &step), NOT_FOUND, "gone");
    else
      FAILS_WITH(rt_run(&rt, &step), INVALID_ARGUMENT, "empty handle");
    rn_tensor_clear(&handle);
  }
  rt_end(&rt);
}
