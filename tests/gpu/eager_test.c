// Eager execution on a GPU, emulated here: where ops run, where values are, and what is copied.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "eager/eager.h"
#include "eager/tape.h"
#include "tensor/tstring.h"

#define TASK "/job:localhost/replica:0/task:0"
#define CPU TASK "/device:CPU:0"
#define GPU TASK "/device:GPU:0"
enum { EXPLICIT = 0, SILENT = 2, SILENT_FOR_INT32 = 3 };  // placement policies

static void ok(rn_status_t status) { cr_assert(rn_ok(status), "%s", rn_status_message(status)); }

static void fails(rn_status_t status, rn_code_t code, const char* part) {
  cr_assert_eq(rn_status_code(status), code, "%s", rn_status_message(status));
  cr_assert(strstr(rn_status_message(status), part), "%s", rn_status_message(status));
  rn_status_free(status);
}

static rn_eager_t* begin_with(bool is_async, bool is_soft) {
  rn_eager_options_t options = {.is_async = is_async, .policy = SILENT};
  rn_session_options_init(&options.session);
  options.session.allow_soft_placement = is_soft;
  rn_eager_t* eager = NULL;
  ok(rn_eager_create(&options, rn_env_system(), rn_allocator_system(), &eager));
  return eager;
}

static rn_eager_t* begin(void) { return begin_with(false, false); }

static void end(rn_eager_t* eager) {
  rn_eager_close(eager);
  rn_eager_release(eager);
}

static rn_eager_handle_t* handle(rn_dtype_t dtype, int64_t count, const void* values) {
  rn_tensor_t tensor = {0};
  rn_eager_handle_t* made = NULL;
  rn_shape_t shape = {count ? 1 : 0, &count};
  ok(rn_tensor_create(rn_allocator_default(), dtype, shape, &tensor));
  memcpy(tensor.data, values, rn_tensor_bytes(&tensor));
  ok(rn_eager_handle_create(&tensor, &made));
  rn_tensor_clear(&tensor);
  return made;
}

static rn_eager_handle_t* floats(int64_t count, const float* values) {
  return handle(RN_FLOAT, count, values);
}
static rn_eager_handle_t* ints(int64_t count, const int32_t* values) {
  return handle(RN_INT32, count, values);
}

static rn_eager_op_t* describe(rn_eager_t* eager, const char* name, const char* device,
                               rn_eager_handle_t* x, rn_eager_handle_t* y) {
  rn_eager_op_t* op = NULL;
  ok(rn_eager_op_create(eager, rn_str(name), &op));
  if (device) ok(rn_eager_op_set_device(op, rn_str(device)));
  if (x) ok(rn_eager_op_add_input(op, x));
  if (y) ok(rn_eager_op_add_input(op, y));
  return op;
}

static rn_status_t finish(rn_eager_op_t* op, rn_eager_handle_t** out) {
  int32_t room = out ? 1 : 0;
  rn_status_t status = rn_eager_execute(op, out, &room);
  rn_eager_op_destroy(op);
  return status;
}

static rn_eager_handle_t* run(rn_eager_t* eager, const char* name, const char* device,
                              rn_eager_handle_t* x, rn_eager_handle_t* y) {
  rn_eager_handle_t* out = NULL;
  ok(finish(describe(eager, name, device, x, y), &out));
  return out;
}

static float float_at(rn_eager_handle_t* value, int i) {
  const rn_tensor_t* tensor = NULL;
  ok(rn_eager_handle_value(value, &tensor));
  cr_assert_eq(tensor->dtype, RN_FLOAT);
  return RN_DATA(tensor, float)[i];
}

static void is_on(rn_eager_handle_t* value, const char* device, const char* memory) {
  cr_assert_str_eq(rn_eager_handle_device(value), device);
  cr_assert_str_eq(rn_eager_handle_backing_device(value), memory);
}

static void drop(rn_eager_handle_t* value) { rn_eager_handle_release(value); }

static rn_device_t* find(rn_eager_t* eager, const char* name) {
  rn_device_t* device = NULL;
  ok(rn_eager_device(eager, rn_str(name), &device));
  return device;
}

static rn_eager_handle_t* copy(rn_eager_t* eager, rn_eager_handle_t* value, const char* device) {
  rn_eager_handle_t* out = NULL;
  ok(rn_eager_handle_copy_to(value, eager, find(eager, device), &out));
  return out;
}

