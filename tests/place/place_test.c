// Placement: which device a node gets, the message if there is none, and colocation.
#include "util.h"

static rn_status_t try_on(const char* device, bool soft, int nulls, const char* op) {
  rt_t rt = rt_begin(1);
  rt.options.null_devices = nulls;
  rt.options.allow_soft_placement = soft;
  rn_edge_t x = rn_const_float(rt.s, 1);
  rn_scope_set_device(rt.s, device);
  rn_scope_name_next(rt.s, "g");
  rn_edge_t y = rt_op(rt.s, op, x);
  rn_status_t status = rt_try(&rt, y);
  rt_end(&rt);
  return status;
}

RT_TEST(place, unknown_devices) {
  FAILS_WITH(try_on("/device:GPU:0", false, 0, "Neg"), INVALID_ARGUMENT,
             "Cannot assign a device for operation g: {{node g}} was explicitly assigned to "
             "/device:GPU:0 but available devices are [ "
             "/job:localhost/replica:0/task:0/device:CPU:0 ]. Make sure the device specification "
             "refers to a valid device. The requested device appears to be a GPU, but CUDA is not "
             "enabled.\n\t [[g]]");
  FAILS_WITH(try_on("/job:foo", false, 0, "Neg"), INVALID_ARGUMENT,
             "was explicitly assigned to /job:foo but available devices are [ "
             "/job:localhost/replica:0/task:0/device:CPU:0 ]. Make sure the device specification "
             "refers to a valid device.\n\t [[g]]");
  FAILS_WITH(try_on("/device:CPU:7", false, 0, "Neg"), INVALID_ARGUMENT, "/device:CPU:7");
  FAILS_WITH(try_on("bad:dev:name", false, 0, "Neg"), INVALID_ARGUMENT,
             "Malformed device specification 'bad:dev:name'");
  OK(try_on("/device:CPU:0", false, 0, "Neg"));
  OK(try_on("/cpu:0", false, 0, "Neg"));
  OK(try_on("/job:localhost", false, 0, "Neg"));
  OK(try_on("CPU:0", false, 0, "Neg"));
}

RT_TEST(place, soft_placement) {
  OK(try_on("/device:GPU:0", true, 0, "Neg"));
  FAILS_WITH(try_on("/job:foo/device:CPU:0", true, 0, "Neg"), INVALID_ARGUMENT, "/job:foo");
  // A kernel exists, but not there.
  FAILS_WITH(try_on("/device:NULL:0", false, 1, "TestCount"), INVALID_ARGUMENT,
             "Cannot assign a device for operation g: Could not satisfy explicit device "
             "specification '/device:NULL:0' because no supported kernel for NULL devices is "
             "available.");
  OK(try_on("/device:NULL:0", true, 1, "TestCount"));
}

RT_TEST(place, no_kernel) {
  static const rn_op_def_t bare = RT_OP("TestBare", RN_OP_STATEFUL);
  OK(rn_op_register(&bare));
  FAILS_WITH(try_on("", false, 0, "TestBare"), INVALID_ARGUMENT,
             "No OpKernel was registered to support Op 'TestBare' used by {{node g}}");
}

// Which device each node ran on.
static int device_of(const rn_step_stats_t* stats, const char* name) {
  for (size_t i = 0; i < stats->nodes.count; ++i) {
    if (!rn_str_is(stats->nodes.items[i].node, name)) continue;
    rn_str_t device = stats->nodes.items[i].device;
    bool is_cpu = device.data[device.size - 5] == 'C';
    return (is_cpu ? 0 : 100) + device.data[device.size - 1] - '0';
  }
  return -1;
}

static void add_class(rn_scope_t* s, const char* name) {
  char text[64];
  snprintf(text, sizeof text, "loc:@%s", name);
  const char* texts[] = {text};
  rn_op_attr_string_list(s, "_class", texts, 1);
}

RT_TEST(place, colocation) {
  rt_t rt = rt_begin(1);
  rt.options.null_devices = 2;
  rt.options.optimize = false;
  rn_edge_t x = rt_placeholder(&rt, "x");
  rn_scope_set_device(rt.s, "/device:NULL:1");
  rn_scope_name_next(rt.s, "a");
  rn_edge_t a = rn_Neg(rt.s, x);
  rn_scope_set_device(rt.s, NULL);
  rn_op_begin(rt.s, "Relu");
  rn_op_input(rt.s, a);
  add_class(rt.s, "a");
  rn_scope_name_next(rt.s, "b");
  rn_edge_t b = {rn_op_finish(rt.s), 0};
  rn_op_begin(rt.s, "Neg");
  rn_op_input(rt.s, b);
  add_class(rt.s, "b");
  rn_scope_name_next(rt.s, "c");
  rn_edge_t c = {rn_op_finish(rt.s), 0};
  rn_edge_t free_one = rn_Neg(rt.s, c);
  rn_step_stats_t stats;
  rn_step_stats_init(&stats, rn_allocator_system(), rn_env_system());
  rn_tensor_t fed = rt_scalar(-2);
  rt_step_t step = {.options = {.stats = &stats, .timeout_ms = 20000}};
  rt_feed(&step, x, &fed);
  rt_fetch(&step, free_one);
  OK(rt_run(&rt, &step));
  cr_assert_eq(rt_value(&step.out[0]), 2);
  cr_assert_eq(device_of(&stats, b.node->name.data), 101);
  cr_assert_eq(device_of(&stats, c.node->name.data), 101);
  cr_assert_eq(device_of(&stats, free_one.node->name.data), 0);
  rn_step_stats_clear(&stats);
  rt_clear(&step);
  rn_tensor_clear(&fed);
  rt_end(&rt);
}