Test(gpu_eager, ops_without_a_device_run_there) {
  rn_eager_t* eager = begin();
  rn_eager_handle_t* x = floats(3, (float[]){1, 2, 3});
  rn_eager_handle_t* y = run(eager, "AddV2", NULL, x, x);
  is_on(x, CPU, CPU);
  is_on(y, GPU, GPU);
  for (int i = 0; i < 5; ++i) {
    rn_eager_handle_t* z = run(eager, "Mul", NULL, y, x);
    is_on(z, GPU, GPU);
    drop(y);
    y = z;
  }
  cr_assert_eq(float_at(y, 0), 2);
  cr_assert_eq(float_at(y, 1), 4 * 32);
  cr_assert_eq(float_at(y, 2), 6 * 243);
  rn_eager_handle_t* back = run(eager, "Neg", "/cpu:0", y, NULL);
  is_on(back, CPU, CPU);
  cr_assert_eq(float_at(back, 1), -4 * 32);
  drop(back);
  drop(x);
  end(eager);
  cr_assert_eq(float_at(y, 0), 2);  // a value keeps its context
  drop(y);
}

// Small integers are shapes and indices: their kernels of a GPU work in host memory.
Test(gpu_eager, host_arguments) {
  rn_eager_t* eager = begin();
  rn_eager_handle_t* x = floats(6, (float[]){1, 2, 3, 4, 5, 6});
  rn_eager_handle_t* there = copy(eager, x, "/gpu:0");
  rn_eager_handle_t* dims = ints(2, (int32_t[]){2, 3});
  rn_eager_handle_t* sum = run(eager, "AddV2", NULL, dims, dims);
  is_on(sum, GPU, CPU);
  rn_eager_handle_t* far_dims = copy(eager, dims, "/gpu:0");
  is_on(far_dims, GPU, GPU);
  rn_eager_handle_t* y = run(eager, "Reshape", NULL, there, far_dims);
  is_on(y, GPU, GPU);
  rn_eager_handle_t* axis = ints(0, (int32_t[]){1});
  rn_eager_handle_t* z = run(eager, "Sum", NULL, y, axis);
  is_on(z, GPU, GPU);
  cr_assert_eq(float_at(z, 0), 6);
  cr_assert_eq(float_at(z, 1), 15);
  rn_eager_handle_t* shape = run(eager, "Shape", NULL, y, NULL);
  is_on(shape, GPU, CPU);
  const rn_tensor_t* tensor = NULL;
  ok(rn_eager_handle_value(shape, &tensor));
  cr_assert_eq(RN_DATA(tensor, int32_t)[1], 3);
  rn_eager_handle_t* all[] = {x, there, dims, sum, far_dims, y, axis, z, shape};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) drop(all[i]);
  end(eager);
}

Test(gpu_eager, what_has_no_kernel_runs_on_the_cpu) {
  rn_tensor_t text = {0};
  rn_eager_handle_t *x = NULL, *y = NULL;
  ok(rn_tensor_create(rn_allocator_default(), RN_STRING, (rn_shape_t){0, NULL}, &text));
  cr_assert(rn_tstring_assign(RN_DATA(&text, rn_tstring_t), "A", 1));
  ok(rn_eager_handle_create(&text, &x));
  for (int is_soft = 0; is_soft < 2; ++is_soft) {
    rn_eager_t* eager = begin_with(false, is_soft);
    y = run(eager, "StringLower", NULL, x, NULL);
    is_on(y, CPU, CPU);
    drop(y);
    rn_status_t status = finish(describe(eager, "StringLower", "/gpu:0", x, NULL), &y);
    if (is_soft)
      ok(status);
    else
      fails(status, RN_CODE_INVALID_ARGUMENT,
            "Could not satisfy device specification '/device:GPU:0'. enable_soft_placement=0. "
            "Supported device types [CPU]. All available devices [" CPU ", " GPU "].");
    if (is_soft) drop(y);
    end(eager);
  }
  rn_tensor_clear(&text);
  drop(x);
}

Test(gpu_eager, constants) {
  rn_eager_t* eager = begin();
  for (int is_int = 0; is_int < 2; ++is_int) {
    rn_tensor_t value = {0};
    rn_dtype_t dtype = is_int ? RN_INT32 : RN_FLOAT;
    rn_eager_handle_t* made = NULL;
    ok(rn_tensor_create(rn_allocator_default(), dtype, (rn_shape_t){0, NULL}, &value));
    memcpy(value.data, is_int ? (const void*)&(int32_t){7} : &(float){7}, 4);
    rn_eager_op_t* op = describe(eager, "Const", NULL, NULL, NULL);
    rn_attr_value_t type = {.kind = RN_ATTR_TYPE, .type = dtype};
    rn_attr_value_t tensor = {.kind = RN_ATTR_TENSOR, .tensor = &value};
    rn_eager_op_set_attr(op, RN_STR("dtype"), &type);
    rn_eager_op_set_attr(op, RN_STR("value"), &tensor);
    ok(finish(op, &made));
    is_on(made, GPU, is_int ? CPU : GPU);
    if (!is_int) cr_assert_eq(float_at(made, 0), 7);
    drop(made);
    rn_tensor_clear(&value);
  }
  end(eager);
}

Test(gpu_eager, copies_follow_the_policy) {
  rn_eager_t* eager = begin();
  rn_eager_handle_t* x = floats(2, (float[]){1, 2});
  rn_eager_handle_t* there = copy(eager, x, "/gpu:0");
  is_on(there, GPU, GPU);
  rn_eager_handle_t* same = copy(eager, there, "/gpu:0");
  cr_assert_eq(same, there);
  rn_eager_handle_t *back = copy(eager, there, "/cpu:0"), *out = NULL;
  is_on(back, CPU, CPU);
  cr_assert_eq(float_at(back, 1), 2);
  rn_eager_set_policy(eager, EXPLICIT);
  fails(finish(describe(eager, "AddV2", "/gpu:0", there, x), &out), RN_CODE_INVALID_ARGUMENT,
        "Tensors on conflicting devices: cannot compute AddV2 as input #1 was expected to be on "
        "" GPU " but is actually on " CPU);
  out = run(eager, "AddV2", "/gpu:0", there, there);
  drop(out);
  // The shape is an argument in host memory.
  rn_eager_handle_t* dims = ints(2, (int32_t[]){2, 1});
  out = run(eager, "Reshape", "/gpu:0", there, dims);
  is_on(out, GPU, GPU);
  rn_eager_handle_t* all[] = {x, there, same, back, out, dims};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) drop(all[i]);
  end(eager);
}

static rn_eager_handle_t* variable(rn_eager_t* eager, const char* device,
                                   rn_eager_handle_t* value) {
  rn_eager_handle_t* made = NULL;
  rn_eager_op_t* op = describe(eager, "VarHandleOp", device, NULL, NULL);
  rn_attr_value_t type = {.kind = RN_ATTR_TYPE, .type = RN_FLOAT};
  rn_attr_value_t shape = {.kind = RN_ATTR_SHAPE, .shape = RN_SHAPE_UNKNOWN};
  rn_eager_op_set_attr(op, RN_STR("dtype"), &type);
  rn_eager_op_set_attr(op, RN_STR("shape"), &shape);
  ok(finish(op, &made));
  ok(finish(describe(eager, "AssignVariableOp", NULL, made, value), NULL));
  return made;
}

static rn_eager_handle_t* read(rn_eager_t* eager, const char* device, rn_eager_handle_t* from) {
  rn_eager_handle_t* value = NULL;
  rn_eager_op_t* op = describe(eager, "ReadVariableOp", device, from, NULL);
  rn_attr_value_t type = {.kind = RN_ATTR_TYPE, .type = RN_FLOAT};
  rn_eager_op_set_attr(op, RN_STR("dtype"), &type);
  ok(finish(op, &value));
  return value;
}

// An op runs where its variable is, whatever device it names.
Test(gpu_eager, variables) {
  rn_eager_t* eager = begin();
  static const char* const devices[] = {NULL, "/gpu:0", "/cpu:0"};
  for (int i = 0; i < 3; ++i) {
    const char* where = i == 2 ? CPU : GPU;
    rn_eager_handle_t *one = floats(0, (float[]){1}), *two = floats(0, (float[]){2});
    rn_eager_handle_t* v = variable(eager, devices[i], one);
    is_on(v, where, CPU);
    ok(finish(describe(eager, "AssignAddVariableOp", NULL, v, two), NULL));
    for (int k = 0; k < 3; ++k) {
      rn_eager_handle_t* value = read(eager, devices[k], v);
      is_on(value, where, where);
      cr_assert_eq(float_at(value, 0), 3);
      drop(value);
    }
    drop(v);
    drop(one);
    drop(two);
  }
  end(eager);
}

Test(gpu_eager, gradients) {
  rn_eager_t* eager = begin();
  rn_eager_handle_t *start = floats(0, (float[]){3}), *dx = NULL;
  rn_eager_handle_t* x = variable(eager, NULL, start);
  rn_eager_tape_t* tape = NULL;
  ok(rn_eager_tape_create(eager, false, true, &tape));
  ok(rn_eager_tape_watch(tape, x));
  rn_eager_handle_t* value = read(eager, NULL, x);
  rn_eager_handle_t* y = run(eager, "Mul", NULL, value, value);
  rn_eager_gradient_t request = {
      .targets = &y, .target_count = 1, .sources = &x, .source_count = 1};
  ok(rn_eager_tape_gradient(tape, &request, &dx));
  cr_assert_eq(float_at(dx, 0), 6);
  ok(finish(describe(eager, "AssignSubVariableOp", NULL, x, dx), NULL));
  rn_eager_handle_t* after = read(eager, NULL, x);
  cr_assert_eq(float_at(after, 0), -3);
  rn_eager_tape_destroy(tape);
  rn_eager_handle_t* all[] = {start, dx, x, value, y, after};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) drop(all[i]);
  end(eager);
}