RT_TEST(place, colocation_that_cannot_be) {
  rt_t rt = rt_begin(1);
  rt.options.null_devices = 2;
  rn_edge_t x = rn_const_float(rt.s, 1);
  rn_scope_set_device(rt.s, "/device:NULL:1");
  rn_scope_name_next(rt.s, "a");
  rn_edge_t a = rn_Neg(rt.s, x);
  rn_scope_set_device(rt.s, "/device:NULL:0");
  rn_scope_name_next(rt.s, "b");
  rn_op_begin(rt.s, "Relu");
  rn_op_input(rt.s, a);
  add_class(rt.s, "a");
  rn_edge_t b = {rn_op_finish(rt.s), 0};
  rt.options.optimize = false;  // or both are constants, and ask for nothing
  FAILS_WITH(rt_try(&rt, b), INVALID_ARGUMENT, "Cannot colocate nodes");
  rt_end(&rt);
}

// Variables on the second CPU: what assigns is there, what reads may be anywhere.
RT_TEST(place, variables_stay) {
  rt_t rt = rt_begin(1);
  rt.options.cpu_devices = 2;
  rn_scope_set_device(rt.s, "/device:CPU:1");
  rn_scope_name_next(rt.s, "v");
  rn_edge_t v = rn_VariableV2(rt.s, NULL, 0, RN_FLOAT);
  rn_scope_set_device(rt.s, NULL);
  rn_edge_t set = rn_Assign(rt.s, v, rn_const_float(rt.s, 7));
  rn_edge_t read = rn_Identity(rt.s, v);
  rn_scope_set_device(rt.s, "/device:CPU:0");
  rn_edge_t here = rn_Neg(rt.s, v);
  rn_scope_set_device(rt.s, NULL);
  rn_status_t status = rt_try(&rt, here);
  cr_assert_eq(rn_status_code(status), RN_CODE_FAILED_PRECONDITION);
  rn_status_free(status);
  rt_do(&rt, set.node);
  cr_assert_eq(rt_get(&rt, v, RN_NO_EDGE, 0), 7);
  cr_assert_eq(rt_get(&rt, read, RN_NO_EDGE, 0), 7);
  cr_assert_eq(rt_get(&rt, here, RN_NO_EDGE, 0), -7);
  cr_assert_eq(rt_get(&rt, rn_AddV2(rt.s, here, read), RN_NO_EDGE, 0), 0);
  rt_end(&rt);
}

RT_TEST(place, resources_stay) {
  rt_t rt = rt_begin(1);
  rt.options.cpu_devices = 2;
  rn_scope_set_device(rt.s, "/device:CPU:1");
  rn_edge_t handle = rn_VarHandleOp(rt.s, RN_FLOAT, NULL, 0);
  rn_scope_set_device(rt.s, NULL);
  rn_node_t* set = rn_AssignVariableOp(rt.s, handle, rn_const_float(rt.s, 7));
  rn_edge_t read = rn_ReadVariableOp(rt.s, handle, RN_FLOAT);
  rn_scope_set_device(rt.s, "/device:CPU:0");
  rn_edge_t stolen = rn_ReadVariableOp(rt.s, handle, RN_FLOAT);
  rn_scope_set_device(rt.s, NULL);
  rt_do(&rt, set);
  cr_assert_eq(rt_get(&rt, read, RN_NO_EDGE, 0), 7);
  cr_assert_eq(rt_get(&rt, stolen, RN_NO_EDGE, 0), 7);  // who uses state follows it
  rn_status_t status = rt_try(&rt, handle);             // the handle itself is in host memory
  cr_assert(rn_ok(status));
  rt_end(&rt);
}

// More devices than a machine word has bits, as a large cluster has.
RT_TEST(place, many_devices) {
  rt_t rt = rt_begin(1);
  rt.options.cpu_devices = 130;
  rt.options.optimize = false;
  rn_edge_t x = rt_placeholder(&rt, "x"), sum = x;
  const int devices[] = {0, 63, 64, 127, 128, 129};
  for (size_t i = 0; i < sizeof devices / sizeof *devices; ++i) {
    char device[64];
    snprintf(device, sizeof device, "/device:CPU:%d", devices[i]);
    rn_scope_set_device(rt.s, device);
    sum = rn_AddV2(rt.s, sum, rn_const_float(rt.s, 1));
    // A node that uses state is on the device of that state.
    rn_edge_t v = rn_VariableV2(rt.s, NULL, 0, RN_FLOAT);
    rn_scope_set_device(rt.s, NULL);
    sum = rn_AddV2(rt.s, sum, rn_Assign(rt.s, v, rn_const_float(rt.s, 2)));
  }
  rn_tensor_t fed = rt_scalar(1);
  rt_step_t step = {.options = {.timeout_ms = 20000}};
  rt_feed(&step, x, &fed);
  rt_fetch(&step, sum);
  OK(rt_run(&rt, &step));
  cr_assert_eq(rt_value(&step.out[0]), 1 + 3 * (int)(sizeof devices / sizeof *devices));
  rt_clear(&step);
  rn_tensor_clear(&fed);
  rn_scope_set_device(rt.s, "/device:CPU:130");
  rn_edge_t none = rn_Neg(rt.s, x);
  FAILS_WITH(rt_try(&rt, none), INVALID_ARGUMENT, "was explicitly assigned to /device:CPU:130");
  rt_end(&rt);
}