Test(gpu_eager, asynchronous_calls) {
  rn_eager_t* eager = begin_with(true, false);
  rn_eager_handle_t* x = floats(2, (float[]){1, 2});
  rn_eager_handle_t* y = run(eager, "AddV2", NULL, x, x);
  for (int i = 0; i < 20; ++i) {
    rn_eager_handle_t* z = run(eager, "AddV2", i % 5 == 4 ? "/cpu:0" : NULL, y, x);
    drop(y);
    y = z;
  }
  cr_assert_eq(float_at(y, 1), 44);
  is_on(y, CPU, CPU);
  rn_eager_handle_t *three = floats(3, (float[]){1, 2, 3}), *bad = NULL;
  ok(finish(describe(eager, "AddV2", NULL, y, three), &bad));
  const rn_tensor_t* value = NULL;
  fails(rn_eager_handle_value(bad, &value), RN_CODE_INVALID_ARGUMENT, "Incompatible shapes");
  drop(bad);
  drop(three);
  drop(x);
  drop(y);
  end(eager);
}

Test(gpu_eager, two_gpus) {
  setenv("RN_EMULATED_GPUS", "2", 1);
  if (!getenv("RUNNEL_CUDA_PATH")) cr_skip_test("this machine's own GPUs are tested");
  rn_eager_t* eager = begin();
  rn_eager_handle_t* x = floats(2, (float[]){1, 2});
  rn_eager_handle_t* y = run(eager, "AddV2", "/gpu:1", x, x);
  is_on(y, TASK "/device:GPU:1", TASK "/device:GPU:1");
  rn_eager_handle_t* z = run(eager, "Mul", NULL, y, x);
  is_on(z, GPU, GPU);
  rn_eager_handle_t* w = copy(eager, z, "/gpu:1");
  is_on(w, TASK "/device:GPU:1", TASK "/device:GPU:1");
  cr_assert_eq(float_at(w, 1), 8);
  rn_eager_handle_t* all[] = {x, y, z, w};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) drop(all[i]);
  end(eager);
}

// A step that was fed another device's variable must not touch it.
Test(gpu_eager, variables_are_not_read_across_devices) {
  rn_eager_t* eager = begin();
  static const char* const devices[] = {"/cpu:0", "/gpu:0"};
  for (int from = 0; from < 2; ++from) {
    rn_eager_handle_t* one = floats(0, (float[]){1});
    rn_eager_handle_t* v = variable(eager, devices[from], one);
    const rn_tensor_t* fed = NULL;
    ok(rn_eager_handle_value(v, &fed));
    rn_attr_t resource = {RN_STR("dtype"), {.kind = RN_ATTR_TYPE, .type = RN_RESOURCE}};
    rn_attr_t type = {RN_STR("dtype"), {.kind = RN_ATTR_TYPE, .type = RN_FLOAT}};
    rn_edge_t feed = {0}, fetch = {0};
    rn_node_spec_t spec = {.op = RN_STR("Placeholder"),
                           .name = from ? RN_STR("x1") : RN_STR("x0"),
                           .attrs = &resource,
                           .attr_count = 1};
    ok(rn_graph_add(rn_eager_library(eager), &spec, &feed.node));
    spec = (rn_node_spec_t){.op = RN_STR("ReadVariableOp"),
                            .name = from ? RN_STR("y1") : RN_STR("y0"),
                            .device = rn_str(devices[!from]),
                            .inputs = &feed,
                            .input_count = 1,
                            .attrs = &type,
                            .attr_count = 1};
    ok(rn_graph_add(rn_eager_library(eager), &spec, &fetch.node));
    rn_signature_t step = {.feeds = &feed, .feed_count = 1, .fetches = &fetch, .fetch_count = 1};
    rn_tensor_t out = {0};
    fails(rn_session_run(rn_eager_session(eager), &step, &fed, &out, NULL),
          RN_CODE_INVALID_ARGUMENT,
          from ? " located in device " GPU " from device " CPU
               : " located in device " CPU " from device " GPU);
    drop(v);
    drop(one);
  }
  end(eager);
}

Test(gpu_eager, a_handle_over_device_memory) {
  rn_eager_t* eager = begin();
  rn_eager_handle_t *x = floats(2, (float[]){1, 2}), *there = copy(eager, x, "/gpu:0"),
                    *over = NULL;
  const rn_tensor_t* tensor = NULL;
  ok(rn_eager_handle_tensor(there, &tensor));
  ok(rn_eager_handle_over(tensor, eager, find(eager, "/gpu:0"), &over));
  is_on(over, GPU, GPU);
  rn_eager_handle_t* y = run(eager, "AddV2", NULL, over, there);
  cr_assert_eq(float_at(y, 1), 4);
  rn_eager_handle_t* all[] = {x, there, over, y};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) drop(all[i]);
  end(eager);
}
